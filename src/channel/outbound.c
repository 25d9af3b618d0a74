/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbound queue.
 *
 * Invariants:
 *   - `local` is the sum of the costs of the entries and of the pending bytes of handlers on the
 *     loop. Only the loop writes it, so a write on the loop needs no locked instruction. `posted`
 *     is the sum of what is on its way to the loop; any thread writes it.
 *   - A promise completes after its entry has left the list, so a listener may write, flush and
 *     close.
 *   - From `first` to `unflushed` all promises are uncancellable.
 *
 * The marks. Any thread that finds more bytes than the high mark sets bit 0 of `unwritable`; the
 * loop clears it when it finds less than the low mark. A thread sets the bit before it posts its
 * write, and the loop checks again when the write arrives: so a bit that was set too late, by a
 * thread that was overtaken, does not stay.
 *
 * Not here: when to flush (writing.c), and how to send (the transport).
 */
#include "channel/outbound.h"

#include <errno.h>
#include <stdio.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/datagram.h>
#include <weir/descriptors.h>
#include <weir/error.h>
#include <weir/file_range.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "base/no_stack_protector.h"
#include "buffer/buf.h"
#include "channel/channel.h"
#include "channel/channel_stats.h"
#include "channel/last_sent.h"
#include "channel/node_pool.h"
#include "executor/executor.h"

#define OVER_MARK 1u /* the bit of `unwritable` for the marks */
#define SLACK_MIN 256
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A write is queued without further checks if the channel has none of these flags. */
#define CHECKED_FLAGS (WEIR__OUTPUT | WEIR__BUSY_FULL | WEIR__CHECKS_BUFFERS)

#define COPY_MAX 1024
#define COMPONENT_COST                                                                           \
    192                   /* its entry in the composite, the header of its buffer, a small block \
                           */
#define DATAGRAM_COST 384 /* the addresses, the header of its buffer, a small block */

_Static_assert(sizeof(weir__entry) <= WEIR__NODE_SIZE, "an entry is a node");

/* ---- counting ---- */

/* Unused capacity of a buffer. A view has none: weir__outbound_compact handles its block. */
static inline int64_t slack_of(const weir_buf *buf, int64_t size)
{
    int64_t slack = (int64_t)weir_buf_capacity(buf) - size;

    if (LIKELY(slack <= SLACK_MIN))
        return 0;
    return slack > size && weir__buf_kind(buf) == WEIR__BUF_POOLED ? slack : 0;
}

/* The cost of buffers that other messages keep alive. */
static __attribute__((noinline)) int64_t extra_cost(const weir_msg *msg)
{
    weir_msg *any = (weir_msg *)(uintptr_t)msg; /* only to be read */
    const weir_composite *composite = weir_composite_of(any);
    const weir_datagram *datagram = weir_datagram_of(any);

    if (composite != NULL)
        return (int64_t)weir_composite_count(composite) * COMPONENT_COST;
    return datagram != NULL ? DATAGRAM_COST : 0;
}

/* Most messages are buffers, which need no call for their size. */
static inline int64_t size_of(const weir_msg *msg)
{
    return weir_msg_is(msg, &weir_buf_type)
               ? (int64_t)weir_buf_readable((const weir_buf *)(const void *)msg)
               : (int64_t)weir_msg_size(msg);
}

static inline int64_t cost_of(const weir_msg *msg, int64_t size)
{
    return size + WEIR__OUTBOUND_COST +
           (weir_msg_is(msg, &weir_buf_type) ? slack_of((const weir_buf *)(const void *)msg, size)
                                             : extra_cost(msg));
}

int64_t weir__outbound_cost(const weir_msg *msg)
{
    return cost_of(msg, size_of(msg));
}

static bool is_sparse_view(const weir_buf *buf)
{
    return weir__buf_kind(buf) == WEIR__BUF_VIEW &&
           weir_buf_readable(buf) < weir_buf_capacity(buf->block) / 4;
}

weir_msg *weir__outbound_compact(weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg), *copy = NULL;
    weir_composite *composite = weir_composite_of(msg);
    int err = -EINVAL;

    if (weir_msg_size(msg) > COPY_MAX)
        return msg;
    if (buf != NULL && is_sparse_view(buf))
        err = weir_buf_create_from(weir_buf_bytes(buf), weir_buf_readable(buf), &copy);
    else if (composite != NULL)
        err = weir_composite_copy(composite, weir_composite_read_index(composite),
                                  weir_composite_readable(composite), &copy);
    if (err < 0)
        return msg;
    weir_msg_release(msg);
    return weir_buf_msg(copy);
}

