/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message list of codec bases. It lives on the stack; a few messages need no allocation.
 */
#ifndef WEIR_CODEC_MSG_LIST_H
#define WEIR_CODEC_MSG_LIST_H

#include <weir/codec.h>

#define WEIR__MSG_LIST_INLINE 8

struct weir_msg_list {
    weir_msg **msgs;
    size_t count;
    size_t capacity;
    weir_msg *inline_msgs[WEIR__MSG_LIST_INLINE];
};

void weir__msg_list_init(weir_msg_list *list);

/* Frees the memory of the list, but not the messages. */
void weir__msg_list_deinit(weir_msg_list *list);

/* Releases the messages. */
void weir__msg_list_clear(weir_msg_list *list);

#endif
