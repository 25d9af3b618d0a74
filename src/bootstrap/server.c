/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a server. All listeners are created on the calling thread, so that invalid options are
 * reported at once; then they are registered and bound one after the other, each on its own loop,
 * which starts the next. So the first acceptor of an address determines the port for the others,
 * and when a listener cannot be bound only those before it have to be closed.
 *
 * Without a boss every loop of the workers accepts from the one socket of each address: a loop has
 * a listener that is bound, and the others have listeners that share its socket. They are the last
 * of the array.
 *
 *      bind_next -> on_bound -> bind_next -> ... -> succeed
 *                      `-> fail -> close_last -> on_closed -> close_last -> ... -> report_failure
 */
#include "bootstrap/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/pipeline.h>
#include <weir/restart.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "bootstrap/transport_for.h"
#include "channel/attribute.h"
#include "executor/group.h"
#include "loop/loop.h"
#include "os/thread.h"
#include "transport/listener.h"

/* ---- lifecycle ---- */

weir_server *weir_server_retain(weir_server *server)
{
    weir__refs_retain(&server->refs);
    return server;
}

void weir_server_release(weir_server *server)
{
    if (server == NULL || !weir__refs_release(&server->refs))
        return;
    for (size_t i = 0; i < server->count; i++)
        weir_channel_release(server->listeners[i].channel);
    if (server->loop != NULL)
        weir__executor_weak_release(server->loop);
    weir_group_release(server->workers);
    weir_group_release(server->boss);
    weir__free(server->child_attributes);
    weir__free(server);
}

size_t weir_server_listener_count(const weir_server *server)
{
    return server->count;
}

weir_channel *weir_server_listener(const weir_server *server, size_t index)
{
    return index < server->count ? server->listeners[index].channel : NULL;
}

/* A stream listener has nothing to send: it is aborted. Neither fails without memory. */
static void close_listener(const weir_server *server, weir_channel *channel)
{
    if (server->kind == WEIR_KIND_DATAGRAM)
        weir_channel_close(channel, NULL);
    else
        weir_channel_abort(channel, NULL);
}

/* The first listener closes the others: see weir__server_mark. */
void weir_server_close(weir_server *server)
{
    close_listener(server, server->listeners[0].channel);
}

void weir__server_mark(weir_server *server, uint32_t mark)
{
    /* Acquire-release: the second caller sees the listeners as the first one left them. */
    uint32_t marks = atomic_fetch_or_explicit(&server->marks, mark, memory_order_acq_rel);

    if ((marks | mark) != (WEIR__SERVER_STARTED | WEIR__SERVER_CLOSED))
        return;
    for (size_t i = 1; i < server->count; i++)
        close_listener(server, server->listeners[i].channel);
}

/* ---- creation ---- */

/* The number of loops that accept from the socket of a listener. */
static size_t loops_per_socket(const weir_server_options *options)
{
    size_t count = options->loop == NULL ? weir_group_count(options->workers) : 1;

    if (options->loop != NULL || options->boss != options->workers || options->acceptors > 0 ||
        options->kind == WEIR_KIND_DATAGRAM || weir__group_grows(options->workers) ||
        weir__group_has_own_chooser(options->workers))
        return 1;
    for (size_t i = 0; i < count; i++) {
        const weir__io *io = weir__loop_io(weir_group_at(options->workers, i));

        if (io == NULL || !io->type->wakes_one)
            return 1;
    }
    return count;
}

static int create_server(const weir_server_options *options, weir_server **ret_server)
{
    size_t loops = loops_per_socket(options);
    size_t own =
        options->adopt_count + weir__server_addresses(options) * weir__server_acceptors(options);
    size_t room = own * loops;
    size_t attributes_size = options->child_attribute_count * sizeof(*options->child_attributes);
    weir_server *server = weir__zalloc(sizeof(*server) + room * sizeof(*server->listeners));

    if (server == NULL)
        return -ENOMEM;
    if (attributes_size > 0) {
        server->child_attributes = weir__alloc(attributes_size);
        if (server->child_attributes == NULL) {
            weir__free(server);
            return -ENOMEM;
        }
        memcpy(server->child_attributes, options->child_attributes, attributes_size);
        server->child_attribute_count = options->child_attribute_count;
    }
    weir__refs_init(&server->refs);
    if (options->loop != NULL) {
        weir__executor_weak_retain(options->loop);
        server->loop = options->loop;
    } else {
        server->boss = weir_group_retain(options->boss);
        server->workers = weir_group_retain(options->workers);
    }
    server->kind = options->kind;
    server->acceptors = weir__server_acceptors(options);
    server->loops_per_socket = loops;
    server->init_child = options->init_child;
    server->init_server = options->init_server;
    server->user_data = options->user_data;
    server->notifies_manager = options->inherit;
    server->restart_argv = options->restart_argv;
    server->restart_probation_ns = options->restart_probation_ns;
    server->drain_timeout_ns = options->drain_timeout_ns;
    *ret_server = server;
    return 0;
}

/*
 * On the listener's loop: the user's handlers come before the acceptor. No listener accepts before
 * all are bound: a start that fails must not leave connections, which use what the user frees then.
 */
static int init_listener(weir_channel *channel, void *user_data)
{
    weir__listening *listening = user_data;
    const weir_server *server = listening->server;
    int err = server->init_server != NULL ? server->init_server(channel, server->user_data) : 0;

    listening->accepts = weir_channel_auto_read(channel);
    weir_channel_set_auto_read(channel, false);
    return err < 0 ? err : weir__acceptor_add(listening);
}

static int check_executors(const weir_channel *channel, const weir_server_options *options)
{
    int err;

    if (options->loop != NULL)
        return weir__transport_check_executor(channel, options->loop);
    err = weir__transport_check_group(channel, options->boss);
    return err < 0 ? err : weir__transport_check_group(channel, options->workers);
}

/* Listeners of one address follow each other; so do adopted ones with equal addresses. */
static size_t next_index(const weir_server *server, const weir__listening *listening)
{
    const weir__listening *last = listening - 1;
    bool continues;

    if (listening == server->listeners)
        return 0;
    continues = listening->is_adopted ? weir_address_equal(&last->address, &listening->address)
                                      : !last->is_adopted && listening->acceptor > 0;
    return continues ? last->index : last->index + 1;
}

/* The value is the index of the address + 1. */
static const weir_attribute address_index = {.name = "server address"};

static int add_channel(weir_server *server, const weir_server_options *options)
{
    weir__listening *listening = &server->listeners[server->count++];
    weir_channel *channel = listening->channel;
    weir_attribute_value index = {.attribute = &address_index};
    int err = check_executors(channel, options);

    listening->server = server;
    index.value = (void *)(listening->index + 1);
    if (err == 0)
        err = weir__attributes_lend(channel, &index, 1);
    if (err == 0)
        err = weir__attributes_lend(channel, options->attributes, options->attribute_count);
    if (err == 0)
        err =
            weir_pipeline_add_initializer(weir_channel_pipeline(channel), init_listener, listening);
    return err;
}

static int add_listener(weir_server *server, const weir_server_options *options, size_t acceptor)
{
    weir__listening *listening = &server->listeners[server->count];

    listening->acceptor = acceptor;
    listening->index = next_index(server, listening);
    return add_channel(server, options);
}

static int create_listener(weir_server *server, const weir_server_options *options,
                           const char *address)
{
    weir__listening *listening = &server->listeners[server->count];
    int err = weir__transport_parse(address, &listening->address);
    int family = weir_address_family(&listening->address);

    if (err < 0)
        return err;
    if (server->acceptors > 1 && family != AF_INET && family != AF_INET6)
        return weir__options_reject(
            "server", NULL, ".acceptors > 1 needs an internet address, not \"%s\"", address);
    return weir__transport_create_server(options->kind, &listening->address, options->options,
                                         options->child_options, &listening->channel);
}

static int adopt_all(weir_server *server, const weir_server_options *options)
{
    size_t i = 0;
    int err = 0;

    for (; i < options->adopt_count && err == 0; i++) {
        err = weir__inherited_fds_adopt(options, options->adopt[i],
                                        &server->listeners[server->count]);
        if (err == 0)
            err = add_listener(server, options, i);
    }
    weir__inherited_fds_close(options, i);
    return err;
}

static int add_listeners(weir_server *server, const weir_server_options *options)
{
    size_t acceptors = weir__server_acceptors(options);
    size_t count = weir__server_addresses(options) * acceptors;
    int err = adopt_all(server, options);

    for (size_t i = 0; i < count && err == 0; i++) {
        err = create_listener(server, options, weir__server_address_at(options, i / acceptors));
        if (err == 0)
            err = add_listener(server, options, i % acceptors);
    }
    server->own_count = server->count;
    return err;
}

/* The number of listeners on its address. Adopted ones are counted: the options do not say. */
static size_t count_acceptors(const weir_server *server, const weir__listening *listening)
{
    size_t count = 0;

    if (!listening->is_adopted)
        return server->acceptors;
    for (size_t i = 0; i < server->own_count; i++)
        count += server->listeners[i].is_adopted &&
                 weir_address_equal(&server->listeners[i].address, &listening->address);
    return count;
}

/* Adopted sockets that share an address by SO_REUSEPORT are as many as there should be. */
static bool can_share(const weir_server *server, const weir__listening *listening)
{
    return server->loops_per_socket > 1 && weir__listener_can_share(listening->channel) &&
           count_acceptors(server, listening) == 1;
}

static void on_look(void *arg, int status)
{
    weir_channel *channel = arg;

    if (status == 0 && weir__channel_in_loop(channel))
        weir__listener_look(channel);
    weir_channel_release(channel);
}

static void look(const weir__listening *listening)
{
    weir_executor *loop = weir_channel_executor(listening->channel);

    if (loop != NULL && weir_execute(loop, on_look, weir_channel_retain(listening->channel)) < 0)
        weir_channel_release(listening->channel);
}

/* On the loop of a listener that has stopped: the others of its socket look. */
static void on_left(void *arg)
{
    const weir__listening *self = arg;
    const weir_server *server = self->server;

    for (size_t i = 0; i < server->count; i++)
        if (&server->listeners[i] != self && server->listeners[i].shares == self->shares)
            look(&server->listeners[i]);
}

void weir__server_look(const weir_server *server)
{
    for (size_t i = 0; i < server->own_count; i++)
        if (server->listeners[i].shares != NULL)
            look(&server->listeners[i]);
}

static int add_one_sharing(weir_server *server, const weir_server_options *options,
                           weir__listening *first, size_t acceptor)
{
    weir__listening *listening = &server->listeners[server->count];
    bool is_alone = server->restart_argv == NULL && !options->inherit && options->adopt_count == 0;
    int err = weir__listener_create_sharing(first->channel, options->options,
                                            options->child_options, is_alone, &listening->channel);

    if (err < 0)
        return err;
    listening->shares = first;
    listening->acceptor = acceptor;
    listening->index = first->index;
    listening->address = first->address;
    weir__listener_set_left(listening->channel, on_left, listening);
    return add_channel(server, options);
}

/* The listeners of the other loops. */
static int add_sharing(weir_server *server, const weir_server_options *options)
{
    int err = 0;

    for (size_t i = 0; i < server->own_count; i++) {
        weir__listening *first = &server->listeners[i];

        if (!can_share(server, first))
            continue;
        first->shares = first;
        weir__listener_set_left(first->channel, on_left, first);
        for (size_t loop = 1; loop < server->loops_per_socket && err == 0; loop++)
            err = add_one_sharing(server, options, first, loop);
    }
    return err;
}

/* If every loop of the group accepts on each address, the kernel has already chosen the loop. */
static bool stays(const weir_server *server)
{
    if (server->loop != NULL)
        return true;
    if (server->boss != server->workers || server->acceptors == 1 ||
        weir__group_grows(server->boss))
        return false;
    for (size_t i = 0; i < server->count; i++)
        if (count_acceptors(server, &server->listeners[i]) < weir_group_count(server->boss))
            return false;
    return true;
}

static int create(const weir_server_options *options, weir_server **ret_server)
{
    weir_server *server;
    int err = create_server(options, &server);

    if (err < 0) {
        weir__inherited_fds_close(options, 0);
        return err;
    }
    err = add_listeners(server, options);
    if (err == 0)
        err = add_sharing(server, options);
    if (err < 0) {
        weir_server_release(server);
        return err;
    }
    server->stays = stays(server);
    *ret_server = server;
    return 0;
}

/* ---- starting ---- */

/* Releases the references held while starting. */
static void end_start(weir_server *server)
{
    weir_promise_release(server->started);
    server->started = NULL;
    weir_server_release(server);
}

static void report_failure(weir_server *server)
{
    char address[WEIR_ADDRESS_TEXT_SIZE], detail[WEIR_ADDRESS_TEXT_SIZE + 128];

    (void)weir_address_format(&server->listeners[server->bound].address, address, sizeof(address));
    (void)snprintf(detail, sizeof(detail), "cannot listen on %s: %s", address,
                   weir_error_text(server->err));
    if (server->started != NULL)
        (void)weir_promise_fail(server->started, server->err, detail);
    end_start(server);
}

static void close_last(weir_server *server);

static void on_closed(weir_promise *closed, void *server)
{
    (void)closed;
    close_last(server);
}

/* The caller may retry as soon as the promise fails: so all ports have to be free by then. */
static void close_last(weir_server *server)
{
    while (server->closing > 0) {
        weir__listening *listening = &server->listeners[--server->closing];
        weir_promise *closed;

        weir_channel_abort(listening->channel, NULL);
        closed = weir_channel_closed(listening->channel);
        if (closed == NULL)
            continue; /* no memory: it closes nevertheless */
        listening->listener = (weir_listener){.fn = on_closed, .user_data = server};
        weir_promise_listen(closed, &listening->listener);
        return;
    }
    report_failure(server);
}

static void fail(weir_server *server, int err)
{
    char address[WEIR_ADDRESS_TEXT_SIZE];

    (void)weir_address_format(&server->listeners[server->bound].address, address, sizeof(address));
    if (err == -EADDRINUSE && server->retries)
        weir__info("server", address, "address in use, retrying");
    else
        weir__error("server", address, "cannot listen: %s", weir_error_text(err));
    server->err = err;
    server->closing = server->bound + 1;
    close_last(server);
}

static void release_value(void *server)
{
    weir_server_release(server);
}

static void accept_all(const weir_server *server)
{
    for (size_t i = 0; i < server->count; i++)
        if (server->listeners[i].accepts)
            weir_channel_set_auto_read(server->listeners[i].channel, true);
}

static void succeed(weir_server *server)
{
    accept_all(server);
    weir__server_mark(server, WEIR__SERVER_STARTED);
    if (server->started != NULL &&
        weir_promise_succeed_with(server->started, weir_server_retain(server), release_value) < 0)
        weir_server_close(server); /* the promise was cancelled */
    else if (server->notifies_manager)
        (void)weir_systemd_notify("READY=1"); /* logs its failures */
    end_start(server);
}

/* The other acceptors of an address use the port that the first one got. */
static int share_port(weir__listening *listening)
{
    weir_address local;
    int err;

    if (listening->is_adopted || listening->acceptor > 0 ||
        weir_address_port(&listening->address) != 0)
        return 0;
    err = weir_channel_local_address(listening->channel, &local);
    if (err < 0)
        return err;
    weir_address_set_port(&listening->address, weir_address_port(&local));
    for (weir__listening *other = listening + 1;
         other < &listening->server->listeners[listening->server->own_count] && other->acceptor > 0;
         other++)
        weir_address_set_port(&other->address, weir_address_port(&local));
    return 0;
}

static void bind_next(weir_server *server);

static void on_bound(weir_promise *bound, void *arg)
{
    weir__listening *listening = arg;
    weir_server *server = listening->server;
    int err = weir__transport_reason(listening->channel, weir_promise_result(bound));

    if (err == 0 && !weir_channel_is_open(listening->channel)) /* its initializer failed */
        err = weir__transport_reason(listening->channel, WEIR_ECLOSED);
    if (err == 0)
        err = share_port(listening);
    if (err == 0 && weir__server_has(server, WEIR__SERVER_CLOSED))
        err = WEIR_ECLOSED;
    if (err < 0) {
        fail(server, err);
        return;
    }
    server->bound++;
    if (server->bound < server->count)
        bind_next(server);
    else
        succeed(server);
}

/*
 * Acceptors of one address are spread over the loops; a single listener goes to the next one. Those
 * that share a socket begin at another loop for each socket: the kernel prefers the first.
 */
static int take_loop(const weir__listening *listening, weir_executor **ret_loop)
{
    const weir_server *server = listening->server;

    if (server->loop != NULL) {
        *ret_loop = server->loop;
        weir__executor_lease(server->loop);
        return 0;
    }
    if (listening->shares != NULL) {
        size_t socket = (size_t)(listening->shares - server->listeners);

        *ret_loop =
            weir_group_at(server->boss, (socket + listening->acceptor) % server->loops_per_socket);
        return 0;
    }
    if (server->acceptors == 1 || weir__group_grows(server->boss))
        return weir__group_lease_next(server->boss, ret_loop);
    *ret_loop = weir_group_at(server->boss, listening->acceptor % weir_group_count(server->boss));
    return 0;
}

/* The loop registers first, then binds; a channel that cannot be registered fails to bind. */
static int bind_on(weir__listening *listening, weir_executor *loop)
{
    bool gets_socket = listening->shares != NULL && listening->shares != listening;
    bool listens = listening->is_adopted || gets_socket;
    weir_promise *bound;
    int err = 0;

    if (gets_socket)
        err = weir__listener_share(listening->channel, listening->shares->channel);
    if (err == 0)
        err = weir_promise_create(loop, &bound);
    if (err < 0)
        return err;
    listening->listener = (weir_listener){.fn = on_bound, .user_data = listening};
    weir_promise_listen(bound, &listening->listener);
    weir_channel_register(listening->channel, loop, listens ? bound : NULL);
    if (!listens)
        weir_channel_bind(listening->channel, &listening->address, bound);
    weir_promise_release(bound);
    return 0;
}

static void bind_next(weir_server *server)
{
    weir__listening *listening = &server->listeners[server->bound];
    weir_executor *loop;
    int err = take_loop(listening, &loop);

    if (err == 0) {
        err = bind_on(listening, loop);
        weir__executor_unlease(loop);
    }
    if (err < 0)
        fail(server, err);
}

int weir__server_begin(const weir_server_options *given, bool retries, weir_promise *done,
                       weir_server **ret_server)
{
    weir__server_config config;
    weir_server *server;
    int err = weir__server_config_init(&config, given);

    if (err < 0)
        return err;
    err = create(&config.options, &server);
    weir__server_config_deinit(&config);
    if (err < 0)
        return err;
    server->retries = retries;
    server->blocking_thread = weir__thread_id();
    server->blocked_signals = weir__server_block_signals(server->restart_argv);
    server->started = done != NULL ? weir_promise_retain(done) : NULL;
    *ret_server = weir_server_retain(server);
    bind_next(server);
    return 0;
}

int weir_server_start_later(const weir_server_options *options, weir_promise *done,
                            weir_server **ret_server)
{
    return weir__server_begin(options, false, done, ret_server);
}

int weir_server_address_index(weir_channel *channel)
{
    weir_channel *parent = weir_channel_parent(channel);

    return (int)(intptr_t)weir_attribute_get(parent != NULL ? parent : channel, &address_index) - 1;
}
