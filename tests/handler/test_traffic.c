/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/traffic.h"

#include <errno.h>
#include <pthread.h>

#include "support/memory.h"
#include "support/test.h"

#define START weir_seconds(100)

static weir_traffic *make(const weir_traffic_options *options)
{
    weir_traffic *traffic = NULL;

    assert_int_equal(weir_traffic_create(options, &traffic), 0);
    return traffic;
}

/* In milliseconds since the start, rounded down. */
static int64_t reserve(weir_traffic *traffic, int64_t bytes, int64_t at_ms)
{
    int64_t due_ns = weir__traffic_reserve(traffic, bytes, START + weir_ms(at_ms));

    return due_ns <= START + weir_ms(at_ms) ? at_ms : (due_ns - START) / weir_ms(1);
}

TEST(traffic, passes_everything_without_limits)
{
    weir_traffic *traffic = make(NULL);

    assert_int_equal(reserve(traffic, INT64_MAX, 0), 0);
    assert_int_equal(reserve(traffic, INT64_MAX, 0), 0);
    assert_int_equal(weir__traffic_charge(traffic, INT64_MAX, START), START);
    weir_traffic_release(traffic);
}

TEST(traffic, each_message_waits_until_those_before_are_paid)
{
    weir_traffic *traffic = make(WEIR_TRAFFIC_OPTIONS(.write_rate = 1000, .burst_ns = WEIR_OFF));

    assert_int_equal(reserve(traffic, 100, 0), 0);
    assert_int_equal(reserve(traffic, 50, 0), 100);
    assert_int_equal(reserve(traffic, 0, 0), 150);
    assert_int_equal(reserve(traffic, 10, 20), 150);
    assert_int_equal(reserve(traffic, 10, 1000), 1000); /* no burst */
    assert_int_equal(reserve(traffic, 10, 1000), 1010);
    weir_traffic_release(traffic);
}

/* At 8 GB/s a byte costs an eighth of a nanosecond: each message is rounded up to one. */
TEST(traffic, small_messages_cost_something_too)
{
    weir_traffic *traffic =
        make(WEIR_TRAFFIC_OPTIONS(.write_rate = INT64_C(8000000000), .burst_ns = WEIR_OFF));

    for (int i = 0; i < 100; i++)
        assert_int_equal(weir__traffic_reserve(traffic, 1, START), START + i);
    weir_traffic_release(traffic);
}

TEST(traffic, allows_bursts)
{
    weir_traffic *traffic = make(WEIR_TRAFFIC_OPTIONS(.write_rate = 1000, .burst_ns = weir_ms(50)));

    assert_int_equal(reserve(traffic, 30, 0), 0);
    assert_int_equal(reserve(traffic, 30, 0), 0); /* 50 saved, and one may be owed */
    assert_int_equal(reserve(traffic, 10, 0), 10);
    assert_int_equal(reserve(traffic, 1, 0), 20);
    weir_traffic_release(traffic);
}

TEST(traffic, holds_on_average)
{
    weir_traffic *traffic = make(WEIR_TRAFFIC_OPTIONS(.write_rate = 123457));
    int64_t now_ns = START, sent = 0, due_ns;

    for (; now_ns < START + weir_seconds(100); sent += 777) {
        due_ns = weir__traffic_reserve(traffic, 777, now_ns);
        now_ns = due_ns > now_ns ? due_ns : now_ns;
    }
    assert_in_range(sent, 12345700, 12345700 + 12345 + 2000); /* and a tenth of a second */
    weir_traffic_release(traffic);
}

TEST(traffic, never_waits_longer_than_max_delay)
{
    weir_traffic *traffic =
        make(WEIR_TRAFFIC_OPTIONS(.write_rate = 1, .read_rate = 1, .burst_ns = WEIR_OFF,
                                  .max_delay_ns = weir_ms(200)));

    assert_int_equal(reserve(traffic, INT64_MAX, 0), 0);
    assert_int_equal(reserve(traffic, INT64_MAX, 0), 200);
    assert_int_equal(reserve(traffic, INT64_MAX, 0), 200);
    assert_int_equal(weir__traffic_charge(traffic, INT64_MAX, START), START + weir_ms(200));
    weir_traffic_release(traffic);
}

