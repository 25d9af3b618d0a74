/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All accesses are relaxed: the counters publish no other data. Threads that race at the start of a
 * period may log a few more messages, or count a few in the wrong period.
 */
#include "base/log_limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "os/clock.h"

#define MESSAGE_SIZE 448 /* of 511, so that the note is not cut off */

static _Atomic uint32_t current_epoch = 1;

void weir__log_limits_reset(void)
{
    atomic_fetch_add_explicit(&current_epoch, 1, memory_order_relaxed);
}

static void begin_epoch(weir__log_limit *limit)
{
    uint32_t epoch = atomic_load_explicit(&current_epoch, memory_order_relaxed);

    if (atomic_load_explicit(&limit->epoch, memory_order_relaxed) == epoch ||
        atomic_exchange_explicit(&limit->epoch, epoch, memory_order_relaxed) == epoch)
        return;
    atomic_store_explicit(&limit->start_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->suppressed, 0, memory_order_relaxed);
}

static void begin_period(weir__log_limit *limit, int64_t now_ns)
{
    int64_t start_ns = atomic_load_explicit(&limit->start_ns, memory_order_relaxed);

    if (start_ns != 0 && now_ns - start_ns < WEIR__LOG_LIMIT_PERIOD_NS)
        return;
    if (atomic_compare_exchange_strong_explicit(&limit->start_ns, &start_ns, now_ns,
                                                memory_order_relaxed, memory_order_relaxed))
        atomic_store_explicit(&limit->count, 0, memory_order_relaxed);
}

int64_t weir__log_limit_take(weir__log_limit *limit, int64_t now_ns)
{
    begin_epoch(limit);
    begin_period(limit, now_ns);
    /* Checked before it is incremented, so that the count cannot wrap around. */
    if (atomic_load_explicit(&limit->count, memory_order_relaxed) < WEIR__LOG_LIMIT_COUNT &&
        atomic_fetch_add_explicit(&limit->count, 1, memory_order_relaxed) < WEIR__LOG_LIMIT_COUNT)
        return (int64_t)atomic_exchange_explicit(&limit->suppressed, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&limit->suppressed, 1, memory_order_relaxed);
    return -1;
}

bool weir__log_admit(weir__log_limit *limit, enum weir_log_level level, weir__log_note *ret_note)
{
    int64_t suppressed = 0;

    if (!weir_log_enabled(level))
        return false;
    if (level >= WEIR_LOG_INFO)
        suppressed = weir__log_limit_take(limit, weir__monotonic_now());
    ret_note->text[0] = '\0';
    if (suppressed > 0)
        (void)snprintf(ret_note->text, sizeof(ret_note->text),
                       " (%" PRId64 " similar messages suppressed)", suppressed);
    return suppressed >= 0;
}

_Static_assert(sizeof(weir__log_limit) <= sizeof(weir_log_limit) &&
                   _Alignof(weir__log_limit) <= _Alignof(weir_log_limit),
               "there is room");

void weir_log_write_limited(weir_log_limit *limit, enum weir_log_level level, const char *subsystem,
                            const char *object, const char *format, ...)
{
    int saved_errno = errno;
    char message[MESSAGE_SIZE];
    weir__log_note note;
    va_list arguments;

    if (!weir__log_admit((weir__log_limit *)(void *)limit, level, &note))
        return;
    va_start(arguments, format);
    if (vsnprintf(message, sizeof(message), format, arguments) < 0)
        message[0] = '\0';
    va_end(arguments);
    weir_log_write(level, subsystem, object, "%s%s", message, note.text);
    errno = saved_errno;
}
