/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel without a socket: a transport of two queues, with its own manual executor and clock.
 * Inbound messages of the test wait in the "socket" until the channel reads; flushed messages go
 * out as far as the "socket" has space. Everything else is the ordinary channel.
 */
#include <weir/embedded.h>

#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>

#include "base/memory.h"
#include "base/options.h"
#include "channel/channel.h"
#include "channel/channel_stats.h"
#include "channel/msg_queue.h"

struct weir_embedded {
    weir_manual_clock *clock;
    weir_executor *executor;
    weir_channel *channel;
    weir__msg_queue inbound;
    weir__msg_queue outbound;
    int error;      /* the first that reached the tail */
    unsigned depth; /* of calls from the test: the outermost one runs the tasks */
};

struct socket {
    weir_channel channel;    /* first */
    weir_embedded *embedded; /* while the channel is open */
    weir_embedded_options options;
    weir_address local;
    weir_address remote;
    weir__msg_queue received; /* not yet read */
    bool is_active;
    bool connects; /* the answer of the peer is pending */
    bool reads;
    bool reads_once;
    bool has_ended;    /* the peer's stream, */
    bool reported_end; /* and the channel was notified */
    bool lacks_space;  /* for flushed messages */
    bool limits_space; /* to `space` bytes */
    int64_t space;
};

/* ---- the transport ---- */

static struct socket *socket_of(const weir_channel *channel)
{
    return (struct socket *)(uintptr_t)channel;
}

static bool embedded_suits(const weir_channel *channel, const weir_executor *executor)
{
    const weir_embedded *embedded = socket_of(channel)->embedded;

    return embedded != NULL && embedded->executor == executor;
}

static int embedded_attach(weir_channel *channel)
{
    (void)channel;
    return 0;
}

static bool embedded_detach(weir_channel *channel)
{
    socket_of(channel)->reads = false;
    return true;
}

static bool embedded_is_active(const weir_channel *channel)
{
    return socket_of(channel)->is_active;
}

static int embedded_bind(weir_channel *channel, const weir_address *local)
{
    (void)channel;
    (void)local;
    return 0;
}

/* The peer answers in a task; it may find the channel closed. */
static int embedded_connect(weir_channel *channel, const weir_address *remote,
                            const weir_address *local)
{
    (void)remote;
    (void)local;
    socket_of(channel)->connects = true;
    weir__channel_defer(channel, WEIR__DEFERRED_TRANSPORT);
    return 0;
}

static int embedded_disconnect(weir_channel *channel)
{
    socket_of(channel)->is_active = false;
    return 0;
}

static bool embedded_close(weir_channel *channel)
{
    socket_of(channel)->is_active = false;
    socket_of(channel)->connects = false;
    socket_of(channel)->reads = false;
    return true;
}

static bool has_something(const struct socket *socket)
{
    return !weir__msg_queue_is_empty(&socket->received) ||
           (socket->has_ended && !socket->reported_end);
}

/* Delivers received messages as long as the channel reads; the rest in a task. */
static void pump(weir_channel *channel, bool complete)
{
    struct socket *socket = socket_of(channel);
    int limit = weir__channel_options(channel)->reads_per_turn;
    bool delivered = false;
    weir_msg *msg;

    while (socket->reads && !weir__msg_queue_is_empty(&socket->received) && limit-- > 0) {
        socket->reads = !socket->reads_once;
        delivered = true;
        msg = weir__msg_queue_pop(&socket->received);
        weir__stats_message(channel, WEIR__STAT_MESSAGES_RECEIVED, weir_msg_size(msg));
        if (!weir__channel_received(channel, msg))
            break;
    }
    if (delivered && complete)
        weir__channel_read_complete(channel);
    else if (delivered)
        weir__channel_end_batch(channel);
    if (socket->reads && weir__msg_queue_is_empty(&socket->received) && has_something(socket)) {
        socket->reported_end = true;
        socket->reads = false;
        weir__channel_input_ended(channel, 0);
    } else if (socket->reads && has_something(socket)) {
        weir__channel_defer(channel, WEIR__DEFERRED_TRANSPORT);
    }
}

