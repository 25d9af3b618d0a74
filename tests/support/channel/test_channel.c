/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake transport, and a channel on it.
 */
#include "support/channel/test_channel.h"

#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

static struct wire *wire_of(const weir_channel *channel)
{
    return (struct wire *)(uintptr_t)channel;
}

static void note(struct wire *wire, const char *word)
{
    if (!wire->options.silent)
        event_log_write(wire->events, "%s", word);
}

/* ---- the transport ---- */

static bool wire_suits(const weir_channel *channel, const weir_executor *executor)
{
    (void)channel;
    return strcmp(weir_executor_name(executor), "unsuitable") != 0;
}

static int wire_attach(weir_channel *channel)
{
    struct wire *wire = wire_of(channel);

    note(wire, "ATTACH");
    wire->is_attached = wire->options.attach_err == 0;
    return wire->options.attach_err;
}

static bool detach_now(struct wire *wire)
{
    bool now = !wire->options.slow_close || !wire->is_attached;

    if (now)
        wire->is_attached = false;
    wire->reads = false;
    return now;
}

static bool wire_detach(weir_channel *channel)
{
    note(wire_of(channel), "DETACH");
    return detach_now(wire_of(channel));
}

static bool wire_close(weir_channel *channel)
{
    note(wire_of(channel), "CLOSE");
    wire_of(channel)->is_active = false;
    return detach_now(wire_of(channel));
}

static void wire_reset(weir_channel *channel)
{
    note(wire_of(channel), "RESET");
}

static int64_t wire_unacknowledged(const weir_channel *channel)
{
    return wire_of(channel)->unacknowledged;
}

static bool wire_is_active(const weir_channel *channel)
{
    return wire_of(channel)->is_active;
}

static int wire_bind(weir_channel *channel, const weir_address *local)
{
    struct wire *wire = wire_of(channel);

    (void)local;
    note(wire, "BIND");
    wire->is_active = wire->options.bind_err == 0 && wire->options.accepts;
    return wire->options.bind_err;
}

static int wire_connect(weir_channel *channel, const weir_address *remote,
                        const weir_address *local)
{
    (void)remote;
    (void)local;
    note(wire_of(channel), "CONNECT");
    return wire_of(channel)->options.connect_err;
}

static int wire_disconnect(weir_channel *channel)
{
    note(wire_of(channel), "DISCONNECT");
    wire_of(channel)->is_active = false;
    return 0;
}

static int wire_shut_output(weir_channel *channel)
{
    note(wire_of(channel), "FIN");
    return wire_of(channel)->options.shut_err;
}

static int wire_shut_input(weir_channel *channel)
{
    note(wire_of(channel), "SHUT_INPUT");
    return wire_of(channel)->options.shut_err;
}

static void wire_read_start(weir_channel *channel, bool once)
{
    note(wire_of(channel), once ? "READ_ONCE" : "READ");
    wire_of(channel)->reads = true;
    wire_of(channel)->reads_once = once;
}

static void wire_read_stop(weir_channel *channel)
{
    note(wire_of(channel), "STOP");
    wire_of(channel)->reads = false;
}

static int wire_admit(weir_channel *channel, const weir_msg *msg)
{
    (void)msg;
    return wire_of(channel)->options.admit_err;
}

static size_t send_some(struct wire *wire, const struct iovec *vectors, size_t count)
{
    size_t total = 0, length;

    for (size_t i = 0; i < count; i++) {
        length = vectors[i].iov_len;
        if (wire->room >= 0 && (int64_t)length > wire->room)
            length = (size_t)wire->room;
        if (wire->sent_length + length < sizeof(wire->sent)) {
            memcpy(wire->sent + wire->sent_length, vectors[i].iov_base, length);
            wire->sent_length += length;
        }
        if (wire->room >= 0)
            wire->room -= (int64_t)length;
        total += length;
    }
    return total;
}

