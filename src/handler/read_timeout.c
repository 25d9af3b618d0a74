/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/timeouts.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/pipeline.h>

#include "base/options.h"
#include "handler/idle_watch.h"

#define DEFAULT_TIMEOUT_NS weir_seconds(30)

static void time_out(weir_ctx *ctx, enum weir_idle_kind kind, bool first)
{
    weir__idle_watch *watch = weir_ctx_state(ctx);
    char detail[64];

    (void)first;
    (void)snprintf(detail, sizeof(detail), "nothing read for %lld ms",
                   (long long)(watch->limits_ns[kind] / weir_ms(1)));
    weir__idle_watch_stop(ctx);
    weir_fire_error(ctx, -ETIMEDOUT, detail);
    if (!weir_ctx_is_removed(ctx))
        weir_close(ctx, NULL);
}

static int init(void *state, const void *options)
{
    const weir_read_timeout_options *given = options;
    int64_t timeout_ns = given->timeout_ns != 0 ? given->timeout_ns : DEFAULT_TIMEOUT_NS;

    weir__idle_watch_init(state, WEIR_IDLE_OPTIONS(.reader_ns = timeout_ns), time_out);
    return 0;
}

static const weir_handler read_timeout = {
    .name = "read-timeout",
    .state_size = sizeof(weir__idle_watch),
    .init = init,
    WEIR__IDLE_WATCH_SLOTS,
};

int weir_read_timeout_add(weir_pipeline *pipeline, const weir_read_timeout_options *options)
{
    weir_read_timeout_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0)
        err = weir__options_check("read-timeout", NULL,
                                  WEIR__OPTION_FROM(&own, timeout_ns, WEIR_OFF));
    return err < 0 ? err : weir_pipeline_add_last(pipeline, &read_timeout, &own);
}
