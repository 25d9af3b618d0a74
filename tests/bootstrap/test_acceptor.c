/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers without a boss: every loop accepts from the one socket of an address, a connection stays
 * unless its loop has more than its share, and none is forgotten when a listener pauses or stops.
 * Loops of the poll backend cannot share a socket: one accepts, and hands over in turn.
 */
#include <weir/server.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "os/clock.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"

#define LOOPS_MAX 8

static weir_group *make_loops(const struct host *host, int threads)
{
    weir_group *group = NULL;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = threads), &group),
        0);
    return group;
}

static bool shares(const struct host *host)
{
    return host->backend->type->wakes_one;
}

/* ---- counting connections by loop ---- */

struct places {
    const weir_group *group;
    _Atomic unsigned by_loop[LOOPS_MAX];
    _Atomic unsigned all;
    _Atomic unsigned handed_over;
};

static int count_place(weir_channel *channel, void *arg)
{
    struct places *places = arg;
    const weir_executor *loop = weir_channel_executor(channel);

    for (size_t i = 0; i < weir_group_count(places->group); i++)
        if (weir_group_at(places->group, i) == loop)
            places->by_loop[i]++;
    if (loop != weir_channel_executor(weir_channel_parent(channel)))
        places->handed_over++;
    places->all++;
    return 0;
}

static weir_server *start_counting(struct places *places, weir_group *group,
                                   weir_server_options options)
{
    weir_server *server = NULL;

    places->group = group;
    options.workers = group;
    options.init_child = count_place;
    options.user_data = places;
    if (options.address == NULL && options.adopt == NULL)
        options.address = "127.0.0.1:0";
    assert_int_equal(weir_server_start(&options, &server), 0);
    return server;
}

static void await_places(struct places *places, unsigned count)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (places->all < count) {
        assert_true(weir__monotonic_now() < end_ns);
        sched_yield();
    }
}

static void nothing(void *arg)
{
    (void)arg;
}

/* ---- who accepts ---- */

TEST_EACH_LOOP(acceptor, is_on_every_loop_and_has_one_socket)
{
    struct echo_service service = {0};
    weir_group *group = make_loops(host, 3);
    const char *const addresses[] = {"127.0.0.1:0", "127.0.0.1:0", NULL};
    weir_server *server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.workers = group, .addresses = addresses));
    weir_address first, other;
    bool accepts[3] = {0};

    assert_int_equal(weir_server_listener_count(server), shares(host) ? 6 : 2);
    assert_int_equal(weir_server_address_index(weir_server_listener(server, 1)), 1);
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &first), 0);
    for (size_t i = 0; i < weir_server_listener_count(server); i++) {
        weir_channel *listener = weir_server_listener(server, i);

        if (weir_server_address_index(listener) != 0)
            continue;
        assert_int_equal(weir_channel_local_address(listener, &other), 0);
        assert_true(weir_address_equal(&first, &other));
        for (size_t loop = 0; loop < 3; loop++)
            accepts[loop] |= weir_channel_executor(listener) == weir_group_at(group, loop);
    }
    assert_int_equal(accepts[0] + accepts[1] + accepts[2], shares(host) ? 3 : 1);
    echo_service_stop(server);
    weir_group_release(group);
}

TEST_EACH_LOOP(acceptor, is_alone_with_a_boss_a_chooser_or_a_number)
{
    struct echo_service service = {0};
    weir_group *group = make_loops(host, 2), *chosen = NULL;
    const weir_server_options *alone[] = {
        WEIR_SERVER_OPTIONS(.boss = host->group, .workers = group),
        WEIR_SERVER_OPTIONS(.workers = group, .acceptors = 1),
        WEIR_SERVER_OPTIONS(.workers = group, .address = "inproc:acceptor"),
    };

    for (size_t i = 0; i < 3; i++) {
        weir_server *server = echo_service_start(&service, alone[i]);

        assert_int_equal(weir_server_listener_count(server), 1);
        weir_server_close(server);
        assert_int_equal(
            weir_channel_await_closed(weir_server_listener(server, 0), TEST_TIMEOUT_NS), 0);
        weir_server_release(server);
    }
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 2,
                                                          .chooser = weir_chooser_by_cpu()),
                                       &chosen),
                     0);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.workers = chosen));
    assert_int_equal(weir_server_listener_count(server), 1);
    echo_service_stop(server);
    weir_group_release(chosen);
    weir_group_release(group);
}

/* One descriptor, as systemd passes it. */
TEST_EACH_LOOP(acceptor, is_on_every_loop_for_an_adopted_socket)
{
    struct places places = {0};
    struct address address;
    const int adopted = socket_listen(AF_INET, 16, &address);
    weir_group *group = make_loops(host, 2);
    weir_server *server =
        start_counting(&places, group, *WEIR_SERVER_OPTIONS(.adopt = &adopted, .adopt_count = 1));
    int peer;

    assert_int_equal(weir_server_listener_count(server), shares(host) ? 2 : 1);
    peer = raw_client_connect(server);
    await_places(&places, 1);
    raw_client_close(peer);
    echo_service_stop(server);
    weir_group_release(group);
}

