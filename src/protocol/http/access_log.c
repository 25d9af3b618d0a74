/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log. The handler keeps the head of the request until its response has ended, counts
 * the content that is written, and queues a line for the thread of the file.
 */
#include <weir/http_filters.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/executor.h>
#include <weir/file_range.h>
#include <weir/file_writer.h>
#include <weir/memory.h>

#include "base/log.h"
#include "base/options.h"
#include "base/refcount.h"
#include "os/clock.h"
#include "protocol/http/access_line.h"
#include "protocol/http/client_address.h"
#include "protocol/http/filters.h"

#define MAX_QUEUED_DEFAULT ((size_t)1024 * 1024)
#define LINE_CAPACITY 512
#define STATUS_LOST 499 /* the client has gone before there was a response; as nginx logs it */

struct weir_http_access_log {
    weir__refs refs;
    enum weir_http_log_format format;
    weir_file_writer *writer;
    _Atomic uint64_t lost; /* relaxed: a statistic */
};

/* ---- logs ---- */

int weir_http_access_log_create(const weir_http_access_log_options *options,
                                weir_http_access_log **ret_log)
{
    weir_http_access_log_options own;
    weir_http_access_log *log;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    if (own.path == NULL)
        return weir__options_reject("http", "access_log", ".path is required");
    if (own.format < WEIR_HTTP_LOG_COMMON || own.format > WEIR_HTTP_LOG_JSON)
        return weir__options_reject("http", "access_log", ".format is %d", (int)own.format);
    log = weir_memory_alloc(sizeof(*log));
    if (log == NULL)
        return -ENOMEM;
    memset(log, 0, sizeof(*log));
    weir__refs_init(&log->refs);
    log->format = own.format;
    err = weir_file_writer_open(own.path, own.max_queued > 0 ? own.max_queued : MAX_QUEUED_DEFAULT,
                                "access-log", &log->writer);
    if (err < 0) {
        weir_memory_free(log);
        return err;
    }
    *ret_log = log;
    return 0;
}

weir_http_access_log *weir_http_access_log_retain(weir_http_access_log *log)
{
    weir__refs_retain(&log->refs);
    return log;
}

void weir_http_access_log_release(weir_http_access_log *log)
{
    if (log == NULL || !weir__refs_release(&log->refs))
        return;
    weir_file_writer_close(log->writer, weir_executor_current() == NULL);
    weir_memory_free(log);
}

void weir_http_access_log_reopen(weir_http_access_log *log)
{
    weir_file_writer_reopen(log->writer);
}

uint64_t weir_http_access_log_lost(const weir_http_access_log *log)
{
    return atomic_load_explicit(&log->lost, memory_order_relaxed);
}

/* Logged at 1, 2, 4, 8 ... lines, so that a full disk does not fill another log. */
static void count_lost(weir_http_access_log *log)
{
    uint64_t lost = atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed) + 1;

    if ((lost & (lost - 1)) == 0)
        weir__warn("http", "access_log",
                   "the file is too slow, or memory is short: %llu lines lost",
                   (unsigned long long)lost);
}

static void write_line(weir_http_access_log *log, const weir__http_access *access)
{
    weir_buf *line = NULL;
    uint8_t *place = NULL;
    int err = weir_buf_create(LINE_CAPACITY, 0, &line);

    if (err == 0)
        err = weir__http_access_line(line, log->format, access);
    if (err == 0)
        place = weir_file_writer_begin(log->writer, weir_buf_readable(line));
    if (place != NULL) {
        memcpy(place, weir_buf_bytes(line), weir_buf_readable(line));
        weir_file_writer_end(log->writer);
        weir_file_writer_push_soon(log->writer);
    } else {
        count_lost(log);
    }
    weir_buf_release(line);
}

/* ---- the handler ---- */

struct state {
    weir_http_access_log *log;
    weir_address remote;        /* a lost connection has none any more; length 0 = unknown yet */
    weir_http_request *request; /* retained; NULL = no exchange */
    int64_t begin_ns;           /* of the loop's clock */
    int64_t time_ns;            /* since 1970 */
    uint64_t bytes;
    int status; /* 0 = no response yet */
};

