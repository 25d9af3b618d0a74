/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of the executor layer's hot paths. Everything runs on manual executors with a
 * manual clock, so that a count depends on the code and its compiler alone.
 */
#include <semaphore.h>

#include <weir/group.h>
#include <weir/manual.h>
#include <weir/metric.h>
#include <weir/promise.h>
#include <weir/thread.h>
#include <weir/timer.h>

#include "support/bench.h"
#include "support/instructions.h"

enum { COUNT = 1000 };

struct fixture {
    weir_manual_clock *clock;
    weir_executor *executor;
    int left;
};

static void fixture_init(struct fixture *fixture)
{
    weir_manual_options options;

    bench_require(weir_manual_clock_create(weir_seconds(1), &fixture->clock) == 0, "a clock");
    options = *WEIR_MANUAL_OPTIONS();
    options.clock = weir_manual_clock_clock(fixture->clock);
    bench_require(weir_manual_create(&options, &fixture->executor) == 0, "an executor");
}

static void fixture_turn(struct fixture *fixture)
{
    bench_require(weir_manual_run_once(fixture->executor, 0, 0) >= 0, "weir_manual_run_once");
}

static void fixture_deinit(struct fixture *fixture)
{
    weir_executor_shutdown(fixture->executor, 0, 0);
    while (weir_manual_run_once(fixture->executor, 0, 0) >= 0)
        ;
    weir_executor_release(fixture->executor);
    weir_manual_clock_release(fixture->clock);
}

/* Runs a path as a task of an executor of its own. */
static void on_executor(weir_task_fn *path)
{
    struct fixture fixture;

    fixture_init(&fixture);
    bench_require(weir_execute(fixture.executor, path, &fixture) == 0, "weir_execute");
    fixture_turn(&fixture);
    fixture_deinit(&fixture);
}

/* ---- tasks ---- */

static void on_task(void *arg, int status)
{
    (void)arg;
    (void)status;
}

/* A thread that submits to an executor of the main thread's: once to fill its pool, once counted.
 */
struct submitter {
    struct fixture fixture;
    weir_task *tasks; /* NULL: has none of its own */
    const char *name;
    sem_t submitted;
    sem_t go_on;
};

static void submit_all(struct submitter *self)
{
    weir_executor *executor = self->fixture.executor;
    int errors = 0;

    if (self->tasks != NULL)
        for (int i = 0; i < COUNT; i++)
            errors |= weir_execute_task(executor, &self->tasks[i]);
    else
        for (int i = 0; i < COUNT; i++)
            errors |= weir_execute(executor, on_task, NULL);
    bench_require(errors == 0, "weir_execute");
}

static void *submitter_body(void *arg)
{
    struct submitter *self = arg;

    submit_all(self);
    sem_post(&self->submitted);
    sem_wait(&self->go_on);
    bench_count_begin(self->name, COUNT);
    submit_all(self);
    bench_count_end();
    sem_post(&self->submitted);
    sem_wait(&self->go_on);
    return NULL;
}

static void submit_and_run(weir_task *tasks, const char *submit_name, const char *run_name)
{
    struct submitter submitter = {.tasks = tasks, .name = submit_name};
    pthread_t thread;

    fixture_init(&submitter.fixture);
    sem_init(&submitter.submitted, 0, 0);
    sem_init(&submitter.go_on, 0, 0);
    bench_thread_start(&thread, -1, submitter_body, &submitter);

    sem_wait(&submitter.submitted);
    fixture_turn(&submitter.fixture);
    sem_post(&submitter.go_on);
    sem_wait(&submitter.submitted);
    bench_count_begin(run_name, COUNT);
    fixture_turn(&submitter.fixture);
    bench_count_end();

    sem_post(&submitter.go_on);
    bench_thread_join(thread);
    sem_destroy(&submitter.go_on);
    sem_destroy(&submitter.submitted);
    fixture_deinit(&submitter.fixture);
}

static void count_pooled_tasks(void)
{
    submit_and_run(NULL, "execute from another thread: submit", "execute from another thread: run");
}

static void count_own_tasks(void)
{
    static weir_task tasks[COUNT];

    for (int i = 0; i < COUNT; i++)
        weir_task_init(&tasks[i], on_task, NULL);
    submit_and_run(tasks, "execute_task from another thread: submit",
                   "execute_task from another thread: run");
}

