/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/descriptors.h - passing open file descriptors between processes, over Unix channels.
 *
 * A message of some bytes and descriptors. Written to a Unix channel, the peer receives its own
 * descriptors of the same open files; on other channels the write fails with -EPROTOTYPE. A channel
 * with .receive_descriptors reads bytes that come with descriptors as such a message, and all
 * others as a weir_buf:
 *
 *      weir_descriptors *passed = weir_descriptors_of(msg);
 *      int file = passed != NULL ? weir_descriptors_take(passed, 0) : -1;
 *
 * On a stream the descriptors arrive with the first of their bytes, which the system may have
 * appended to bytes written earlier.
 *
 * The message owns the descriptors and closes those that were not taken.
 */
#ifndef WEIR_DESCRIPTORS_H
#define WEIR_DESCRIPTORS_H

#include <weir/buf.h>
#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_DESCRIPTORS_MAX 253 /* in one message: the limit of the kernel */

typedef struct weir_descriptors weir_descriptors;

/*
 * Type tag of messages with descriptors; see weir_descriptors_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_descriptors_type;

/*
 * Creates a message with descriptors and the bytes to send with them: at least one, because a
 * socket passes no descriptors without bytes. NULL bytes = a single 0.
 * Thread: any.  Takes: bytes and the descriptors, on failure too.  Gives: ret_descriptors.  Fails:
 * -EBADF (a negative descriptor), -EINVAL (count is 0 or above WEIR_DESCRIPTORS_MAX, empty bytes),
 * -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_descriptors_create(weir_buf *bytes, const int *descriptors,
                                                   size_t count,
                                                   weir_descriptors **ret_descriptors);

/*
 * Creates a message with one descriptor and a single 0 byte.
 * Thread: any.  Takes: descriptor, on failure too.  Gives: ret_descriptors.  Fails: -EBADF,
 * -ENOMEM.
 */
WEIR_MUST_USE static inline int weir_descriptors_create_one(int descriptor,
                                                            weir_descriptors **ret_descriptors)
{
    return weir_descriptors_create(NULL, &descriptor, 1, ret_descriptors);
}

/*
 * The message as weir_descriptors; NULL if it has another type.
 * Thread: any.
 */
static inline weir_descriptors *weir_descriptors_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_descriptors_type) ? (weir_descriptors *)(void *)msg
                                                                   : NULL;
}

/*
 * The descriptors as a message.
 * Thread: any.
 */
static inline weir_msg *weir_descriptors_msg(weir_descriptors *descriptors)
{
    return (weir_msg *)(void *)descriptors; /* its first member */
}

/*
 * Releases a reference; the last one closes the descriptors that were not taken. NULL is ignored.
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
 * The number of descriptors, taken or not.
 * Thread: its holder's.
 */
WEIR_API size_t weir_descriptors_count(const weir_descriptors *descriptors);

/*
 * A descriptor, borrowed.
 * Thread: its holder's.  Fails: -EBADF (already taken), -EINVAL (index out of range).
 */
WEIR_API int weir_descriptors_at(const weir_descriptors *descriptors, size_t index);

/*
 * Takes a descriptor: the caller owns it.
 * Thread: its holder's.  Gives: the descriptor.  Fails: -EBADF (already taken), -EINVAL (index out
 * of range), -EBUSY (the message has other holders or is shared).
 */
WEIR_API WEIR_MUST_USE int weir_descriptors_take(weir_descriptors *descriptors, size_t index);

#ifdef __cplusplus
}
#endif

#endif
