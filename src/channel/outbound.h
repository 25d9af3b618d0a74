/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbound queue of a channel: messages that were written and not sent.
 *
 *      first ........ unflushed ........ end
 *      <-- flushed --><-- not flushed -->
 *
 * A write is appended, and can be cancelled until it is flushed. A transport sends the flushed
 * part, from the front:
 *
 *      while ((count = weir__outbound_gather(channel, vectors, IOV_MAX, &bytes)) > 0) {
 *          sent = send(vectors, count);
 *          weir__outbound_advance(channel, sent);
 *      }
 *
 * Each message counts against the channel's marks as the memory that it uses: its size,
 * WEIR__OUTBOUND_COST, and what it keeps alive besides (weir__outbound_cost). It counts from its
 * submission, on any thread, until it leaves the queue.
 *
 * A function that completes a promise or crosses a mark runs handlers and listeners, which may
 * write, flush and close. After a close the transport finds the queue empty.
 */
#ifndef WEIR_CHANNEL_OUTBOUND_H
#define WEIR_CHANNEL_OUTBOUND_H

#include <stdatomic.h>
#include <sys/uio.h>

#include <weir/buf.h>
#include <weir/channel.h>

/* The cost of a message besides its bytes: its entry, which is a node, the header of a buffer
 * and the smallest block behind it. */
#define WEIR__OUTBOUND_COST 208

typedef struct weir__entry weir__entry;

struct weir__entry {
    weir__entry *next;
    weir_msg *msg; /* NULL = taken by the transport */
    weir_promise *done;
    int64_t cost; /* against the marks */
    int64_t size; /* bytes: for the statistics */
};

typedef struct weir__outbound {
    weir__entry *first;
    weir__entry **unflushed; /* the link to the first unflushed entry */
    weir__entry **end;       /* the last link */

    /* Bytes that count: of the loop, which alone writes `local`; of writes posted to it. */
    _Atomic int64_t local;
    _Atomic int64_t posted;
#ifndef NDEBUG
    int64_t unflushed_ns; /* when the first unflushed message was written */
#endif
} weir__outbound;

/* ---- for the channel ---- */

void weir__outbound_init(weir__outbound *outbound);

/* Appends a message. `done` reports a failure. Takes: msg. Keeps: done. */
void weir__outbound_add(weir_channel *channel, weir_msg *msg, weir_promise *done);

/* weir__outbound_flush (channel.h) if there are promises among the unflushed entries. */
void weir__outbound_flush_promises(weir_channel *channel);

/* Fails the flushed entries, the unflushed ones, or all, flushed first. */
void weir__outbound_fail_flushed(weir_channel *channel, int err, const char *detail);
void weir__outbound_fail_unflushed(weir_channel *channel, int err, const char *detail);
void weir__outbound_fail_all(weir_channel *channel, int err, const char *detail);

static inline bool weir__outbound_is_empty(const weir__outbound *outbound)
{
    return outbound->first == NULL;
}

/*
 * Debug builds: warns if a message was written a second ago or earlier and not flushed since, which
 * a handler has forgotten. Called when input has been handled and when the channel closes: a flush
 * that is consolidated, or made by a timer, has come by then.
 */
#ifdef NDEBUG
static inline void weir__outbound_find_forgotten(weir_channel *channel)
{
    (void)channel;
}
#else
void weir__outbound_find_forgotten(weir_channel *channel);
#endif

/* True if something waits to be sent. */
static inline bool weir__outbound_has_flushed(const weir__outbound *outbound)
{
    return outbound->unflushed != &outbound->first;
}

/* The loop: true if a message in the queue has a promise. */
bool weir__outbound_has_promises(const weir_channel *channel);

/* The loop: the bytes of all messages in the queue, by weir_msg_size for other messages. */
int64_t weir__outbound_left(const weir_channel *channel);

/* ---- counting ---- */

/* The bytes that a message counts as. Unused capacity of a buffer counts if it is larger than
 * the rest. */
int64_t weir__outbound_cost(const weir_msg *msg);

/*
 * For a message that has to wait: a small composite, or a small view of a large block, is copied,
 * so that it does not keep the blocks alive. Returns the copy, or the message itself. Takes: msg.
 */
weir_msg *weir__outbound_compact(weir_msg *msg);

