/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event loops driven by their owner: which thread may run them, what one run does, and how they
 * work inside another main loop that sees only a descriptor and a timeout.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/loop.h>
#include <weir/manual.h>
#include <weir/timer.h>

#include "os/system.h"
#include "support/executor/call_counter.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/counted_memory.h"
#include "support/loop/fd_event.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/test.h"

static weir_executor *make_loop(const struct host *host, weir_loop_options *options)
{
    weir_executor *loop = NULL;

    options->size = sizeof(*options);
    options->io = weir_loop_io(host->loop);
    assert_int_equal(weir_loop_create(options, &loop), 0);
    assert_non_null(loop);
    return loop;
}

static weir_executor *make_plain_loop(const struct host *host)
{
    weir_loop_options options = {0};

    return make_loop(host, &options);
}

static int run_now(weir_executor *loop)
{
    return weir_loop_run_once(loop, 0);
}

/* ---- making one ---- */

TEST_EACH_LOOP(manual_loop, has_defaults)
{
    weir_executor *loop = make_plain_loop(host);

    assert_string_equal(weir_executor_name(loop), "loop");
    assert_int_equal(weir_executor_state(loop), WEIR_EXECUTOR_STARTED);
    assert_int_equal(weir_loop_io(loop), weir_loop_io(host->loop));
    assert_true(weir_in_executor(loop));
    assert_int_equal(run_now(loop), 0);
    assert_true(weir_loop_timeout(loop) == WEIR_NEVER);
    weir_executor_release(loop);
}

TEST(manual_loop, has_defaults_step_by_step)
{
    weir_loop_options options;
    weir_executor *loop;

    memset(&options, 0xff, sizeof(options));
    options = *WEIR_LOOP_OPTIONS();
    options.name = "main";
    assert_int_equal(weir_loop_create(&options, &loop), 0);
    assert_string_equal(weir_executor_name(loop), "main");
    assert_true(weir_loop_io(loop) == WEIR_IO_EPOLL || weir_loop_io(loop) == WEIR_IO_URING);
    weir_executor_release(loop);
}

TEST(manual_loop, refuses_bad_options)
{
    const weir_loop_options *const wrong[] = {
        WEIR_LOOP_OPTIONS(.max_pending = -1),      WEIR_LOOP_OPTIONS(.task_cap_ns = -2),
        WEIR_LOOP_OPTIONS(.io_ratio = 101),        WEIR_LOOP_OPTIONS(.io = WEIR_IO_NONE),
        WEIR_LOOP_OPTIONS(.io = WEIR_IO_BLOCKING), WEIR_LOOP_OPTIONS(.adaptive_limit_ns = -1),
        &(const weir_loop_options){.size = 1},
    };
    weir_executor *loop = NULL;

    log_capture_start();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(weir_loop_create(wrong[i], &loop), -EINVAL);
    assert_null(loop);
}

TEST_EACH_LOOP(manual_loop, is_not_made_without_memory)
{
    weir_loop_options options = {.size = sizeof(options), .io = weir_loop_io(host->loop)};
    weir_executor *loop = NULL;
    size_t live = test_memory_live();
    int err;

    log_capture_start();
    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_loop_create(&options, &loop);
        if (!test_memory_failed())
            break;
        if (err == 0) { /* a ring does without buffers */
            assert_true(log_capture_last_contains("receives by poll"));
            weir_executor_release(loop);
            loop = NULL;
            continue;
        }
        assert_int_equal(err, -ENOMEM);
        assert_null(loop);
        assert_int_equal(test_memory_live(), live);
    }
    test_memory_fail_at(0);
    assert_int_equal(err, 0);
    weir_executor_release(loop);
}

/* ---- the owner ---- */

struct attempt {
    weir_executor *loop;
    int own;
    int run;
    int64_t timeout_ns;
};

static void attempt_all(void *arg)
{
    struct attempt *attempt = arg;

    attempt->run = run_now(attempt->loop);
    attempt->timeout_ns = weir_loop_timeout(attempt->loop);
    attempt->own = weir_loop_claim(attempt->loop);
}

