/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leak detection: sampling, searching, reports. One report is shown in docs/internals/buffer.md.
 */
#include <weir/pool.h>

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/file_range.h>
#include <weir/log.h>
#include <weir/thread.h>

#include "buffer/leak.h"
#include "os/thread.h"
#include "support/buffer/buf.h"
#include "support/memory.h"

#define TEXT_SIZE 20000

/* Reports since listen_at; static, because a failed test leaves its stack. */
static struct {
    int count;
    weir_leak_report last; /* `thread` and `text` are copied below */
    char thread[32];
    char text[TEXT_SIZE];
} reports;

static void on_report(const weir_leak_report *report, void *user_data)
{
    assert_null(user_data);
    reports.count++;
    reports.last = *report;
    snprintf(reports.thread, sizeof(reports.thread), "%s", report->thread);
    snprintf(reports.text, sizeof(reports.text), "%s", report->text);
}

static void listen_at(enum weir_leak_level level)
{
    memset(&reports, 0, sizeof(reports));
    weir_leak_set_listener(on_report, NULL);
    assert_int_equal(weir_leak_set_level(level), 0);
}

static bool is_watched(const weir_buf *buf)
{
    return (buf->msg.flags & WEIR__LEAK_WATCHED) != 0;
}

/* A message that was sampled at the current level. */
__attribute__((noinline)) static weir_buf *make_sampled(void)
{
    weir_buf *buf = make_buf(64, 0);

    while (!is_watched(buf)) {
        weir_buf_release(buf);
        buf = make_buf(64, 0);
    }
    return buf;
}

static void run_on_thread(weir_thread_fn *fn, void *arg)
{
    weir__thread thread;

    assert_int_equal(weir__thread_start("worker-1", fn, arg, &thread), 0);
    weir__thread_join(&thread);
}

/* Not inlined, so that all callers share one site. */
__attribute__((noinline)) static void forget(void *arg)
{
    weir_buf **ret_buf = arg;

    if (weir_buf_create(500, 0, ret_buf) < 0)
        abort();
}

static weir_buf *forget_on_thread(void)
{
    weir_buf *buf = NULL;

    run_on_thread(forget, &buf);
    return buf;
}

/* ---- the level ---- */

TEST(leak, level_is_what_was_set)
{
    assert_int_equal(weir_leak_set_level(WEIR_LEAK_ADVANCED), 0);
    assert_int_equal(weir_leak_level(), WEIR_LEAK_ADVANCED);
    assert_int_equal(weir_leak_set_level((enum weir_leak_level)4), -EINVAL);
    assert_int_equal(weir_leak_set_level((enum weir_leak_level) - 1), -EINVAL);
    assert_int_equal(weir_leak_level(), WEIR_LEAK_ADVANCED);
}

TEST(leak, level_is_parsed)
{
    static const char *const words[] = {"off", "simple", "Advanced", "PARANOID"};
    enum weir_leak_level level;

    for (int i = 0; i < 4; i++) {
        assert_int_equal(weir__leak_parse_level(words[i], &level), 0);
        assert_int_equal(level, i);
    }
    assert_int_equal(weir__leak_parse_level("", &level), -EINVAL);
    assert_int_equal(weir__leak_parse_level("paranoi", &level), -EINVAL);
    assert_int_equal(weir__leak_parse_level("1", &level), -EINVAL);
}

/* ---- sampling ---- */

static size_t count_watched(size_t births)
{
    size_t watched = 0;

    for (size_t i = 0; i < births; i++) {
        weir_buf *buf = make_buf(0, 0);

        watched += is_watched(buf);
        weir_buf_release(buf);
    }
    return watched;
}

TEST(leak, nothing_is_watched_when_off)
{
    assert_int_equal(weir_leak_set_level(WEIR_LEAK_OFF), 0);
    assert_int_equal(count_watched(10000), 0);
}

