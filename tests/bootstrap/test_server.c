/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers: what their listeners and connections are given, and what happens when something cannot
 * be had.
 */
#include <weir/server.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/pipeline.h>

#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"

static weir_server *start_on(weir_group *group, struct echo_service *service)
{
    return echo_service_start(service, WEIR_SERVER_OPTIONS(.boss = group));
}

TEST_EACH_LOOP(server, serves_clients)
{
    struct echo_service service = {0};
    weir_server *server = start_on(host->group, &service);
    int peers[3];

    assert_true(weir_channel_is_active(weir_server_listener(server, 0)));
    assert_int_equal(weir_server_listener_count(server), 1);
    assert_non_null(weir_server_listener(server, 0));
    assert_null(weir_server_listener(server, 1));
    for (int i = 0; i < 3; i++)
        peers[i] = raw_client_connect(server);
    for (int i = 2; i >= 0; i--)
        raw_client_echo(peers[i], "good morning");
    for (int i = 0; i < 3; i++)
        raw_client_close(peers[i]);
    assert_true(call_counter_await(&service.closed, 3));
    echo_service_stop(server);
}

static int note_address_index(weir_channel *channel, void *user_data)
{
    _Atomic int *indexes = user_data;

    return indexes[weir_server_address_index(channel)]++ < 2 ? 0 : -EINVAL;
}

TEST_EACH_LOOP(server, connections_know_their_address)
{
    static const char *const more[] = {"127.0.0.1:0", "127.0.0.1:0", NULL};
    _Atomic int indexes[3] = {0};
    weir_server *server = NULL;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0",
                                              .addresses = more, .acceptors = 2,
                                              .init_child = note_address_index,
                                              .user_data = indexes),
                          &server),
        0);
    assert_int_equal(weir_server_listener_count(server), 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(weir_server_address_index(weir_server_listener(server, i)), i / 2);
    for (size_t i = 0; i < 6; i += 2) {
        int peer = raw_client_connect_listener(weir_server_listener(server, i));

        while (indexes[i / 2] == 0)
            sched_yield();
        raw_client_close(peer);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(indexes[i], 1);
    echo_service_stop(server);
}

/* ---- options ---- */

static int refused(const weir_server_options *options)
{
    weir_server *none = NULL;
    int err = weir_server_start(options, &none);

    assert_null(none);
    return err;
}

#define TOO_LONG "unix:/" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define TEN "0123456789"

TEST_EACH_LOOP(server, rejects_invalid_options)
{
    weir_server_options options;
    weir_group *group = host->group;

    log_capture_start();
    options = *WEIR_SERVER_OPTIONS();
    assert_int_equal(refused(&options), -EINVAL);
    assert_true(log_capture_last_contains(".boss, .workers or .loop is required"));
#define REFUSED(...) \
    refused(WEIR_SERVER_OPTIONS(.boss = group, .init_child = echo_service_init, __VA_ARGS__))
    assert_int_equal(REFUSED(.backlog = 1), -EINVAL);
    assert_true(log_capture_last_contains(".address is required"));
    assert_int_equal(REFUSED(.address = "localhost:8007"), -EINVAL);
    assert_true(log_capture_last_contains("localhost:8007: not an address"));
    assert_int_equal(REFUSED(.address = "127.0.0.1:0", .acceptors = -1), -EINVAL);
    assert_int_equal(REFUSED(.address = "127.0.0.1:0", .backlog = -1), -EINVAL);
    assert_int_equal(REFUSED(.address = "inproc:x", .acceptors = 2), -EINVAL);
    assert_int_equal(
        REFUSED(.address = "127.0.0.1:0", .options = WEIR_CHANNEL_OPTIONS(.reads_per_turn = -1)),
        -EINVAL);
    assert_int_equal(REFUSED(.address = TOO_LONG), -ENAMETOOLONG);
    assert_true(log_capture_last_contains("not an address"));
    assert_int_equal(REFUSED(.address = "unix:@x", .acceptors = 2), -EINVAL);
    assert_int_equal(REFUSED(.address = "127.0.0.1:0", .kind = WEIR_KIND_SEQPACKET), -EAFNOSUPPORT);
    assert_true(log_capture_last_contains("no transport of this kind"));
    assert_int_equal(REFUSED(.address = "127.0.0.1:0", .kind = WEIR_KIND_DATAGRAM), -EINVAL);
    assert_true(log_capture_last_contains("no connections"));
    assert_int_equal(refused(WEIR_SERVER_OPTIONS(.boss = group, .address = "127.0.0.1:0")),
                     -EINVAL);
    assert_true(log_capture_last_contains(".init_child is required"));
    assert_int_equal(refused(WEIR_SERVER_OPTIONS(.boss = group, .address = "127.0.0.1:0",
                                                 .kind = WEIR_KIND_DATAGRAM)),
                     -EINVAL);
    assert_true(log_capture_last_contains(".init_server is required"));
}

TEST(server, rejects_a_group_without_loops)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));

    log_capture_start();
    assert_int_equal(refused(WEIR_SERVER_OPTIONS(.boss = group, .address = "127.0.0.1:0",
                                                 .init_child = echo_service_init)),
                     -EINVAL);
    assert_true(log_capture_last_contains("channel needs an event loop"));
    end_group(group);
}

