/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/msg_list.h - messages that a decoder or an encoder of messages makes of one.
 *
 *      return weir_msg_list_add(out, weir_buf_msg(buf));
 *
 * Lists are made by the bases (weir/msg_decoder.h, weir/msg_encoder.h), and lent for a call.
 */
#ifndef WEIR_MSG_LIST_H
#define WEIR_MSG_LIST_H

#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_msg_list weir_msg_list;

/*
 * Adds a message at the end. What was made of the message so far is dropped if this fails, and the
 * caller returns the error.
 * Thread: the handler's.  Takes: msg.  Fails: -ENOMEM.
 */
WEIR_API int weir_msg_list_add(weir_msg_list *list, weir_msg *msg);

/*
 * How many messages there are.
 * Thread: the handler's.
 */
WEIR_API size_t weir_msg_list_count(const weir_msg_list *list);

#ifdef __cplusplus
}
#endif

#endif
