/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response of a call: its head, content and end, redirections, and the loss of its connection.
 */
#include <errno.h>

#include <weir/error.h>

#include "protocol/http/http_client.h"

#define MAX_DISCARDED 65536 /* content of a redirection, to keep the connection */

/* ---- redirections ---- */

/* The connection is free, or given up. */
static void redirect(weir_http_call *call)
{
    weir__http_origin_key key;
    int err = weir__http_redirect_apply(call, &key);

    if (err < 0) {
        weir__http_call_fail(call, err, NULL);
        return;
    }
    weir__http_shard_count(call->shard, WEIR__HTTP_REDIRECTED, 1);
    weir__http_call_connect(call, &key);
}

/* ---- receiving ---- */

static void on_informational(weir_http_call *call, weir_http_response *response)
{
    if (call->events != NULL && call->events->informational != NULL)
        call->events->informational(call, response, call->user_data);
    if (call->connection == NULL)
        return;
    if (call->output == WEIR__HTTP_CALL_EXPECTING && weir_http_response_status(response) == 100)
        weir__http_call_send_content(call);
    else if (call->phase == WEIR__HTTP_CALL_AWAITING)
        weir__http_call_limit_phase(call, call->client->options.head_timeout_ns);
}

/* Before an event, on which the application may demand the next piece. */
static void end_demand(weir_http_call *call)
{
    if (call->reading == WEIR__HTTP_CALL_DEMANDED)
        call->reading = WEIR__HTTP_CALL_READS_ON_DEMAND;
}

/* After an event: an application that has requested the next piece at once costs nothing. */
static void stop_reading(weir_http_call *call)
{
    if (call->reading != WEIR__HTTP_CALL_READS_ON_DEMAND ||
        call->phase != WEIR__HTTP_CALL_RECEIVING)
        return;
    call->phase_at_ns = WEIR_NEVER;
    if (!call->connection->is_auto_read_off)
        weir_ctx_set_auto_read(call->connection->ctx, false);
    call->connection->is_auto_read_off = true;
}

void weir__http_call_read_more(weir_http_call *call)
{
    if (call->phase != WEIR__HTTP_CALL_RECEIVING || call->reading == WEIR__HTTP_CALL_READS)
        return;
    call->reading = WEIR__HTTP_CALL_DEMANDED;
    if (call->protocol != WEIR__HTTP_CALL_TUNNEL)
        weir__http_call_limit_phase(call, call->client->options.progress_timeout_ns);
    if (call->connection->is_auto_read_off)
        weir_request_read(call->connection->ctx);
}

static void on_final(weir_http_call *call, weir_http_response *response)
{
    int redirects;

    weir__http_cookies_receive(call, response);
    redirects = weir__http_redirect_check(call, response);
    if (call->connection != NULL && weir_http_response_closes(response))
        call->connection->is_draining = true;
    if (call->output == WEIR__HTTP_CALL_EXPECTING)
        call->output = WEIR__HTTP_CALL_WRITING;
    if (redirects < 0)
        return; /* it has failed */
    if (redirects > 0) {
        call->phase = WEIR__HTTP_CALL_REDIRECTING;
        weir__http_call_limit_phase(call, call->client->options.progress_timeout_ns);
        return;
    }
    call->phase = WEIR__HTTP_CALL_RECEIVING;
    end_demand(call);
    if (call->reading == WEIR__HTTP_CALL_READS)
        weir__http_call_limit_phase(call, call->client->options.progress_timeout_ns);
    if (call->events != NULL && call->events->head != NULL)
        call->events->head(call, response, call->user_data);
    stop_reading(call);
}

/* ---- upgrades ---- */

/* The codec lets everything pass. */
static void switch_over(weir_http_call *call)
{
    weir_http_response *response = call->switched;

    call->switched = NULL;
    call->phase = WEIR__HTTP_CALL_RECEIVING;
    call->phase_at_ns = WEIR_NEVER;
    call->protocol = WEIR__HTTP_CALL_TUNNEL;
    call->streaming = WEIR__HTTP_CALL_STREAMED;
    call->output = WEIR__HTTP_CALL_WRITING;
    end_demand(call);
    if (call->events != NULL && call->events->head != NULL)
        call->events->head(call, response, call->user_data);
    weir_msg_release(weir_http_response_msg(response));
    stop_reading(call);
    weir__http_call_on_writability(call);
}

void weir__http_call_close_tunnel(weir_http_call *call)
{
    if (call->protocol == WEIR__HTTP_CALL_TUNNEL && call->connection != NULL)
        weir_close(call->connection->ctx, NULL);
}

