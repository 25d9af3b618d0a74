/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/content_coding.h"

#include <errno.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "protocol/http/chars.h"

#define ENCODER_MEMORY                                                        \
    ((size_t)16 * 1024 * 1024) /* far above the need: not a limit in practice \
                                */
#define ENCODER_STEP_MIN 256

const weir__http_coding *const weir__http_codings[] = {
#ifdef WEIR_HAVE_ZSTD
    &weir__http_zstd,
#endif
#ifdef WEIR_HAVE_BROTLI
    &weir__http_brotli,
#endif
    &weir__http_gzip,
    &weir__http_deflate,
};
const size_t weir__http_coding_count = sizeof(weir__http_codings) / sizeof(weir__http_codings[0]);

const weir__http_coding *weir__http_coding_find(weir_span name)
{
    for (size_t i = 0; i < weir__http_coding_count; i++)
        if (weir__http_is_text(name, weir__http_codings[i]->name))
            return weir__http_codings[i];
    return weir__http_is_text(name, "x-gzip") ? &weir__http_gzip : NULL;
}

/* ---- memory ---- */

/* Stands before each block. */
union block_size {
    size_t size;
    max_align_t align;
};

void *weir__http_coding_alloc(weir__http_coding_memory *memory, size_t size)
{
    union block_size *block;

    if (size > memory->left) {
        memory->is_exceeded = true;
        return NULL;
    }
    block = weir_memory_alloc(sizeof(*block) + size);
    if (block == NULL)
        return NULL;
    block->size = size;
    memory->left -= size;
    return block + 1;
}

void weir__http_coding_free(weir__http_coding_memory *memory, void *block)
{
    union block_size *before = block;

    if (block == NULL)
        return;
    before--;
    memory->left += before->size;
    weir_memory_free(before);
}

int weir__http_coding_memory_error(const weir__http_coding_memory *memory)
{
    return memory->is_exceeded ? WEIR_ETOOLONG : -ENOMEM;
}

/* ---- encoding content ---- */

int weir__http_content_encoder_begin(weir__http_content_encoder *encoder,
                                     const weir__http_coding *coding, int level, int64_t length)
{
    encoder->coding = coding;
    encoder->memory = (weir__http_coding_memory){.left = ENCODER_MEMORY};
    return coding->create_encoder(&encoder->memory, level, length, &encoder->state);
}

int weir__http_content_encoder_run(weir__http_content_encoder *encoder, weir_span in,
                                   enum weir__http_coding_op op, weir_buf *out)
{
    weir__http_coding_step step = {.in = in.data, .in_left = in.length};
    int result;

    do {
        size_t room;

        if (weir_buf_writable(out) < ENCODER_STEP_MIN) {
            result = weir_buf_reserve(out, ENCODER_STEP_MIN);
            if (result < 0)
                return result;
        }
        room = weir_buf_writable(out);
        step.out = weir_buf_space(out);
        step.out_left = room;
        result = encoder->coding->encode(encoder->state, &step, op);
        (void)weir_buf_advance(out, room - step.out_left);
    } while (result > 0);
    return result;
}

void weir__http_content_encoder_end(weir__http_content_encoder *encoder)
{
    if (encoder->state != NULL)
        encoder->coding->free_encoder(encoder->state);
    encoder->state = NULL;
}
