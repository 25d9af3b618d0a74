/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of messages that are not inline.
 */
#include <weir/msg.h>

void weir_msg_touch(weir_msg *msg, const char *where)
{
    if (msg->type->touch != NULL)
        msg->type->touch(msg, where);
}

int weir_msg_share(weir_msg *msg, weir_msg **ret_share)
{
    if (msg->type->share != NULL)
        return msg->type->share(msg, ret_share);
    *ret_share = weir_msg_retain(msg);
    return 0;
}