void weir__http_call_on_head(weir_http_call *call, weir_http_response *response)
{
    int status = weir_http_response_status(response);

    weir_http_call_retain(call);
    call->connection->has_response = true;
    if (call->output <= WEIR__HTTP_CALL_UNSENT || call->phase >= WEIR__HTTP_CALL_RECEIVING)
        weir__http_call_fail(call, WEIR_EMALFORMED, "a response that was not asked for");
    else if (status == 101 && call->protocol == WEIR__HTTP_CALL_UPGRADES)
        call->switched = weir_http_response_of(weir_msg_retain(weir_http_response_msg(response)));
    else if (status == 101)
        weir__http_call_fail(call, -ENOTSUP, "the server switches to another protocol");
    else if (status < 200)
        on_informational(call, response);
    else
        on_final(call, response);
    weir_http_call_release(call);
}

static void discard(weir_http_call *call, weir_msg *msg)
{
    call->discarded += weir_msg_size(msg);
    weir_msg_release(msg);
    if (call->discarded <= MAX_DISCARDED)
        return;
    weir__http_call_detach(call, false);
    redirect(call);
}

static void pass_content(weir_http_call *call, weir_msg *msg)
{
    end_demand(call);
    if (call->reading == WEIR__HTTP_CALL_READS && call->protocol != WEIR__HTTP_CALL_TUNNEL)
        weir__http_call_note_progress(call);
    if (call->events != NULL && call->events->content != NULL)
        call->events->content(call, msg, call->user_data);
    else
        weir_msg_release(msg);
    stop_reading(call);
}

void weir__http_call_on_content(weir_http_call *call, weir_msg *msg)
{
    weir_http_call_retain(call);
    call->received += weir_msg_size(msg);
    if (call->phase == WEIR__HTTP_CALL_REDIRECTING) {
        discard(call, msg);
    } else if (call->phase == WEIR__HTTP_CALL_RECEIVING && call->received <= call->max_content) {
        pass_content(call, msg);
    } else {
        weir_msg_release(msg);
        weir__http_call_fail(call, WEIR_ETOOLONG, "the content is longer than the limit");
    }
    weir_http_call_release(call);
}

void weir__http_call_on_end(weir_http_call *call, weir_http_end *end)
{
    bool is_redirection = call->phase == WEIR__HTTP_CALL_REDIRECTING;

    if (call->phase < WEIR__HTTP_CALL_RECEIVING && call->switched == NULL)
        return; /* of a response of status 1xx */
    weir_http_call_retain(call);
    if (call->switched != NULL) {
        switch_over(call);
        weir_http_call_release(call);
        return;
    }
    call->connection->responses++;
    if (!is_redirection && weir_http_end_trailers(end) != NULL) {
        weir_msg_retain(weir_http_end_msg(end));
        call->trailers_end = end;
    }
    weir__http_call_detach(call, call->output == WEIR__HTTP_CALL_WRITTEN);
    if (is_redirection)
        redirect(call);
    else
        weir__http_call_finish(call, 0, "");
    weir_http_call_release(call);
}

/* ---- loss ---- */

static bool is_closed_by_peer(int err)
{
    return err == WEIR_ECLOSED || err == -ECONNRESET || err == -EPIPE;
}

/* The server may have closed the connection while it was idle, and has not seen the request. Or it
 * has sent bytes behind the response to another call, before this one has written anything: each
 * such loss ends a connection that has served a call, so these need no limit. */
static bool can_retry(const weir_http_call *call, int err)
{
    if (call->connection->responses == 0 || call->connection->has_response)
        return false;
    if (call->output <= WEIR__HTTP_CALL_UNSENT)
        return true;
    return is_closed_by_peer(err) && call->retries < WEIR__HTTP_MAX_RETRIES &&
           call->is_idempotent && call->streaming != WEIR__HTTP_CALL_BEGUN;
}

void weir__http_call_on_lost(weir_http_call *call, int err, const char *detail)
{
    bool retries = can_retry(call, err);

    weir_http_call_retain(call);
    if (retries) {
        call->retries += call->output > WEIR__HTTP_CALL_UNSENT;
        weir__http_call_detach(call, false);
        call->phase = WEIR__HTTP_CALL_CONNECTING;
        weir__http_shard_count(call->shard, WEIR__HTTP_RETRIED, 1);
        weir__http_call_limit_phase(call, call->client->options.connect_timeout_ns);
        weir__http_call_acquire(call);
    } else if (call->protocol == WEIR__HTTP_CALL_TUNNEL && err == WEIR_ECLOSED) {
        weir__http_call_finish(call, 0, "");
    } else {
        weir__http_call_fail(call, err, detail);
    }
    weir_http_call_release(call);
}
