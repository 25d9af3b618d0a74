/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: the states of a request and its response, on the loop of a shard.
 *
 *      STARTING -> CONNECTING -> SENDING -> AWAITING -> RECEIVING -> ENDED
 *                      ^            |          |            |
 *                      |-- lost ----+----------'            |      a reused connection was closed
 *                      `-- REDIRECTING <--------------------'      after its content
 *
 * Beside the phase, and each with a field of its own:
 *
 *      output     NEW, UNSENT -> EXPECTING -> WRITING -> WRITTEN EXPECTING only for 100-continue;
 *                                                                UNSENT again by `attach`
 *      streaming  KEPT; or STREAMED -> BEGUN, DROPPED            by a write, by a redirection;
 *                                                                a tunnel is STREAMED
 *      reading    READS; or ON_DEMAND <-> DEMANDED               by the application, by an event
 *      protocol   HTTP; or UPGRADES -> TUNNEL                    by status 101
 *      delivery   LATER -> WRITABLE_LATER; then AT_ONCE          when weir_http_client_send returns
 *
 * The connection is the call's from `attach` to `detach`. Every path ends in `finish`, once. An
 * event of the application may cancel the call or end the client: after each one the call looks at
 * its phase again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/loop.h>
#include <weir/memory.h>

#include "protocol/http/http_client.h"

#define CONTINUE_TIMEOUT_NS weir_seconds(1)

/* ---- references ---- */

static void leave_origin(weir_http_call *call)
{
    if (call->origin == NULL)
        return;
    call->origin->calls--;
    weir__http_origin_release(call->origin);
    call->origin = NULL;
}

weir_http_call *weir_http_call_retain(weir_http_call *call)
{
    weir__refs_retain(&call->refs);
    return call;
}

void weir_http_call_release(weir_http_call *call)
{
    if (call == NULL || !weir__refs_release(&call->refs))
        return;
    leave_origin(call); /* of a call that was not started */
    weir_msg_release(call->request != NULL ? weir_http_request_msg(call->request) : NULL);
    weir_msg_release(call->content);
    weir_msg_release(call->trailers_end != NULL ? weir_http_end_msg(call->trailers_end) : NULL);
    weir_msg_release(call->switched != NULL ? weir_http_response_msg(call->switched) : NULL);
    weir_memory_free(call->key);
    weir_memory_free(call->location);
    weir_memory_free(call->end_detail);
    weir__http_client_release_memory(call->client);
    weir_memory_free(call);
}

weir_executor *weir_http_call_executor(const weir_http_call *call)
{
    return call->shard->loop;
}

bool weir_http_call_is_sent(const weir_http_call *call)
{
    return call->output != WEIR__HTTP_CALL_NEW;
}

const weir_http_headers *weir_http_call_trailers(const weir_http_call *call)
{
    return call->trailers_end != NULL ? weir_http_end_trailers(call->trailers_end) : NULL;
}

size_t weir_http_call_format_url(const weir_http_call *call, char *buffer, size_t size)
{
    weir_span target = weir_http_request_target(call->request);
    const char *origin = call->origin != NULL ? call->origin->text
                         : call->key != NULL  ? call->key->text
                                              : "";
    const char *authority = strstr(origin, "://");
    const char *colon = authority != NULL ? strrchr(authority + 3, ':') : NULL;
    bool is_default = colon != NULL && strcmp(colon, origin[4] == 's' ? ":443" : ":80") == 0;
    int length;

    if (target.length > 0 && target.data[0] != '/' && target.data[0] != '*')
        origin = ""; /* through a proxy */
    length = snprintf(buffer, size, "%.*s%.*s",
                      is_default && origin[0] != '\0' ? (int)(colon - origin) : (int)strlen(origin),
                      origin, (int)target.length, (const char *)target.data);
    return length > 0 ? (size_t)length : 0;
}

/* ---- time ---- */

static void on_timer(weir_timer *timer);

static int64_t deadline(int64_t now_ns, int64_t timeout_ns)
{
    return timeout_ns == WEIR_OFF || timeout_ns > WEIR_NEVER - now_ns ? WEIR_NEVER
                                                                      : now_ns + timeout_ns;
}

/* A timer that fires too early is started again: so it is started seldom. */
static void start_timer(weir_http_call *call, int64_t now_ns)
{
    int64_t at_ns = call->whole_at_ns < call->phase_at_ns ? call->whole_at_ns : call->phase_at_ns;

    if (at_ns == WEIR_NEVER || (weir_timer_is_running(&call->timer) && call->timer_at_ns <= at_ns))
        return;
    call->timer_at_ns = at_ns;
    (void)weir_timer_start(call->shard->loop, &call->timer, at_ns - now_ns, on_timer);
}

void weir__http_call_limit_phase(weir_http_call *call, int64_t timeout_ns)
{
    int64_t now_ns = weir_loop_now(call->shard->loop);

    call->phase_at_ns = deadline(now_ns, timeout_ns);
    start_timer(call, now_ns);
}

/* The timer looks at it when it fires. */
void weir__http_call_note_progress(weir_http_call *call)
{
    call->phase_at_ns =
        deadline(weir_loop_now(call->shard->loop), call->client->options.progress_timeout_ns);
}

static void on_timer(weir_timer *timer)
{
    weir_http_call *call = WEIR_CONTAINER_OF(timer, weir_http_call, timer);
    int64_t now_ns = weir_loop_now(call->shard->loop);

    weir_http_call_retain(call); /* a write that fails at once ends it */
    if (call->whole_at_ns <= now_ns) {
        weir__http_call_fail(call, -ETIMEDOUT, "the call took too long");
    } else if (call->phase_at_ns > now_ns) {
        start_timer(call, now_ns);
    } else if (call->output == WEIR__HTTP_CALL_EXPECTING && call->connection != NULL) {
        weir__http_call_send_content(call);
    } else {
        weir__http_call_fail(call, -ETIMEDOUT, "no progress in time");
    }
    weir_http_call_release(call);
}

/* ---- the connection ---- */

void weir__http_call_detach(weir_http_call *call, bool is_reusable)
{
    weir__http_connection *connection = call->connection;
    weir_channel *channel = call->channel;

    if (connection == NULL)
        return;
    call->connection = NULL;
    call->channel = NULL;
    connection->call = NULL;
    atomic_store_explicit(&call->is_writable, false, memory_order_relaxed);
    weir__http_shard_count(call->shard, WEIR__HTTP_BUSY, -1);
    if (is_reusable && !connection->is_closed && !connection->is_draining &&
        weir__http_connection_settle(connection) == 0) {
        if (connection->is_auto_read_off)
            weir_ctx_set_auto_read(connection->ctx, true); /* to notice that it is closed */
        weir_client_pool_return(call->origin->pool, channel, NULL);
    } else if (!connection->is_closed) {
        connection->is_closed = true;
        if (connection->is_active)
            weir__http_shard_count(call->shard, WEIR__HTTP_CLOSED, 1);
        weir_channel_abort(channel, NULL); /* a close would keep its place in the pool */
    }
    weir_channel_release(channel);
}

/* ---- the end ---- */

void weir__http_call_deliver_end(weir_http_call *call, int err, const char *detail)
{
    weir_http_client *client = call->client;

    leave_origin(call);
    if (call->events != NULL && call->events->end != NULL)
        call->events->end(call, err, detail, call->user_data);
    weir__http_client_release_work(client);
    weir_http_call_release(call);
}

void weir__http_call_finish(weir_http_call *call, int err, const char *detail)
{
    if (call->phase == WEIR__HTTP_CALL_ENDED)
        return;
    call->phase = WEIR__HTTP_CALL_ENDED;
    (void)weir_timer_stop(&call->timer);
    if (call->acquiring != NULL)
        (void)weir_promise_cancel(call->acquiring);
    weir__http_call_detach(call, false);
    weir__http_call_drop_pending(call);
    weir__list_remove(&call->link);
    weir__http_shard_count(call->shard, WEIR__HTTP_CALLS, -1);
    weir__http_shard_count(call->shard, err < 0 ? WEIR__HTTP_FAILED : WEIR__HTTP_SUCCEEDED, 1);
    if (call->delivery == WEIR__HTTP_CALL_EVENTS_AT_ONCE) {
        weir__http_call_deliver_end(call, err, detail);
        return;
    }
    call->end_err = err;
    call->end_detail = weir__http_client_copy(weir_span_of_text(detail));
    weir__mailbox_set(&call->box, WEIR__HTTP_CALL_END);
}

static const char *phase_name(const weir_http_call *call, int err)
{
    static const char *const names[] = {
        "start", "connect", "request", "response head", "response content", "redirection", "end"};

    if (err <= WEIR_ETLS && err >= WEIR_ENOTTLS && err != WEIR_ECUTOFF &&
        call->phase < WEIR__HTTP_CALL_RECEIVING)
        return "TLS";
    return names[call->phase];
}

/* All connections of its origin are in use: for those who report it as a lack of room. */
static bool lacks_connection(const weir_http_call *call)
{
    weir_client_pool_stats stats;

    if (call->phase != WEIR__HTTP_CALL_CONNECTING || call->connection != NULL ||
        call->client->options.max_connections == WEIR_OFF)
        return false;
    weir_client_pool_read_stats(call->origin->pool, &stats);
    return stats.channels >= (uint64_t)call->client->options.max_connections;
}

void weir__http_call_fail(weir_http_call *call, int err, const char *detail)
{
    weir_span method = weir_http_request_method_text(call->request);
    char url[512];
    char text[1024];

    call->lacked_connection = err == -ETIMEDOUT && lacks_connection(call);
    (void)weir_http_call_format_url(call, url, sizeof(url));
    (void)snprintf(text, sizeof(text), "%.*s %s: %s: %s", (int)method.length,
                   (const char *)method.data, url, phase_name(call, err),
                   detail != NULL ? detail : weir_error_text(err));
    weir__http_call_finish(call, err, text);
}

/* ---- sending ---- */

bool weir__http_call_can_write(const weir_http_call *call)
{
    return call->connection != NULL && call->output >= WEIR__HTTP_CALL_WRITING;
}

void weir__http_call_end_request(weir_http_call *call)
{
    call->output = WEIR__HTTP_CALL_WRITTEN;
    if (call->phase == WEIR__HTTP_CALL_SENDING) {
        call->phase = WEIR__HTTP_CALL_AWAITING;
        weir__http_call_limit_phase(call, call->client->options.head_timeout_ns);
    }
}

static void write_whole(weir_http_call *call)
{
    weir__http_connection *connection = call->connection;
    weir_msg *content = NULL;
    int err;

    if (call->content != NULL) {
        err = weir_msg_share(call->content, &content);
        if (err < 0) {
            weir__http_call_fail(call, err, NULL);
            return;
        }
        weir_write(connection->ctx, content, NULL);
    }
    if (call->connection != connection)
        return;
    weir__http_call_end_request(call);
    weir_write(connection->ctx, weir_http_end_static(), NULL);
}

static void update_writability(weir_http_call *call)
{
    bool before = atomic_load_explicit(&call->is_writable, memory_order_relaxed);
    bool is_writable = call->connection != NULL && call->output == WEIR__HTTP_CALL_WRITING &&
                       weir_ctx_is_writable(call->connection->ctx);

    /* Relaxed: a hint for other threads. */
    atomic_store_explicit(&call->is_writable, is_writable, memory_order_relaxed);
    if (!is_writable || before || call->events == NULL || call->events->writable == NULL)
        return;
    if (call->delivery == WEIR__HTTP_CALL_EVENTS_AT_ONCE)
        call->events->writable(call, call->user_data);
    else
        call->delivery = WEIR__HTTP_CALL_WRITABLE_LATER;
}

void weir__http_call_end_send(weir_http_call *call)
{
    bool owes_writable = call->delivery == WEIR__HTTP_CALL_WRITABLE_LATER;

    call->delivery = WEIR__HTTP_CALL_EVENTS_AT_ONCE;
    if (owes_writable && call->phase != WEIR__HTTP_CALL_ENDED)
        weir__mailbox_set(&call->box, WEIR__HTTP_CALL_WRITABLE);
}

void weir__http_call_send_content(weir_http_call *call)
{
    weir__http_connection *connection = call->connection;

    call->output = WEIR__HTTP_CALL_WRITING;
    if (weir__http_call_streams(call)) {
        weir__http_call_limit_phase(call, call->client->options.progress_timeout_ns);
        weir__http_call_write_pending(call);
    } else {
        write_whole(call);
    }
    if (call->connection == connection)
        weir_flush(connection->ctx);
    if (call->connection == connection && weir__http_call_streams(call))
        update_writability(call);
}

static void send_request(weir_http_call *call)
{
    weir__http_connection *connection = call->connection;
    bool has_content = weir__http_call_streams(call) || call->content != NULL;
    bool expects =
        has_content && weir_http_headers_have_token(weir_http_request_headers(call->request),
                                                    WEIR_HTTP_EXPECT, "100-continue");

    call->phase = WEIR__HTTP_CALL_SENDING;
    call->output = expects ? WEIR__HTTP_CALL_EXPECTING : WEIR__HTTP_CALL_WRITING;
    if (connection->responses > 0)
        weir__http_shard_count(call->shard, WEIR__HTTP_REUSED, 1);
    weir_write(connection->ctx, weir_msg_retain(weir_http_request_msg(call->request)), NULL);
    if (call->connection != connection)
        return;
    if (!expects) {
        weir__http_call_send_content(call);
        return;
    }
    weir__http_call_limit_phase(call, CONTINUE_TIMEOUT_NS);
    weir_flush(connection->ctx);
}

void weir__http_call_on_active(weir_http_call *call)
{
    weir_http_call_retain(call);
    send_request(call);
    weir_http_call_release(call);
}

void weir__http_call_on_writability(weir_http_call *call)
{
    weir_http_call_retain(call);
    if (weir__http_call_streams(call)) {
        if (call->phase == WEIR__HTTP_CALL_SENDING)
            weir__http_call_limit_phase(call, call->client->options.progress_timeout_ns);
        update_writability(call);
    }
    weir_http_call_release(call);
}

/* ---- connecting ---- */

static void attach(weir_http_call *call, weir_channel *channel)
{
    weir__http_connection *connection = weir__http_connection_of(channel);

    if (connection == NULL) {
        weir_channel_abort(channel, NULL);
        if (++call->retries <= WEIR__HTTP_MAX_RETRIES)
            weir__http_call_acquire(call);
        else
            weir__http_call_fail(call, WEIR_ECLOSED, "the server closed the connection");
        return;
    }
    call->channel = weir_channel_retain(channel);
    call->connection = connection;
    if (call->output != WEIR__HTTP_CALL_NEW)
        call->output = WEIR__HTTP_CALL_UNSENT;
    connection->call = call;
    connection->is_auto_read_off = false;
    connection->has_response = false;
    weir__http_shard_count(call->shard, WEIR__HTTP_BUSY, 1);
    if (connection->is_active && !connection->is_settling)
        send_request(call);
}

static void take_connection(weir_http_call *call, weir_promise *acquiring)
{
    weir__http_origin *origin = call->acquiring_from;
    int err = weir_promise_result(acquiring);

    call->acquiring = NULL;
    if (call->phase == WEIR__HTTP_CALL_ENDED) {
        if (err == 0)
            weir_client_pool_return(origin->pool, weir_promise_value(acquiring), NULL);
    } else if (err < 0) {
        weir__http_call_fail(call, err, weir_promise_detail(acquiring));
    } else {
        attach(call, weir_promise_value(acquiring));
    }
    weir__http_origin_release(origin);
    weir_promise_release(acquiring);
}

static void on_acquired(weir_promise *promise, void *user_data)
{
    weir_http_call *call = user_data;

    take_connection(call, promise);
    weir_http_call_release(call);
}

void weir__http_call_acquire(weir_http_call *call)
{
    weir_promise *acquiring;
    int err = weir_client_pool_acquire(call->origin->pool, call->shard->loop, &acquiring);

    if (err < 0) {
        weir__http_call_fail(call, err, NULL);
        return;
    }
    call->acquiring = acquiring;
    call->acquiring_from = weir__http_origin_retain(call->origin);
    if (weir_promise_is_done(acquiring)) {
        take_connection(call, acquiring);
        return;
    }
    call->acquired = (weir_listener){.fn = on_acquired, .user_data = weir_http_call_retain(call)};
    weir_promise_listen(acquiring, &call->acquired);
}

/* With its origin. */
static void begin(weir_http_call *call)
{
    int err = weir__http_call_complete_request(call);

    if (err < 0) {
        weir__http_call_fail(call, err, NULL);
        return;
    }
    call->phase = WEIR__HTTP_CALL_CONNECTING;
    weir__http_call_limit_phase(call, call->client->options.connect_timeout_ns);
    weir__http_call_acquire(call);
}

void weir__http_call_connect(weir_http_call *call, const weir__http_origin_key *key)
{
    weir__http_origin *origin;
    int err = weir__http_origin_get(call->shard, key, &origin);

    if (err < 0) {
        weir__http_call_fail(call, err, NULL);
        return;
    }
    leave_origin(call);
    weir__http_call_enter_origin(call, origin);
    begin(call);
}

void weir__http_call_enter_origin(weir_http_call *call, weir__http_origin *origin)
{
    call->origin = origin;
    origin->calls++;
}

void weir__http_call_refuse(weir_http_call *call, int err)
{
    call->phase = WEIR__HTTP_CALL_ENDED;
    weir__http_call_drop_pending(call);
    if (call->events != NULL && call->events->end != NULL)
        call->events->end(call, err, weir_error_text(err), call->user_data);
    weir_http_call_release(call);
}

void weir__http_call_start(weir_http_call *call)
{
    weir__http_shard *shard = call->shard;
    int64_t now_ns = weir_loop_now(shard->loop);

    weir_http_call_retain(call);
    weir__http_client_retain_work(call->client);
    weir__list_append(&shard->calls, &call->link);
    weir__http_shard_count(shard, WEIR__HTTP_CALLS, 1);
    call->whole_at_ns = deadline(now_ns, call->timeout_ns);
    if (call->origin != NULL)
        begin(call);
    else
        weir__http_call_connect(call, call->key);
    weir_http_call_release(call);
}
