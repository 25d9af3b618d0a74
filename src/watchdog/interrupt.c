/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request of the watchdog, and the signal handler that answers it on the thread of the loop:
 *
 *      IDLE --watchdog asks--> ASKED --a thread takes it--> TAKEN --> DONE --> IDLE
 *                              ASKED --no answer in time--> IDLE
 *
 * Only the thread with the id in the request takes it; a late signal of an earlier request finds
 * nothing to do. A thread that takes it and does not run the loop returns it (ASKED): the kernel
 * may have reused the id of a thread that ended. While the request is TAKEN the watchdog waits
 * without a limit. So the buffer is never written after the watchdog has turned to another loop.
 *
 * A system call that the signal interrupts is restarted (SA_RESTART), except for those that never
 * are, such as poll and nanosleep: see signal(7).
 */
#include "watchdog/interrupt.h"

#include <errno.h>

#include "executor/executor.h"
#include "os/futex.h"
#include "os/signal_handler.h"

#define ANSWER_NS weir_ms(50)
#define ANSWER_RUNNABLE_NS weir_seconds(2) /* of a thread that has no CPU */

enum { IDLE, ASKED, TAKEN, DONE };

static struct {
    weir__signal_handler handler;
    _Atomic uint32_t state;
    _Atomic pid_t thread;
    weir_executor *loop; /* from here on: written by the watchdog while IDLE */
    uint64_t turns;
    weir__snapshot snapshot; /* and by the thread while TAKEN */
} request;

static bool is_in_turn(const weir_executor *loop, uint64_t turns)
{
    return atomic_load_explicit(&loop->stats.turns, memory_order_relaxed) == turns &&
           atomic_load_explicit(&loop->stats.active, memory_order_relaxed) < 0;
}

/* Acquire and release: with weir__interrupt_take. */
static void answer(const void *context)
{
    uint32_t state = ASKED;
    bool is_own;

    if (atomic_load_explicit(&request.thread, memory_order_relaxed) != weir__thread_id())
        return;
    if (!atomic_compare_exchange_strong_explicit(&request.state, &state, TAKEN,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    is_own = weir__executor_is_consumer(request.loop);
    if (is_own && is_in_turn(request.loop, request.turns))
        weir__snapshot_take(&request.snapshot, request.loop, context);
    atomic_store_explicit(&request.state, is_own ? DONE : ASKED, memory_order_release);
    weir__futex_wake(&request.state, 1);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    int err = errno;

    (void)signal;
    (void)info;
    answer(context);
    errno = err;
}

int weir__interrupt_open(int signal)
{
    return weir__signal_handler_install(&request.handler, signal, on_signal);
}

void weir__interrupt_close(void)
{
    weir__signal_handler_remove(&request.handler);
}

/* Withdraws the request. Returns false if a thread has taken it. */
static bool withdraw(void)
{
    uint32_t state = ASKED;

    return atomic_compare_exchange_strong_explicit(&request.state, &state, IDLE,
                                                   memory_order_relaxed, memory_order_relaxed);
}

/* Returns false if no thread has answered. A thread without a CPU may need longer than others. */
static bool wait_for_answer(pid_t thread)
{
    int64_t now_ns = weir__monotonic_now(), end_ns = now_ns + ANSWER_NS;
    int64_t last_ns = now_ns + ANSWER_RUNNABLE_NS;
    uint32_t state;

    while ((state = atomic_load_explicit(&request.state, memory_order_acquire)) != DONE) {
        now_ns = weir__monotonic_now();
        if (state == TAKEN)
            weir__futex_wait(&request.state, TAKEN, WEIR_NEVER);
        else if (now_ns < end_ns)
            weir__futex_wait(&request.state, ASKED, end_ns);
        else if (now_ns < last_ns && weir__thread_is_runnable(thread))
            end_ns = now_ns + ANSWER_NS;
        else if (withdraw())
            return false;
    }
    return true;
}

const weir__snapshot *weir__interrupt_take(weir_executor *loop, uint64_t turns)
{
    pid_t thread = atomic_load_explicit(&loop->thread_id, memory_order_acquire);

    if (thread == 0 || !weir__signal_handler_is_installed(&request.handler))
        return NULL;
    atomic_store_explicit(&request.thread, thread, memory_order_relaxed);
    request.loop = loop;
    request.turns = turns;
    request.snapshot.is_taken = false;
    request.snapshot.frame_count = 0;
    request.snapshot.has_channel = false;
    request.snapshot.handler_count = 0;
    atomic_store_explicit(&request.state, ASKED, memory_order_release);
    if (weir__thread_signal(thread, request.handler.number) < 0 && withdraw())
        return NULL;
    if (!wait_for_answer(thread))
        return NULL;
    atomic_store_explicit(&request.state, IDLE, memory_order_relaxed);
    weir__snapshot_unwind(&request.snapshot);
    return &request.snapshot;
}