static void embedded_deferred(weir_channel *channel)
{
    struct socket *socket = socket_of(channel);

    if (socket->connects) {
        socket->connects = false;
        socket->is_active = true;
        weir__channel_connected(channel, 0);
    }
    pump(channel, true);
}

static int embedded_shut_output(weir_channel *channel)
{
    if (socket_of(channel)->options.peer_stays)
        return 0;
    socket_of(channel)->has_ended = true;
    weir__channel_defer(channel, WEIR__DEFERRED_TRANSPORT);
    return 0;
}

static int embedded_shut_input(weir_channel *channel)
{
    weir__msg_queue_clear(&socket_of(channel)->received);
    return 0;
}

static void embedded_read_start(weir_channel *channel, bool once)
{
    socket_of(channel)->reads = true;
    socket_of(channel)->reads_once = once;
    if (has_something(socket_of(channel)))
        weir__channel_defer(channel, WEIR__DEFERRED_TRANSPORT);
}

static void embedded_read_stop(weir_channel *channel)
{
    socket_of(channel)->reads = false;
}

static bool has_space(const struct socket *socket, const weir_msg *msg)
{
    return !socket->limits_space || (int64_t)weir_msg_size(msg) <= socket->space;
}

static int embedded_flush(weir_channel *channel)
{
    struct socket *socket = socket_of(channel);
    int budget = weir__channel_options(channel)->writes_per_flush;
    weir_msg *msg;
    int err;

    while ((msg = weir__outbound_current(channel)) != NULL) {
        if (!has_space(socket, msg)) {
            socket->lacks_space = true;
            return 0;
        }
        if (budget-- == 0)
            return 1;
        socket->space -= (int64_t)weir_msg_size(msg);
        err = weir__msg_queue_push(&socket->embedded->outbound, msg) ? 0 : -ENOMEM;
        if (err == 0)
            (void)weir__outbound_take(channel);
        weir__outbound_complete(channel, err, NULL);
    }
    return 0;
}

static int embedded_local(weir_channel *channel, weir_address *ret_address)
{
    *ret_address = socket_of(channel)->local;
    return 0;
}

static int embedded_remote(weir_channel *channel, weir_address *ret_address)
{
    *ret_address = socket_of(channel)->remote;
    return 0;
}

static bool embedded_unhandled(weir_channel *channel, weir_msg *msg)
{
    weir_embedded *embedded = socket_of(channel)->embedded;

    return embedded != NULL && weir__msg_queue_push(&embedded->inbound, msg);
}

static bool embedded_unhandled_error(weir_channel *channel, int err, const char *detail)
{
    weir_embedded *embedded = socket_of(channel)->embedded;

    (void)detail;
    if (embedded == NULL || embedded->error != 0)
        return false;
    embedded->error = err;
    return true;
}

static void embedded_destroy(weir_channel *channel)
{
    weir__msg_queue_clear(&socket_of(channel)->received);
}

#define SLOTS                                                                                   \
    .name = "embedded", .stats = WEIR__STATS_EMBEDDED, .size = sizeof(struct socket),           \
    .lingers = true, .sends_buffers = true, .suits = embedded_suits, .attach = embedded_attach, \
    .detach = embedded_detach, .is_active = embedded_is_active, .bind = embedded_bind,          \
    .connect = embedded_connect, .close = embedded_close, .shut_output = embedded_shut_output,  \
    .shut_input = embedded_shut_input, .read_start = embedded_read_start,                       \
    .read_stop = embedded_read_stop, .flush = embedded_flush, .deferred = embedded_deferred,    \
    .local_address = embedded_local, .remote_address = embedded_remote,                         \
    .unhandled = embedded_unhandled, .unhandled_error = embedded_unhandled_error,               \
    .destroy = embedded_destroy

static const weir__transport connected = {SLOTS};
static const weir__transport connectionless = {
    SLOTS,
    .has_disconnect = true,
    .disconnect = embedded_disconnect,
};

