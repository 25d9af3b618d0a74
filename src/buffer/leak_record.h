/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of watched messages: found by address, and reported by the site of creation.
 *
 * All functions may be called on any thread. A message for whose record there is no memory is not
 * watched.
 */
#ifndef WEIR_BUFFER_LEAK_RECORD_H
#define WEIR_BUFFER_LEAK_RECORD_H

#include <sys/types.h>

#include <weir/msg.h>

#define WEIR__LEAK_FRAMES_MAX 20
#define WEIR__LEAK_TOUCHES_MAX 8
#define WEIR__LEAK_SITES_MAX 64 /* reported per search */

typedef struct weir__leak_trace {
    size_t count;
    void *frames[WEIR__LEAK_FRAMES_MAX];
} weir__leak_trace;

typedef struct weir__leak_thread {
    pid_t id;
    char name[16];
} weir__leak_thread;

typedef struct weir__leak_touch_info {
    const char *where;
    int64_t at_ns;
    weir__leak_thread thread;
    weir__leak_trace trace;
} weir__leak_touch_info;

/* A copy of what is known of a watched message; valid after the message is destroyed. */
typedef struct weir__leak_info {
    const char *type;
    size_t bytes; /* capacity when it was last seen */
    uint32_t refs;
    int64_t created_ns;
    weir__leak_thread maker;
    weir__leak_thread holder; /* the last thread that touched it */
    bool holder_ended;
    weir__leak_trace made;
    bool detailed; /* touches are kept */
    uint32_t touch_count;
    uint64_t touches_dropped;
    weir__leak_touch_info touches[WEIR__LEAK_TOUCHES_MAX]; /* in chronological order */
} weir__leak_info;

/* Selects records: those that match all criteria. */
typedef struct weir__leak_search {
    bool only_ended;      /* the thread of the holder has ended */
    pid_t maker;          /* 0 = any */
    uint64_t first;       /* created with this number or later */
    bool repeat_reported; /* include sites that were reported before */

    size_t site_max; /* sites to report, at most WEIR__LEAK_SITES_MAX */

    /* Sites reported by this search. */
    uint64_t sites[WEIR__LEAK_SITES_MAX];
    size_t site_count;
} weir__leak_search;

/* Creates a record of a new message, and marks the message as watched. */
void weir__leak_record_add(weir_msg *msg, bool detailed);

/* For marked messages: the calling thread has it; it is destroyed. */
void weir__leak_record_touch(weir_msg *msg, const char *where);
void weir__leak_record_remove(weir_msg *msg);

/* The number of the next record. */
uint64_t weir__leak_records_next_number(void);

/* True if a thread runs, other than the calling one, that has created or touched a watched message.
 */
bool weir__leak_others_run(void);

/* The number of matching records. */
size_t weir__leak_records_count(const weir__leak_search *search);

/*
 * Picks the oldest matching record of a site that was not reported, and marks the site as reported.
 * `*ret_others` is the number of other matching records of that site. False if there is none left.
 */
bool weir__leak_records_pick(weir__leak_search *search, weir__leak_info *ret_info,
                             size_t *ret_others);

/* The number of matching records of sites that were not reported. */
size_t weir__leak_records_count_unreported(const weir__leak_search *search);

/* Forgets which sites were reported. */
void weir__leak_sites_reset(void);

#endif
