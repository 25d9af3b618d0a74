/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal that interrupts a blocked thread: backtraces of threads that sleep and compute, by the
 * real clock; signals of the program.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/loop.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/watchdog/block_log.h"

#define SIGNAL (SIGRTMAX - 2)
#define BLOCK_MAX_NS weir_seconds(3)

static struct block_log blocks;

/* ---- by the real clock ---- */

/* The address of a function, as a pointer to data. */
static const void *address_of(void (*function)(weir_ctx *ctx, weir_msg *msg))
{
    const void *address;

    memcpy(&address, &function, sizeof(address));
    return address;
}

static bool has_function(const struct block_record *record, const void *function)
{
    for (size_t i = 0; i < record->block.frame_count; i++)
        if (record->block.functions[i] == function)
            return true;
    return false;
}

/* The reports that name a handler: on a busy machine, the start of the loop may be one, too. */
static struct call_counter named, named_ended;

static void count_named(const weir_block *block, void *user_data)
{
    (void)user_data;
    if (block->handler != NULL)
        call_counter_add(block->has_ended ? &named_ended : &named);
}

static bool must_go_on(int64_t end_ns)
{
    return atomic_load(&named.calls) == 0 && weir__monotonic_now() < end_ns;
}

/* The signal ends the sleep. Not inlined, static: its name is in .symtab. */
static __attribute__((noinline)) void sleep_until_reported(void)
{
    int64_t end_ns = weir__monotonic_now() + BLOCK_MAX_NS;
    struct timespec time = {.tv_sec = 1};

    while (must_go_on(end_ns))
        if (nanosleep(&time, NULL) < 0)
            time = (struct timespec){.tv_nsec = 1000000};
}

static void sleep_in_read(weir_ctx *ctx, weir_msg *msg)
{
    sleep_until_reported();
    weir_msg_release(msg);
    (void)ctx;
}

static __attribute__((noinline)) void compute_until_reported(void)
{
    int64_t end_ns = weir__monotonic_now() + BLOCK_MAX_NS;

    while (must_go_on(end_ns))
        ;
}

static void compute_in_read(weir_ctx *ctx, weir_msg *msg)
{
    compute_until_reported();
    weir_msg_release(msg);
    (void)ctx;
}

static const weir_handler sleeps = {.name = "sleeps", .read = sleep_in_read};
static const weir_handler computes = {.name = "computes", .read = compute_in_read};

/* The handler blocks on the loop of the host when its channel receives a byte. Its block ends. */
static void block_by(struct host *host, const weir_handler *handler)
{
    weir_channel *channel;
    int pair[2];

    log_capture_start();
    block_log_start(&blocks);
    named = named_ended = (struct call_counter){0};
    assert_int_equal(weir_watchdog_add_listener(count_named, NULL), 0);
    assert_int_equal(weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(10))), 0);
    socket_pair(PAIR_TCP, pair);
    assert_int_equal(weir_adopt(pair[0], NULL, &channel), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(channel), handler, NULL), 0);
    weir_channel_register(channel, host->loop, NULL);
    assert_int_equal(write(pair[1], "x", 1), 1);
    if (!call_counter_await(&named_ended, 1))
        fail_msg("the handler was not found; %u blocks, the first of channel \"%s\" in:\n%s",
                 atomic_load(&blocks.found.calls), blocks.records[0].channel,
                 blocks.records[0].backtrace);
    weir_watchdog_stop();
    assert_int_equal(weir_watchdog_remove_listener(count_named, NULL), 0);
    block_log_stop(&blocks);
    weir_channel_abort(channel, NULL);
    weir_channel_release(channel);
    (void)close(pair[1]);
}

/* The report of the handler's block, or that of its end. */
static const struct block_record *report_of(const char *name, bool has_ended)
{
    const struct block_record *record = blocks.records;

    while (record < blocks.records + BLOCK_LOG_MAX - 1 &&
           (strcmp(record->handler_name, name) != 0 || record->block.has_ended != has_ended))
        record++;
    assert_string_equal(record->handler_name, name);
    return record;
}

