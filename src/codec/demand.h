/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where reads are on demand, who has asked for one waits for a message. A handler that has made
 * none of what came asks again in its place.
 */
#ifndef WEIR_CODEC_DEMAND_H
#define WEIR_CODEC_DEMAND_H

#include <weir/ctx.h>

/* Passes read_complete on, then asks for one more read if `is_owed` a message, and nobody else
 * does. */
void weir__demand_read_complete(weir_ctx *ctx, bool is_owed);

#endif
