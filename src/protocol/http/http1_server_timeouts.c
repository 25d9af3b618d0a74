/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeouts of a server's connection, with one timer that no read and no response moves: it
 * fires when the first of the deadlines might have passed, compares what has happened since, and
 * starts again. An exchange whose head arrives whole and whose response is sent at once reads no
 * clock.
 *
 *      head        408, or a silent close if no byte has come, after head_timeout_ns
 *      idle        closed after idle_timeout_ns, at most a quarter later
 *      content     408 if less than min_rate has come in ten seconds, while it was wanted
 *      output      reset if less than min_rate was taken in ten seconds, while there was more
 */
#include "protocol/http/http1_server.h"

#include <weir/channel.h>

#define PERIOD_S 10
#define PERIOD_NS (INT64_C(1000000000) * PERIOD_S)

static void on_timer(weir_ctx *ctx, weir_timer *timer);

static int64_t later(int64_t time_ns, int64_t delay_ns)
{
    return delay_ns < WEIR_NEVER - time_ns ? time_ns + delay_ns : WEIR_NEVER;
}

/* Makes the timer fire at the deadline, or earlier if it does so anyway. */
static void arm(weir_ctx *ctx, weir__http1_server *server, int64_t now_ns, int64_t deadline_ns)
{
    if (deadline_ns >= server->armed_until_ns)
        return;
    if (weir_ctx_timer_start(ctx, &server->timer, deadline_ns - now_ns, on_timer) == 0)
        server->armed_until_ns = deadline_ns;
}

static void begin(weir__http1_server *server, enum weir__http1_since since, int64_t now_ns)
{
    server->since = (uint8_t)since;
    server->since_ns = now_ns;
}

static int64_t idle_tick(const weir__http1_server *server, int64_t now_ns)
{
    int64_t timeout_ns = server->config->idle_timeout_ns;

    return timeout_ns == WEIR_NEVER ? WEIR_NEVER : later(now_ns, timeout_ns / 4);
}

void weir__http1_server_start_timer(weir_ctx *ctx, weir__http1_server *server)
{
    int64_t now_ns = weir_ctx_now(ctx);

    begin(server, WEIR__HTTP1_SINCE_HEAD, now_ns);
    arm(ctx, server, now_ns, later(now_ns, server->config->head_timeout_ns));
    arm(ctx, server, now_ns, idle_tick(server, now_ns));
}

/* ---- periods ---- */

/* A client cannot send what is not read, nor before status 100 if it waits for that. */
static void begin_content_period(weir_ctx *ctx, weir__http1_server *server, int64_t now_ns)
{
    bool is_wanted = weir_decoder_has_demand(ctx) && !server->awaits_continue;

    begin(server, is_wanted ? WEIR__HTTP1_SINCE_CONTENT : WEIR__HTTP1_SINCE_NOTHING, now_ns);
    server->received = 0;
    arm(ctx, server, now_ns, later(now_ns, PERIOD_NS));
}

static int64_t bytes_sent(weir_ctx *ctx)
{
    return weir_channel_bytes_sent(weir_ctx_channel(ctx));
}

/* While there is little to send, the client is not to blame for taking little. */
static void begin_output_period(weir_ctx *ctx, weir__http1_server *server, int64_t now_ns)
{
    weir__http1_writer_forget_file(&server->writer);
    server->output_since_ns = 0;
    if (!weir__http1_writer_is_sending(ctx, &server->writer))
        return;
    server->output_since_ns = now_ns;
    server->output_seen = bytes_sent(ctx);
    server->output_file = server->writer.files;
    arm(ctx, server, now_ns, later(now_ns, PERIOD_NS));
}

void weir__http1_server_watch(weir_ctx *ctx, weir__http1_server *server)
{
    int64_t now_ns = weir_ctx_now(ctx);

    if (weir__http1_server_is_in_head(server)) {
        if (server->since != WEIR__HTTP1_SINCE_HEAD)
            begin(server, WEIR__HTTP1_SINCE_HEAD, now_ns);
        arm(ctx, server, now_ns, later(server->since_ns, server->config->head_timeout_ns));
    }
    if (server->config->min_rate == 0)
        return;
    if (weir__http1_server_is_in_content(server) && server->since != WEIR__HTTP1_SINCE_CONTENT)
        begin_content_period(ctx, server, now_ns);
    if (server->output_since_ns == 0)
        begin_output_period(ctx, server, now_ns);
}

