/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log hook and the writer to standard error.
 *
 * The hook is a pair, function and user_data, that must be read consistently. No lock may be held
 * while it runs, because it may log. So the pair has a version, which is odd during a change; a
 * reader that sees an odd version, or another version after reading than before, reads again. All
 * five accesses are sequentially consistent: in their total order, a pair read between two loads of
 * the same even version contains no change. Logging is too rare to benefit from weaker orders.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log_limit.h"
#include "base/timestamp.h"
#include "os/clock.h"
#include "os/nowait_write.h"
#include "os/thread.h"

#define MESSAGE_SIZE 512
#define LINE_SIZE \
    (MESSAGE_SIZE + 512) /* below PIPE_BUF, so that a pipe accepts all of a line or nothing */

struct hook {
    weir_log_fn *fn;
    void *user_data;
};

static struct {
    weir__mutex lock; /* one writer at a time */
    _Atomic uint32_t version;
    _Atomic(weir_log_fn *) fn; /* NULL = write_line */
    _Atomic(void *) user_data;
} published = {.lock = WEIR__MUTEX_INIT};

static _Atomic int threshold = WEIR_LOG_WARN;

/* Lines that standard error did not accept. Relaxed: only counted. */
static struct {
    _Atomic uint64_t total;
    _Atomic uint64_t unreported;
    _Atomic bool cut; /* the last line was written in part, without its newline */
} dropped;

void weir_log_set(weir_log_fn *fn, void *user_data)
{
    weir__mutex_lock(&published.lock);
    atomic_fetch_add(&published.version, 1);
    atomic_store(&published.fn, fn);
    atomic_store(&published.user_data, user_data);
    atomic_fetch_add(&published.version, 1);
    weir__mutex_unlock(&published.lock);
    weir__log_limits_reset();
}

static struct hook current_hook(void)
{
    struct hook hook;
    uint32_t version;

    for (;;) {
        version = atomic_load(&published.version);
        hook.fn = atomic_load(&published.fn);
        hook.user_data = atomic_load(&published.user_data);
        if (version % 2 == 0 && version == atomic_load(&published.version))
            return hook;
        weir__thread_yield(); /* the writer may have been preempted */
    }
}

/* ---- listeners ---- */

/*
 * A slot is free while `fn` is NULL and nobody uses it. Logging threads count themselves in `users`
 * before they read `fn`; a removal clears `fn` and then waits for `users` to be 0. All accesses are
 * sequentially consistent: either the thread sees the NULL, or the removal sees the thread.
 */
static struct listener {
    _Atomic(weir_log_fn *) fn;
    _Atomic(void *) user_data;
    _Atomic uint32_t users;
} listeners[8];

static _Atomic int listener_count;
static weir__mutex listeners_lock = WEIR__MUTEX_INIT; /* adding and removing */
static _Thread_local bool in_listener;

static struct listener *find_listener(weir_log_fn *fn, void *user_data)
{
    for (size_t i = 0; i < sizeof(listeners) / sizeof(listeners[0]); i++)
        if (atomic_load(&listeners[i].fn) == fn &&
            (fn == NULL || atomic_load(&listeners[i].user_data) == user_data))
            return &listeners[i];
    return NULL;
}

int weir_log_add_listener(weir_log_fn *fn, void *user_data)
{
    struct listener *listener;

    if (fn == NULL)
        return -EINVAL;
    weir__mutex_lock(&listeners_lock);
    listener = find_listener(NULL, NULL);
    if (listener != NULL) {
        atomic_store(&listener->user_data, user_data);
        atomic_store(&listener->fn, fn);
        atomic_fetch_add(&listener_count, 1);
    }
    weir__mutex_unlock(&listeners_lock);
    return listener != NULL ? 0 : -ENOSPC;
}

int weir_log_remove_listener(weir_log_fn *fn, void *user_data)
{
    struct listener *listener = NULL;

    weir__mutex_lock(&listeners_lock);
    if (fn != NULL)
        listener = find_listener(fn, user_data);
    if (listener != NULL) {
        atomic_store(&listener->fn, NULL);
        while (atomic_load(&listener->users) > 0)
            weir__thread_yield();
        atomic_fetch_sub(&listener_count, 1);
    }
    weir__mutex_unlock(&listeners_lock);
    return listener != NULL ? 0 : -ENOENT;
}

