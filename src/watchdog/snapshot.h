/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a blocked thread was doing: its stack, the channel that it works for, and the handlers of
 * that channel. Taken by the thread itself, in a signal handler, because only the loop's thread may
 * read a pipeline. Everything is copied: when the watchdog reads it, the channel may be gone.
 */
#ifndef WEIR_WATCHDOG_SNAPSHOT_H
#define WEIR_WATCHDOG_SNAPSHOT_H

#include <weir/address.h>
#include <weir/executor.h>
#include <weir/handler.h>

#include "os/backtrace.h"

#define WEIR__SNAPSHOT_FRAMES 128
#define WEIR__SNAPSHOT_HANDLERS 32
#define WEIR__HANDLER_NAME_SIZE 64

typedef struct weir__snapshot_handler {
    const weir_handler *handler;
    weir_handler table; /* a copy */
    char name[WEIR__HANDLER_NAME_SIZE];
    const char *call; /* that runs, if it is not a slot: "timer"; NULL = none */
} weir__snapshot_handler;

typedef struct weir__snapshot {
    bool is_taken;
    bool needs_dispatch; /* the channel counts only if weir__io_dispatch is in the stack */
    weir__stack_copy stack;

    size_t frame_count;
    const void *frames[WEIR__SNAPSHOT_FRAMES];
    const void *functions[WEIR__SNAPSHOT_FRAMES];

    bool has_channel; /* the following are set */
    bool is_active;
    bool has_local;
    bool has_remote;
    uint64_t channel_id;
    weir_address local;
    weir_address remote;
    size_t handler_count; /* those on the loop, from the head on */
    weir__snapshot_handler handlers[WEIR__SNAPSHOT_HANDLERS];
} weir__snapshot;

/* On the thread that runs the loop, in a signal handler: no allocation, no lock, no backtrace.
 * `context` is that of the handler. */
void weir__snapshot_take(weir__snapshot *snapshot, weir_executor *loop, const void *context);

/* Any thread, after it: finds the frames. Forgets the channel if it is not known to be served. */
void weir__snapshot_unwind(weir__snapshot *snapshot);

/* The handler whose function is innermost in the stack. */
typedef struct weir__culprit {
    const weir__snapshot_handler *handler; /* NULL = none was found */
    const char *slot;                      /* "read", ...; "" = none was found */
} weir__culprit;

/* Any thread. May read the program's file. */
weir__culprit weir__snapshot_find_culprit(const weir__snapshot *snapshot);

/* As weir_channel_format. */
void weir__snapshot_format_channel(const weir__snapshot *snapshot, char *text, size_t size);

#endif
