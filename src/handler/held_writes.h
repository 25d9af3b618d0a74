/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes that a handler holds back, and the close that waits for them. They count against the
 * channel's marks (weir_ctx_hold).
 *
 *      first .......... flushed ......... end
 *      <-- may go out --><-- not yet -->
 */
#ifndef WEIR_HANDLER_HELD_WRITES_H
#define WEIR_HANDLER_HELD_WRITES_H

#include <weir/ctx.h>

typedef struct weir__held_write {
    struct weir__held_write *next;
    weir_msg *msg;
    weir_promise *done; /* kept */
    int64_t cost;
    int64_t due_ns; /* for the handler: when it may go out */
} weir__held_write;

typedef struct weir__held_writes {
    weir__held_write *first;
    weir__held_write **end;
    size_t count;
    size_t flushed; /* of these, from the front */
    int64_t cost;
    bool closes;              /* when all are gone, */
    weir_promise *close_done; /* kept */
} weir__held_writes;

void weir__held_writes_init(weir__held_writes *writes);

/* Takes: msg. Keeps: done. NULL if there is no memory: then the write has failed. */
weir__held_write *weir__held_writes_add(weir_ctx *ctx, weir__held_writes *writes, weir_msg *msg,
                                        weir_promise *done);

/* All of them are flushed now. */
void weir__held_writes_flush(weir__held_writes *writes);

/* The first one: passes it on; or takes it, with the references to message and promise. */
void weir__held_writes_pass(weir_ctx *ctx, weir__held_writes *writes);
weir_msg *weir__held_writes_take(weir_ctx *ctx, weir__held_writes *writes, weir_promise **ret_done);

/* Fails the first one; or all of them, and a close that waits is passed on. */
void weir__held_writes_fail_first(weir_ctx *ctx, weir__held_writes *writes, int err,
                                  const char *detail);
void weir__held_writes_fail(weir_ctx *ctx, weir__held_writes *writes, int err, const char *detail);

/* Closes, or remembers that until all are gone; all are flushed by it. Keeps: done. */
void weir__held_writes_close(weir_ctx *ctx, weir__held_writes *writes, weir_promise *done);

/* Passes on a close that nothing waits for any more. */
void weir__held_writes_settle(weir_ctx *ctx, weir__held_writes *writes);

#endif
