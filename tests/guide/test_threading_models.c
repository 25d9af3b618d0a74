/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snippets of docs/guide/05-threading-models.md: the same server in each model.
 */
#include <weir/weir.h>

#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/test.h"

#define ADDRESS "127.0.0.1:0"

static weir_group *boss, *workers, *loops;
static weir_server *server;
static struct echo_service service;

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return echo_service_init(channel, &service);
}

static int start_one_loop(void)
{
    /* doc:begin one-loop */
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &loops);

    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.workers = loops, .address = ADDRESS, .init_child = init_child),
            &server);
    /* doc:end */
    return err;
}

static int start_every_loop(void)
{
    /* doc:begin every-loop */
    int err = weir_group_create(NULL, &workers); /* two per CPU */

    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.workers = workers, .address = ADDRESS, .init_child = init_child),
            &server);
    /* doc:end */
    return err;
}

static int start_one_acceptor(void)
{
    /* doc:begin one-acceptor */
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &boss);

    if (!err)
        err = weir_group_create(NULL, &workers); /* two per CPU */
    if (!err)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers,
                                                    .address = ADDRESS, .init_child = init_child),
                                &server);
    /* doc:end */
    return err;
}

static int start_many_acceptors(void)
{
    /* doc:begin many-acceptors */
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 2), &boss);

    if (!err)
        err = weir_group_create(NULL, &workers);
    if (!err)
        err =
            weir_server_start(WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .acceptors = 2,
                                                  .address = ADDRESS, .init_child = init_child),
                              &server);
    /* doc:end */
    return err;
}

static int start_thread_each(void)
{
    /* doc:begin thread-each */
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &boss);

    if (!err)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_BLOCKING, .max_channels = 1000),
                                &workers);
    if (!err)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers,
                                                    .address = ADDRESS, .init_child = init_child),
                                &server);
    /* doc:end */
    return err;
}

static void end(void)
{
    echo_service_stop(server);
    weir_group_release(workers);
    weir_group_release(boss);
    weir_group_release(loops);
    workers = boss = loops = NULL;
    service = (struct echo_service){0};
}

static void visit(void)
{
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "hello");
    assert_true(call_counter_await(&service.opened, 1));
    raw_client_close(peer);
}

TEST(threading_models, one_loop)
{
    assert_int_equal(start_one_loop(), 0);
    visit();
    assert_ptr_equal(service.loops[0], weir_group_at(loops, 0));
    end();
}

TEST(threading_models, one_acceptor_many_workers)
{
    assert_int_equal(start_one_acceptor(), 0);
    visit();
    assert_ptr_not_equal(service.loops[0], weir_group_at(boss, 0));
    end();
}

TEST(threading_models, many_acceptors_many_workers)
{
    assert_int_equal(start_many_acceptors(), 0);
    assert_int_equal(weir_server_listener_count(server), 2);
    visit();
    end();
}

TEST(threading_models, every_loop_accepts)
{
    assert_int_equal(start_every_loop(), 0);
    visit();
    assert_true(weir_server_listener_count(server) == weir_group_count(workers) ||
                weir_server_listener_count(server) == 1); /* the poll backend */
    end();
}

TEST(threading_models, a_thread_per_connection)
{
    weir_group_stats stats;

    assert_int_equal(start_thread_each(), 0);
    visit();
    weir_group_read_stats(workers, &stats);
    assert_int_equal(stats.executors, 1);
    visit();
    end();
}