/* ---- lifecycle ---- */

static void run_until_idle(weir_executor *executor)
{
    while (weir_manual_run_once(executor, 0, 0) > 0)
        ;
}

static void enter(weir_embedded *embedded)
{
    embedded->depth++;
}

static void leave(weir_embedded *embedded)
{
    if (embedded->depth == 1)
        run_until_idle(embedded->executor);
    embedded->depth--;
}

static int create_executor(weir_embedded *embedded)
{
    int err = weir_manual_clock_create(weir_seconds(1), &embedded->clock);

    if (err < 0)
        return err;
    err = weir_manual_create(
        WEIR_MANUAL_OPTIONS(.name = "embedded", .clock = weir_embedded_clock(embedded)),
        &embedded->executor);
    if (err < 0)
        weir_manual_clock_release(embedded->clock);
    return err;
}

static int parse_address(const char *text, weir_address *ret_address)
{
    int err = weir_address_parse(text != NULL ? text : "inproc:embedded", ret_address);

    return err == -EINVAL ? weir__options_reject("embedded", text, "it is not an address") : err;
}

static int create_channel(weir_embedded *embedded, const weir_embedded_options *options)
{
    weir_address local, remote;
    weir__config *config;
    struct socket *socket;
    int err = parse_address(options->local, &local);

    if (err == 0)
        err = parse_address(options->remote, &remote);
    if (err == 0)
        err = weir__config_create(options->channel, &config);
    if (err < 0)
        return err;
    err = weir__channel_create(options->has_disconnect ? &connectionless : &connected, config, NULL,
                               &embedded->channel);
    weir__config_release(config);
    if (err < 0)
        return err;
    socket = socket_of(embedded->channel);
    socket->embedded = embedded;
    socket->options = *options;
    socket->local = local;
    socket->remote = remote;
    socket->is_active = !options->connect_later;
    socket->limits_space = options->socket_space > 0;
    socket->space = options->socket_space;
    weir__msg_queue_init(&socket->received);
    return 0;
}

/* Ends the executor; remaining references to it reject tasks. */
static void end_executor(weir_embedded *embedded)
{
    (void)weir_executor_shutdown(embedded->executor, 0, 0);
    while (weir_manual_run_once(embedded->executor, 0, 0) != WEIR_ETERMINATED)
        ;
    weir_executor_release(embedded->executor);
    weir_manual_clock_release(embedded->clock);
}

int weir_embedded_create(const weir_embedded_options *options, weir_embedded **ret_embedded)
{
    weir_embedded_options given;
    weir_embedded *embedded;
    int err = weir__options_read(&given, sizeof(given), options);

    if (err < 0)
        return err;
    embedded = weir__zalloc(sizeof(*embedded));
    if (embedded == NULL)
        return -ENOMEM;
    weir__msg_queue_init(&embedded->inbound);
    weir__msg_queue_init(&embedded->outbound);
    err = create_executor(embedded);
    if (err < 0)
        goto fail;
    err = create_channel(embedded, &given);
    if (err < 0)
        goto fail_executor;
    if (!given.register_later)
        err = weir_embedded_register(embedded);
    if (err < 0)
        goto fail_channel;
    *ret_embedded = embedded;
    return 0;

fail_channel:
    weir_channel_release(embedded->channel);
fail_executor:
    end_executor(embedded);
fail:
    weir__free(embedded);
    return err;
}

void weir_embedded_release(weir_embedded *embedded)
{
    if (embedded == NULL)
        return;
    enter(embedded);
    weir_channel_abort(embedded->channel, NULL);
    leave(embedded);
    socket_of(embedded->channel)->embedded = NULL;
    weir_channel_release(embedded->channel);
    weir__msg_queue_clear(&embedded->inbound);
    weir__msg_queue_clear(&embedded->outbound);
    end_executor(embedded);
    weir__free(embedded);
}

weir_channel *weir_embedded_channel(weir_embedded *embedded)
{
    return embedded->channel;
}

weir_pipeline *weir_embedded_pipeline(weir_embedded *embedded)
{
    return weir_channel_pipeline(embedded->channel);
}