TEST_EACH_LOOP(interrupt, finds_the_function_of_a_sleeping_handler)
{
    const struct block_record *record;

    block_by(host, &sleeps);
    record = report_of("sleeps", false);
    assert_string_equal(record->slot, "read");
    assert_ptr_equal(record->block.handler, &sleeps);
    assert_true(has_function(record, address_of(sleep_in_read)));
    assert_non_null(strstr(record->backtrace, "nanosleep"));
    assert_non_null(strstr(record->backtrace, "sleep_until_reported+0x"));
    assert_non_null(strstr(record->backtrace, "sleep_in_read+0x"));
    assert_false(record->block.is_computing);
    assert_true(record->block.duration_ns >= weir_ms(10));
    assert_true(report_of("sleeps", true)->block.duration_ns >= record->block.duration_ns);
}

TEST_EACH_LOOP(interrupt, finds_the_function_of_a_computing_handler)
{
    const struct block_record *record;

    block_by(host, &computes);
    record = report_of("computes", false);
    assert_string_equal(record->slot, "read");
    assert_true(has_function(record, address_of(compute_in_read)));
    assert_non_null(strstr(record->backtrace, "compute_in_read+0x"));
    assert_true(record->block.is_computing);
}

/* TSan calls signal handlers late, unless the thread is in a call that it knows to wait. */
#ifdef __SANITIZE_THREAD__
#define IS_ANSWERED false
#else
#define IS_ANSWERED true
#endif

/* The first report has this function in its backtrace. */
static void assert_function(const char *name)
{
    if (IS_ANSWERED && strstr(blocks.records[0].backtrace, name) == NULL)
        fail_msg("%s is not in:\n%s", name, blocks.records[0].backtrace);
}

/* ---- by a stepped clock, while the loop's thread waits ---- */

static weir_manual_clock *clock_of_watchdog;

static void start_stepped(int signal)
{
    log_capture_start();
    block_log_start(&blocks);
    assert_int_equal(weir_manual_clock_create(0, &clock_of_watchdog), 0);
    assert_int_equal(weir_watchdog_start(
                         WEIR_WATCHDOG_OPTIONS(.clock = weir_manual_clock_clock(clock_of_watchdog),
                                               .signal = signal)),
                     0);
}

static void stop_stepped(void)
{
    weir_watchdog_stop();
    block_log_stop(&blocks);
    weir_manual_clock_release(clock_of_watchdog);
}

/* Five looks: the loop's clock is another one, so the first adds nothing. */
static void look_until_blocked(void)
{
    for (int i = 0; i < 5; i++) {
        assert_int_equal(weir_manual_clock_advance(clock_of_watchdog, weir_ms(25)), 0);
        assert_int_equal(weir_watchdog_check(), 0);
    }
    assert_int_equal(atomic_load(&blocks.found.calls), 1);
}

struct read_task {
    struct gate gate;
    int pipe[2];
    ssize_t result;
    int err;
};

static void read_pipe(void *arg, int status)
{
    struct read_task *task = arg;
    char byte;

    (void)status;
    errno = EXDEV;
    call_counter_add(&task->gate.arrivals);
    task->result = read(task->pipe[0], &byte, 1);
    task->err = errno;
    call_counter_add(&task->gate.opened);
}

/* read is restarted, and errno is that of the program. */
TEST_EACH_LOOP(interrupt, is_not_noticed_by_most_system_calls)
{
    struct read_task task = {0};

    start_stepped(0);
    assert_int_equal(pipe(task.pipe), 0);
    assert_int_equal(weir_execute(host->loop, read_pipe, &task), 0);
    assert_true(gate_await_arrivals(&task.gate, 1));
    look_until_blocked();
    assert_function("read_pipe");
    assert_int_equal(atomic_load(&task.gate.opened.calls), 0);
    assert_int_equal(write(task.pipe[1], "x", 1), 1);
    assert_true(call_counter_await(&task.gate.opened, 1));
    assert_int_equal(task.result, 1);
    assert_int_equal(task.err, EXDEV);
    (void)close(task.pipe[0]);
    (void)close(task.pipe[1]);
    stop_stepped();
}