static int wire_flush(weir_channel *channel)
{
    struct wire *wire = wire_of(channel);
    struct iovec vectors[64];
    size_t count, bytes, sent, max = wire->vectors_max > 0 ? wire->vectors_max : 64;
    int sends = 0;

    note(wire, "FLUSH");
    if (wire->on_flush != NULL)
        wire->on_flush(wire);
    if (wire->flush_err < 0)
        return wire->flush_err;
    while ((count = weir__outbound_gather(channel, vectors, max, &bytes)) > 0) {
        if (wire->budget > 0 && sends == wire->budget)
            return 1;
        if (wire->lends) {
            wire->lent = vectors[0].iov_base;
            return WEIR__FLUSH_LENT;
        }
        sent = send_some(wire, vectors, count);
        sends++;
        weir__outbound_advance(channel, sent);
        if (sent < bytes) {
            wire->waits_for_room = true;
            return 0;
        }
    }
    return 0;
}

static int wire_local_address(weir_channel *channel, weir_address *ret_address)
{
    wire_of(channel)->address_calls++;
    return weir_address_parse("127.0.0.1:1", ret_address);
}

static int wire_remote_address(weir_channel *channel, weir_address *ret_address)
{
    (void)channel;
    return weir_address_parse("127.0.0.1:2", ret_address);
}

static int wire_configure(weir_channel *channel)
{
    note(wire_of(channel), "CONFIGURE");
    return 0;
}

static int wire_set_option(weir_channel *channel, int level, int name, const void *value,
                           size_t length)
{
    (void)channel;
    (void)value;
    (void)length;
    return -(level + name);
}

static void wire_destroy(weir_channel *channel)
{
    note(wire_of(channel), "DESTROY");
    free((void *)(uintptr_t)channel->transport);
}

static const weir__transport model = {
    .name = "wire",
    .size = sizeof(struct wire),
    .suits = wire_suits,
    .attach = wire_attach,
    .detach = wire_detach,
    .is_active = wire_is_active,
    .bind = wire_bind,
    .connect = wire_connect,
    .disconnect = wire_disconnect,
    .close = wire_close,
    .reset = wire_reset,
    .shut_output = wire_shut_output,
    .shut_input = wire_shut_input,
    .read_start = wire_read_start,
    .read_stop = wire_read_stop,
    .admit = wire_admit,
    .flush = wire_flush,
    .local_address = wire_local_address,
    .remote_address = wire_remote_address,
    .set_socket_option = wire_set_option,
    .configure = wire_configure,
    .destroy = wire_destroy,
};

int wire_create(struct event_log *events, const struct wire_options *options,
                const weir_channel_options *channel_options, weir_channel *parent,
                weir_channel **ret_channel)
{
    weir__transport *transport = malloc(sizeof(*transport)); /* not the library's */
    struct wire_options none = {0};
    weir__config *config;
    struct wire *wire;
    int err = weir__config_create(channel_options, &config);

    *transport = model;
    options = options != NULL ? options : &none;
    transport->accepts = options->accepts;
    transport->has_disconnect = options->can_disconnect;
    transport->connectionless = options->connectionless;
    transport->lingers = !options->no_linger;
    if (options->acknowledges)
        transport->unacknowledged = wire_unacknowledged;
    if (err == 0)
        err = weir__channel_create(transport, config, parent, ret_channel);
    else
        config = NULL;
    weir__config_release(config);
    if (err < 0) {
        free(transport);
        return err;
    }
    wire = wire_of(*ret_channel);
    wire->events = events;
    wire->options = *options;
    wire->room = -1;
    wire->is_active = !options->idle && !options->accepts;
    return 0;
}

/* ---- the fixture ---- */

void tc_open_with(struct test_channel *tc, const struct wire_options *wire,
                  const weir_channel_options *channel)
{
    memset(tc, 0, sizeof(*tc));
    tc->stepper = stepper_open();
    event_log_open(&tc->events);
    assert_int_equal(wire_create(&tc->events, wire, channel, NULL, &tc->channel), 0);
    tc->wire = wire_of(tc->channel);
    tc->pipeline = weir_channel_pipeline(tc->channel);
}

