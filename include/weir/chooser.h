/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/chooser.h - which executor of a group is next.
 *
 * A chooser is one const table. The group allocates its state; `next` is called from any thread, by
 * several at once.
 */
#ifndef WEIR_CHOOSER_H
#define WEIR_CHOOSER_H

#include <weir/base.h>
#include <weir/executor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_group weir_group;

typedef struct weir_chooser {
    const char *name;
    size_t state_size; /* zeroed before init */
    /* In weir_group_create, when all members are there; NULL = nothing to do. */
    int (*init)(void *state, weir_group *group, const void *options);
    /* Any thread, concurrently. Returns a member of the group. */
    weir_executor *(*next)(void *state, weir_group *group);
    /* Once, if init succeeded, before the group's members go; NULL = nothing to do. */
    void (*deinit)(void *state);
    void *reserved[4];
} weir_chooser;

/*
 * One after the other. This is the default.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_round_robin(void);

/*
 * The one with the fewest pending tasks; looks at all of them.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_least_pending(void);

/*
 * The less loaded of two that are drawn at random: fewer pending tasks, then lower utilisation. As
 * good as looking at all of them, at the price of two.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_two_choices(void);

/*
 * The event loop with the fewest descriptors, and so the fewest channels; looks at all of them.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_least_handles(void);

/*
 * The one that is pinned to the CPU that the caller runs on (`.pin` of weir_group_options); if none
 * is, one after the other.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_by_cpu(void);

/*
 * How a group grows and shrinks by itself. Every window each member's utilisation is measured: one
 * above `scale_up` for longer than `patience` windows is busy, one below `scale_down` as long is
 * idle. Each busy member wants an idle one beside it: while there are fewer, suspended members are
 * resumed; while there are more, idle ones that have no timer running and no descriptor open are
 * suspended. All begin as active, up to `max_active`; `next` goes round among those that are.
 */
typedef struct weir_autoscale_options {
    size_t size;
    int min_active;    /* default 1 */
    int max_active;    /* default all */
    int64_t window_ns; /* default 100 ms */
    double scale_down; /* default 0.25 */
    double scale_up;   /* default 0.75 */
    int ramp_down;     /* suspended per window at most, default 1 */
    int ramp_up;       /* resumed per window at most, default 1 */
    int patience;      /* windows before the one that acts, default 2; WEIR_OFF = none */
} weir_autoscale_options;

#define WEIR_AUTOSCALE_OPTIONS(...) \
    (&(const weir_autoscale_options){.size = sizeof(weir_autoscale_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_autoscale_options_init(weir_autoscale_options *options);

#ifdef __cplusplus
}
#endif

#endif