TEST_EACH_LOOP(manual_loop, is_run_by_its_owner_only)
{
    struct attempt attempt = {.loop = make_plain_loop(host)};
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(attempt.loop, call_counter_task, &counter), 0);
    run_on_other_thread(attempt_all, &attempt);
    assert_int_equal(attempt.run, WEIR_EWRONGTHREAD);
    assert_int_equal(attempt.own, -EALREADY);
    assert_true(attempt.timeout_ns == WEIR_NEVER);
    assert_int_equal(atomic_load(&counter.calls), 0);
    assert_int_equal(run_now(attempt.loop), 1);
    weir_executor_release(attempt.loop);
}

/* The ring belongs to the thread that owns the loop. */
static void own_and_use(void *arg)
{
    struct attempt *attempt = arg;
    struct fd_event event = {0};

    attempt->own = weir_loop_claim(attempt->loop);
    attempt->run = run_now(attempt->loop);
    fd_event_open(&event, attempt->loop);
    (void)run_now(attempt->loop);
    fd_event_trigger(&event);
    while (atomic_load(&event.triggered.calls) == 0)
        (void)weir_loop_run_once(attempt->loop, weir_seconds(1));
    fd_event_detach(&event);
    while (atomic_load(&event.closed.calls) == 0)
        (void)weir_loop_run_once(attempt->loop, weir_seconds(1));
    fd_event_free(&event);
    (void)weir_executor_shutdown(attempt->loop, 0, 0);
    while (run_now(attempt->loop) != WEIR_ETERMINATED) {
    }
}

TEST_EACH_LOOP(manual_loop, is_owned_once)
{
    weir_loop_options options = {.claim_later = true};
    struct attempt attempt = {.loop = make_loop(host, &options)};
    struct call_counter counter = {0};

    assert_int_equal(run_now(attempt.loop), WEIR_ENOOWNER);
    assert_int_equal(weir_execute(attempt.loop, call_counter_task, &counter), 0);
    run_on_other_thread(own_and_use, &attempt);
    assert_int_equal(attempt.own, 0);
    assert_int_equal(attempt.run, 1);
    assert_int_equal(weir_loop_claim(attempt.loop), -EALREADY);
    weir_executor_release(attempt.loop);
}

TEST_EACH_LOOP(manual_loop, functions_refuse_other_kinds)
{
    weir_executor *manual;

    assert_int_equal(weir_manual_create(NULL, &manual), 0);
    assert_int_equal(weir_loop_claim(manual), -EINVAL);
    assert_int_equal(weir_loop_claim(NULL), -EINVAL);
    assert_int_equal(weir_loop_run_once(host->loop, 0), -EINVAL);
    assert_int_equal(weir_loop_run_once(manual, 0), -EINVAL);
    assert_int_equal(weir_loop_descriptor(host->loop), -EINVAL);
    assert_true(weir_loop_timeout(host->loop) == WEIR_NEVER);
    weir_executor_release(manual);
    manual = make_plain_loop(host);
    assert_int_equal(weir_manual_run_once(manual, 0, 0), -EINVAL);
    assert_int_equal(weir_loop_run_once(manual, -1), -EINVAL);
    weir_executor_release(manual);
}

/* ---- one run ---- */

struct inside {
    weir_executor *current;
    int run;
};

static void check_inside(void *arg, int status)
{
    struct inside *inside = arg;

    if (status < 0)
        return;
    inside->current = weir_executor_current();
    inside->run = run_now(inside->current);
}

TEST_EACH_LOOP(manual_loop, is_current_while_it_runs)
{
    weir_executor *loop = make_plain_loop(host);
    struct inside inside = {0};

    assert_int_equal(weir_execute(loop, check_inside, &inside), 0);
    assert_int_equal(run_now(loop), 1);
    assert_ptr_equal(inside.current, loop);
    assert_int_equal(inside.run, -EBUSY);
    assert_null(weir_executor_current());
    weir_executor_release(loop);
}