static void on_again(void *arg, int status)
{
    struct fixture *fixture = arg;

    (void)status;
    if (fixture->left-- > 0)
        IGNORE_RESULT(weir_execute(fixture->executor, on_again, fixture));
}

/* Tasks that each submit the next one. */
static void count_tasks_of_own_thread(void)
{
    struct fixture fixture;

    fixture_init(&fixture);
    fixture.left = COUNT;
    bench_require(weir_execute(fixture.executor, on_again, &fixture) == 0, "weir_execute");
    bench_count_begin("execute on its own thread: submit and run", COUNT);
    fixture_turn(&fixture);
    bench_count_end();
    fixture_deinit(&fixture);
}

static int work(void *arg, int status, void **ret_value)
{
    (void)status;
    *ret_value = arg;
    return 0;
}

static weir_promise *promises[COUNT];

static void release_promises(void)
{
    for (int i = 0; i < COUNT; i++)
        weir_promise_release(promises[i]);
}

static void submit_with_promises(struct fixture *fixture)
{
    int errors = 0;

    for (int i = 0; i < COUNT; i++)
        errors |= weir_submit(fixture->executor, work, NULL, &promises[i]);
    fixture_turn(fixture);
    release_promises();
    bench_require(errors == 0, "weir_submit");
}

/* Once so that the thread has free promises, once counted. */
static void count_submit(void)
{
    struct fixture fixture;

    fixture_init(&fixture);
    submit_with_promises(&fixture);
    bench_count_begin("submit, run, release", COUNT);
    submit_with_promises(&fixture);
    bench_count_end();
    fixture_deinit(&fixture);
}

/* ---- timers ---- */

static weir_timer timers[COUNT];
static int64_t delays_ns[COUNT];

static void on_timer(weir_timer *timer)
{
    (void)timer;
}

/* 1 to 60 seconds at random. */
static void choose_delays(void)
{
    uint64_t random = 0;

    for (int i = 0; i < COUNT; i++)
        delays_ns[i] = weir_seconds(1) + weir_us((int64_t)(bench_random(&random) % 59000000));
}

static void start_timers(weir_executor *executor)
{
    choose_delays();
    for (int i = 0; i < COUNT; i++)
        weir_timer_start(executor, &timers[i], delays_ns[i], on_timer);
}

static void stop_timers(void)
{
    for (int i = 0; i < COUNT; i++)
        weir_timer_stop(&timers[i]);
}

static void restart_path(void *arg, int status)
{
    struct fixture *fixture = arg;

    (void)status;
    start_timers(fixture->executor);
    bench_count_begin("timer stop and start", COUNT);
    for (int i = 0; i < COUNT; i++) {
        weir_timer_stop(&timers[i]);
        weir_timer_start(fixture->executor, &timers[i], delays_ns[COUNT - 1 - i], on_timer);
    }
    bench_count_end();
    stop_timers();
}

static void postpone_path(void *arg, int status)
{
    struct fixture *fixture = arg;

    (void)status;
    start_timers(fixture->executor);
    bench_count_begin("timer restart, later", COUNT);
    for (int i = 0; i < COUNT; i++)
        weir_timer_restart(&timers[i], delays_ns[i] + weir_ms(1));
    bench_count_end();
    stop_timers();
}

static void start_path(void *arg, int status)
{
    struct fixture *fixture = arg;

    (void)status;
    start_timers(fixture->executor);
}

static void count_expire(void)
{
    struct fixture fixture;

    fixture_init(&fixture);
    IGNORE_RESULT(weir_execute(fixture.executor, start_path, &fixture));
    fixture_turn(&fixture);
    weir_manual_clock_advance(fixture.clock, weir_seconds(60));
    bench_count_begin("timer expire", COUNT);
    fixture_turn(&fixture);
    bench_count_end();
    fixture_deinit(&fixture);
}

static void schedule_all(weir_executor *executor)
{
    int errors = 0;

    for (int i = 0; i < COUNT; i++)
        errors |= weir_schedule(executor, delays_ns[i], on_task, NULL, &promises[i]);
    bench_require(errors == 0, "weir_schedule");
}

