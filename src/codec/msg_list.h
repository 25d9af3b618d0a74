/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a list of messages. It lives on the stack of who makes it; a few messages need no
 * further memory.
 */
#ifndef WEIR_CODEC_MSG_LIST_H
#define WEIR_CODEC_MSG_LIST_H

#include <weir/codec.h>

#define WEIR__MSG_LIST_FEW 8

struct weir_msg_list {
    weir_msg **msgs;
    size_t count;
    size_t room;
    weir_msg *few[WEIR__MSG_LIST_FEW];
};

void weir__msg_list_init(weir_msg_list *list);

/* The memory of the list, not the messages. */
void weir__msg_list_deinit(weir_msg_list *list);

/* Releases the messages. */
void weir__msg_list_clear(weir_msg_list *list);

#endif
