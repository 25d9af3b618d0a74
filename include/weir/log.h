/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/log.h - the log of the library.
 *
 * weir logs what it repaired, rejected or could not report to the caller. By default it writes WARN
 * and above to standard error, one write per line, with the time in UTC:
 *
 *     2026-11-16T02:25:03.123Z weir WARN  executor weir-1: 3 tasks were cancelled at shutdown
 *
 * Writing never blocks. Lines that a full pipe, a full socket or a stopped terminal does not accept
 * are dropped; the next line written reports their number. A regular file accepts every line.
 *
 * Errors of peers, such as a client that does not speak TLS, are logged at INFO, at most ten
 * messages of a kind in ten seconds; the next message reports how many were suppressed. Warnings
 * that peers can cause are limited in the same way. DEBUG and TRACE are not limited.
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
 * Receives one message. `subsystem` is the part of weir that logs ("executor"), `object` the object
 * concerned ("weir-1", or "-"); `message` has no newline. The strings are valid during the call.
 * Runs on the thread that logs, concurrently on several; it may call weir, but must not block.
 */
typedef void weir_log_fn(void *user_data, enum weir_log_level level, const char *subsystem,
                         const char *object, const char *message);

/*
 * Sets the function that receives messages; NULL restores the writer to standard error. A message
 * that another thread is logging may still reach the old function after this returns.
 * Thread: any.
 */
WEIR_API void weir_log_set(weir_log_fn *fn, void *user_data);

/*
 * Adds a listener, which receives every message, too; or removes the one with this function and
 * argument, which is not called after that. Messages that a listener logs do not reach listeners.
 * Thread: any; not from a listener.  Fails: -EINVAL, -ENOSPC (there are 8); -ENOENT.
 */
WEIR_API WEIR_MUST_USE int weir_log_add_listener(weir_log_fn *fn, void *user_data);
WEIR_API int weir_log_remove_listener(weir_log_fn *fn, void *user_data);

/*
 * The number of lines that standard error did not accept.
 * Thread: any.
 */
WEIR_API uint64_t weir_log_dropped(void);

/*
 * Sets the lowest level that is logged; messages below it are not formatted. The default is
 * WEIR_LOG_WARN.
 * Thread: any.
 */
WEIR_API void weir_log_set_level(enum weir_log_level level);

/*
 * True if messages of this level are logged.
 * Thread: any.
 */
WEIR_API bool weir_log_enabled(enum weir_log_level level);

/*
 * The name of a level: "TRACE", "DEBUG", "INFO", "WARN", "ERROR" or "OFF".
 * Thread: any.
 */
WEIR_API const char *weir_log_level_name(enum weir_log_level level);

/*
 * Logs a message; for handlers and libraries on top of weir. `object` may be NULL. A message below
 * the level costs one load. Messages longer than 511 bytes are cut and end in "...". errno is
 * preserved.
 * Thread: any.  Lends until it returns: everything.
 */
WEIR_API void weir_log_write(enum weir_log_level level, const char *subsystem, const char *object,
                             const char *format, ...) WEIR_PRINTF(4, 5);

/* How often one kind of message is logged: static, and initialized to zeroes. Private. */
typedef struct weir_log_limit {
    uint64_t private_words[4];
} weir_log_limit;

/*
 * As weir_log_write, at most ten times in ten seconds; the next message reports how many were
 * suppressed. DEBUG and TRACE are not limited. For messages that a peer can cause.
 * Thread: any.  Keeps: limit.  Lends until it returns: everything else.
 */
WEIR_API void weir_log_write_limited(weir_log_limit *limit, enum weir_log_level level,
                                     const char *subsystem, const char *object, const char *format,
                                     ...) WEIR_PRINTF(5, 6);

#ifdef __cplusplus
}
#endif

#endif
