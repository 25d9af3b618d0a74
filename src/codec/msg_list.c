/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/msg_list.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

void weir__msg_list_init(weir_msg_list *list)
{
    list->msgs = list->inline_msgs;
    list->count = 0;
    list->capacity = WEIR__MSG_LIST_INLINE;
}

void weir__msg_list_deinit(weir_msg_list *list)
{
    if (list->msgs != list->inline_msgs)
        weir__free(list->msgs);
}

void weir__msg_list_clear(weir_msg_list *list)
{
    while (list->count > 0)
        weir_msg_release(list->msgs[--list->count]);
}

static int grow(weir_msg_list *list)
{
    weir_msg **larger = weir__alloc(list->capacity * 2 * sizeof(*larger));

    if (larger == NULL)
        return -ENOMEM;
    memcpy(larger, list->msgs, list->count * sizeof(*larger));
    weir__msg_list_deinit(list);
    list->msgs = larger;
    list->capacity *= 2;
    return 0;
}

int weir_msg_list_add(weir_msg_list *list, weir_msg *msg)
{
    int err = list->count == list->capacity ? grow(list) : 0;

    if (err < 0)
        weir_msg_release(msg);
    else
        list->msgs[list->count++] = msg;
    return err;
}

size_t weir_msg_list_count(const weir_msg_list *list)
{
    return list->count;
}
