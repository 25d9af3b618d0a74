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

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "bootstrap/kind.h"
#include "channel/attribute.h"
#include "executor/group.h"
#include "executor/promise.h"

#define ACCEPTORS_MAX 1024

void weir_server_options_init(weir_server_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

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

static size_t acceptors_of(const weir_server_options *options)
{
    return options->acceptors > 0 ? (size_t)options->acceptors : 1;
}

static size_t addresses_of(const weir_server_options *options)
{
    const char *const *address = options->addresses;
    size_t count = options->address != NULL;

    for (; address != NULL && *address != NULL; address++)
        count++;
    return count;
}

static const char *address_at(const weir_server_options *options, size_t index)
{
    if (options->address == NULL)
        return options->addresses[index];
    return index == 0 ? options->address : options->addresses[index - 1];
}

static int read_options(const weir_server_options *given, weir_server_options *ret_options)
{
    weir_server_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err < 0)
        return err;
    if (options.boss == NULL)
        options.boss = options.workers;
    if (options.workers == NULL)
        options.workers = options.boss;
    if (options.boss == NULL)
        return weir__kind_refuse("server", "there is no group, neither boss nor workers");
    if (options.kind == WEIR_KIND_DATAGRAM && options.init_child != NULL)
        return weir__kind_refuse("server",
                                 "datagrams have no connections: init_child is of no use");
    if (options.kind == WEIR_KIND_DATAGRAM && options.init_server == NULL)
        return weir__kind_refuse("server", "there is no init_server");
    if (options.kind != WEIR_KIND_DATAGRAM && options.init_child == NULL)
        return weir__kind_refuse("server", "there is no init_child");
    if (addresses_of(&options) == 0)
        return weir__kind_refuse("server", "there is no address");
    if (options.acceptors < 0 || options.acceptors > ACCEPTORS_MAX || options.backlog < 0)
        return weir__kind_refuse("server", "so many acceptors, or such a backlog, cannot be");
    *ret_options = options;
    return 0;
}

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

/* Where every loop of the group accepts, the system has chosen one already. */
static bool stays(const weir_server_options *options)
{
    return options->boss == options->workers && options->acceptors > 1 &&
           !weir__group_grows(options->boss) &&
           acceptors_of(options) >= weir_group_count(options->boss);
}

static int create_server(const weir_server_options *options, weir__server **ret_server)
{
    size_t room = addresses_of(options) * acceptors_of(options);
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
    server->acceptors = acceptors_of(options);
    server->stays = stays(options);
    server->init_child = options->init_child;
    server->init_server = options->init_server;
    server->user_data = options->user_data;
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
    int err = weir__kind_check_group(channel, options->boss);

    if (err == 0)
        err = weir__kind_check_group(channel, options->workers);
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

static int add_listener(weir__server *server, const weir_server_options *options,
                        const weir_channel_options *channel_options, const char *address,
                        size_t acceptor)
{
    weir__listening *listening = &server->listeners[server->count];
    int err = weir__kind_parse(address, &listening->address);

    if (err == 0 && server->acceptors > 1 && !can_share(&listening->address))
        err = weir__kind_refuse("server", "only an internet address can have several acceptors");
    if (err == 0)
        err = weir__kind_create_server(options->kind, &listening->address, channel_options,
                                       options->child_options, &listening->channel);
    if (err < 0)
        return err;
    listening->server = server;
    listening->acceptor = acceptor;
    server->count++;
    return prepare(server, listening->channel, options);
}

static int add_listeners(weir__server *server, const weir_server_options *options)
{
    size_t acceptors = acceptors_of(options), count = addresses_of(options) * acceptors;
    weir_channel_options channel_options;
    int err = weir__options_read(&channel_options, sizeof(channel_options), options->options);

    if (acceptors > 1)
        channel_options.reuse_port = true;
    if (options->backlog > 0)
        channel_options.backlog = options->backlog;
    for (size_t i = 0; i < count && err == 0; i++)
        err = add_listener(server, options, &channel_options, address_at(options, i / acceptors),
                           i % acceptors);
    return err;
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

    if (err < 0)
        return err;
    err = add_listeners(server, options);
    if (err == 0)
        err = give_to_first(server);
    if (err < 0) {
        if (server->count > 0)
            weir_channel_release(server->listeners[0].channel);
        weir__server_release(server);
        return err;
    }
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
    end(server);
}

/* The other acceptors of an address share the port that the first one was given. */
static int share_port(weir__listening *listening)
{
    weir_address local;
    int err;

    if (listening->acceptor > 0 || weir_address_port(&listening->address) != 0)
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
    int err = weir__kind_reason(listening->channel, weir_promise_result(bound));

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
        return weir__group_take(boss, ret_loop);
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
    weir_channel_register(listening->channel, loop, NULL);
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
        weir__executor_let_go(loop);
    }
    if (err < 0)
        fail(server, err);
}

int weir_server_start_later(const weir_server_options *given, weir_promise *done,
                            weir_channel **ret_server)
{
    weir_server_options options;
    weir__server *server;
    int err = read_options(given, &options);

    if (err == 0)
        err = create(&options, &server);
    if (err < 0)
        return err;
    server->started = done != NULL ? weir_promise_retain(done) : NULL;
    *ret_server = weir_channel_retain(server->listeners[0].channel);
    bind_next(server);
    return 0;
}

int weir_server_start(const weir_server_options *options, weir_channel **ret_server)
{
    weir_promise *started;
    weir_channel *server;
    int err = weir__promise_may_wait(NULL);

    if (err == 0)
        err = weir_promise_create(NULL, &started);
    if (err < 0)
        return err;
    err = weir_server_start_later(options, started, &server);
    if (err == 0) {
        err = weir_promise_sync(started, WEIR_NEVER);
        if (err < 0)
            weir_channel_release(server);
    }
    weir_promise_release(started);
    if (err == 0)
        *ret_server = server;
    return err;
}