TEST(leak, everything_is_watched_when_paranoid)
{
    assert_int_equal(weir_leak_set_level(WEIR_LEAK_PARANOID), 0);
    assert_int_equal(count_watched(1000), 1000);
    assert_int_equal(weir_leak_set_level(WEIR_LEAK_OFF), 0);
    assert_int_equal(count_watched(1000), 0);
}

static size_t births_until_watched(void)
{
    size_t births = 1;

    while (count_watched(1) == 0)
        births++;
    return births;
}

/* The standard deviation of the mean is 74 / sqrt(400): the bounds are more than eight of them. */
TEST(leak, one_in_128_is_watched)
{
    size_t sum = 0;

    for (int i = 0; i < 400; i++) {
        size_t births;

        assert_int_equal(weir_leak_set_level(WEIR_LEAK_SIMPLE), 0);
        births = births_until_watched();
        assert_in_range(births, 2, 256);
        sum += births;
    }
    assert_in_range(sum / 400, 98, 160);
}

TEST(leak, a_busy_thread_is_sampled_less_often)
{
    assert_int_equal(weir_leak_set_level(WEIR_LEAK_SIMPLE), 0);
    assert_in_range(count_watched(200000), 1, 200000 / 256);
}

TEST(leak, composites_and_file_ranges_are_watched_too)
{
    weir_composite *composite;
    weir_file_range *range;

    listen_at(WEIR_LEAK_PARANOID);
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_leak_check_all(), 1);
    assert_string_equal(reports.last.type, "composite");
    weir_composite_release(composite);
    assert_int_equal(weir_file_range_create(0, 0, 100, 0, &range), 0);
    assert_int_equal(weir_leak_check_all(), 1);
    assert_string_equal(reports.last.type, "file_range");
    weir_file_range_release(range);
    assert_int_equal(weir_leak_check_all(), 0);
    assert_int_equal(reports.count, 2);
}

TEST(leak, any_number_can_be_watched)
{
    enum { COUNT = 5000 };
    static weir_buf *bufs[COUNT];

    assert_int_equal(weir_leak_set_level(WEIR_LEAK_PARANOID), 0);
    weir_log_set_level(WEIR_LOG_OFF);
    for (int i = 0; i < COUNT; i++)
        bufs[i] = make_buf(0, 0);
    assert_int_equal(weir_leak_check_all(), COUNT);
    for (int i = 0; i < COUNT; i += 2)
        weir_buf_release(bufs[i]);
    assert_int_equal(weir_leak_check_all(), COUNT / 2);
    for (int i = 1; i < COUNT; i += 2)
        weir_buf_release(bufs[i]);
    assert_int_equal(weir_leak_check_all(), 0);
    weir_log_set_level(WEIR_LOG_WARN);
}

/* ---- what is found ---- */

TEST(leak, a_message_is_lost_when_the_thread_that_had_it_has_ended)
{
    weir_buf *buf, *own;

    listen_at(WEIR_LEAK_PARANOID);
    own = make_buf(64, 0);
    assert_int_equal(weir_leak_check(), 0);
    buf = forget_on_thread();
    assert_int_equal(weir_leak_check(), 1);
    assert_int_equal(reports.count, 1);
    assert_int_equal(reports.last.size, sizeof(weir_leak_report));
    assert_string_equal(reports.last.type, "buf");
    assert_int_equal(reports.last.bytes, weir_buf_capacity(buf));
    assert_int_equal(reports.last.refs, 1);
    assert_in_range(reports.last.age_ns, 1, weir_seconds(60));
    assert_string_equal(reports.thread, "worker-1");
    assert_true(reports.last.thread_ended);
    assert_int_equal(reports.last.others, 0);
    weir_buf_release(buf);
    assert_int_equal(weir_leak_check(), 0);
    weir_buf_release(own);
    assert_int_equal(reports.count, 1);
}

