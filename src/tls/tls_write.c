/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain bytes become records when they are flushed: as many writes as fit into one buffer at a
 * time, until none is left. If there is more than one buffer, each is flushed before the next one
 * is sealed: the kernel finds the records in the cache, and their memory is used again.
 *
 *      writes:   [ 70 KB                    ] [a] [b] [c]
 *      records:  | 16 | 16 | 16 | 16 | 6 | abc |
 *
 * Large writes are sealed in place. Small neighbours are copied together first, since a record
 * costs more than the copy of a few bytes.
 *
 * A write counts against the marks until it has become records, which count from then on: so the
 * channel does not seem writable in between. Its promise completes with the buffer that holds its
 * last byte.
 */
#include <errno.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/error.h>
#include <weir/memory.h>

#include "base/no_stack_protector.h"
#include "tls/tls.h"

#define BATCH_MAX ((size_t)7 * WEIR__TLS_RECORD_MAX) /* with record overhead below 128 KiB */
#define LARGE 4096 /* from here on an extra record costs less than a copy */
#define VECTORS 16

/* What becomes one buffer: the first writes, the last of them possibly in part. */
struct batch {
    size_t plain;    /* bytes */
    size_t records;  /* upper bound */
    size_t whole;    /* complete writes */
    size_t rest;     /* bytes of the write after them */
    size_t promises; /* of the complete writes */
};

/* ---- promises ---- */

/* Several promises that complete with one buffer. */
struct sharers {
    weir_listener listener;
    size_t count;
    weir_promise *promises[]; /* references */
};

static void on_sent(weir_promise *promise, void *user_data)
{
    struct sharers *sharers = user_data;
    int err = weir_promise_result(promise);

    for (size_t i = 0; i < sharers->count; i++) {
        if (err < 0)
            (void)weir_promise_fail(sharers->promises[i], err, weir_promise_detail(promise));
        else
            (void)weir_promise_succeed(sharers->promises[i], NULL);
        weir_promise_release(sharers->promises[i]);
    }
    weir_memory_free(sharers);
}

/* There will be no buffer: they fail with all other writes. */
static void detach_sharers(struct sharers *sharers)
{
    while (sharers->count > 0)
        weir_promise_release(sharers->promises[--sharers->count]);
}

static int share_promise(weir_ctx *ctx, const struct batch *batch, const weir_pending_write *write,
                         weir_promise **ret_promise, struct sharers **ret_sharers)
{
    struct sharers *sharers =
        weir_memory_alloc(sizeof(*sharers) + batch->promises * sizeof(sharers->promises[0]));
    int err;

    if (sharers == NULL)
        return -ENOMEM;
    err = weir_promise_create(weir_ctx_executor(ctx), ret_promise);
    if (err < 0) {
        weir_memory_free(sharers);
        return err;
    }
    sharers->listener = (weir_listener){.fn = on_sent, .user_data = sharers};
    sharers->count = 0;
    for (; sharers->count < batch->promises; write = write->next)
        if (write->done != NULL)
            sharers->promises[sharers->count++] = weir_promise_retain(write->done);
    weir_promise_listen(*ret_promise, &sharers->listener);
    *ret_sharers = sharers;
    return 0;
}

/* The promise that completes with a buffer, to be released by the caller; NULL if there is none.
 * And the promises that share it; NULL if there are none. */
static int promise_of(weir_ctx *ctx, const struct batch *batch, const weir_pending_write *write,
                      weir_promise **ret_promise, struct sharers **ret_sharers)
{
    *ret_promise = NULL;
    *ret_sharers = NULL;
    if (batch->promises > 1)
        return share_promise(ctx, batch, write, ret_promise, ret_sharers);
    if (batch->promises == 1) {
        while (write->done == NULL)
            write = write->next;
        *ret_promise = weir_promise_retain(write->done);
    }
    return 0;
}

/* ---- batches ---- */

static size_t length_of(weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    return buf != NULL ? weir_buf_readable(buf) : weir_composite_readable(weir_composite_of(msg));
}

static void skip(weir_msg *msg, size_t length)
{
    weir_buf *buf = weir_buf_of(msg);

    if (buf != NULL)
        (void)weir_buf_skip(buf, length);
    else
        (void)weir_composite_skip(weir_composite_of(msg), length);
}

/* The most records that a write adds: those of each large piece, and one for what was gathered
 * before it. */
static size_t records_of(weir_msg *msg, size_t length)
{
    weir_composite *composite = weir_composite_of(msg);
    size_t pieces = composite != NULL ? weir_composite_count(composite) : 1;
    size_t large = length / LARGE;

    return length / WEIR__TLS_RECORD_MAX + 2 * (pieces < large ? pieces : large);
}

/* A cancelled write sends nothing, and its promise must not be attached to the buffer: the send
 * queue would drop the other writes in it. */
