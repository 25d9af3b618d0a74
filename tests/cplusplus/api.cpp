/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses every public function once from C++11, to prove that it can be called from there. The tests
 * of the layers check what the functions do. Before C++20 the option macros take no designators, so
 * options are copied from the macro and then modified; guide.cpp shows C++20.
 * tools/check_cplusplus.py fails if a function is missing here.
 */
#include <csignal>
#include <cstdarg>
#include <cstring>

#include <unistd.h>

#include <weir/weir.h>

#include "expect.h"

namespace
{

void count(void *arg, int status)
{
    *static_cast<int *>(arg) += status == 0;
}

void ignore(void *, int)
{
}

int answer(void *arg, int status, void **ret_value)
{
    *ret_value = arg;
    return status;
}

void use_base()
{
    EXPECT(std::strlen(weir_version()) > 0);
    EXPECT(weir_us(1) == 1000 && weir_ms(1) == 1000 * weir_us(1));
    EXPECT(weir_seconds(1) == 1000 * weir_ms(1));
    EXPECT(std::strcmp(weir_error_name(WEIR_EFULL), "WEIR_EFULL") == 0);
    EXPECT(std::strlen(weir_error_text(WEIR_EFULL)) > 0);
}

void use_memory()
{
    EXPECT(weir_memory_set(nullptr) == 0);
    weir_memory_free(weir_memory_realloc(weir_memory_alloc(1), 2));
}

void use_random()
{
    uint8_t id[16] = {}, other[16] = {};

    weir_random_bytes(id, sizeof(id));
    weir_random_bytes(other, sizeof(other));
    EXPECT(std::memcmp(id, other, sizeof(id)) != 0);
}

void count_message(void *count, enum weir_log_level, const char *, const char *, const char *)
{
    ++*static_cast<int *>(count);
}

void use_log()
{
    static weir_log_limit limit;
    int messages = 0;

    weir_log_set([](void *, enum weir_log_level, const char *, const char *, const char *) {},
                 nullptr);
    weir_log_set_level(WEIR_LOG_ERROR);
    EXPECT(!weir_log_enabled(WEIR_LOG_WARN));
    EXPECT(std::strcmp(weir_log_level_name(WEIR_LOG_WARN), "WARN") == 0);
    EXPECT(weir_log_add_listener(count_message, &messages) == 0);
    weir_log_write(WEIR_LOG_ERROR, "api", nullptr, "%s", "heard by the listener");
    weir_log_write_limited(&limit, WEIR_LOG_ERROR, "api", nullptr, "%s", "heard, too");
    EXPECT(weir_log_remove_listener(count_message, &messages) == 0 && messages == 2);
    EXPECT(weir_log_dropped() == 0);
    weir_log_set_level(WEIR_LOG_WARN);
    weir_log_set(nullptr, nullptr);
}

void use_locals()
{
    weir_local *local = nullptr;
    int removed = 0, ended = 0;

    EXPECT(weir_local_create([](void *value) { ++*static_cast<int *>(value); }, &local) == 0);
    EXPECT(weir_local_set(local, &removed) == 0);
    EXPECT(weir_local_get(local) == &removed);
    weir_local_remove(local);
    EXPECT(weir_local_get(local) == nullptr && removed == 1);
    EXPECT(weir_thread_on_exit([](void *arg) { ++*static_cast<int *>(arg); }, &ended) == 0);
    weir_locals_remove_all();
    EXPECT(ended == 1);
    weir_local_release(local);
}

void use_histogram()
{
    weir_histogram *histogram = nullptr, *total = nullptr;
    weir_histogram_summary summary;

    EXPECT(weir_histogram_create(&histogram) == 0);
    weir_histogram_record(histogram, 7);
    weir_histogram_read(histogram, &summary);
    EXPECT(summary.count == 1 && summary.max == 7);
    EXPECT(weir_histogram_percentile(histogram, 50) == 7);
    EXPECT(weir_histogram_create(&total) == 0);
    weir_histogram_merge(total, histogram);
    weir_histogram_reset(histogram);
    EXPECT(weir_histogram_percentile(total, 50) == 7);
    EXPECT(weir_histogram_percentile(histogram, 50) == 0);
    weir_histogram_foreach_bucket(
        total, [](int64_t upper, uint64_t count, void *) { EXPECT(upper == 7 && count == 1); },
        nullptr);
    weir_histogram_release(total);
    weir_histogram_release(histogram);
}

void use_metrics()
{
    weir_metric *counter = nullptr, *gauge = nullptr, *histogram = nullptr;
    weir_metric_value value;
    int visited = 0;

    EXPECT(weir_metric_create(WEIR_METRIC_COUNTER, "api.counter", &counter) == 0);
    EXPECT(weir_metric_create(WEIR_METRIC_GAUGE, "api.gauge", &gauge) == 0);
    EXPECT(weir_metric_create(WEIR_METRIC_HISTOGRAM, "api.histogram", &histogram) == 0);
    EXPECT(weir_metric_add(counter, 2) == 0);
    EXPECT(weir_metric_set(gauge, 3) == 0);
    EXPECT(weir_metric_record(histogram, 4) == 0);
    EXPECT(weir_metric_read("api.counter", &value) == 0 && value.value == 2);
    EXPECT(weir_metric_read("api.histogram", &value) == 0 && value.histogram == nullptr);
    EXPECT(value.family_length == std::strlen(value.name));
    weir_metrics_foreach(
        [](const weir_metric_value *, void *user_data) { ++*static_cast<int *>(user_data); },
        &visited);
    EXPECT(visited >= 3);
    weir_metric_release(histogram);
    weir_metric_release(gauge);
    weir_metric_release(counter);
}

/* A manual executor on a manual clock: nothing here depends on another thread. */
struct manual {
    weir_manual_clock *clock = nullptr;
    weir_executor *executor = nullptr;

    manual()
    {
        weir_manual_options options = *WEIR_MANUAL_OPTIONS();

        EXPECT(weir_manual_clock_create(0, &clock) == 0);
        options.clock = weir_manual_clock_clock(clock);
        options.claim_later = true;
        EXPECT(weir_manual_create(&options, &executor) == 0);
        EXPECT(weir_manual_claim(executor) == 0);
    }

    ~manual()
    {
        EXPECT(weir_executor_shutdown(executor, 0, 0) == 0);
        while (weir_manual_run_once(executor, 0, 0) >= 0)
            ;
        EXPECT(weir_executor_await_termination(executor, 0) == 0);
        weir_executor_release(executor);
        weir_manual_clock_release(clock);
    }

    manual(const manual &) = delete;
    manual &operator=(const manual &) = delete;

