/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executor threads: waited for, or abandoned.
 */
#include "executor/executor_thread.h"

#include <errno.h>
#include <pthread.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/executor/gate.h"
#include "support/executor/thread_factory.h"
#include "support/memory.h"
#include "support/test.h"

struct job {
    struct gate gate;
    char name[16];
};

static void work(void *arg)
{
    struct job *job = arg;

    (void)pthread_getname_np(pthread_self(), job->name, sizeof(job->name));
    gate_task(&job->gate, 0);
}

static weir__executor_thread *start(const weir_thread_factory *factory, struct job *job)
{
    weir__executor_thread *worker;

    assert_int_equal(weir__executor_thread_start(factory, "worker-1", work, job, &worker), 0);
    assert_true(gate_await_arrivals(&job->gate, 1));
    return worker;
}

TEST(executor_thread, runs_its_function_on_a_named_thread)
{
    struct job job = {0};
    weir__executor_thread *worker = start(NULL, &job);

    assert_string_equal(job.name, "worker-1");
    gate_open(&job.gate);
    assert_true(weir__executor_thread_wait(worker, WEIR_NEVER));
}

TEST(executor_thread, reports_whether_it_has_ended)
{
    struct job job = {0};
    weir__executor_thread *worker = start(NULL, &job);

    assert_false(weir__executor_thread_has_ended(worker));
    gate_open(&job.gate);
    while (!weir__executor_thread_has_ended(worker))
        weir__thread_yield();
    assert_true(weir__executor_thread_wait(worker, WEIR_NEVER));
}

/* Both orders: the object is freed by the abandoned thread, or by the abandoning one. */
TEST(executor_thread, abandoned_before_its_end_frees_itself)
{
    struct thread_factory_fixture fixture;
    struct job job = {0};
    weir__executor_thread *worker;

    thread_factory_open(&fixture);
    worker = start(&fixture.factory, &job);
    weir__executor_thread_abandon(worker);
    gate_open(&job.gate);
    thread_factory_close(&fixture);
    assert_int_equal(test_memory_live(), 0);
}

TEST(executor_thread, abandoned_after_its_end_is_freed)
{
    struct thread_factory_fixture fixture;
    struct job job = {0};
    weir__executor_thread *worker;

    thread_factory_open(&fixture);
    worker = start(&fixture.factory, &job);
    gate_open(&job.gate);
    thread_factory_close(&fixture);
    assert_int_equal(test_memory_live(), 1);
    weir__executor_thread_abandon(worker);
    assert_int_equal(test_memory_live(), 0);
}

TEST(executor_thread, abandoned_at_its_end_is_freed_once)
{
    for (int round = 0; round < 64; round++) {
        struct thread_factory_fixture fixture;
        struct job job = {0};
        weir__executor_thread *worker;

        thread_factory_open(&fixture);
        worker = start(&fixture.factory, &job);
        gate_open(&job.gate);
        weir__executor_thread_abandon(worker);
        thread_factory_close(&fixture);
        assert_int_equal(test_memory_live(), 0);
    }
}

TEST(executor_thread, waited_for_touches_no_memory_any_more)
{
    for (int round = 0; round < 64; round++) {
        struct job job = {0};
        weir__executor_thread *worker = start(NULL, &job);

        gate_open(&job.gate);
        assert_true(weir__executor_thread_wait(worker, WEIR_NEVER));
        assert_int_equal(test_memory_live(), 0);
    }
}

/* Glibc and musl destroy thread-specific values after the thread's function has returned. */
static void note_end(void *ended)
{
    for (int i = 0; i < 100; i++)
        weir__thread_yield();
    atomic_store((_Atomic bool *)ended, true);
}

static pthread_key_t key;

static void work_with_a_key(void *ended)
{
    (void)pthread_setspecific(key, ended);
}

TEST(executor_thread, waited_for_has_left_its_thread)
{
    assert_int_equal(pthread_key_create(&key, note_end), 0);
    for (int round = 0; round < 16; round++) {
        _Atomic bool ended = false;
        weir__executor_thread *worker;

        assert_int_equal(
            weir__executor_thread_start(NULL, "keyed", work_with_a_key, &ended, &worker), 0);
        assert_true(weir__executor_thread_wait(worker, WEIR_NEVER));
        assert_true(atomic_load(&ended));
    }
    assert_int_equal(pthread_key_delete(key), 0);
}

TEST(executor_thread, that_does_not_end_in_time_is_abandoned)
{
    struct thread_factory_fixture fixture;
    struct job job = {0};
    weir__executor_thread *worker;

    thread_factory_open(&fixture);
    worker = start(&fixture.factory, &job);
    assert_false(weir__executor_thread_wait(worker, weir__monotonic_now() + weir_ms(1)));
    gate_open(&job.gate);
    thread_factory_close(&fixture);
    assert_int_equal(test_memory_live(), 0);
}

TEST(executor_thread, uses_a_thread_factory)
{
    struct thread_factory_fixture fixture;
    struct job job = {0};
    weir__executor_thread *worker;

    thread_factory_open(&fixture);
    worker = start(&fixture.factory, &job);
    assert_int_equal(fixture.started, 1);
    assert_string_equal(fixture.threads[0].name, "worker-1");
    gate_open(&job.gate);
    assert_true(weir__executor_thread_wait(worker, WEIR_NEVER));
    thread_factory_close(&fixture);
}

TEST(executor_thread, does_not_start_when_the_factory_fails)
{
    weir__executor_thread *worker = NULL;
    struct thread_factory_fixture fixture;
    struct job job = {0};

    thread_factory_open(&fixture);
    fixture.answer = -EPERM;
    assert_int_equal(weir__executor_thread_start(&fixture.factory, "w", work, &job, &worker),
                     -EPERM);
    fixture.answer = 1; /* it should have been negative */
    assert_int_equal(weir__executor_thread_start(&fixture.factory, "w", work, &job, &worker),
                     -EAGAIN);
    assert_null(worker);
    assert_int_equal(job.gate.arrivals.calls, 0);
}

TEST(executor_thread, does_not_start_without_memory)
{
    weir__executor_thread *worker = NULL;
    struct job job = {0};

    for (unsigned n = 1; n <= 2; n++) {
        test_memory_fail_at(n);
        assert_int_equal(weir__executor_thread_start(NULL, "w", work, &job, &worker), -ENOMEM);
        assert_true(test_memory_failed());
        assert_null(worker);
    }
    test_memory_fail_at(0);
    worker = start(NULL, &job);
    gate_open(&job.gate);
    assert_true(weir__executor_thread_wait(worker, WEIR_NEVER));
}