TEST(leak, samples_are_found_at_the_simple_level)
{
    weir_buf *buf;

    listen_at(WEIR_LEAK_SIMPLE);
    buf = make_sampled();
    weir_msg_touch(weir_buf_msg(buf), "decoder");
    assert_int_equal(weir_leak_check_all(), 1);
    assert_string_equal(reports.last.type, "buf");
    assert_non_null(strstr(reports.text, "make_sampled"));
    assert_null(strstr(reports.text, "decoder"));
    assert_non_null(strstr(reports.text, "WEIR_LEAK_LEVEL=advanced"));
    weir_buf_release(buf);
}

TEST(leak, touching_a_message_makes_the_thread_its_holder)
{
    weir_buf *buf;

    listen_at(WEIR_LEAK_PARANOID);
    buf = forget_on_thread();
    weir_msg_touch(weir_buf_msg(buf), "here");
    assert_int_equal(weir_leak_check(), 0);
    assert_int_equal(weir_leak_check_all(), 1);
    assert_false(reports.last.thread_ended);
    assert_string_not_equal(reports.thread, "worker-1");
    weir_buf_release(buf);
}

TEST(leak, a_place_is_reported_once)
{
    weir_buf *bufs[5];

    listen_at(WEIR_LEAK_PARANOID);
    for (int i = 0; i < 5; i++)
        bufs[i] = forget_on_thread();
    assert_int_equal(weir_leak_check(), 5);
    assert_int_equal(reports.count, 1);
    assert_int_equal(reports.last.others, 4);
    assert_non_null(strstr(reports.text, "; and 4 more from the same place"));
    assert_int_equal(weir_leak_check(), 5);
    assert_int_equal(weir_leak_check_all(), 5);
    assert_int_equal(reports.count, 1);

    assert_int_equal(weir_leak_set_level(WEIR_LEAK_PARANOID), 0); /* forgets the sites */
    assert_int_equal(weir_leak_check(), 5);
    assert_int_equal(reports.count, 2);
    for (int i = 0; i < 5; i++)
        weir_buf_release(bufs[i]);
}

/* Five calls that must not be merged: each path through them is a site. */
__attribute__((noinline)) static weir_buf *make_on_path(unsigned path, int left)
{
    weir_buf *buf = NULL;

    if (left == 0)
        return make_buf(0, 0);
    switch (path % 5) {
    case 0:
        buf = make_on_path(path / 5, left - 1);
        __asm__ volatile("# 0");
        break;
    case 1:
        buf = make_on_path(path / 5, left - 1);
        __asm__ volatile("# 1");
        break;
    case 2:
        buf = make_on_path(path / 5, left - 1);
        __asm__ volatile("# 2");
        break;
    case 3:
        buf = make_on_path(path / 5, left - 1);
        __asm__ volatile("# 3");
        break;
    default:
        buf = make_on_path(path / 5, left - 1);
        __asm__ volatile("# 4");
    }
    return buf;
}

TEST(leak, no_more_than_64_places_are_reported_at_once)
{
    enum { PATHS = 100 };
    weir_buf *bufs[PATHS];

    listen_at(WEIR_LEAK_PARANOID);
    for (unsigned i = 0; i < PATHS; i++)
        bufs[i] = make_on_path(i, 3);
    assert_int_equal(weir_leak_check_all(), PATHS);
    assert_int_equal(reports.count, 64);
    assert_int_equal(weir_leak_check_all(), PATHS);
    assert_int_equal(reports.count, PATHS);
    assert_int_equal(weir_leak_check_all(), PATHS);
    assert_int_equal(reports.count, PATHS);
    for (unsigned i = 0; i < PATHS; i++)
        weir_buf_release(bufs[i]);
}

/* The log has the lines of the first reports, and one more. */
static void count_log(void *user_data, enum weir_log_level level, const char *subsystem,
                      const char *object, const char *message)
{
    (void)level;
    (void)subsystem;
    (void)object;
    *(int *)user_data += strstr(message, "were not released") != NULL ? 1 : 0;
    *(int *)user_data += strstr(message, "6 more from other places") != NULL ? 100 : 0;
}

