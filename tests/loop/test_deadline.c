/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting until a deadline, on each backend: from a nanosecond to days, and never too short. */
#include <unistd.h>

#include "os/thread.h"
#include "support/loop/suite.h"

/*
 * A wait that is interrupted comes back early, with no event either. That is rare, so a test may
 * see a few of those: the kernel interrupts a thread that had a ring, as those of earlier tests,
 * while it takes the ring to pieces.
 */
#define INTERRUPTED_MAX 20

/* Nothing else happens: the wait ends when its time has come. Returns how often it did so before.
 */
static unsigned wait_out(struct driver *driver, int64_t duration_ns)
{
    int64_t deadline_ns = weir__monotonic_now() + duration_ns;
    unsigned waits = 0;

    do {
        assert_int_equal(weir__io_wait(driver->io, deadline_ns), 0);
        assert_false(driver->io->woken);
        assert_false(weir__io_dispatch(driver->io, WEIR_NEVER));
        waits++;
    } while (weir__monotonic_now() < deadline_ns);
    assert_true(weir__monotonic_now() - deadline_ns < TEST_TIMEOUT_NS);
    return waits - 1;
}

/* ---- it comes ---- */

TEST_EACH_BACKEND(deadline, of_nanoseconds_is_not_early)
{
    unsigned early = 0;

    for (int64_t duration_ns = 1; duration_ns < 2000; duration_ns += 7)
        early += wait_out(driver, duration_ns);
    assert_true(early <= INTERRUPTED_MAX);
}

TEST_EACH_BACKEND(deadline, of_microseconds_is_not_early)
{
    unsigned early = 0;

    for (int64_t duration_ns = 1000; duration_ns < 200000; duration_ns += 1999)
        early += wait_out(driver, duration_ns);
    assert_true(early <= INTERRUPTED_MAX);
}

TEST_EACH_BACKEND(deadline, of_milliseconds_is_not_early)
{
    static const int64_t durations_ns[] = {999999,  1000000, 1000001,  1499999,
                                           1500001, 2000000, 10000001, 33333333};
    unsigned early = 0;

    for (size_t i = 0; i < 40; i++)
        early += wait_out(driver, durations_ns[i % (sizeof(durations_ns) / sizeof(int64_t))]);
    assert_true(early <= INTERRUPTED_MAX);
}

TEST_EACH_BACKEND(deadline, beyond_a_second_is_not_early)
{
    assert_true(wait_out(driver, weir_ms(1001)) <= INTERRUPTED_MAX);
}

TEST_EACH_BACKEND(deadline, with_handles_that_are_quiet_is_not_early)
{
    unsigned early = 0;

    for (int i = 0; i < 20; i++)
        peer_receive_start(peer_open_pair(driver, PAIR_TCP), false);
    driver_run_until_idle(driver);
    for (int64_t duration_ns = 1000; duration_ns < weir_ms(1); duration_ns += 20000)
        early += wait_out(driver, duration_ns);
    assert_true(early <= INTERRUPTED_MAX);
}

TEST_EACH_BACKEND(deadline, that_has_passed_is_no_wait)
{
    int64_t begin_ns = weir__monotonic_now();

    for (int i = 0; i < 100; i++) {
        assert_int_equal(weir__io_wait(driver->io, 1), 0);
        assert_int_equal(weir__io_wait(driver->io, begin_ns - i), 0);
        assert_int_equal(weir__io_wait(driver->io, 0), 0);
    }
    assert_true(weir__monotonic_now() - begin_ns < TEST_TIMEOUT_NS);
}

/* ---- something else comes first ---- */

struct alarm {
    weir__io *io;
    int64_t at_ns;
};

static void wake_later(void *arg)
{
    struct alarm *alarm = arg;

    weir__thread_sleep(alarm->at_ns - weir__monotonic_now());
    weir__io_wake(alarm->io);
}

/* A wait of that length goes on until it is woken. */
static void be_woken_from(struct driver *driver, int64_t deadline_ns)
{
    struct alarm alarm = {driver->io, weir__monotonic_now() + weir_ms(20)};
    weir__thread thread;
    bool woken = false;
    int err = 0;

    assert_int_equal(weir__thread_start("alarm", wake_later, &alarm, &thread), 0);
    for (int waits = 0; !woken && waits <= INTERRUPTED_MAX; waits++) {
        err = weir__io_wait(driver->io, deadline_ns);
        woken = driver->io->woken;
        (void)weir__io_dispatch(driver->io, WEIR_NEVER);
    }
    weir__thread_join(&thread);
    assert_int_equal(err, 0);
    assert_true(woken);
    assert_true(weir__monotonic_now() >= alarm.at_ns);
}

TEST_EACH_BACKEND(deadline, of_days_does_not_come)
{
    const int64_t day_ns = weir_seconds(24 * 60 * 60);

    be_woken_from(driver, weir__monotonic_now() + day_ns);
    be_woken_from(driver, weir__monotonic_now() + 25 * day_ns); /* beyond 2^31 ms */
    be_woken_from(driver, weir__monotonic_now() + 50 * day_ns); /* beyond 2^32 ms */
    be_woken_from(driver, weir__monotonic_now() + 10000 * day_ns);
}

TEST_EACH_BACKEND(deadline, at_the_end_of_time_does_not_come)
{
    be_woken_from(driver, WEIR_NEVER - 1);
    be_woken_from(driver, WEIR_NEVER);
}

TEST_EACH_BACKEND(deadline, is_not_waited_for_when_an_event_comes)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    int64_t begin_ns;

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    begin_ns = weir__monotonic_now();
    for (unsigned i = 1; i <= 100; i++) {
        assert_int_equal(peer_remote_send(peer, 10), 10);
        while (peer->bytes < 10ull * i)
            assert_true(driver_step(driver, weir_seconds(3600)));
    }
    assert_true(weir__monotonic_now() - begin_ns < TEST_TIMEOUT_NS);
}

TEST_EACH_BACKEND(deadline, is_not_waited_for_while_something_is_due)
{
    struct address address;
    struct peer *peer = peer_open(driver, socket_new(AF_UNIX, SOCK_STREAM));
    int64_t begin_ns = weir__monotonic_now();
    int listener = socket_listen(AF_UNIX, 1, &address);

    peer_connect(peer, &address);
    while (peer->connects == 0)
        assert_true(driver_step(driver, weir_seconds(3600)));
    peer_close(peer);
    while (peer->detaches == 0)
        assert_true(driver_step(driver, weir_seconds(3600)));
    assert_true(weir__monotonic_now() - begin_ns < TEST_TIMEOUT_NS);
    (void)close(listener);
}
