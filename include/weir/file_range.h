/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/file_range.h - a part of a file as a message: a transport sends it without reading it.
 *
 *      0          offset      position        offset + length
 *      |  file ...  |   sent    |     remaining     |  ... file
 *
 * It counts as 0 bytes against water marks, since it takes no memory. A range is not checked
 * against the file's size until it is sent: the file may still grow.
 */
#ifndef WEIR_FILE_RANGE_H
#define WEIR_FILE_RANGE_H

#include <weir/error.h>
#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The descriptor belongs to the range: it is closed with the last reference. */
#define WEIR_FILE_RANGE_CLOSE (1u << 0)

typedef struct weir_file_range weir_file_range;

/*
 * What a message's type is if it is a file range: weir_file_range_of asks.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_file_range_type;

/*
 * Makes a message of `length` bytes of a file from `offset` on. Without WEIR_FILE_RANGE_CLOSE the
 * descriptor must stay open until the range has gone.
 * Thread: any.  Takes: descriptor, with WEIR_FILE_RANGE_CLOSE.  Gives: ret_range.  Fails: -EBADF
 * (no descriptor), -EINVAL (negative, the end beyond INT64_MAX, unknown flags), -ENOMEM.
 */
WEIR_API int weir_file_range_create(int descriptor, int64_t offset, int64_t length, uint32_t flags,
                                    weir_file_range **ret_range);

/*
 * The file range that a message is, or NULL if it is something else.
 * Thread: any.
 */
static inline weir_file_range *weir_file_range_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_file_range_type) ? (weir_file_range *)(void *)msg
                                                                  : NULL;
}

/*
 * The file range as the message that it is.
 * Thread: any.
 */
static inline weir_msg *weir_file_range_msg(weir_file_range *range)
{
    return (weir_msg *)(void *)range; /* it begins with one */
}

/*
 * Takes one more reference.
 * Thread: any.
 */
static inline weir_file_range *weir_file_range_retain(weir_file_range *range)
{
    weir_msg_retain(weir_file_range_msg(range));
    return range;
}

/*
 * Gives a reference back; NULL is fine.
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
 * Where the range begins in the file.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_offset(const weir_file_range *range);

/*
 * How many bytes it has, sent or not.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_length(const weir_file_range *range);

/*
 * Where the next byte to be sent is in the file.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_position(const weir_file_range *range);

/*
 * How many bytes have been sent.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_sent(const weir_file_range *range);

/*
 * How many bytes have not been sent.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_file_range_remaining(const weir_file_range *range);

/*
 * Bytes have been sent.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (more than remain), -EINVAL (negative).
 */
WEIR_API int weir_file_range_advance(weir_file_range *range, int64_t length);

#ifdef __cplusplus
}
#endif

#endif