static void call_listeners(enum weir_log_level level, const char *subsystem, const char *object,
                           const char *message)
{
    weir_log_fn *fn;

    in_listener = true;
    for (size_t i = 0; i < sizeof(listeners) / sizeof(listeners[0]); i++) {
        atomic_fetch_add(&listeners[i].users, 1);
        fn = atomic_load(&listeners[i].fn);
        if (fn != NULL)
            fn(atomic_load(&listeners[i].user_data), level, subsystem, object, message);
        atomic_fetch_sub(&listeners[i].users, 1);
    }
    in_listener = false;
}

/* ---- levels ---- */

void weir_log_set_level(enum weir_log_level level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

bool weir_log_enabled(enum weir_log_level level)
{
    int lowest = atomic_load_explicit(&threshold, memory_order_relaxed);

    return level < WEIR_LOG_OFF && (int)level >= lowest;
}

const char *weir_log_level_name(enum weir_log_level level)
{
    switch (level) {
    case WEIR_LOG_TRACE:
        return "TRACE";
    case WEIR_LOG_DEBUG:
        return "DEBUG";
    case WEIR_LOG_INFO:
        return "INFO";
    case WEIR_LOG_WARN:
        return "WARN";
    case WEIR_LOG_ERROR:
        return "ERROR";
    case WEIR_LOG_OFF:
        break;
    }
    return "OFF";
}

/* ---- standard error ---- */

struct line {
    char text[LINE_SIZE];
    size_t length;
};

/* Truncates a line that does not fit. */
static void format_line(struct line *line, enum weir_log_level level, const char *subsystem,
                        const char *object, const char *message)
{
    char time[WEIR__TIMESTAMP_SIZE];
    int length = snprintf(line->text, sizeof(line->text), "%s weir %-5s %s %s: %s\n",
                          weir__timestamp(weir_time_of_day(), time), weir_log_level_name(level),
                          subsystem, object, message);

    line->length = length > 0 ? (size_t)length : 0;
    if (line->length >= sizeof(line->text)) {
        line->length = sizeof(line->text) - 1;
        line->text[line->length - 1] = '\n';
    }
}

/* One write per line, so that lines of several threads do not mix. */
static bool write_once(const struct line *line)
{
    ssize_t written = weir__nowait_write(STDERR_FILENO, line->text, line->length, WEIR__NOWAIT_ANY);

    if (written > 0 && (size_t)written < line->length)
        atomic_store_explicit(&dropped.cut, true, memory_order_relaxed);
    return written == (ssize_t)line->length;
}

/* Reports dropped lines, if any. True if standard error accepts lines. */
static bool report_dropped(void)
{
    uint64_t count = atomic_exchange_explicit(&dropped.unreported, 0, memory_order_relaxed);
    struct line line;
    char message[96];

    if (count == 0)
        return true;
    if (atomic_exchange_explicit(&dropped.cut, false, memory_order_relaxed))
        (void)weir__nowait_write(STDERR_FILENO, "\n", 1, WEIR__NOWAIT_ANY);
    (void)snprintf(message, sizeof(message),
                   "%" PRIu64 " log lines were dropped: standard error was not writable", count);
    format_line(&line, WEIR_LOG_WARN, "log", "-", message);
    if (write_once(&line))
        return true;
    atomic_fetch_add_explicit(&dropped.unreported, count, memory_order_relaxed);
    return false;
}

static void write_line(enum weir_log_level level, const char *subsystem, const char *object,
                       const char *message)
{
    struct line line;

    format_line(&line, level, subsystem, object, message);
    if (report_dropped() && write_once(&line))
        return;
    atomic_fetch_add_explicit(&dropped.total, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&dropped.unreported, 1, memory_order_relaxed);
}

uint64_t weir_log_dropped(void)
{
    return atomic_load_explicit(&dropped.total, memory_order_relaxed);
}

/* ---- messages ---- */

void weir_log_write(enum weir_log_level level, const char *subsystem, const char *object,
                    const char *format, ...)
{
    char message[MESSAGE_SIZE];
    struct hook hook;
    va_list arguments;
    int saved_errno = errno, length;

    if (!weir_log_enabled(level))
        return;
    va_start(arguments, format);
    length = vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    if (length < 0)
        message[0] = '\0';
    else if (length >= MESSAGE_SIZE)
        memcpy(message + MESSAGE_SIZE - 4, "...", 4);

    if (object == NULL)
        object = "-";
    hook = current_hook();
    if (hook.fn != NULL)
        hook.fn(hook.user_data, level, subsystem, object, message);
    else
        write_line(level, subsystem, object, message);
    if (atomic_load(&listener_count) > 0 && !in_listener)
        call_listeners(level, subsystem, object, message);
    errno = saved_errno;
}
