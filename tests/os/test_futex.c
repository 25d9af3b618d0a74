/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Futexes.
 */
#include "support/test.h"

#include "os/clock.h"
#include "os/futex.h"
#include "os/thread.h"

TEST(futex, another_value_does_not_sleep)
{
    _Atomic uint32_t word = 1;

    weir__futex_wait(&word, 0, WEIR_NEVER);
    assert_int_equal(atomic_load(&word), 1);
}

TEST(futex, a_deadline_in_the_past_does_not_sleep)
{
    _Atomic uint32_t word = 0;

    weir__futex_wait(&word, 0, 0);
    weir__futex_wait(&word, 0, 1);
    weir__futex_wait(&word, 0, -1);
    weir__futex_wait(&word, 0, INT64_MIN);
    assert_int_equal(atomic_load(&word), 0);
}

TEST(futex, the_deadline_ends_the_sleep)
{
    _Atomic uint32_t word = 0;
    int64_t deadline = weir__monotonic_now() + weir_ms(2);
    int waits = 0;

    while (weir__monotonic_now() < deadline) {
        weir__futex_wait(&word, 0, deadline);
        waits++;
    }
    assert_true(waits < 100); /* slept once, unless interrupted by signals */
}

static _Atomic uint32_t turn;

/* Waits for odd turns and makes them even. */
static void answer(void *arg)
{
    int rounds = *(int *)arg;

    for (int i = 0; i < rounds; i++) {
        while (atomic_load(&turn) % 2 == 0)
            weir__futex_wait(&turn, atomic_load(&turn) & ~1u, WEIR_NEVER);
        atomic_fetch_add(&turn, 1);
        weir__futex_wake(&turn, 1);
    }
}

TEST(futex, a_wake_up_ends_the_sleep)
{
    weir__thread thread;
    int rounds = 1000;

    assert_int_equal(weir__thread_start("answer", answer, &rounds, &thread), 0);
    for (int i = 0; i < rounds; i++) {
        uint32_t mine = atomic_fetch_add(&turn, 1) + 1;

        weir__futex_wake(&turn, 1);
        while (atomic_load(&turn) == mine)
            weir__futex_wait(&turn, mine, WEIR_NEVER);
    }
    weir__thread_join(&thread);
    assert_int_equal(atomic_load(&turn), 2 * rounds);
}
