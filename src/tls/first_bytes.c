/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/first_bytes.h"

#include <errno.h>
#include <stdio.h>

#include <weir/channel.h>
#include <weir/clock.h>
#include <weir/error.h>
#include <weir/pipeline.h>

#include "base/options.h"

#define DEFAULT_TIMEOUT_NS weir_seconds(10)

int weir__first_bytes_init(weir__first_bytes *base, int64_t timeout_ns)
{
    if (timeout_ns < 0 && timeout_ns != WEIR_OFF)
        return weir__options_reject("tls", NULL, "timeout_ns is %lld", (long long)timeout_ns);
    base->timeout_ns = timeout_ns != 0 ? timeout_ns : DEFAULT_TIMEOUT_NS;
    return 0;
}

static void fail(weir_ctx *ctx, int err, const char *detail)
{
    weir__first_bytes *base = weir_ctx_state(ctx);

    base->has_failed = true;
    weir_fire_error(ctx, err, detail);
    if (!weir_ctx_is_removed(ctx))
        weir_close(ctx, NULL);
}

static void on_timeout(weir_ctx *ctx, weir_timer *timer)
{
    weir__first_bytes *base = weir_ctx_state(ctx);
    char detail[64];

    (void)timer;
    if (base->has_failed)
        return;
    (void)snprintf(detail, sizeof(detail), "the first bytes did not arrive within %lld ms",
                   (long long)(base->timeout_ns / weir_ms(1)));
    fail(ctx, -ETIMEDOUT, detail);
}

static void begin(weir_ctx *ctx)
{
    weir__first_bytes *base = weir_ctx_state(ctx);
    int err = 0;

    if (base->timeout_ns != WEIR_OFF)
        err = weir_ctx_timer_start(ctx, &base->timer, base->timeout_ns, on_timeout);
    if (err < 0)
        fail(ctx, err, "the timer cannot be started");
    else if (!weir_channel_auto_read(weir_ctx_channel(ctx)))
        weir_request_read(ctx);
}

void weir__first_bytes_added(weir_ctx *ctx)
{
    if (weir_channel_is_active(weir_ctx_channel(ctx)))
        begin(ctx);
}

/* On another loop. The timer was stopped. */
void weir__first_bytes_registered(weir_ctx *ctx)
{
    const weir__first_bytes *base = weir_ctx_state(ctx);

    if (!base->has_failed && !base->is_done && weir_channel_is_active(weir_ctx_channel(ctx)))
        begin(ctx);
    weir_fire_registered(ctx);
}

void weir__first_bytes_active(weir_ctx *ctx)
{
    begin(ctx);
    weir_fire_active(ctx);
}

bool weir__first_bytes_is_urgent(weir_ctx *ctx)
{
    (void)ctx;
    return true;
}

int weir__first_bytes_pass(weir_ctx *ctx)
{
    weir__first_bytes *base = weir_ctx_state(ctx);

    base->is_done = true;
    (void)weir_timer_stop(&base->timer);
    return weir_decoder_finish(ctx);
}

int weir__first_bytes_fail(weir_ctx *ctx, weir_buf *in, int err, const char *detail)
{
    weir__first_bytes *base = weir_ctx_state(ctx);

    if (!base->has_failed)
        fail(ctx, err, detail);
    if (!weir_ctx_is_removed(ctx))
        (void)weir_buf_skip(in, weir_buf_readable(in));
    return 0;
}

/* Closing without having sent anything, as health checks do, is no error. */
int weir__first_bytes_end(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir__first_bytes *base = weir_ctx_state(ctx);

    (void)ret_msg;
    if (weir_buf_readable(in) > 0)
        return weir__first_bytes_fail(ctx, in, WEIR_EMALFORMED,
                                      "the connection ended before its first bytes were complete");
    if (!base->has_failed)
        weir_close(ctx, NULL); /* with half closure it would stay open */
    return 0;
}