TEST(leak, the_log_gets_four_reports_at_once)
{
    enum { PATHS = 10 };
    weir_buf *bufs[PATHS];
    int counts = 0;

    assert_int_equal(weir_leak_set_level(WEIR_LEAK_PARANOID), 0);
    for (unsigned i = 0; i < PATHS; i++)
        bufs[i] = make_on_path(i, 2);
    weir_log_set(count_log, &counts);
    assert_int_equal(weir_leak_check_all(), PATHS);
    assert_int_equal(counts, 104);
    counts = 0;
    assert_int_equal(weir_leak_check_all(), PATHS);
    assert_int_equal(weir_leak_check_all(), PATHS);
    assert_int_equal(counts, 6);
    weir_log_set(NULL, NULL);
    for (unsigned i = 0; i < PATHS; i++)
        weir_buf_release(bufs[i]);
}

static void check_again(const weir_leak_report *report, void *user_data)
{
    (void)report;
    ++*(int *)user_data;
    assert_int_equal(weir_leak_check_all(), 1);
}

TEST(leak, a_listener_may_look_for_leaks)
{
    weir_buf *buf;
    int calls = 0;

    assert_int_equal(weir_leak_set_level(WEIR_LEAK_PARANOID), 0);
    weir_leak_set_listener(check_again, &calls);
    buf = make_buf(0, 0);
    assert_int_equal(weir_leak_check_all(), 1);
    assert_int_equal(calls, 1);
    weir_buf_release(buf);
}

/* ---- touches ---- */