/* Blocks the signal, waits at the gate, and receives the signal late. */
static void wait_without_signal(void *arg, int status)
{
    weir__thread_block_signal(SIGNAL, true);
    gate_task(arg, status);
    weir__thread_block_signal(SIGNAL, false);
}

TEST_EACH_LOOP(interrupt, may_remain_without_an_answer)
{
    struct gate gate = {0};
    weir_watchdog_stats before, after;

    start_stepped(0);
    weir_watchdog_read_stats(&before);
    assert_int_equal(weir_execute(host->loop, wait_without_signal, &gate), 0);
    assert_true(gate_await_arrivals(&gate, 1));
    look_until_blocked();
    assert_int_equal(blocks.records[0].block.frame_count, 0);
    weir_watchdog_read_stats(&after);
    assert_int_equal(after.without_signal, before.without_signal + 1);
    gate_open(&gate);
    host_turn(host, 1);
    assert_int_equal(weir_watchdog_check(), 0);
    assert_int_equal(atomic_load(&blocks.ended.calls), 1);
    stop_stepped();
}

/* ---- signals of the program ---- */

static volatile sig_atomic_t own_signals;

static void on_own_signal(int signal)
{
    (void)signal;
    own_signals++;
}

static void handle_signal(int signal, void (*fn)(int))
{
    struct sigaction action = {.sa_handler = fn};

    assert_int_equal(sigaction(signal, &action, NULL), 0);
}

static bool is_handled_by(int signal, void (*fn)(int))
{
    struct sigaction action;

    assert_int_equal(sigaction(signal, NULL, &action), 0);
    return action.sa_handler == fn;
}

TEST(interrupt, does_not_replace_a_handler_of_the_program)
{
    log_capture_start();
    handle_signal(SIGNAL, on_own_signal);
    assert_int_equal(weir_watchdog_start(NULL), -EBUSY);
    assert_log_contains("has a handler of the program; choose another one");
    assert_true(is_handled_by(SIGNAL, on_own_signal));
    assert_int_equal(weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.backtrace = WEIR_OFF)), 0);
    weir_watchdog_stop();
    assert_int_equal(weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.signal = SIGUSR2)), 0);
    weir_watchdog_stop();
    assert_true(is_handled_by(SIGUSR2, SIG_DFL));
    handle_signal(SIGNAL, SIG_DFL);
    assert_int_equal(weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.signal = SIGKILL)), -EINVAL);
}

TEST_EACH_LOOP(interrupt, uses_the_signal_of_the_options)
{
    struct gate gate = {0};

    handle_signal(SIGUSR2, SIG_IGN);
    start_stepped(SIGUSR2);
    gate_hold(&gate, host->loop);
    look_until_blocked();
    assert_true(blocks.records[0].block.frame_count > 0 || !IS_ANSWERED);
    gate_open(&gate);
    host_turn(host, 1); /* the task has left the gate */
    stop_stepped();
    assert_true(is_handled_by(SIGUSR2, SIG_IGN));
    handle_signal(SIGUSR2, SIG_DFL);
}

/* A program that installs a handler later gets no signal of the watchdog's, and keeps it. */
TEST_EACH_LOOP(interrupt, ends_when_the_program_replaces_the_handler)
{
    struct gate gate = {0};

    own_signals = 0;
    start_stepped(0);
    handle_signal(SIGNAL, on_own_signal);
    gate_hold(&gate, host->loop);
    look_until_blocked();
    assert_int_equal(blocks.records[0].block.frame_count, 0);
    gate_open(&gate);
    host_turn(host, 1); /* the task has left the gate */
    stop_stepped();
    assert_int_equal(own_signals, 0);
    assert_true(is_handled_by(SIGNAL, on_own_signal));
    handle_signal(SIGNAL, SIG_DFL);
}

/* ---- threads ---- */

