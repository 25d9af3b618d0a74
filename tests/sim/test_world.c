/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of the simulator: time, waits, limits, leaks, faults, processes, hosts.
 *
 * Runs that are expected to fail are isolated: a failure spoils its process.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/sim.h>
#include <weir/weir.h>

#include "base/memory.h"
#include "os/backtrace.h"
#include "os/system.h"
#include "os/thread.h"

/* ---- running ---- */

static void expect_pass(const weir_sim_options *options, weir_sim_program_fn *program, void *arg,
                        weir_sim_result *ret_result)
{
    weir_sim_result result = {0};
    int err = weir_sim_run(options, program, arg, &result);

    if (err < 0)
        fail_msg("%s: %s\n%s", weir_error_text(err), result.failure != NULL ? result.failure : "",
                 result.trace != NULL ? result.trace : "");
    if (ret_result != NULL)
        *ret_result = result;
    else
        weir_sim_result_free(&result);
}

/* The run fails, with a text that contains `text`. */
static weir_sim_result expect_failure(const weir_sim_options *options, weir_sim_program_fn *program,
                                      void *arg, const char *text)
{
    weir_sim_options isolated = *options;
    weir_sim_result result = {0};
    int err;

    isolated.isolated = true;
    err = weir_sim_run(&isolated, program, arg, &result);
    if (err != WEIR_ESIM || result.failure == NULL || strstr(result.failure, text) == NULL)
        fail_msg("expected the failure \"%s\": %s, %s", text, weir_error_text(err),
                 result.failure != NULL ? result.failure : "no failure");
    return result;
}

static void expect_failure_only(const weir_sim_options *options, weir_sim_program_fn *program,
                                void *arg, const char *text)
{
    weir_sim_result result = expect_failure(options, program, arg, text);

    weir_sim_result_free(&result);
}

static double real_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- time ---- */

static int sleep_an_hour(weir_sim *sim, void *arg)
{
    int64_t before_ns = weir_sim_now(sim);

    weir_sim_sleep(weir_seconds(3600));
    *(int64_t *)arg = weir_sim_now(sim) - before_ns;
    return 0;
}

TEST(world, sleeps_in_virtual_time)
{
    int64_t slept_ns = 0;
    weir_sim_result result;

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), sleep_an_hour, &slept_ns, &result);
    assert_true(slept_ns >= weir_seconds(3600) && slept_ns < weir_seconds(3601));
    assert_true(result.time_ns >= slept_ns);
    weir_sim_result_free(&result);
}

static int no_init(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

static int serve(void *arg)
{
    weir_group *group = NULL;
    weir_server *server = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 2), &group);

    (void)arg;
    if (err == 0)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.workers = group, .address = "0.0.0.0:8007", .init_child = no_init),
            &server);
    if (err == 0)
        err = weir_server_run(server);
    weir_server_release(server);
    weir_group_release(group);
    return err;
}

static int idle_server(weir_sim *sim, void *arg)
{
    weir_sim_host *host;
    weir_sim_process *server;
    double *seconds = arg;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &host);

    if (err == 0)
        err = weir_sim_start(host, "server", serve, NULL, &server);
    if (err < 0)
        return err;
    weir_sim_sleep(weir_ms(100));
    *seconds = real_seconds();
    weir_sim_sleep(weir_seconds(3600));
    *seconds = real_seconds() - *seconds;
    weir_sim_signal(server, SIGTERM);
    return weir_sim_join(server);
}

TEST(world, an_idle_hour_of_a_server_costs_next_to_nothing)
{
    double seconds = 0, least = 1;

    for (unsigned i = 0; i < 5; i++) {
        expect_pass(WEIR_SIM_OPTIONS(.seed = i), idle_server, &seconds, NULL);
        least = seconds < least ? seconds : least;
    }
    print_message("a simulated hour takes %.6f ms\n", least * 1e3);
    assert_true(least < 0.02); /* 1 ms, but for sanitizers and a busy machine */
}

/* ---- waits that never end ---- */

static int wait_for_ever(void *arg)
{
    weir_promise *promise = NULL;
    int err = weir_promise_create(NULL, &promise);

    (void)arg;
    if (err == 0)
        err = weir_promise_sync(promise, WEIR_NEVER);
    weir_promise_release(promise);
    return err;
}