static int int_option(weir_channel *channel, int level, int name)
{
    int value = -1;
    size_t length = sizeof(value);

    assert_int_equal(weir_channel_get_socket_option(channel, level, name, &value, &length), 0);
    return value;
}

TEST_EACH_LOOP(server, gives_its_listener_its_options)
{
    struct echo_service service = {0};
    weir_channel_options options;
    weir_server *server = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.boss = host->group, .backlog = 100,
                                      .options = WEIR_CHANNEL_OPTIONS(.reuse_port = true,
                                                                      .receive_buffer = 1 << 16)));

    weir_channel_get_options(weir_server_listener(server, 0), &options);
    assert_int_equal(options.backlog, 100);
    assert_true(options.reuse_port);
    assert_int_equal(int_option(weir_server_listener(server, 0), SOL_SOCKET, SO_REUSEPORT), 1);
    echo_service_stop(server);
}

/* ---- what a connection is given ---- */

static const weir_attribute greeting = {.name = "greeting", .free = NULL};

static void never_free(void *value)
{
    (void)value;
    abort();
}

static const weir_attribute shared = {.name = "shared", .free = never_free};

struct given {
    struct echo_service service; /* first: it is the user_data */
    weir_server *server;
    weir_channel_options options;
    int nodelay;
    const char *greeting;
    void *shared;
    weir_executor *parent_loop;
};

static int init_given(weir_channel *channel, void *arg)
{
    struct given *given = arg;

    weir_channel_get_options(channel, &given->options);
    given->nodelay = int_option(channel, IPPROTO_TCP, TCP_NODELAY);
    given->greeting = weir_attribute_get(channel, &greeting);
    given->shared = weir_attribute_get(channel, &shared);
    given->parent_loop = weir_channel_executor(weir_channel_parent(channel));
    return echo_service_init(channel, &given->service);
}

TEST_EACH_LOOP(server, gives_each_connection_options_and_attributes_before_it_is_initialised)
{
    struct given given = {0};
    static char text[] = "hello";
    const weir_attribute_value values[] = {{&greeting, text}, {&shared, &given}};
    const weir_socket_option sockets[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                                          {IPPROTO_TCP, TCP_NODELAY, 0}};
    weir_server *server = echo_service_start(
        &given.service,
        WEIR_SERVER_OPTIONS(.boss = host->group, .init_child = init_given,
                            .child_options = WEIR_CHANNEL_OPTIONS(.high_mark = 16 << 10,
                                                                  .socket_options = sockets,
                                                                  .socket_option_count = 2),
                            .child_attributes = values, .child_attribute_count = 2,
                            .attributes = values, .attribute_count = 1));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "x");
    assert_true(call_counter_await(&given.service.opened, 1));
    assert_int_equal(given.options.high_mark, 16 << 10);
    assert_int_equal(given.nodelay, 0); /* in the order given: the last one holds */
    assert_ptr_equal(given.greeting, text);
    assert_ptr_equal(given.shared, &given);
    assert_ptr_equal(given.parent_loop, host->loop);
    assert_ptr_equal(weir_attribute_get(weir_server_listener(server, 0), &greeting), text);
    raw_client_close(peer);
    echo_service_stop(server);
}

