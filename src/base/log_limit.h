/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit of messages of one kind, for messages that a peer can cause as often as it likes.
 *
 *     static weir__log_limit limit;
 *     weir__log_note note;
 *
 *     if (weir__log_admit(&limit, WEIR_LOG_INFO, &note))
 *         weir__info("server", "-", "a connection is refused%s", note.text);
 */
#ifndef WEIR_BASE_LOG_LIMIT_H
#define WEIR_BASE_LOG_LIMIT_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/log.h>

/* So many messages are logged in each period; the others are counted. */
#define WEIR__LOG_LIMIT_COUNT 10
#define WEIR__LOG_LIMIT_PERIOD_NS ((int64_t)10 * 1000 * 1000 * 1000)

/* Zeroes are a limit that has admitted nothing yet. */
typedef struct weir__log_limit {
    _Atomic uint32_t epoch;
    _Atomic uint32_t count; /* of this period */
    _Atomic int64_t start_ns;
    _Atomic uint64_t suppressed; /* since the last message that was admitted */
} weir__log_limit;

/* " (12 similar messages suppressed)", or nothing. */
typedef struct weir__log_note {
    char text[64];
} weir__log_note;

/*
 * True if the caller may log a message of this kind now. Debugging sees every message: DEBUG and
 * TRACE are not limited. Costs a load if the level is off.
 * Thread: any.
 */
bool weir__log_admit(weir__log_limit *limit, enum weir_log_level level, weir__log_note *ret_note);

/* The same for a level that is on and limited, at a time by CLOCK_MONOTONIC. Returns how many were
 * left out before this one, or -1 if it is left out, too. */
int64_t weir__log_limit_take(weir__log_limit *limit, int64_t now_ns);

/* Makes every limit forget what it has counted: a new log function starts with none. */
void weir__log_limits_reset(void);

#endif
