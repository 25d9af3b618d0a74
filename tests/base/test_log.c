/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levels, the hook, and what standard error gets without one.
 */
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"

struct record {
    int calls;
    enum weir_log_level level;
    char subsystem[32];
    char object[32];
    char message[1024];
};

static void on_log(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    struct record *record = user_data;

    record->calls++;
    record->level = level;
    snprintf(record->subsystem, sizeof(record->subsystem), "%s", subsystem);
    snprintf(record->object, sizeof(record->object), "%s", object);
    snprintf(record->message, sizeof(record->message), "%s", message);
    errno = EBADF; /* a hook may */
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

TEST(log, the_hook_gets_level_subsystem_object_and_message)
{
    struct record record = {0};

    weir_log_set(on_log, &record);
    weir__warn("executor", "weir-1", "%d tasks of %s", 3, "four");
    assert_int_equal(record.calls, 1);
    assert_int_equal(record.level, WEIR_LOG_WARN);
    assert_string_equal(record.subsystem, "executor");
    assert_string_equal(record.object, "weir-1");
    assert_string_equal(record.message, "3 tasks of four");
}

TEST(log, libraries_on_top_write_there_too)
{
    struct record record = {0};

    weir_log_set(on_log, &record);
    weir_log_write(WEIR_LOG_INFO, "tls", NULL, "not at this level");
    assert_int_equal(record.calls, 0);
    weir_log_write(WEIR_LOG_ERROR, "tls", NULL, "%s: no such file", "server.pem");
    assert_int_equal(record.level, WEIR_LOG_ERROR);
    assert_string_equal(record.subsystem, "tls");
    assert_string_equal(record.object, "-");
    assert_string_equal(record.message, "server.pem: no such file");
}

TEST(log, an_object_that_is_null_is_a_dash)
{
    struct record record = {0};

    weir_log_set(on_log, &record);
    weir__error("memory", NULL, "none");
    assert_string_equal(record.object, "-");
    assert_int_equal(record.level, WEIR_LOG_ERROR);
}

TEST(log, warn_is_the_default_level)
{
    struct record record = {0};

    weir_log_set(on_log, &record);
    weir__info("executor", "weir-1", "not seen");
    assert_int_equal(record.calls, 0);
    assert_false(weir_log_enabled(WEIR_LOG_INFO));
    assert_true(weir_log_enabled(WEIR_LOG_WARN));
    assert_true(weir_log_enabled(WEIR_LOG_ERROR));
}

TEST(log, the_level_decides_what_is_seen)
{
    struct record record = {0};

    weir_log_set(on_log, &record);
    weir_log_set_level(WEIR_LOG_TRACE);
    weir__trace("a", NULL, "seen");
    weir__debug("a", NULL, "seen");
    assert_int_equal(record.calls, 2);

    weir_log_set_level(WEIR_LOG_OFF);
    weir__error("a", NULL, "not seen");
    assert_int_equal(record.calls, 2);
    assert_false(weir_log_enabled(WEIR_LOG_OFF));
}

TEST(log, a_long_message_is_cut_and_says_so)
{
    struct record record = {0};
    char text[600];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    weir_log_set(on_log, &record);

    weir__warn("a", NULL, "%.511s", text);
    assert_int_equal(strlen(record.message), 511);
    assert_string_equal(record.message + 508, "xxx");
    weir__warn("a", NULL, "%.512s", text);
    assert_int_equal(strlen(record.message), 511);
    assert_string_equal(record.message + 507, "x...");
}

TEST(log, errno_is_preserved)
{
    struct record record = {0};

    weir_log_set(on_log, &record);
    errno = ENOENT;
    weir__warn("a", NULL, "message");
    assert_int_equal(errno, ENOENT);
    assert_int_equal(record.calls, 1);
}

static void log_once_more(void *user_data, enum weir_log_level level, const char *subsystem,
                          const char *object, const char *message)
{
    int *calls = user_data;

    (void)object;
    (void)message;
    if (++*calls < 3)
        weir_log_write(level, subsystem, NULL, "again");
}

TEST(log, a_hook_may_log)
{
    int calls = 0;

    weir_log_set(log_once_more, &calls);
    weir__warn("a", NULL, "message");
    assert_int_equal(calls, 3);
}

TEST(log, levels_have_names)
{
    assert_string_equal(weir_log_level_name(WEIR_LOG_TRACE), "TRACE");
    assert_string_equal(weir_log_level_name(WEIR_LOG_DEBUG), "DEBUG");
    assert_string_equal(weir_log_level_name(WEIR_LOG_INFO), "INFO");
    assert_string_equal(weir_log_level_name(WEIR_LOG_WARN), "WARN");
    assert_string_equal(weir_log_level_name(WEIR_LOG_ERROR), "ERROR");
    assert_string_equal(weir_log_level_name(WEIR_LOG_OFF), "OFF");
}

/* What fn writes to standard error, which is read back through a pipe. */
static void capture_stderr(void (*fn)(void), char *ret_text, size_t size)
{
    int saved = dup(STDERR_FILENO);
    int ends[2];
    ssize_t length;

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    fn();
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    length = read(ends[0], ret_text, size - 1);
    close(ends[0]);
    assert_true(length >= 0);
    ret_text[length] = '\0';
}

static void warn_twice(void)
{
    weir__warn("executor", "weir-1", "message %d", 1);
    weir__error("executor", NULL, "message %d", 2);
    weir__debug("executor", NULL, "not seen");
}

TEST(log, without_a_hook_lines_go_to_standard_error)
{
    char text[256];

    capture_stderr(warn_twice, text, sizeof(text));
    assert_string_equal(text, "weir WARN  executor weir-1: message 1\n"
                              "weir ERROR executor -: message 2\n");
}

static void warn_about_a_long_object(void)
{
    char object[900];

    memset(object, 'o', sizeof(object) - 1);
    object[sizeof(object) - 1] = '\0';
    weir__warn("executor", object, "message");
}

TEST(log, a_line_that_does_not_fit_still_ends)
{
    char text[2048];

    capture_stderr(warn_about_a_long_object, text, sizeof(text));
    assert_int_equal(text[strlen(text) - 1], '\n');
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* Two hooks, each with a user_data of its own; a hook that gets the other's has seen half a change.
 */
static int owner_a, owner_b;
static _Atomic int mixed, delivered;

static void hook_a(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    (void)level, (void)subsystem, (void)object, (void)message;
    atomic_fetch_add(user_data == &owner_a ? &delivered : &mixed, 1);
}

static void hook_b(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    (void)level, (void)subsystem, (void)object, (void)message;
    atomic_fetch_add(user_data == &owner_b ? &delivered : &mixed, 1);
}

static void log_much(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5000; i++)
        weir__warn("a", NULL, "message");
}

TEST(log, a_change_of_hook_is_seen_whole_by_threads_that_log)
{
    weir__thread threads[2];

    weir_log_set(hook_a, &owner_a);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir__thread_start(&threads[i], "logger", log_much, NULL), 0);
    while (atomic_load(&delivered) < 10000) {
        weir_log_set(hook_b, &owner_b);
        weir_log_set(hook_a, &owner_a);
        if (atomic_load(&mixed) > 0)
            break;
    }
    for (int i = 0; i < 2; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(atomic_load(&mixed), 0);
    assert_int_equal(atomic_load(&delivered), 10000);
}
