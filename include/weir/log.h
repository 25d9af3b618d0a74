/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/log.h - where the library's own messages go.
 *
 * weir logs little: what it repaired, refused or could not report to anybody else. Until told
 * otherwise it writes WARN and above to standard error, one write per line, with the time in UTC:
 *
 *     2026-11-16T02:25:03.123Z weir WARN  executor weir-1: 3 tasks were cancelled at shutdown
 *
 * The writer never waits for the reader of standard error. Lines that a full pipe, a full socket or
 * a stopped terminal does not take are dropped and counted, and the next line that is written tells
 * how many. A regular file takes every line.
 *
 * Mistakes of peers, such as a client that does not speak TLS, are logged at INFO, at most ten
 * messages of a kind in ten seconds; the next one tells how many were left out. Warnings that peers
 * can cause are limited in the same way. DEBUG and TRACE are not limited.
 */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_log_level {
    WEIR_LOG_TRACE,
    WEIR_LOG_DEBUG,
    WEIR_LOG_INFO,
    WEIR_LOG_WARN,
    WEIR_LOG_ERROR,
    WEIR_LOG_OFF /* only as a threshold */
};

/*
 * Receives one message. `subsystem` is the part of weir that speaks ("executor"), `object` the
 * thing it speaks of ("weir-1", or "-"); `message` has no newline. The strings are lent for the
 * call. Runs on whichever thread logged, on several at once; it may call weir, but must not block.
 */
typedef void weir_log_fn(void *user_data, enum weir_log_level level, const char *subsystem,
                         const char *object, const char *message);

/*
 * Sends messages to `fn` from now on; NULL brings back the writer to standard error. A message that
 * another thread is logging right now may still reach the old function after this has returned.
 * Thread: any.
 */
WEIR_API void weir_log_set(weir_log_fn *fn, void *user_data);

/*
 * The number of lines so far that standard error did not take.
 * Thread: any.
 */
WEIR_API uint64_t weir_log_dropped(void);

/*
 * Drops messages below `level`, before they are formatted. The default is WEIR_LOG_WARN.
 * Thread: any.
 */
WEIR_API void weir_log_set_level(enum weir_log_level level);

/*
 * Whether a message of this level would be logged.
 * Thread: any.
 */
WEIR_API bool weir_log_enabled(enum weir_log_level level);

/*
 * "TRACE", "DEBUG", "INFO", "WARN", "ERROR" or "OFF", for a hook that prints.
 * Thread: any.
 */
WEIR_API const char *weir_log_level_name(enum weir_log_level level);

/*
 * Logs a message, for handlers and libraries on top of weir. `object` may be NULL. One below the
 * level costs a load and is not formatted; of a long one the first 511 bytes are logged, and end in
 * "...". errno stays as it is.
 * Thread: any.  Lends until it returns: everything.
 */
WEIR_API void weir_log_write(enum weir_log_level level, const char *subsystem, const char *object,
                             const char *format, ...) WEIR_PRINTF(4, 5);

#ifdef __cplusplus
}
#endif

#endif
