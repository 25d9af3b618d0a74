/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/leak.h - which buffers were never released, who made them, and who saw them last.
 *
 * Of the buffers, composites and file ranges that a thread makes, one in 128 is watched: a record
 * keeps where it was made and, at the advanced level, the last places that touched it
 * (weir_msg_touch). A watched message that is still there when the thread that had it last has
 * ended has been forgotten: that is looked for whenever a group has terminated, and on demand, and
 * reported once for each place that made such messages. docs/internals/buffer.md shows how to read
 * a report.
 *
 * A thread that makes more than 128,000 messages a second is sampled less often, so that watching
 * costs it no more than a thousand records a second.
 *
 * Tests want more: between weir_leak_scope_begin and weir_leak_scope_end everything that the thread
 * makes is watched, and must be gone at the end.
 */
#ifndef WEIR_LEAK_H
#define WEIR_LEAK_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_leak_level {
    WEIR_LEAK_OFF,      /* nothing is watched */
    WEIR_LEAK_SIMPLE,   /* one in 128; where it was made. The default */
    WEIR_LEAK_ADVANCED, /* one in 128; where it was made and touched */
    WEIR_LEAK_PARANOID, /* every one; where it was made and touched */
};

/* What is known of messages that were forgotten; all of it is lent for the call of the listener. */
typedef struct weir_leak_report {
    size_t size;        /* of this struct: later versions may have more */
    const char *type;   /* "buf", "composite", "file_range" */
    size_t bytes;       /* that it had room for when it was last seen */
    uint32_t refs;      /* that have not been released */
    int64_t age_ns;     /* since it was made */
    const char *thread; /* the name of the one that had it last */
    bool thread_ended;
    size_t others;    /* further ones that were made in the same place; they get no report */
    const char *text; /* all of this but the type, and the message's way, in lines */
} weir_leak_report;

/* Runs on the thread that looked for leaks; may call anything. */
typedef void weir_leak_listener_fn(const weir_leak_report *report, void *user_data);

/* Private, as all of it. */
typedef struct weir_leak_scope {
    uint64_t first;
    void *reserved[3];
} weir_leak_scope;

/*
 * Changes what is watched of the messages made from now on, and forgets which places were reported.
 * Other threads hear of it within 256 messages, or 16,384 if they were sampled less often. Until
 * the first call the level is WEIR_LEAK_LEVEL of the environment (off, simple, advanced, paranoid),
 * or simple.
 * Thread: any.  Fails: -EINVAL.
 */
WEIR_API int weir_leak_set_level(enum weir_leak_level level);

/*
 * The level in force.
 * Thread: any.
 */
WEIR_API enum weir_leak_level weir_leak_level(void);

/*
 * Sends reports to `fn` from now on; NULL brings back the log, where they are warnings, a line each
 * (weir/log.h). A report that is under way may still reach the old one.
 * Thread: any.
 */
WEIR_API void weir_leak_set_listener(weir_leak_listener_fn *fn, void *user_data);

/*
 * Reports the watched messages whose last known thread has ended. Runs by itself when a group has
 * terminated. Returns how many there are, also of those that were reported before.
 * Thread: any.
 */
WEIR_API size_t weir_leak_check(void);

/*
 * Reports all watched messages that are there, whoever has them: at the end of a program, when
 * there should be none. Returns how many there are.
 * Thread: any.
 */
WEIR_API size_t weir_leak_check_all(void);

/*
 * From now on every message that this thread makes is watched, whatever the level. Scopes may be
 * nested. A message for which there is no memory for a record is not watched.
 * Thread: any.  Lends until weir_leak_scope_end: scope.
 */
WEIR_API void weir_leak_scope_begin(weir_leak_scope *scope);

/*
 * Ends the scope, on the thread that began it. Reports, also places that were reported before, what
 * this thread has made since and nobody has released. Returns how many there are.
 * Thread: the scope's.
 */
WEIR_API size_t weir_leak_scope_end(weir_leak_scope *scope);

#ifdef __cplusplus
}
#endif

#endif
