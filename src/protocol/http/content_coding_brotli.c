/* SPDX-License-Identifier: Apache-2.0 */
/*
 * br, by the Brotli library.
 */
#include "protocol/http/content_coding.h"

#ifdef WEIR_HAVE_BROTLI

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <errno.h>

#include <weir/error.h>

static void *alloc(void *opaque, size_t size)
{
    return weir__http_coding_alloc(opaque, size);
}

static void release(void *opaque, void *block)
{
    weir__http_coding_free(opaque, block);
}

/* ---- encoder ---- */

static int create_encoder(weir__http_coding_memory *memory, int level, int64_t length,
                          void **ret_encoder)
{
    BrotliEncoderState *encoder = BrotliEncoderCreateInstance(alloc, release, memory);

    if (encoder == NULL)
        return -ENOMEM;
    (void)BrotliEncoderSetParameter(encoder, BROTLI_PARAM_QUALITY, (uint32_t)level);
    (void)BrotliEncoderSetParameter(encoder, BROTLI_PARAM_LGWIN, WEIR__HTTP_ENCODER_WINDOW_LOG);
    if (length > 0)
        (void)BrotliEncoderSetParameter(encoder, BROTLI_PARAM_SIZE_HINT,
                                        length < UINT32_MAX ? (uint32_t)length : UINT32_MAX);
    *ret_encoder = encoder;
    return 0;
}

static int encode(void *state, weir__http_coding_step *step, enum weir__http_coding_op op)
{
    static const BrotliEncoderOperation operations[] = {
        BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_FLUSH, BROTLI_OPERATION_FINISH};

    if (!BrotliEncoderCompressStream(state, operations[op], &step->in_left, &step->in,
                                     &step->out_left, &step->out, NULL))
        return -ENOMEM;
    if (op == WEIR__HTTP_CODING_FINISH)
        return !BrotliEncoderIsFinished(state);
    return step->in_left > 0 || BrotliEncoderHasMoreOutput(state);
}

static void free_encoder(void *state)
{
    BrotliEncoderDestroyInstance(state);
}

/* ---- decoder ---- */

struct decoder {
    BrotliDecoderState *stream;
    weir__http_coding_memory *memory;
};

static int create_decoder(weir__http_coding_memory *memory, void **ret_decoder)
{
    struct decoder *decoder = weir__http_coding_alloc(memory, sizeof(*decoder));

    if (decoder == NULL)
        return weir__http_coding_memory_error(memory);
    decoder->memory = memory;
    decoder->stream = BrotliDecoderCreateInstance(alloc, release, memory);
    if (decoder->stream == NULL) {
        weir__http_coding_free(memory, decoder);
        return weir__http_coding_memory_error(memory);
    }
    *ret_decoder = decoder;
    return 0;
}

static int error_of(const struct decoder *decoder)
{
    BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(decoder->stream);

    /* The codes of failed allocations are these and those between them. */
    if (code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
        code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES)
        return weir__http_coding_memory_error(decoder->memory);
    return WEIR_EMALFORMED;
}

static int decode(void *state, weir__http_coding_step *step)
{
    struct decoder *decoder = state;
    BrotliDecoderResult result = BROTLI_DECODER_RESULT_SUCCESS;

    if (!BrotliDecoderIsFinished(decoder->stream))
        result = BrotliDecoderDecompressStream(decoder->stream, &step->in_left, &step->in,
                                               &step->out_left, &step->out, NULL);
    if (result == BROTLI_DECODER_RESULT_ERROR)
        return error_of(decoder);
    if (result != BROTLI_DECODER_RESULT_SUCCESS)
        return 0;
    return step->in_left == 0 ? 1 : WEIR_EMALFORMED;
}

static void free_decoder(void *state)
{
    struct decoder *decoder = state;

    BrotliDecoderDestroyInstance(decoder->stream);
    weir__http_coding_free(decoder->memory, decoder);
}

const weir__http_coding weir__http_brotli = {
    .name = "br",
    .create_encoder = create_encoder,
    .encode = encode,
    .free_encoder = free_encoder,
    .create_decoder = create_decoder,
    .decode = decode,
    .free_decoder = free_decoder,
};

#endif