static void schedule_and_cancel(struct fixture *fixture)
{
    schedule_all(fixture->executor);
    for (int i = 0; i < COUNT; i++)
        weir_promise_cancel(promises[i]);
    fixture_turn(fixture);
    release_promises();
}

static void count_schedule_and_cancel(void)
{
    struct fixture fixture;

    fixture_init(&fixture);
    choose_delays();
    schedule_and_cancel(&fixture);
    bench_count_begin("schedule, cancel, release", COUNT);
    schedule_and_cancel(&fixture);
    bench_count_end();
    fixture_deinit(&fixture);
}

static void count_schedule_and_fire(void)
{
    struct fixture fixture;

    fixture_init(&fixture);
    choose_delays();
    bench_count_begin("schedule, fire, release", COUNT);
    schedule_all(fixture.executor);
    fixture_turn(&fixture);
    weir_manual_clock_advance(fixture.clock, weir_seconds(60));
    fixture_turn(&fixture);
    release_promises();
    bench_count_end();
    fixture_deinit(&fixture);
}

/* ---- promises ---- */

static void on_done(weir_promise *promise, void *user_data)
{
    (void)promise;
    (void)user_data;
}

static void promise_path(void *arg, int status)
{
    struct fixture *fixture = arg;
    weir_listener listener = {.fn = on_done};
    weir_promise *promise = NULL;

    (void)status;
    bench_count_begin("promise create, listen, succeed, release", COUNT);
    for (int i = 0; i < COUNT; i++) {
        IGNORE_RESULT(weir_promise_create(fixture->executor, &promise));
        weir_promise_listen(promise, &listener);
        weir_promise_succeed(promise, NULL);
        weir_promise_release(promise);
    }
    bench_count_end();
}

/* ---- groups and what base counts with ---- */

static void count_group_next(const char *name, const weir_chooser *chooser, int threads)
{
    weir_group_options options;
    weir_group *group;

    options = *WEIR_GROUP_OPTIONS();
    options.threads = threads;
    options.io = WEIR_IO_NONE;
    options.chooser = chooser;
    bench_require(weir_group_create(&options, &group) == 0, "weir_group_create");
    bench_count_begin(name, COUNT);
    for (int i = 0; i < COUNT; i++)
        weir_group_next(group);
    bench_count_end();
    weir_group_release(group);
}

static void count_groups(void)
{
    count_group_next("group next: round robin of 4", weir_chooser_round_robin(), 4);
    count_group_next("group next: round robin of 3", weir_chooser_round_robin(), 3);
    count_group_next("group next: two choices of 4", weir_chooser_two_choices(), 4);
}

static void count_histogram(void)
{
    weir_histogram *histogram;

    bench_require(weir_histogram_create(&histogram) == 0, "a histogram");
    bench_count_begin("histogram record", COUNT);
    for (int i = 0; i < COUNT; i++)
        weir_histogram_record(histogram, weir_us(i));
    bench_count_end();
    weir_histogram_release(histogram);
}

static void count_metric(void)
{
    weir_metric *metric;

    bench_require(weir_metric_create(WEIR_METRIC_COUNTER, "bench", &metric) == 0, "a metric");
    bench_count_begin("metric add", COUNT);
    for (int i = 0; i < COUNT; i++)
        weir_metric_add(metric, i);
    bench_count_end();
    weir_metric_release(metric);
}

static void count_local(void)
{
    weir_local *local;

    bench_require(weir_local_create(NULL, &local) == 0, "a local");
    bench_require(weir_local_set(local, &local) == 0, "weir_local_set");
    bench_count_begin("local get", COUNT);
    for (int i = 0; i < COUNT; i++)
        weir_local_get(local);
    bench_count_end();
    weir_local_remove(local);
    weir_local_release(local);
}

static void count_all(bench_round *round)
{
    (void)round;
    count_pooled_tasks();
    count_own_tasks();
    count_tasks_of_own_thread();
    count_submit();
    on_executor(restart_path);
    on_executor(postpone_path);
    count_expire();
    count_schedule_and_cancel();
    count_schedule_and_fire();
    on_executor(promise_path);
    count_groups();
    count_histogram();
    count_metric();
    count_local();
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"count", count_all}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
