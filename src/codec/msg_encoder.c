/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of message encoders. If a write becomes several messages, each has its own promise, and
 * a combiner completes the promise of the write. The write is then uncancellable, so that all of
 * its messages are sent or none.
 */
#include <weir/codec.h>

#include <errno.h>

#include <weir/promise.h>

#include "base/memory.h"
#include "codec/encoding.h"
#include "codec/msg_list.h"

/* ---- several messages with one promise ---- */

/* Allocates everything before the first write. */
static void write_several(weir_ctx *ctx, weir_msg_list *out, weir_promise *done)
{
    size_t count = out->count;
    weir_promise **promises = weir__zalloc(count * sizeof(*promises));
    weir_combiner *combiner = NULL;
    int err = promises != NULL ? weir_combiner_create(weir_ctx_executor(ctx), &combiner) : -ENOMEM;

    for (size_t i = 0; err == 0 && i < count; i++) {
        err = weir_promise_create(weir_ctx_executor(ctx), &promises[i]);
        if (err == 0)
            err = weir_combiner_add(combiner, promises[i]);
    }
    if (err == 0)
        err = weir_combiner_finish(combiner, done);
    if (err < 0) {
        weir__msg_list_clear(out);
        weir_ctx_report(ctx, done, err, NULL);
    }
    for (size_t i = 0; err == 0 && i < count; i++)
        weir_write(ctx, out->msgs[i], promises[i]);
    for (size_t i = 0; promises != NULL && i < count; i++)
        weir_promise_release(promises[i]);
    weir_combiner_release(combiner);
    weir__free(promises);
}

static void write_all(weir_ctx *ctx, weir_msg_list *out, weir_promise *done)
{
    if (out->count == 0) {
        weir_ctx_report(ctx, done, 0, NULL);
    } else if (out->count == 1) {
        weir_write(ctx, out->msgs[0], done);
    } else if (done == NULL) {
        for (size_t i = 0; i < out->count; i++)
            weir_write(ctx, out->msgs[i], NULL);
    } else if (weir_promise_set_uncancellable(done)) {
        write_several(ctx, out, done);
    } else {
        weir__msg_list_clear(out);
    }
}

/* ---- slots ---- */

void weir__msg_encoding_write(weir_ctx *ctx, const weir__msg_encoding *encoding, weir_msg *msg,
                              weir_promise *done)
{
    weir_msg_list out;
    int err;

    if (!weir__msg_matches(encoding->type, encoding->accepts, msg)) {
        weir_write(ctx, msg, done);
        return;
    }
    weir__msg_list_init(&out);
    err = encoding->encode(ctx, msg, &out);
    weir_msg_release(msg);
    if (err < 0) {
        weir__msg_list_clear(&out);
        weir_ctx_report(ctx, done, err, "encoding failed");
    } else {
        write_all(ctx, &out, done);
    }
    weir__msg_list_deinit(&out);
}

void weir_msg_encoder_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    const weir_msg_encoder *encoder =
        (const weir_msg_encoder *)(const void *)weir_ctx_handler(ctx); /* its first member */

    weir__msg_encoding_write(ctx,
                             &(const weir__msg_encoding){.type = encoder->type,
                                                         .accepts = encoder->accepts,
                                                         .encode = encoder->encode},
                             msg, done);
}
