/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/frame_write.h"

#include <errno.h>
#include <stdio.h>

#include <weir/composite.h>
#include <weir/file_range.h>

#include "channel/channel.h"
#include "channel/transport.h"

int64_t weir__frame_content_length(weir_msg *msg)
{
    if (weir_buf_of(msg) != NULL)
        return (int64_t)weir_buf_readable(weir_buf_of(msg));
    if (weir_composite_of(msg) != NULL)
        return (int64_t)weir_composite_readable(weir_composite_of(msg));
    if (weir_file_range_of(msg) != NULL)
        return weir_file_range_remaining(weir_file_range_of(msg));
    return -1;
}

/* ---- buffers and composites ---- */

static int add_bytes(weir_composite *whole, weir_span bytes)
{
    weir_buf *buf;
    int err = weir_buf_create_from(bytes.data, bytes.length, &buf);

    return err < 0 ? err : weir_composite_add(whole, weir_buf_msg(buf));
}

/* Takes: msg. */
static int write_composite(weir_ctx *ctx, weir_span head, weir_msg *msg, weir_span tail,
                           weir_promise *done)
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
        weir_write(ctx, weir_composite_msg(whole), done);
    return err;
}

/* ---- file ranges ---- */

/* Runs on the channel's loop, unless the channel has moved. A channel that is closing ends after
 * its earlier writes in any case. */
static void on_part_done(weir_promise *done, void *user_data)
{
    weir_channel *channel = user_data;
    int err = weir_promise_result(done);
    char detail[256];

    if (err < 0 && !weir_in_executor(weir_channel_executor(channel))) {
        weir_channel_abort(channel, NULL);
    } else if (err < 0 && weir__channel_phase(channel) == WEIR__OPEN) {
        (void)snprintf(detail, sizeof(detail), "incomplete frame written: %s",
                       weir_promise_detail(done));
        weir__channel_failed(channel, err, detail);
    }
    weir_channel_release(channel);
}

static int watch_part(weir_channel *channel, weir_promise *part)
{
    int err = weir_promise_add_listener(part, on_part_done, weir_channel_retain(channel));

    if (err < 0)
        weir_channel_release(channel);
    return err;
}

int weir__frame_part(weir_ctx *ctx, weir_promise *done, weir_promise **ret_part)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    weir_executor *loop = weir_channel_executor(channel);
    weir_promise *part;
    int err;

    if (done != NULL && weir_promise_executor(done) == loop) {
        err = watch_part(channel, done);
        if (err == 0)
            *ret_part = weir_promise_retain(done);
        return err;
    }
    err = weir_promise_create(loop, &part);
    if (err < 0)
        return err;
    err = watch_part(channel, part);
    if (err == 0 && done != NULL)
        err = weir_promise_cascade(part, done);
    if (err == 0) {
        *ret_part = part;
        return 0;
    }
    (void)weir_promise_succeed(part, NULL); /* keep the listener from aborting the channel */
    weir_promise_release(part);
    return err;
}

struct part {
    weir_buf *buf;
    weir_promise *done;
};

/* Discards an unwritten part, completing its promise so that the listener does not abort the
 * channel. */
static void discard_part(struct part *part)
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
        err = weir__frame_part(ctx, NULL, &part.done);
    if (err < 0)
        discard_part(&part);
    else
        *ret_part = part;
    return err;
}

static void write_part(weir_ctx *ctx, struct part *part)
{
    weir_write(ctx, weir_buf_msg(part->buf), part->done);
    weir_promise_release(part->done);
}

/* Takes: file. The write becomes uncancellable, so that all parts are written or none. */
static int write_file(weir_ctx *ctx, weir_span head, weir_msg *file, weir_span tail,
                      weir_promise *done)
{
    struct part head_part = {NULL, NULL}, tail_part = {NULL, NULL};
    weir_promise *own = NULL;
    int err = done == NULL || weir_promise_set_uncancellable(done) ? 0 : WEIR_ECANCELED;

    if (err == 0)
        err = make_part(ctx, head, &head_part);
    if (err == 0 && tail.length > 0)
        err = make_part(ctx, tail, &tail_part);
    if (err == 0)
        err = weir__frame_part(ctx, done, &own);
    if (err < 0) {
        discard_part(&head_part);
        discard_part(&tail_part);
        weir_msg_release(file);
        return err;
    }
    write_part(ctx, &head_part);
    weir_write(ctx, file, own);
    weir_promise_release(own);
    if (tail_part.buf != NULL)
        write_part(ctx, &tail_part);
    return 0;
}

/* ---- entry point ---- */

void weir__frame_write(weir_ctx *ctx, weir_span head, weir_msg *msg, weir_span tail,
                       weir_promise *done)
{
    int err;

    if (weir_file_range_of(msg) != NULL)
        err = write_file(ctx, head, msg, tail, done);
    else
        err = write_composite(ctx, head, msg, tail, done);
    if (err < 0)
        weir_ctx_report(ctx, done, err, "framing failed");
}
