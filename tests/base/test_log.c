/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levels, the hook, and the writer to standard error.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "os/thread.h"

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

TEST(log, weir_log_write_is_public)
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

TEST(log, messages_below_the_level_are_dropped)
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

TEST(log, a_long_message_is_truncated)
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

/* Captures what fn writes to standard error. */
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

/* Asserts that the line at `text` is a timestamp followed by `rest`. */
static void assert_line(const char *text, const char *expected)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ ";

    for (const char *want = form; *want != '\0'; want++, text++)
        assert_true(*want == 'd' ? *text >= '0' && *text <= '9' : *text == *want);
    assert_memory_equal(text, expected, strlen(expected));
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
    assert_line(text, "weir WARN  executor weir-1: message 1\n");
    assert_line(strchr(text, '\n') + 1, "weir ERROR executor -: message 2\n");
}

static void warn_about_a_long_object(void)
{
    char object[900];

    memset(object, 'o', sizeof(object) - 1);
    object[sizeof(object) - 1] = '\0';
    weir__warn("executor", object, "message");
}

TEST(log, a_truncated_line_ends_with_a_newline)
{
    char text[2048];

    capture_stderr(warn_about_a_long_object, text, sizeof(text));
    assert_int_equal(text[strlen(text) - 1], '\n');
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* ---- a standard error that nobody reads ---- */

#define FLOOD 5000

/* Redirects standard error to the pipe until the end of the test. */
static int saved_stderr = -1;

static void restore_stderr(void)
{
    if (saved_stderr < 0)
        return;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    saved_stderr = -1;
}

__attribute__((constructor)) static void restore_stderr_after_each_test(void)
{
    test_before_leak_check(restore_stderr);
}

static int open_stalled_stderr(void)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    saved_stderr = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    return ends[0];
}

static void log_flood(void *arg)
{
    (void)arg;
    for (int i = 0; i < FLOOD; i++)
        weir__warn("flood", "-", "message %d", i);
}

struct lines {
    uint64_t count;    /* of the flood */
    uint64_t reported; /* as dropped, in any line */
    bool are_whole;
};

/* Reads what is in the pipe. */
static struct lines read_lines(int end)
{
    struct lines lines = {.are_whole = true};
    char line[1024];
    size_t length = 0;
    char byte;

    fcntl(end, F_SETFL, O_NONBLOCK);
    while (read(end, &byte, 1) == 1) {
        const char *log;

        line[length++] = byte;
        if (byte != '\n' && length < sizeof(line) - 1)
            continue;
        line[length] = '\0';
        length = 0;
        lines.are_whole = lines.are_whole && strncmp(line + 24, " weir WARN  ", 12) == 0;
        lines.count += strstr(line, "flood -: message") != NULL;
        log = strstr(line, "log -: ");
        if (log != NULL && strstr(log, " log lines were dropped: standard error was not"))
            lines.reported += strtoull(log + 7, NULL, 10);
    }
    lines.are_whole = lines.are_whole && length == 0;
    return lines;
}

TEST(log, a_pipe_without_a_reader_does_not_block)
{
    uint64_t before = weir_log_dropped(), missing;
    int end = open_stalled_stderr();
    struct lines lines;

    log_flood(NULL);
    missing = weir_log_dropped() - before;
    lines = read_lines(end);
    assert_true(lines.are_whole);
    assert_int_equal(lines.reported, 0);
    assert_in_range(missing, 1, FLOOD - 1);
    assert_int_equal(lines.count + missing, FLOOD);

    weir__warn("flood", "-", "message behind the flood");
    lines = read_lines(end);
    assert_int_equal(lines.reported, missing);
    assert_int_equal(lines.count, 1);
    weir__warn("flood", "-", "message of quiet times");
    lines = read_lines(end);
    assert_int_equal(lines.reported, 0);
    assert_int_equal(weir_log_dropped() - before, missing);
    restore_stderr();
    close(end);
}

TEST(log, lines_dropped_by_many_threads_are_all_counted)
{
    uint64_t before = weir_log_dropped();
    int end = open_stalled_stderr();
    weir__thread threads[4];
    struct lines lines, last;

    for (int i = 0; i < 4; i++)
        assert_int_equal(weir__thread_start("flood", log_flood, NULL, &threads[i]), 0);
    for (int i = 0; i < 4; i++)
        weir__thread_join(&threads[i]);
    lines = read_lines(end);
    assert_true(lines.are_whole);
    weir__warn("flood", "-", "message behind the flood");
    last = read_lines(end);
    assert_int_equal(lines.count + last.count - 1 + weir_log_dropped() - before, 4 * FLOOD);
    assert_int_equal(lines.reported + last.reported, weir_log_dropped() - before);
    restore_stderr();
    close(end);
}

