/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/demand.h"

#include <weir/channel.h>

void weir__demand_read_complete(weir_ctx *ctx, bool is_owed)
{
    weir_fire_read_complete(ctx);
    if (is_owed && !weir_ctx_is_removed(ctx) && !weir_channel_auto_read(weir_ctx_channel(ctx)))
        weir_request_read(ctx);
}
