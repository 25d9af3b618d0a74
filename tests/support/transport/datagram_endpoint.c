/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel with a handler that takes notes.
 */
#include "support/transport/datagram_endpoint.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/transport.h>

#include "support/channel/pointer_state.h"
#include "support/channel/test_channel.h"
#include "support/executor/group.h"
#include "support/loop/sockets.h"

/* ---- the handler ---- */

/* The last that touches the endpoint: a note is in the event log before it is counted. */
static void deinit(void *state)
{
    call_counter_add(&(*(struct datagram_endpoint **)state)->gone);
}

struct datagram_endpoint *endpoint_of(weir_ctx *ctx)
{
    return *(struct datagram_endpoint **)weir_ctx_state(ctx);
}

void endpoint_note(struct datagram_endpoint *endpoint, const char *note)
{
    event_log_write(&endpoint->events, "%s", note);
    call_counter_add(&endpoint->notes);
}

static void on_active(weir_ctx *ctx)
{
    endpoint_note(endpoint_of(ctx), "active");
}

static void on_inactive(weir_ctx *ctx)
{
    endpoint_note(endpoint_of(ctx), "inactive");
}

static void on_unregistered(weir_ctx *ctx)
{
    endpoint_note(endpoint_of(ctx), "unregistered");
}

static void note_read(struct datagram_endpoint *endpoint, weir_datagram *datagram)
{
    const weir_buf *buf = weir_datagram_buf(datagram);

    endpoint->sender = *weir_datagram_sender(datagram);
    event_log_write(&endpoint->events, "read(%.*s)", (int)weir_buf_readable(buf),
                    (const char *)weir_buf_bytes(buf));
    weir_datagram_release(datagram);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct datagram_endpoint *endpoint = endpoint_of(ctx);
    void (*hook)(weir_ctx *, weir_datagram *) = endpoint->on_read; /* copied: see line.c */

    if (hook != NULL)
        hook(ctx, weir_datagram_of(msg));
    else
        note_read(endpoint, weir_datagram_of(msg));
    call_counter_add(&endpoint->notes);
}

static void on_read_complete(weir_ctx *ctx)
{
    struct datagram_endpoint *endpoint = endpoint_of(ctx);
    void (*hook)(weir_ctx *) = endpoint->on_read_complete;

    call_counter_add(&endpoint->completes);
    if (hook != NULL)
        hook(ctx);
}

static void on_writability(weir_ctx *ctx)
{
    endpoint_note(endpoint_of(ctx), weir_ctx_is_writable(ctx) ? "writable" : "unwritable");
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct datagram_endpoint *endpoint = endpoint_of(ctx);

    event_log_write(&endpoint->events, "error(%s)", weir_error_name(err));
    call_counter_add(&endpoint->notes);
    weir_fire_error(ctx, err, detail);
}

static const weir_handler handler = {
    .name = "endpoint",
    .state_size = sizeof(struct datagram_endpoint *),
    .init = pointer_keep,
    .deinit = deinit,
    .unregistered = on_unregistered,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
    .error = on_error,
};

/* ---- promises ---- */

weir_promise *endpoint_promise(struct datagram_endpoint *endpoint)
{
    weir_promise *promise;

    assert_int_equal(weir_promise_create(weir_channel_executor(endpoint->channel), &promise), 0);
    return promise;
}

int endpoint_result(weir_promise *promise)
{
    int result;

    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    result = weir_promise_result(promise);
    weir_promise_release(promise);
    return result;
}

int endpoint_do(struct datagram_endpoint *endpoint, endpoint_operation *operation)
{
    weir_promise *promise = endpoint_promise(endpoint);

    operation(endpoint->channel, promise);
    return endpoint_result(promise);
}

/* ---- life ---- */

void endpoint_adopt(struct datagram_endpoint *endpoint, struct host *host, weir_channel *channel)
{
    memset(endpoint, 0, sizeof(*endpoint));
    event_log_open(&endpoint->events);
    endpoint->channel = channel;
    assert_int_equal(
        weir_pipeline_add_last(weir_channel_pipeline(endpoint->channel), &handler, endpoint), 0);
    weir_group_register(host->group, endpoint->channel, NULL);
}

void endpoint_init(struct datagram_endpoint *endpoint, struct host *host,
                   const weir_channel_options *options)
{
    weir_channel *channel;

    assert_int_equal(weir_udp_create(options, &channel), 0);
    endpoint_adopt(endpoint, host, channel);
}

void endpoint_init_unix(struct datagram_endpoint *endpoint, struct host *host,
                        const weir_channel_options *options)
{
    weir_channel *channel;

    assert_int_equal(weir_unix_create(WEIR_KIND_DATAGRAM, options, &channel), 0);
    endpoint_adopt(endpoint, host, channel);
}

int endpoint_bind(struct datagram_endpoint *endpoint, const char *address)
{
    weir_promise *bound = endpoint_promise(endpoint);
    weir_address local;
    int err;

    assert_int_equal(weir_address_parse(address, &local), 0);
    weir_channel_bind(endpoint->channel, &local, bound);
    err = endpoint_result(bound);
    if (err == 0)
        err = weir_channel_local_address(endpoint->channel, &endpoint->address);
    return err;
}

void endpoint_open(struct datagram_endpoint *endpoint, struct host *host,
                   const weir_channel_options *options)
{
    endpoint_init(endpoint, host, options);
    assert_int_equal(endpoint_bind(endpoint, own_loopback_text()), 0);
    assert_endpoint_events(endpoint, "active");
}

void endpoint_open_unix(struct datagram_endpoint *endpoint, struct host *host,
                        const weir_channel_options *options)
{
    static _Atomic unsigned boxes;
    char name[WEIR_ADDRESS_TEXT_SIZE];

    (void)snprintf(name, sizeof(name), "unix:@weir-endpoint-%d-%u", (int)getpid(), boxes++);
    endpoint_init_unix(endpoint, host, options);
    assert_int_equal(endpoint_bind(endpoint, name), 0);
    assert_endpoint_events(endpoint, "active");
}

int endpoint_connect(struct datagram_endpoint *endpoint, const weir_address *peer)
{
    weir_promise *connected = endpoint_promise(endpoint);
    int err;

    weir_channel_connect(endpoint->channel, peer, NULL, connected);
    err = endpoint_result(connected);
    if (err == 0)
        err = weir_channel_local_address(endpoint->channel, &endpoint->address);
    return err;
}

void endpoint_close(struct datagram_endpoint *endpoint)
{
    weir_channel_abort(endpoint->channel, NULL);
    assert_true(call_counter_await(&endpoint->gone, 1));
    weir_channel_release(endpoint->channel);
    event_log_close(&endpoint->events);
}

/* ---- mail ---- */

weir_msg *make_datagram(const char *text, const weir_address *recipient)
{
    weir_datagram *datagram;

    assert_int_equal(weir_datagram_create(text_msg(text), recipient, &datagram), 0);
    return weir_datagram_msg(datagram);
}

int endpoint_write(struct datagram_endpoint *endpoint, weir_msg *msg)
{
    weir_promise *written = endpoint_promise(endpoint);

    weir_channel_write_and_flush(endpoint->channel, msg, written);
    return endpoint_result(written);
}

int endpoint_send(struct datagram_endpoint *endpoint, const char *text,
                  const weir_address *recipient)
{
    return endpoint_write(endpoint, make_datagram(text, recipient));
}
