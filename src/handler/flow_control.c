/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/flow_control.h>

#include <weir/handler.h>
#include <weir/pipeline.h>

#include "channel/demand.h"

static void on_read_complete(weir_ctx *ctx)
{
    weir__demand_read_complete(ctx, &weir__demand_buffered);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    weir__demand_event(ctx, event, &weir__demand_buffered);
}

static void on_request_read(weir_ctx *ctx)
{
    weir__demand_request_read(ctx, &weir__demand_buffered);
}

static const weir_handler flow_control = {
    .name = "flow-control",
    .state_size = sizeof(weir_demand),
    .removed = weir__demand_removed,
    .inactive = weir__demand_inactive,
    .read = weir__demand_pass,
    .read_complete = on_read_complete,
    .event = on_event,
    .request_read = on_request_read,
    .buffers_reads = true,
};

int weir_flow_control_add(weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &flow_control, NULL);
}