static int deadlock(weir_sim *sim, void *arg)
{
    weir_sim_host *host;
    weir_sim_process *waiter;
    int err = weir_sim_host_create(sim, "stuck", "10.0.0.1", &host);

    if (err == 0)
        err = weir_sim_start(host, "waiter", wait_for_ever, arg, &waiter);
    return err < 0 ? err : weir_sim_join(waiter);
}

TEST(world, a_deadlock_lists_what_each_fiber_waits_for)
{
    weir_sim_result result =
        expect_failure(WEIR_SIM_OPTIONS(.seed = 1), deadlock, NULL, "deadlock");

    assert_non_null(strstr(result.failure, "waiter on stuck (process waiter): a promise"));
    assert_non_null(
        strstr(result.failure, "program on world (process world): the end of a process"));
    weir_sim_result_free(&result);
}

static int sleep_for_ever(weir_sim *sim, void *arg)
{
    (void)sim;
    (void)arg;
    for (;;)
        weir_sim_sleep(weir_seconds(1));
    return 0;
}

TEST(world, virtual_time_has_a_limit)
{
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1, .max_time_ns = weir_seconds(60)),
                        sleep_for_ever, NULL, "virtual time exceeds the limit of 60 s");
}

TEST(world, switches_have_a_limit)
{
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1, .max_steps = 1000), sleep_for_ever, NULL,
                        "more than 1000 switches");
}

static int spin(weir_sim *sim, void *arg)
{
    (void)sim;
    (void)arg;
    for (volatile unsigned i = 0;; i++)
        continue;
    return 0;
}

TEST(world, real_time_has_a_limit)
{
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1, .max_real_ns = weir_ms(50)), spin, NULL,
                        "too much real time");
}

/* ---- leaks ---- */

static int leak_memory(weir_sim *sim, void *arg)
{
    (void)sim;
    (void)arg;
    return weir__alloc(10) != NULL ? 0 : -ENOMEM;
}

TEST(world, a_leak_of_memory_is_reported)
{
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1), leak_memory, NULL, "1 blocks of memory");
}

static int leak_descriptor(weir_sim *sim, void *arg)
{
    (void)sim;
    (void)arg;
    return weir__sys.socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 0 : -errno;
}

TEST(world, a_leak_of_a_descriptor_is_reported)
{
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1), leak_descriptor, NULL,
                        "process world has left a descriptor open");
}

static void thread_main(void *arg)
{
    (void)arg;
}

static int process_with_thread(void *arg)
{
    weir__thread thread;

    (void)arg;
    return weir__thread_start("forgotten", thread_main, NULL, &thread);
}

static int leak_thread(weir_sim *sim, void *arg)
{
    weir_sim_host *host;
    weir_sim_process *process;
    int err = weir_sim_host_create(sim, "host", "10.0.0.1", &host);

    if (err == 0)
        err = weir_sim_start(host, "process", process_with_thread, arg, &process);
    return err < 0 ? err : weir_sim_join(process);
}

TEST(world, a_thread_that_is_not_joined_is_reported)
{
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1), leak_thread, NULL,
                        "nobody has joined the thread forgotten");
}

/* ---- failures ---- */

/* Not inlined, static: its name is in the stack. */
__attribute__((noinline)) static int crash(weir_sim *sim, void *arg)
{
    weir_sim_note(sim, "before the crash");
    (void)raise(*(int *)arg);
    return 0;
}

TEST(world, a_crash_is_a_failure_with_its_trace)
{
    int number = SIGABRT;
    weir_sim_result result =
        expect_failure(WEIR_SIM_OPTIONS(.seed = 1), crash, &number, "crash: signal 6 (Aborted)");

    assert_non_null(strstr(result.trace, "before the crash"));
    if (weir__stack_copy_is_available())
        assert_non_null(strstr(result.trace, " crash+0x"));
    weir_sim_result_free(&result);
    number = SIGKILL; /* without a chance to report anything */
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1), crash, &number, "crash: signal 9");
}

static int fail_twice(weir_sim *sim, void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 300; i++)
        weir_sim_note(sim, "note %u", i);
    weir_sim_fail(sim, "the first of %d", 2);
    weir_sim_fail(sim, "the second");
    return 0;
}

TEST(world, the_first_failure_counts_and_has_a_trace)
{
    weir_sim_result result = expect_failure(WEIR_SIM_OPTIONS(.seed = 1, .trace_length = 10),
                                            fail_twice, NULL, "the first of 2");

    assert_null(strstr(result.trace, "note 285"));
    assert_non_null(strstr(result.trace, "note 299"));
    assert_non_null(strstr(result.trace, "FAILED: the first of 2"));
    weir_sim_result_free(&result);
}

