/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heaps of the process: the calling thread's, those that have no thread, and all of them for
 * whoever counts.
 */
#ifndef WEIR_BUFFER_HEAPS_H
#define WEIR_BUFFER_HEAPS_H

#include "base/list.h"
#include "buffer/heap.h"
#include "os/thread.h"

typedef struct weir__heaps {
    weir__mutex lock; /* guards the list, changes of `orphans`, and each heap's `registry` */
    weir__list list;
    _Atomic(weir__heap *) orphans;
    /* Blocks sent home less those received, of heaps that are gone and of threads without one. */
    _Atomic uint32_t sent[WEIR__CLASS_COUNT];
} weir__heaps;

extern weir__heaps weir__heaps_all;

/* The calling thread's heap; NULL until weir__heap_attach, and after the thread's end. */
extern _Thread_local weir__heap *weir__heap_current __attribute__((tls_model("initial-exec")));

/* The same; but NULL if a tool must be told of each block, so that the quick way need not ask. */
extern _Thread_local weir__heap *weir__heap_fast __attribute__((tls_model("initial-exec")));

/* Gives the calling thread, which has none, a heap until its end; NULL = no memory. */
weir__heap *weir__heap_attach(void);

/* Trims the heaps that have no thread, and ends those that are empty then. */
size_t weir__heaps_trim_orphans(void);

/* A block was sent home by a thread that has no heap to count it. */
void weir__heaps_count_sent(unsigned size_class);

#endif
