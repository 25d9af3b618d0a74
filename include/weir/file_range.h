/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/file_range.h - a range of a file as a message, sent by sendfile without being read.
 *
 *      0          offset      position        offset + length
 *      |  file ...  |   sent    |     remaining     |  ... file
 *
 * A range counts as 0 bytes for high marks, because it uses no memory. It is checked against the
 * size of the file only when it is sent: the file may still grow.
 */
#ifndef WEIR_FILE_RANGE_H
#define WEIR_FILE_RANGE_H

#include <weir/error.h>
#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The range owns the descriptor and closes it with the last reference. */
#define WEIR_FILE_RANGE_CLOSE (1u << 0)

typedef struct weir_file_range weir_file_range;

/*
 * Type tag of file ranges; see weir_file_range_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_file_range_type;

/*
 * Creates a range of `length` bytes at `offset`. Without WEIR_FILE_RANGE_CLOSE the descriptor must
 * stay open as long as the range.
 * Thread: any.  Takes: descriptor, with WEIR_FILE_RANGE_CLOSE.  Gives: ret_range.  Fails: -EBADF (a
 * negative descriptor), -EINVAL (negative offset or length, end above INT64_MAX, unknown flags),
 * -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_file_range_create(int descriptor, int64_t offset, int64_t length,
                                                  uint32_t flags, weir_file_range **ret_range);

/*
 * Creates a range of `length` bytes at `offset` of the same file, whether or not `range` covers
 * them. It retains the range that owns the descriptor, so one descriptor serves any number of
 * ranges.
 * Thread: any, as long as `range` is not being sent.  Keeps: range.  Gives: ret_slice.  Fails:
 * -EINVAL (as weir_file_range_create), -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_file_range_slice(weir_file_range *range, int64_t offset,
                                                 int64_t length, weir_file_range **ret_slice);

/*
 * The message as a file range; NULL if it has another type.
 * Thread: any.
 */
static inline weir_file_range *weir_file_range_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_file_range_type) ? (weir_file_range *)(void *)msg
                                                                  : NULL;
}

/*
 * The file range as a message.
 * Thread: any.
 */
static inline weir_msg *weir_file_range_msg(weir_file_range *range)
{
    return (weir_msg *)(void *)range; /* its first member */
}

/*
 * Retains a reference.
 * Thread: any.
 */
static inline weir_file_range *weir_file_range_retain(weir_file_range *range)
{
    weir_msg_retain(weir_file_range_msg(range));
    return range;
}

/*
 * Releases a reference. NULL is ignored.
 * Thread: any.  Takes: range.
 */
static inline void weir_file_range_release(weir_file_range *range)
{
    if (range != NULL)
        weir_msg_release(weir_file_range_msg(range));
}

/*
 * The descriptor of the file.
 * Thread: its holder's.
 */
WEIR_API int weir_file_range_descriptor(const weir_file_range *range);

/*
 * The offset of the range in the file.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_offset(const weir_file_range *range);

/*
 * The length of the range, sent or not.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_length(const weir_file_range *range);

/*
 * The offset in the file of the next byte to send.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_position(const weir_file_range *range);

/*
 * The number of bytes sent.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_sent(const weir_file_range *range);

/*
 * The number of bytes left to send.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_remaining(const weir_file_range *range);

/*
 * Marks `length` bytes as sent.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (more than remaining), -EINVAL (negative).
 */
WEIR_API int weir_file_range_advance(weir_file_range *range, int64_t length);

#ifdef __cplusplus
}
#endif

#endif