static int fail_to_connect(void *arg)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(99)};
    int socket_fd = weir__sys.socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    (void)arg;
    to.sin_addr.s_addr = htonl(0x0a000002);
    (void)weir__sys.connect(socket_fd, (struct sockaddr *)&to, sizeof(to));
    weir_sim_fail(weir_sim_current(), "here");
    return 0;
}

static int fail_in_a_process(weir_sim *sim, void *arg)
{
    weir_sim_host *hosts[2] = {NULL};
    weir_sim_process *process;

    if (weir_sim_host_create(sim, "alpha", "10.0.0.1", &hosts[0]) < 0 ||
        weir_sim_host_create(sim, "beta", "10.0.0.2", &hosts[1]) < 0)
        return -ENOMEM;
    weir_sim_partition(hosts[0], hosts[1], true);
    weir_sim_partition(hosts[0], hosts[1], false);
    if (weir_sim_start(hosts[0], "client", fail_to_connect, arg, &process) < 0)
        return -ENOMEM;
    return weir_sim_join(process);
}

TEST(world, the_trace_names_hosts_processes_and_connections)
{
    weir_sim_result result =
        expect_failure(WEIR_SIM_OPTIONS(.seed = 1), fail_in_a_process, NULL, "here");

    assert_non_null(strstr(result.trace, "separate alpha and beta "));
    assert_non_null(strstr(result.trace, "start alpha/client "));
    assert_non_null(strstr(result.trace, "ms  alpha/client "));
    assert_non_null(strstr(result.trace, "connect alpha:"));
    assert_non_null(strstr(result.trace, " - beta:99 "));
    weir_sim_result_free(&result);
}

static int return_error(weir_sim *sim, void *arg)
{
    (void)sim;
    (void)arg;
    return -ETIMEDOUT;
}

TEST(world, an_error_of_the_program_is_a_failure)
{
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1), return_error, NULL, "the program failed");
}

TEST(world, a_failed_run_spoils_only_its_own_process)
{
    int64_t slept_ns;

    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1), return_error, NULL, "the program failed");
    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), sleep_an_hour, &slept_ns, NULL);
}

static int run_inside(weir_sim *sim, void *arg)
{
    weir_sim_result result;

    (void)sim;
    return weir_sim_run(NULL, return_error, arg, &result) == -EBUSY ? 0 : -EPROTO;
}

TEST(world, runs_no_other_world_inside)
{
    weir_sim_result result;

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), run_inside, NULL, NULL);
    assert_int_equal(weir_sim_run(NULL, NULL, NULL, &result), -EINVAL);
    assert_null(weir_sim_current());
}

/* ---- checks and notes ---- */

struct checked {
    unsigned calls, ends;
    bool must_fail;
};

static void check(weir_sim *sim, bool at_end, void *arg)
{
    struct checked *checked = arg;

    checked->calls++;
    checked->ends += at_end;
    if (checked->must_fail && checked->calls == 3)
        weir_sim_fail(sim, "the check failed");
}

static int with_check(weir_sim *sim, void *arg)
{
    int err = weir_sim_check(sim, check, arg);

    for (unsigned i = 0; i < 10 && err == 0; i++)
        weir_sim_sleep(weir_ms(1));
    return err;
}

TEST(world, checks_run_at_each_switch_and_at_the_end)
{
    struct checked checked = {0};

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), with_check, &checked, NULL);
    assert_true(checked.calls >= 11);
    assert_int_equal(checked.ends, 1);
    checked = (struct checked){.must_fail = true};
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1), with_check, &checked, "the check failed");
}

static int with_note(weir_sim *sim, void *arg)
{
    weir_sim_note(sim, "a note: %s", (const char *)arg);
    return 0;
}

struct lines {
    unsigned count;
    bool found;
};

static void on_line(const char *line, void *user_data)
{
    struct lines *lines = user_data;

    lines->count++;
    lines->found = lines->found || strstr(line, "note: a note: x") != NULL;
}

