/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of the examples rpc and rpc-client, in length-prefixed frames:
 *
 *      call    length (4)   id (4)   method (1)   number (8)
 *      result  length (4)   id (4)   number (8)
 *
 * A result has the id of its call; results may arrive in any order.
 */
#ifndef EXAMPLES_RPC_H
#define EXAMPLES_RPC_H

#include <weir/weir.h>

enum rpc_method {
    RPC_SQUARE, /* answered at once */
    RPC_FACTOR, /* the smallest prime factor: slow */
};

/* doc:begin frames */
static inline int rpc_frames_add(weir_pipeline *pipeline)
{
    int err =
        weir_length_field_add(pipeline, WEIR_LENGTH_FIELD_OPTIONS(.max_length = 64, .strip = 4));

    return err ? err : weir_length_prepender_add(pipeline, NULL);
}
/* doc:end */

#endif