TEST_EACH_LOOP(manual_loop, does_not_wait_by_default)
{
    weir_executor *loop = make_plain_loop(host);
    struct call_counter timer = {0};

    assert_int_equal(weir_schedule(loop, weir_seconds(3600), call_counter_task, &timer, NULL), 0);
    for (int i = 0; i < 10; i++)
        assert_true(run_now(loop) >= 0);
    assert_true(weir_loop_timeout(loop) > weir_seconds(3500));
    weir_executor_release(loop);
    assert_int_equal(atomic_load(&timer.cancelled), 1);
}

TEST_EACH_LOOP(manual_loop, waits_until_its_next_timer)
{
    weir_executor *loop = make_plain_loop(host);
    int64_t start_ns = weir__monotonic_now();
    struct call_counter timer = {0};

    assert_int_equal(weir_schedule(loop, weir_ms(3), call_counter_task, &timer, NULL), 0);
    assert_true(weir_loop_timeout(loop) <= weir_ms(3));
    while (atomic_load(&timer.calls) == 0)
        assert_true(weir_loop_run_once(loop, WEIR_NEVER) >= 0);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(3));
    weir_executor_release(loop);
}

TEST_EACH_LOOP(manual_loop, waits_at_most_the_given_time)
{
    weir_executor *loop = make_plain_loop(host);
    int64_t start_ns = weir__monotonic_now();

    assert_int_equal(weir_loop_run_once(loop, weir_ms(3)), 0);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(3));
    weir_executor_release(loop);
}

struct submission {
    weir_executor *loop;
    struct call_counter *counter;
    struct fd_event *event;
    weir__thread thread;
};

/* When the owner sleeps inside its run, and not before. */
static void submit_to_waiting(void *arg)
{
    struct submission *submission = arg;

    while (atomic_load(&submission->loop->next_wakeup) == WEIR__AWAKE)
        weir__thread_yield();
    if (submission->event != NULL)
        fd_event_trigger(submission->event);
    else
        IGNORE_RESULT(weir_execute(submission->loop, call_counter_task, submission->counter));
}

TEST_EACH_LOOP(manual_loop, waits_until_it_is_woken)
{
    struct call_counter counter = {0};
    struct submission submission = {.loop = make_plain_loop(host), .counter = &counter};

    atomic_store(&submission.loop->next_wakeup, WEIR__AWAKE); /* until it waits */
    assert_int_equal(
        weir__thread_start("submitter", submit_to_waiting, &submission, &submission.thread), 0);
    assert_int_equal(weir_loop_run_once(submission.loop, WEIR_NEVER), 1);
    weir__thread_join(&submission.thread);
    assert_int_equal(atomic_load(&counter.run), 1);
    weir_executor_release(submission.loop);
}

static void end_loop(weir_executor *loop)
{
    int err;

    assert_int_equal(weir_executor_shutdown(loop, 0, weir_seconds(10)), 0);
    do {
        err = weir_loop_run_once(loop, weir_seconds(1));
    } while (err >= 0);
    assert_int_equal(err, WEIR_ETERMINATED);
    weir_executor_release(loop);
}

TEST_EACH_LOOP(manual_loop, waits_until_there_is_io_and_counts_it)
{
    struct fd_event event = {0};
    struct submission submission = {.loop = make_plain_loop(host), .event = &event};

    fd_event_open(&event, submission.loop);
    assert_int_equal(run_now(submission.loop), 0);
    atomic_store(&submission.loop->next_wakeup, WEIR__AWAKE);
    assert_int_equal(
        weir__thread_start("ringer", submit_to_waiting, &submission, &submission.thread), 0);
    assert_int_equal(weir_loop_run_once(submission.loop, WEIR_NEVER), 1);
    weir__thread_join(&submission.thread);
    assert_int_equal(atomic_load(&event.triggered.calls), 1);
    end_loop(submission.loop);
    fd_event_free(&event);
}

