/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd (RFC 8878, RFC 9659), by the Zstandard library. Its functions with an allocator belong to
 * the part of its API that is called "static only"; shared libraries have them, too.
 */
#include "protocol/http/content_coding.h"

#ifdef WEIR_HAVE_ZSTD

#define ZSTD_STATIC_LINKING_ONLY
#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <weir/error.h>

#define WINDOW_LOG 17 /* 128 KiB: more costs memory per connection and gains little */

static void *alloc(void *opaque, size_t size)
{
    return weir__http_coding_alloc(opaque, size);
}

static void release(void *opaque, void *block)
{
    weir__http_coding_free(opaque, block);
}

/* Copies the positions back into the step. */
static void end_step(weir__http_coding_step *step, const ZSTD_inBuffer *in,
                     const ZSTD_outBuffer *out)
{
    step->in += in->pos;
    step->in_left -= in->pos;
    step->out += out->pos;
    step->out_left -= out->pos;
}

/* ---- encoder ---- */

static int create_encoder(weir__http_coding_memory *memory, int level, int64_t length,
                          void **ret_encoder)
{
    ZSTD_CCtx *encoder = ZSTD_createCCtx_advanced(
        (ZSTD_customMem){.customAlloc = alloc, .customFree = release, .opaque = memory});

    if (encoder == NULL)
        return -ENOMEM;
    /* Level 3 costs what level 5 of gzip costs, or less. */
    (void)ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, level > 3 ? level - 2 : 1);
    (void)ZSTD_CCtx_setParameter(encoder, ZSTD_c_windowLog, WINDOW_LOG);
    if (length > 0 && length < INT32_MAX)
        (void)ZSTD_CCtx_setParameter(encoder, ZSTD_c_srcSizeHint, (int)length);
    *ret_encoder = encoder;
    return 0;
}

static int encode(void *state, weir__http_coding_step *step, enum weir__http_coding_op op)
{
    static const ZSTD_EndDirective directives[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
    ZSTD_inBuffer in = {.src = step->in, .size = step->in_left};
    ZSTD_outBuffer out = {.dst = step->out, .size = step->out_left};
    size_t left = ZSTD_compressStream2(state, &out, &in, directives[op]);

    if (ZSTD_isError(left))
        return -ENOMEM;
    end_step(step, &in, &out);
    return step->in_left > 0 || (op != WEIR__HTTP_CODING_RUN && left > 0);
}

static void free_encoder(void *state)
{
    (void)ZSTD_freeCCtx(state);
}

/* ---- decoder ---- */

struct decoder {
    ZSTD_DCtx *stream;
    weir__http_coding_memory *memory;
    bool is_at_end;   /* of a frame; another one may follow */
    bool has_pending; /* the last call filled the output: it may hold more */
};

static int create_decoder(weir__http_coding_memory *memory, void **ret_decoder)
{
    struct decoder *decoder = weir__http_coding_alloc(memory, sizeof(*decoder));

    if (decoder == NULL)
        return weir__http_coding_memory_error(memory);
    *decoder = (struct decoder){.memory = memory};
    decoder->stream = ZSTD_createDCtx_advanced(
        (ZSTD_customMem){.customAlloc = alloc, .customFree = release, .opaque = memory});
    if (decoder->stream == NULL) {
        weir__http_coding_free(memory, decoder);
        return weir__http_coding_memory_error(memory);
    }
    (void)ZSTD_DCtx_setParameter(decoder->stream, ZSTD_d_windowLogMax, WEIR__HTTP_WINDOW_LOG_MAX);
    *ret_decoder = decoder;
    return 0;
}

static int error_of(const struct decoder *decoder, size_t result)
{
    switch (ZSTD_getErrorCode(result)) {
    case ZSTD_error_memory_allocation:
        return weir__http_coding_memory_error(decoder->memory);
    case ZSTD_error_frameParameter_windowTooLarge:
        return WEIR_ETOOLONG;
    default:
        return WEIR_EMALFORMED;
    }
}

static int decode(void *state, weir__http_coding_step *step)
{
    struct decoder *decoder = state;

    while (step->out_left > 0 && (step->in_left > 0 || decoder->has_pending)) {
        ZSTD_inBuffer in = {.src = step->in, .size = step->in_left};
        ZSTD_outBuffer out = {.dst = step->out, .size = step->out_left};
        size_t result = ZSTD_decompressStream(decoder->stream, &out, &in);

        if (ZSTD_isError(result))
            return error_of(decoder, result);
        end_step(step, &in, &out);
        decoder->is_at_end = result == 0;
        decoder->has_pending = result != 0 && step->out_left == 0;
    }
    return decoder->is_at_end;
}

static void free_decoder(void *state)
{
    struct decoder *decoder = state;

    (void)ZSTD_freeDCtx(decoder->stream);
    weir__http_coding_free(decoder->memory, decoder);
}

const weir__http_coding weir__http_zstd = {
    .name = "zstd",
    .create_encoder = create_encoder,
    .encode = encode,
    .free_encoder = free_encoder,
    .create_decoder = create_decoder,
    .decode = decode,
    .free_decoder = free_decoder,
};

#endif
