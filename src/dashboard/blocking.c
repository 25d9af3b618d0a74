/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler that blocks on demand, which the watchdog then names; and the switch that moves it.
 */
#include <weir/clock.h>
#include <weir/pipeline.h>

#include "dashboard/visitor.h"
#include "os/clock.h"

static int init(void *state, const void *options)
{
    weir__visitor *visitor = *(weir__visitor *const *)options;

    weir__refs_retain(&visitor->refs);
    *(weir__visitor **)state = visitor;
    return 0;
}

static void deinit(void *state)
{
    weir__visitor_release(*(weir__visitor **)state);
}

/* Its name is in the backtrace. */
static void block_this_loop(weir_ctx *ctx, weir_msg *msg)
{
    weir__visitor *visitor = *(weir__visitor **)weir_ctx_state(ctx);
    weir_executor *executor = weir_ctx_executor(ctx);
    bool is_moved = executor != weir_channel_executor(weir_ctx_channel(ctx));

    weir__sleep(visitor->dashboard->block_ns);
    atomic_store_explicit(&visitor->is_blocking, false, memory_order_release);
    weir__visitor_offer(visitor,
                        weir__dashboard_unblocked_message(weir_executor_name(executor), is_moved,
                                                          visitor->dashboard->block_ns));
    weir_msg_release(msg);
}

const weir_handler weir__dashboard_block_handler = {.name = "dashboard-block",
                                                    .state_size = sizeof(weir__visitor *),
                                                    .init = init,
                                                    .deinit = deinit,
                                                    .read = block_this_loop};

bool weir__visitor_apply_switch(weir__visitor *visitor, weir_ctx *ctx)
{
    weir__dashboard *dashboard = visitor->dashboard;
    bool is_on = atomic_load_explicit(&dashboard->moves_blocking, memory_order_acquire);
    weir_pipeline *pipeline = weir_ctx_pipeline(ctx);
    weir_channel *channel = weir_ctx_channel(ctx);
    weir_channel_options options;
    int err;

    if (visitor->is_moving == is_on ||
        atomic_load_explicit(&visitor->is_blocking, memory_order_acquire))
        return false;
    weir_channel_get_options(channel, &options);
    options.offload_when_blocking = is_on ? dashboard->options.offload : NULL;
    err = weir_channel_set_options(channel, &options);
    if (err == 0 && !is_on) /* a handler that was moved stays there; a new one is on the loop */
        err = weir_pipeline_remove(pipeline, weir__dashboard_block_handler.name, NULL);
    if (err == 0 && !is_on)
        err = weir_pipeline_add_after(pipeline, weir_ctx_name(ctx), &weir__dashboard_block_handler,
                                      &visitor);
    if (err == 0)
        visitor->is_moving = is_on;
    return err == 0;
}
