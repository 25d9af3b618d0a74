/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/proxy_protocol.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/codec.h>
#include <weir/error.h>
#include <weir/pipeline.h>

#include "base/options.h"
#include "codec/proxy_header.h"

#define DEFAULT_MAX_SIZE 4096
#define DETAIL_SIZE 96
#define SEND_FAILED "cannot send the PROXY header"

/* ---- received headers ---- */

static void release_header(void *header)
{
    weir_proxy_header_release(header);
}

static const weir_attribute received = {.name = "proxy-header", .free = release_header};

const weir_proxy_header *weir_proxy_received_header(weir_channel *channel)
{
    return weir_attribute_get(channel, &received);
}

int weir_proxy_source(weir_channel *channel, weir_address *ret_address)
{
    const weir_proxy_header *header = weir_proxy_received_header(channel);

    if (header == NULL || header->source.length == 0)
        return weir_channel_remote_address(channel, ret_address);
    *ret_address = header->source;
    return 0;
}

int weir_proxy_destination(weir_channel *channel, weir_address *ret_address)
{
    const weir_proxy_header *header = weir_proxy_received_header(channel);

    if (header == NULL || header->destination.length == 0)
        return weir_channel_local_address(channel, ret_address);
    *ret_address = header->destination;
    return 0;
}

/* ---- the receiver ---- */

struct receiver {
    weir_decoder_state decoder; /* first */
    size_t max;
    char too_long[DETAIL_SIZE]; /* names the limit */
};

static int init_receiver(void *state, const void *options)
{
    struct receiver *receiver = state;

    receiver->max = ((const weir_proxy_receiver_options *)options)->max_size;
    (void)snprintf(receiver->too_long, sizeof(receiver->too_long),
                   "PROXY header over the limit of %zu bytes", receiver->max);
    return 0;
}

/* Stores the header in the channel and fires it. */
static int deliver(weir_ctx *ctx, weir_proxy_header *header)
{
    int err = weir_attribute_set(weir_ctx_channel(ctx), &received, header);

    if (err < 0) {
        weir_proxy_header_release(header);
        return err;
    }
    weir_fire_event(ctx, weir_proxy_header_msg(weir_proxy_header_retain(header)));
    return weir_decoder_finish(ctx);
}

/* The header is not a message, so it needs no request. */
static bool is_urgent(weir_ctx *ctx)
{
    (void)ctx;
    return true;
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct receiver *receiver = weir_ctx_state(ctx);
    weir_proxy_header *header = NULL;
    const char *detail = NULL;
    size_t need = 0;
    ssize_t taken = weir__proxy_read(weir_buf_bytes(in), weir_buf_readable(in), receiver->max,
                                     &header, &need, &detail);

    (void)ret_msg;
    if (taken < 0)
        return weir_decoder_fail(ctx, (int)taken,
                                 taken == WEIR_ETOOLONG ? receiver->too_long : detail);
    if (taken == 0)
        return weir_decoder_need(ctx, need);
    (void)weir_buf_skip(in, (size_t)taken);
    return deliver(ctx, header);
}

/* A connection that is closed without any data, as by a health check, is not an error. */
static int decode_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    (void)ret_msg;
    if (weir_buf_readable(in) == 0)
        return 0;
    return weir_decoder_fail(ctx, WEIR_EMALFORMED, "connection closed within the PROXY header");
}

static const weir_decoder receiver_decoder = {
    .handler = {.name = "proxy-receiver",
                WEIR_DECODER_SLOTS(struct receiver),
                .init = init_receiver},
    .decode = decode,
    .decode_last = decode_last,
    .is_urgent = is_urgent,
};

int weir_proxy_receiver_add(weir_pipeline *pipeline, const weir_proxy_receiver_options *options)
{
    weir_proxy_receiver_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    if (own.max_size == 0)
        own.max_size = DEFAULT_MAX_SIZE;
    return weir_pipeline_add_last(pipeline, &receiver_decoder.handler, &own);
}

/*
 * ---- the sender ----
 *
 * The header is written before the first write, or at `active`. The listeners of a connect run
 * before `active`, and a write may even precede the connect. A flush before the channel is active
 * fails all earlier writes including the header, which is then written again.
 */