TEST(traffic, keeps_the_full_debt_without_max_delay)
{
    weir_traffic *traffic =
        make(WEIR_TRAFFIC_OPTIONS(.write_rate = 1000, .read_rate = 1, .burst_ns = WEIR_OFF,
                                  .max_delay_ns = WEIR_NEVER));

    assert_int_equal(reserve(traffic, 100, 0), 0);
    assert_int_equal(reserve(traffic, 60000, 0), 100);
    assert_int_equal(reserve(traffic, INT64_MAX, 0), 60100);
    assert_int_equal(weir__traffic_reserve(traffic, 1, START), WEIR_NEVER);
    assert_int_equal(weir__traffic_charge(traffic, INT64_MAX, START), WEIR_NEVER);
    assert_int_equal(weir__traffic_charge(traffic, INT64_MAX, START), WEIR_NEVER);
    weir_traffic_release(traffic);
    traffic = make(
        WEIR_TRAFFIC_OPTIONS(.write_rate = 1, .burst_ns = WEIR_NEVER, .max_delay_ns = WEIR_NEVER));
    assert_int_equal(reserve(traffic, 101, 0), 0); /* since the clock started */
    assert_int_equal(reserve(traffic, 1, 0), 1000);
    weir_traffic_release(traffic);
}

TEST(traffic, of_reads_is_paid_afterwards)
{
    weir_traffic *traffic = make(WEIR_TRAFFIC_OPTIONS(.read_rate = 1000, .burst_ns = WEIR_OFF));
    int64_t until_ns = weir__traffic_charge(traffic, 100, START);

    assert_in_range(until_ns, START + weir_ms(100), START + weir_ms(100) + 2);
    until_ns = weir__traffic_charge(traffic, 100, START + weir_ms(150));
    assert_in_range(until_ns, START + weir_ms(250), START + weir_ms(250) + 2);
    assert_int_equal(reserve(traffic, 1000000, 0), 0); /* writes have their own limit */
    weir_traffic_release(traffic);
}

TEST(traffic, rates_can_be_changed)
{
    weir_traffic *traffic = make(WEIR_TRAFFIC_OPTIONS(.write_rate = 10, .burst_ns = WEIR_OFF));

    assert_int_equal(reserve(traffic, 10, 0), 0);
    assert_int_equal(weir_traffic_set_rates(traffic, 0, 1000), 0);
    assert_int_equal(reserve(traffic, 10, 0), 1000); /* the debt remains */
    assert_int_equal(reserve(traffic, 10, 0), 1010);
    assert_int_equal(weir_traffic_set_rates(traffic, 0, 0), 0);
    assert_int_equal(reserve(traffic, 10, 0), 0);
    assert_int_equal(weir_traffic_set_rates(traffic, -1, 0), -EINVAL);
    assert_int_equal(weir_traffic_set_rates(traffic, 0, -1), -EINVAL);
    weir_traffic_release(traffic);
}

TEST(traffic, rejects_invalid_options)
{
    weir_traffic *traffic = NULL;

    assert_int_equal(weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.read_rate = -1), &traffic), -EINVAL);
    assert_int_equal(weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.write_rate = -1), &traffic),
                     -EINVAL);
    assert_int_equal(weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.burst_ns = -2), &traffic), -EINVAL);
    assert_int_equal(weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.max_delay_ns = -1), &traffic),
                     -EINVAL);
    test_memory_fail_at(1);
    assert_int_equal(weir_traffic_create(NULL, &traffic), -ENOMEM);
    test_memory_fail_at(0);
    weir_traffic_release(NULL);
}

/* ---- threads ---- */

#define THREADS 4
#define MESSAGES 5000

static void *reserve_many(void *arg)
{
    weir_traffic *traffic = arg;

    for (int i = 0; i < MESSAGES; i++) {
        (void)weir__traffic_reserve(traffic, 1000, START);
        (void)weir__traffic_charge(traffic, 1, START);
        weir__traffic_begin_waiting(traffic, 1);
        weir__traffic_end_waiting(traffic, 1);
        weir__traffic_count_written(traffic, 1);
        weir_traffic_release(weir_traffic_retain(traffic));
    }
    return NULL;
}

TEST(traffic, counts_concurrent_threads_exactly)
{
    weir_traffic *traffic = make(WEIR_TRAFFIC_OPTIONS(.write_rate = 1000000, .burst_ns = WEIR_OFF,
                                                      .max_delay_ns = weir_seconds(1000)));
    weir_traffic_stats stats;
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reserve_many, traffic), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(reserve(traffic, 1, 0), THREADS * MESSAGES); /* 1 ms each */
    weir_traffic_read_stats(traffic, &stats);
    assert_int_equal(stats.bytes_read, THREADS * MESSAGES);
    assert_int_equal(stats.bytes_written, THREADS * MESSAGES);
    assert_int_equal(stats.writes_delayed, THREADS * MESSAGES);
    assert_int_equal(stats.bytes_waiting, 0);
    assert_int_equal(stats.reads_paused, 0);
    weir_traffic_release(traffic);
}