struct listener {
    weir__io_handle handle;
    struct counted_memory memory;
    size_t bytes;
};

static void on_received(weir__io_handle *handle, const weir__io_block *block, size_t length)
{
    struct listener *listener = WEIR_CONTAINER_OF(handle, struct listener, handle);

    listener->bytes += length;
    counted_memory_free(&listener->memory, block);
}

static void on_nothing(weir__io_handle *handle)
{
    (void)handle;
}

static const weir__io_owner owner = {
    .received = on_received,
    .read_complete = on_nothing,
    .detached = on_nothing,
};

/* What is received late, because there was no memory for it, is I/O like any other. */
TEST_EACH_LOOP(manual_loop, does_not_wait_on_after_a_late_receive)
{
    weir_executor *loop = make_plain_loop(host);
    struct listener listener = {.memory.refuse = 1};
    weir__io_memory memory = counted_memory_functions(&listener.memory);
    int pair[2], done = 0;

    weir__io_set_memory(weir__loop_io(loop), &memory);
    socket_pair(PAIR_TCP, pair);
    weir__io_handle_init(&listener.handle, pair[0], &owner);
    assert_int_equal(weir__io_attach(weir__loop_io(loop), &listener.handle), 0);
    weir__io_receive_start(&listener.handle, false);
    assert_int_equal(send(pair[1], "late", 4, 0), 4);
    for (int i = 0; i < 20 && listener.bytes == 0; i++)
        done = weir_loop_run_once(loop, weir_seconds(2));
    assert_int_equal(listener.bytes, 4);
    assert_true(done > 0);
    weir__io_close(&listener.handle);
    assert_int_equal(weir_loop_run_once(loop, weir_seconds(2)), 1);
    (void)close(pair[1]);
    weir_executor_release(loop);
}

/* ---- between two runs ---- */

#define POLLFDS 16

static bool is_readable(const weir_executor *loop)
{
    struct pollfd entries[POLLFDS];
    ssize_t count = weir_loop_pollfds(loop, POLLFDS, entries);
    int ready;

    assert_in_range(count, 1, POLLFDS);
    ready = weir__sys.ppoll(entries, (nfds_t)count, &(const struct timespec){0}, NULL);
    assert_true(ready >= 0);
    return ready > 0;
}

TEST_EACH_LOOP(manual_loop, has_a_descriptor_unless_it_uses_poll)
{
    weir_executor *loop = make_plain_loop(host);
    struct pollfd entry = {.fd = -1};

    assert_int_equal(weir_loop_pollfds(loop, 1, &entry), 1);
    assert_true(entry.fd >= 0 && entry.events == POLLIN);
    if (host->backend->type->descriptor != NULL)
        assert_int_equal(weir_loop_descriptor(loop), entry.fd);
    else
        assert_int_equal(weir_loop_descriptor(loop), -ENOTSUP);
    assert_false(is_readable(loop));
    assert_int_equal(weir_loop_pollfds(host->loop, 1, &entry), -EINVAL);
    weir_executor_release(loop);
}

TEST_EACH_LOOP(manual_loop, returns_the_number_of_its_descriptors)
{
    weir_executor *loop = make_plain_loop(host);
    struct pollfd entry = {.fd = -1};
    struct fd_event event = {0};

    fd_event_open(&event, loop);
    (void)run_now(loop);
    assert_int_equal(weir_loop_pollfds(loop, 0, NULL),
                     host->backend->type->descriptor != NULL ? 1 : 2);
    assert_int_equal(weir_loop_pollfds(loop, 1, &entry), weir_loop_pollfds(loop, 0, NULL));
    end_loop(loop);
    fd_event_free(&event);
}