TEST(log, a_closed_standard_error_drops_every_line)
{
    uint64_t before = weir_log_dropped();
    int end = open_stalled_stderr();

    close(STDERR_FILENO);
    weir__warn("flood", "-", "message");
    restore_stderr();
    close(end);
    assert_int_equal(weir_log_dropped() - before, 1);
}

/* Two hooks, each with its own user_data; a hook that gets the other's has seen half a change. */
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

TEST(log, a_change_of_the_hook_is_atomic)
{
    weir__thread threads[2];

    weir_log_set(hook_a, &owner_a);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir__thread_start("logger", log_much, NULL, &threads[i]), 0);
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

/* ---- listeners ---- */

static void log_again(void *user_data, enum weir_log_level level, const char *subsystem,
                      const char *object, const char *message)
{
    on_log(user_data, level, subsystem, object, message);
    weir__warn("log", "again", "from a listener");
}

TEST(log, listeners_get_messages_as_the_hook_does)
{
    struct record hook = {0}, first = {0}, second = {0};

    weir_log_set(on_log, &hook);
    assert_int_equal(weir_log_add_listener(log_again, &first), 0);
    assert_int_equal(weir_log_add_listener(on_log, &second), 0);
    weir__info("loop", "weir-1", "below the level");
    weir__warn("loop", "weir-1", "rebuilt");
    assert_int_equal(first.calls, 1); /* not with its own message */
    assert_int_equal(second.calls, 1);
    assert_string_equal(second.message, "rebuilt");
    assert_int_equal(hook.calls, 2);
    assert_int_equal(weir_log_remove_listener(log_again, &first), 0);
    weir__warn("loop", "weir-1", "rebuilt");
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 2);
    assert_int_equal(weir_log_remove_listener(on_log, &second), 0);
}

TEST(log, listeners_are_limited_and_found_by_function_and_argument)
{
    struct record records[9] = {{0}};

    assert_int_equal(weir_log_add_listener(NULL, NULL), -EINVAL);
    assert_int_equal(weir_log_remove_listener(NULL, NULL), -ENOENT);
    for (int i = 0; i < 8; i++)
        assert_int_equal(weir_log_add_listener(on_log, &records[i]), 0);
    assert_int_equal(weir_log_add_listener(on_log, &records[8]), -ENOSPC);
    assert_int_equal(weir_log_remove_listener(on_log, &records[8]), -ENOENT);
    for (int i = 0; i < 8; i++)
        assert_int_equal(weir_log_remove_listener(on_log, &records[i]), 0);
    assert_int_equal(weir_log_remove_listener(on_log, &records[0]), -ENOENT);
}

struct short_lived {
    _Atomic bool is_gone;
    _Atomic bool was_late;
};

static void note_late(void *user_data, enum weir_log_level level, const char *subsystem,
                      const char *object, const char *message)
{
    struct short_lived *listener = user_data;

    (void)level, (void)subsystem, (void)object, (void)message;
    weir__thread_yield();
    if (listener->is_gone)
        listener->was_late = true;
}

static void log_until(void *arg)
{
    _Atomic bool *stop = arg;

    while (!*stop)
        weir__warn("log", "-", "message");
}

static void ignore(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    (void)user_data, (void)level, (void)subsystem, (void)object, (void)message;
}

TEST(log, a_removed_listener_is_not_called_any_more)
{
    _Atomic bool stop = false;
    weir__thread thread;

    weir_log_set(ignore, NULL);
    assert_int_equal(weir__thread_start("logs", log_until, &stop, &thread), 0);
    for (int i = 0; i < 300; i++) {
        struct short_lived listener = {false, false};

        assert_int_equal(weir_log_add_listener(note_late, &listener), 0);
        weir__warn("log", "-", "message");
        assert_int_equal(weir_log_remove_listener(note_late, &listener), 0);
        listener.is_gone = true;
        weir__thread_yield();
        assert_false(listener.was_late);
    }
    stop = true;
    weir__thread_join(&thread);
}
