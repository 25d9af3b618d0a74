/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/resp.h>

#include <errno.h>

#include <weir/codec.h>
#include <weir/error.h>

#include "base/options.h"
#include "codec/frame_write.h"
#include "handler/chunks.h"
#include "protocol/resp/resp.h"
#include "protocol/resp/resp_reader.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 20)
#define BYTES_MAX ((size_t)2 << 30)
#define DEFAULT_MAX_ELEMENTS ((size_t)4096)
#define DEFAULT_MAX_LINE ((size_t)64 << 10)
#define DEFAULT_MAX_DEPTH 8
#define DEFAULT_MAX_MEMORY ((size_t)2 << 20)
#define MEMORY_MAX ((size_t)1 << 48)
#define DEPTH_MAX 1024 /* values are freed and written recursively */

struct codec {
    weir_decoder_state decoder;
    weir__resp_reader reader;
    int version;
    uint64_t bulk_left; /* bytes that the last bulk header announced and that are not written yet */
};

static int read_options(const void *given, weir_resp_options *ret_options)
{
    int err = weir__options_read(ret_options, sizeof(*ret_options), given);

    if (err < 0)
        return err;
    if (ret_options->max_bytes == 0)
        ret_options->max_bytes = DEFAULT_MAX_BYTES;
    if (ret_options->max_elements == 0)
        ret_options->max_elements = DEFAULT_MAX_ELEMENTS;
    if (ret_options->max_line == 0)
        ret_options->max_line = DEFAULT_MAX_LINE;
    if (ret_options->max_depth == 0)
        ret_options->max_depth = DEFAULT_MAX_DEPTH;
    if (ret_options->max_memory == 0)
        ret_options->max_memory = DEFAULT_MAX_MEMORY;
    if (ret_options->version == 0)
        ret_options->version = 2;
    return weir__options_check("resp", NULL, WEIR__OPTION(ret_options, max_bytes, 1, BYTES_MAX),
                               WEIR__OPTION(ret_options, max_elements, 1, UINT32_MAX),
                               WEIR__OPTION(ret_options, max_line, 1, BYTES_MAX),
                               WEIR__OPTION(ret_options, max_depth, 1, DEPTH_MAX),
                               WEIR__OPTION(ret_options, max_memory, 1, MEMORY_MAX),
                               WEIR__OPTION(ret_options, version, 2, 3));
}

static int init(void *state, const void *given)
{
    struct codec *codec = state;
    weir_resp_options options;
    int err = read_options(given, &options);

    if (err < 0)
        return err;
    weir__resp_reader_init(&codec->reader, &options);
    codec->version = options.version;
    return 0;
}

static void deinit(void *state)
{
    weir__resp_reader_deinit(&((struct codec *)state)->reader);
}

/* ---- inbound ---- */

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct codec *codec = weir_ctx_state(ctx);
    size_t need = 0;
    int result = weir__resp_read(&codec->reader, in, ret_msg, &need);

    if (result == 0)
        return weir_decoder_need(ctx, need);
    if (result > 0)
        return 1;
    if (result != WEIR_ETOOLONG)
        return weir_decoder_fail(ctx, result,
                                 result == WEIR_EMALFORMED ? codec->reader.detail : NULL);
    weir_fire_error(ctx, WEIR_ETOOLONG, codec->reader.detail);
    return !weir_ctx_is_removed(ctx);
}

/* ---- outbound ---- */

/*
 * The number of bytes of a part of a bulk: bytes, a file range or chunks. -1 for other messages,
 * and for chunks of unknown length.
 */
static int64_t length_of(weir_msg *msg)
{
    return weir_chunks_of(msg) != NULL ? weir_chunks_of(msg)->length
                                       : weir__frame_content_length(msg);
}

/* A bulk header and its parts cannot be cancelled: the peer counts the bytes. */
static bool is_cancelled(weir_promise *done)
{
    return done != NULL && !weir_promise_set_uncancellable(done);
}

