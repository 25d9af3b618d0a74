/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler's place in a pipeline: one allocation for the context, the handler's state, and a name
 * if it is not the table's.
 *
 *      [ elsewhere ] weir_ctx | state | name          elsewhere: only if it runs on another
 * executor
 *
 * `mask` has a bit for each slot that events may be brought to now: none before `added` and after
 * removal, so that looking for the next handler needs no other question. Marks share the word.
 */
#ifndef WEIR_CHANNEL_CTX_H
#define WEIR_CHANNEL_CTX_H

#include <assert.h>
#include <stdatomic.h>

#include <weir/handler.h>

/* The slots of a weir_handler, as bits of a mask. */
enum {
    WEIR__REGISTERED = 1 << 0,
    WEIR__UNREGISTERED = 1 << 1,
    WEIR__ACTIVE = 1 << 2,
    WEIR__INACTIVE = 1 << 3,
    WEIR__READ = 1 << 4,
    WEIR__READ_COMPLETE = 1 << 5,
    WEIR__EVENT = 1 << 6,
    WEIR__WRITABILITY = 1 << 7,
    WEIR__ERROR = 1 << 8,
    WEIR__DRAINING = 1 << 9,
    WEIR__BIND = 1 << 10,
    WEIR__CONNECT = 1 << 11,
    WEIR__DISCONNECT = 1 << 12,
    WEIR__CLOSE = 1 << 13,
    WEIR__DEREGISTER = 1 << 14,
    WEIR__REQUEST_READ = 1 << 15,
    WEIR__WRITE = 1 << 16,
    WEIR__FLUSH = 1 << 17,
    WEIR__SHUTDOWN_OUTPUT = 1 << 18,
    WEIR__SLOTS = (1 << 19) - 1,

    /* Of a pipeline's ends, besides: some handler keeps messages while auto-read is off. */
    WEIR__BUFFERS_READS = 1 << 19,

    /* Marks. */
    WEIR__CTX_REMOTE = 1 << 24,     /* runs on another executor: hop.h */
    WEIR__CTX_NAME_SPACE = 1 << 28, /* for a name of its own, behind the state */
    WEIR__CTX_NAMED = 1 << 25,      /* has one */
    WEIR__CTX_ADDED = 1 << 26,      /* `added` has been called, or is being */
    WEIR__CTX_REPLACED = 1 << 29,   /* replaced: the way back goes past it */
    WEIR__CTX_REMOVED = 1 << 27, /* out of the pipeline; unlinked when nothing uses it any more */
};

struct weir_ctx {
    weir_ctx *prev;
    weir_ctx *next;
    weir_channel *channel;
    const weir_handler *handler;
    uint32_t mask;
    union {
        _Atomic uint32_t refs; /* the pipeline's and those of weir_ctx_retain; WEIR__CTX_OUT */
        uint32_t slots;        /* of head_tail: see struct weir_pipeline */
    };
};

#define WEIR__CTX_OUT (1u << 31) /* set in `refs` when the handler is removed */

/* Which slots a table has. */
uint32_t weir__handler_mask(const weir_handler *handler);

/*
 * Makes a context, linked to nothing, and inits its state; with room for a name of its own, its 0
 * included. `group` is where it runs, NULL on the channel's loop. Fails with -ENOMEM, or as `init`
 * does.
 */
int weir__ctx_create(weir_channel *channel, const weir_handler *handler, const void *options,
                     size_t name_size, weir_group *group, weir_ctx **ret_ctx);

/* Gives it a name of its own, for which it was made with room. */
void weir__ctx_set_name(weir_ctx *ctx, const char *name);

/* Deinits the state of an unlinked context and releases the pipeline's reference. Any thread. */
void weir__ctx_destroy(weir_ctx *ctx);

/* True if offloaded work has not returned: the handler's state must stay valid. Call it on the
 * handler's executor. */
bool weir__ctx_has_offloads(const weir_ctx *ctx);

/*
 * Makes weir_ctx_is_removed true, on the handler's executor. A count of 1 is the pipeline's own
 * reference, and only this executor could add one to it, so no read-modify-write is needed then.
 * Release: a thread that sees the flag sees what the executor did before the removal.
 */
static inline void weir__ctx_set_out(weir_ctx *ctx)
{
    if (atomic_load_explicit(&ctx->refs, memory_order_relaxed) == 1)
        atomic_store_explicit(&ctx->refs, 1 | WEIR__CTX_OUT, memory_order_release);
    else
        atomic_fetch_or_explicit(&ctx->refs, WEIR__CTX_OUT, memory_order_release);
}

/* Stops the timers of a context; of all of them that run on the loop. */
void weir__ctx_stop_timers(weir_ctx *ctx);
void weir__channel_stop_timers(weir_channel *channel);

/* What it holds back is not counted any more. */
void weir__ctx_clear_pending_bytes(weir_ctx *ctx);

/*
 * A state of 16 bytes, or a multiple, may hold what must lie on a boundary of 16; others can not,
 * and need not pay for it.
 */
#define WEIR__CTX_ALIGNED_STATE ((sizeof(weir_ctx) + 15) / 16 * 16)

static inline size_t weir__ctx_state_offset(const weir_handler *handler)
{
    return handler->state_size % 16 == 0 ? WEIR__CTX_ALIGNED_STATE : sizeof(weir_ctx);
}

/* NULL if the handler has none. */
static inline void *weir__ctx_state(weir_ctx *ctx)
{
    size_t size = ctx->handler->state_size;

    if (size % 16 != 0)
        return (char *)ctx + sizeof(weir_ctx);
    if (__builtin_expect(size == 0, 0))
        return NULL;
    return (char *)ctx + WEIR__CTX_ALIGNED_STATE;
}

/* weir_ctx_is_removed, without a call for a context that is there and runs on the loop. */
static inline bool weir__ctx_is_removed(const weir_ctx *ctx)
{
    return (ctx->mask & (WEIR__CTX_REMOVED | WEIR__CTX_REMOTE)) != 0 && weir_ctx_is_removed(ctx);
}

/* Whether this thread is the one that the context's slots run on. */
bool weir__ctx_in_executor(const weir_ctx *ctx);

#endif
