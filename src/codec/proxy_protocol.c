/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/proxy_protocol.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/attribute.h>
#include <weir/decoder.h>
#include <weir/pipeline.h>

#include "base/options.h"
#include "codec/proxy_header.h"

#define MAX_DEFAULT 4096
#define WHY_SIZE 96

/* ---- what has come ---- */

static void release_header(void *header)
{
    weir_proxy_header_release(header);
}

static const weir_attribute received = {.name = "proxy-header", .free = release_header};

const weir_proxy_header *weir_proxy_header_of_channel(weir_channel *channel)
{
    return weir_attribute_get(channel, &received);
}

int weir_proxy_source(weir_channel *channel, weir_address *ret_address)
{
    const weir_proxy_header *header = weir_proxy_header_of_channel(channel);

    if (header == NULL || header->source.length == 0)
        return weir_channel_remote_address(channel, ret_address);
    *ret_address = header->source;
    return 0;
}

int weir_proxy_destination(weir_channel *channel, weir_address *ret_address)
{
    const weir_proxy_header *header = weir_proxy_header_of_channel(channel);

    if (header == NULL || header->destination.length == 0)
        return weir_channel_local_address(channel, ret_address);
    *ret_address = header->destination;
    return 0;
}

/* ---- the receiver ---- */

struct receiver {
    weir_decoder_state decoder; /* first */
    size_t max;
    char too_long[WHY_SIZE]; /* names the limit */
};

static int init_receiver(void *state, const void *options)
{
    struct receiver *receiver = state;

    receiver->max = ((const weir_proxy_receiver_options *)options)->max_size;
    (void)snprintf(receiver->too_long, sizeof(receiver->too_long),
                   "a PROXY header is longer than the limit of %zu bytes", receiver->max);
    return 0;
}

/* The channel keeps the header, and so does the event. */
static int deliver(weir_ctx *ctx, weir_proxy_header *header)
{
    int err = weir_attribute_set(weir_ctx_channel(ctx), &received, header);

    if (err < 0) {
        weir_proxy_header_release(header);
        return err;
    }
    weir_fire_event(ctx, weir_proxy_header_msg(weir_proxy_header_retain(header)));
    if (!weir_ctx_is_removed(ctx))
        weir_ctx_remove(ctx);
    return 0;
}

/* Where reads are on demand, who has asked for one has got nothing of it yet. */
static void ask_for_more(weir_ctx *ctx)
{
    if (!weir_channel_auto_read(weir_ctx_channel(ctx)))
        weir_request_read(ctx);
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct receiver *receiver = weir_ctx_state(ctx);
    weir_proxy_header *header = NULL;
    const char *why = NULL;
    size_t need = 0;
    ssize_t taken = weir__proxy_read(weir_buf_bytes(in), weir_buf_readable(in), receiver->max,
                                     &header, &need, &why);

    (void)ret_msg;
    if (taken < 0)
        return weir_decoder_fail(ctx, (int)taken,
                                 taken == WEIR_ETOOLONG ? receiver->too_long : why);
    if (taken == 0)
        return weir_decoder_need(ctx, need);
    (void)weir_buf_skip(in, (size_t)taken);
    if (weir_buf_readable(in) == 0)
        ask_for_more(ctx);
    return deliver(ctx, header);
}

/* Who comes and goes without a word, as a health check does, has made no error. */
static int decode_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    (void)ret_msg;
    if (weir_buf_readable(in) == 0)
        return 0;
    return weir_decoder_fail(ctx, WEIR_EMALFORMED, "the connection ended within a PROXY header");
}

static const weir_decoder receiver_decoder = {
    .handler = {.name = "proxy-receiver",
                WEIR_DECODER_SLOTS(struct receiver),
                .init = init_receiver},
    .decode = decode,
    .decode_last = decode_last,
};

void weir_proxy_receiver_options_init(weir_proxy_receiver_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

int weir_proxy_receiver_add(weir_pipeline *pipeline, const weir_proxy_receiver_options *options)
{
    weir_proxy_receiver_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    if (own.max_size == 0)
        own.max_size = MAX_DEFAULT;
    return weir_pipeline_add_last(pipeline, &receiver_decoder.handler, &own);
}

/* ---- the sender ---- */

struct sender {
    weir_proxy_header *header;
    bool is_shut; /* those behind have not heard that the channel is active */
};

static int init_sender(void *state, const void *options)
{
    weir_proxy_header *header = (weir_proxy_header *)(uintptr_t)options; /* add only lends it */

    ((struct sender *)state)->header = weir_proxy_header_retain(header);
    return 0;
}

static void deinit_sender(void *state)
{
    weir_proxy_header_release(((struct sender *)state)->header);
}

/* Without it what follows would be taken for something else. */
static void give_up(weir_ctx *ctx, int err)
{
    weir_fire_error(ctx, err, "the PROXY header could not be sent");
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static int send_header(weir_ctx *ctx)
{
    struct sender *sender = weir_ctx_state(ctx);
    weir_buf *buf;
    int err = weir_buf_create(WEIR__PROXY_V2_FIXED + sender->header->field_length, 0, &buf);

    if (err == 0) {
        err = weir_proxy_header_write(sender->header, buf);
        if (err == 0)
            weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
        else
            weir_buf_release(buf);
    }
    if (err < 0)
        give_up(ctx, err);
    return err;
}

static void on_active(weir_ctx *ctx)
{
    struct sender *sender = weir_ctx_state(ctx);

    sender->is_shut = send_header(ctx) < 0;
    if (sender->is_shut)
        return;
    weir_fire_active(ctx);
    if (!weir_ctx_is_removed(ctx))
        weir_ctx_remove(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    if (!((struct sender *)weir_ctx_state(ctx))->is_shut)
        weir_fire_inactive(ctx);
}

static void on_added(weir_ctx *ctx)
{
    if (weir_channel_is_active(weir_ctx_channel(ctx)) && send_header(ctx) == 0)
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
};

int weir_proxy_sender_add(weir_pipeline *pipeline, weir_proxy_header *header)
{
    return weir_pipeline_add_last(pipeline, &sender_handler, header);
}