/* Only the loop writes it, so no read-modify-write is needed. */
static void count_local(weir_channel *channel, int64_t bytes)
{
    _Atomic int64_t *local = &channel->outbound.local;

    atomic_store_explicit(local, atomic_load_explicit(local, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
}

/* Relaxed, as all of these: the bytes guard no other memory. */
static void count_posted(weir_channel *channel, int64_t bytes)
{
    atomic_fetch_add_explicit(&channel->outbound.posted, bytes, memory_order_relaxed);
}

int64_t weir__outbound_bytes(const weir_channel *channel)
{
    return atomic_load_explicit(&channel->outbound.local, memory_order_relaxed) +
           atomic_load_explicit(&channel->outbound.posted, memory_order_relaxed);
}

static int64_t cap_of(const weir_channel *channel)
{
    return atomic_load_explicit(&weir__channel_config(channel)->write_cap, memory_order_relaxed);
}

static int64_t limit_of(const weir_channel *channel)
{
    return atomic_load_explicit(&weir__channel_config(channel)->limit, memory_order_relaxed);
}

static int64_t high_mark_of(const weir_channel *channel)
{
    return atomic_load_explicit(&weir__channel_config(channel)->high_mark, memory_order_relaxed);
}

static int64_t low_mark_of(const weir_channel *channel)
{
    return atomic_load_explicit(&weir__channel_config(channel)->low_mark, memory_order_relaxed);
}

static bool change_reasons(weir_channel *channel, uint32_t reasons, bool on)
{
    _Atomic uint32_t *unwritable = &channel->unwritable;
    uint32_t before, after;

    if (on) {
        before = atomic_fetch_or_explicit(unwritable, reasons, memory_order_relaxed);
        after = before | reasons;
    } else {
        before = atomic_fetch_and_explicit(unwritable, ~reasons, memory_order_relaxed);
        after = before & ~reasons;
    }
    if (before == 0 && after != 0)
        weir__stats_count(channel, WEIR__STAT_UNWRITABLE, 1);
    return (before == 0) != (after == 0);
}

void weir__outbound_set_unwritable(weir_channel *channel, uint32_t reasons, bool on)
{
    if (change_reasons(channel, reasons, on))
        weir__channel_defer(channel, WEIR__DEFERRED_WRITABILITY);
}

static __attribute__((noinline)) void set_over_mark(weir_channel *channel, bool on)
{
    if (change_reasons(channel, OVER_MARK, on) && weir__channel_phase(channel) == WEIR__OPEN)
        weir_fire_writability(weir__channel_head_tail(channel));
}

static bool is_over_mark(const weir_channel *channel)
{
    return (atomic_load_explicit(&channel->unwritable, memory_order_relaxed) & OVER_MARK) != 0;
}

/* After the bytes have decreased. */
static inline void check_low_mark(weir_channel *channel)
{
    if (UNLIKELY(is_over_mark(channel)) && weir__outbound_bytes(channel) < low_mark_of(channel))
        set_over_mark(channel, false);
}

void weir__outbound_check_marks(weir_channel *channel)
{
    if (is_over_mark(channel))
        check_low_mark(channel);
    else if (weir__outbound_bytes(channel) > high_mark_of(channel))
        set_over_mark(channel, true);
}

int weir__outbound_reserve(weir_channel *channel, int64_t bytes)
{
    count_posted(channel, bytes);
    if (weir__outbound_bytes(channel) > cap_of(channel)) {
        weir__outbound_cancel_reserve(channel, bytes); /* other threads may have seen the bytes */
        return WEIR_EFULL;
    }
    if (weir__outbound_bytes(channel) > high_mark_of(channel))
        weir__outbound_set_unwritable(channel, OVER_MARK, true);
    return 0;
}

void weir__outbound_unreserve(weir_channel *channel, int64_t bytes)
{
    count_posted(channel, -bytes);
}

void weir__outbound_cancel_reserve(weir_channel *channel, int64_t bytes)
{
    count_posted(channel, -bytes);
    weir__channel_defer(channel, WEIR__DEFERRED_CHECK);
}

bool weir__outbound_may_add_pending(const weir_channel *channel, int64_t bytes)
{
    int64_t cap = cap_of(channel);

    return weir__outbound_bytes(channel) + bytes <= cap - cap / 32;
}

void weir__outbound_count(weir_channel *channel, int64_t bytes)
{
    if (weir__channel_in_loop(channel))
        count_local(channel, bytes);
    else
        count_posted(channel, bytes);
}

void weir__outbound_add_pending(weir_channel *channel, int64_t bytes)
{
    if (weir__channel_in_loop(channel)) {
        count_local(channel, bytes);
        weir__outbound_check_marks(channel);
    } else {
        count_posted(channel, bytes);
        weir__channel_defer(channel, WEIR__DEFERRED_CHECK);
    }
}

/* ---- entries ---- */

void weir__outbound_init(weir__outbound *outbound)
{
    outbound->unflushed = &outbound->first;
    outbound->end = &outbound->first;
}

static inline weir__entry *pop(weir__outbound *outbound)
{
    weir__entry *entry = outbound->first;

    outbound->first = entry->next;
    if (LIKELY(outbound->unflushed == &entry->next))
        outbound->unflushed = &outbound->first;
    if (LIKELY(outbound->end == &entry->next))
        outbound->end = &outbound->first;
    return entry;
}

static void report_write(weir_channel *channel, weir_promise *done, int err, const char *detail)
{
    if (err < 0)
        weir__stats_count(channel, WEIR__STAT_WRITES_FAILED, 1);
    weir__channel_report(channel, done, err, detail);
}

/* Frees an entry, which has left the list, and its message. Returns its promise. */
static inline weir_promise *discard(weir_channel *channel, weir__entry *entry)
{
    weir_promise *done = entry->done;

    count_local(channel, -entry->cost);
    weir_msg_release(entry->msg);
    weir__node_free(entry);
    return done;
}

static __attribute__((noinline)) void finish(weir_channel *channel, weir__entry *entry, int err,
                                             const char *detail)
{
    weir_promise *done = discard(channel, entry);

    if (done != NULL || err < 0)
        report_write(channel, done, err, detail);
    weir_promise_release(done);
}

int weir__outbound_admit(weir_channel *channel, int64_t cost)
{
    if (weir__channel_has(channel, WEIR__ADMITTED))
        channel->flags &=
            ~(uint32_t)WEIR__ADMITTED; /* only this write, not one that a handler adds */
    else if (weir__outbound_bytes(channel) + cost > cap_of(channel))
        return WEIR_EFULL;
    return 0;
}

static int check_write(weir_channel *channel, const weir_msg *msg, int64_t cost)
{
    int err;

    if (weir__channel_phase(channel) != WEIR__OPEN || weir__channel_has(channel, WEIR__OUTPUT))
        return WEIR_ECLOSED;
    err = weir__outbound_admit(channel, cost);
    if (err == 0 && channel->transport->admit != NULL)
        err = channel->transport->admit(channel, msg);
    return err;
}

/*
 * A write is lost, and its writer cannot know: what follows must not be sent, or the peer would get
 * a stream with a gap, nor an end of the stream, or it would take a part for the whole. The error
 * may reach the tail too late for that, behind the border.
 */
static bool stops_stream(const weir_channel *channel, const weir_promise *done, int err)
{
    return err == -ENOMEM && done == NULL && weir__channel_phase(channel) == WEIR__OPEN &&
           weir__channel_resets_for_loss(channel);
}

/* Names the message type that no encoder handled. */
static __attribute__((noinline, cold)) void reject_write(weir_channel *channel, weir_msg *msg,
                                                         weir_promise *done, int err)
{
    const char *name = msg->type->name;
    bool is_odd = err == -EPROTOTYPE, stops = stops_stream(channel, done, err);
    char detail[160];

    if (is_odd)
        (void)snprintf(detail, sizeof(detail),
                       "a %s channel cannot send a message of type %s: an encoder is missing",
                       channel->transport->name, name != NULL ? name : "(no name)");
    weir_msg_release(msg);
    if (stops) /* before the report: a handler that closes sends nothing */
        channel->flags |= WEIR__QUEUE_LOST;
    report_write(channel, done, err, is_odd ? detail : NULL);
    if (stops)
        weir__channel_begin_closing(channel, err);
}

#ifndef NDEBUG
#define FORGOTTEN_NS weir_seconds(1)

/* That of the loop's turn; 0 before the channel is registered. */
static int64_t now_of(const weir_channel *channel)
{
    const weir_executor *executor = weir__channel_executor(channel);

    return executor != NULL ? executor->turn.now_ns : 0;
}

void weir__outbound_find_forgotten(weir_channel *channel)
{
    static weir__log_limit limit;
    const weir__entry *entry = *channel->outbound.unflushed;
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];
    weir__log_note note;
    int64_t age_ns;

    if (entry == NULL) /* a channel that its loop has refused is not on that loop */
        return;
    age_ns = now_of(channel) - channel->outbound.unflushed_ns;
    if (age_ns >= FORGOTTEN_NS && weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("channel", weir__channel_log_name(channel, name),
                   "a message was written %lld ms ago and never flushed: call weir_flush, or "
                   "weir_write_and_flush%s",
                   (long long)(age_ns / 1000000), note.text);
}
#endif

static inline void append(weir_channel *channel, weir__entry *entry, weir_msg *msg,
                          weir_promise *done, int64_t size, int64_t cost)
{
    entry->next = NULL;
    entry->msg = msg;
    entry->done = done;
    entry->cost = cost;
    entry->size = size;
    *channel->outbound.end = entry;
    channel->outbound.end = &entry->next;
    count_local(channel, cost);
#ifndef NDEBUG
    if (*channel->outbound.unflushed == entry)
        channel->outbound.unflushed_ns = now_of(channel);
#endif
    if (UNLIKELY(done != NULL)) {
        channel->flags |= WEIR__UNFLUSHED_PROMISE;
        (void)weir_promise_retain(done);
    }
}

/* Any message, in any state of the channel. */
static __attribute__((noinline)) void add_checked(weir_channel *channel, weir_msg *msg,
                                                  weir_promise *done)
{
    int64_t size, cost;
    weir__entry *entry;
    int err;

    if (weir__channel_has(channel, WEIR__BUSY_FULL)) /* it has to wait */
        msg = weir__outbound_compact(msg);
    size = size_of(msg);
    cost = cost_of(msg, size);
    err = check_write(channel, msg, cost);
    entry = err == 0 ? weir__node_alloc() : NULL;
    if (entry == NULL) {
        reject_write(channel, msg, done, err < 0 ? err : -ENOMEM);
        return;
    }
    append(channel, entry, msg, done, size, cost);
    weir__outbound_check_marks(channel);
}

/* The usual write, a buffer while nothing limits it, makes no call. */
void weir__outbound_add(weir_channel *channel, weir_msg *msg, weir_promise *done)
{
    const weir_buf *buf = (const weir_buf *)(const void *)msg;
    weir__entry *entry = NULL;
    int64_t size = 0, cost = 0;

    if (weir__channel_phase(channel) == WEIR__OPEN && !weir__channel_has(channel, CHECKED_FLAGS) &&
        weir_msg_is(msg, &weir_buf_type)) {
        size = (int64_t)weir_buf_readable(buf);
        cost = size + WEIR__OUTBOUND_COST + slack_of(buf, size);
        if (weir__outbound_bytes(channel) + cost <= limit_of(channel))
            entry = weir__node_pop();
    }
    if (UNLIKELY(entry == NULL)) {
        add_checked(channel, msg, done);
        return;
    }
    channel->flags &= ~(uint32_t)WEIR__ADMITTED; /* as in weir__outbound_admit */
    append(channel, entry, msg, done, size, cost);
}

static bool is_cancelled(const weir__entry *entry)
{
    return entry->done != NULL && !weir_promise_set_uncancellable(entry->done);
}

/* The promise of a cancelled entry is complete already. */
void weir__outbound_flush_promises(weir_channel *channel)
{
    weir__outbound *outbound = &channel->outbound;
    weir__entry **link = outbound->unflushed, *entry;
    bool changed = false;

    while ((entry = *link) != NULL) {
        if (is_cancelled(entry)) {
            *link = entry->next;
            weir_promise_release(discard(channel, entry));
            changed = true;
        } else {
            link = &entry->next;
        }
    }
    outbound->unflushed = link;
    outbound->end = link;
    channel->flags &= ~(uint32_t)WEIR__UNFLUSHED_PROMISE;
    if (changed)
        weir__outbound_check_marks(channel);
}

void weir__outbound_fail_unflushed(weir_channel *channel, int err, const char *detail)
{
    weir__outbound *outbound = &channel->outbound;
    weir__entry *entry;

    while ((entry = *outbound->unflushed) != NULL) {
        *outbound->unflushed = entry->next;
        if (outbound->end == &entry->next)
            outbound->end = outbound->unflushed;
        finish(channel, entry, err, detail);
    }
    weir__outbound_check_marks(channel);
}

void weir__outbound_fail_flushed(weir_channel *channel, int err, const char *detail)
{
    weir__outbound *outbound = &channel->outbound;

    while (outbound->unflushed != &outbound->first)
        finish(channel, pop(outbound), err, detail);
    weir__outbound_check_marks(channel);
}

void weir__outbound_fail_all(weir_channel *channel, int err, const char *detail)
{
    while (channel->outbound.first != NULL)
        finish(channel, pop(&channel->outbound), err, detail);
    weir__outbound_check_marks(channel);
}

/* ---- sending ---- */

/* The first entry that a transport may send. */
static weir__entry *sendable(const weir_channel *channel)
{
    return weir__outbound_is_sendable(channel) ? channel->outbound.first : NULL;
}

weir_msg *weir__outbound_current(weir_channel *channel)
{
    weir__entry *entry = sendable(channel);

    return entry != NULL ? entry->msg : NULL;
}

size_t weir__outbound_peek(weir_channel *channel, weir_msg **ret_msgs, size_t count)
{
    weir__entry *entry = sendable(channel);
    size_t used = 0;

    for (; used < count && entry != NULL && entry != *channel->outbound.unflushed;
         entry = entry->next)
        ret_msgs[used++] = entry->msg;
    return used;
}

/* The bytes that are still to be sent; -1 if the message does not consist of bytes. */
static int64_t remaining(weir_msg *msg)
{
    if (msg == NULL)
        return -1;
    if (weir_buf_of(msg) != NULL)
        return (int64_t)weir_buf_readable(weir_buf_of(msg));
    if (weir_composite_of(msg) != NULL)
        return (int64_t)weir_composite_readable(weir_composite_of(msg));
    if (weir_file_range_of(msg) != NULL)
        return weir_file_range_remaining(weir_file_range_of(msg));
    if (weir_descriptors_of(msg) != NULL)
        return (int64_t)weir_buf_readable(weir_descriptors_bytes(weir_descriptors_of(msg)));
    return -1;
}

bool weir__outbound_has_promises(const weir_channel *channel)
{
    const weir__entry *entry = channel->outbound.first;

    while (entry != NULL && entry->done == NULL)
        entry = entry->next;
    return entry != NULL;
}

int64_t weir__outbound_left(const weir_channel *channel)
{
    int64_t bytes = 0, there;

    for (const weir__entry *entry = channel->outbound.first; entry != NULL; entry = entry->next) {
        there = remaining(entry->msg);
        if (there < 0 && entry->msg != NULL)
            there = (int64_t)weir_msg_size(entry->msg);
        bytes += there > 0 ? there : 0;
    }
    return bytes;
}

/* Skips at most remaining() bytes. */
static __attribute__((noinline)) void skip(weir_msg *msg, size_t bytes)
{
    if (bytes == 0)
        return;
    if (weir_buf_of(msg) != NULL)
        (void)weir_buf_skip(weir_buf_of(msg), bytes);
    else if (weir_composite_of(msg) != NULL)
        (void)weir_composite_skip(weir_composite_of(msg), bytes);
    else if (weir_descriptors_of(msg) != NULL)
        (void)weir_buf_skip(weir_descriptors_bytes(weir_descriptors_of(msg)), bytes);
    else
        (void)weir_file_range_advance(weir_file_range_of(msg), (int64_t)bytes);
}

/* Before the messages leave the queue. */
static __attribute__((noinline)) void note_sent(weir_channel *channel, size_t bytes)
{
    weir__entry *entry = sendable(channel);
    bool whole = entry != NULL && (uint64_t)remaining(entry->msg) <= bytes;

    if (whole || bytes > 0)
        weir__last_sent_write_down(channel, bytes, whole);
}

/* The entry is sent: it has left the queue. */
static inline void succeed(weir_channel *channel, weir__entry *entry, _Atomic uint64_t *counters)
{
    weir_promise *done;

    weir__counter_add(counters[WEIR__STAT_MESSAGES_SENT], 1);
    done = discard(channel, entry);
    if (UNLIKELY(done != NULL)) {
        weir__channel_report(channel, done, 0, NULL);
        weir_promise_release(done);
    }
}

static inline _Atomic uint64_t *count_sent(weir_channel *channel, size_t bytes)
{
    _Atomic uint64_t *counters = weir__stats_of(channel);

    weir__counter_add(counters[WEIR__STAT_BYTES_SENT], bytes);
    if (UNLIKELY(weir__channel_is(channel, WEIR__IS_WATCHED)))
        note_sent(channel, bytes);
    return counters;
}

void weir__outbound_advance(weir_channel *channel, size_t bytes)
{
    _Atomic uint64_t *counters = count_sent(channel, bytes);
    uint64_t left = bytes, there;

    while (weir__outbound_is_sendable(channel)) {
        there = (uint64_t)remaining(channel->outbound.first->msg); /* -1 is more than `left` */
        if (there > left) {
            skip(channel->outbound.first->msg, left);
            break;
        }
        left -= there;
        succeed(channel, pop(&channel->outbound), counters);
    }
    check_low_mark(channel);
}

void weir__outbound_fast_advance(weir_channel *channel, size_t bytes)
{
    _Atomic uint64_t *counters = count_sent(channel, bytes);

    succeed(channel, pop(&channel->outbound), counters);
    check_low_mark(channel);
}

static size_t bytes_of(const struct iovec *vectors, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += vectors[i].iov_len;
    return bytes;
}

struct gathering {
    struct iovec *vectors;
    size_t count; /* capacity of `vectors` */
    size_t used;
    size_t bytes;
};

static void gather_buf(struct gathering *gathering, const weir_buf *buf)
{
    size_t length = weir_buf_readable(buf);

    if (length == 0)
        return;
    gathering->vectors[gathering->used++] = (struct iovec){
        .iov_base = (void *)(uintptr_t)weir_buf_bytes(buf), /* only to be read */
        .iov_len = length,
    };
    gathering->bytes += length;
}

/* False if the vectors are full before the composite ends. */
static bool gather_composite(struct gathering *gathering, weir_composite *composite)
{
    struct iovec *vectors = gathering->vectors + gathering->used;
    size_t taken = weir_composite_iovecs(composite, vectors, gathering->count - gathering->used);
    size_t bytes = bytes_of(vectors, taken);

    gathering->used += taken;
    gathering->bytes += bytes;
    return bytes == weir_composite_readable(composite);
}

/* False if no further message can be gathered. */
static bool gather_one(struct gathering *gathering, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);
    weir_composite *composite;

    if (buf != NULL) {
        gather_buf(gathering, buf);
        return true;
    }
    composite = weir_composite_of(msg);
    return composite != NULL && gather_composite(gathering, composite);
}

static bool begins_with_nothing(const weir__entry *entry)
{
    return entry != NULL && remaining(entry->msg) == 0;
}

WEIR__NO_STACK_PROTECTOR size_t weir__outbound_gather(weir_channel *channel,
                                                      struct iovec *ret_vectors, size_t count,
                                                      size_t *ret_bytes)
{
    struct gathering gathering = {.vectors = ret_vectors, .count = count};
    weir__entry *entry = sendable(channel);

    if (begins_with_nothing(entry)) {
        weir__outbound_advance(channel, 0);
        entry = sendable(channel);
    }
    while (entry != NULL && entry != *channel->outbound.unflushed && gathering.used < count &&
           gather_one(&gathering, entry->msg))
        entry = entry->next;
    *ret_bytes = gathering.bytes;
    return gathering.used;
}

void weir__outbound_complete(weir_channel *channel, int err, const char *detail)
{
    weir__entry *entry = sendable(channel);
    size_t size;

    if (entry == NULL)
        return;
    size = (size_t)entry->size;
    if (err == 0)
        weir__stats_message(channel, WEIR__STAT_MESSAGES_SENT, size);
    else
        weir__stats_error(channel, err);
    finish(channel, pop(&channel->outbound), err, detail);
    if (err == 0)
        weir__last_sent_note(channel, size, true);
    weir__outbound_check_marks(channel);
}

weir_msg *weir__outbound_take(weir_channel *channel)
{
    weir__entry *entry = sendable(channel);
    weir_msg *msg = entry != NULL ? entry->msg : NULL;

    if (msg != NULL)
        entry->msg = NULL;
    return msg;
}
