/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executors under load: two sources submit jobs in bursts, workers run them; every second the main
 * thread schedules an alarm on them and prints a line of stats.
 *     executor-demo [--threads N] [--seconds N]      without --seconds: until Ctrl-C
 */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

static _Atomic int64_t late_ns; /* delay of the last alarm */

/* A job: a few microseconds of work. A cancelled job needs no cleanup. */
static void on_job(void *arg, int status)
{
    (void)arg;
    for (volatile int i = 0; i < 10000 && status == 0; i++)
        continue;
}

/* A source: repeated bursts of jobs. Waits while the workers' queues are full. */
static void on_burst(void *workers, int status)
{
    for (int i = 0; i < 100 && status == 0; i++)
        status = weir_group_execute(workers, on_job, NULL);
}

static int64_t now_ns(void)
{
    return weir_clock_monotonic()->now(weir_clock_monotonic());
}

/* Runs on the thread of the alarm. */
static void on_alarm(weir_promise *alarm, void *due_ns)
{
    if (weir_promise_result(alarm) == 0)
        atomic_store(&late_ns, now_ns() - (intptr_t)due_ns);
}

static int set_alarm(weir_group *workers)
{
    weir_promise *alarm = NULL;
    intptr_t due_ns = now_ns() + weir_ms(500);
    int err = weir_group_schedule(workers, weir_ms(500), on_job, NULL, &alarm);

    if (!err)
        err = weir_promise_add_listener(alarm, on_alarm, (void *)due_ns);
    weir_promise_release(alarm); /* the timer keeps it for the listener */
    return err;
}

/* The sum of all workers' stats. Any thread may read them. */
static weir_executor_stats read_stats(weir_group *workers)
{
    weir_executor_stats sum = {0}, one;

    for (size_t i = 0; i < weir_group_count(workers); i++) {
        weir_executor_read_stats(weir_group_at(workers, i), &one);
        sum.tasks_run += one.tasks_run;
        sum.wakeups_made += one.wakeups_made;
        sum.wakeups_saved += one.wakeups_saved;
        sum.utilisation += one.utilisation / (double)weir_group_count(workers);
        sum.queue_latency_ns.count += one.queue_latency_ns.count;
        sum.queue_latency_ns.sum += one.queue_latency_ns.sum;
    }
    return sum;
}

static void print_line(int second, const weir_executor_stats *was, const weir_executor_stats *is)
{
    double queued_ns = (double)(is->queue_latency_ns.sum - was->queue_latency_ns.sum);
    double samples = (double)(is->queue_latency_ns.count - was->queue_latency_ns.count);

    printf("%6d %10" PRIu64 " %5.0f%% %12.1f %14.1f %14" PRIu64 " %10" PRIu64 "\n", second,
           is->tasks_run - was->tasks_run, is->utilisation * 100,
           samples > 0 ? queued_ns / samples / 1000 : 0, (double)atomic_load(&late_ns) / 1000,
           is->wakeups_made - was->wakeups_made, is->wakeups_saved - was->wakeups_saved);
}

/* Prints a line each second, until the time is up or a signal arrives. */
static int watch(weir_group *workers, int seconds)
{
    weir_executor_stats was = {0}, is;
    sigset_t signals;
    int err = 0;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* blocked in the other threads, too */
    puts("second  tasks run   busy  in queue us  alarm late us  wake-ups made  and saved");
    for (int second = 1; !err && (seconds == 0 || second <= seconds); second++) {
        err = set_alarm(workers);
        if (sigtimedwait(&signals, NULL, &(struct timespec){.tv_sec = 1}) > 0)
            break;
        is = read_stats(workers);
        print_line(second, &was, &is);
        was = is;
    }
    return err;
}

static int run(int threads, int seconds)
{
    weir_group *workers = NULL, *sources = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = threads,
                                                   .max_pending = 10000,
                                                   .rejected = weir_reject_after_backoff),
                                &workers);

    if (!err)
        err = weir_group_create(
            WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 2, .name = "source"), &sources);
    for (int i = 0; !err && i < 2; i++) /* one on each executor: round robin */
        err = weir_group_schedule_with_fixed_delay(sources, 0, weir_ms(1), on_burst, workers, NULL);
    if (!err)
        err = watch(workers, seconds);
    weir_group_release(sources);                            /* stops the sources: no more jobs */
    (void)weir_group_shutdown(workers, 0, weir_seconds(5)); /* runs the submitted jobs */
    if (!err)
        err = weir_group_await_termination(workers, WEIR_NEVER);
    if (!err)
        printf("done: %" PRIu64 " tasks\n", read_stats(workers).tasks_run);
    else
        fprintf(stderr, "executor-demo: %s\n", weir_error_text(err));
    weir_group_release(workers); /* NULL is ignored */
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void explain(const char *program, FILE *to)
{
    fprintf(to, "usage: %s [--threads N] [--seconds N]\n", program);
}

int main(int argc, char **argv)
{
    int threads = 0, seconds = 0;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        explain(argv[0], stdout);
        return EXIT_SUCCESS;
    }
    for (int i = 1; i < argc; i += 2) {
        int *option = strcmp(argv[i], "--threads") == 0 ? &threads : &seconds;
        bool known = option == &threads || strcmp(argv[i], "--seconds") == 0;

        if (!known || i + 1 == argc || (*option = atoi(argv[i + 1])) <= 0) {
            explain(argv[0], stderr);
            return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* line-buffered, also into a pipe */
    return run(threads, seconds);
}
