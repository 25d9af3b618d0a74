/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public API as a C++ program uses it: every function of every header once, with options built
 * by their init functions, since C++ refuses the compound literals of the option macros. It proves
 * that the API can be used from C++; what the functions do is for the tests of their layers.
 * tools/check_cplusplus.py fails when a function is missing here.
 */
#include <cstdio>
#include <cstring>

#include <weir/weir.h>

#define EXPECT(condition) expect((condition), #condition, __LINE__)

namespace
{

int failures = 0;

void expect(bool holds, const char *condition, int line)
{
    if (holds)
        return;
    failures++;
    std::fprintf(stderr, "api.cpp:%d: %s\n", line, condition);
}

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

void use_log()
{
    weir_log_set([](void *, enum weir_log_level, const char *, const char *, const char *) {},
                 nullptr);
    weir_log_set_level(WEIR_LOG_ERROR);
    EXPECT(!weir_log_enabled(WEIR_LOG_WARN));
    EXPECT(std::strcmp(weir_log_level_name(WEIR_LOG_WARN), "WARN") == 0);
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
    weir_histogram *histogram = nullptr;
    weir_histogram_summary summary;

    EXPECT(weir_histogram_create(&histogram) == 0);
    weir_histogram_record(histogram, 7);
    weir_histogram_read(histogram, &summary);
    EXPECT(summary.count == 1 && summary.max == 7);
    EXPECT(weir_histogram_percentile(histogram, 50) == 7);
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
        weir_manual_options options;

        EXPECT(weir_manual_clock_create(0, &clock) == 0);
        weir_manual_options_init(&options);
        options.clock = weir_manual_clock_clock(clock);
        options.owner_later = true;
        EXPECT(weir_manual_create(&options, &executor) == 0);
        EXPECT(weir_manual_own(executor) == 0);
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
    EXPECT(weir_submit(on.executor, &promise, answer, &value) == 0);
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

    EXPECT(weir_schedule(on.executor, weir_ms(1), &once, count, &ran) == 0);
    EXPECT(weir_schedule_at_fixed_rate(on.executor, 0, weir_ms(1), &rate, count, &ran) == 0);
    EXPECT(weir_schedule_with_fixed_delay(on.executor, 0, weir_ms(1), &delay, count, &ran) == 0);
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
    weir_back_off back_off = {};
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
    EXPECT(weir_reject_after_back_off(on.executor, count, &ran, WEIR_EREJECTED, &back_off) ==
           WEIR_EREJECTED);
    EXPECT(!weir_in_executor(weir_executor_global()));
    EXPECT(!weir_promise_is_done(weir_executor_termination(on.executor)));
}

weir_group *create_group(const weir_chooser *chooser, const weir_autoscale_options *autoscale)
{
    weir_group_options options;
    weir_group *group = nullptr;

    weir_group_options_init(&options);
    options.io = WEIR_IO_NONE;
    options.threads = 2;
    options.chooser = chooser;
    options.autoscale = autoscale;
    EXPECT(weir_group_create(&options, &group) == 0);
    return group;
}

void use_choosers()
{
    weir_autoscale_options autoscale;
    weir_group *groups[3];

    weir_autoscale_options_init(&autoscale);
    groups[0] = create_group(weir_chooser_least_pending(), nullptr);
    groups[1] = create_group(weir_chooser_two_choices(), nullptr);
    groups[2] = create_group(nullptr, &autoscale);
    for (weir_group *group : groups) {
        EXPECT(weir_group_next(group) != nullptr);
        weir_group_release(group);
    }
}

void use_group()
{
    weir_group *group = create_group(weir_chooser_round_robin(), nullptr);
    weir_promise *promises[4] = {};
    weir_thread_properties thread;

    EXPECT(weir_group_count(group) == 2);
    EXPECT(weir_executor_thread(weir_group_at(group, 0), &thread) == 0 && thread.id > 0);
    EXPECT(weir_executor_suspend(weir_group_at(group, 0)) == 0);
    EXPECT(weir_group_execute(group, ignore, nullptr) == 0);
    EXPECT(weir_group_submit(group, &promises[0], answer, nullptr) == 0);
    EXPECT(weir_promise_await(promises[0], WEIR_NEVER) == 0);
    EXPECT(weir_group_schedule(group, 0, &promises[1], ignore, nullptr) == 0);
    EXPECT(weir_promise_sync(promises[1], WEIR_NEVER) == 0);
    EXPECT(weir_group_schedule_at_fixed_rate(group, 0, weir_seconds(1), &promises[2], ignore,
                                             nullptr) == 0);
    EXPECT(weir_group_schedule_with_fixed_delay(group, 0, weir_seconds(1), &promises[3], ignore,
                                                nullptr) == 0);
    EXPECT(weir_group_shutdown(weir_group_retain(group), 0, weir_seconds(5)) == 0);
    EXPECT(weir_group_await_termination(group, WEIR_NEVER) == 0);
    EXPECT(weir_promise_is_done(weir_group_termination(group)));
    EXPECT(weir_group_state(group) == WEIR_EXECUTOR_TERMINATED);
    for (weir_promise *promise : promises)
        weir_promise_release(promise);
    weir_group_release(group);
    weir_group_release(group);
}

} // namespace

int main()
{
    EXPECT(weir_memory_set(nullptr) == 0);
    use_base();
    use_log();
    use_locals();
    use_histogram();
    use_metrics();
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
    return failures != 0;
}