static int count_of(const char *text, const char *part)
{
    int count = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

TEST(leak, touches_are_shown_in_their_order)
{
    const char *first, *second;
    weir_buf *buf;

    listen_at(WEIR_LEAK_ADVANCED);
    buf = make_sampled();
    weir_msg_touch(weir_buf_msg(buf), "first");
    weir_msg_touch(weir_buf_msg(buf), "second");
    assert_int_equal(weir_leak_check_all(), 1);
    first = strstr(reports.text, "touched by first");
    second = strstr(reports.text, "touched by second");
    assert_non_null(first);
    assert_true(second > first);
    assert_null(strstr(reports.text, "not kept"));
    weir_buf_release(buf);
}

TEST(leak, of_many_touches_the_first_four_and_the_last_are_kept)
{
    static const char *const where[] = {"t0", "t1", "t2", "t3"};
    weir_buf *buf;
    int kept;

    listen_at(WEIR_LEAK_PARANOID);
    buf = make_buf(0, 0);
    for (int i = 0; i < 4; i++)
        weir_msg_touch(weir_buf_msg(buf), where[i]);
    for (int i = 0; i < 995; i++)
        weir_msg_touch(weir_buf_msg(buf), "between");
    weir_msg_touch(weir_buf_msg(buf), "last");
    assert_int_equal(weir_leak_check_all(), 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(count_of(reports.text, where[i]), 1);
    assert_int_equal(count_of(reports.text, "touched by last"), 1);
    kept = count_of(reports.text, "touched by between") + 5;
    assert_int_equal(kept, 8); /* fewer after a thousand touches has a probability of 2^-100 */
    assert_non_null(strstr(reports.text, "992 more touches were not kept"));
    weir_buf_release(buf);
}

TEST(leak, a_report_that_is_too_long_is_cut)
{
    static char where[6000];
    weir_buf *buf;

    memset(where, 'x', sizeof(where) - 1);
    listen_at(WEIR_LEAK_PARANOID);
    buf = make_buf(0, 0);
    for (int i = 0; i < 4; i++)
        weir_msg_touch(weir_buf_msg(buf), where);
    assert_int_equal(weir_leak_check_all(), 1);
    assert_in_range(strlen(reports.text), 2 * sizeof(where), sizeof(reports.text) - 2);
    assert_string_equal(reports.text + strlen(reports.text) - 6, "  ...\n");
    weir_buf_release(buf);
}

TEST(leak, a_composite_touches_its_components)
{
    weir_composite *composite;
    weir_buf *buf;

    listen_at(WEIR_LEAK_PARANOID);
    assert_int_equal(weir_composite_create(0, &composite), 0);
    buf = make_buf_of("part");
    assert_int_equal(weir_composite_add(composite, weir_buf_msg(buf)), 0);
    weir_buf_retain(buf);
    weir_msg_touch(weir_composite_msg(composite), "together");
    weir_composite_release(composite);
    assert_int_equal(weir_leak_check_all(), 1);
    assert_string_equal(reports.last.type, "buf");
    assert_non_null(strstr(reports.text, "touched by together"));
    weir_buf_release(buf);
}

/* ---- scopes ---- */

TEST(leak, a_scope_counts_what_is_left)
{
    weir_leak_scope scope;
    weir_buf *before, *kept, *gone;

    listen_at(WEIR_LEAK_OFF);
    before = make_buf(0, 0);
    weir_leak_scope_begin(&scope);
    kept = make_buf(0, 0);
    gone = make_buf(0, 0);
    weir_buf_release(gone);
    assert_int_equal(weir_leak_scope_end(&scope), 1);
    assert_int_equal(reports.count, 1);
    assert_false(reports.last.thread_ended);

    weir_leak_scope_begin(&scope);
    weir_buf_release(make_buf(0, 0));
    weir_buf_release(kept);
    assert_int_equal(weir_leak_scope_end(&scope), 0);
    assert_int_equal(count_watched(1000), 0);
    weir_buf_release(before);
}

TEST(leak, a_scope_reports_the_same_place_again)
{
    listen_at(WEIR_LEAK_OFF);
    for (int i = 1; i <= 2; i++) {
        weir_leak_scope scope;
        weir_buf *kept;

        weir_leak_scope_begin(&scope);
        kept = make_buf(0, 0);
        assert_int_equal(weir_leak_scope_end(&scope), 1);
        assert_int_equal(reports.count, i);
        weir_buf_release(kept);
    }
}

TEST(leak, scopes_can_be_nested)
{
    weir_leak_scope outer, inner;
    weir_buf *first, *second;

    listen_at(WEIR_LEAK_OFF);
    weir_leak_scope_begin(&outer);
    first = make_buf(0, 0);
    weir_leak_scope_begin(&inner);
    second = make_buf(0, 0);
    assert_int_equal(weir_leak_scope_end(&inner), 1);
    weir_buf_release(make_buf(0, 0));
    assert_int_equal(weir_leak_scope_end(&outer), 2);
    weir_buf_release(first);
    weir_buf_release(second);
}

TEST(leak, a_scope_is_about_its_own_thread)
{
    weir_leak_scope scope;
    weir_buf *buf;

    listen_at(WEIR_LEAK_PARANOID);
    weir_leak_scope_begin(&scope);
    buf = forget_on_thread();
    assert_int_equal(weir_leak_scope_end(&scope), 0);
    weir_buf_release(buf);
}

/* ---- no memory, many threads ---- */

/* Ages are the only numbers with a decimal point, and differ between reports. */
static void forget_ages(char *text)
{
    for (char *point = strchr(text, '.'); point != NULL; point = strchr(point + 1, '.')) {
        for (char *digit = point + 1; isdigit((unsigned char)*digit); digit++)
            *digit = '0';
        for (char *digit = point - 1; isdigit((unsigned char)*digit); digit--)
            *digit = '0';
    }
}

TEST(leak, without_memory_for_a_record_a_message_is_not_watched)
{
    unsigned n = 0;
    bool failed;

    do {
        weir_buf *buf;

        (void)weir_leak_set_level(WEIR_LEAK_OFF);
        weir_buf_release(make_buf(0, 0)); /* so that the allocation of the buffer does not fail */
        (void)weir_leak_set_level(WEIR_LEAK_PARANOID);
        test_memory_fail_at(++n);
        buf = make_buf(0, 0);
        weir_msg_touch(weir_buf_msg(buf), "unseen");
        failed = test_memory_failed();
        assert_int_equal(is_watched(buf), !failed);
        weir_buf_release(buf);
    } while (failed);
    assert_in_range(n, 2, 10);
}

TEST(leak, a_touch_without_memory_is_ignored)
{
    weir_buf *buf;

    listen_at(WEIR_LEAK_PARANOID);
    buf = forget_on_thread();
    weir_locals_remove_all(); /* the thread_ref of this thread is freed */
    test_memory_fail_at(1);
    weir_msg_touch(weir_buf_msg(buf), "unseen");
    assert_true(test_memory_failed());
    assert_int_equal(weir_leak_check(), 1);
    assert_string_equal(reports.thread, "worker-1");
    assert_null(strstr(reports.text, "unseen"));
    weir_buf_release(buf);
}

TEST(leak, a_report_without_memory_for_the_name_cache_is_the_same)
{
    static char expected[TEXT_SIZE];
    weir_buf *buf;

    listen_at(WEIR_LEAK_PARANOID);
    buf = make_buf(0, 0);
    weir_msg_touch(weir_buf_msg(buf), "here");
    assert_int_equal(weir_leak_check_all(), 1);
    snprintf(expected, sizeof(expected), "%s", strchr(reports.text, '\n'));
    forget_ages(expected);

    listen_at(WEIR_LEAK_PARANOID);
    test_memory_fail_at(1);
    assert_int_equal(weir_leak_check_all(), 1);
    assert_true(test_memory_failed());
    forget_ages(reports.text);
    assert_string_equal(strchr(reports.text, '\n'), expected);
    weir_buf_release(buf);
}

TEST(leak, a_table_that_cannot_grow_holds_all_records)
{
    enum { COUNT = 130 };
    weir_buf *bufs[COUNT];

    assert_int_equal(weir_leak_set_level(WEIR_LEAK_PARANOID), 0);
    for (int i = 0; i < COUNT - 2; i++)
        bufs[i] = make_buf(0, 0);
    test_memory_fail_at(2); /* the first is that of the record */
    bufs[COUNT - 2] = make_buf(0, 0);
    assert_true(test_memory_failed());
    bufs[COUNT - 1] = make_buf(0, 0);
    for (int i = 0; i < COUNT; i++) {
        assert_true(is_watched(bufs[i]));
        weir_buf_release(bufs[i]);
    }
}

static void use_and_drop(void *arg)
{
    _Atomic int *running = arg;

    for (int i = 0; i < 2000; i++) {
        weir_buf *buf;

        if (weir_buf_create(64, 0, &buf) < 0)
            abort();
        weir_msg_touch(weir_buf_msg(buf), "thread");
        weir_buf_release(buf);
    }
    atomic_fetch_sub(running, 1);
}

TEST(leak, can_be_searched_concurrently)
{
    weir__thread threads[3];
    _Atomic int running = 3;

    listen_at(WEIR_LEAK_PARANOID);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__thread_start("worker", use_and_drop, &running, &threads[i]), 0);
    while (atomic_load(&running) > 0) {
        (void)weir_leak_check_all();
        assert_int_equal(weir_leak_check(), 0);
    }
    for (int i = 0; i < 3; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(weir_leak_check_all(), 0);
}

/* ---- the report ---- */

static void on_log(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    char *text = user_data;
    size_t length = strlen(text);

    assert_int_equal(level, WEIR_LOG_WARN);
    assert_string_equal(subsystem, "leak");
    assert_string_equal(object, "buf");
    snprintf(text + length, TEXT_SIZE - length, "%s\n", message);
}

/* A small server whose router forgets a request that matches no route. */
__attribute__((noinline)) static void route_request(weir_buf *request)
{
    weir_msg_touch(weir_buf_msg(request), "router");
    __asm__ volatile("");
}

__attribute__((noinline)) static void decode_request(weir_buf *request)
{
    weir_msg_touch(weir_buf_msg(request), "decoder");
    route_request(request);
    __asm__ volatile("");
}

__attribute__((noinline)) static weir_buf *receive_request(void)
{
    weir_buf *request = NULL;

    if (weir_buf_create(512, 0, &request) < 0)
        abort();
    __asm__ volatile("");
    return request;
}

static void serve(void *arg)
{
    weir_buf **ret_forgotten = arg;

    *ret_forgotten = receive_request();
    decode_request(*ret_forgotten);
    __asm__ volatile("");
}

/* Frames of these functions are the same in every build. */
static bool is_steady_frame(const char *line)
{
    static const char *const names[] = {"weir_buf_create", "receive_request", "decode_request",
                                        "route_request", "serve"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);

        if (strncmp(line, names[i], length) == 0 && line[length] == '+')
            return true;
    }
    return false;
}

/* Removes the other frames, and writes # for every number. */
static void reduce_to_shape(char *text)
{
    char *to = text;

    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, "    ", 4) == 0 && !is_steady_frame(line + 4))
            continue;
        for (char *from = line; *from != '\0';) {
            size_t number =
                strspn(from, strncmp(from, "0x", 2) == 0 ? "x0123456789abcdef" : "0123456789.");

            *to++ = number > 0 ? '#' : *from;
            from += number > 0 ? number : 1;
        }
        *to++ = '\n';
    }
    *to = '\0';
}

