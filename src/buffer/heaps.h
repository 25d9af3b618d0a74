/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All heaps of the process: that of the calling thread, orphans, and the list of all for stats.
 */
#ifndef WEIR_BUFFER_HEAPS_H
#define WEIR_BUFFER_HEAPS_H

#include "base/list.h"
#include "buffer/heap.h"
#include "os/thread.h"

typedef struct weir__heaps {
    weir__mutex lock; /* guards the list, changes of `orphans`, and `registry` of each heap */
    weir__list list;
    _Atomic(weir__heap *) orphans;
    /* Blocks returned minus blocks received, of destroyed heaps and of threads without a heap. */
    _Atomic uint32_t sent[WEIR__CLASS_COUNT];
} weir__heaps;

extern weir__heaps weir__heaps_all;

/* The heap of the calling thread; NULL before weir__heap_attach and after the exit of the thread.
 */
extern _Thread_local weir__heap *weir__heap_current __attribute__((tls_model("initial-exec")));

/* A heap without blocks, which owns none and is never changed. */
extern weir__heap weir__heap_none;

/* Assigns a heap to the calling thread, which has none, until it exits; NULL without memory. */
weir__heap *weir__heap_attach(void);

/* Trims orphaned heaps and destroys those that are empty then. Returns the number of bytes
 * unmapped. */
size_t weir__heaps_trim_orphans(void);

/* Counts a block returned by a thread without a heap. */
void weir__heaps_count_sent(unsigned size_class);

#endif
