/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mailbox: work for an object, from any thread to the executor of that object. A call from
 * another thread becomes a mail, or a flag if it needs no memory.
 *
 *      any thread                     one word                          the owner's executor
 *      weir__mailbox_post   --->   [ newest mail | flags ]   --->   flags and mails, in order
 *      weir__mailbox_set    --->
 *
 * The mailbox is part of its owner, which has a reference count and an executor.
 *   - Order. Mails run in the order in which they were posted, whichever threads posted them. A
 *     flag runs where it was set: after the mails that were posted before, and before those that
 *     were posted after. Flags that are set between two mails run in one call, each of them once.
 *   - Exactly once. Every mail and every flag runs. Posting never fails: the bound of the
 *     executor's queue does not apply, and neither posting nor setting needs memory.
 *   - One runner. Nothing of a mailbox runs beside anything else of it. If the owner moves to
 *     another executor, what is left follows it. It moves on the thread of the executor it had.
 *   - The end. The last thread of an executor runs what is left in it. If the executor takes no
 *     more tasks, or its thread cannot be started, the global executor runs the mailbox instead,
 *     with an error as the status. If even that takes no task, for want of memory, the current
 *     thread does. A function that gets an error must not post or set again without end.
 *   - Lifetime. The mailbox retains its owner while anything is in it. The thread that posts has a
 *     reference to the owner, or is its executor's, until the call returns.
 *   - Tasks. What a thread posts to a mailbox runs before a task that it submits to the executor
 *     afterwards, unless the mailbox is held, or has a tail flag, or its owner moves, or another
 *     thread was interrupted while it posted the first mail to it. Tasks that were submitted before
 *     are not kept waiting for more than what was posted by then.
 *
 * Users: docs/internals/threads.md lists them. The functions are exported for libweir-http, and are
 * not part of the public API.
 */
#ifndef WEIR_EXECUTOR_MAILBOX_H
#define WEIR_EXECUTOR_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/executor.h>

/* An owner has flags of its own from 1 << 0 to 1 << 17. */
#define WEIR__MAILBOX_FLAGS ((UINT32_C(1) << 18) - 1)

typedef struct weir__mailbox weir__mailbox;
typedef struct weir__mail weir__mail;

/*
 * The owner's executor has got the mail, which may be freed or posted again from here on. `status`
 * is 0, or the error for which the executor cannot run it: then this is its last thread, or one
 * that replaces it.
 */
typedef void weir__mail_fn(weir__mailbox *box, weir__mail *mail, int status);

struct weir__mail {
    weir_queue_node node;
    weir__mail_fn *fn;
    uint32_t before; /* flags that were set before it, after the mail in front of it */
};

typedef struct weir__mailbox_type {
    const char *name; /* of the layer, for the log */

    /* Any thread: the owner's executor. It stays in memory as long as the owner, also when the
     * owner has moved on. NULL: the global one. */
    weir_executor *(*executor)(const weir__mailbox *box);

    /* Any thread. */
    void (*retain)(weir__mailbox *box);
    void (*release)(weir__mailbox *box);

    /* As weir__mail_fn, for flags. May be NULL if none is set. */
    void (*run)(weir__mailbox *box, uint32_t flags, int status);

    /* Flags that let I/O have its turn first if they are set while the mailbox runs, and nothing
     * else is. */
    uint32_t tail_flags;

    /* Flags that are no calls, but work that the owner leaves for later. */
    uint32_t own_flags;

    /* Nothing but the executor may run the mailbox until its thread has ended for good. While the
     * thread cannot be started the executor is asked again. */
    bool insists;
} weir__mailbox_type;

/*
 * Defines the type `name` of mailboxes that are the `member` of an `owner_type`, and `name`_owner,
 * which returns their owner. `its_executor`, `retain_it` and `release_it` are expressions about
 * `owner`; `run_it` is a function of the owner, the flags and the status.
 */