static void empty_if_cancelled(weir_pending_write *write)
{
    if (write->done == NULL || weir_promise_set_uncancellable(write->done))
        return;
    skip(write->msg, length_of(write->msg));
    weir_promise_release(write->done);
    write->done = NULL;
}

static struct batch plan(const weir_pending_writes *writes)
{
    weir_pending_write *write = writes->first;
    struct batch batch = {0};
    size_t length, room;

    while (batch.whole < writes->flushed && batch.plain < BATCH_MAX) {
        empty_if_cancelled(write);
        length = length_of(write->msg);
        room = BATCH_MAX - batch.plain;
        if (length > room) {
            batch.rest = length = room;
        } else {
            batch.whole++;
            batch.promises += write->done != NULL;
        }
        batch.records += records_of(write->msg, length);
        batch.plain += length;
        write = write->next;
    }
    batch.records += batch.plain / WEIR__TLS_RECORD_MAX + 1;
    return batch;
}

/* ---- sealing ---- */

struct sealer {
    weir__openssl_session *session;
    weir__openssl_io io;
    size_t left;   /* plain bytes, including the gathered ones */
    size_t length; /* of gathered: small pieces that become one record */
    uint8_t gathered[WEIR__TLS_RECORD_MAX];
};

static int seal(struct sealer *sealer, const uint8_t *bytes, size_t length)
{
    int err = weir__openssl_session_seal(sealer->session, &sealer->io, bytes, length);

    sealer->left -= length;
    return err;
}

static int seal_gathered(struct sealer *sealer)
{
    size_t length = sealer->length;

    sealer->length = 0;
    return length > 0 ? seal(sealer, sealer->gathered, length) : 0;
}

static int gather(struct sealer *sealer, const uint8_t *bytes, size_t length)
{
    memcpy(sealer->gathered + sealer->length, bytes, length);
    sealer->length += length;
    return sealer->length == sizeof(sealer->gathered) || sealer->length == sealer->left
               ? seal_gathered(sealer)
               : 0;
}

/* Seals or gathers some of the bytes. Returns how many, or an error. */
static ssize_t seal_some(struct sealer *sealer, const uint8_t *bytes, size_t length)
{
    size_t room = sizeof(sealer->gathered) - sealer->length;
    bool is_all = sealer->length == 0 && length == sealer->left;
    int err;

    if (length > WEIR__TLS_RECORD_MAX)
        length -= length % WEIR__TLS_RECORD_MAX; /* full records, in one call */
    if (length >= LARGE || is_all) {
        err = seal_gathered(sealer);
        if (err == 0)
            err = seal(sealer, bytes, length);
    } else {
        length = length < room ? length : room;
        err = gather(sealer, bytes, length);
    }
    return err < 0 ? err : (ssize_t)length;
}

static int seal_span(struct sealer *sealer, const uint8_t *bytes, size_t length)
{
    ssize_t count;

    for (; length > 0; length -= (size_t)count) {
        count = seal_some(sealer, bytes, length);
        if (count < 0)
            return (int)count;
        bytes += count;
    }
    return 0;
}

/* The next `length` bytes of a composite. */
static int seal_composite(struct sealer *sealer, weir_composite *composite, size_t length)
{
    struct iovec vectors[VECTORS];
    size_t count, size, taken;
    int err = 0;

    while (err == 0 && length > 0) {
        count = weir_composite_iovecs(composite, vectors, VECTORS);
        taken = 0;
        for (size_t i = 0; err == 0 && taken < length && i < count; i++) {
            size = length - taken;
            size = vectors[i].iov_len < size ? vectors[i].iov_len : size;
            err = seal_span(sealer, vectors[i].iov_base, size);
            taken += size;
        }
        (void)weir_composite_skip(composite,
                                  taken); /* only now: the vectors were borrowed until here */
        length -= taken;
    }
    return err;
}

static int seal_msg(struct sealer *sealer, weir_msg *msg, size_t length)
{
    weir_buf *buf = weir_buf_of(msg);
    int err;

    if (buf == NULL)
        return seal_composite(sealer, weir_composite_of(msg), length);
    err = seal_span(sealer, weir_buf_bytes(buf), length);
    (void)weir_buf_skip(buf, length);
    return err;
}

static int seal_batch(const weir__tls *tls, const struct batch *batch, weir_buf **ret_records)
{
    const weir_pending_write *write = tls->writes.first;
    struct sealer sealer;
    size_t length, left = batch->plain;
    int err;

    sealer.session = tls->session;
    sealer.io = (weir__openssl_io){0};
    sealer.left = left;
    sealer.length = 0;
    err = weir_buf_create(left + batch->records * WEIR__TLS_RECORD_EXTRA, 0, &sealer.io.out);
    for (; err == 0 && left > 0; write = write->next) {
        length = length_of(write->msg);
        length = length < left ? length : left;
        left -= length;
        err = seal_msg(&sealer, write->msg, length);
    }
    if (err < 0)
        weir_buf_release(sealer.io.out);
    else
        *ret_records = sealer.io.out;
    return err;
}