TEST(world, notes_are_events_and_count_for_the_hash)
{
    char x_text[] = "x", y_text[] = "y";
    struct lines lines = {0};
    weir_sim_result x, again, y;

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1, .on_trace = on_line, .user_data = &lines), with_note,
                x_text, &x);
    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), with_note, x_text, &again);
    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), with_note, y_text, &y);
    assert_true(lines.found);
    assert_int_equal(lines.count, x.events);
    assert_true(x.hash == again.hash);
    assert_true(x.hash != y.hash);
    weir_sim_result_free(&x);
    weir_sim_result_free(&again);
    weir_sim_result_free(&y);
}

static int draw_numbers(weir_sim *sim, void *arg)
{
    uint64_t *sum = arg;

    *sum = 0;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t number = weir_sim_random(sim, 10);

        if (number >= 10)
            return -ERANGE;
        *sum = *sum * 11 + number;
    }
    return 0;
}

TEST(world, random_numbers_are_those_of_the_seed)
{
    uint64_t first, second, other;

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), draw_numbers, &first, NULL);
    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), draw_numbers, &second, NULL);
    expect_pass(WEIR_SIM_OPTIONS(.seed = 2), draw_numbers, &other, NULL);
    assert_true(first == second);
    assert_true(first != other);
}

/* ---- faults ---- */

static unsigned failed_allocations;

static int allocate_often(weir_sim *sim, void *arg)
{
    failed_allocations = 0;
    for (unsigned i = 0; i < 1000; i++) {
        void *memory = weir__alloc(10);

        failed_allocations += memory == NULL;
        weir__free(memory);
        if (arg != NULL && i == 499)
            weir_sim_calm(sim, true);
    }
    return 0;
}

TEST(world, faults_happen_at_their_rate)
{
    weir_sim_options options = *WEIR_SIM_OPTIONS(.seed = 1);
    weir_sim_result result;

    options.rates[WEIR_SIM_FAULT_ALLOC] = 0.1;
    expect_pass(&options, allocate_often, NULL, &result);
    assert_in_range(failed_allocations, 60, 140);
    assert_int_equal(result.fault_count, failed_allocations);
    assert_int_equal(result.faults[0].kind, WEIR_SIM_FAULT_ALLOC);
    weir_sim_result_free(&result);
}

TEST(world, no_faults_happen_while_it_is_calm)
{
    weir_sim_options options = *WEIR_SIM_OPTIONS(.seed = 1);
    bool is_calm = true;

    options.rates[WEIR_SIM_FAULT_ALLOC] = 1;
    expect_pass(&options, allocate_often, &is_calm, NULL);
    assert_int_equal(failed_allocations, 500);
}

TEST(world, only_the_given_faults_happen)
{
    const weir_sim_fault_event only[] = {
        {.kind = WEIR_SIM_FAULT_ALLOC, .number = 700},
        {.kind = WEIR_SIM_FAULT_ALLOC, .number = 3},
        {.kind = WEIR_SIM_FAULT_RESET, .number = 5},
    };
    weir_sim_options options =
        *WEIR_SIM_OPTIONS(.seed = 1, .only_faults = only, .only_fault_count = 3);
    weir_sim_result result;

    options.rates[WEIR_SIM_FAULT_ALLOC] = 1;
    expect_pass(&options, allocate_often, NULL, &result);
    assert_int_equal(failed_allocations, 2);
    assert_int_equal(result.fault_count, 2);
    assert_int_equal(result.faults[0].number, 3);
    assert_int_equal(result.faults[1].number, 700);
    weir_sim_result_free(&result);
    options.only_fault_count = 0;
    expect_pass(&options, allocate_often, NULL, NULL);
    assert_int_equal(failed_allocations, 0);
}

TEST(world, rates_and_options_are_checked)
{
    weir_sim_options options = *WEIR_SIM_OPTIONS(.seed = 1);
    weir_sim_result result;

    options.rates[WEIR_SIM_FAULT_ALLOC] = 1e9;
    assert_int_equal(weir_sim_run(&options, allocate_often, NULL, &result), -EINVAL);
    assert_string_equal(weir_sim_fault_name(WEIR_SIM_FAULT_CLOCK_STEP), "clock-step");
    assert_null(weir_sim_fault_name(WEIR_SIM_FAULT_COUNT));
}

/* ---- reduction ---- */

