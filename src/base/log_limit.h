/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the rate of one kind of message, for messages that a peer can cause at any rate.
 *
 *     static weir__log_limit limit;
 *     weir__log_note note;
 *
 *     if (weir__log_admit(&limit, WEIR_LOG_INFO, &note))
 *         weir__info("server", "-", "connection refused%s", note.text);
 */
#ifndef WEIR_BASE_LOG_LIMIT_H
#define WEIR_BASE_LOG_LIMIT_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/log.h>

/* The number of messages logged per period; further ones are counted. */
#define WEIR__LOG_LIMIT_COUNT 10
#define WEIR__LOG_LIMIT_PERIOD_NS ((int64_t)10 * 1000 * 1000 * 1000)

/* Initialized to zeroes. */
typedef struct weir__log_limit {
    _Atomic uint32_t epoch;
    _Atomic uint32_t count; /* of this period */
    _Atomic int64_t start_ns;
    _Atomic uint64_t suppressed; /* since the last admitted message */
} weir__log_limit;

/* " (12 similar messages suppressed)", or empty. */
typedef struct weir__log_note {
    char text[64];
} weir__log_note;

/*
 * True if the caller may log a message of this kind now. DEBUG and TRACE are not limited. Costs one
 * load if the level is disabled.
 * Thread: any.
 */
bool weir__log_admit(weir__log_limit *limit, enum weir_log_level level, weir__log_note *ret_note);

/* The same for an enabled, limited level, at a time of CLOCK_MONOTONIC. Returns the number of
 * messages suppressed before this one, or -1 if this one is suppressed. */
int64_t weir__log_limit_take(weir__log_limit *limit, int64_t now_ns);

/* Resets all limits; for a new log function. */
void weir__log_limits_reset(void);

#endif
