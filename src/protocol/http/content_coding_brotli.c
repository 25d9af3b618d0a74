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

/*
 * The encoder of the library ends the process if it gets no memory. So it gets an arena that is
 * allocated beforehand: 3 MiB, of which it uses 2 MiB at most with this window and quality. Content
 * that is short touches a part of that.
 */
#define WINDOW_LOG 16
#define QUALITY_MAX 7
#define ARENA_SIZE ((size_t)3 * 1024 * 1024)

/* A block of the arena. Free ones are in a list, by address. */
struct block {
    size_t size; /* with this header */
    struct block *next;
};

struct encoder {
    BrotliEncoderState *stream;
    weir__http_coding_memory *memory;
    struct block *free_blocks;
    _Alignas(struct block) uint8_t arena[ARENA_SIZE];
};

/* Takes the first block that is large enough; what is left of it stays free. */
static void *arena_alloc(void *opaque, size_t size)
{
    struct encoder *encoder = opaque;
    struct block **link = &encoder->free_blocks, *block;
    size_t need = (size + 2 * sizeof(*block) - 1) & ~(sizeof(*block) - 1);

    while (*link != NULL && (*link)->size < need)
        link = &(*link)->next;
    block = *link;
    if (block == NULL)
        return weir__http_coding_alloc(encoder->memory, size);
    if (block->size - need < sizeof(*block)) {
        *link = block->next;
    } else {
        struct block *rest = (struct block *)(void *)((uint8_t *)block + need);

        *rest = (struct block){.size = block->size - need, .next = block->next};
        *link = rest;
        block->size = need;
    }
    return block + 1;
}

static bool touches(const struct block *block, const struct block *next)
{
    return (const uint8_t *)block + block->size == (const uint8_t *)next;
}

static void arena_free(void *opaque, void *memory)
{
    struct encoder *encoder = opaque;
    struct block *block = memory, *before = NULL, *after = encoder->free_blocks;

    if (memory == NULL)
        return;
    if ((uint8_t *)memory < encoder->arena || (uint8_t *)memory >= encoder->arena + ARENA_SIZE) {
        weir__http_coding_free(encoder->memory, memory);
        return;
    }
    block--;
    for (; after != NULL && after < block; after = after->next)
        before = after;
    block->next = after;
    if (after != NULL && touches(block, after)) {
        block->size += after->size;
        block->next = after->next;
    }
    if (before == NULL) {
        encoder->free_blocks = block;
    } else if (touches(before, block)) {
        before->size += block->size;
        before->next = block->next;
    } else {
        before->next = block;
    }
}

static int create_encoder(weir__http_coding_memory *memory, int level, int64_t length,
                          void **ret_encoder)
{
    struct encoder *encoder = weir__http_coding_alloc(memory, sizeof(*encoder));

    (void)length;
    if (encoder == NULL)
        return -ENOMEM;
    encoder->memory = memory;
    encoder->free_blocks = (struct block *)(void *)encoder->arena;
    *encoder->free_blocks = (struct block){.size = ARENA_SIZE};
    encoder->stream = BrotliEncoderCreateInstance(arena_alloc, arena_free, encoder);
    if (encoder->stream == NULL) {
        weir__http_coding_free(memory, encoder);
        return -ENOMEM;
    }
    (void)BrotliEncoderSetParameter(encoder->stream, BROTLI_PARAM_QUALITY,
                                    level < QUALITY_MAX ? (uint32_t)level : QUALITY_MAX);
    (void)BrotliEncoderSetParameter(encoder->stream, BROTLI_PARAM_LGWIN, WINDOW_LOG);
    *ret_encoder = encoder;
    return 0;
}

static int encode(void *state, weir__http_coding_step *step, enum weir__http_coding_op op)
{
    static const BrotliEncoderOperation operations[] = {
        BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_FLUSH, BROTLI_OPERATION_FINISH};
    struct encoder *encoder = state;

    if (!BrotliEncoderCompressStream(encoder->stream, operations[op], &step->in_left, &step->in,
                                     &step->out_left, &step->out, NULL))
        return -ENOMEM;
    if (op == WEIR__HTTP_CODING_FINISH)
        return !BrotliEncoderIsFinished(encoder->stream);
    return step->in_left > 0 || BrotliEncoderHasMoreOutput(encoder->stream);
}

static void free_encoder(void *state)
{
    struct encoder *encoder = state;

    BrotliEncoderDestroyInstance(encoder->stream);
    weir__http_coding_free(encoder->memory, encoder);
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