TEST_EACH_LOOP(manual_loop, shows_tasks_and_io_on_its_descriptors)
{
    struct call_counter counter = {0};
    struct fd_event event = {0};
    weir_executor *loop = make_plain_loop(host);

    for (int i = 0; i < 10; i++) {
        assert_int_equal(weir_execute(loop, call_counter_task, &counter), 0);
        assert_true(is_readable(loop));
        assert_int_equal(weir_loop_timeout(loop), 0);
        assert_int_equal(run_now(loop), 1);
        (void)run_now(loop); /* a wake-up is seen once */
        assert_false(is_readable(loop));
        assert_true(weir_loop_timeout(loop) == WEIR_NEVER);
    }
    fd_event_open(&event, loop);
    (void)run_now(loop);
    assert_false(is_readable(loop));
    fd_event_trigger(&event);
    assert_true(is_readable(loop));
    assert_int_equal(run_now(loop), 1);
    (void)run_now(loop);
    assert_false(is_readable(loop));
    end_loop(loop);
    fd_event_free(&event);
}

/* Its owner may ask for something at any time, not only from inside a run. */
TEST_EACH_LOOP(manual_loop, sees_operations_started_between_two_runs)
{
    weir_executor *loop = make_plain_loop(host);
    struct listener listener = {0};
    weir__io_memory memory = counted_memory_functions(&listener.memory);
    int pair[2];

    weir__io_set_memory(weir__loop_io(loop), &memory);
    socket_pair(PAIR_TCP, pair);
    weir__io_handle_init(&listener.handle, pair[0], &owner);
    assert_int_equal(weir__io_attach(weir__loop_io(loop), &listener.handle), 0);
    weir__io_receive_start(&listener.handle, false);
    (void)weir_loop_timeout(loop);
    assert_int_equal(send(pair[1], "word", 4, 0), 4);
    assert_true(is_readable(loop));
    for (int i = 0; i < 20 && listener.bytes == 0; i++)
        (void)weir_loop_run_once(loop, weir_seconds(2));
    assert_int_equal(listener.bytes, 4);
    weir__io_close(&listener.handle);
    (void)weir_loop_run_once(loop, weir_seconds(2));
    (void)close(pair[1]);
    weir_executor_release(loop);
}

struct late {
    weir_executor *loop;
    struct fd_event *event;
    struct call_counter *counter;
};

static void ring_late(void *arg)
{
    struct late *late = arg;

    weir__thread_sleep(weir_ms(50)); /* so that the other one is likely to be asleep */
    if (late->event != NULL)
        fd_event_trigger(late->event);
    else
        IGNORE_RESULT(weir_execute(late->loop, call_counter_task, late->counter));
}

/* Waits as another main loop does; returns how many descriptors have woken it. */
static int sleep_outside(weir_executor *loop, struct late *late)
{
    struct pollfd entries[POLLFDS];
    ssize_t count = weir_loop_pollfds(loop, POLLFDS, entries);
    struct timespec timeout = weir__timespec(weir_seconds(5));
    weir__thread thread;
    int ready;

    assert_true(weir_loop_timeout(loop) == WEIR_NEVER);
    assert_int_equal(weir__thread_start("late", ring_late, late, &thread), 0);
    ready = weir__sys.ppoll(entries, (nfds_t)count, &timeout, NULL);
    weir__thread_join(&thread);
    return ready;
}

/* It is one thing that a descriptor is found readable, and another that it wakes who sleeps. */
TEST_EACH_LOOP(manual_loop, wakes_a_thread_that_sleeps_on_its_descriptors)
{
    weir_executor *loop = make_plain_loop(host);
    struct call_counter counter = {0};
    struct fd_event event = {0};

    fd_event_open(&event, loop);
    for (int i = 0; i < 3; i++) {
        while (run_now(loop) > 0)
            ;
        assert_int_equal(sleep_outside(loop, &(struct late){.loop = loop, .counter = &counter}), 1);
        while (run_now(loop) > 0)
            ;
        assert_int_equal(sleep_outside(loop, &(struct late){.event = &event}), 1);
    }
    (void)run_now(loop);
    assert_int_equal(counter.calls, 3);
    end_loop(loop);
    fd_event_free(&event);
}