static int init(void *state, const void *options)
{
    ((struct state *)state)->log =
        weir_http_access_log_retain(*(weir_http_access_log *const *)options);
    return 0;
}

static void forget_request(struct state *state)
{
    if (state->request != NULL)
        weir_msg_release(weir_http_request_msg(state->request));
    state->request = NULL;
}

static void deinit(void *memory)
{
    struct state *state = memory;

    forget_request(state);
    weir_http_access_log_release(state->log);
}

/* The client of the current request. A proxy sends those of many. */
static void find_remote(weir_ctx *ctx, struct state *state)
{
    weir_channel *channel = weir_ctx_channel(ctx);

    if (state->remote.length > 0 && !weir__http_is_from_proxy(channel))
        return;
    if (weir__http_client_address(channel, state->request, &state->remote) < 0)
        state->remote.length = 0;
}

/* Logs the exchange, if there is one, and forgets it. `access` has what is not in the state. */
static void end_exchange(weir_ctx *ctx, struct state *state, weir__http_access access)
{
    if (state->request == NULL)
        find_remote(ctx, state);
    access.remote = &state->remote;
    access.request = state->request;
    access.time_ns = state->request != NULL ? state->time_ns : weir_time_of_day();
    if (access.status == 0)
        access.status = state->status;
    if (state->request != NULL) {
        access.duration_ns = weir_ctx_now(ctx) - state->begin_ns;
        access.bytes = state->bytes;
    }
    write_line(state->log, &access);
    forget_request(state);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct state *state = weir_ctx_state(ctx);
    weir_http_request *request = weir_http_request_of(msg);

    if (request != NULL) {
        forget_request(state);
        (void)weir_msg_retain(msg);
        state->request = request;
        find_remote(ctx, state);
        state->begin_ns = weir_ctx_now(ctx);
        state->time_ns = weir_time_of_day();
        state->bytes = 0;
        state->status = 0;
    }
    weir_fire_read(ctx, msg);
}

/* A refused request has the codec's answer, which does not pass here. */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_http_refusal *refusal = weir_http_refusal_of(event);

    if (refusal != NULL)
        end_exchange(ctx, weir_ctx_state(ctx),
                     (weir__http_access){.status = weir_http_refusal_status(refusal),
                                         .detail = weir_http_refusal_detail(refusal)});
    weir_fire_event(ctx, event);
}

static uint64_t content_size(weir_msg *msg)
{
    weir_file_range *range = weir_file_range_of(msg);

    if (range != NULL)
        return (uint64_t)weir_file_range_remaining(range);
    if (weir_buf_of(msg) != NULL || weir_composite_of(msg) != NULL)
        return weir_msg_size(msg);
    return 0;
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct state *state = weir_ctx_state(ctx);
    weir_http_response *response = weir_http_response_of(msg);

    if (state->request == NULL) {
        weir_write(ctx, msg, done);
        return;
    }
    if (response != NULL) {
        if (!weir__http_is_interim(response))
            state->status = weir_http_response_status(response);
    } else if (weir_http_end_of(msg) == NULL) {
        if (weir_http_request_method(state->request) != WEIR_HTTP_METHOD_HEAD)
            state->bytes += content_size(msg);
    } else {
        end_exchange(ctx, state, (weir__http_access){.is_aborted = false});
    }
    weir_write(ctx, msg, done);
}

static void on_inactive(weir_ctx *ctx)
{
    struct state *state = weir_ctx_state(ctx);

    if (state->request != NULL)
        end_exchange(ctx, state,
                     (weir__http_access){.status = state->status == 0 ? STATUS_LOST : 0,
                                         .is_aborted = true});
    weir_fire_inactive(ctx);
}

const weir_handler weir__http_access_log_handler = {
    .name = "http-access-log",
    .state_size = sizeof(struct state),
    .init = init,
    .deinit = deinit,
    .inactive = on_inactive,
    .read = on_read,
    .event = on_event,
    .write = on_write,
};

int weir_http_access_log_add(weir_pipeline *pipeline, weir_http_access_log *log)
{
    return weir_pipeline_add_last(pipeline, &weir__http_access_log_handler, &log);
}
