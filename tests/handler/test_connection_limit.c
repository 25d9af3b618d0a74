/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits on connections, in total and per address.
 */
#include <weir/connection_limits.h>

#include <weir/embedded.h>
#include <weir/pipeline.h>

#include "channel/transport.h"
#include "os/thread.h"
#include "support/channel/test_channel.h"
#include "support/memory.h"
#include "support/test.h"

static weir_connection_limit *make_limit(size_t max, size_t max_per_address)
{
    weir_connection_limit *limit = NULL;

    assert_int_equal(
        weir_connection_limit_create(
            WEIR_CONNECTION_LIMIT_OPTIONS(.max = max, .max_per_address = max_per_address), &limit),
        0);
    return limit;
}

static weir_embedded *connect_from(weir_connection_limit *limit, const char *address)
{
    weir_embedded *embedded = NULL;

    if (weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.register_later = true, .remote = address),
                             &embedded) < 0)
        return NULL;
    if (weir_connection_limit_add(weir_embedded_pipeline(embedded), limit) == 0)
        (void)weir_embedded_register(embedded);
    return embedded;
}

static bool is_in(weir_embedded *embedded)
{
    return weir_channel_is_active(weir_embedded_channel(embedded));
}

static void assert_stats(weir_connection_limit *limit, size_t open, size_t addresses,
                         uint64_t accepted, uint64_t rejected)
{
    weir_connection_limit_stats stats;

    weir_connection_limit_read_stats(limit, &stats);
    assert_int_equal(stats.open, open);
    assert_int_equal(stats.addresses, addresses);
    assert_int_equal(stats.accepted, accepted);
    assert_int_equal(stats.rejected, rejected);
}

TEST(connection_limit, rejects_connections_over_the_limit)
{
    weir_connection_limit *limit = make_limit(2, 0);
    weir_embedded *first = connect_from(limit, "192.0.2.1:1"),
                  *second = connect_from(limit, "192.0.2.1:2");
    weir_embedded *third = connect_from(limit, "192.0.2.2:1"), *fourth;

    assert_true(is_in(first) && is_in(second));
    assert_false(weir_channel_is_open(weir_embedded_channel(third)));
    assert_stats(limit, 2, 0, 2, 1);
    (void)weir_embedded_finish(first);
    assert_stats(limit, 1, 0, 2, 1);
    fourth = connect_from(limit, "192.0.2.2:1");
    assert_true(is_in(fourth));
    assert_stats(limit, 2, 0, 3, 1);
    weir_embedded_release(first);
    weir_embedded_release(second);
    weir_embedded_release(third);
    weir_embedded_release(fourth);
    assert_stats(limit, 0, 0, 3, 1);
    weir_connection_limit_release(limit);
}

TEST(connection_limit, counts_by_address_regardless_of_port_and_mapping)
{
    weir_connection_limit *limit = make_limit(0, 1);
    weir_embedded *here = connect_from(limit, "192.0.2.1:1"),
                  *again = connect_from(limit, "192.0.2.1:2");
    weir_embedded *mapped = connect_from(limit, "[::ffff:192.0.2.1]:3");
    weir_embedded *there = connect_from(limit, "[2001:db8::1]:1");

    assert_true(is_in(here) && is_in(there));
    assert_false(is_in(again) || is_in(mapped));
    assert_stats(limit, 2, 2, 2, 2);
    weir_embedded_release(here);
    assert_stats(limit, 1, 1, 2, 2);
    weir_embedded_release(again);
    weir_embedded_release(mapped);
    mapped = connect_from(limit, "[::ffff:192.0.2.1]:3");
    assert_true(is_in(mapped));
    weir_embedded_release(mapped);
    weir_embedded_release(there);
    assert_stats(limit, 0, 0, 3, 2);
    weir_connection_limit_release(limit);
}

TEST(connection_limit, does_not_count_peers_without_an_ip_address)
{
    weir_connection_limit *limit = make_limit(0, 1);
    weir_embedded *first = connect_from(limit, "unix:/run/x"),
                  *second = connect_from(limit, "unix:/run/x");

    assert_true(is_in(first) && is_in(second));
    assert_stats(limit, 2, 0, 2, 0);
    weir_embedded_release(first);
    weir_embedded_release(second);
    weir_connection_limit_release(limit);
}

TEST(connection_limit, does_not_count_rejected_peers_by_address)
{
    weir_connection_limit *limit = make_limit(1, 5);
    weir_embedded *first = connect_from(limit, "192.0.2.1:1"),
                  *second = connect_from(limit, "192.0.2.2:1");

    assert_stats(limit, 1, 1, 1, 1);
    weir_embedded_release(first);
    assert_stats(limit, 0, 0, 1, 1);
    weir_embedded_release(second);
    weir_connection_limit_release(limit);
}

