/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is released last.
 */
#include "support/transport/opaque_msg.h"

static void destroy(weir_msg *msg)
{
    WEIR_CONTAINER_OF(msg, struct parcel, msg)->is_gone = true;
}

static const weir_msg_type type = {.name = "parcel", .destroy = destroy};

void parcel_init(struct parcel *parcel)
{
    parcel->is_gone = false;
    weir_msg_init(&parcel->msg, &type);
}