/* ---- sending ---- */

/* Removes the sealed writes from the queue. Returns the cost they were counted with. */
static int64_t pop_sealed(weir__tls *tls, const struct batch *batch)
{
    int64_t cost, costs = (int64_t)batch->rest;
    weir_promise *done;

    for (size_t i = 0; i < batch->whole; i++) {
        weir_msg_release(weir_pending_writes_take_charged(&tls->writes, &done, &cost));
        weir_promise_release(done);
        costs += cost;
    }
    if (batch->rest > 0)
        weir_pending_writes_shorten(&tls->writes, (int64_t)batch->rest);
    return costs;
}

/* Empty writes are passed on in order. */
static void pass_empty(weir_ctx *ctx, weir__tls *tls, size_t count)
{
    for (; count > 0 && tls->writes.flushed > 0; count--)
        weir_pending_writes_pass(ctx, &tls->writes);
}

/*
 * If records are not accepted, those that follow are useless: the connection fails, unless nothing
 * follows because the output is closed. Without a promise the failure is reported as an error,
 * which on_error records.
 */
static int write_records(weir_ctx *ctx, weir__tls *tls, weir_buf *records, weir_promise *promise,
                         int64_t cost)
{
    int former = tls->last_error, err;

    tls->last_error = 0;
    weir_write_pending(ctx, weir_buf_msg(records), promise, cost);
    err = tls->last_error;
    if (promise != NULL && weir_promise_is_done(promise))
        err = weir_promise_result(promise);
    if (tls->last_error == 0)
        tls->last_error = former;
    return err == WEIR_ECLOSED ? 0 : err;
}

static int send_batch(weir_ctx *ctx, weir__tls *tls)
{
    struct batch batch = plan(&tls->writes);
    struct sharers *sharers;
    weir_promise *promise;
    weir_buf *records;
    int err;

    if (batch.plain == 0) {
        pass_empty(ctx, tls, batch.whole);
        return 0;
    }
    err = promise_of(ctx, &batch, tls->writes.first, &promise, &sharers);
    if (err < 0)
        return err;
    err = seal_batch(tls, &batch, &records);
    if (err == 0)
        err = write_records(ctx, tls, records, promise, pop_sealed(tls, &batch));
    else if (sharers != NULL)
        detach_sharers(sharers);
    weir_promise_release(promise);
    return err;
}

/* A single buffer that becomes one record. */
WEIR__NO_STACK_PROTECTOR static int send_one(weir_ctx *ctx, weir__tls *tls, const weir_buf *plain)
{
    size_t length = weir_buf_readable(plain);
    weir__openssl_io io = {0};
    weir_promise *promise;
    int64_t cost;
    int err = weir_buf_create(length + WEIR__TLS_RECORD_EXTRA, 0, &io.out);

    if (err == 0)
        err = weir__openssl_session_seal(tls->session, &io, weir_buf_bytes(plain), length);
    if (err < 0) {
        weir_buf_release(io.out);
        return err;
    }
    weir_msg_release(weir_pending_writes_take_charged(&tls->writes, &promise, &cost));
    err = write_records(ctx, tls, io.out, promise, cost);
    weir_promise_release(promise);
    return err;
}

/* The usual case is a single short buffer, which needs no plan. */
static int send_next(weir_ctx *ctx, weir__tls *tls)
{
    weir_pending_write *first = tls->writes.first;
    weir_buf *buf = tls->writes.flushed == 1 ? weir_buf_of(first->msg) : NULL;

    if (buf == NULL)
        return send_batch(ctx, tls);
    empty_if_cancelled(first);
    return weir_buf_readable(buf) > 0 && weir_buf_readable(buf) <= WEIR__TLS_RECORD_MAX
               ? send_one(ctx, tls, buf)
               : send_batch(ctx, tls);
}

void weir__tls_seal(weir_ctx *ctx, weir__tls *tls)
{
    int err = 0;

    if (tls->is_sealing)
        return;
    tls->is_sealing = true;
    while (err == 0 && tls->stage == WEIR__TLS_OPEN && tls->writes.flushed > 0 &&
           !tls->session->is_blocked) {
        err = send_next(ctx, tls);
        if (err == 0 && tls->writes.flushed > 0)
            weir_flush(ctx); /* may run anything: the stage is read again */
    }
    tls->is_sealing = false;
    if (err < 0)
        weir__tls_fail_and_close(
            ctx, err, tls->session->reason != NULL ? tls->session->reason : weir_error_text(err));
}

void weir__tls_fail_writes(weir_ctx *ctx, int err, const char *detail)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir_promise *done;

    while (tls->writes.count > 0) {
        weir_msg_release(weir_pending_writes_take(ctx, &tls->writes, &done));
        if (done != NULL)
            weir_ctx_report(ctx, done, err, detail);
        weir_promise_release(done);
    }
    weir_pending_writes_fail_shutdown_output(ctx, &tls->writes, err, detail);
}
