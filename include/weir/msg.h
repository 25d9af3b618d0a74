/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/msg.h - messages: the base type of everything that passes through a pipeline.
 *
 * A message has a type and a reference count. Passing a message on transfers the caller's
 * reference, on success and on failure: a holder passes its reference on or releases it, exactly
 * once. A message type is a const table and a struct that begins with a weir_msg:
 *
 *      struct greeting { weir_msg msg; char name[32]; };
 *      static const weir_msg_type greeting_type = {.name = "greeting", .destroy = free_greeting};
 *      ... weir_msg_init(&greeting->msg, &greeting_type);
 *
 * The address of the table identifies the type: weir_msg_is(msg, &greeting_type).
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
    /* Frees the message; called on any thread when the last reference is released. */
    void (*destroy)(weir_msg *msg);
    /* The number of bytes that it counts for high marks and limits; NULL = 8. */
    size_t (*size)(const weir_msg *msg);
    /* Called by weir_msg_touch, for leak reports. NULL = ignored. */
    void (*touch)(weir_msg *msg, const char *where);
    /* Creates a message for another receiver, with the unread or unsent rest and the same memory.
     * NULL = the message is immutable: it is retained. */
    int (*share)(weir_msg *msg, weir_msg **ret_share);
    void *reserved[3];
} weir_msg_type;

struct weir_msg {
    const weir_msg_type *type; /* all members are private */
    uint32_t refs;
    uint32_t flags; /* for the type */
};

/* The `refs` of a static message, which is never freed: it is not counted, so that the threads that
 * share it do not contend. */
#define WEIR_MSG_STATIC UINT32_MAX

/*
 * Initializes a message with one reference, the caller's.
 * Thread: any.
 */
static inline void weir_msg_init(weir_msg *msg, const weir_msg_type *type)
{
    msg->type = type;
    msg->flags = 0;
    __atomic_store_n(&msg->refs, 1u, __ATOMIC_RELAXED);
}

/*
 * True if the message has the given type.
 * Thread: any.
 */
static inline bool weir_msg_is(const weir_msg *msg, const weir_msg_type *type)
{
    return msg->type == type;
}

/*
 * Retains a reference. The message must be held meanwhile, by a reference of the caller or of
 * another thread: several threads may retain at once while one reference is held.
 * Thread: any.
 */
static inline weir_msg *weir_msg_retain(weir_msg *msg)
{
    uint32_t before = __atomic_load_n(&msg->refs, __ATOMIC_RELAXED);

    /* Relaxed: passing the pointer to the new holder orders the rest. */
    if (before != WEIR_MSG_STATIC)
        before = __atomic_fetch_add(&msg->refs, 1u, __ATOMIC_RELAXED);
    assert(before > 0);
    (void)before;
    return msg;
}

/*
 * Releases a reference; the last one frees the message. NULL is ignored. The release of a sole
 * owner executes no locked instruction.
 * Thread: any.  Takes: msg.
 */
static inline void weir_msg_release(weir_msg *msg)
{
    uint32_t refs;

    if (msg == NULL)
        return;
    /* A holder that releases and reads 1 has the only reference: src/base/refcount.h. */
    refs = __atomic_load_n(&msg->refs, __ATOMIC_ACQUIRE);
    assert(refs > 0); /* 0 after the message was freed */
    if (__builtin_expect(refs == 1, 1))
        __atomic_store_n(&msg->refs, 0u, __ATOMIC_RELAXED); /* for the assertion above */
    else if (refs == WEIR_MSG_STATIC)
        return;
    else if (__atomic_fetch_sub(&msg->refs, 1u, __ATOMIC_ACQ_REL) != 1)
        return;
    msg->type->destroy(msg);
}

/*
 * The current number of references, for assertions and logs.
 * Thread: any.
 */
static inline uint32_t weir_msg_refs(const weir_msg *msg)
{
    return __atomic_load_n(&msg->refs, __ATOMIC_RELAXED);
}

/*
 * The number of bytes that the message counts for high marks and limits.
 * Thread: its holder's.
 */
static inline size_t weir_msg_size(const weir_msg *msg)
{
    return msg->type->size != NULL ? msg->type->size(msg) : 8;
}

/*
 * Records that the message passed `where`, a string literal, if it is watched for leaks.
 * Thread: its holder's.
 */
WEIR_API void weir_msg_touch(weir_msg *msg, const char *where);

/*
 * Creates a message for another receiver without copying. Reading or sending one does not affect
 * the other. Bytes are shared as a read-only view. A message whose type has no `share` is immutable
 * and is retained instead.
 * Thread: its holder's.  Keeps: msg.  Gives: ret_share.  Fails: -ENOMEM, and as the type says.
 */
WEIR_API WEIR_MUST_USE int weir_msg_share(weir_msg *msg, weir_msg **ret_share);

#ifdef __cplusplus
}
#endif

#endif