static void write_value(weir_ctx *ctx, weir_resp *value, weir_promise *done)
{
    struct codec *codec = weir_ctx_state(ctx);
    weir_promise *part = NULL;
    weir_buf *out = NULL;
    int err;

    if (weir_resp_is_bulk_header(value) && is_cancelled(done)) {
        weir_resp_release(value);
        return;
    }
    err = weir_buf_create(weir_msg_size(&value->msg), 0, &out);
    if (err == 0)
        err = weir_resp_write(value, codec->version, out);
    if (err == 0 && weir_resp_is_bulk_header(value) && weir_resp_bulk_length(value) == 0)
        err = weir_buf_write_bytes(out, "\r\n", 2);
    if (err == 0 && weir_resp_is_bulk_header(value))
        err = weir__frame_part(ctx, done, &part);
    if (err == 0)
        codec->bulk_left = weir_resp_bulk_length(value);
    weir_resp_release(value);
    if (err == 0) {
        weir_write(ctx, weir_buf_msg(out), part != NULL ? part : done);
        weir_promise_release(part);
        return;
    }
    weir_buf_release(out);
    weir_ctx_report(ctx, done, err, "RESP encoding failed");
}

/* Creates the line end that follows the last part. */
static int make_end(weir_ctx *ctx, weir_buf **ret_end, weir_promise **ret_part)
{
    weir_buf *end;
    int err = weir_buf_wrap_static("\r\n", 2, &end);

    if (err < 0)
        return err;
    err = weir__frame_part(ctx, NULL, ret_part);
    if (err < 0)
        weir_buf_release(end);
    else
        *ret_end = end;
    return err;
}

static void discard_end(weir_buf *end, weir_promise *part)
{
    if (part != NULL)
        (void)weir_promise_succeed(part, NULL);
    weir_promise_release(part);
    weir_buf_release(end);
}

/* Writes a part of a bulk, and the line end after the last one. A part that fails closes the
 * connection, since the peer expects the announced number of bytes. */
static void write_piece(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct codec *codec = weir_ctx_state(ctx);
    uint64_t length = (uint64_t)length_of(msg);
    weir_promise *part = NULL, *end_part = NULL;
    weir_buf *end = NULL;
    int err = length > codec->bulk_left ? WEIR_ETOOLONG : 0;

    if (is_cancelled(done)) {
        weir_msg_release(msg);
        return;
    }
    if (err == 0 && length == codec->bulk_left)
        err = make_end(ctx, &end, &end_part);
    if (err == 0)
        err = weir__frame_part(ctx, done, &part);
    if (err < 0) {
        discard_end(end, end_part);
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, err, "more bytes than the bulk header announced");
        return;
    }
    codec->bulk_left -= length;
    weir_write(ctx, msg, part);
    weir_promise_release(part);
    if (end != NULL)
        weir_write(ctx, weir_buf_msg(end), end_part);
    weir_promise_release(end_part);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    const struct codec *codec = weir_ctx_state(ctx);
    weir_resp *value = weir_resp_of(msg);

    if (codec->bulk_left > 0 && length_of(msg) >= 0) {
        write_piece(ctx, msg, done);
    } else if (value != NULL && codec->bulk_left == 0) {
        write_value(ctx, value, done);
    } else if (value != NULL) {
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, -EINVAL, "the current bulk is incomplete");
    } else {
        weir_write(ctx, msg, done);
    }
}

static const weir_decoder codec_table = {
    .handler = {.name = "resp",
                WEIR_DECODER_SLOTS(struct codec),
                .init = init,
                .deinit = deinit,
                .write = on_write},
    .decode = decode,
};

int weir_resp_codec_add(weir_pipeline *pipeline, const weir_resp_options *options)
{
    return weir_pipeline_add_last(pipeline, &codec_table.handler, options);
}

int weir_resp_codec_set_version(weir_pipeline *pipeline, int version)
{
    weir_ctx *ctx = weir_pipeline_find_handler(pipeline, &codec_table.handler);
    struct codec *codec;

    if (version != 2 && version != 3)
        return -EINVAL;
    if (ctx == NULL)
        return -ENOENT;
    codec = weir_ctx_state(ctx);
    codec->version = version;
    return 0;
}
