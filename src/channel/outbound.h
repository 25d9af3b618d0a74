/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbound queue of a channel: what was written and has not been sent.
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
 * Each message counts as the memory that it holds against the channel's marks: its size,
 * WEIR__OUTBOUND_COST, and what it keeps besides (weir__outbound_cost). It does so from its
 * submission, on whatever thread, until it leaves the queue.
 *
 * Whatever completes a promise or crosses a mark runs handlers and listeners, which may write,
 * flush and close. After a close the queue has nothing for a transport.
 */
#ifndef WEIR_CHANNEL_OUTBOUND_H
#define WEIR_CHANNEL_OUTBOUND_H

#include <stdatomic.h>
#include <sys/uio.h>

#include <weir/channel.h>

/* What a message costs besides its bytes: its entry in the queue, which is a node, the header of a
 * buffer, and the smallest block behind it. */
#define WEIR__OUTBOUND_COST 208

typedef struct weir__entry weir__entry;

typedef struct weir__outbound {
    weir__entry *first;
    weir__entry **unflushed; /* the link to the first that is not flushed */
    weir__entry **end;       /* the link that ends the list */

    /* Bytes that count: of the loop's own (only it writes), and of what is under way to it. */
    _Atomic int64_t local;
    _Atomic int64_t posted;

    /* Why it is not writable: bit 0 the marks, the others the user's reasons. */
    _Atomic uint32_t unwritable;

    int32_t cause; /* why the channel closes: what is not sent fails with it */
} weir__outbound;

/* ---- the channel's ---- */

void weir__outbound_init(weir__outbound *outbound);

/* Appends a message. A failure is the promise's. Takes: msg. Keeps: done. */
void weir__outbound_add(weir_channel *channel, weir_msg *msg, weir_promise *done);

/* All that is in the queue is flushed now; what was cancelled leaves it. */
void weir__outbound_flush(weir_channel *channel);

/* Fails what is flushed, what is not, or everything, the flushed ones first. */
void weir__outbound_fail_flushed(weir_channel *channel, int err, const char *detail);
void weir__outbound_fail_unflushed(weir_channel *channel, int err, const char *detail);
void weir__outbound_fail_all(weir_channel *channel, int err, const char *detail);

static inline bool weir__outbound_is_empty(const weir__outbound *outbound)
{
    return outbound->first == NULL;
}

/* Whether something waits to be sent. */
static inline bool weir__outbound_has_flushed(const weir__outbound *outbound)
{
    return outbound->unflushed != &outbound->first;
}

/* The loop: the bytes of all messages in the queue, of others than bytes what weir_msg_size says.
 */
int64_t weir__outbound_left(const weir_channel *channel);

/* ---- counting ---- */

/* The bytes that a message counts as. Memory of a buffer that is not used counts if there is more
 * of it than of the rest. */
int64_t weir__outbound_cost(const weir_msg *msg);

/*
 * For a message that will wait: a small composite, or a small view of a large block, becomes a
 * copy, so that it does not keep the blocks. Returns the copy, or the message itself. Takes: msg.
 */
weir_msg *weir__outbound_compact(weir_msg *msg);

/* Any thread: a write is under way to the loop. Fails with WEIR_EFULL beyond the channel's cap. */
int weir__outbound_reserve(weir_channel *channel, int64_t bytes);

/* The loop: it has come. Any thread: it will not come. */
void weir__outbound_unreserve(weir_channel *channel, int64_t bytes);
void weir__outbound_cancel_reserve(weir_channel *channel, int64_t bytes);

/* The loop: a handler holds back so many bytes more, or fewer. */
void weir__outbound_add_pending(weir_channel *channel, int64_t bytes);

/* The loop: whether a write of this cost is within the cap, 0 or WEIR_EFULL. What comes in the
 * place of something that was held back is (weir_write_pending). */
int weir__outbound_admit(weir_channel *channel, int64_t cost);

/* Any thread: the same for a handler elsewhere that holds it back. What it makes of it may be a
 * little longer, and must not be refused on its way: a part of the cap is left. */
bool weir__outbound_may_add_pending(const weir_channel *channel, int64_t bytes);

/* As weir__outbound_add_pending if something else comes in their place at once: nobody looks at the
 * marks.
 */
void weir__outbound_count(weir_channel *channel, int64_t bytes);

/* Any thread: all bytes that count. */
int64_t weir__outbound_bytes(const weir_channel *channel);

/* Any thread: sets or clears reasons; `writability` follows if that changes the answer. */
void weir__outbound_set_unwritable(weir_channel *channel, uint32_t reasons, bool on);

/* The marks have changed, or the bytes: looks at both. The loop. */
void weir__outbound_check_marks(weir_channel *channel);

static inline bool weir__outbound_is_writable(const weir__outbound *outbound)
{
    return atomic_load_explicit(&outbound->unwritable, memory_order_relaxed) == 0;
}

/* ---- a transport's ---- */

/* The first flushed message, borrowed; NULL if there is nothing to send. */
weir_msg *weir__outbound_current(weir_channel *channel);

/* The first flushed messages, borrowed, `count` at the most: returns how many. */
size_t weir__outbound_peek(weir_channel *channel, weir_msg **ret_msgs, size_t count);

/*
 * The bytes of the first flushed messages, as far as they are buffers and composites: at most
 * `count` vectors. Empty messages at the front are completed. Returns how many vectors; 0 if there
 * is nothing to send, or if the first is something else: weir__outbound_current says.
 */
size_t weir__outbound_gather(weir_channel *channel, struct iovec *ret_vectors, size_t count,
                             size_t *ret_bytes);

/*
 * So many bytes, from the front, have been sent: of buffers, composites, file ranges, and of what
 * goes with descriptors. Messages that are through leave the queue, and their promises succeed.
 */
void weir__outbound_advance(weir_channel *channel, size_t bytes);

/* The current message has been dealt with as a whole, or has failed alone. */
void weir__outbound_complete(weir_channel *channel, int err, const char *detail);

/*
 * Takes the current message, which is the caller's then; its place in the queue stays until
 * weir__outbound_complete, so that it can be delivered before its promise completes. NULL if there
 * is nothing to send.
 */
weir_msg *weir__outbound_take(weir_channel *channel);

#endif