/* More than the budget of a run allows: the descriptor says so, and so does the timeout. */
TEST_EACH_LOOP(manual_loop, shows_what_it_has_left)
{
    weir_executor *loop = make_plain_loop(host);
    struct call_counter counter = {0};
    int count;

    for (int i = 0; i < 100; i++)
        assert_int_equal(weir_execute(loop, call_counter_task, &counter), 0);
    count = run_now(loop);
    assert_in_range(count, 60, 64); /* nothing was ready; a probe may be among them */
    assert_int_equal(weir_loop_timeout(loop), 0);
    if (host->backend->type->descriptor != NULL)
        assert_true(is_readable(loop));
    assert_int_equal(run_now(loop), 100 - count);
    assert_true(weir_loop_timeout(loop) == WEIR_NEVER);
    weir_executor_release(loop);
}

/* Another main loop, that knows descriptors and a timeout. */
static void embed(weir_executor *loop, const struct call_counter *until, uint32_t count)
{
    int64_t give_up_ns = weir__monotonic_now() + weir_seconds(20), wait_ns;
    struct timespec timeout;
    struct pollfd entries[POLLFDS];
    ssize_t entry_count;
    int ready;

    while (atomic_load(&until->calls) < count && weir__monotonic_now() < give_up_ns) {
        entry_count = weir_loop_pollfds(loop, POLLFDS, entries);
        wait_ns = weir_loop_timeout(loop);
        if (wait_ns > weir_seconds(5))
            wait_ns = weir_seconds(5); /* a lost wake-up fails the test, and does not hang it */
        timeout = weir__timespec(wait_ns);
        ready = weir__sys.ppoll(entries, entry_count > 0 ? (nfds_t)entry_count : 0, &timeout, NULL);
        if (wait_ns == weir_seconds(5) && ready == 0)
            break;
        (void)run_now(loop);
    }
    assert_true(atomic_load(&until->calls) >= count);
}

struct storm {
    weir_executor *loop;
    struct fd_event *event;
    struct call_counter counter;
    weir__thread thread;
};

static void rage(void *arg)
{
    struct storm *storm = arg;

    for (int i = 0; i < 300; i++) {
        IGNORE_RESULT(weir_execute(storm->loop, call_counter_task, &storm->counter));
        IGNORE_RESULT(
            weir_schedule(storm->loop, weir_us(i), call_counter_task, &storm->counter, NULL));
        fd_event_trigger(storm->event);
        if (i % 10 == 0)
            weir__thread_sleep(weir_us(100));
    }
}

static void count_ring(struct fd_event *event)
{
    call_counter_add(event->user_data);
}

TEST_EACH_LOOP(manual_loop, lives_inside_another_main_loop)
{
    struct storm storm = {.loop = make_plain_loop(host)};
    struct fd_event event = {.on_event = count_ring, .user_data = &storm.counter};

    fd_event_open(&event, storm.loop);
    (void)run_now(storm.loop);
    storm.event = &event;
    assert_int_equal(weir__thread_start("storm", rage, &storm, &storm.thread), 0);
    embed(storm.loop, &storm.counter, 900);
    weir__thread_join(&storm.thread);
    assert_int_equal(atomic_load(&storm.counter.calls), 900);
    end_loop(storm.loop);
    fd_event_free(&event);
}

/* ---- what I/O and tasks get of a turn, by a clock that stands still ---- */

static weir_manual_clock *manual_clock;

static void take_io_time(struct fd_event *event)
{
    (void)weir_manual_clock_advance(manual_clock, *(const int64_t *)event->user_data);
}

static void take_a_ms(void *arg, int status)
{
    (void)weir_manual_clock_advance(manual_clock, weir_ms(1));
    call_counter_task(arg, status);
}