TEST_EACH_LOOP(server, gives_each_connection_the_group_of_handlers_that_block)
{
    weir_group *aside = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct given given = {0};
    weir_channel_options listener;
    weir_server *server = echo_service_start(
        &given.service, WEIR_SERVER_OPTIONS(.boss = host->group, .init_child = init_given,
                                            .offload_when_blocking = aside));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "x");
    assert_true(call_counter_await(&given.service.opened, 1));
    assert_ptr_equal(given.options.offload_when_blocking, aside);
    weir_channel_get_options(weir_server_listener(server, 0), &listener);
    assert_null(listener.offload_when_blocking);
    raw_client_close(peer);
    echo_service_stop(server);
    end_group(aside);
}

TEST_EACH_LOOP(server, closes_a_connection_that_cannot_be_initialised_and_continues)
{
    struct echo_service service = {.init_err = -EPERM};
    weir_server *server = start_on(host->group, &service);
    int peer;

    log_capture_start();
    peer = raw_client_connect(server);
    raw_client_receive_end(peer);
    raw_client_close(peer);
    assert_int_equal(service.opened.calls, 0);
    service.init_err = 0;
    peer = raw_client_connect(server);
    raw_client_echo(peer, "again");
    raw_client_close(peer);
    echo_service_stop(server);
}

static int init_letter(weir_channel *channel, void *name);

static const weir_handler letters[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};

static int init_letter(weir_channel *channel, void *arg)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), arg, NULL);
}

struct dump {
    struct echo_service service;
    char text[128];
};

/* Writes what the pipeline is when all initialisers are through: the last handler knows. */
static void on_dump_added(weir_ctx *ctx)
{
    struct dump *dump = *(struct dump **)weir_ctx_state(ctx);

    (void)weir_pipeline_dump(weir_ctx_pipeline(ctx), dump->text, sizeof(dump->text));
}

static int init_dump(void *state, const void *options)
{
    *(const void **)state = options;
    return 0;
}

static const weir_handler dumper = {.name = "dumper",
                                    .state_size = sizeof(struct dump *),
                                    .init = init_dump,
                                    .active = on_dump_added};

static void *letter(int index)
{
    return (void *)(uintptr_t)&letters[index];
}

static int init_nested(weir_channel *channel, void *arg)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);

    (void)arg;
    IGNORE_RESULT(weir_pipeline_add_last(pipeline, letter(1), NULL));
    IGNORE_RESULT(weir_pipeline_add_initializer(pipeline, init_letter, letter(2)));
    return weir_pipeline_add_last(pipeline, letter(3), NULL);
}

static int init_outer(weir_channel *channel, void *arg)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);

    (void)echo_service_init(channel, arg);
    IGNORE_RESULT(weir_pipeline_add_last(pipeline, letter(0), NULL));
    IGNORE_RESULT(weir_pipeline_add_initializer(pipeline, init_nested, NULL));
    return weir_pipeline_add_last(pipeline, &dumper, arg);
}

TEST_EACH_LOOP(server, keeps_the_order_of_nested_initialisers)
{
    struct dump dump = {0};
    weir_server *server = echo_service_start(
        &dump.service, WEIR_SERVER_OPTIONS(.boss = host->group, .init_child = init_outer));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "x");
    raw_client_close(peer);
    assert_true(call_counter_await(&dump.service.closed, 1));
    assert_non_null(strstr(dump.text, "echo <-> a <-> b <-> c <-> d <-> dumper"));
    echo_service_stop(server);
}

/* ---- the listener's own handlers ---- */

struct listening {
    struct echo_service service;
    struct call_counter seen;
    int err;
};

static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    struct listening *listening = *(struct listening **)weir_ctx_state(ctx);

    if (weir_channel_of(msg) != NULL)
        call_counter_add(&listening->seen);
    weir_fire_read(ctx, msg);
}

