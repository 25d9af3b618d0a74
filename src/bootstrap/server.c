/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a server: its listeners are made here and now, so that what is wrong with the options is
 * told at once; then they are registered and bound one after the other, each on its own loop, which
 * starts the next. So the first acceptor of an address finds out the port for the others, and a
 * listener that cannot be bound has only those before it to be closed.
 *
 *      bind_next -> on_bound -> bind_next -> ... -> succeed
 *                      `-> fail -> close_last -> on_closed -> close_last -> ... -> report
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
#include "os/thread.h"

/* ---- life ---- */

weir__server *weir__server_retain(weir__server *server)
{
    weir__refs_retain(&server->refs);
    return server;
}

void weir__server_release(weir__server *server)
{
    if (!weir__refs_release(&server->refs))
        return;
    for (size_t i = 1; i < server->count; i++)
        weir_channel_release(server->listeners[i].channel);
    weir_group_release(server->workers);
    weir_group_release(server->boss);
    weir__free(server->child_attributes);
    weir__free(server);
}

static void free_attribute(void *server)
{
    weir__server_release(server);
}

static const weir_attribute attribute = {.name = "server", .free = free_attribute};

weir__server *weir__server_of(weir_channel *channel)
{
    return weir_attribute_get(channel, &attribute);
}

size_t weir_server_count(weir_channel *channel)
{
    weir__server *server = weir__server_of(channel);

    return server != NULL ? server->count : 0;
}

weir_channel *weir_server_at(weir_channel *channel, size_t index)
{
    weir__server *server = weir__server_of(channel);

    return server != NULL && index < server->count ? server->listeners[index].channel : NULL;
}

/* A listener has nothing to send. Neither needs memory: a close without it is an abort. */
static void end_listener(const weir__server *server, weir_channel *channel)
{
    if (server->kind == WEIR_KIND_DATAGRAM)
        weir_channel_close(channel, NULL);
    else
        weir_channel_abort(channel, NULL);
}

void weir__server_mark(weir__server *server, uint32_t mark)
{
    /* Acquire-release: who comes second sees the listeners as the first one left them. */
    uint32_t marks = atomic_fetch_or_explicit(&server->marks, mark, memory_order_acq_rel);

    if ((marks | mark) != (WEIR__SERVER_STARTED | WEIR__SERVER_CLOSED))
        return;
    for (size_t i = 1; i < server->count; i++)
        end_listener(server, server->listeners[i].channel);
}

/* ---- making one ---- */

static int copy_attributes(weir__server *server, const weir_server_options *options)
{
    size_t count = options->child_attribute_count;

    if (count == 0)
        return 0;
    server->child_attributes = weir__alloc(count * sizeof(*server->child_attributes));
    if (server->child_attributes == NULL)
        return -ENOMEM;
    memcpy(server->child_attributes, options->child_attributes,
           count * sizeof(*server->child_attributes));
    server->child_attribute_count = count;
    return 0;
}

static int create_server(const weir_server_options *options, weir__server **ret_server)
{
    size_t room =
        options->adopt_count + weir__server_addresses(options) * weir__server_acceptors(options);
    weir__server *server = weir__zalloc(sizeof(*server) + room * sizeof(*server->listeners));
    int err;

    if (server == NULL)
        return -ENOMEM;
    weir__refs_init(&server->refs);
    err = copy_attributes(server, options);
    if (err < 0) {
        weir__free(server);
        return err;
    }
    server->boss = weir_group_retain(options->boss);
    server->workers = weir_group_retain(options->workers);
    server->kind = options->kind;
    server->acceptors = weir__server_acceptors(options);
    server->init_child = options->init_child;
    server->init_server = options->init_server;
    server->user_data = options->user_data;
    server->tells_manager = options->inherit;
    server->restart_argv = options->restart_argv;
    server->restart_probation_ns = options->restart_probation_ns;
    *ret_server = server;
    return 0;
}

/* On the listener's loop: its own handlers come before the acceptor. */
static int init_listener(weir_channel *channel, void *user_data)
{
    weir__server *server = user_data;
    int err = server->init_server != NULL ? server->init_server(channel, server->user_data) : 0;

    return err < 0 ? err : weir__acceptor_add(channel, server);
}

static int prepare(weir__server *server, weir_channel *channel, const weir_server_options *options)
{
    int err = weir__transport_check_group(channel, options->boss);

    if (err == 0)
        err = weir__transport_check_group(channel, options->workers);
    if (err == 0)
        err = weir__attributes_lend(channel, options->attributes, options->attribute_count);
    if (err == 0)
        err = weir_pipeline_add_initializer(weir_channel_pipeline(channel), init_listener, server);
    return err;
}

/* Only internet addresses can be shared. */
static bool can_share(const weir_address *address)
{
    int family = weir_address_family(address);

    return family == AF_INET || family == AF_INET6;
}

static int add_listener(weir__server *server, const weir_server_options *options, size_t acceptor)
{
    weir__listening *listening = &server->listeners[server->count++];

    listening->server = server;
    listening->acceptor = acceptor;
    return prepare(server, listening->channel, options);
}

static int create_listener(weir__server *server, const weir_server_options *options,
                           const char *address)
{
    weir__listening *listening = &server->listeners[server->count];
    int err = weir__transport_parse(address, &listening->address);

    if (err == 0 && server->acceptors > 1 && !can_share(&listening->address))
        err = weir__options_reject("server", NULL,
                                   "only an internet address can have several acceptors");
    if (err == 0)
        err = weir__transport_create_server(options->kind, &listening->address, options->options,
                                            options->child_options, &listening->channel);
    return err;
}

static int adopt_all(weir__server *server, const weir_server_options *options)
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

static int add_listeners(weir__server *server, const weir_server_options *options)
{
    size_t acceptors = weir__server_acceptors(options);
    size_t count = weir__server_addresses(options) * acceptors;
    int err = adopt_all(server, options);

    for (size_t i = 0; i < count && err == 0; i++) {
        err = create_listener(server, options, weir__server_address_at(options, i / acceptors));
        if (err == 0)
            err = add_listener(server, options, i % acceptors);
    }
    return err;
}

/* How many there are for its address: of those that were handed over the options say nothing. */
static size_t count_acceptors(const weir__server *server, const weir__listening *listening)
{
    size_t count = 0;

    if (!listening->is_adopted)
        return server->acceptors;
    for (size_t i = 0; i < server->count; i++)
        count += server->listeners[i].is_adopted &&
                 weir_address_equal(&server->listeners[i].address, &listening->address);
    return count;
}

/* Where every loop of the group accepts, for each address, the system has chosen one already. */
static bool stays(const weir__server *server)
{
    if (server->boss != server->workers || server->acceptors == 1 ||
        weir__group_grows(server->boss))
        return false;
    for (size_t i = 0; i < server->count; i++)
        if (count_acceptors(server, &server->listeners[i]) < weir_group_count(server->boss))
            return false;
    return true;
}

/* The first listener is the server's keeper from here on. */
static int give_to_first(weir__server *server)
{
    weir_channel *first = server->listeners[0].channel;
    int err = weir_attribute_set(first, &attribute, server);

    if (err == 0)
        weir__server_retain(server);
    return err;
}

/* Gives two references: the first listener's, and the caller's own. */
static int create(const weir_server_options *options, weir__server **ret_server)
{
    weir__server *server;
    int err = create_server(options, &server);

    if (err < 0) {
        weir__inherited_fds_close(options, 0);
        return err;
    }
    err = add_listeners(server, options);
    if (err == 0)
        err = give_to_first(server);
    if (err < 0) {
        if (server->count > 0)
            weir_channel_release(server->listeners[0].channel);
        weir__server_release(server);
        return err;
    }
    server->stays = stays(server);
    *ret_server = server;
    return 0;
}

/* ---- starting ---- */

/* Gives up what the starting has kept. */
static void end(weir__server *server)
{
    weir_channel *first = server->listeners[0].channel;

    weir_promise_release(server->started);
    server->started = NULL;
    weir__server_release(server);
    weir_channel_release(first);
}

static void report_failure(weir__server *server)
{
    char address[WEIR_ADDRESS_TEXT_SIZE], detail[WEIR_ADDRESS_TEXT_SIZE + 128];

    (void)weir_address_format(&server->listeners[server->bound].address, address, sizeof(address));
    (void)snprintf(detail, sizeof(detail), "cannot listen on %s: %s", address,
                   weir_error_text(server->err));
    if (server->started != NULL)
        (void)weir_promise_fail(server->started, server->err, detail);
    end(server);
}

static void close_last(weir__server *server);

static void on_closed(weir_promise *closed, void *server)
{
    (void)closed;
    close_last(server);
}

/* Who is told of the failure may try again at once: so all ports are free by then. */
static void close_last(weir__server *server)
{
    while (server->closing > 0) {
        weir__listening *listening = &server->listeners[--server->closing];
        weir_promise *closed;

        weir_channel_abort(listening->channel, NULL);
        closed = weir_channel_closed(listening->channel);
        if (closed == NULL)
            continue; /* it closes all the same */
        listening->heard = (weir_listener){.fn = on_closed, .user_data = server};
        weir_promise_listen(closed, &listening->heard);
        return;
    }
    report_failure(server);
}

static void fail(weir__server *server, int err)
{
    char address[WEIR_ADDRESS_TEXT_SIZE];

    (void)weir_address_format(&server->listeners[server->bound].address, address, sizeof(address));
    if (err == -EADDRINUSE && server->is_patient)
        weir__info("server", address, "is in use, and is tried again");
    else
        weir__error("server", address, "cannot listen: %s", weir_error_text(err));
    server->err = err;
    server->closing = server->bound + 1;
    close_last(server);
}

static void release_channel(void *channel)
{
    weir_channel_release(channel);
}

static void succeed(weir__server *server)
{
    weir_channel *first = server->listeners[0].channel;

    weir__server_mark(server, WEIR__SERVER_STARTED);
    if (server->started != NULL &&
        weir_promise_succeed_with(server->started, weir_channel_retain(first), release_channel) < 0)
        weir_channel_abort(first, NULL); /* cancelled: nobody wants it any more */
    else if (server->tells_manager)
        (void)weir_systemd_notify("READY=1"); /* the log says if it could not be told */
    end(server);
}

/* The other acceptors of an address share the port that the first one was given. */
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
         other < &listening->server->listeners[listening->server->count] && other->acceptor > 0;
         other++)
        weir_address_set_port(&other->address, weir_address_port(&local));
    return 0;
}

static void bind_next(weir__server *server);

static void on_bound(weir_promise *bound, void *arg)
{
    weir__listening *listening = arg;
    weir__server *server = listening->server;
    int err = weir__transport_reason(listening->channel, weir_promise_result(bound));

    if (err == 0 && !weir_channel_is_open(listening->channel)) /* its initialiser has failed */
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

/* A listener that is the only one of its address goes where the chooser says. */
static int take_loop(const weir__listening *listening, weir_executor **ret_loop)
{
    weir_group *boss = listening->server->boss;

    if (listening->server->acceptors == 1 || weir__group_grows(boss))
        return weir__group_lease_next(boss, ret_loop);
    *ret_loop = weir_group_at(boss, listening->acceptor % weir_group_count(boss));
    return 0;
}

/* Both are done on the loop, in this order; one that cannot be registered cannot be bound. */
static int bind_on(weir__listening *listening, weir_executor *loop)
{
    weir_promise *bound;
    int err = weir_promise_create(loop, &bound);

    if (err < 0)
        return err;
    listening->heard = (weir_listener){.fn = on_bound, .user_data = listening};
    weir_promise_listen(bound, &listening->heard);
    weir_channel_register(listening->channel, loop, listening->is_adopted ? bound : NULL);
    if (!listening->is_adopted)
        weir_channel_bind(listening->channel, &listening->address, bound);
    weir_promise_release(bound);
    return 0;
}

static void bind_next(weir__server *server)
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

int weir__server_begin(const weir_server_options *given, bool is_patient, weir_promise *done,
                       weir_channel **ret_server)
{
    weir__server_order order;
    weir__server *server;
    int err = weir__server_order_read(&order, given);

    if (err < 0)
        return err;
    err = create(&order.options, &server);
    weir__server_order_deinit(&order);
    if (err < 0)
        return err;
    server->is_patient = is_patient;
    server->holder = weir__thread_id();
    server->held = weir__server_hold_signals(server->restart_argv);
    server->started = done != NULL ? weir_promise_retain(done) : NULL;
    *ret_server = weir_channel_retain(server->listeners[0].channel);
    bind_next(server);
    return 0;
}

int weir_server_start_later(const weir_server_options *options, weir_promise *done,
                            weir_channel **ret_server)
{
    return weir__server_begin(options, false, done, ret_server);
}
