/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of a type that no handler knows, in the test's memory, which records its release.
 */
#ifndef WEIR_TEST_OPAQUE_MSG_H
#define WEIR_TEST_OPAQUE_MSG_H

#include <stdbool.h>

#include <weir/msg.h>

struct opaque_msg {
    weir_msg msg; /* of type "opaque" */
    bool is_gone;
};

void opaque_msg_init(struct opaque_msg *opaque);

#endif