/* The block of docs/internals/buffer.md that follows `<!-- leak report -->`. */
static bool read_documented(char *text, size_t size)
{
    char path[4096];
    char *here, *block;
    FILE *page;
    size_t length;

    snprintf(path, sizeof(path), "%s", __FILE__);
    here = strstr(path, "tests/buffer/");
    if (here == NULL)
        return false;
    snprintf(here, sizeof(path) - (size_t)(here - path), "docs/internals/buffer.md");
    page = fopen(path, "r");
    if (page == NULL)
        return false;
    length = fread(text, 1, size - 1, page);
    fclose(page);
    text[length] = '\0';
    block = strstr(text, "<!-- leak report -->\n```\n");
    assert_non_null(block);
    block += strlen("<!-- leak report -->\n```\n");
    *strstr(block, "```\n") = '\0';
    memmove(text, block, strlen(block) + 1);
    return true;
}

/* The log lines of a report, without their prefixes. */
static void cut_prefixes(char *text)
{
    static const char prefix[] = "weir WARN  leak buf: ";
    char *at;

    while ((at = strstr(text, prefix)) != NULL)
        memmove(at, at + sizeof(prefix) - 1, strlen(at + sizeof(prefix) - 1) + 1);
}

TEST(leak, a_report_is_as_the_documentation_shows)
{
    static char logged[TEXT_SIZE], documented[4 * TEXT_SIZE];
    weir_buf *forgotten = NULL;

    logged[0] = '\0';
    if (!read_documented(documented, sizeof(documented)))
        WEIR_TEST_SKIP("docs/internals/buffer.md is not there");
    assert_int_equal(weir_leak_set_level(WEIR_LEAK_PARANOID), 0);
    run_on_thread(serve, &forgotten);
    weir_log_set(on_log, logged);
    assert_int_equal(weir_leak_check(), 1);
    weir_log_set(NULL, NULL);
    weir_buf_release(forgotten);

    print_message("%s", logged);
    cut_prefixes(documented);
    reduce_to_shape(logged);
    reduce_to_shape(documented);
    assert_string_equal(logged, documented);
}
