/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waking a backend from other threads, on each backend.
 */
#include "os/thread.h"
#include "support/loop/suite.h"

#define THREADS 8
#define ROUNDS 10000
#define ROUNDS_NS weir_seconds(2) /* fewer on a busy machine, where each takes two time slices */

static int64_t far_away(void)
{
    return weir__monotonic_now() + TEST_TIMEOUT_NS;
}

/* Waits, and has been woken before its deadline. */
static bool is_woken(struct driver *driver, int64_t deadline_ns)
{
    bool woken;

    do {
        assert_true(weir__io_wait(driver->io, deadline_ns) >= 0);
        woken = driver->io->woken;
        (void)weir__io_dispatch(driver->io, WEIR_NEVER);
    } while (!woken && weir__monotonic_now() < deadline_ns);
    return woken;
}

/* ---- on the loop's own thread ---- */

TEST_EACH_BACKEND(wake, before_the_wait_ends_it)
{
    for (int i = 0; i < 100; i++) {
        weir__io_wake(driver->io);
        assert_true(is_woken(driver, far_away()));
    }
}

TEST_EACH_BACKEND(wake, is_seen_by_a_wait_that_does_not_block)
{
    for (int i = 0; i < 100; i++) {
        weir__io_wake(driver->io);
        assert_true(weir__io_wait(driver->io, 0) >= 0);
        assert_true(driver->io->woken);
        (void)weir__io_dispatch(driver->io, WEIR_NEVER);
    }
}

TEST_EACH_BACKEND(wake, many_times_ends_one_wait)
{
    for (int i = 0; i < 1000; i++)
        weir__io_wake(driver->io);
    assert_true(is_woken(driver, far_away()));
    while (is_woken(driver, weir__monotonic_now() + weir_ms(5)))
        continue; /* a few more is allowed, for ever is not */
    assert_false(is_woken(driver, weir__monotonic_now() + weir_ms(5)));
}

TEST_EACH_BACKEND(wake, is_no_event)
{
    int events;

    weir__io_wake(driver->io);
    events = weir__io_wait(driver->io, far_away());
    assert_int_equal(events, 0);
    assert_false(weir__io_dispatch(driver->io, WEIR_NEVER));
}

TEST_EACH_BACKEND(wake, not_called_is_not_seen)
{
    assert_false(is_woken(driver, weir__monotonic_now() + weir_ms(5)));
}

TEST_EACH_BACKEND(wake, survives_a_rebuild)
{
    weir__io_wake(driver->io);
    assert_int_equal(weir__io_rebuild(driver->io), 0);
    weir__io_wake(driver->io);
    assert_true(is_woken(driver, far_away()));
    weir__io_wake(driver->io);
    assert_true(is_woken(driver, far_away()));
}

/* ---- from other threads ---- */

/* The loop asks for a wake-up by its number; a thread answers. */
struct bell {
    weir__io *io;
    _Atomic unsigned asked;
    _Atomic unsigned answered;
    _Atomic bool ended;
};

static void answer_each(void *arg)
{
    struct bell *bell = arg;
    unsigned answered = 0;

    while (!atomic_load(&bell->ended)) {
        if (atomic_load(&bell->asked) == answered) {
            weir__thread_yield();
            continue;
        }
        answered++;
        atomic_store(&bell->answered, answered);
        weir__io_wake(bell->io);
    }
}

/* The wake-up may come before, in or after the moment when the wait begins. */
TEST_EACH_BACKEND(wake, is_never_lost)
{
    int64_t end_ns = weir__monotonic_now() + ROUNDS_NS;
    struct bell bell = {.io = driver->io};
    weir__thread thread;
    bool lost = false;

    assert_int_equal(weir__thread_start("bell", answer_each, &bell, &thread), 0);
    for (unsigned i = 1; i <= ROUNDS && !lost && weir__monotonic_now() < end_ns; i++) {
        atomic_store(&bell.asked, i);
        if (i % 3 == 0)
            weir__thread_yield();
        while (atomic_load(&bell.answered) < i && !lost)
            lost = !is_woken(driver, far_away());
    }
    atomic_store(&bell.ended, true);
    weir__thread_join(&thread);
    assert_false(lost);
}

static void ring_often(void *arg)
{
    struct bell *bell = arg;

    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        atomic_fetch_add(&bell->answered, 1);
        weir__io_wake(bell->io);
    }
}

/* What a thread did before its wake-up is seen after the wait that it has ended. */
TEST_EACH_BACKEND(wake, from_many_threads_is_never_lost)
{
    const unsigned all = THREADS * (ROUNDS / 4);
    struct bell bell = {.io = driver->io};
    weir__thread threads[THREADS];
    bool lost = false;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(weir__thread_start("ringer", ring_often, &bell, &threads[i]), 0);
    while (atomic_load(&bell.answered) < all && !lost)
        lost = !is_woken(driver, far_away());
    for (int i = 0; i < THREADS; i++)
        weir__thread_join(&threads[i]);
    assert_false(lost);
    while (is_woken(driver, weir__monotonic_now() + weir_ms(5)))
        continue;
}

TEST_EACH_BACKEND(wake, from_many_threads_in_the_midst_of_traffic)
{
    struct peer *peers[2];
    struct bell bell = {.io = driver->io};
    weir__thread threads[THREADS];
    int pair[2];

    socket_pair(PAIR_TCP, pair);
    for (int i = 0; i < 2; i++) {
        peers[i] = peer_open(driver, pair[i]);
        peer_receive_start(peers[i], false);
        peer_send(peers[i], 8 << 20);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(weir__thread_start("ringer", ring_often, &bell, &threads[i]), 0);
    for (int i = 0; i < 100000 && peers[0]->bytes + peers[1]->bytes < 16 << 20; i++)
        (void)driver_step(driver, weir_ms(10));
    for (int i = 0; i < THREADS; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(peers[0]->bytes, 8 << 20);
    assert_int_equal(peers[1]->bytes, 8 << 20);
}