    void run()
    {
        EXPECT(weir_manual_timeout(executor) >= 0);
        EXPECT(weir_manual_run_once(executor, 0, 0) >= 0);
    }
};

void use_clock(manual &on)
{
    EXPECT(weir_clock_monotonic()->now(weir_clock_monotonic()) > 0);
    EXPECT(weir_clock_now(nullptr) > 0 && weir_clock_now(weir_clock_monotonic()) > 0);
    EXPECT(weir_time_of_day() > 0 && weir_time_of_day_coarse() > 0);
    EXPECT(weir_manual_clock_set(on.clock, weir_ms(1)) == 0);
    EXPECT(weir_manual_clock_advance(on.clock, weir_ms(1)) == 0);
}

void use_tasks(manual &on)
{
    weir_task task, lazy_task;
    weir_promise *promise = nullptr;
    int ran = 0, value = 0;

    weir_task_init(&task, count, &ran);
    weir_task_init(&lazy_task, count, &ran);
    EXPECT(weir_execute(on.executor, count, &ran) == 0);
    EXPECT(weir_execute_lazy(on.executor, count, &ran) == 0);
    EXPECT(weir_execute_task(on.executor, &task) == 0);
    EXPECT(weir_execute_task_lazy(on.executor, &lazy_task) == 0);
    EXPECT(weir_execute_after_turn(on.executor, count, &ran) == 0);
    EXPECT(weir_submit(on.executor, answer, &value, &promise) == 0);
    EXPECT(weir_executor_pending(on.executor) > 0);
    on.run();
    EXPECT(ran == 5);
    EXPECT(weir_promise_value(promise) == &value);
    weir_promise_release(promise);
}

void use_timers(manual &on)
{
    static int fired = 0;
    weir_timer timer;

    /* A timer belongs to its executor's thread, so it is started in a task. */
    weir_timer_init(&timer);
    EXPECT(weir_execute(
               on.executor,
               [](void *arg, int) {
                   weir_timer *started = static_cast<weir_timer *>(arg);

                   EXPECT(weir_timer_start(weir_executor_current(), started, weir_ms(1),
                                           [](weir_timer *) { fired++; }) == 0);
                   EXPECT(weir_timer_stop(started) == 0 && !weir_timer_is_running(started));
                   EXPECT(weir_timer_restart(started, weir_ms(2)) == 0);
                   EXPECT(weir_timer_is_running(started));
               },
               &timer) == 0);
    on.run();
    EXPECT(weir_manual_clock_advance(on.clock, weir_ms(2)) == 0);
    on.run();
    EXPECT(fired == 1);
}

void use_schedule(manual &on)
{
    weir_promise *once = nullptr, *rate = nullptr, *delay = nullptr;
    int ran = 0;

    EXPECT(weir_schedule(on.executor, weir_ms(1), count, &ran, &once) == 0);
    EXPECT(weir_schedule_at_fixed_rate(on.executor, 0, weir_ms(1), count, &ran, &rate) == 0);
    EXPECT(weir_schedule_with_fixed_delay(on.executor, 0, weir_ms(1), count, &ran, &delay) == 0);
    on.run();
    EXPECT(weir_manual_clock_advance(on.clock, weir_ms(1)) == 0);
    on.run();
    EXPECT(ran == 5);
    EXPECT(weir_promise_cancel(rate) == 0 && weir_promise_is_cancelled(rate));
    EXPECT(weir_promise_cancel(delay) == 0);
    weir_promise_release(once);
    weir_promise_release(rate);
    weir_promise_release(delay);
}

void use_promises(manual &on)
{
    weir_promise *source = nullptr, *target = nullptr, *done = nullptr, *failed = nullptr;
    weir_listener listener = {};
    static int heard = 0, freed = 0;
    int value = 0;

    EXPECT(weir_promise_create(on.executor, &source) == 0);
    EXPECT(weir_promise_create(on.executor, &target) == 0);
    EXPECT(weir_promise_create(on.executor, &failed) == 0);
    EXPECT(weir_promise_create_completed(on.executor, 0, &value, &done) == 0);
    EXPECT(weir_promise_succeed(done, &value) == WEIR_ECOMPLETED);
    EXPECT(weir_promise_cascade(source, target) == 0);
    listener.fn = [](weir_promise *, void *) { heard++; };
    weir_promise_listen(target, &listener);
    EXPECT(weir_promise_add_listener(target, listener.fn, nullptr) == 0);
    EXPECT(weir_promise_set_uncancellable(source) && !weir_promise_is_done(source));
    EXPECT(weir_promise_succeed_with(source, &value, [](void *) { freed++; }) == 0);
    on.run();
    EXPECT(heard == 2 && weir_promise_result(target) == 0);
    EXPECT(weir_promise_fail(failed, WEIR_ECLOSED, "a sentence") == 0);
    EXPECT(std::strcmp(weir_promise_detail(failed), "a sentence") == 0);
    EXPECT(weir_promise_executor(failed) == on.executor);
    weir_promise_release(weir_promise_retain(done));
    weir_promise_release(done);
    weir_promise_release(failed);
    weir_promise_release(target);
    weir_promise_release(source);
    EXPECT(freed == 1);
}

struct combination {
    weir_combiner *combiner;
    weir_promise *part;
    weir_promise *whole;
};

void use_combiner(manual &on)
{
    combination all = {};

    EXPECT(weir_combiner_create(on.executor, &all.combiner) == 0);
    EXPECT(weir_promise_create_completed(on.executor, 0, nullptr, &all.part) == 0);
    EXPECT(weir_promise_create(on.executor, &all.whole) == 0);
    EXPECT(weir_execute(
               on.executor,
               [](void *arg, int) {
                   combination *given = static_cast<combination *>(arg);

                   EXPECT(weir_combiner_add(given->combiner, given->part) == 0);
                   EXPECT(weir_combiner_finish(given->combiner, given->whole) == 0);
               },
               &all) == 0);
    on.run();
    EXPECT(weir_promise_is_done(all.whole));
    weir_combiner_release(all.combiner);
    weir_promise_release(all.part);
    weir_promise_release(all.whole);
}

void use_executor(manual &on)
{
    weir_executor_stats stats;
    weir_backoff backoff = {};
    int ran = 0;

    EXPECT(weir_executor_retain(on.executor) == on.executor);
    weir_executor_release(on.executor);
    EXPECT(std::strlen(weir_executor_name(on.executor)) > 0);
    EXPECT(weir_executor_state(on.executor) < WEIR_EXECUTOR_SHUTTING_DOWN);
    EXPECT(weir_executor_utilisation(on.executor) >= 0);
    weir_executor_read_stats(on.executor, &stats);
    EXPECT(stats.tasks_run > 0);
    EXPECT(weir_executor_current() == nullptr);
    EXPECT(weir_executor_add_shutdown_hook(on.executor, count, &ran) == 0);
    EXPECT(weir_executor_remove_shutdown_hook(on.executor, count, &ran) == 0);
    EXPECT(weir_execute(weir_executor_immediate(), count, &ran) == 0 && ran == 1);
    EXPECT(weir_reject(on.executor, count, &ran, WEIR_EFULL, nullptr) == WEIR_EFULL);
    EXPECT(weir_reject_after_backoff(on.executor, count, &ran, WEIR_EREJECTED, &backoff) ==
           WEIR_EREJECTED);
    EXPECT(!weir_in_executor(weir_executor_global()));
    EXPECT(!weir_promise_is_done(weir_executor_termination(on.executor)));
}

weir_group *create_group(const weir_chooser *chooser, const weir_autoscale_options *autoscale)
{
    weir_group_options options = *WEIR_GROUP_OPTIONS();
    weir_group *group = nullptr;

    options.io = WEIR_IO_NONE;
    options.threads = 2;
    options.chooser = chooser;
    options.autoscale = autoscale;
    EXPECT(weir_group_create(&options, &group) == 0);
    return group;
}

void use_choosers()
{
    weir_autoscale_options autoscale = *WEIR_AUTOSCALE_OPTIONS();
    weir_group *groups[5];

    groups[0] = create_group(weir_chooser_least_pending(), nullptr);
    groups[1] = create_group(weir_chooser_two_choices(), nullptr);
    groups[2] = create_group(weir_chooser_least_handles(), nullptr);
    groups[3] = create_group(weir_chooser_by_cpu(), nullptr);
    groups[4] = create_group(nullptr, &autoscale);
    for (weir_group *group : groups) {
        EXPECT(weir_group_next(group) != nullptr);
        weir_group_release(group);
    }
}

void use_group()
{
    weir_group *group = create_group(weir_chooser_round_robin(), nullptr);
    weir_group_stats stats;
    weir_promise *promises[4] = {};
    weir_thread_properties thread;

    EXPECT(weir_group_count(group) == 2);
    weir_group_read_stats(group, &stats);
    EXPECT(stats.executors == 2 && stats.active == 0);
    EXPECT(weir_executor_thread(weir_group_at(group, 0), &thread) == 0 && thread.id > 0);
    EXPECT(weir_executor_suspend(weir_group_at(group, 0)) == 0);
    EXPECT(weir_group_execute(group, ignore, nullptr) == 0);
    EXPECT(weir_group_submit(group, answer, nullptr, &promises[0]) == 0);
    EXPECT(weir_promise_await(promises[0], WEIR_NEVER) == 0);
    EXPECT(weir_group_schedule(group, 0, ignore, nullptr, &promises[1]) == 0);
    EXPECT(weir_promise_sync(promises[1], WEIR_NEVER) == 0);
    EXPECT(weir_group_schedule_at_fixed_rate(group, 0, weir_seconds(1), ignore, nullptr,
                                             &promises[2]) == 0);
    EXPECT(weir_group_schedule_with_fixed_delay(group, 0, weir_seconds(1), ignore, nullptr,
                                                &promises[3]) == 0);
    EXPECT(weir_group_shutdown(weir_group_retain(group), 0, weir_seconds(5)) == 0);
    EXPECT(weir_group_await_termination(group, WEIR_NEVER) == 0);
    EXPECT(weir_promise_is_done(weir_group_termination(group)));
    EXPECT(weir_group_state(group) == WEIR_EXECUTOR_TERMINATED);
    for (weir_promise *promise : promises)
        weir_promise_release(promise);
    weir_group_release(group);
    weir_group_release(group);
}

/* An event loop on this thread, with a strategy of its own. */
weir_executor *create_loop()
{
    weir_loop_options options = *WEIR_LOOP_OPTIONS();
    weir_executor *loop = nullptr;

    options.io = WEIR_IO_EPOLL;
    options.claim_later = true;
    options.strategy_fn = [](weir_executor *, bool, void *) { return WEIR_WAIT_SELECT; };
    EXPECT(weir_loop_create(&options, &loop) == 0);
    EXPECT(weir_loop_claim(loop) == 0);
    return loop;
}

void end_loop(weir_executor *loop)
{
    EXPECT(weir_executor_shutdown(loop, 0, 0) == 0);
    while (weir_loop_run_once(loop, 0) >= 0)
        ;
    weir_executor_release(loop);
}

void use_loop()
{
    weir_executor *loop = create_loop();
    weir_loop_stats stats;
    pollfd entry = {};
    int ran = 0;

    EXPECT(weir_loop_io(loop) == WEIR_IO_EPOLL && weir_loop_io(nullptr) == WEIR_IO_NONE);
    EXPECT(weir_loop_descriptor(loop) >= 0);
    EXPECT(weir_loop_pollfds(loop, 1, &entry) == 1 && entry.fd == weir_loop_descriptor(loop));
    EXPECT(weir_execute(loop, count, &ran) == 0);
    EXPECT(weir_loop_timeout(loop) == 0);
    EXPECT(weir_loop_now(loop) > 0);
    EXPECT(weir_loop_run_once(loop, 0) == 1 && ran == 1);
    EXPECT(weir_loop_read_stats(loop, &stats) == 0 && stats.turns == 1);
    end_loop(loop);
}

void use_fd_watch()
{
    weir_executor *loop = create_loop();
    weir_fd_watch_options options = *WEIR_FD_WATCH_OPTIONS();
    weir_fd_watch *watch = nullptr;
    int ready = 0, ends[2];

    EXPECT(pipe(ends) == 0 && write(ends[1], "!", 1) == 1);
    options.events = WEIR_FD_READABLE;
    options.user_data = &ready;
    options.ready = [](weir_fd_watch *self, uint32_t, void *user_data) {
        ++*static_cast<int *>(user_data);
        EXPECT(weir_fd_watch_set_events(self, 0) == 0);
    };
    EXPECT(weir_fd_watch_create(loop, ends[0], &options, &watch) == 0);
    EXPECT(weir_fd_watch_descriptor(watch) == ends[0]);
    while (ready == 0)
        EXPECT(weir_loop_run_once(loop, WEIR_NEVER) >= 0);
    weir_fd_watch_close(weir_fd_watch_retain(watch));
    while (!weir_promise_is_done(weir_fd_watch_closed(watch)))
        EXPECT(weir_loop_run_once(loop, WEIR_NEVER) >= 0);
    weir_fd_watch_release(watch);
    weir_fd_watch_release(watch);
    end_loop(loop);
    close(ends[0]);
    close(ends[1]);
}

void use_signals()
{
    weir_executor *loop = create_loop();
    weir_signals_options options = *WEIR_SIGNALS_OPTIONS();
    weir_signals *signals = nullptr;
    int number = 0;

    options.numbers[0] = SIGUSR1;
    options.user_data = &number;
    options.received = [](weir_signals *, const weir_signal *signal, void *user_data) {
        *static_cast<int *>(user_data) = signal->number;
    };
    EXPECT(weir_signals_create(loop, &options, &signals) == 0);
    EXPECT(raise(SIGUSR1) == 0);
    while (number == 0)
        EXPECT(weir_loop_run_once(loop, WEIR_NEVER) >= 0);
    EXPECT(number == SIGUSR1);
    weir_signals_release(signals);
    end_loop(loop);
}

void use_child()
{
    weir_executor *loop = create_loop();
    char program[] = "sleep", argument[] = "100";
    char *argv[] = {program, argument, nullptr};
    weir_child_options options = *WEIR_CHILD_OPTIONS();
    weir_child *child = nullptr, *other = nullptr;
    int signals = 0;

    auto exited = [](weir_child *, const weir_child_exit *exit, void *user_data) {
        *static_cast<int *>(user_data) += exit->signal;
    };
    options.argv = argv;
    options.exited = exited;
    options.user_data = &signals;
    EXPECT(weir_child_spawn(loop, &options, &child) == 0);
    EXPECT(weir_child_watch(loop, getpid(), nullptr, nullptr, &other) == 0);
    EXPECT(weir_child_pid(child) > 0);
    EXPECT(weir_child_signal(child, SIGTERM) == 0);
    while (signals == 0)
        EXPECT(weir_loop_run_once(loop, WEIR_NEVER) >= 0);
    EXPECT(signals == SIGTERM);
    weir_child_release(weir_child_retain(child));
    weir_child_release(child);
    weir_child_release(other);
    end_loop(loop);
}

/* A message type of the user's own. */
struct greeting {
    weir_msg msg;
    bool destroyed;
};

void destroy_greeting(weir_msg *msg)
{
    reinterpret_cast<greeting *>(msg)->destroyed = true;
}

void use_msg()
{
    weir_msg_type type = {};
    greeting hello = {};
    weir_msg *same = nullptr;

    type.name = "greeting";
    type.destroy = destroy_greeting;
    weir_msg_init(&hello.msg, &type);
    EXPECT(weir_msg_is(&hello.msg, &type) && !weir_msg_is(&hello.msg, &weir_buf_type));
    EXPECT(weir_msg_size(&hello.msg) == 8);
    EXPECT(weir_msg_refs(weir_msg_retain(&hello.msg)) == 2);
    weir_msg_touch(&hello.msg, "api.cpp");
    EXPECT(weir_msg_share(&hello.msg, &same) == 0 && same == &hello.msg);
    weir_msg_release(same);
    weir_msg_release(&hello.msg);
    EXPECT(!hello.destroyed);
    weir_msg_release(&hello.msg);
    EXPECT(hello.destroyed);
}

void count_free(void *, void *user_data)
{
    ++*static_cast<int *>(user_data);
}

void use_buf_views(weir_buf *buf)
{
    weir_buf *views[5] = {};

    EXPECT(weir_buf_slice(buf, 0, 2, &views[0]) == 0);
    EXPECT(weir_buf_read_slice(buf, 2, &views[1]) == 0);
    EXPECT(weir_buf_duplicate(buf, &views[2]) == 0);
    EXPECT(weir_buf_read_only(buf, &views[3]) == 0 && weir_buf_is_read_only(views[3]));
    EXPECT(weir_buf_copy(buf, 0, 4, &views[4]) == 0);
    EXPECT(weir_buf_discard(buf) == -EBUSY);
    for (weir_buf *view : views)
        weir_buf_release(view);
    EXPECT(weir_buf_discard(buf) == 0 && weir_buf_compact(buf) == 0);
    EXPECT(weir_buf_readable(buf) == 2 && weir_buf_bytes(buf)[0] == 'i');
}

void use_buf()
{
    char memory[4] = {'w', 'e', 'i', 'r'};
    weir_buf *buf = nullptr, *wrapped = nullptr, *fixed = nullptr;
    int freed = 0;

    EXPECT(weir_buf_create(4, 100, &buf) == 0 && weir_buf_max(buf) == 100);
    std::memcpy(weir_buf_space(buf), memory, 4);
    EXPECT(weir_buf_advance(buf, 4) == 0 && weir_buf_write_index(buf) == 4);
    EXPECT(weir_buf_in_bounds(buf, 0, 4) && !weir_buf_in_bounds(buf, 0, 5));
    EXPECT(weir_buf_skip(buf, 1) == 0 && weir_buf_read_index(buf) == 1);
    EXPECT(weir_buf_set_read_index(buf, 0) == 0 && weir_buf_set_write_index(buf, 4) == 0);
    EXPECT(weir_buf_truncate(buf, 4) == 0);
    EXPECT(weir_buf_reserve(buf, 90) == 0 && weir_buf_writable(buf) >= 90);
    EXPECT(weir_buf_set_capacity(buf, 94) == 0 && weir_buf_capacity(buf) >= 94);
    EXPECT(weir_buf_of(weir_buf_msg(buf)) == buf);
    use_buf_views(buf);
    weir_buf_clear(buf);
    weir_buf_release(weir_buf_retain(buf));
    weir_buf_release(buf);
    EXPECT(weir_buf_wrap(memory, 4, count_free, &freed, &wrapped) == 0);
    weir_buf_release(wrapped);
    EXPECT(freed == 1);
    EXPECT(weir_buf_wrap_static("weir", 4, &fixed) == 0);
    weir_buf_release(fixed);
}

void use_bytes()
{
    weir_buf *buf = nullptr, *from = nullptr;
    weir_span span = weir_span_of("ei", 2);
    char bytes[4] = {};

    EXPECT(weir_buf_create(0, 0, &buf) == 0 && weir_buf_create_from("r", 1, &from) == 0);
    EXPECT(weir_buf_write_fill(buf, 'w', 3) == 0);
    EXPECT(weir_buf_set_bytes(buf, 1, span.data, span.length) == 0);
    EXPECT(weir_buf_write_buf(buf, from, 1) == 0);
    EXPECT(weir_buf_write_bytes(buf, "!", 1) == 0 && weir_buf_span(buf).length == 5);
    EXPECT(weir_buf_get_bytes(buf, 0, bytes, 4) == 0 && std::memcmp(bytes, "weir", 4) == 0);
    EXPECT(weir_buf_peek_bytes(buf, bytes, 2) == 0 && weir_buf_read_bytes(buf, bytes, 2) == 0);
    EXPECT(weir_buf_get_span(buf, 0, 5, &span) == 0 && span.length == 5);
    EXPECT(weir_buf_peek_span(buf, 1, &span) == 0 && weir_buf_read_span(buf, 3, &span) == 0);
    EXPECT(weir_span_of_text("weir").length == 4);
    weir_buf_release(from);
    weir_buf_release(buf);
}

void use_numbers()
{
    weir_buf *buf = nullptr;
    uint64_t number = 0;
    int64_t negative = 0;
    size_t length = 0;

    EXPECT(weir_buf_create(0, 0, &buf) == 0);
#define USE_NUMBER(NAME, type, width, order)                             \
    do {                                                                 \
        uint8_t bytes[sizeof(type)];                                     \
        type got = 0, peeked = 0, read = 0;                              \
                                                                         \
        weir_buf_clear(buf);                                             \
        EXPECT(weir_buf_write_##NAME(buf, 41) == 0);                     \
        EXPECT(weir_buf_set_##NAME(buf, 0, 42) == 0);                    \
        EXPECT(weir_buf_get_##NAME(buf, 0, &got) == 0 && got == 42);     \
        EXPECT(weir_buf_peek_##NAME(buf, &peeked) == 0);                 \
        EXPECT(weir_buf_read_##NAME(buf, &read) == 0 && read == peeked); \
        weir_store_##NAME(bytes, 42);                                    \
        EXPECT(weir_load_##NAME(bytes) == 42);                           \
    } while (0);
    WEIR_NUMBER_MAP(USE_NUMBER)
#undef USE_NUMBER
    weir_buf_clear(buf);
    EXPECT(weir_buf_write_uint(buf, 3, WEIR_BIG_ENDIAN, 41) == 0);
    EXPECT(weir_buf_set_uint(buf, 0, 3, WEIR_BIG_ENDIAN, 42) == 0);
    EXPECT(weir_buf_get_uint(buf, 0, 3, WEIR_LITTLE_ENDIAN, &number) == 0);
    EXPECT(weir_buf_read_uint(buf, 3, WEIR_BIG_ENDIAN, &number) == 0 && number == 42);
    EXPECT(weir_buf_write_varint(buf, 300) == 0 && weir_buf_write_varint_signed(buf, -3) == 0);
    EXPECT(weir_buf_get_varint(buf, 3, &number, &length) == 0);
    EXPECT(length == weir_varint_length(300));
    EXPECT(weir_buf_get_varint_signed(buf, 3 + length, &negative, &length) == 0);
    EXPECT(length == 1 && negative == -3);
    EXPECT(weir_buf_read_varint(buf, &number) == 0 && number == 300);
    EXPECT(weir_buf_read_varint_signed(buf, &negative) == 0 && negative == -3);
    weir_buf_release(buf);
}

void use_search()
{
    weir_span weir = weir_span_of_text("weir");
    weir_buf *buf = nullptr;
    weir_byte_set set;

    EXPECT(weir_buf_create_from("weir", 4, &buf) == 0);
    weir_byte_set_init(&set, "ri", 2);
    EXPECT(weir_byte_set_has(&set, 'r'));
    EXPECT(weir_span_find(weir, 'e') == 1 && weir_buf_find(buf, 2, 'e') == -ENOENT);
    EXPECT(weir_span_find_any(weir, &set) == 2 && weir_buf_find_any(buf, 3, &set) == 3);
    EXPECT(weir_span_find_sequence(weir, weir_span_of_text("ir")) == 2);
    EXPECT(weir_buf_find_sequence(buf, 0, weir) == 0);
    EXPECT(weir_span_compare(weir, weir) == 0 && weir_buf_compare(buf, buf) == 0);
    EXPECT(weir_span_equal(weir, weir_buf_span(buf)) && weir_buf_equal(buf, buf));
    EXPECT(weir_span_hash(weir, 1) == weir_buf_hash(buf, 1));
    weir_buf_release(buf);
}

WEIR_PRINTF(2, 3)
int print(weir_buf *buf, const char *format, ...)
{
    va_list arguments;
    int err;

    va_start(arguments, format);
    err = weir_buf_vprintf(buf, format, arguments);
    va_end(arguments);
    return err;
}

void use_text()
{
    weir_utf8 utf8 = {};
    weir_buf *buf = nullptr;
    char text[100];

    EXPECT(weir_buf_create(0, 0, &buf) == 0);
    EXPECT(weir_buf_write_string(buf, "weir") == 0);
    EXPECT(weir_buf_printf(buf, " %d", 1) == 0 && print(buf, ".%d", 2) == 0);
    EXPECT(weir_buf_get_string(buf, 5, 3, text, sizeof(text)) == 0);
    EXPECT(std::strcmp(text, "1.2") == 0);
    EXPECT(weir_buf_is_utf8(buf) && weir_span_is_utf8(weir_buf_span(buf)));
    EXPECT(weir_utf8_check(&utf8, weir_buf_span(buf)) == 0 && weir_utf8_is_complete(&utf8));
    EXPECT(weir_buf_hex_dump(buf, text, sizeof(text)) == std::strlen(text));
    EXPECT(weir_span_hex_dump(weir_span_of("", 0), text, sizeof(text)) == 0);
    EXPECT(weir_buf_read_string(buf, 4, text, sizeof(text)) == 0);
    EXPECT(std::strcmp(text, "weir") == 0);
    weir_buf_release(buf);
}

/* "weir" in two components. */
weir_composite *create_composite()
{
    weir_composite *composite = nullptr;
    weir_buf *buf = nullptr;

    EXPECT(weir_composite_create(0, &composite) == 0);
    EXPECT(weir_buf_create_from("ir", 2, &buf) == 0);
    EXPECT(weir_composite_add(composite, weir_buf_msg(buf)) == 0);
    EXPECT(weir_buf_create_from("we", 2, &buf) == 0);
    EXPECT(weir_composite_insert(composite, 0, weir_buf_msg(buf)) == 0);
    return composite;
}

void read_composite(weir_composite *composite)
{
    weir_byte_set set;
    weir_span span = {};
    iovec vectors[2] = {};
    char bytes[4] = {};

    weir_byte_set_init(&set, "r", 1);
    EXPECT(weir_composite_component(composite, 0, &span) == 0 && span.length == 2);
    EXPECT(weir_composite_get_bytes(composite, 1, bytes, 2) == 0 && bytes[0] == 'e');
    EXPECT(weir_composite_peek_bytes(composite, bytes, 4) == 0 && bytes[3] == 'r');
    EXPECT(weir_composite_read_bytes(composite, bytes, 1) == 0 && bytes[0] == 'w');
    EXPECT(weir_composite_skip(composite, 1) == 0);
    EXPECT(weir_composite_read_index(composite) == 2 && weir_composite_readable(composite) == 2);
    EXPECT(weir_composite_set_read_index(composite, 0) == 0);
    EXPECT(weir_composite_find(composite, 0, 'i') == 2);
    EXPECT(weir_composite_find_any(composite, 0, &set) == 3);
    span.data = reinterpret_cast<const uint8_t *>("ei");
    EXPECT(weir_composite_find_sequence(composite, 0, span) == 1);
    EXPECT(weir_composite_iovecs(composite, vectors, 2) == 2 && vectors[1].iov_len == 2);
#define USE_NUMBER(NAME, type, width, order)                           \
    do {                                                               \
        type got, peeked, read;                                        \
        int err = weir_composite_get_##NAME(composite, 0, &got);       \
                                                                       \
        EXPECT(err == (sizeof(type) <= 4 ? 0 : WEIR_EBOUNDS));         \
        EXPECT(weir_composite_peek_##NAME(composite, &peeked) == err); \
        EXPECT(weir_composite_read_##NAME(composite, &read) == err);   \
        EXPECT(weir_composite_set_read_index(composite, 0) == 0);      \
    } while (0);
    WEIR_NUMBER_MAP(USE_NUMBER)
#undef USE_NUMBER
}

void use_composite()
{
    weir_composite *composite = create_composite();
    weir_msg *slice = nullptr;
    weir_buf *buf = nullptr;

    EXPECT(weir_composite_msg(composite)->type == &weir_composite_type);
    EXPECT(weir_composite_of(weir_composite_msg(composite)) == composite);
    read_composite(composite);
    EXPECT(weir_composite_slice(composite, 0, 1, &slice) == 0);
    weir_msg_release(slice);
    EXPECT(weir_composite_copy(composite, 0, 4, &buf) == 0);
    weir_buf_release(buf);
    EXPECT(weir_composite_consolidate(composite) == 0 && weir_composite_count(composite) == 1);
    EXPECT(weir_composite_remove(composite, 0, &buf) == 0);
    EXPECT(weir_composite_add(composite, weir_buf_msg(buf)) == 0);
    EXPECT(weir_composite_read_slice(composite, 4, &slice) == 0);
    weir_msg_release(slice);
    weir_composite_discard(composite);
    EXPECT(weir_composite_length(composite) == 0);
    weir_composite_release(weir_composite_retain(composite));
    weir_composite_release(composite);
}

void use_descriptors()
{
    weir_descriptors *one = nullptr, *two = nullptr;
    weir_buf *bytes = nullptr;
    const int numbers[] = {dup(0), dup(0)};

    EXPECT(weir_buf_create_from("ab", 2, &bytes) == 0);
    EXPECT(weir_descriptors_create(bytes, numbers, 2, &two) == 0);
    EXPECT(weir_descriptors_msg(two)->type == &weir_descriptors_type);
    EXPECT(weir_descriptors_of(weir_descriptors_msg(two)) == two);
    EXPECT(weir_descriptors_bytes(two) == bytes && weir_descriptors_count(two) == 2);
    EXPECT(weir_descriptors_at(two, 0) == numbers[0]);
    EXPECT(weir_descriptors_create_one(weir_descriptors_take(two, 0), &one) == 0);
    weir_descriptors_release(one);
    weir_descriptors_release(two);
}

void use_file_range()
{
    weir_file_range *range = nullptr, *slice = nullptr;

    EXPECT(weir_file_range_create(0, 10, 20, 0, &range) == 0);
    EXPECT(weir_file_range_msg(range)->type == &weir_file_range_type);
    EXPECT(weir_file_range_of(weir_file_range_msg(range)) == range);
    EXPECT(weir_file_range_descriptor(range) == 0);
    EXPECT(weir_file_range_offset(range) == 10 && weir_file_range_length(range) == 20);
    EXPECT(weir_file_range_advance(range, 5) == 0);
    EXPECT(weir_file_range_position(range) == 15 && weir_file_range_sent(range) == 5);
    EXPECT(weir_file_range_remaining(range) == 15);
    EXPECT(weir_file_range_slice(range, 30, 5, &slice) == 0);
    EXPECT(weir_file_range_offset(slice) == 30);
    weir_file_range_release(slice);
    weir_file_range_release(weir_file_range_retain(range));
    weir_file_range_release(range);
}

void write_to(weir_file_writer *writer)
{
    uint8_t *piece = weir_file_writer_begin(writer, 2);

    EXPECT(piece != nullptr);
    std::memcpy(piece, "x\n", 2);
    weir_file_writer_end(writer);
    weir_file_writer_push(writer);
    weir_file_writer_push_soon(writer);
    EXPECT(weir_file_writer_flush(writer) == 0 && weir_file_writer_error(writer) == 0);
}

void use_file_writer()
{
    weir_file_writer *writer = nullptr;
    int ends[2];

    EXPECT(weir_file_writer_open("/dev/null", WEIR_FILE_WRITER_QUEUE_MIN, "api", &writer) == 0);
    weir_file_writer_reopen(writer);
    write_to(writer);
    weir_file_writer_close(writer, true);
    EXPECT(pipe(ends) == 0);
    EXPECT(weir_file_writer_create(ends[1], WEIR_FILE_WRITER_QUEUE_MIN, "api", &writer) == 0);
    write_to(writer);
    weir_file_writer_close(writer, true);
    close(ends[0]);
}

void forget(void *arg, int)
{
    EXPECT(weir_buf_create(100, 0, static_cast<weir_buf **>(arg)) == 0);
}

/* What a group forgets is reported when the program asks. */
void use_leak()
{
    weir_group *group = create_group(nullptr, nullptr);
    weir_leak_scope scope;
    weir_buf *buf = nullptr;
    int reports = 0;

    EXPECT(weir_leak_set_level(WEIR_LEAK_PARANOID) == 0);
    EXPECT(weir_leak_level() == WEIR_LEAK_PARANOID);
    weir_leak_set_listener([](const weir_leak_report *report,
                              void *count) { *static_cast<int *>(count) += report->thread_ended; },
                           &reports);
    weir_leak_scope_begin(&scope);
    EXPECT(weir_leak_scope_end(&scope) == 0);
    EXPECT(weir_group_execute(group, forget, &buf) == 0);
    EXPECT(weir_group_shutdown(group, 0, weir_seconds(5)) == 0);
    EXPECT(weir_group_await_termination(group, WEIR_NEVER) == 0);
    EXPECT(reports == 0);
    EXPECT(weir_leak_check() == 1 && weir_leak_check_all() == 1);
    EXPECT(reports == 1);
    weir_buf_release(buf);
    EXPECT(weir_leak_check_all() == 0);
    weir_leak_set_listener(nullptr, nullptr);
    EXPECT(weir_leak_set_level(WEIR_LEAK_SIMPLE) == 0);
    weir_group_release(group);
}

void use_pool()
{
    weir_pool_stats stats;
    weir_pool_cache_stats cache;
    char text[64];

    EXPECT(weir_pool_set_limit(WEIR_OFF) == 0);
    EXPECT(weir_pool_trim() == 0);
    weir_pool_read_stats(&stats);
    EXPECT(stats.class_count > 0 && stats.limit_bytes == 0);
    EXPECT(weir_pool_read_cache_stats(&cache, 1) == stats.caches + stats.orphans);
    EXPECT(weir_pool_describe(text, sizeof(text)) > 0);
}

/* ---- channels ---- */

void use_address()
{
    weir_address address, copy;
    char text[WEIR_ADDRESS_TEXT_SIZE];

    EXPECT(weir_address_parse("127.0.0.1:8007", &address) == 0);
    EXPECT(weir_address_family(&address) == AF_INET && weir_address_port(&address) == 8007);
    weir_address_set_port(&address, 1);
    EXPECT(weir_address_from_sockaddr(weir_address_sockaddr(&address), address.length, &copy) == 0);
    EXPECT(weir_address_equal(&address, &copy));
    EXPECT(std::strcmp(weir_address_format(&copy, text, sizeof(text)), "127.0.0.1:1") == 0);
}

weir_msg *some_msg()
{
    weir_buf *buf = nullptr;

    EXPECT(weir_buf_create_from("x", 1, &buf) == 0);
    return weir_buf_msg(buf);
}

/* A handler that passes everything on, and counts it in its state. */
weir_handler through()
{
    weir_handler handler = weir_handler();

    handler.name = "through";
    handler.state_size = sizeof(int);
    handler.registered = [](weir_ctx *ctx) { weir_fire_registered(ctx); };
    handler.unregistered = [](weir_ctx *ctx) { weir_fire_unregistered(ctx); };
    handler.active = [](weir_ctx *ctx) { weir_fire_active(ctx); };
    handler.inactive = [](weir_ctx *ctx) { weir_fire_inactive(ctx); };
    handler.read = [](weir_ctx *ctx, weir_msg *msg) {
        ++*static_cast<int *>(weir_ctx_state(ctx));
        weir_fire_read(ctx, msg);
    };
    handler.read_complete = [](weir_ctx *ctx) { weir_fire_read_complete(ctx); };
    handler.event = [](weir_ctx *ctx, weir_msg *event) { weir_fire_event(ctx, event); };
    handler.writability = [](weir_ctx *ctx) { weir_fire_writability(ctx); };
    handler.error = [](weir_ctx *ctx, int err, const char *detail) {
        weir_fire_error(ctx, err, detail);
    };
    handler.draining = [](weir_ctx *ctx) { weir_fire_draining(ctx); };
    handler.bind = [](weir_ctx *ctx, const weir_address *local, weir_promise *done) {
        weir_bind(ctx, local, done);
    };
    handler.connect = [](weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                         weir_promise *done) { weir_connect(ctx, remote, local, done); };
    handler.disconnect = [](weir_ctx *ctx, weir_promise *done) { weir_disconnect(ctx, done); };
    handler.close = [](weir_ctx *ctx, weir_promise *done) { weir_close(ctx, done); };
    handler.deregister = [](weir_ctx *ctx, weir_promise *done) { weir_deregister(ctx, done); };
    handler.request_read = [](weir_ctx *ctx) { weir_request_read(ctx); };
    handler.write = [](weir_ctx *ctx, weir_msg *msg, weir_promise *done) {
        weir_write(ctx, msg, done);
    };
    handler.flush = [](weir_ctx *ctx) { weir_flush(ctx); };
    handler.shutdown_output = [](weir_ctx *ctx, weir_promise *done) {
        weir_shutdown_output(ctx, done);
    };
    return handler;
}

const weir_handler through_handler = through();
const weir_handler empty_handler = weir_handler();

void use_pipeline(weir_pipeline *pipeline)
{
    weir_place place = *WEIR_PLACE();
    char text[128];

    place.name = "b";
    EXPECT(weir_pipeline_add(pipeline, &place, &through_handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_first(pipeline, &through_handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_last(pipeline, &through_handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_before(pipeline, "b", &empty_handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_after(pipeline, "b", &empty_handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_last_as(pipeline, "z", &empty_handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_initializer(
               pipeline, [](weir_channel *, void *) { return 0; }, nullptr) == 0);
    place.name = "y";
    EXPECT(weir_pipeline_replace(pipeline, "z", &place, &empty_handler, nullptr) == 0);
    EXPECT(weir_pipeline_remove(pipeline, "y", nullptr) == 0);
    EXPECT(weir_pipeline_count(pipeline) == 5);
    EXPECT(weir_pipeline_dump(pipeline, text, sizeof(text)) > 0);
    EXPECT(weir_channel_pipeline(weir_pipeline_channel(pipeline)) == pipeline);
    EXPECT(weir_pipeline_find_handler(pipeline, &through_handler) != nullptr);
    weir_pipeline_fire_read(pipeline, some_msg());
    weir_pipeline_fire_read_complete(pipeline);
    weir_pipeline_fire_event(pipeline, some_msg());
    weir_pipeline_fire_error(pipeline, -1, "only a test");
}

void use_ctx(weir_embedded *embedded, weir_group *group)
{
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);
    weir_ctx *ctx = weir_pipeline_find(pipeline, "b");
    static weir_timer timer;

    EXPECT(ctx != nullptr && *static_cast<int *>(weir_ctx_state(ctx)) == 1);
    EXPECT(weir_ctx_handler(ctx) == &through_handler);
    EXPECT(std::strcmp(weir_ctx_name(ctx), "b") == 0);
    EXPECT(weir_ctx_channel(ctx) == weir_embedded_channel(embedded));
    EXPECT(weir_ctx_pipeline(ctx) == pipeline);
    EXPECT(weir_in_executor(weir_ctx_executor(ctx)));
    EXPECT(!weir_ctx_is_removed(ctx) && weir_ctx_is_writable(ctx));
    EXPECT(weir_ctx_next_writer(ctx) != ctx);
    EXPECT(weir_ctx_now(ctx) == weir_loop_now(weir_ctx_executor(ctx)));
    EXPECT(weir_ctx_turn_elapsed(ctx) >= 0);
    EXPECT(weir_ctx_retain(ctx) == ctx);
    weir_ctx_release(ctx);
    weir_ctx_set_auto_read(ctx, true);
    weir_ctx_add_pending_bytes(ctx, 1);
    if (weir_ctx_pause_input(ctx) == 0)
        weir_ctx_resume_input(ctx);
    weir_write_and_flush(ctx, some_msg(), nullptr);
    weir_timer_init(&timer);
    EXPECT(weir_ctx_timer_start(ctx, &timer, 0, [](weir_ctx *, weir_timer *) {}) == 0);
    EXPECT(weir_ctx_offload(
               ctx, group, [](void *arg) { return arg; }, [](weir_ctx *, int, void *, void *) {},
               nullptr) == 0);
    EXPECT(weir_ctx_offload_to(
               ctx, weir_group_next(group), [](void *arg) { return arg; },
               [](weir_ctx *, int, void *, void *) {}, nullptr) == 0);
    weir_ctx_remove(ctx);
    weir_embedded_run(embedded);
}

void use_channel(weir_channel *channel)
{
    weir_channel_options options = *WEIR_CHANNEL_OPTIONS();
    weir_channel_stats stats;
    weir_address address;
    char text[128];
    int value = 0;
    size_t length = sizeof(value);

    options.keep_open_on_error = true;
    EXPECT(weir_channel_set_options(channel, &options) == 0);
    weir_channel_get_options(channel, &options);
    EXPECT(weir_channel_set_socket_option(channel, 0, 0, &value, length) != 0);
    EXPECT(weir_channel_get_socket_option(channel, 0, 0, &value, &length) != 0);
    weir_channel_release(weir_channel_retain(channel));
    EXPECT(weir_channel_id(channel) > 0 && weir_channel_executor(channel) != nullptr);
    EXPECT(weir_channel_parent(channel) == nullptr);
    EXPECT(weir_channel_is_open(channel) && weir_channel_is_registered(channel));
    EXPECT(weir_channel_is_active(channel) && weir_channel_is_writable(channel));
    EXPECT(!weir_channel_has_peer_ended(channel));
    weir_channel_skip_linger(channel);
    EXPECT(weir_channel_local_address(channel, &address) == 0);
    EXPECT(weir_channel_remote_address(channel, &address) == 0);
    weir_channel_read_stats(&stats);
    EXPECT(stats.open >= 1);
    EXPECT(weir_channel_read_stats_of("embedded", &stats) == 0 && stats.open >= 1);
    EXPECT(weir_channel_format(channel, text, sizeof(text)) == text);
    weir_channel_set_auto_read(channel, true);
    EXPECT(weir_channel_auto_read(channel));
    EXPECT(weir_channel_bytes_before_unwritable(channel) > 0);
    EXPECT(weir_channel_bytes_before_writable(channel) == 0);
    EXPECT(weir_channel_pending_bytes(channel) == 0);
    EXPECT(weir_channel_sent_at(channel) >= 0);
    EXPECT(weir_channel_bytes_sent(channel) >= 0);
    EXPECT(weir_channel_set_user_writable(channel, 1, true) == 0);
    weir_channel_write(channel, some_msg(), nullptr);
    weir_channel_write_and_flush(channel, some_msg(), nullptr);
    weir_channel_flush(channel);
    weir_channel_request_read(channel);
    weir_channel_fire_event(channel, weir_msg_retain(weir_event_input_closed()));
    weir_channel_fire_event(channel, weir_msg_retain(weir_event_output_closed()));
    weir_channel_fire_event(channel, weir_msg_retain(weir_event_hangup()));
    weir_channel_bind(channel, &address, nullptr);
    weir_channel_connect(channel, &address, nullptr, nullptr);
    weir_channel_register(channel, weir_channel_executor(channel), nullptr);
    EXPECT(weir_channel_of(nullptr) == nullptr);
}

void use_attributes(weir_channel *channel)
{
    static const weir_attribute attribute = weir_attribute();
    int value = 0;

    EXPECT(weir_attribute_set(channel, &attribute, &value) == 0);
    EXPECT(weir_attribute_set_if_absent(channel, &attribute, &value) == &value);
    EXPECT(weir_attribute_get(channel, &attribute) == &value);
    EXPECT(weir_attribute_take(channel, &attribute) == &value);
    EXPECT(!weir_attribute_remove(channel, &attribute));
}

void use_end(weir_channel *channel)
{
    weir_channel_shutdown_input(channel, nullptr);
    weir_channel_shutdown_output(channel, nullptr);
    weir_channel_disconnect(channel, nullptr);
    weir_channel_deregister(channel, nullptr);
    weir_channel_close(channel, nullptr);
    weir_channel_abort(channel, nullptr);
    weir_group_register(nullptr, channel, nullptr);
    EXPECT(weir_promise_is_done(weir_channel_closed(channel)));
    EXPECT(weir_channel_await_closed(channel, 0) <= 0);
}

void count_member(weir_channel *, void *user_data)
{
    ++*static_cast<int *>(user_data);
}

void use_channel_group()
{
    weir_channel_group_options options = *WEIR_CHANNEL_GROUP_OPTIONS();
    weir_channel_group *group = nullptr;
    weir_embedded *embedded = nullptr;
    int members = 0;

    options.name = "room";
    EXPECT(weir_channel_group_create(&options, &group) == 0);
    weir_channel_group_release(weir_channel_group_retain(group));
    EXPECT(std::strcmp(weir_channel_group_name(group), "room") == 0);
    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    weir_channel *channel = weir_embedded_channel(embedded);
    EXPECT(weir_channel_group_add(group, channel) == 0);
    EXPECT(weir_channel_group_remove(group, channel) == 0);
    EXPECT(weir_channel_group_add(group, channel) == 0);
    EXPECT(weir_channel_group_contains(group, channel) && weir_channel_group_size(group) == 1);
    weir_channel *found = weir_channel_group_find(group, weir_channel_id(channel));
    EXPECT(found == channel);
    weir_channel_release(found);
    weir_channel_group_foreach(group, count_member, &members);
    EXPECT(members == 1);
    weir_channel_group_write(group, some_msg(), nullptr, weir_match_is, channel);
    weir_channel_group_flush(group, weir_match_connections, nullptr);
    weir_channel_group_write_and_flush(group, some_msg(), nullptr, weir_match_writable, nullptr);
    weir_channel_group_close(group, nullptr, weir_match_listeners, nullptr);
    weir_channel_group_disconnect(group, nullptr, weir_match_is_not, channel);
    weir_channel_group_deregister(group, nullptr, weir_match_is_not, channel);
    weir_channel_group_abort(group, nullptr, nullptr, nullptr);
    (void)weir_embedded_finish(embedded);
    weir_embedded_release(embedded);
    weir_channel_group_release(group);
}

void use_channels()
{
    weir_embedded_options options = *WEIR_EMBEDDED_OPTIONS();
    weir_group_options group_options = *WEIR_GROUP_OPTIONS();
    weir_embedded *embedded = nullptr;
    weir_group *group = nullptr;
    weir_channel_options channel_options = *WEIR_CHANNEL_OPTIONS();

    group_options.io = WEIR_IO_NONE;
    group_options.threads = 1;
    EXPECT(weir_group_create(&group_options, &group) == 0);
    channel_options.keep_open_on_error = true;
    options.register_later = true;
    options.channel = &channel_options;
    EXPECT(weir_embedded_create(&options, &embedded) == 0);
    EXPECT(weir_embedded_register(embedded) == 0);
    EXPECT(weir_embedded_clock(embedded) != nullptr);
    use_channel(weir_embedded_channel(embedded));
    EXPECT(weir_embedded_take_error(embedded) != 0);
    use_pipeline(weir_embedded_pipeline(embedded));
    use_ctx(embedded, group);
    use_attributes(weir_embedded_channel(embedded));
    (void)weir_embedded_take_error(embedded);
    EXPECT(weir_embedded_write_inbound(embedded, some_msg()) == 0);
    EXPECT(weir_embedded_write_one_inbound(embedded, some_msg()) == 0);
    EXPECT(weir_embedded_write_outbound(embedded, some_msg()) == 0);
    weir_msg_release(weir_embedded_read_inbound(embedded));
    weir_msg_release(weir_embedded_read_outbound(embedded));
    weir_embedded_make_space(embedded, 1);
    weir_embedded_advance(embedded, weir_ms(1));
    use_end(weir_embedded_channel(embedded));
    weir_embedded_end_input(embedded);
    EXPECT(weir_embedded_finish(embedded));
    weir_embedded_release(embedded);
    weir_group_release(group);
}

/* ---- handlers that watch the wire ---- */

void use_logging(weir_pipeline *pipeline)
{
    weir_logging_options options = *WEIR_LOGGING_OPTIONS();

    EXPECT(weir_logging_add(pipeline, &options) == 0);
}

void use_ip_filter(weir_pipeline *pipeline)
{
    const weir_ip_rule rule = {"192.0.2.0/24", WEIR_IP_REJECT};
    weir_ip_filter_options options = *WEIR_IP_FILTER_OPTIONS();
    weir_ip_filter *filter = nullptr;
    weir_address address;

    options.rules = &rule;
    options.rule_count = 1;
    EXPECT(weir_ip_filter_create(&options, &filter) == 0);
    EXPECT(weir_address_parse("192.0.2.1:9", &address) == 0);
    EXPECT(weir_ip_filter_check(filter, &address) == WEIR_IP_REJECT);
    EXPECT(weir_ip_filter_add(pipeline, filter) == 0);
    EXPECT(weir_ip_filter_rejected(filter) == 0);
    weir_ip_filter_release(weir_ip_filter_retain(filter));
    weir_ip_filter_release(filter);
}

void use_connection_limit(weir_pipeline *pipeline)
{
    weir_connection_limit_options options = *WEIR_CONNECTION_LIMIT_OPTIONS();
    weir_connection_limit *limit = nullptr;
    weir_connection_limit_stats stats;

    options.max = 1;
    EXPECT(weir_connection_limit_create(&options, &limit) == 0);
    EXPECT(weir_connection_limit_add(pipeline, limit) == 0);
    weir_connection_limit_read_stats(limit, &stats);
    EXPECT(stats.open == 1);
    weir_connection_limit_release(weir_connection_limit_retain(limit));
    weir_connection_limit_release(limit);
}

void use_proxy_header(weir_proxy_header *header)
{
    weir_buf *buf = nullptr;
    weir_span value;

    EXPECT(weir_proxy_header_msg(header)->type == &weir_proxy_header_type);
    EXPECT(weir_proxy_header_of(weir_proxy_header_msg(header)) == header);
    EXPECT(weir_proxy_header_version(header) == 2 && !weir_proxy_header_is_local(header));
    EXPECT(!weir_proxy_header_is_datagram(header));
    EXPECT(weir_address_port(weir_proxy_header_source(header)) == 9);
    EXPECT(weir_address_port(weir_proxy_header_destination(header)) == 9);
    EXPECT(!weir_proxy_tlv_find(weir_proxy_header_tlvs(header), WEIR_PROXY_ALPN, &value));
    EXPECT(weir_buf_create(0, 0, &buf) == 0);
    EXPECT(weir_proxy_header_write(header, buf) == 0);
    weir_buf_release(buf);
}

void use_proxy_protocol(weir_embedded *embedded)
{
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_proxy_header_options options = *WEIR_PROXY_HEADER_OPTIONS();
    weir_proxy_receiver_options receiver = *WEIR_PROXY_RECEIVER_OPTIONS();
    weir_proxy_header *header = nullptr;
    weir_address address;

    EXPECT(weir_address_parse("192.0.2.1:9", &address) == 0);
    options.source = &address;
    options.destination = &address;
    EXPECT(weir_proxy_header_create(&options, &header) == 0);
    use_proxy_header(header);
    EXPECT(weir_proxy_sender_add(weir_embedded_pipeline(embedded), header) == 0);
    weir_proxy_header_release(weir_proxy_header_retain(header));
    weir_proxy_header_release(header);
    EXPECT(weir_proxy_receiver_add(weir_embedded_pipeline(embedded), &receiver) == 0);
    EXPECT(weir_proxy_received_header(channel) == nullptr);
    EXPECT(weir_proxy_source(channel, &address) == 0);
    EXPECT(weir_proxy_destination(channel, &address) == 0);
}

void use_pcap(weir_pipeline *pipeline)
{
    weir_pcap_options options = *WEIR_PCAP_OPTIONS();
    weir_pcap_stats stats;
    weir_pcap *pcap = nullptr;

    options.path = "/dev/null";
    EXPECT(weir_pcap_create(&options, &pcap) == 0);
    EXPECT(weir_pcap_add(pipeline, pcap) == 0);
    EXPECT(weir_pcap_flush(pcap) == 0);
    weir_pcap_read_stats(pcap, &stats);
    EXPECT(stats.error == 0);
    weir_pcap_release(weir_pcap_retain(pcap));
    weir_pcap_release(pcap);
}

void use_counters(weir_pipeline *pipeline)
{
    weir_counters_options options = *WEIR_COUNTERS_OPTIONS();
    weir_counters_stats figures;
    weir_counters *counters = nullptr;

    EXPECT(weir_counters_create(&options, &counters) == 0);
    EXPECT(weir_counters_add(pipeline, counters) == 0);
    weir_counters_read_stats(counters, &figures);
    EXPECT(figures.open == 1);
    weir_counters_release(weir_counters_retain(counters));
    weir_counters_release(counters);
}

void use_timing(weir_pipeline *pipeline)
{
    weir_timing_options options = *WEIR_TIMING_OPTIONS();
    weir_timing *timing = nullptr;

    EXPECT(weir_timing_create(&options, &timing) == 0);
    EXPECT(weir_timing_add(pipeline, timing) == 0);
    EXPECT(weir_timing_histogram(timing, WEIR_TIMING_READ) != nullptr);
    weir_timing_release(weir_timing_retain(timing));
    weir_timing_release(timing);
}

void use_wire_handlers()
{
    weir_embedded *embedded = nullptr;

    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    use_logging(weir_embedded_pipeline(embedded));
    use_ip_filter(weir_embedded_pipeline(embedded));
    use_connection_limit(weir_embedded_pipeline(embedded));
    use_proxy_protocol(embedded);
    use_pcap(weir_embedded_pipeline(embedded));
    use_counters(weir_embedded_pipeline(embedded));
    use_timing(weir_embedded_pipeline(embedded));
    weir_embedded_release(embedded);
}

/* ---- transports and bootstraps ---- */

void use_datagram()
{
    weir_datagram *datagram = nullptr;
    weir_address address;
    weir_buf *buf = nullptr;

    EXPECT(weir_address_parse("127.0.0.1:9", &address) == 0);
    EXPECT(weir_buf_create_from("x", 1, &buf) == 0);
    EXPECT(weir_datagram_create(weir_buf_msg(buf), nullptr, &datagram) == 0);
    EXPECT(weir_datagram_msg(datagram)->type == &weir_datagram_type);
    EXPECT(weir_datagram_of(weir_datagram_msg(datagram)) == datagram);
    EXPECT(weir_datagram_content(datagram) == weir_buf_msg(buf));
    EXPECT(weir_datagram_buf(datagram) == buf);
    weir_datagram_set_sender(datagram, &address);
    EXPECT(weir_address_equal(weir_datagram_sender(datagram), &address));
    weir_datagram_set_sender(datagram, nullptr);
    weir_datagram_set_recipient(datagram, &address);
    EXPECT(weir_address_equal(weir_datagram_recipient(datagram), &address));
    weir_datagram_make_reply(datagram);
    EXPECT(weir_datagram_sender(datagram)->length == 0);
    weir_datagram_set_segment_size(datagram, 100);
    EXPECT(weir_datagram_segment_size(datagram) == 100);
    weir_msg_release(weir_datagram_take_content(datagram));
    weir_datagram_release(weir_datagram_retain(datagram));
    weir_datagram_release(datagram);
}

void use_unix()
{
    weir_channel *channel = nullptr;
    weir_unix_peer peer = {};
    gid_t groups[4];
    size_t count = 4;

    EXPECT(weir_unix_create(WEIR_KIND_SEQPACKET, nullptr, &channel) == 0);
    EXPECT(weir_unix_read_peer(channel, &peer) == -ENOTSUP);
    EXPECT(weir_unix_read_peer_groups(channel, groups, &count) == -ENOTSUP);
    weir_channel_release(channel);
    EXPECT(weir_unix_create_server(WEIR_KIND_STREAM, nullptr, nullptr, &channel) == 0);
    EXPECT(weir_unix_disable_unlink(channel) == 0);
    weir_channel_release(channel);
}

void use_transports()
{
    weir_channel *channel = nullptr;
    weir_address group;
    int descriptor;

    EXPECT(weir_tcp_create(nullptr, &channel) == 0);
    weir_channel_release(channel);
    EXPECT(weir_tcp_create_server(nullptr, nullptr, &channel) == 0);
    EXPECT(weir_channel_duplicate_descriptor(channel, &descriptor) < 0);
    weir_channel_release(channel);
    EXPECT(weir_adopt(-1, nullptr, &channel) < 0);
    EXPECT(weir_adopt_server(-1, nullptr, nullptr, &channel) < 0);
    EXPECT(weir_udp_create(nullptr, &channel) == 0);
    EXPECT(weir_address_parse("224.0.0.251:0", &group) == 0);
    weir_udp_join(channel, &group, nullptr, nullptr, nullptr);
    weir_udp_leave(channel, &group, nullptr, nullptr, nullptr);
    weir_channel_release(channel);
    use_unix();
    EXPECT(weir_inproc_create(nullptr, &channel) == 0);
    weir_channel_release(channel);
    EXPECT(weir_inproc_create_server(nullptr, nullptr, &channel) == 0);
    weir_channel_release(channel);
}

void use_addresses()
{
    weir_address number;
    weir_addresses *addresses = nullptr;

    EXPECT(weir_address_parse("192.0.2.1:80", &number) == 0);
    EXPECT(weir_addresses_create(&number, 1, &addresses) == 0);
    EXPECT(weir_addresses_retain(addresses)->count == 1);
    weir_addresses_release(addresses);
    weir_addresses_release(addresses);
}

void answer_always(void *, const char *, uint16_t port, weir_promise *promise)
{
    weir_address address;

    EXPECT(weir_address_parse("192.0.2.1:0", &address) == 0);
    EXPECT(weir_resolver_answer(promise, &address, 1, port) == 0);
}

void use_resolver()
{
    weir_resolver_options options = *WEIR_RESOLVER_OPTIONS();
    weir_resolver_type type = {};
    weir_resolver_stats stats;
    weir_resolver *system = nullptr, *own = nullptr;
    weir_promise *resolving = nullptr;

    use_addresses();
    EXPECT(weir_resolver_create_system(&options, &system) == 0);
    weir_resolver_flush(system);
    weir_resolver_read_stats(system, &stats);
    EXPECT(stats.queries == 0 && weir_resolver_default() != system);
    weir_resolver_release(system);
    type.name = "own";
    type.resolve = answer_always;
    EXPECT(weir_resolver_create(&type, nullptr, &own) == 0);
    EXPECT(weir_resolver_resolve(weir_resolver_retain(own), "x.test:80", nullptr, &resolving) == 0);
    EXPECT(weir_promise_sync(resolving, WEIR_NEVER) == 0);
    weir_promise_release(resolving);
    weir_resolver_release(own);
    weir_resolver_release(own);
}

void use_client(weir_group *group, const char *address)
{
    weir_client_options options = *WEIR_CLIENT_OPTIONS();
    weir_promise *connecting = nullptr;
    weir_channel *channel = nullptr;

    options.group = group;
    options.address = address;
    EXPECT(weir_client_connect(&options, &connecting) == 0);
    EXPECT(weir_promise_sync(connecting, WEIR_NEVER) == 0);
    weir_channel_abort(static_cast<weir_channel *>(weir_promise_value(connecting)), nullptr);
    weir_promise_release(connecting);
    EXPECT(weir_client_connect_sync(&options, &channel) == 0);
    weir_channel_abort(channel, nullptr);
    weir_channel_release(channel);
}

void use_client_pool(weir_group *group, const char *address)
{
    weir_client_options client = *WEIR_CLIENT_OPTIONS();
    weir_client_pool_options options = *WEIR_CLIENT_POOL_OPTIONS();
    weir_client_pool_stats stats;
    weir_client_pool *pool = nullptr;
    weir_promise *acquiring = nullptr;

    client.group = group;
    client.address = address;
    options.client = &client;
    EXPECT(weir_client_pool_create(&options, &pool) == 0);
    EXPECT(weir_client_pool_acquire(pool, nullptr, &acquiring) == 0);
    EXPECT(weir_promise_sync(acquiring, WEIR_NEVER) == 0);
    weir_client_pool_return(pool, static_cast<weir_channel *>(weir_promise_value(acquiring)),
                            nullptr);
    weir_promise_release(acquiring);
    weir_client_pool_read_stats(pool, &stats);
    EXPECT(stats.created == 1);
    weir_client_pool_close(pool);
    EXPECT(weir_promise_sync(weir_client_pool_closed(weir_client_pool_retain(pool)), WEIR_NEVER) ==
           0);
    weir_client_pool_release(pool);
    weir_client_pool_release(pool);
}

void use_client_pools(weir_group *group, const char *address)
{
    weir_client_options client = *WEIR_CLIENT_OPTIONS();
    weir_client_pool_options options = *WEIR_CLIENT_POOL_OPTIONS();
    weir_client_pools *pools = nullptr;
    weir_client_pool *pool = nullptr;

    client.group = group;
    options.client = &client;
    EXPECT(weir_client_pools_create(&options, &pools) == 0);
    EXPECT(weir_client_pools_get(weir_client_pools_retain(pools), address, &pool) == 0);
    EXPECT(weir_client_pools_count(pools) == 1);
    weir_client_pool_release(pool);
    weir_client_pools_close(pools);
    weir_client_pools_release(pools);
    weir_client_pools_release(pools);
}

void use_server_later(weir_server_options options)
{
    weir_server *server = nullptr;
    weir_promise *started = nullptr;

    EXPECT(weir_promise_create(nullptr, &started) == 0);
    EXPECT(weir_server_start_later(&options, started, &server) == 0);
    EXPECT(weir_promise_sync(started, WEIR_NEVER) == 0);
    EXPECT(weir_server_listener_count(server) == 1);
    EXPECT(weir_server_address_index(weir_server_listener(server, 0)) == 0);
    weir_server_release(weir_server_retain(server));
    weir_server_close(server);
    EXPECT(weir_server_run(server) == 0); /* it is closed: no need to wait for a signal */
    weir_server_release(server);
    weir_promise_release(started);
}

void use_restart(weir_server *server)
{
    weir_systemd_listener listener;
    weir_restart_options options = *WEIR_RESTART_OPTIONS();
    int64_t interval_ns;

    EXPECT(weir_systemd_listeners(true, &listener, 1) == 0);
    EXPECT(weir_systemd_notify("STATUS=x") == 0);
    EXPECT(weir_systemd_watchdog(&interval_ns) == 0);
    EXPECT(weir_server_restart(server, &options, nullptr) < 0);
}

void use_bootstraps()
{
    weir_group_options group_options = *WEIR_GROUP_OPTIONS();
    weir_server_options options = *WEIR_SERVER_OPTIONS();
    weir_group *group = nullptr;
    weir_server *server = nullptr;

    group_options.threads = 1;
    EXPECT(weir_group_create(&group_options, &group) == 0);
    options.boss = group;
    options.address = "inproc:api";
    options.init_child = [](weir_channel *, void *) { return 0; };
    EXPECT(weir_server_start(&options, &server) == 0);
    use_client(group, options.address);
    use_client_pool(group, options.address);
    use_client_pools(group, options.address);
    use_restart(server);
    options.address = "inproc:later";
    use_server_later(options);
    EXPECT(weir_server_stop(server, 0, weir_seconds(1)) == 0);
    weir_server_release(server);
    weir_group_release(group);
}

/* ---- handlers of time and flow ---- */

void watch_idle(weir_ctx *, weir_msg *event)
{
    const weir_idle_event *idle = weir_idle_event_of(event);

    EXPECT(idle != nullptr && weir_idle_event_kind(idle) == WEIR_IDLE_READER);
    EXPECT(idle != nullptr && weir_idle_event_is_first(idle));
    weir_msg_release(event);
}

void use_time_and_flow()
{
    weir_handler listener = {};
    weir_idle_options idle = *WEIR_IDLE_OPTIONS();
    weir_read_timeout_options read_timeout = *WEIR_READ_TIMEOUT_OPTIONS();
    weir_write_timeout_options write_timeout = *WEIR_WRITE_TIMEOUT_OPTIONS();
    weir_flush_consolidation_options flushes = *WEIR_FLUSH_CONSOLIDATION_OPTIONS();
    weir_embedded *embedded = nullptr;

    listener.name = "listener";
    listener.event = watch_idle;
    idle.reader_ns = weir_ms(10);
    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);
    EXPECT(weir_idle_add(pipeline, &idle) == 0);
    EXPECT(weir_read_timeout_add(pipeline, &read_timeout) == 0);
    EXPECT(weir_write_timeout_add(pipeline, &write_timeout) == 0);
    EXPECT(weir_flush_consolidation_add(pipeline, &flushes) == 0);
    EXPECT(weir_flow_control_add(pipeline) == 0);
    EXPECT(weir_pipeline_add_last(pipeline, &listener, nullptr) == 0);
    weir_embedded_advance(embedded, weir_ms(10));
    weir_embedded_release(embedded);
}

int retain_msg(weir_ctx *, weir_msg *msg, weir_msg_list *out)
{
    EXPECT(weir_msg_list_count(out) == 0);
    return weir_msg_list_add(out, weir_msg_retain(msg));
}

int decode_msg(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    return weir_msg_size(msg) == 0 ? weir_msg_decoder_fail(ctx, WEIR_EMALFORMED, "nothing")
                                   : retain_msg(ctx, msg, out);
}

weir_msg_codec make_msg_codec()
{
    weir_msg_codec codec = {};

    codec.decoder.handler.name = "msg-codec";
    codec.decoder.handler.state_size = sizeof(weir_msg_decoder_state);
    codec.decoder.handler.read = weir_msg_decoder_read;
    codec.decoder.handler.removed = weir_msg_decoder_removed;
    codec.decoder.handler.inactive = weir_msg_decoder_inactive;
    codec.decoder.handler.read_complete = weir_msg_decoder_read_complete;
    codec.decoder.handler.event = weir_msg_decoder_event;
    codec.decoder.handler.request_read = weir_msg_decoder_request_read;
    codec.decoder.handler.buffers_reads = true;
    codec.decoder.handler.write = weir_msg_codec_write;
    codec.decoder.decode = decode_msg;
    codec.encode = retain_msg;
    return codec;
}

weir_msg_encoder make_msg_encoder()
{
    weir_msg_encoder encoder = {};

    encoder.handler.name = "msg-encoder";
    encoder.handler.write = weir_msg_encoder_write;
    encoder.encode = retain_msg;
    return encoder;
}

unsigned kind_of_all(const weir_msg *)
{
    return WEIR_AGGREGATOR_START | WEIR_AGGREGATOR_LAST;
}

int begin_whole(weir_ctx *, weir_msg *start, weir_msg **ret_whole)
{
    *ret_whole = weir_msg_retain(start);
    return 0;
}

int init_aggregator(void *state, const void *)
{
    weir_aggregator_set_max_length(static_cast<weir_aggregator_state *>(state), 100);
    return 0;
}

weir_aggregator make_aggregator()
{
    weir_aggregator aggregator = {};

    aggregator.handler.name = "aggregator";
    aggregator.handler.state_size = sizeof(weir_aggregator_state);
    aggregator.handler.init = init_aggregator;
    aggregator.handler.removed = weir_aggregator_removed;
    aggregator.handler.inactive = weir_aggregator_inactive;
    aggregator.handler.read = weir_aggregator_read;
    aggregator.handler.read_complete = weir_aggregator_read_complete;
    aggregator.handler.event = weir_aggregator_event;
    aggregator.handler.request_read = weir_aggregator_request_read;
    aggregator.handler.buffers_reads = true;
    aggregator.classify = kind_of_all;
    aggregator.begin = begin_whole;
    return aggregator;
}

void use_msg_codecs()
{
    static const weir_msg_codec codec = make_msg_codec();
    static const weir_msg_encoder encoder = make_msg_encoder();
    static const weir_aggregator aggregator = make_aggregator();
    static weir_codec bytes = {};
    weir_embedded *embedded = nullptr;

    bytes.decoder.handler.name = "codec";
    bytes.decoder.handler.write = weir_codec_write;
    bytes.type = &weir_file_range_type;
    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);
    EXPECT(weir_pipeline_add_last(pipeline, &codec.decoder.handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_last(pipeline, &encoder.handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_last(pipeline, &aggregator.handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_last(pipeline, &bytes.decoder.handler, nullptr) == 0);
    EXPECT(weir_embedded_write_inbound(embedded, some_msg()) == 0);
    EXPECT(weir_embedded_write_outbound(embedded, some_msg()) == 0);
    weir_embedded_release(embedded);
}

int make_no_chunk(void *, weir_msg **)
{
    return WEIR_CHUNKS_END;
}

void hear_progress(int64_t, int64_t, void *)
{
}

void use_chunks()
{
    static const weir_chunk_source source = {make_no_chunk, nullptr, {}};
    weir_embedded *embedded = nullptr;
    weir_chunks *chunks = nullptr;
    weir_file_range *range = nullptr;

    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    EXPECT(weir_chunked_writing_add(weir_embedded_pipeline(embedded)) == 0);
    EXPECT(weir_file_reading_add(weir_embedded_pipeline(embedded)) == 0);
    EXPECT(weir_file_range_create(0, 0, 0, 0, &range) == 0);
    EXPECT(weir_chunks_create_range(range, 0, &chunks) == 0);
    weir_msg_release(weir_chunks_msg(chunks));
    EXPECT(weir_chunks_create_file(-1, 0, 0, 0, 0, &chunks) < 0);
    EXPECT(weir_chunks_create(&source, nullptr, -1, &chunks) == 0);
    weir_chunks_on_progress(chunks, hear_progress, nullptr);
    EXPECT(weir_chunks_of(weir_chunks_msg(chunks)) == chunks);
    EXPECT(weir_msg_is(weir_chunks_msg(chunks), &weir_chunks_type));
    EXPECT(weir_embedded_write_outbound(embedded, weir_chunks_msg(chunks)) == 0);
    weir_embedded_release(embedded);
}

weir_pending_writes *pending_of(weir_ctx *ctx)
{
    return static_cast<weir_pending_writes *>(weir_ctx_state(ctx));
}

void use_pending_writes()
{
    weir_embedded *embedded = nullptr;
    int64_t cost = 0;
    weir_promise *done = nullptr;
    weir_handler keeper = {};

    keeper.state_size = sizeof(weir_pending_writes);
    keeper.name = "keeper";
    keeper.write = [](weir_ctx *ctx, weir_msg *msg, weir_promise *promise) {
        EXPECT(weir_pending_writes_add(ctx, pending_of(ctx), msg, promise) != nullptr);
    };
    keeper.flush = [](weir_ctx *ctx) { weir_pending_writes_flush(pending_of(ctx)); };
    keeper.close = [](weir_ctx *ctx, weir_promise *promise) {
        weir_pending_writes_close(ctx, pending_of(ctx), promise);
    };
    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    EXPECT(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &keeper, nullptr) == 0);
    for (int n = 0; n < 5; n++)
        EXPECT(weir_embedded_write_outbound(embedded, some_msg()) == 0);
    weir_ctx *ctx = weir_pipeline_find(weir_embedded_pipeline(embedded), "keeper");
    EXPECT(pending_of(ctx)->flushed == 5);
    weir_pending_writes_shorten(pending_of(ctx), 1);
    weir_msg_release(weir_pending_writes_take_charged(pending_of(ctx), &done, &cost));
    weir_promise_release(done);
    weir_write_pending(ctx, some_msg(), nullptr, cost + 1);
    weir_pending_writes_pass(ctx, pending_of(ctx));
    weir_msg_release(weir_pending_writes_take(ctx, pending_of(ctx), &done));
    weir_promise_release(done);
    weir_pending_writes_fail_first(ctx, pending_of(ctx), -EIO, nullptr);
    weir_pending_writes_fail(ctx, pending_of(ctx), -EIO, nullptr);
    weir_pending_writes_defer_shutdown_output(ctx, pending_of(ctx), nullptr);
    EXPECT(weir_pending_writes_is_ending(pending_of(ctx)));
    weir_pending_writes_fail_shutdown_output(ctx, pending_of(ctx), -EIO, nullptr);
    weir_pending_writes_shutdown_output(ctx, pending_of(ctx), nullptr);
    weir_pending_writes_defer_close(ctx, pending_of(ctx), nullptr);
    weir_pending_writes_run_deferred(ctx, pending_of(ctx));
    weir_embedded_release(embedded);
}

void use_traffic()
{
    weir_embedded *embedded = nullptr;
    weir_traffic *traffic = nullptr;
    weir_traffic_options options = *WEIR_TRAFFIC_OPTIONS();
    weir_traffic_stats stats;

    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    EXPECT(weir_traffic_create(&options, &traffic) == 0);
    EXPECT(weir_traffic_set_rates(traffic, 1000, 1000) == 0);
    EXPECT(weir_traffic_shaping_add(weir_embedded_pipeline(embedded), traffic) == 0);
    weir_traffic_read_stats(traffic, &stats);
    EXPECT(stats.bytes_waiting == 0);
    weir_traffic_release(weir_traffic_retain(traffic));
    weir_traffic_release(traffic);
    weir_embedded_release(embedded);
}

/* ---- codecs ---- */

int take_byte(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir_buf *byte = nullptr;

    if (weir_buf_readable(in) < 2)
        return weir_decoder_need(ctx, 2);
    if (weir_buf_bytes(in)[0] == '!')
        return weir_decoder_fail(ctx, WEIR_EMALFORMED, "an exclamation mark");
    EXPECT(weir_buf_read_slice(in, 2, &byte) == 0);
    if (!weir_decoder_has_demand(ctx))
        return weir_decoder_finish(ctx);
    if (weir_buf_bytes(byte)[0] == 'a')
        weir_decoder_pass(ctx, weir_buf_msg(byte));
    else
        *ret_msg = weir_buf_msg(byte);
    return 1;
}

int put_byte(weir_ctx *, weir_msg *, weir_buf *out)
{
    return weir_buf_write_u8(out, 'x');
}

weir_decoder make_decoder()
{
    weir_decoder decoder = {};

    decoder.handler.name = "decoder";
    decoder.handler.state_size = sizeof(weir_decoder_state);
    decoder.handler.removed = weir_decoder_removed;
    decoder.handler.inactive = weir_decoder_inactive;
    decoder.handler.read = weir_decoder_read;
    decoder.handler.read_complete = weir_decoder_read_complete;
    decoder.handler.event = weir_decoder_event;
    decoder.handler.request_read = weir_decoder_request_read;
    decoder.handler.buffers_reads = true;
    decoder.decode = take_byte;
    return decoder;
}

weir_encoder make_encoder()
{
    weir_encoder encoder = {};

    encoder.handler.name = "encoder";
    encoder.handler.write = weir_encoder_write;
    encoder.type = &weir_buf_type;
    encoder.encode = put_byte;
    return encoder;
}

void report_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, 0, nullptr);
}

void use_codecs()
{
    static const weir_decoder decoder = make_decoder();
    static const weir_encoder encoder = make_encoder();
    weir_handler reporter = {};
    weir_embedded *embedded = nullptr;
    weir_buf *buf = nullptr;

    reporter.name = "reporter";
    reporter.write = report_write;
    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);
    EXPECT(weir_pipeline_add_last(pipeline, &reporter, nullptr) == 0);
    EXPECT(weir_pipeline_add_last(pipeline, &decoder.handler, nullptr) == 0);
    EXPECT(weir_pipeline_add_last(pipeline, &encoder.handler, nullptr) == 0);
    EXPECT(weir_buf_create_from("abc!!", 5, &buf) == 0);
    EXPECT(weir_embedded_write_inbound(embedded, weir_buf_msg(buf)) == 0);
    weir_decoder_resume(weir_pipeline_find(pipeline, "decoder"));
    weir_msg_release(weir_embedded_read_inbound(embedded));
    EXPECT(weir_embedded_write_outbound(embedded, some_msg()) == 0);
    weir_embedded_release(embedded);
}

void use_base64()
{
    char text[4];
    uint8_t bytes[3];

    EXPECT(weir_base64_encoded_length(2, 0) == 4);
    EXPECT(weir_base64_encode(weir_span_of("ok", 2), 0, text) == 4);
    EXPECT(weir_base64_decoded_max(4) == 3);
    EXPECT(weir_base64_decode(weir_span_of(text, 4), 0, bytes) == 2);
}

void use_strings()
{
    weir_string *string = nullptr;

    EXPECT(weir_string_create_from("ok", 2, &string) == 0);
    weir_string_release(string);
    EXPECT(weir_string_format(&string, "%d", 42) == 0);
    weir_string_release(string);
    EXPECT(weir_string_create("ok", &string) == 0);
    EXPECT(weir_msg_is(weir_string_msg(string), &weir_string_type));
    EXPECT(weir_string_of(weir_string_msg(string)) == string);
    EXPECT(weir_string_length(string) == strlen(weir_string_text(string)));
    weir_string_release(weir_string_retain(string));
    weir_string_release(string);
}

/* The stock decoders and encoders of frames, each with all its defaults. */
void use_frames()
{
    weir_embedded *embedded = nullptr;
    weir_length_field_options length_field = *WEIR_LENGTH_FIELD_OPTIONS();
    weir_length_prepender_options length_prepender = *WEIR_LENGTH_PREPENDER_OPTIONS();
    weir_lines_options lines = *WEIR_LINES_OPTIONS();
    weir_delimited_options delimited = *WEIR_DELIMITED_OPTIONS();
    weir_varint_frames_options varint_frames = *WEIR_VARINT_FRAMES_OPTIONS();
    weir_netstrings_options netstrings = *WEIR_NETSTRINGS_OPTIONS();
    weir_json_splitter_options json_splitter = *WEIR_JSON_SPLITTER_OPTIONS();
    weir_strings_options strings = *WEIR_STRINGS_OPTIONS();

    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);
    EXPECT(weir_length_field_add(pipeline, &length_field) == 0);
    EXPECT(weir_length_prepender_add(pipeline, &length_prepender) == 0);
    EXPECT(weir_lines_add(pipeline, &lines) == 0);
    EXPECT(weir_delimited_add(pipeline, &delimited) == -EINVAL);
    EXPECT(weir_fixed_frames_add(pipeline, 3) == 0);
    EXPECT(weir_varint_frames_add(pipeline, &varint_frames) == 0);
    EXPECT(weir_netstrings_add(pipeline, &netstrings) == 0);
    EXPECT(weir_json_splitter_add(pipeline, &json_splitter) == 0);
    EXPECT(weir_base64_add(pipeline, WEIR_BASE64_URL | WEIR_BASE64_UNPADDED) == 0);
    EXPECT(weir_strings_add(pipeline, &strings) == 0);
    weir_embedded_release(embedded);
}

weir_resp *some_resp()
{
    weir_resp *value = nullptr, *element = nullptr, *attributes = nullptr;
    weir_buf *text = nullptr;

    EXPECT(weir_resp_create_aggregate(WEIR_RESP_MAP, &value) == 0);
    EXPECT(weir_resp_create_text(WEIR_RESP_SIMPLE, "key", 3, &element) == 0);
    EXPECT(weir_resp_add(value, element) == 0);
    EXPECT(weir_buf_create_from("42", 2, &text) == 0);
    EXPECT(weir_resp_create_from(WEIR_RESP_BULK, text, &element) == 0);
    EXPECT(weir_resp_add(value, element) == 0);
    EXPECT(weir_resp_create_aggregate(WEIR_RESP_ATTRIBUTE, &attributes) == 0);
    EXPECT(weir_resp_set_attributes(value, attributes) == 0);
    return value;
}

void use_resp_values()
{
    weir_resp *values[5] = {}, *map = some_resp(), *found = weir_resp_find(map, "key");

    EXPECT(weir_resp_create_null(&values[0]) == 0);
    EXPECT(weir_resp_create_integer(1, &values[1]) == 0);
    EXPECT(weir_resp_create_boolean(true, &values[2]) == 0);
    EXPECT(weir_resp_create_double(1.5, &values[3]) == 0);
    EXPECT(weir_resp_create_bulk_header(5, &values[4]) == 0);
    EXPECT(weir_resp_kind(values[0]) == WEIR_RESP_NULL && weir_resp_integer(values[1]) == 1);
    EXPECT(weir_resp_double(values[3]) > 1 && weir_resp_is_bulk_header(values[4]));
    EXPECT(weir_resp_bulk_length(values[4]) == 5);
    EXPECT(weir_resp_is(found, "42") && weir_resp_text(found).length == 2);
    EXPECT(weir_resp_buf(found) != nullptr && weir_resp_attributes(map) != nullptr);
    EXPECT(weir_resp_count(map) == 2 && weir_resp_at(map, 1) == found);
    for (weir_resp *value : values)
        weir_resp_release(weir_resp_retain(value)), weir_resp_release(value);
    weir_resp_release(map);
}

void use_resp()
{
    const weir_span ping = weir_span_of_text("PING");
    weir_embedded *embedded = nullptr;
    weir_resp_options options = *WEIR_RESP_OPTIONS();
    weir_buf *buf = nullptr;

    use_resp_values();
    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    EXPECT(weir_resp_codec_add(weir_embedded_pipeline(embedded), &options) == 0);
    EXPECT(weir_resp_codec_set_version(weir_embedded_pipeline(embedded), 3) == 0);
    EXPECT(weir_buf_create(0, 0, &buf) == 0);
    EXPECT(weir_resp_write_command(&ping, 1, buf) == 0);
    EXPECT(weir_embedded_write_inbound(embedded, weir_buf_msg(buf)) == 0);
    weir_msg *msg = weir_embedded_read_inbound(embedded);
    EXPECT(weir_msg_is(msg, &weir_resp_type) && weir_resp_of(msg) != nullptr);
    EXPECT(weir_buf_create(0, 0, &buf) == 0);
    EXPECT(weir_resp_write(weir_resp_of(msg), 2, buf) == 0);
    weir_buf_release(buf);
    EXPECT(weir_embedded_write_outbound(embedded, msg) == 0);
    EXPECT(weir_embedded_write_outbound(embedded, weir_resp_msg(some_resp())) == 0);
    weir_embedded_release(embedded);
}

void use_redis()
{
    const weir_span ping = weir_span_of_text("PING");
    weir_embedded *embedded = nullptr;
    weir_promise *reply = nullptr;
    weir_redis_options options = *WEIR_REDIS_OPTIONS();

    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    EXPECT(weir_redis_add(weir_embedded_pipeline(embedded), &options) == 0);
    EXPECT(weir_redis_command(weir_embedded_channel(embedded), &ping, 1, nullptr) == 0);
    EXPECT(weir_redis_call(weir_embedded_channel(embedded), &reply, "GET", "key",
                           static_cast<char *>(nullptr)) == 0);
    weir_embedded_release(embedded);
    EXPECT(weir_promise_result(reply) == WEIR_ECLOSED);
    weir_promise_release(reply);
}

int64_t read_row(unsigned)
{
    return 7;
}

void use_metric_table()
{
    static const weir_metric_row rows[] = {{"api.row", WEIR_METRIC_COUNTER}};
    static weir_metric_table table;
    weir_metric_value value;

    table.rows = rows;
    table.count = 1;
    table.read = read_row;
    EXPECT(weir_metric_table_add(&table) == 0);
    EXPECT(weir_metric_read("api.row", &value) == 0 && value.value == 7);
}

void ignore_block(const weir_block *, void *)
{
}

void ignore_handler(const weir_handler_stats *, void *)
{
}

void use_watchdog()
{
    static const weir_handler handler = {};
    weir_handler_stats handler_stats;
    weir_watchdog_stats stats;
    weir_block block = {};
    char frame[128];

    EXPECT(weir_watchdog_check() == -ESRCH);
    EXPECT(weir_watchdog_add_listener(ignore_block, nullptr) == 0);
    EXPECT(weir_watchdog_start(nullptr) == 0);
    weir_watchdog_read_stats(&stats);
    EXPECT(stats.is_running && stats.blocked_now == 0);
    weir_watchdog_stop();
    EXPECT(weir_watchdog_remove_listener(ignore_block, nullptr) == 0);
    EXPECT(weir_handler_read_stats(&handler, &handler_stats) == -ENOENT);
    weir_handler_stats_foreach(ignore_handler, nullptr);
    block.frame_count = 1;
    block.frames[0] = reinterpret_cast<const void *>(&weir_version);
    EXPECT(weir_block_format_frame(&block, 0, frame, sizeof(frame)) > 0);
    weir_loops_begin_timing();
    weir_loops_end_timing();
}

} // namespace

int main()
{
    use_memory();
    use_random();
    use_base();
    use_log();
    use_locals();
    use_histogram();
    use_metrics();
    use_pool();
    use_resolver();
    {
        manual on;

        use_clock(on);
        use_tasks(on);
        use_timers(on);
        use_schedule(on);
        use_promises(on);
        use_combiner(on);
        use_executor(on);
    }
    use_choosers();
    use_group();
    use_loop();
    use_fd_watch();
    use_signals();
    use_child();
    use_msg();
    use_buf();
    use_bytes();
    use_numbers();
    use_search();
    use_text();
    use_composite();
    use_descriptors();
    use_file_range();
    use_file_writer();
    use_leak();
    use_address();
    use_channels();
    use_wire_handlers();
    use_datagram();
    use_channel_group();
    use_transports();
    use_bootstraps();
    use_time_and_flow();
    use_msg_codecs();
    use_chunks();
    use_pending_writes();
    use_traffic();
    use_codecs();
    use_base64();
    use_strings();
    use_frames();
    use_resp();
    use_redis();
    use_metric_table();
    use_watchdog();
    return failures != 0;
}
