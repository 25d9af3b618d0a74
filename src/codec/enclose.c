/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/enclose.h"

#include <errno.h>

#include <weir/channel.h>
#include <weir/composite.h>
#include <weir/file_range.h>

int64_t weir__enclose_length(weir_msg *msg)
{
    if (weir_buf_of(msg) != NULL)
        return (int64_t)weir_buf_readable(weir_buf_of(msg));
    if (weir_composite_of(msg) != NULL)
        return (int64_t)weir_composite_readable(weir_composite_of(msg));
    if (weir_file_range_of(msg) != NULL)
        return weir_file_range_remaining(weir_file_range_of(msg));
    return -1;
}

/* ---- as one message ---- */

static int add_bytes(weir_composite *whole, weir_span bytes)
{
    weir_buf *buf;
    int err = weir_buf_create_from(bytes.data, bytes.length, &buf);

    return err < 0 ? err : weir_composite_add(whole, weir_buf_msg(buf));
}

/* Takes: msg. */
static int put_together(weir_span head, weir_msg *msg, weir_span tail, weir_composite **ret_whole)
{
    weir_composite *whole = NULL;
    int err = weir_composite_create(SIZE_MAX, &whole);

    if (err == 0)
        err = add_bytes(whole, head);
    if (err == 0)
        err = weir_composite_add(whole, msg);
    else
        weir_msg_release(msg);
    if (err == 0 && tail.length > 0)
        err = add_bytes(whole, tail);
    if (err < 0)
        weir_composite_release(whole);
    else
        *ret_whole = whole;
    return err;
}

/* ---- as three ---- */

static void look_at_part(weir_promise *done, void *user_data)
{
    weir_channel *channel = user_data;

    if (weir_promise_result(done) < 0)
        weir_channel_abort(channel, NULL);
    weir_channel_release(channel);
}

static int watch(weir_ctx *ctx, weir_promise *done)
{
    weir_channel *channel = weir_channel_retain(weir_ctx_channel(ctx));
    int err = weir_promise_add_listener(done, look_at_part, channel);

    if (err < 0)
        weir_channel_release(channel);
    return err;
}

struct part {
    weir_buf *buf;
    weir_promise *done;
};

/* It will not be written after all: nobody is to take this for a failure. */
static void drop_part(struct part *part)
{
    if (part->done != NULL)
        (void)weir_promise_succeed(part->done, NULL);
    weir_promise_release(part->done);
    weir_buf_release(part->buf);
}

static int make_part(weir_ctx *ctx, weir_span bytes, struct part *ret_part)
{
    struct part part = {NULL, NULL};
    int err = weir_buf_create_from(bytes.data, bytes.length, &part.buf);

    if (err == 0)
        err = weir_promise_create(weir_ctx_executor(ctx), &part.done);
    if (err == 0)
        err = watch(ctx, part.done);
    if (err < 0)
        drop_part(&part);
    else
        *ret_part = part;
    return err;
}

static void write_part(weir_ctx *ctx, struct part *part)
{
    weir_write(ctx, weir_buf_msg(part->buf), part->done);
    weir_promise_release(part->done);
}

/* Takes: file. `done` is not NULL. A cancelled part would leave the others: so it is all or none.
 */
static int write_parts(weir_ctx *ctx, weir_span head, weir_msg *file, weir_span tail,
                       weir_promise *done)
{
    struct part before = {NULL, NULL}, behind = {NULL, NULL};
    int err = weir_promise_set_uncancellable(done) ? 0 : WEIR_ECANCELED;

    if (err == 0)
        err = make_part(ctx, head, &before);
    if (err == 0 && tail.length > 0)
        err = make_part(ctx, tail, &behind);
    if (err == 0)
        err = watch(ctx, done);
    if (err < 0) {
        drop_part(&before);
        drop_part(&behind);
        weir_msg_release(file);
        return err;
    }
    write_part(ctx, &before);
    weir_write(ctx, file, done);
    if (behind.buf != NULL)
        write_part(ctx, &behind);
    return 0;
}

static int write_file(weir_ctx *ctx, weir_span head, weir_msg *file, weir_span tail,
                      weir_promise *done)
{
    weir_promise *own = NULL;
    int err = 0;

    if (done == NULL)
        err = weir_promise_create(weir_ctx_executor(ctx), &own);
    if (err < 0) {
        weir_msg_release(file);
        return err;
    }
    err = write_parts(ctx, head, file, tail, done != NULL ? done : own);
    weir_promise_release(own);
    return err;
}

/* ---- either ---- */

static int write_composite(weir_ctx *ctx, weir_span head, weir_msg *msg, weir_span tail,
                           weir_promise *done)
{
    weir_composite *whole = NULL;
    int err = put_together(head, msg, tail, &whole);

    if (err == 0)
        weir_write(ctx, weir_composite_msg(whole), done);
    return err;
}

void weir__enclose_write(weir_ctx *ctx, weir_span head, weir_msg *msg, weir_span tail,
                         weir_promise *done)
{
    int err;

    if (weir_file_range_of(msg) != NULL)
        err = write_file(ctx, head, msg, tail, done);
    else
        err = write_composite(ctx, head, msg, tail, done);
    if (err < 0)
        weir_ctx_report(ctx, done, err, "a frame could not be put together");
}