/* The owner of an embedded loop is a thread of the program. */
static void own_loop(void *arg)
{
    struct gate *gate = arg;
    weir_executor *loop;

    if (weir_loop_create(WEIR_LOOP_OPTIONS(.name = "own"), &loop) < 0)
        return;
    if (weir_execute(loop, gate_task, gate) == 0)
        (void)weir_loop_run_once(loop, 0);
    weir_executor_release(loop);
}

TEST(interrupt, works_on_threads_of_the_program)
{
    struct gate gate = {0};
    weir__thread thread;

    start_stepped(0);
    assert_int_equal(weir__thread_start("own", own_loop, &gate, &thread), 0);
    assert_true(gate_await_arrivals(&gate, 1));
    look_until_blocked();
    assert_string_equal(blocks.records[0].executor, "own");
    gate_open(&gate);
    weir__thread_join(&thread);
    assert_int_equal(weir_watchdog_check(), 0);
    assert_int_equal(atomic_load(&blocks.ended.calls), 1);
    stop_stepped();
}

/* Blocking is allowed there. */
static void hold_channel_loop(struct host *host)
{
    struct gate gate = {0};

    gate_hold(&gate, host->loop);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(weir_manual_clock_advance(clock_of_watchdog, weir_ms(25)), 0);
        assert_int_equal(weir_watchdog_check(), 0);
    }
    gate_open(&gate);
    host_turn(host, 1); /* the task has left the gate */
}

static void on_blocking_host(struct host *host)
{
    start_stepped(0);
    hold_channel_loop(host);
    assert_int_equal(atomic_load(&blocks.found.calls), 0);
    stop_stepped();
}

TEST(interrupt, is_not_sent_to_threads_of_blocking_channels)
{
    host_run(BACKEND_BLOCKING, on_blocking_host);
}

/* ---- handlers on other groups ---- */

static struct gate remote_gate;

static void wait_in_read(weir_ctx *ctx, weir_msg *msg)
{
    gate_task(&remote_gate, 0);
    weir_msg_release(msg);
    (void)ctx;
}

static const weir_handler waits = {.name = "waits", .read = wait_in_read};

/* The handler waits on the group while the watchdog looks. Returns the number of blocks. */
static uint32_t block_on_group(struct host *host, weir_group *group)
{
    weir_channel *channel;
    int pair[2];

    remote_gate = (struct gate){0};
    socket_pair(PAIR_TCP, pair);
    assert_int_equal(weir_adopt(pair[0], NULL, &channel), 0);
    assert_int_equal(
        weir_pipeline_add(weir_channel_pipeline(channel), WEIR_PLACE(.group = group), &waits, NULL),
        0);
    weir_channel_register(channel, host->loop, NULL);
    assert_int_equal(write(pair[1], "x", 1), 1);
    assert_true(gate_await_arrivals(&remote_gate, 1));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(weir_manual_clock_advance(clock_of_watchdog, weir_ms(25)), 0);
        assert_int_equal(weir_watchdog_check(), 0);
        host_turn(host, 1); /* the channel's loop goes on */
    }
    gate_open(&remote_gate);
    weir_channel_abort(channel, NULL);
    weir_channel_release(channel);
    (void)close(pair[1]);
    return atomic_load(&blocks.found.calls);
}

TEST_EACH_LOOP(interrupt, is_not_sent_to_plain_threads_of_handlers)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));

    start_stepped(0);
    assert_int_equal(block_on_group(host, group), 0);
    stop_stepped();
    end_group(group);
}

/* The loop and the function are reported. The pipeline may be read by the channel's loop only. */
TEST_EACH_LOOP(interrupt, finds_no_handler_on_a_loop_that_is_not_the_channels)
{
    weir_group *group = NULL;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "other"), &group),
                     0);
    start_stepped(0);
    assert_int_equal(block_on_group(host, group), 1);
    assert_string_equal(blocks.records[0].executor, "other-1");
    assert_string_equal(blocks.records[0].handler_name, "");
    assert_function("wait_in_read");
    stop_stepped();
    end_group(group);
}
