/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of the messages that are watched for leaks: what is known of each, found by its
 * address, and picked for reports place by place.
 *
 * All of it may be used on any thread. Records that there is no memory for are not made: a message
 * is then not watched.
 */
#ifndef WEIR_BUFFER_LEAK_RECORD_H
#define WEIR_BUFFER_LEAK_RECORD_H

#include <sys/types.h>

#include <weir/msg.h>

#define WEIR__LEAK_FRAMES_MAX 20
#define WEIR__LEAK_TOUCHES_MAX 8
#define WEIR__LEAK_SITES_MAX 64 /* reported by one look for leaks */

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

/* What is known of a watched message: a copy that stays true when the message goes. */
typedef struct weir__leak_info {
    const char *type;
    size_t bytes; /* that it had room for when it was last seen */
    uint32_t refs;
    int64_t created_ns;
    weir__leak_thread maker;
    weir__leak_thread holder; /* the last that was seen to have it */
    bool holder_ended;
    weir__leak_trace made;
    bool detailed; /* touches are kept */
    uint32_t touch_count;
    uint64_t touches_dropped;
    weir__leak_touch_info touches[WEIR__LEAK_TOUCHES_MAX]; /* in order of time */
} weir__leak_info;

/* Which records a look for leaks is about: those that fit all that is asked. */
typedef struct weir__leak_search {
    bool only_ended;      /* the holder's thread has ended */
    pid_t maker;          /* 0 = any */
    uint64_t first;       /* born under this number or a later one */
    bool repeat_reported; /* also places that were reported before */

    /* The places that this look has reported. */
    uint64_t sites[WEIR__LEAK_SITES_MAX];
    size_t site_count;
} weir__leak_search;

/* Makes a record of a message that was just made, and marks the message as watched. */
void weir__leak_record_add(weir_msg *msg, bool detailed);

/* For messages that are marked: the calling thread has it; nobody has it any more. */
void weir__leak_record_touch(weir_msg *msg, const char *where);
void weir__leak_record_remove(weir_msg *msg);

/* The number that the next record will be born under. */
uint64_t weir__leak_records_next_number(void);

/* How many records the search is about. */
size_t weir__leak_records_count(const weir__leak_search *search);

/*
 * Picks the oldest record of a place that the search has not reported, and marks the place as
 * reported. `*ret_others` is how many more there are of that place. False when there is none left.
 */
bool weir__leak_records_pick(weir__leak_search *search, weir__leak_info *ret_info,
                             size_t *ret_others);

/* No place has been reported yet. */
void weir__leak_sites_reset(void);

#endif