void tc_open(struct test_channel *tc)
{
    tc_open_with(tc, NULL, NULL);
}

void tc_run(struct test_channel *tc)
{
    (void)stepper_run(&tc->stepper);
}

void tc_close(struct test_channel *tc)
{
    tc->wire->options.slow_close = false;
    weir_channel_abort(tc->channel, NULL);
    if (weir__channel_phase(tc->channel) == WEIR__CLOSING)
        weir__channel_detached(tc->channel);
    tc_run(tc);
    weir_channel_release(tc->channel);
    tc_run(tc);
    stepper_close(&tc->stepper);
    event_log_close(&tc->events);
}

void tc_add(struct test_channel *tc, const char *name)
{
    struct event_recorder options = {.events = &tc->events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_add_last_as(tc->pipeline, name, &event_recorder, &options), 0);
}

void tc_start(struct test_channel *tc)
{
    weir_channel_register(tc->channel, tc->stepper.executor, NULL);
    tc_run(tc);
}

void tc_open_started(struct test_channel *tc, const struct wire_options *wire,
                     const weir_channel_options *channel)
{
    tc_open_with(tc, wire, channel);
    tc_add(tc, "a");
    tc_start(tc);
    event_log_clear(&tc->events);
}

weir_promise *tc_promise(struct test_channel *tc, const char *name)
{
    struct event_recorder *listener = &tc->listeners[tc->listener_count++ % 16];
    weir_promise *promise;

    listener->events = &tc->events;
    strncpy(listener->name, name, sizeof(listener->name) - 1);
    assert_int_equal(weir_promise_create(tc->stepper.executor, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, event_recorder_listen, listener), 0);
    return promise;
}

weir_msg *text_msg(const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    return weir_buf_msg(buf);
}

weir_msg *sized_msg(size_t size)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(size, size, &buf), 0);
    memset(weir_buf_space(buf), 'x', size);
    assert_int_equal(weir_buf_advance(buf, size), 0);
    return weir_buf_msg(buf);
}

void tc_write(struct test_channel *tc, const char *text, const char *promise_name)
{
    weir_promise *promise = promise_name != NULL ? tc_promise(tc, promise_name) : NULL;

    weir_channel_write(tc->channel, text_msg(text), promise);
    weir_promise_release(promise);
}

bool tc_receive(struct test_channel *tc, const char *text)
{
    assert_true(tc->wire->reads);
    if (tc->wire->reads_once)
        tc->wire->reads = false;
    return weir__channel_received(tc->channel, text_msg(text));
}

void tc_end_input(struct test_channel *tc)
{
    tc->wire->reads = false;
    weir__channel_input_ended(tc->channel, 0);
}

void tc_make_room(struct test_channel *tc, int64_t bytes)
{
    tc->wire->room = bytes;
    if (!tc->wire->waits_for_room)
        return;
    tc->wire->waits_for_room = false;
    weir__channel_writable(tc->channel, 0);
}

void tc_end_send(struct test_channel *tc, int64_t result)
{
    struct iovec vectors[64];
    size_t count, bytes;

    if (result > 0) {
        count = weir__outbound_gather(tc->channel, vectors, 64, &bytes);
        assert_ptr_equal(vectors[0].iov_base, tc->wire->lent);
        tc->wire->room = result;
        weir__outbound_advance(tc->channel, send_some(tc->wire, vectors, count));
        tc->wire->room = -1;
    }
    if (weir_channel_is_registered(tc->channel) && tc->wire->is_attached)
        weir__channel_writable(tc->channel, result < 0 ? (int)result : 0);
}

void tc_finish_detach(struct test_channel *tc)
{
    tc->wire->is_attached = false;
    weir__channel_detached(tc->channel);
}

void assert_sent(struct test_channel *tc, const char *text)
{
    tc->wire->sent[tc->wire->sent_length] = '\0';
    assert_string_equal(tc->wire->sent, text);
    tc->wire->sent_length = 0;
}