/* How many of 1000 tasks of 1 ms run in the turn of I/O that takes 100 ms. */
static uint32_t tasks_beside_io(const struct host *host, int io_ratio, int64_t cap_ns)
{
    const int64_t io_ns = weir_ms(100);
    struct fd_event event = {.on_event = take_io_time, .user_data = (void *)(uintptr_t)&io_ns};
    struct call_counter counter = {0};
    weir_loop_options options = {.io_ratio = io_ratio, .task_cap_ns = cap_ns};
    weir_executor *loop;
    uint32_t count;

    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &manual_clock), 0);
    options.clock = weir_manual_clock_clock(manual_clock);
    loop = make_loop(host, &options);
    fd_event_open(&event, loop);
    (void)run_now(loop);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_execute(loop, take_a_ms, &counter), 0);
    fd_event_trigger(&event);
    (void)run_now(loop);
    count = atomic_load(&counter.run);
    assert_int_equal(atomic_load(&event.triggered.calls), 1);
    end_loop(loop);
    fd_event_free(&event);
    weir_manual_clock_release(manual_clock);
    return count;
}

/* The clock is looked at every 64 tasks. */
static void check_share(const struct host *host, int io_ratio, int64_t cap_ns, uint32_t batches)
{
    assert_in_range(tasks_beside_io(host, io_ratio, cap_ns), 64 * batches - 8, 64 * batches);
}

TEST_EACH_LOOP(manual_loop, gives_tasks_their_share)
{
    check_share(host, 0, WEIR_OFF, 2);                            /* 100 ms */
    check_share(host, 50, WEIR_OFF, 2);                           /* 100 ms */
    check_share(host, 80, WEIR_OFF, 1);                           /* 25 ms */
    check_share(host, 20, WEIR_OFF, 7);                           /* 400 ms */
    assert_int_equal(tasks_beside_io(host, 100, WEIR_OFF), 1000); /* all of them */
}

TEST_EACH_LOOP(manual_loop, caps_the_share_of_tasks)
{
    check_share(host, 1, weir_ms(200), 4);
    check_share(host, 100, weir_ms(300), 5);
}

/* ---- the end ---- */

TEST_EACH_LOOP(manual_loop, is_run_until_it_has_ended)
{
    weir_executor *loop = make_plain_loop(host);
    struct fd_event event = {0};
    struct call_counter timer = {0};

    fd_event_open(&event, loop);
    assert_int_equal(weir_schedule(loop, weir_seconds(3600), call_counter_task, &timer, NULL), 0);
    (void)run_now(loop);
    assert_int_equal(weir_executor_shutdown(loop, 0, weir_seconds(10)), 0);
    assert_int_equal(weir_loop_timeout(loop), 0);
    while (weir_executor_state(loop) != WEIR_EXECUTOR_TERMINATED)
        assert_true(weir_loop_run_once(loop, weir_seconds(1)) >= 0);
    assert_int_equal(atomic_load(&event.closed.calls), 1);
    assert_int_equal(atomic_load(&timer.cancelled), 1);
    assert_int_equal(weir_loop_timeout(loop), 0);
    assert_int_equal(run_now(loop), WEIR_ETERMINATED);
    assert_true(weir_loop_timeout(loop) == WEIR_NEVER);
    weir_executor_release(loop);
    fd_event_free(&event);
}

TEST_EACH_LOOP(manual_loop, released_for_good_lets_go_of_all)
{
    weir_executor *loop = make_plain_loop(host);
    struct fd_event event = {.waits_for_abort = true};
    struct call_counter task = {0};

    fd_event_open(&event, loop);
    (void)run_now(loop);
    assert_int_equal(weir_execute(loop, call_counter_task, &task), 0);
    weir_executor_release(loop);
    assert_int_equal(atomic_load(&task.cancelled), 1);
    assert_int_equal(atomic_load(&event.closed.calls), 1);
    fd_event_free(&event);
}

TEST_EACH_LOOP(manual_loop, cannot_be_suspended_and_has_no_thread_to_name)
{
    weir_executor *loop = make_plain_loop(host);
    weir_thread_properties thread;

    assert_int_equal(weir_executor_suspend(loop), -ENOTSUP);
    assert_int_equal(weir_executor_thread(loop, &thread), -ENOTSUP);
    weir_executor_release(loop);
}