static const weir_handler gatekeeper = {.name = "gatekeeper",
                                        .state_size = sizeof(struct listening *),
                                        .init = init_dump,
                                        .read = on_accepted};

static int init_listener(weir_channel *channel, void *arg)
{
    struct listening *listening = arg;
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &gatekeeper, arg);

    return err < 0 ? err : listening->err;
}

TEST_EACH_LOOP(server, passes_connections_to_the_listeners_handlers_first)
{
    struct listening listening = {0};
    weir_server *server = echo_service_start(
        &listening.service, WEIR_SERVER_OPTIONS(.boss = host->group, .init_server = init_listener));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "x");
    assert_int_equal(listening.seen.calls, 1);
    raw_client_close(peer);
    echo_service_stop(server);
}

TEST_EACH_LOOP(server, fails_with_the_error_of_the_listeners_initializer)
{
    struct listening listening = {.err = -EXDEV};
    weir_server *server = NULL;

    log_capture_start();
    assert_int_equal(
        echo_service_try(&listening.service,
                         WEIR_SERVER_OPTIONS(.boss = host->group, .init_server = init_listener),
                         &server),
        -EXDEV);
    assert_null(server);
}

static void fail_there(void *arg)
{
    weir_pipeline_fire_error(weir_channel_pipeline(arg), -EMFILE, "no descriptor is left");
}

TEST_EACH_LOOP(server, continues_after_an_error_of_its_listener)
{
    struct echo_service service = {0};
    weir_server *server = start_on(host->group, &service);
    int peer;

    log_capture_start();
    run_on_executor(host->loop, fail_there, weir_server_listener(server, 0));
    assert_true(log_capture_last_contains("no descriptor is left"));
    assert_true(weir_channel_is_open(weir_server_listener(server, 0)));
    peer = raw_client_connect(server);
    raw_client_echo(peer, "x");
    raw_client_close(peer);
    echo_service_stop(server);
}

/* ---- binding ---- */

TEST_EACH_LOOP(server, listens_on_several_addresses_and_closes_all_with_the_first)
{
    struct echo_service service = {0};
    const char *const more[] = {"127.0.0.1:0", "[::1]:0", NULL};
    weir_server *server = echo_service_start(
        &service,
        WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0", .addresses = more));

    assert_int_equal(weir_server_listener_count(server), 3);
    for (size_t i = 0; i < 3; i++) {
        int peer = raw_client_connect_listener(weir_server_listener(server, i));

        raw_client_echo(peer, "x");
        raw_client_close(peer);
    }
    weir_server_close(server);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            weir_channel_await_closed(weir_server_listener(server, i), TEST_TIMEOUT_NS), 0);
    echo_service_stop(server);
}

TEST_EACH_LOOP(server, shares_the_port_that_the_first_acceptor_was_given)
{
    struct echo_service service = {0};
    weir_server *server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group, .acceptors = 3));
    weir_address first, other;

    assert_int_equal(weir_server_listener_count(server), 3);
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &first), 0);
    assert_int_not_equal(weir_address_port(&first), 0);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(weir_channel_local_address(weir_server_listener(server, i), &other), 0);
        assert_true(weir_address_equal(&first, &other));
    }
    echo_service_stop(server);
}

TEST_EACH_LOOP(server, that_cannot_bind_one_address_closes_the_others_and_names_it)
{
    struct echo_service service = {0};
    weir_server *server = start_on(host->group, &service), *second = NULL;
    size_t descriptors = descriptors_open();
    char taken[WEIR_ADDRESS_TEXT_SIZE], sentence[WEIR_ADDRESS_TEXT_SIZE + 32];
    weir_address address;
    weir_promise *started;

    log_capture_start();
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    (void)weir_address_format(&address, taken, sizeof(taken));
    assert_int_equal(weir_promise_create(NULL, &started), 0);
    assert_int_equal(
        weir_server_start_later(
            WEIR_SERVER_OPTIONS(.boss = host->group, .init_child = echo_service_init,
                                .user_data = &service, .address = "127.0.0.1:0",
                                .addresses = ((const char *const[]){"[::1]:0", taken, NULL})),
            started, &second),
        0);
    assert_int_equal(weir_promise_sync(started, TEST_TIMEOUT_NS), -EADDRINUSE);
    (void)snprintf(sentence, sizeof(sentence), "cannot listen on %s: ", taken);
    assert_non_null(strstr(weir_promise_detail(started), sentence));
    assert_true(log_capture_last_contains("cannot listen: "));
    assert_int_equal(descriptors_open(), descriptors); /* all of it, by then */
    assert_false(weir_channel_is_open(weir_server_listener(second, 0)));
    weir_server_release(second);
    weir_promise_release(started);
    echo_service_stop(server);
}