/* Any thread: counts a write that is being posted to the loop. Fails with WEIR_EFULL above the
 * cap. */
int weir__outbound_reserve(weir_channel *channel, int64_t bytes);

/* The posted write has reached the loop; any thread: it will not reach it. */
void weir__outbound_unreserve(weir_channel *channel, int64_t bytes);
void weir__outbound_cancel_reserve(weir_channel *channel, int64_t bytes);

/* Adds to the pending bytes of handlers. */
void weir__outbound_add_pending(weir_channel *channel, int64_t bytes);

/* The loop: 0 if a write of this cost is within the cap, or WEIR_EFULL. A message that was
 * counted as pending bytes is (weir_write_pending). */
int weir__outbound_admit(weir_channel *channel, int64_t cost);

/* Any thread: the same for a handler behind the border that queues the message. What it makes of it
 * may be a little longer and must not be rejected later, so a part of the cap is left free. */
bool weir__outbound_may_add_pending(const weir_channel *channel, int64_t bytes);

/* weir__outbound_add_pending without a check of the marks, if the bytes are replaced at once. */
void weir__outbound_count(weir_channel *channel, int64_t bytes);

/* Any thread: all bytes that count. */
int64_t weir__outbound_bytes(const weir_channel *channel);

/* Any thread: sets or clears reasons. Fires `writability` if that changes the result. */
void weir__outbound_set_unwritable(weir_channel *channel, uint32_t reasons, bool on);

/* The loop: compares the bytes with the marks, after either has changed. */
void weir__outbound_check_marks(weir_channel *channel);

/* ---- for transports ---- */

/*
 * weir__outbound_gather for the usual flush: true if the flushed part, which is not empty, is a
 * single buffer with bytes. For transports that take no message (weir__outbound_take).
 */
static inline bool weir__outbound_fast_gather(const weir__outbound *outbound,
                                              struct iovec *ret_vector)
{
    const weir__entry *entry = outbound->first;
    const weir_buf *buf = (const weir_buf *)(const void *)entry->msg;

    if (outbound->unflushed != &entry->next || !weir_msg_is(entry->msg, &weir_buf_type))
        return false;
    ret_vector->iov_base = (void *)(uintptr_t)weir_buf_bytes(buf); /* only to be read */
    ret_vector->iov_len = weir_buf_readable(buf);
    return ret_vector->iov_len > 0;
}

/* The first flushed message, borrowed; NULL if there is nothing to send. */
weir_msg *weir__outbound_current(weir_channel *channel);

/* Stores the first flushed messages, borrowed, at most `count`. Returns their number. */
size_t weir__outbound_peek(weir_channel *channel, weir_msg **ret_msgs, size_t count);

/*
 * The bytes of the first flushed messages, as far as they are buffers and composites, in at most
 * `count` vectors. Completes empty messages at the front. Returns the number of vectors; 0 if there
 * is nothing to send, or if the first message is of another type: see weir__outbound_current.
 */
size_t weir__outbound_gather(weir_channel *channel, struct iovec *ret_vectors, size_t count,
                             size_t *ret_bytes);

/*
 * Removes `bytes` sent bytes from the front: of buffers, composites, file ranges and the bytes of
 * descriptors. Messages that are sent completely leave the queue, and their promises succeed.
 */
void weir__outbound_advance(weir_channel *channel, size_t bytes);

/* The same, if these are all bytes of the first message. */
void weir__outbound_fast_advance(weir_channel *channel, size_t bytes);

/* True if the first message, which there is, is a buffer of this number of bytes. */
static inline bool weir__outbound_first_has(const weir__outbound *outbound, size_t bytes)
{
    const weir_msg *msg = outbound->first->msg;

    return weir_msg_is(msg, &weir_buf_type) &&
           weir_buf_readable((const weir_buf *)(const void *)msg) == bytes;
}

/* Removes the current message as a whole: sent, or failed with `err`. */
void weir__outbound_complete(weir_channel *channel, int err, const char *detail);

/*
 * Takes the current message. Its entry stays until weir__outbound_complete, so that the message can
 * be delivered before its promise completes. NULL if there is nothing to send.
 */
weir_msg *weir__outbound_take(weir_channel *channel);

#endif