/* ---- expiry ---- */

static void reset(weir_ctx *ctx, weir__http1_server *server)
{
    server->phase = WEIR__HTTP1_DEAD;
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void check_head(weir_ctx *ctx, weir__http1_server *server, int64_t now_ns)
{
    int64_t deadline_ns = later(server->since_ns, server->config->head_timeout_ns);

    if (now_ns < deadline_ns)
        arm(ctx, server, now_ns, deadline_ns);
    else if (server->reading != NULL)
        weir__http1_server_refuse(ctx, server, 408, "head not complete in time");
    else
        weir__http1_server_close(ctx, server);
}

static void check_content(weir_ctx *ctx, weir__http1_server *server, int64_t now_ns)
{
    int64_t least = (int64_t)server->config->min_rate * PERIOD_S;
    bool is_counted = server->since == WEIR__HTTP1_SINCE_CONTENT;

    if (least == 0)
        return;
    if (is_counted && now_ns < later(server->since_ns, PERIOD_NS))
        arm(ctx, server, now_ns, later(server->since_ns, PERIOD_NS));
    else if (is_counted && weir_decoder_has_demand(ctx) && server->received < least)
        weir__http1_server_refuse(ctx, server, 408, "content slower than the limit");
    else
        begin_content_period(ctx, server, now_ns);
}

/* A client that still has not taken its response after that time gets no more of it. */
static void check_idle(weir_ctx *ctx, weir__http1_server *server, int64_t now_ns)
{
    int64_t deadline_ns;

    if (server->since != WEIR__HTTP1_SINCE_IDLE)
        begin(server, WEIR__HTTP1_SINCE_IDLE, now_ns);
    deadline_ns = later(server->since_ns, server->config->idle_timeout_ns);
    if (now_ns < deadline_ns)
        arm(ctx, server, now_ns, deadline_ns);
    else if (weir_channel_pending_bytes(weir_ctx_channel(ctx)) > 0)
        reset(ctx, server);
    else
        weir__http1_server_close(ctx, server);
}

static void check_input(weir_ctx *ctx, weir__http1_server *server, int64_t now_ns)
{
    if (weir__http1_server_is_in_content(server))
        check_content(ctx, server, now_ns);
    else if (server->phase == WEIR__HTTP1_HEAD && server->since == WEIR__HTTP1_SINCE_HEAD)
        check_head(ctx, server, now_ns);
    else if (server->phase == WEIR__HTTP1_HEAD)
        check_idle(ctx, server, now_ns);
}

static void check_output(weir_ctx *ctx, weir__http1_server *server, int64_t now_ns)
{
    int64_t least = (int64_t)server->config->min_rate * PERIOD_S;
    bool is_same = server->output_since_ns != 0 && server->output_file == server->writer.files &&
                   weir__http1_writer_is_sending(ctx, &server->writer);

    if (least == 0)
        return;
    if (is_same && now_ns < later(server->output_since_ns, PERIOD_NS))
        arm(ctx, server, now_ns, later(server->output_since_ns, PERIOD_NS));
    else if (is_same && bytes_sent(ctx) - server->output_seen < least)
        reset(ctx, server);
    else
        begin_output_period(ctx, server, now_ns);
}

static void on_timer(weir_ctx *ctx, weir_timer *timer)
{
    weir__http1_server *server = weir_ctx_state(ctx);
    int64_t now_ns = weir_ctx_now(ctx);

    (void)timer;
    server->armed_until_ns = WEIR_NEVER;
    if (server->phase != WEIR__HTTP1_DEAD)
        check_output(ctx, server, now_ns);
    if (server->phase != WEIR__HTTP1_DEAD)
        check_input(ctx, server, now_ns);
    if (server->phase != WEIR__HTTP1_DEAD && !weir_ctx_is_removed(ctx))
        arm(ctx, server, now_ns, idle_tick(server, now_ns));
}
