/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log hook and the writer to standard error.
 *
 * The hook is a pair, function and user_data, that must be read as one while somebody changes it,
 * and no lock may be held while it runs, for it may log itself. So the pair has a version, which is
 * odd while the pair is being changed; a reader that saw a change going on, or another version
 * after than before, reads again. All five accesses are sequentially consistent: in their one order
 * a pair read between two loads of the same even version has no change within it. Logging is not so
 * frequent that it would gain from less.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"

#define MESSAGE_SIZE 512
#define LINE_SIZE (MESSAGE_SIZE + 128)

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

void weir_log_set(weir_log_fn *fn, void *user_data)
{
    weir__mutex_lock(&published.lock);
    atomic_fetch_add(&published.version, 1);
    atomic_store(&published.fn, fn);
    atomic_store(&published.user_data, user_data);
    atomic_fetch_add(&published.version, 1);
    weir__mutex_unlock(&published.lock);
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
        weir__thread_yield(); /* to the writer, which may have lost its CPU half-way */
    }
}

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

/* One write, so that lines of several threads do not mix; a line that does not fit is cut. */
static void write_line(enum weir_log_level level, const char *subsystem, const char *object,
                       const char *message)
{
    char line[LINE_SIZE];
    int length = snprintf(line, sizeof(line), "weir %-5s %s %s: %s\n", weir_log_level_name(level),
                          subsystem, object, message);

    if (length < 0)
        return;
    if ((size_t)length >= sizeof(line)) {
        length = (int)sizeof(line) - 1;
        line[length - 1] = '\n';
    }
    /* If standard error takes nothing there is nobody left to tell. */
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

/* `length` is what the whole message needs, or negative if it could not be formatted. */
static void end_message(char *message, int length)
{
    if (length < 0)
        message[0] = '\0';
    else if (length >= MESSAGE_SIZE)
        memcpy(message + MESSAGE_SIZE - 4, "...", 4);
}

void weir_log_write(enum weir_log_level level, const char *subsystem, const char *object,
                    const char *format, ...)
{
    char message[MESSAGE_SIZE];
    struct hook hook;
    va_list arguments;
    int saved_errno = errno;

    if (!weir_log_enabled(level))
        return;
    va_start(arguments, format);
    end_message(message, vsnprintf(message, sizeof(message), format, arguments));
    va_end(arguments);

    if (object == NULL)
        object = "-";
    hook = current_hook();
    if (hook.fn != NULL)
        hook.fn(hook.user_data, level, subsystem, object, message);
    else
        write_line(level, subsystem, object, message);
    errno = saved_errno;
}