/* ---- who keeps ---- */

static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void spread(const struct host *host, const char *where)
{
    enum { CONNECTIONS = 1000 };
    static int peers[CONNECTIONS];
    struct places places = {0};
    weir_group *group = make_loops(host, LOOPS_MAX);
    weir_server *server = start_counting(&places, group, *WEIR_SERVER_OPTIONS(.address = where));

    raise_descriptor_limit();
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        peers[i] = raw_client_connect(server);
        if (i % 20 == 19) /* they settle, also on a slow machine */
            await_places(&places, i + 1);
    }
    for (int i = 0; i < LOOPS_MAX; i++)
        assert_in_range(places.by_loop[i], CONNECTIONS / LOOPS_MAX * 9 / 10,
                        CONNECTIONS / LOOPS_MAX * 11 / 10 + 1);
    for (int i = 0; i < CONNECTIONS; i++)
        raw_client_close(peers[i]);
    echo_service_stop(server);
    weir_group_release(group);
}

TEST_EACH_LOOP(acceptor, gives_every_loop_its_share_within_a_tenth)
{
    spread(host, "127.0.0.1:0");
}

TEST_EACH_LOOP(acceptor, gives_every_loop_its_share_of_a_unix_socket)
{
    spread(host, "unix:@weir-test-acceptor");
}

/* A few connections, each of which may keep a core busy. */
TEST_EACH_LOOP(acceptor, gives_each_of_four_loops_two_of_eight_connections)
{
    struct places places = {0};
    weir_group *group = make_loops(host, 4);
    weir_server *server = start_counting(&places, group, *WEIR_SERVER_OPTIONS());
    int peers[8];

    for (unsigned i = 0; i < 8; i++) {
        peers[i] = raw_client_connect(server);
        await_places(&places, i + 1);
        for (size_t loop = 0; loop < 4; loop++) /* registered, and nothing queued */
            run_on_executor(weir_group_at(group, loop), nothing, NULL);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(places.by_loop[i], 2);
    for (int i = 0; i < 8; i++)
        raw_client_close(peers[i]);
    echo_service_stop(server);
    weir_group_release(group);
}

/*
 * One connection stays, on one of the loops; others come and go, while the clock stands still, so
 * that they seem to last no time.
 */
TEST_EACH_LOOP(acceptor, keeps_connections_that_end_soon)
{
    enum { VISITS = 200 };
    struct places places = {0};
    weir_manual_clock *clock = NULL;
    weir_group *group = NULL;
    weir_server *server;
    int stays;

    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &clock), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 2,
                                                          .clock = weir_manual_clock_clock(clock)),
                                       &group),
                     0);
    server = start_counting(&places, group, *WEIR_SERVER_OPTIONS());
    stays = raw_client_connect(server);
    await_places(&places, 1);
    for (unsigned i = 0; i < VISITS; i++) {
        raw_client_close(raw_client_connect(server));
        await_places(&places, 1 + i + 1);
    }
    if (shares(host))
        assert_in_range(places.handed_over, 0, VISITS / 4);
    raw_client_close(stays);
    echo_service_stop(server);
    weir_group_release(group);
    weir_manual_clock_release(clock);
}

/* ---- listeners that pause ---- */

static void pause_listener(void *arg, int status)
{
    assert_int_equal(status, 0);
    weir_channel_set_auto_read(arg, false);
}

/*
 * All loops are busy when a client comes: a ring has its poll completed by that. Then one listener
 * pauses, and the other has to accept it.
 */
static void pause_one(const struct host *host, size_t paused)
{
    struct places places = {0};
    struct gate gate = {0};
    weir_group *group = make_loops(host, 2);
    weir_server *server = start_counting(&places, group, *WEIR_SERVER_OPTIONS());
    weir_channel *listener = weir_server_listener(server, paused);
    int peer;

    for (size_t i = 0; i < 2; i++)
        gate_hold(&gate, weir_group_at(group, i));
    peer = raw_client_connect(server);
    assert_int_equal(weir_execute(weir_channel_executor(listener), pause_listener, listener), 0);
    gate_open(&gate);
    await_places(&places, 1);
    raw_client_close(peer);
    peer = raw_client_connect(server);
    await_places(&places, 2);
    raw_client_close(peer);
    echo_service_stop(server);
    weir_group_release(group);
}

TEST_EACH_LOOP(acceptor, that_pauses_leaves_its_connection_to_another_loop)
{
    if (!shares(host))
        return;
    pause_one(host, 0);
    pause_one(host, 1);
}