/* ---- addresses that are still in use ---- */

struct heir {
    struct echo_service service; /* first: it is the connections' */
    int last_owner;              /* has the address until it was tried this often */
    unsigned until_try;
    unsigned tries;
};

static int on_try(weir_channel *channel, void *user_data)
{
    struct heir *heir = user_data;

    (void)channel;
    if (++heir->tries == heir->until_try)
        (void)close(heir->last_owner);
    return 0;
}

static void inherit_address(weir_group *group, int family)
{
    struct heir heir = {.until_try = 2}; /* that one there is in any case */
    struct address address;
    weir_address place;
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_server *server;

    heir.last_owner = socket_listen(family, 16, &address);
    place = (weir_address){.length = address.length, .storage = address.storage};
    assert_int_equal(
        weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = group, .init_child = echo_service_init,
                                .init_server = on_try, .user_data = &heir,
                                .address = weir_address_format(&place, text, sizeof(text))),
            &server),
        0);
    assert_int_equal(heir.tries, heir.until_try);
    echo_service_stop(server);
}

/* The sockets of a process that was killed may outlive it by some milliseconds. */
TEST_EACH_LOOP(server, retries_an_internet_address_in_use)
{
    inherit_address(host->group, AF_INET);
}

TEST_EACH_LOOP(server, retries_a_unix_name_in_use)
{
    inherit_address(host->group, AF_UNIX);
}

/* ---- later ---- */

TEST_EACH_LOOP(server, started_later_is_the_promises_value)
{
    struct echo_service service = {0};
    weir_promise *started;
    weir_server *server = NULL;

    assert_int_equal(weir_promise_create(NULL, &started), 0);
    assert_int_equal(
        weir_server_start_later(WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0",
                                                    .init_child = echo_service_init,
                                                    .user_data = &service),
                                started, &server),
        0);
    assert_int_equal(weir_promise_sync(started, TEST_TIMEOUT_NS), 0);
    assert_ptr_equal(weir_promise_value(started), server);
    weir_promise_release(started);
    echo_service_stop(server);
}

TEST_EACH_LOOP(server, whose_promise_is_cancelled_is_closed)
{
    struct echo_service service = {0};
    struct gate gate = {0};
    weir_promise *started;
    weir_server *server = NULL;

    assert_int_equal(weir_promise_create(NULL, &started), 0);
    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    assert_int_equal(
        weir_server_start_later(WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0",
                                                    .init_child = echo_service_init,
                                                    .user_data = &service),
                                started, &server),
        0);
    assert_int_equal(weir_promise_cancel(started), 0);
    gate_open(&gate);
    assert_int_equal(weir_channel_await_closed(weir_server_listener(server, 0), TEST_TIMEOUT_NS),
                     0);
    weir_server_release(server);
    weir_promise_release(started);
}

TEST_EACH_LOOP(server, closed_while_it_starts_leaves_nothing_open)
{
    struct echo_service service = {0};
    struct gate gate = {0};
    size_t descriptors = descriptors_open();
    weir_promise *started;
    weir_server *server = NULL;

    log_capture_start();
    assert_int_equal(weir_promise_create(NULL, &started), 0);
    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    assert_int_equal(
        weir_server_start_later(
            WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0",
                                .addresses = ((const char *const[]){"127.0.0.1:0", NULL}),
                                .init_child = echo_service_init, .user_data = &service),
            started, &server),
        0);
    weir_server_close(server);
    gate_open(&gate);
    assert_int_equal(weir_promise_await(started, TEST_TIMEOUT_NS), 0);
    for (size_t i = 0; i < 2; i++)
        if (weir_channel_is_registered(weir_server_listener(server, i)))
            assert_int_equal(
                weir_channel_await_closed(weir_server_listener(server, i), TEST_TIMEOUT_NS), 0);
    host_turn(host, 2);
    assert_int_equal(descriptors_open(), descriptors);
    weir_server_release(server);
    weir_promise_release(started);
}

