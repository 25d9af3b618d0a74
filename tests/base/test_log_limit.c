/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rate limits of messages.
 */
#include "base/log_limit.h"

#include <string.h>

#include "base/log.h"
#include "os/thread.h"
#include "support/test.h"

#define START_NS 1000
#define PERIOD_NS WEIR__LOG_LIMIT_PERIOD_NS
#define COUNT WEIR__LOG_LIMIT_COUNT

static void ignore_message(void *user_data, enum weir_log_level level, const char *subsystem,
                           const char *object, const char *message)
{
    (void)user_data, (void)level, (void)subsystem, (void)object, (void)message;
}

static void restore_defaults(void)
{
    weir_log_set(NULL, NULL);
    weir_log_set_level(WEIR_LOG_WARN);
}

__attribute__((constructor)) static void restore_defaults_after_each_test(void)
{
    test_before_leak_check(restore_defaults);
}

static void use_up(weir__log_limit *limit, int64_t now_ns)
{
    for (int i = 0; i < COUNT; i++)
        assert_true(weir__log_limit_take(limit, now_ns) >= 0);
}

TEST(log_limit, admits_ten_per_period_and_counts_the_others)
{
    weir__log_limit limit = {0};

    use_up(&limit, START_NS);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir__log_limit_take(&limit, START_NS + i), -1);
    assert_int_equal(weir__log_limit_take(&limit, START_NS + PERIOD_NS - 1), -1);
    assert_int_equal(weir__log_limit_take(&limit, START_NS + PERIOD_NS), 1001);
    assert_int_equal(weir__log_limit_take(&limit, START_NS + PERIOD_NS), 0);
}

TEST(log_limit, does_not_limit_rare_messages)
{
    weir__log_limit limit = {0};

    for (int i = 0; i < 10 * COUNT; i++)
        assert_int_equal(weir__log_limit_take(&limit, START_NS + i * PERIOD_NS), 0);
}

TEST(log_limit, reports_the_number_of_suppressed_messages)
{
    weir__log_limit limit = {0};
    weir__log_note note;

    weir_log_set(ignore_message, NULL);
    use_up(&limit, START_NS);
    for (int i = 0; i < 12; i++)
        assert_int_equal(weir__log_limit_take(&limit, START_NS), -1);
    /* In real time the period of START_NS is long over. */
    assert_true(weir__log_admit(&limit, WEIR_LOG_WARN, &note));
    assert_string_equal(note.text, " (12 similar messages suppressed)");
    assert_true(weir__log_admit(&limit, WEIR_LOG_WARN, &note));
    assert_string_equal(note.text, "");
}

TEST(log_limit, does_not_count_at_a_disabled_level)
{
    weir__log_limit limit = {0};
    weir__log_note note;

    weir_log_set(ignore_message, NULL);
    for (int i = 0; i < 2 * COUNT; i++)
        assert_false(weir__log_admit(&limit, WEIR_LOG_INFO, &note));
    weir_log_set_level(WEIR_LOG_INFO);
    assert_true(weir__log_admit(&limit, WEIR_LOG_INFO, &note));
    assert_string_equal(note.text, "");
}

TEST(log_limit, does_not_limit_debugging)
{
    weir__log_limit limit = {0};
    weir__log_note note;

    weir_log_set_level(WEIR_LOG_TRACE);
    for (int i = 0; i < 10 * COUNT; i++)
        assert_true(weir__log_admit(&limit, WEIR_LOG_DEBUG, &note));
}

TEST(log_limit, is_reset_by_a_new_log_function)
{
    weir__log_limit limit = {0};

    use_up(&limit, START_NS);
    assert_int_equal(weir__log_limit_take(&limit, START_NS), -1);
    weir_log_set(ignore_message, NULL);
    assert_int_equal(weir__log_limit_take(&limit, START_NS), 0);
}

#define THREADS 4
#define TRIES 20000

struct flood {
    weir__log_limit *limit;
    int64_t admitted;
    int64_t left_out;
};

static void flood(void *arg)
{
    struct flood *flood = arg;

    for (int i = 0; i < TRIES; i++) {
        int64_t left_out = weir__log_limit_take(flood->limit, START_NS);

        flood->admitted += left_out >= 0;
        flood->left_out += left_out > 0 ? left_out : 0;
    }
}

TEST(log_limit, counts_exactly_within_a_period_of_many_threads)
{
    struct flood floods[THREADS] = {{0}};
    weir__log_limit limit = {0};
    weir__thread threads[THREADS];
    int64_t admitted = 0, left_out = 0;

    assert_int_equal(weir__log_limit_take(&limit, START_NS), 0); /* the period has begun */
    for (int i = 0; i < THREADS; i++) {
        floods[i].limit = &limit;
        assert_int_equal(weir__thread_start("flood", flood, &floods[i], &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        weir__thread_join(&threads[i]);
        admitted += floods[i].admitted;
        left_out += floods[i].left_out;
    }
    assert_int_equal(admitted, COUNT - 1);
    left_out += weir__log_limit_take(&limit, START_NS + PERIOD_NS);
    assert_int_equal(left_out, THREADS * TRIES - (COUNT - 1));
}

/* ---- messages ---- */

static char last_message[512];
static unsigned messages;

static void keep_message(void *user_data, enum weir_log_level level, const char *subsystem,
                         const char *object, const char *message)
{
    (void)user_data, (void)level, (void)subsystem, (void)object;
    strcpy(last_message, message);
    messages++;
}

TEST(log_limit, limits_messages_of_a_kind)
{
    messages = 0;
    weir_log_set(keep_message, NULL);
    for (int i = 0; i < 1000; i++) {
        static weir_log_limit limit;

        weir_log_write_limited(&limit, WEIR_LOG_WARN, "test", NULL, "%d is too much", i);
    }
    assert_int_equal(messages, COUNT);
    assert_string_equal(last_message, "9 is too much");
    for (int i = 0; i < 2 * COUNT; i++) {
        weir__warn_limited("test", "-", "another kind");
    }
    assert_int_equal(messages, 2 * COUNT);
}