#define WEIR__MAILBOX_TYPE(name_, layer, owner_type, member, its_executor, retain_it, release_it,  \
                           run_it)                                                                 \
    WEIR__MAILBOX_TYPE_WITH(name_, layer, owner_type, member, its_executor, retain_it, release_it, \
                            run_it, .insists = false)

/* The same, with more members. */
#define WEIR__MAILBOX_TYPE_WITH(name_, layer, owner_type, member, its_executor, retain_it, \
                                release_it, run_it, ...)                                   \
    static owner_type *name_##_owner(const weir__mailbox *box)                             \
    {                                                                                      \
        return WEIR_CONTAINER_OF((uintptr_t)box, owner_type, member);                      \
    }                                                                                      \
    static weir_executor *name_##_executor(const weir__mailbox *box)                       \
    {                                                                                      \
        const owner_type *owner = name_##_owner(box);                                      \
                                                                                           \
        return its_executor;                                                               \
    }                                                                                      \
    static void name_##_retain(weir__mailbox *box)                                         \
    {                                                                                      \
        owner_type *owner = name_##_owner(box);                                            \
                                                                                           \
        (void)retain_it;                                                                   \
    }                                                                                      \
    static void name_##_release(weir__mailbox *box)                                        \
    {                                                                                      \
        owner_type *owner = name_##_owner(box);                                            \
                                                                                           \
        release_it;                                                                        \
    }                                                                                      \
    static void name_##_run(weir__mailbox *box, uint32_t flags, int status)                \
    {                                                                                      \
        run_it(name_##_owner(box), flags, status);                                         \
    }                                                                                      \
    static const weir__mailbox_type name_ = {                                              \
        .name = layer,                                                                     \
        .executor = name_##_executor,                                                      \
        .retain = name_##_retain,                                                          \
        .release = name_##_release,                                                        \
        .run = name_##_run,                                                                \
        __VA_ARGS__,                                                                       \
    }

struct weir__mailbox {
    _Atomic uint64_t word; /* mailbox.c; 0: empty */
    const weir__mailbox_type *type;
    weir_task task;

    /* The runner's: what it has taken and not run yet, the oldest mail and the flags that were set
     * after the newest. Other threads only look at it. */
    _Atomic uint64_t rest;
};

WEIR_API void weir__mailbox_init(weir__mailbox *box, const weir__mailbox_type *type);

/* Any thread. The mail is the mailbox's until its function is called. */
WEIR_API void weir__mailbox_post(weir__mailbox *box, weir__mail *mail);

/* Any thread. At least one flag. */
WEIR_API void weir__mailbox_set(weir__mailbox *box, uint32_t flags);

/* Any thread: removes `opposite` if it was set after the newest mail and has not run; sets `flag`
 * otherwise. */
void weir__mailbox_toggle(weir__mailbox *box, uint32_t flag, uint32_t opposite);

/* Any thread: keeps an empty mailbox from running until weir__mailbox_resume. False if it is not
 * empty: then there is nothing to resume. */
WEIR_API bool weir__mailbox_hold(weir__mailbox *box);
WEIR_API void weir__mailbox_resume(weir__mailbox *box);

/* In a function of the mailbox, or while the caller holds it: the mail runs before everything else
 * that is in the mailbox. */
void weir__mailbox_post_first(weir__mailbox *box, weir__mail *mail);

/*
 * Any thread: true if nothing is in the mailbox, and nothing of it runs. A call on the executor
 * that comes after a call on another thread, by any chain of events, finds it not empty while that
 * call has not run: it has to be posted, too.
 */
static inline bool weir__mailbox_is_empty(const weir__mailbox *box)
{
    return atomic_load_explicit(&box->word, memory_order_acquire) == 0;
}

/* The same without the owner's own flags: true if a mail or another flag waits to be run, or if the
 * mailbox is held. */
bool weir__mailbox_has_calls(const weir__mailbox *box);

#endif