struct errand {
    struct host *host;
    struct echo_service service;
    weir_promise *started;
    weir_server *server;
    int err;
};

static void start_there(void *arg)
{
    struct errand *errand = arg;

    errand->err = echo_service_try(
        &errand->service, WEIR_SERVER_OPTIONS(.boss = errand->host->group), &errand->server);
}

static void start_later_there(void *arg)
{
    struct errand *errand = arg;

    errand->err = weir_server_start_later(
        WEIR_SERVER_OPTIONS(.boss = errand->host->group, .address = "127.0.0.1:0",
                            .init_child = echo_service_init, .user_data = &errand->service),
        errand->started, &errand->server);
}

TEST_EACH_LOOP(server, is_not_waited_for_on_a_loop_but_can_be_started_there)
{
    struct errand errand = {.host = host};
    int peer;

    run_on_executor(host->loop, start_there, &errand);
    assert_int_equal(errand.err, -EDEADLK);
    assert_int_equal(weir_promise_create(NULL, &errand.started), 0);
    run_on_executor(host->loop, start_later_there, &errand);
    assert_int_equal(errand.err, 0);
    assert_int_equal(weir_promise_sync(errand.started, TEST_TIMEOUT_NS), 0);
    peer = raw_client_connect(errand.server);
    raw_client_echo(peer, "x");
    raw_client_close(peer);
    weir_promise_release(errand.started);
    echo_service_stop(errand.server);
}

/* ---- what fails ---- */

TEST_EACH_LOOP(server, fails_on_a_group_that_has_ended)
{
    struct echo_service service = {0};
    weir_server *server = NULL;

    log_capture_start();
    host_end(host);
    assert_int_equal(echo_service_try(&service, WEIR_SERVER_OPTIONS(.boss = host->group), &server),
                     WEIR_EREJECTED);
    assert_null(server);
}

TEST_EACH_LOOP(server, closes_connections_when_its_workers_have_ended)
{
    struct echo_service service = {0};
    weir_group *workers = NULL;
    weir_server *server;
    int peer;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 1), &workers), 0);
    server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group, .workers = workers));
    log_capture_start();
    assert_int_equal(weir_group_shutdown(workers, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(workers, TEST_TIMEOUT_NS), 0);
    peer = raw_client_connect(server);
    raw_client_receive_end(peer);
    raw_client_close(peer);
    assert_true(weir_channel_is_open(weir_server_listener(server, 0)));
    assert_true(log_capture_count(WEIR_LOG_WARN) > 0);
    echo_service_stop(server);
    weir_group_release(workers);
}

static int start_two(weir_group *group, struct echo_service *service, weir_server **ret_server)
{
    const weir_attribute_value value = {&shared, service};

    return echo_service_try(service,
                            WEIR_SERVER_OPTIONS(.boss = group, .acceptors = 2,
                                                .child_attributes = &value,
                                                .child_attribute_count = 1),
                            ret_server);
}

static void close_two(weir_server *server)
{
    weir_server_close(server);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            weir_channel_await_closed(weir_server_listener(server, i), TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
}

TEST_EACH_LOOP(server, survives_every_failed_allocation_at_its_start)
{
    struct echo_service service = {0};
    weir_server *server = start_on(host->group, &service); /* the loop's thread is there now */
    size_t descriptors = descriptors_open();
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed; n++) {
        weir_server *other = NULL;
        int err;

        test_memory_fail_at(n);
        err = start_two(host->group, &service, &other);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_true(err == 0 || (err == -ENOMEM && failed));
        if (err == 0)
            close_two(other);
        assert_int_equal(descriptors_open(), descriptors);
    }
    echo_service_stop(server);
}
