/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 28, the three reactor models, chosen by options alone: who accepts, and where connections live.
 */
#include <weir/server.h>

#include <stdlib.h>

#include <weir/transport.h>

#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/group.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"

#define VISITORS 12

static weir_group *make_loops(const struct host *host, int threads)
{
    weir_group *group = NULL;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = threads), &group),
        0);
    return group;
}

/* Everybody comes, is greeted, and goes; then it is known where they were. */
static void receive_visitors(weir_server *server, struct echo_service *service)
{
    int peers[VISITORS];

    for (int i = 0; i < VISITORS; i++) {
        peers[i] = raw_client_connect(server);
        raw_client_echo(peers[i], "hello");
    }
    assert_int_equal(service->opened.calls, VISITORS);
    for (int i = 0; i < VISITORS; i++)
        raw_client_close(peers[i]);
    assert_true(call_counter_await(&service->closed, VISITORS));
}

static int lived_on(const struct echo_service *service, const weir_executor *loop)
{
    int count = 0;

    for (int i = 0; i < VISITORS; i++)
        count += service->loops[i] == loop;
    return count;
}

TEST_EACH_LOOP(reactor, is_one_loop_for_everything)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));

    receive_visitors(server, &service);
    assert_ptr_equal(weir_channel_executor(weir_server_listener(server, 0)), host->loop);
    assert_int_equal(lived_on(&service, host->loop), VISITORS);
    echo_service_stop(server);
}

TEST_EACH_LOOP(reactor, is_one_acceptor_and_many_workers)
{
    struct echo_service service = {0};
    weir_group *workers = make_loops(host, 3);
    weir_server *server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group, .workers = workers));

    receive_visitors(server, &service);
    assert_ptr_equal(weir_channel_executor(weir_server_listener(server, 0)), host->loop);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(lived_on(&service, weir_group_at(workers, i)), VISITORS / 3);
    echo_service_stop(server);
    weir_group_release(workers);
}

TEST_EACH_LOOP(reactor, is_many_acceptors_and_many_workers)
{
    struct echo_service service = {0};
    weir_group *boss = make_loops(host, 2), *workers = make_loops(host, 3);
    weir_server *server = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .acceptors = 2));

    assert_int_equal(weir_server_listener_count(server), 2);
    for (size_t i = 0; i < 2; i++)
        assert_ptr_equal(weir_channel_executor(weir_server_listener(server, i)),
                         weir_group_at(boss, i));
    receive_visitors(server, &service);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(lived_on(&service, weir_group_at(workers, i)), VISITORS / 3);
    echo_service_stop(server);
    weir_group_release(workers);
    weir_group_release(boss);
}

static int init_child(weir_channel *channel, void *arg)
{
    const weir_executor *here = weir_channel_executor(channel);

    if (here != weir_channel_executor(weir_channel_parent(channel)))
        abort();
    return echo_service_init(channel, arg);
}

/* A variant of the third: every loop accepts for itself, and nothing is handed over. */
TEST_EACH_LOOP(reactor, leaves_a_connection_where_every_loop_accepts)
{
    struct echo_service service = {0};
    weir_group *group = make_loops(host, 2);
    weir_server *server = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.boss = group, .acceptors = 2, .init_child = init_child));

    receive_visitors(server, &service);
    assert_int_equal(lived_on(&service, weir_group_at(group, 0)) +
                         lived_on(&service, weir_group_at(group, 1)),
                     VISITORS);
    echo_service_stop(server);
    weir_group_release(group);
}

static weir_server *adopt(struct echo_service *service, weir_group *group, const int *listeners,
                          size_t count, weir_init_fn *init)
{
    weir_server *server = NULL;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = group, .acceptors = 2, .adopt = listeners,
                                              .adopt_count = count, .init_child = init,
                                              .user_data = service),
                          &server),
        0);
    return server;
}

/* As those are that a process hands to the next. */
TEST_EACH_LOOP(reactor, leaves_a_connection_where_every_loop_accepts_what_was_handed_over)
{
    struct echo_service before = {0}, service = {0};
    weir_group *group = make_loops(host, 2);
    weir_server *server =
        echo_service_start(&before, WEIR_SERVER_OPTIONS(.boss = host->group, .acceptors = 2));
    int listeners[2];

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            weir_channel_duplicate_descriptor(weir_server_listener(server, i), &listeners[i]), 0);
    echo_service_stop(server);
    server = adopt(&service, group, listeners, 2, init_child);
    receive_visitors(server, &service);
    echo_service_stop(server);
    weir_group_release(group);
}

/* As systemd hands them over: one for each address, however many loops there are. */
TEST_EACH_LOOP(reactor, shares_out_the_connections_where_one_loop_accepts_for_all)
{
    struct echo_service service = {0};
    struct address addresses[2];
    const int listeners[] = {socket_listen(AF_INET, 16, &addresses[0]),
                             socket_listen(AF_INET, 16, &addresses[1])};
    weir_group *group = make_loops(host, 2);
    weir_server *server = adopt(&service, group, listeners, 2, echo_service_init);

    receive_visitors(server, &service); /* they come to the first */
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(lived_on(&service, weir_group_at(group, i)), VISITORS / 2);
    echo_service_stop(server);
    weir_group_release(group);
}