/* Fails if two of many allocations fail, of the hundred that are not retried. */
static int needs_two(weir_sim *sim, void *arg)
{
    bool first = false, second = false;

    (void)arg;
    for (unsigned i = 0; i < 1000; i++) {
        void *memory = weir__alloc(10);

        first = first || (memory == NULL && i == 123);
        second = second || (memory == NULL && i == 456);
        weir__free(memory);
    }
    if (first && second)
        weir_sim_fail(sim, "both have failed");
    return 0;
}

static void count_attempts(unsigned attempt, size_t faults_left, void *user_data)
{
    (void)faults_left;
    *(unsigned *)user_data = attempt;
}

TEST(world, reduce_finds_the_faults_that_matter)
{
    unsigned attempts = 0;
    weir_sim_options options = *WEIR_SIM_OPTIONS(.seed = 1, .user_data = &attempts);
    weir_sim_result failed, reduced;

    options.rates[WEIR_SIM_FAULT_ALLOC] = 1;
    failed = expect_failure(&options, needs_two, NULL, "both have failed");
    assert_int_equal(failed.fault_count, 1000);
    assert_int_equal(
        weir_sim_reduce(&options, needs_two, NULL, &failed, 0, count_attempts, &reduced), 0);
    assert_int_equal(reduced.fault_count, 2);
    assert_int_equal(reduced.faults[0].number, 123);
    assert_int_equal(reduced.faults[1].number, 456);
    assert_non_null(strstr(reduced.failure, "both have failed"));
    assert_in_range(attempts, 10, 200);
    weir_sim_result_free(&failed);
    weir_sim_result_free(&reduced);
}

static int crash_on_failed_allocation(weir_sim *sim, void *arg)
{
    (void)sim;
    (void)arg;
    for (unsigned i = 0; i < 1000; i++) {
        char *memory = weir__alloc(10);

        if (memory == NULL && i == 77)
            abort();
        weir__free(memory);
    }
    return 0;
}

TEST(world, reduce_finds_the_fault_that_makes_a_run_crash)
{
    weir_sim_options options = *WEIR_SIM_OPTIONS(.seed = 1);
    weir_sim_result failed, reduced;

    options.rates[WEIR_SIM_FAULT_ALLOC] = 1;
    failed = expect_failure(&options, crash_on_failed_allocation, NULL, "crash: signal 6");
    assert_int_equal(failed.fault_count, 78);
    assert_int_equal(
        weir_sim_reduce(&options, crash_on_failed_allocation, NULL, &failed, 0, NULL, &reduced), 0);
    assert_int_equal(reduced.fault_count, 1);
    assert_int_equal(reduced.faults[0].number, 77);
    weir_sim_result_free(&failed);
    weir_sim_result_free(&reduced);
}

TEST(world, reduce_rejects_a_run_that_passes)
{
    const weir_sim_result passed = {0};
    weir_sim_result reduced;

    assert_int_equal(weir_sim_reduce(NULL, allocate_often, NULL, &passed, 0, NULL, &reduced),
                     -EINVAL);
}

/* ---- processes ---- */

struct life {
    bool must_stop;
    unsigned starts;
    unsigned refused; /* writes to the disk after the death */
};

static int append_until_killed(void *arg)
{
    struct life *life = arg;
    uint8_t byte = (uint8_t)++life->starts;

    while (!weir_sim_is_dying() && !life->must_stop) {
        int err = weir_sim_disk_append(&byte, 1);

        if (err < 0)
            return err;
        weir_sim_sleep(weir_ms(10));
    }
    if (!weir_sim_is_dying())
        return 0;
    life->refused += weir_sim_disk_append(&byte, 1) == -EIO;
    return -EIO; /* does not count: it was killed */
}

static int read_disk(void *arg)
{
    uint8_t bytes[256];
    size_t length = weir_sim_disk_read(0, bytes, sizeof(bytes));

    (void)arg;
    if (length < 10 || bytes[0] != 1 || bytes[length - 1] != 2 ||
        weir_sim_disk_read(length, bytes, 1) != 0)
        return -EPROTO;
    return 0;
}

static int kill_and_restart(weir_sim *sim, void *arg)
{
    weir_sim_host *host;
    weir_sim_process *process, *reader;
    int err = weir_sim_host_create(sim, "host", "10.0.0.1", &host);

    if (err == 0)
        err = weir_sim_start(host, "writer", append_until_killed, arg, &process);
    if (err < 0)
        return err;
    weir_sim_restart(process, weir_ms(50));
    weir_sim_sleep(weir_ms(100));
    weir_sim_kill(process);
    if (weir_sim_is_alive(process))
        return -EPROTO;
    weir_sim_sleep(weir_ms(200));
    if (!weir_sim_is_alive(process))
        return -EPROTO;
    ((struct life *)arg)->must_stop = true;
    err = weir_sim_join(process);
    if (err == 0)
        err = weir_sim_start(host, "reader", read_disk, NULL, &reader);
    return err < 0 ? err : weir_sim_join(reader);
}

