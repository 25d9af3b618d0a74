/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context: a handler's position in a pipeline. One allocation holds the context, the handler's
 * state, and a name if it differs from the table's:
 *
 *      weir_ctx | state | name
 *
 * `mask` has a bit for each slot that may be called now: none before `added` and after the removal,
 * so the search for the next handler tests nothing else. Marks share the word.
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

    /* Of head_tail, besides: a handler holds back messages while auto-read is off. */
    WEIR__BUFFERS_READS = 1 << 19,

    /* Marks. */
    WEIR__CTX_CROSSES = 1 << 23,    /* on the loop: the border is to be set in front of it */
    WEIR__CTX_REMOTE = 1 << 24,     /* behind the border: border.h */
    WEIR__CTX_NAME_SPACE = 1 << 28, /* the allocation has space for a name */
    WEIR__CTX_NAMED = 1 << 25,      /* the space holds a name */
    WEIR__CTX_ADDED = 1 << 26,      /* `added` has been called or is running */
    WEIR__CTX_REPLACED = 1 << 29,   /* replaced: `prev` of its neighbour skips it */
    WEIR__CTX_REMOVED = 1 << 27,    /* removed; unlinked and freed by a later task */
    WEIR__CTX_BORDER = 1 << 30,     /* stands for the other side of the border */
};

struct weir_ctx {
    weir_ctx *prev;
    weir_ctx *next;
    weir_channel *channel;
    const weir_handler *handler;
    uint32_t mask;
    union {
        _Atomic uint32_t refs; /* the pipeline's and those of weir_ctx_retain, and flags */
        uint32_t slots;        /* of head_tail: see struct weir_pipeline */
    };
};

/* Flags in `refs`. The executor behind the border sets the last two for the loop. */
#define WEIR__CTX_OUT (1u << 31)    /* the handler is removed */
#define WEIR__CTX_GONE (1u << 30)   /* the executor does not touch the context any more */
#define WEIR__CTX_LEAVES (1u << 29) /* the handler asks for its removal */
#define WEIR__CTX_REFS (WEIR__CTX_LEAVES - 1)

struct weir__pending_bytes;

/* The slots of a table. */
uint32_t weir__handler_mask(const weir_handler *handler);

/*
 * Creates an unlinked context and inits its state. `name_size` is the space for a name, with its 0.
 * Fails with -ENOMEM, or the error of `init`.
 */
int weir__ctx_create(weir_channel *channel, const weir_handler *handler, const void *options,
                     size_t name_size, weir_ctx **ret_ctx);

/* Sets the name. The context must have space for it. */
void weir__ctx_set_name(weir_ctx *ctx, const char *name);

/* Deinits the state of an unlinked context and releases the pipeline's reference. Any thread. */
void weir__ctx_destroy(weir_ctx *ctx);

/* True if offloaded work has not returned: the handler's state must stay valid. Call it on the
 * handler's executor. */
bool weir__ctx_has_offloads(const weir_ctx *ctx);

/*
 * Makes weir_ctx_is_removed true, on the handler's executor. A count of 1 is the pipeline's own
 * reference, and only this executor could add one to it, so no read-modify-write is needed then:
 * "context" in src/base/refcount.h. Acquire: the store ends the release sequence of those that have
 * released theirs, and unref must come after what they did. Release: a thread that sees the flag
 * sees what the executor did before the removal.
 */
static inline void weir__ctx_set_out(weir_ctx *ctx)
{
    if (atomic_load_explicit(&ctx->refs, memory_order_acquire) == 1)
        atomic_store_explicit(&ctx->refs, 1 | WEIR__CTX_OUT, memory_order_release);
    else
        atomic_fetch_or_explicit(&ctx->refs, WEIR__CTX_OUT, memory_order_release);
}

/* Stops the timers of a context; of all contexts on the loop. */
void weir__ctx_stop_timers(weir_ctx *ctx);
void weir__channel_stop_timers(weir_channel *channel);

/*
 * A context leaves the loop: its timers, stopped, are added to `taken`. Another executor starts
 * those that were running, with the time that was left, and adds all to `timers`.
 */
void weir__ctx_take_timers(weir_ctx *ctx, weir_executor *executor, weir_timer **taken);
void weir__ctx_resume_timers(weir_timer *taken, weir_timer **timers);

/* Subtracts the pending bytes that the handler has not. */
void weir__ctx_clear_pending_bytes(weir_ctx *ctx);

/* The same for the counters of pending bytes; the bytes still count. */
void weir__ctx_take_pending_bytes(weir_ctx *ctx, struct weir__pending_bytes **taken);
void weir__ctx_join_pending_bytes(struct weir__pending_bytes *taken,
                                  struct weir__pending_bytes **counters);

/*
 * A state whose size is a multiple of 16 may need an alignment of 16; others need not pay for it.
 */
#define WEIR__CTX_ALIGNED_STATE ((sizeof(weir_ctx) + 15) / 16 * 16)

static inline size_t weir__ctx_state_offset(const weir_handler *handler)
{
    return handler->state_size % 16 == 0 ? WEIR__CTX_ALIGNED_STATE : sizeof(weir_ctx);
}

/* NULL if the handler has no state. */
static inline void *weir__ctx_state(weir_ctx *ctx)
{
    size_t size = ctx->handler->state_size;

    if (size % 16 != 0)
        return (char *)ctx + sizeof(weir_ctx);
    if (__builtin_expect(size == 0, 0))
        return NULL;
    return (char *)ctx + WEIR__CTX_ALIGNED_STATE;
}

/* weir_ctx_is_removed, without a call in the usual case: not removed, on the loop. */
static inline bool weir__ctx_is_removed(const weir_ctx *ctx)
{
    return (ctx->mask & (WEIR__CTX_REMOVED | WEIR__CTX_REMOTE)) != 0 && weir_ctx_is_removed(ctx);
}

/* True if this thread runs the handler's slots. */
bool weir__ctx_in_executor(const weir_ctx *ctx);

#endif