TEST_EACH_LOOP(acceptor, that_pauses_everywhere_lets_connections_wait)
{
    struct places places = {0};
    weir_group *group = make_loops(host, 2);
    weir_server *server = start_counting(&places, group, *WEIR_SERVER_OPTIONS());
    int peer;

    for (size_t i = 0; i < weir_server_listener_count(server); i++)
        weir_channel_set_auto_read(weir_server_listener(server, i), false);
    for (size_t i = 0; i < 2; i++)
        run_on_executor(weir_group_at(group, i), nothing, NULL);
    peer = raw_client_connect(server);
    for (int turn = 0; turn < 10; turn++)
        for (size_t i = 0; i < 2; i++)
            run_on_executor(weir_group_at(group, i), nothing, NULL);
    assert_int_equal(places.all, 0);
    for (size_t i = 0; i < weir_server_listener_count(server); i++)
        weir_channel_set_auto_read(weir_server_listener(server, i), true);
    await_places(&places, 1);
    raw_client_close(peer);
    echo_service_stop(server);
    weir_group_release(group);
}

/* ---- the end ---- */

static void *stop_server(void *server)
{
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    return NULL;
}

/* Clients that have connected and sent when the server is stopped are answered. */
TEST_EACH_LOOP(acceptor, accepts_what_waits_before_it_stops)
{
    struct echo_service service = {0};
    struct gate gate = {0};
    weir_group *group = make_loops(host, 2);
    weir_server *server = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.workers = group,
                                      .child_options = WEIR_CHANNEL_OPTIONS(.drain_waits = true)));
    weir_executor *first = weir_channel_executor(weir_server_listener(server, 0));
    pthread_t stop;
    int64_t end_ns;
    int peers[3];

    for (size_t i = 0; i < 2; i++)
        gate_hold(&gate, weir_group_at(group, i));
    for (int i = 0; i < 3; i++) {
        peers[i] = raw_client_connect(server);
        raw_client_send(peers[i], "hello");
    }
    assert_int_equal(pthread_create(&stop, NULL, stop_server, server), 0);
    end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    while (weir_executor_pending(first) < 2) { /* to accept, and to deregister */
        assert_true(weir__monotonic_now() < end_ns);
        sched_yield();
    }
    gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        raw_client_receive(peers[i], "hello");
        raw_client_close(peers[i]);
    }
    assert_int_equal(pthread_join(stop, NULL), 0);
    weir_server_release(server);
    weir_group_release(group);
}

/* ---- memory ---- */

TEST_EACH_LOOP(acceptor, on_every_loop_survives_every_failed_allocation)
{
    struct echo_service service = {0};
    weir_group *group = make_loops(host, 2);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.workers = group));
    size_t descriptors = descriptors_open();
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed; n++) {
        weir_server *other = NULL;
        int err;

        test_memory_fail_at(n);
        err = echo_service_try(&service, WEIR_SERVER_OPTIONS(.workers = group), &other);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_true(err == 0 || (err == -ENOMEM && failed));
        if (err == 0) {
            weir_server_close(other);
            for (size_t i = 0; i < weir_server_listener_count(other); i++)
                assert_int_equal(
                    weir_channel_await_closed(weir_server_listener(other, i), TEST_TIMEOUT_NS), 0);
            weir_server_release(other);
        }
        assert_int_equal(descriptors_open(), descriptors);
    }
    echo_service_stop(server);
    weir_group_release(group);
}

/* ---- a start that fails ---- */

struct early {
    weir_channel *first;
    int client;
    atomic_uint accepted;
};

static int count_early(weir_channel *channel, void *arg)
{
    struct early *early = arg;

    (void)channel;
    early->accepted++;
    return 0;
}

/* Before the second address is bound, by another loop, a client connects to the first. */
static int connect_early(weir_channel *listener, void *arg)
{
    struct early *early = arg;

    if (early->first == NULL) {
        early->first = listener;
    } else if (early->client < 0) {
        early->client = raw_client_connect_listener(early->first);
        for (int turn = 0; turn < 3; turn++)
            run_on_executor(weir_channel_executor(early->first), nothing, NULL);
    }
    return 0;
}

TEST_EACH_LOOP(acceptor, accepts_nothing_for_a_server_that_does_not_start)
{
    struct early early = {.client = -1};
    struct echo_service service = {0};
    weir_group *group = make_loops(host, 2);
    weir_server *other = echo_service_start(&service, WEIR_SERVER_OPTIONS(.workers = group));
    weir_server *server = NULL;
    char busy[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;

    log_capture_start();
    assert_int_equal(weir_channel_local_address(weir_server_listener(other, 0), &address), 0);
    (void)weir_address_format(&address, busy, sizeof(busy));
    assert_int_equal(
        weir_server_start(
            WEIR_SERVER_OPTIONS(.workers = group, .init_server = connect_early,
                                .init_child = count_early, .user_data = &early,
                                .addresses = ((const char *const[]){"127.0.0.1:0", busy, NULL})),
            &server),
        -EADDRINUSE);
    assert_true(early.client >= 0);
    assert_int_equal(early.accepted, 0);
    (void)close(early.client);
    echo_service_stop(other);
    end_group(group);
}