static int kill_once(weir_sim *sim, void *arg)
{
    weir_sim_host *host;
    weir_sim_process *process;
    int err = weir_sim_host_create(sim, "host", "10.0.0.1", &host);

    if (err == 0)
        err = weir_sim_start(host, "writer", append_until_killed, arg, &process);
    if (err < 0)
        return err;
    weir_sim_sleep(weir_ms(100));
    weir_sim_kill(process);
    return weir_sim_join(process);
}

TEST(world, a_killed_process_writes_nothing_more)
{
    struct life life = {0};

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), kill_once, &life, NULL);
    assert_int_equal(life.starts, 1);
    assert_int_equal(life.refused, 1);
}

TEST(world, a_killed_process_starts_again_and_finds_its_disk)
{
    struct life life = {0};

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), kill_and_restart, &life, NULL);
    assert_int_equal(life.starts, 2);
    assert_int_equal(life.refused, 1);
}

static int die_often(weir_sim *sim, void *arg)
{
    weir_sim_host *host;
    weir_sim_process *process;
    int err = weir_sim_host_create(sim, "host", "10.0.0.1", &host);

    if (err == 0)
        err = weir_sim_start(host, "writer", append_until_killed, arg, &process);
    if (err < 0)
        return err;
    weir_sim_restart(process, weir_ms(10));
    weir_sim_sleep(weir_seconds(10));
    weir_sim_calm(sim, true);
    weir_sim_sleep(weir_seconds(1));
    ((struct life *)arg)->must_stop = true;
    return weir_sim_join(process);
}

TEST(world, processes_die_at_their_rate)
{
    struct life life = {0};
    weir_sim_options options = *WEIR_SIM_OPTIONS(.seed = 1);

    options.rates[WEIR_SIM_FAULT_DEATH] = 5;
    expect_pass(&options, die_often, &life, NULL);
    assert_in_range(life.starts, 25, 75);
    assert_int_equal(life.refused, life.starts - 1);
}

static int fail_to_start(void *arg)
{
    (void)arg;
    return -EADDRINUSE;
}

static int failing_process(weir_sim *sim, void *arg)
{
    weir_sim_host *host;
    int err = weir_sim_host_create(sim, "host", "10.0.0.1", &host);

    return err < 0 ? err : weir_sim_start(host, "bad", fail_to_start, arg, NULL);
}

TEST(world, an_error_of_a_process_is_a_failure)
{
    expect_failure_only(WEIR_SIM_OPTIONS(.seed = 1), failing_process, NULL,
                        "process bad failed: Address already in use");
}

/* ---- hosts ---- */

static int tick(void *arg)
{
    for (unsigned i = 0; i < 100; i++) {
        weir_sim_sleep(weir_ms(10));
        ++*(unsigned *)arg;
    }
    return 0;
}

static int stop_host(weir_sim *sim, void *arg)
{
    unsigned *ticks = arg, before;
    weir_sim_host *host;
    weir_sim_process *process;
    int err = weir_sim_host_create(sim, "host", "10.0.0.1", &host);

    if (err == 0)
        err = weir_sim_start(host, "ticks", tick, ticks, &process);
    if (err < 0)
        return err;
    weir_sim_sleep(weir_ms(100));
    weir_sim_host_stop(host);
    before = *ticks;
    weir_sim_sleep(weir_seconds(10));
    if (*ticks != before)
        weir_sim_fail(sim, "a stopped host has counted");
    weir_sim_host_continue(host);
    return weir_sim_join(process);
}

TEST(world, a_stopped_host_stands_still)
{
    unsigned ticks = 0;
    weir_sim_result result;

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), stop_host, &ticks, &result);
    assert_int_equal(ticks, 100);
    assert_true(result.time_ns > weir_seconds(10));
    weir_sim_result_free(&result);
}

static int read_wall_clock(void *arg)
{
    *(int64_t *)arg = weir_time_of_day();
    return 0;
}