TEST(connection_limit, stops_counting_when_removed)
{
    weir_connection_limit *limit = make_limit(1, 0);
    weir_embedded *embedded = connect_from(limit, "192.0.2.1:1");

    assert_int_equal(
        weir_pipeline_remove(weir_embedded_pipeline(embedded), "connection-limit", NULL), 0);
    weir_embedded_run(embedded);
    assert_stats(limit, 0, 0, 1, 0);
    weir_embedded_release(embedded);
    weir_connection_limit_release(limit);
}

TEST(connection_limit, lives_until_the_last_connection_is_closed)
{
    weir_connection_limit *limit = make_limit(1, 1);
    weir_embedded *embedded = connect_from(limit, "192.0.2.1:1");

    weir_connection_limit_release(limit);
    assert_true(is_in(embedded));
    weir_embedded_release(embedded);
    weir_connection_limit_release(NULL);
}

/* The server's handler: consumes accepted channels. */
static void take(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg);
}

static const weir_handler taker = {.name = "taker", .read = take};

TEST(connection_limit, on_a_listener_applies_to_accepted_connections)
{
    weir_connection_limit *limit = make_limit(1, 0);
    weir_channel *accepted[2];
    struct test_channel tc;

    tc_open_with(&tc, &(const struct wire_options){.accepts = true, .silent = true}, NULL);
    assert_int_equal(weir_connection_limit_add(tc.pipeline, limit), 0);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &taker, NULL), 0);
    tc_start(&tc);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wire_create(&tc.events, &(const struct wire_options){.silent = true}, NULL,
                                     tc.channel, &accepted[i]),
                         0);
        weir_pipeline_fire_read(tc.pipeline, weir__channel_msg(weir_channel_retain(accepted[i])));
        weir_channel_register(accepted[i], weir_channel_executor(tc.channel), NULL);
        tc_run(&tc);
    }
    assert_true(weir_channel_is_active(accepted[0]));
    assert_false(weir_channel_is_open(accepted[1]));
    assert_stats(limit, 1, 0, 1, 1);
    for (int i = 0; i < 2; i++) {
        weir_channel_abort(accepted[i], NULL);
        tc_run(&tc);
        weir_channel_release(accepted[i]);
    }
    tc_close(&tc);
    assert_stats(limit, 0, 0, 1, 1);
    weir_connection_limit_release(limit);
}

/* ---- many threads ---- */

#define THREADS 4
#define ROUNDS 300

static void connect_repeatedly(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        weir_embedded *first = connect_from(arg, "192.0.2.1:1"),
                      *second = connect_from(arg, "192.0.2.2:1");

        weir_embedded_release(first);
        weir_embedded_release(second);
    }
}

TEST(connection_limit, is_shared_by_threads)
{
    weir_connection_limit *limit = make_limit(3, 2);
    weir_connection_limit_stats stats;
    weir__thread threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(weir__thread_start("client", connect_repeatedly, limit, &threads[i]), 0);
    for (int i = 0; i < THREADS; i++)
        weir__thread_join(&threads[i]);
    weir_connection_limit_read_stats(limit, &stats);
    assert_int_equal(stats.accepted + stats.rejected, 2 * THREADS * ROUNDS);
    assert_true(stats.accepted >= 2 * ROUNDS);
    assert_stats(limit, 0, 0, stats.accepted, stats.rejected);
    weir_connection_limit_release(limit);
}

/* Without memory to count, connections are rejected, and the counts stay exact. */
TEST(connection_limit, survives_allocation_failures)
{
    for (unsigned n = 1;; n++) {
        bool failed;
        weir_connection_limit *limit = NULL;
        weir_embedded *embedded = NULL;
        weir_connection_limit_stats stats;
        int err;

        test_memory_fail_at(n);
        err = weir_connection_limit_create(WEIR_CONNECTION_LIMIT_OPTIONS(.max_per_address = 1),
                                           &limit);
        if (err == 0)
            embedded = connect_from(limit, "192.0.2.1:1");
        failed = test_memory_failed();
        test_memory_fail_at(0);
        if (embedded != NULL) {
            weir_connection_limit_read_stats(limit, &stats);
            assert_int_equal(stats.open, is_in(embedded));
            assert_int_equal(stats.addresses, is_in(embedded));
        }
        weir_embedded_release(embedded);
        weir_connection_limit_release(limit);
        if (!failed)
            break;
    }
}
