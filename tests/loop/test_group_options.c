/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid options of groups and loops: each is rejected, and the log names it. */
#include <weir/group.h>

#include <weir/loop.h>
#include <weir/manual.h>
#include <weir/timer.h>
#include <weir/watch.h>

#include "support/executor/log_capture.h"
#include "support/test.h"

static enum weir_wait never_sleep(weir_executor *loop, bool has_work, void *user_data)
{
    (void)loop;
    (void)has_work;
    (void)user_data;
    return WEIR_WAIT_POLL;
}

#define WRONG(words, ...)                                              \
    {                                                                  \
        WEIR_GROUP_OPTIONS(.name = "pond", __VA_ARGS__), "pond", words \
    }
#define WRONG_SCALE(words, ...)                                                             \
    {                                                                                       \
        WEIR_GROUP_OPTIONS(.threads = 2, .autoscale = WEIR_AUTOSCALE_OPTIONS(__VA_ARGS__)), \
            "autoscale", words                                                              \
    }

TEST(group_options, that_make_no_sense_are_named)
{
    static const weir_chooser without_next = {.name = "broken"};
    static const weir_thread_factory without_start = {.start = NULL};
    const struct {
        const weir_group_options *options;
        const char *who;
        const char *words;
    } wrong[] = {
        WRONG("threads is -1, the minimum is 0", .threads = -1),
        WRONG("io is 77, the maximum is 4", .io = (enum weir_io)77),
        WRONG("max_pending is -1", .max_pending = -1),
        WRONG("task_cap_ns is -2, the minimum is -1", .task_cap_ns = -2),
        WRONG("cpus is empty", .cpus = (const int[]){0}),
        WRONG("has a negative entry", .cpus = (const int[]){0, -1}, .cpu_count = 2),
        WRONG(".thread_factory has no `start`", .thread_factory = &without_start),
        WRONG(".chooser has no `next`", .chooser = &without_next),
        WRONG(".chooser and .autoscale are mutually exclusive",
              .chooser = weir_chooser_round_robin(), .autoscale = WEIR_AUTOSCALE_OPTIONS()),
        WRONG("io_ratio is 101, the maximum is 100", .io_ratio = 101),
        WRONG("strategy is 9", .strategy = (enum weir_strategy)9),
        WRONG(".strategy and .strategy_fn", .strategy = WEIR_STRATEGY_BUSY_WAIT,
              .strategy_fn = never_sleep),
        WRONG("adaptive_limit_ns is -1", .adaptive_limit_ns = -1),
        WRONG("adaptive_credit_ns is -1", .adaptive_credit_ns = -1),
        WRONG("max_channels is -3", .io = WEIR_IO_BLOCKING, .max_channels = -3),
        WRONG(".chooser is not allowed with WEIR_IO_BLOCKING", .io = WEIR_IO_BLOCKING,
              .chooser = weir_chooser_round_robin()),
        WRONG(".autoscale is not allowed", .io = WEIR_IO_BLOCKING,
              .autoscale = WEIR_AUTOSCALE_OPTIONS()),
        WRONG("threads is -1", .io = WEIR_IO_NONE, .threads = -1),
        WRONG_SCALE("max_active is 3, the maximum is 2", .max_active = 3),
        WRONG_SCALE("min_active is 2, the maximum is 1", .min_active = 2, .max_active = 1),
        WRONG_SCALE("window_ns is -1", .window_ns = -1),
        WRONG_SCALE(".scale_down (0.9) <= .scale_up (0.1)", .scale_down = 0.9, .scale_up = 0.1),
        WRONG_SCALE("ramp_up is -1", .ramp_up = -1),
        WRONG_SCALE("patience is -2", .patience = -2),
        {&(const weir_group_options){.size = 1}, "options", "size is 1"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        weir_group *group = NULL;

        assert_options_rejected(weir_group_create(wrong[i].options, &group), wrong[i].words);
        assert_log_contains(wrong[i].who);
        assert_null(group);
    }
}

TEST(group_options, of_a_loop_by_hand_are_named_as_well)
{
    weir_executor *loop = NULL;

    assert_options_rejected(
        weir_loop_create(WEIR_LOOP_OPTIONS(.name = "main", .max_pending = -1), &loop),
        "loop main: invalid options: max_pending is -1");
    assert_options_rejected(weir_loop_create(WEIR_LOOP_OPTIONS(.io = WEIR_IO_BLOCKING), &loop),
                            "io is 4");
    assert_options_rejected(weir_loop_create(WEIR_LOOP_OPTIONS(.task_cap_ns = -2), &loop),
                            "task_cap_ns");
    assert_options_rejected(weir_manual_create(WEIR_MANUAL_OPTIONS(.max_pending = -1), &loop),
                            "max_pending is -1");
    assert_null(loop);
}

/* ---- what loops watch ---- */

static void on_ready(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    (void)watch;
    (void)events;
    (void)user_data;
}

static void on_signal(weir_signals *signals, const weir_signal *signal, void *user_data)
{
    (void)signals;
    (void)signal;
    (void)user_data;
}

TEST(group_options, of_what_a_loop_watches_are_named)
{
    static char *const no_program[] = {NULL};
    weir_executor *loop, *manual;
    weir_fd_watch *watch = NULL;
    weir_signals *signals = NULL;
    weir_child *child = NULL;

    assert_int_equal(weir_loop_create(NULL, &loop), 0);
    assert_int_equal(weir_manual_create(NULL, &manual), 0);
    assert_options_rejected(
        weir_fd_watch_create(loop, 0, WEIR_FD_WATCH_OPTIONS(.ready = NULL), &watch),
        ".ready is NULL");
    assert_options_rejected(
        weir_fd_watch_create(loop, 0, WEIR_FD_WATCH_OPTIONS(.ready = on_ready, .events = 0x100),
                             &watch),
        "unknown .events 0x100");
    assert_options_rejected(
        weir_fd_watch_create(manual, 0, WEIR_FD_WATCH_OPTIONS(.ready = on_ready), &watch),
        "the executor is not an event loop");
    assert_options_rejected(
        weir_signals_create(loop, WEIR_SIGNALS_OPTIONS(.numbers = {9}, .received = on_signal),
                            &signals),
        "signal 9 cannot be received");
    assert_options_rejected(
        weir_signals_create(loop, WEIR_SIGNALS_OPTIONS(.received = on_signal), &signals),
        ".numbers is empty");
    assert_options_rejected(
        weir_signals_create(loop, WEIR_SIGNALS_OPTIONS(.numbers = {10}), &signals),
        ".received is NULL");
    assert_options_rejected(weir_child_spawn(loop, WEIR_CHILD_OPTIONS(.argv = no_program), &child),
                            ".argv names no program");
    weir_executor_release(manual);
    weir_executor_release(loop);
}
