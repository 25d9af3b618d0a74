/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/msg.h - the first member of everything that travels through a pipeline.
 *
 * A message has a type and a reference count. A message passed on is given away, on success and on
 * failure alike: whoever holds it passes it on or releases it, once. A type of your own is a const
 * table and a struct that begins with a weir_msg:
 *
 *      struct greeting { weir_msg msg; char name[32]; };
 *      static const weir_msg_type greeting_type = {.name = "greeting", .destroy = free_greeting};
 *      ... weir_msg_init(&greeting->msg, &greeting_type);
 *
 * and is recognised by that table: weir_msg_is(msg, &greeting_type).
 */
#ifndef WEIR_MSG_H
#define WEIR_MSG_H

#include <assert.h>

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_msg weir_msg;

typedef struct weir_msg_type {
    const char *name;
    /* The last reference has gone: frees the message. Any thread. */
    void (*destroy)(weir_msg *msg);
    /* How many bytes it counts as, against water marks and limits; NULL = 8. */
    size_t (*size)(const weir_msg *msg);
    /* Somebody has seen it: for the trail of a message that is watched for leaks. NULL = ignored.
     */
    void (*touch)(weir_msg *msg, const char *where);
    /* The same for one more receiver: a message of its own with what has not been read or sent, and
     * the same memory behind it. NULL = nobody changes it: it is retained. */
    int (*share)(weir_msg *msg, weir_msg **ret_share);
    void *reserved[3];
} weir_msg_type;

struct weir_msg {
    const weir_msg_type *type; /* private, as all of it */
    uint32_t refs;
    uint32_t flags; /* the type's own */
};

/*
 * Begins the life of a message, with one reference: the caller's.
 * Thread: any.
 */
static inline void weir_msg_init(weir_msg *msg, const weir_msg_type *type)
{
    msg->type = type;
    msg->flags = 0;
    __atomic_store_n(&msg->refs, 1u, __ATOMIC_RELAXED);
}

/*
 * Whether it is of that type.
 * Thread: any.
 */
static inline bool weir_msg_is(const weir_msg *msg, const weir_msg_type *type)
{
    return msg->type == type;
}

/*
 * Takes one more reference. Only a holder may.
 * Thread: any.
 */
static inline weir_msg *weir_msg_retain(weir_msg *msg)
{
    uint32_t before = __atomic_fetch_add(&msg->refs, 1u, __ATOMIC_RELAXED);

    assert(before > 0 && before < UINT32_MAX);
    (void)before;
    return msg;
}

/*
 * Gives a reference back; the last one frees the message. NULL is fine. A sole owner's release
 * takes no locked instruction.
 * Thread: any.  Takes: msg.
 */
static inline void weir_msg_release(weir_msg *msg)
{
    uint32_t refs;

    if (msg == NULL)
        return;
    /* A count of 1 seen by a holder is its own; the argument is in src/base/refcount.h. */
    refs = __atomic_load_n(&msg->refs, __ATOMIC_ACQUIRE);
    assert(refs > 0); /* a message that was freed has none */
    if (refs == 1)
        __atomic_store_n(&msg->refs, 0u, __ATOMIC_RELAXED); /* so that the next assert sees it */
    else if (__atomic_fetch_sub(&msg->refs, 1u, __ATOMIC_ACQ_REL) != 1)
        return;
    msg->type->destroy(msg);
}

/*
 * How many references there are, as of now: for asserts and logs.
 * Thread: any.
 */
static inline uint32_t weir_msg_refs(const weir_msg *msg)
{
    return __atomic_load_n(&msg->refs, __ATOMIC_RELAXED);
}

/*
 * How many bytes it counts as.
 * Thread: its holder's.
 */
static inline size_t weir_msg_size(const weir_msg *msg)
{
    return msg->type->size != NULL ? msg->type->size(msg) : 8;
}

/*
 * Leaves a mark in the trail of a message that is watched for leaks; `where` is a literal.
 * Thread: its holder's.
 */
WEIR_API void weir_msg_touch(weir_msg *msg, const char *where);

/*
 * The same message for one more receiver, without copying: what is read or sent of the one stays in
 * the other. Bytes come as a read-only view. A type that has no `share` is one that nobody changes
 * once it is on its way: then it is the message itself, retained.
 * Thread: its holder's.  Keeps: msg.  Gives: ret_share.  Fails: -ENOMEM, and as the type says.
 */
WEIR_API int weir_msg_share(weir_msg *msg, weir_msg **ret_share);

#ifdef __cplusplus
}
#endif

#endif
