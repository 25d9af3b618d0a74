/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/descriptors.h - open descriptors that travel with some bytes, from one process to another.
 *
 * Written to a Unix channel, the peer gets descriptors of its own for the same open files; on other
 * channels the write fails with -EPROTOTYPE. A channel with .receive_descriptors reads what comes
 * with descriptors as such a message, and everything else as a weir_buf:
 *
 *      weir_descriptors *passed = weir_descriptors_of(msg);
 *      int file = passed != NULL ? weir_descriptors_take(passed, 0) : -1;
 *
 * Through a stream they come with the first of their bytes, to which the system may have joined
 * bytes that were written before.
 *
 * The descriptors are the message's, and are closed with it, unless they were taken.
 */
#ifndef WEIR_DESCRIPTORS_H
#define WEIR_DESCRIPTORS_H

#include <weir/buf.h>
#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_DESCRIPTORS_MAX 253 /* in one message: the system's limit */

typedef struct weir_descriptors weir_descriptors;

/*
 * What a message's type is if it carries descriptors: weir_descriptors_of asks.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_descriptors_type;

/*
 * Makes a message of some descriptors and the bytes that they go with: at least one, since a socket
 * passes nothing without. NULL = a single 0.
 * Thread: any.  Takes: bytes and the descriptors, on failure too.  Gives: ret_descriptors.  Fails:
 * -EBADF (no descriptor), -EINVAL (none, more than WEIR_DESCRIPTORS_MAX, no bytes), -ENOMEM.
 */
WEIR_API int weir_descriptors_create(weir_buf *bytes, const int *descriptors, size_t count,
                                     weir_descriptors **ret_descriptors);

/*
 * The same for one descriptor and a single 0.
 * Thread: any.  Takes: descriptor, on failure too.  Gives: ret_descriptors.  Fails: -EBADF,
 * -ENOMEM.
 */
static inline int weir_descriptors_create_one(int descriptor, weir_descriptors **ret_descriptors)
{
    return weir_descriptors_create(NULL, &descriptor, 1, ret_descriptors);
}

/*
 * The descriptors that a message carries, or NULL if it is something else.
 * Thread: any.
 */
static inline weir_descriptors *weir_descriptors_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_descriptors_type) ? (weir_descriptors *)(void *)msg
                                                                   : NULL;
}

/*
 * The message that it is.
 * Thread: any.
 */
static inline weir_msg *weir_descriptors_msg(weir_descriptors *descriptors)
{
    return (weir_msg *)(void *)descriptors; /* it begins with one */
}

/*
 * Gives a reference back; NULL is fine. With the last one, what was not taken is closed.
 * Thread: any.  Takes: descriptors.
 */
static inline void weir_descriptors_release(weir_descriptors *descriptors)
{
    if (descriptors != NULL)
        weir_msg_release(weir_descriptors_msg(descriptors));
}

/*
 * The bytes, borrowed.
 * Thread: its holder's.
 */
WEIR_API weir_buf *weir_descriptors_bytes(const weir_descriptors *descriptors);

/*
 * How many descriptors it came with.
 * Thread: its holder's.
 */
WEIR_API size_t weir_descriptors_count(const weir_descriptors *descriptors);

/*
 * One of them, borrowed.
 * Thread: its holder's.  Fails: -EBADF (it was taken), -EINVAL (there is none of that index).
 */
WEIR_API int weir_descriptors_at(const weir_descriptors *descriptors, size_t index);

/*
 * The same, and it is the caller's from now on.
 * Thread: its holder's.  Gives: the descriptor.  Fails: -EBADF, -EINVAL, -EBUSY (the message is
 * held by somebody else, too).
 */
WEIR_API int weir_descriptors_take(weir_descriptors *descriptors, size_t index);

#ifdef __cplusplus
}
#endif

#endif
