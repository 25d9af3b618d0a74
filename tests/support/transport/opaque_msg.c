/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is released last.
 */
#include "support/transport/opaque_msg.h"

static void destroy(weir_msg *msg)
{
    WEIR_CONTAINER_OF(msg, struct opaque_msg, msg)->is_gone = true;
}

static const weir_msg_type type = {.name = "opaque", .destroy = destroy};

void opaque_msg_init(struct opaque_msg *opaque)
{
    opaque->is_gone = false;
    weir_msg_init(&opaque->msg, &type);
}