struct sender {
    weir_proxy_header *header;
    weir_promise *written; /* of the header; NULL = not written yet */
    bool is_aborted;       /* the header failed, and the channel was aborted */
    bool active_withheld;  /* later handlers have not seen `active` */
};

static int init_sender(void *state, const void *options)
{
    weir_proxy_header *header =
        (weir_proxy_header *)(uintptr_t)options; /* borrowed from weir_proxy_sender_add */

    ((struct sender *)state)->header = weir_proxy_header_retain(header);
    return 0;
}

static void deinit_sender(void *state)
{
    struct sender *sender = state;

    weir_promise_release(sender->written);
    weir_proxy_header_release(sender->header);
}

static int make_bytes(const weir_proxy_header *header, weir_buf **ret_buf)
{
    int err = weir_buf_create(WEIR__PROXY_V2_FIXED + header->tlv_length, 0, ret_buf);

    if (err == 0) {
        err = weir_proxy_header_write(header, *ret_buf);
        if (err < 0)
            weir_buf_release(*ret_buf);
    }
    return err;
}

/* 0 while the write is pending, and after it succeeded. */
static int write_result(const weir_promise *written)
{
    return weir_promise_is_done(written) ? weir_promise_result(written) : 0;
}

static int write_header(weir_ctx *ctx)
{
    struct sender *sender = weir_ctx_state(ctx);
    weir_promise *written;
    weir_buf *buf;
    int err;

    if (sender->written != NULL && write_result(sender->written) == 0)
        return 0;
    err = weir_promise_create(weir_ctx_executor(ctx), &written);
    if (err < 0)
        return err;
    weir_promise_release(sender->written);
    sender->written = written; /* before the write, which may run other writes */
    err = make_bytes(sender->header, &buf);
    if (err < 0) {
        (void)weir_promise_fail(written, err, NULL);
        return err;
    }
    weir_write(ctx, weir_buf_msg(buf), written);
    return write_result(written);
}

/* Nothing may be sent without the header. A closed channel sends nothing anyway. */
static int send_header(weir_ctx *ctx)
{
    struct sender *sender = weir_ctx_state(ctx);
    int err = sender->is_aborted ? 0 : write_header(ctx);

    if (err == 0 || err == WEIR_ECLOSED)
        return 0;
    sender->is_aborted = true;
    weir_fire_error(ctx, err, SEND_FAILED);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
    return err;
}

static void on_active(weir_ctx *ctx)
{
    struct sender *sender = weir_ctx_state(ctx);

    (void)send_header(ctx);
    sender->active_withheld = sender->is_aborted;
    if (sender->active_withheld)
        return;
    weir_flush(ctx);
    weir_fire_active(ctx);
    if (!weir_ctx_is_removed(ctx))
        weir_ctx_remove(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    if (!((struct sender *)weir_ctx_state(ctx))->active_withheld)
        weir_fire_inactive(ctx);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    int err = send_header(ctx);

    if (err == 0) {
        weir_write(ctx, msg, done);
        return;
    }
    weir_msg_release(msg);
    if (done != NULL)
        weir_ctx_report(ctx, done, err, SEND_FAILED);
}

/* The header cannot follow a half closure. */
static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    if (weir_channel_is_active(weir_ctx_channel(ctx)))
        (void)send_header(ctx);
    weir_shutdown_output(ctx, done);
}

static void on_added(weir_ctx *ctx)
{
    if (!weir_channel_is_active(weir_ctx_channel(ctx)) || send_header(ctx) < 0)
        return;
    weir_flush(ctx);
    weir_ctx_remove(ctx);
}

static const weir_handler sender_handler = {
    .name = "proxy-sender",
    .state_size = sizeof(struct sender),
    .init = init_sender,
    .deinit = deinit_sender,
    .added = on_added,
    .active = on_active,
    .inactive = on_inactive,
    .write = on_write,
    .shutdown_output = on_shutdown_output,
};

int weir_proxy_sender_add(weir_pipeline *pipeline, weir_proxy_header *header)
{
    return weir_pipeline_add_last(pipeline, &sender_handler, header);
}
