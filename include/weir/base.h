/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/base.h - linkage, version, durations, and the list nodes that public structs embed.
 *
 * Time is a signed 64-bit number of nanoseconds of a monotonic clock.
 */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_API __attribute__((visibility("default")))
#define WEIR_MUST_USE __attribute__((warn_unused_result))
#define WEIR_PRINTF(text, first) __attribute__((format(printf, text, first)))

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

/* Disables an option whose 0 means "use the default". */
#define WEIR_OFF (-1)

/* Enables a tri-state option: 0 is the default, WEIR_ON and WEIR_OFF set it. */
#define WEIR_ON 1

/* A deadline that never expires; as a duration, no limit. */
#define WEIR_NEVER INT64_MAX

/* The struct of type `type` whose `member` is at `pointer`. */
#define WEIR_CONTAINER_OF(pointer, type, member) \
    ((type *)((char *)(pointer)-offsetof(type, member)))

#ifdef __cplusplus
extern "C" {
#endif

/* Private: the link of a queued task. */
typedef struct weir_queue_node {
    struct weir_queue_node *next;
} weir_queue_node;

/* Private: the link of a running timer. */
typedef struct weir_timer_node {
    struct weir_timer_node *next;
    struct weir_timer_node **pprev; /* NULL = not queued */
    int64_t at_ns;
    uint32_t sequence; /* order of start among equal deadlines; wraps around */
    uint32_t reserved;
} weir_timer_node;

/*
 * The version of the library at run time, as "major.minor.patch". WEIR_VERSION_* are those of the
 * headers.
 * Thread: any.
 */
WEIR_API const char *weir_version(void);

/*
 * Microseconds as a duration, clamped to +-WEIR_NEVER.
 * Thread: any.
 */
static inline int64_t weir_us(int64_t us)
{
    return us > WEIR_NEVER / 1000      ? WEIR_NEVER
           : us < -(WEIR_NEVER / 1000) ? -WEIR_NEVER
                                       : us * 1000;
}

/*
 * Milliseconds as a duration, clamped to +-WEIR_NEVER.
 * Thread: any.
 */
static inline int64_t weir_ms(int64_t ms)
{
    return ms > WEIR_NEVER / 1000      ? WEIR_NEVER
           : ms < -(WEIR_NEVER / 1000) ? -WEIR_NEVER
                                       : weir_us(ms * 1000);
}

/*
 * Seconds as a duration, clamped to +-WEIR_NEVER.
 * Thread: any.
 */
static inline int64_t weir_seconds(int64_t seconds)
{
    return seconds > WEIR_NEVER / 1000      ? WEIR_NEVER
           : seconds < -(WEIR_NEVER / 1000) ? -WEIR_NEVER
                                            : weir_ms(seconds * 1000);
}

#ifdef __cplusplus
}
#endif

#endif
