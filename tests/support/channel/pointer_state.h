/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers whose state is a pointer, which is their option:
 *
 *     static const weir_handler handler = {
 *         .name = "mine", .state_size = sizeof(void *), .init = pointer_keep, .read = on_read};
 */
#ifndef WEIR_TEST_POINTER_STATE_H
#define WEIR_TEST_POINTER_STATE_H

#include <string.h>

static inline int pointer_keep(void *state, const void *options)
{
    memcpy(state, &options, sizeof(options));
    return 0;
}

#endif