weir_clock *weir_embedded_clock(weir_embedded *embedded)
{
    return weir_manual_clock_clock(embedded->clock);
}

int weir_embedded_register(weir_embedded *embedded)
{
    weir_promise *done;
    int err = weir_promise_create(embedded->executor, &done);

    if (err < 0)
        return err;
    enter(embedded);
    weir_channel_register(embedded->channel, embedded->executor, done);
    leave(embedded);
    err = weir_promise_result(done);
    weir_promise_release(done);
    return err;
}

/* ---- messages ---- */

static int write_inbound(weir_embedded *embedded, weir_msg *msg, bool complete)
{
    weir_channel *channel = embedded->channel;

    if (!weir_channel_is_open(channel) || socket_of(channel)->has_ended) {
        weir_msg_release(msg);
        return WEIR_ECLOSED;
    }
    if (!weir__msg_queue_push(&socket_of(channel)->received, msg)) {
        weir_msg_release(msg);
        return -ENOMEM;
    }
    enter(embedded);
    pump(channel, complete);
    leave(embedded);
    return weir_embedded_take_error(embedded);
}

int weir_embedded_write_inbound(weir_embedded *embedded, weir_msg *msg)
{
    return write_inbound(embedded, msg, true);
}

int weir_embedded_write_one_inbound(weir_embedded *embedded, weir_msg *msg)
{
    return write_inbound(embedded, msg, false);
}

int weir_embedded_write_outbound(weir_embedded *embedded, weir_msg *msg)
{
    weir_promise *done;
    int err = weir_promise_create(embedded->executor, &done);

    if (err < 0) {
        weir_msg_release(msg);
        return err;
    }
    enter(embedded);
    weir_channel_write_and_flush(embedded->channel, msg, done);
    leave(embedded);
    err = weir_promise_is_done(done) ? weir_promise_result(done) : 0;
    weir_promise_release(done);
    return err;
}

weir_msg *weir_embedded_read_inbound(weir_embedded *embedded)
{
    return weir__msg_queue_pop(&embedded->inbound);
}

weir_msg *weir_embedded_read_outbound(weir_embedded *embedded)
{
    return weir__msg_queue_pop(&embedded->outbound);
}

/* ---- peer and clock ---- */

void weir_embedded_end_input(weir_embedded *embedded)
{
    enter(embedded);
    socket_of(embedded->channel)->has_ended = true;
    pump(embedded->channel, true);
    leave(embedded);
}

void weir_embedded_make_space(weir_embedded *embedded, int64_t bytes)
{
    struct socket *socket = socket_of(embedded->channel);

    enter(embedded);
    socket->space += bytes;
    if (socket->lacks_space) {
        socket->lacks_space = false;
        weir__channel_writable(embedded->channel, 0);
    }
    leave(embedded);
}

void weir_embedded_advance(weir_embedded *embedded, int64_t duration_ns)
{
    int64_t step_ns;

    enter(embedded);
    run_until_idle(embedded->executor);
    while (duration_ns > 0) {
        step_ns = weir_manual_timeout(embedded->executor);
        if (step_ns > duration_ns)
            step_ns = duration_ns;
        duration_ns -= step_ns;
        (void)weir_manual_clock_advance(embedded->clock, step_ns);
        run_until_idle(embedded->executor);
    }
    leave(embedded);
}

void weir_embedded_run(weir_embedded *embedded)
{
    enter(embedded);
    leave(embedded);
}

int weir_embedded_take_error(weir_embedded *embedded)
{
    int err = embedded->error;

    embedded->error = 0;
    return err;
}

bool weir_embedded_finish(weir_embedded *embedded)
{
    enter(embedded);
    weir_channel_close(embedded->channel, NULL);
    leave(embedded);
    enter(embedded);
    weir_channel_abort(embedded->channel, NULL);
    leave(embedded);
    return !weir__msg_queue_is_empty(&embedded->inbound) ||
           !weir__msg_queue_is_empty(&embedded->outbound);
}