static int step_clock(weir_sim *sim, void *arg)
{
    int64_t *times = arg;
    weir_sim_host *host, *other;
    weir_sim_process *process;
    int err = weir_sim_host_create(sim, "host", "10.0.0.1", &host);

    if (err == 0)
        err = weir_sim_host_create(sim, "other", "10.0.0.2", &other);
    if (err == 0)
        weir_sim_step_clock(host, -weir_seconds(3600));
    if (err == 0)
        err = weir_sim_start(host, "clock", read_wall_clock, &times[0], &process);
    if (err == 0)
        err = weir_sim_join(process);
    if (err == 0)
        err = weir_sim_start(other, "clock", read_wall_clock, &times[1], &process);
    return err < 0 ? err : weir_sim_join(process);
}

TEST(world, each_host_has_its_own_wall_clock)
{
    int64_t times[2];

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), step_clock, times, NULL);
    assert_true(times[1] - times[0] > weir_seconds(3599));
    assert_true(times[1] - times[0] < weir_seconds(3601));
}

static int bad_hosts(weir_sim *sim, void *arg)
{
    weir_sim_host *host;

    (void)arg;
    if (weir_sim_host_create(sim, "a", "10.0.0.1 fd00::1", &host) < 0 ||
        weir_sim_host_create(sim, "b", "10.0.0.1", &host) != -EADDRINUSE ||
        weir_sim_host_create(sim, "c", "no address", &host) != -EINVAL)
        return -EPROTO;
    return 0;
}

TEST(world, addresses_of_hosts_are_checked)
{
    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), bad_hosts, NULL, NULL);
}

/* ---- the network between hosts ---- */

struct connecting {
    const char *address;
    int result;
    int64_t took_ns;
};

static int connect_once(void *arg)
{
    struct connecting *connecting = arg;
    weir_group *group = NULL;
    weir_promise *promise = NULL;
    int64_t begin_ns = weir_sim_now(weir_sim_current());
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group);

    if (err == 0)
        err = weir_client_connect(
            WEIR_CLIENT_OPTIONS(.group = group, .address = connecting->address, .init = no_init,
                                .options =
                                    WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_seconds(3))),
            &promise);
    if (err == 0) {
        connecting->result = weir_promise_sync(promise, WEIR_NEVER);
        connecting->took_ns = weir_sim_now(weir_sim_current()) - begin_ns;
        if (connecting->result == 0)
            weir_channel_close(weir_promise_value(promise), NULL);
    }
    weir_promise_release(promise);
    if (group != NULL)
        (void)weir_group_shutdown(group, 0, weir_seconds(1));
    weir_group_release(group);
    return err;
}

static int partition(weir_sim *sim, void *arg)
{
    weir_sim_host *a, *b;
    weir_sim_process *server, *client;
    struct connecting *connecting = arg;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &a);

    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &b);
    if (err == 0)
        err = weir_sim_start(a, "server", serve, NULL, &server);
    if (err < 0)
        return err;
    weir_sim_sleep(weir_ms(10));
    weir_sim_partition(a, b, true);
    for (unsigned i = 0; i < 2 && err == 0; i++) {
        err = weir_sim_start(b, "client", connect_once, &connecting[i], &client);
        if (err == 0)
            err = weir_sim_join(client);
        weir_sim_partition(a, b, false);
    }
    weir_sim_signal(server, SIGTERM);
    return err < 0 ? err : weir_sim_join(server);
}

TEST(world, separated_hosts_cannot_connect_until_they_are_connected_again)
{
    struct connecting connecting[2] = {{.address = "10.0.0.1:8007"}, {.address = "10.0.0.1:8007"}};

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), partition, connecting, NULL);
    assert_true(connecting[0].result < 0);
    assert_true(connecting[0].took_ns >= weir_seconds(3));
    assert_int_equal(connecting[1].result, 0);
    assert_true(connecting[1].took_ns < weir_seconds(1));
}

TEST(world, names_of_hosts_are_resolved_and_not_remembered)
{
    struct connecting connecting[2] = {{.address = "server:8007"}, {.address = "server:8007"}};
    weir_sim_result first, second;

    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), partition, connecting, &first);
    assert_int_equal(connecting[1].result, 0);
    expect_pass(WEIR_SIM_OPTIONS(.seed = 1), partition, connecting, &second);
    assert_true(first.hash == second.hash);
    weir_sim_result_free(&first);
    weir_sim_result_free(&second);
}
