/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages are raw deflate, flushed at their end. A flush ends with an empty stored block, 00 00 ff
 * ff, which the sender leaves out and the receiver adds.
 */
#include "protocol/websocket/deflate.h"

#include <errno.h>
#include <zlib.h>

#include <weir/memory.h>

#include "protocol/http/content_coding.h"

#define TAIL_LENGTH 4
#define STEP_MIN 128
#define MEMORY_MAX ((size_t)1024 * 1024) /* far above the need: not a limit in practice */

static const uint8_t tail[TAIL_LENGTH] = {0x00, 0x00, 0xff, 0xff};

struct weir__ws_deflate {
    weir__ws_deflate_terms terms;
    uint8_t level;
    bool has_compressor; /* `compressor` is initialized */
    bool has_decompressor;
    bool is_final;   /* the last block of the input was marked as the last of all */
    bool is_in_tail; /* the bytes of the message are decompressed, but not those of the tail */
    weir_span tail;  /* what is left of it */
    weir__http_coding_memory memory;
    z_stream compressor;
    z_stream decompressor;
};

/* ---- memory ---- */

static void *alloc(void *opaque, unsigned count, unsigned size)
{
    return weir__http_coding_alloc(opaque, (size_t)count * size);
}

static void release(void *opaque, void *block)
{
    weir__http_coding_free(opaque, block);
}

int weir__ws_deflate_create(const weir__ws_deflate_terms *terms, int level,
                            weir__ws_deflate **ret_deflate)
{
    weir__ws_deflate *deflate = weir_memory_alloc(sizeof(*deflate));

    if (deflate == NULL)
        return -ENOMEM;
    *deflate = (weir__ws_deflate){
        .terms = *terms, .level = (uint8_t)level, .memory = {.left = MEMORY_MAX}};
    *ret_deflate = deflate;
    return 0;
}

static void end_compressor(weir__ws_deflate *deflate)
{
    if (deflate->has_compressor)
        (void)deflateEnd(&deflate->compressor);
    deflate->has_compressor = false;
}

static void end_decompressor(weir__ws_deflate *deflate)
{
    if (deflate->has_decompressor)
        (void)inflateEnd(&deflate->decompressor);
    deflate->has_decompressor = false;
}

void weir__ws_deflate_free(weir__ws_deflate *deflate)
{
    if (deflate == NULL)
        return;
    end_compressor(deflate);
    end_decompressor(deflate);
    weir_memory_free(deflate);
}

size_t weir__ws_deflate_memory(const weir__ws_deflate *deflate)
{
    return sizeof(*deflate) + MEMORY_MAX - deflate->memory.left;
}

static unsigned at_most(size_t length)
{
    return length < UINT32_MAX ? (unsigned)length : UINT32_MAX;
}

static void set_input(z_stream *stream, weir_span input)
{
    stream->next_in = (Bytef *)(uintptr_t)input.data; /* zlib does not write to it */
    stream->avail_in = at_most(input.length);
}

/* Sets the output to the space of a buffer, at most `max` bytes. Fails as weir_buf_reserve. */
static int set_output(z_stream *stream, size_t min, size_t max, weir_buf *to)
{
    size_t room;

    if (weir_buf_writable(to) < min) {
        int err = weir_buf_reserve(to, min);

        if (err < 0)
            return err;
    }
    room = weir_buf_writable(to);
    stream->next_out = weir_buf_space(to);
    stream->avail_out = at_most(room < max ? room : max);
    return 0;
}

/* ---- compressing ---- */

bool weir__ws_deflate_compresses(const weir__ws_deflate *deflate)
{
    return deflate->terms.compress_bits >= 9;
}

static int begin_compressor(weir__ws_deflate *deflate)
{
    z_stream *stream = &deflate->compressor;
    int bits = deflate->terms.compress_bits;
    int memory_level = bits < 15 ? bits - 6 : 8;

    if (deflate->has_compressor)
        return 0;
    *stream = (z_stream){.zalloc = alloc, .zfree = release, .opaque = &deflate->memory};
    if (deflateInit2(stream, deflate->level, Z_DEFLATED, -bits, memory_level, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return -ENOMEM;
    deflate->has_compressor = true;
    return 0;
}

/* Runs until the input is consumed and flushed. */
static int run_compressor(z_stream *stream, weir_buf *to)
{
    int err;

    do {
        size_t room;

        /* Output that is filled exactly costs another flush, of five bytes. */
        err = set_output(stream, STEP_MIN, SIZE_MAX, to);
        if (err < 0)
            return err;
        room = stream->avail_out;
        (void)deflate(stream, Z_SYNC_FLUSH); /* Z_BUF_ERROR: nothing is left to do */
        (void)weir_buf_advance(to, room - stream->avail_out);
    } while (stream->avail_out == 0);
    return 0;
}

/* Removes the end of the flush; an empty message is one byte. */
static int remove_tail(weir_buf *to, size_t start)
{
    size_t end = weir_buf_write_index(to);

    if (end - start > TAIL_LENGTH)
        return weir_buf_set_write_index(to, end - TAIL_LENGTH);
    (void)weir_buf_set_write_index(to, start);
    return weir_buf_write_bytes(to, tail, 1);
}

int weir__ws_deflate_compress(weir__ws_deflate *deflate, weir_span part, bool is_last, weir_buf *to)
{
    size_t start = weir_buf_write_index(to);
    int err = begin_compressor(deflate);

    if (err < 0)
        return err;
    set_input(&deflate->compressor, part);
    err = run_compressor(&deflate->compressor, to);
    if (err == 0 && is_last)
        err = remove_tail(to, start);
    if (is_last && deflate->terms.compress_alone)
        end_compressor(deflate);
    return err;
}

/* ---- decompressing ---- */

static int begin_decompressor(weir__ws_deflate *deflate)
{
    z_stream *stream = &deflate->decompressor;

    if (deflate->has_decompressor)
        return 0;
    *stream = (z_stream){.zalloc = alloc, .zfree = release, .opaque = &deflate->memory};
    if (inflateInit2(stream, -deflate->terms.decompress_bits) != Z_OK)
        return -ENOMEM;
    deflate->has_decompressor = true;
    deflate->is_final = false;
    return 0;
}

/* One call of zlib, with room for `min` to `max` bytes. */
static int inflate_step(weir__ws_deflate *deflate, size_t min, size_t max, weir_buf *to)
{
    z_stream *stream = &deflate->decompressor;
    int err = set_output(stream, min, max, to), result;
    size_t room = stream->avail_out;

    if (err < 0)
        return err;
    if (deflate->is_final && stream->avail_in > 0) {
        (void)inflateResetKeep(stream); /* the window stays */
        deflate->is_final = false;
    }
    result = inflate(stream, Z_SYNC_FLUSH);
    (void)weir_buf_advance(to, room - stream->avail_out);
    deflate->is_final |= result == Z_STREAM_END;
    if (result == Z_MEM_ERROR)
        return -ENOMEM;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR ? 0 : WEIR_EMALFORMED;
}

/* Decompresses from `*input`; returns as weir__ws_deflate_decompress. */
static int run_decompressor(weir__ws_deflate *deflate, weir_span *input, size_t *max, weir_buf *to)
{
    z_stream *stream = &deflate->decompressor;

    for (;;) {
        size_t before = weir_buf_readable(to), wanted = 2 * input->length, had = input->length;
        int err;

        if (*max == 0)
            return 1;
        wanted = wanted < STEP_MIN ? STEP_MIN : wanted;
        set_input(stream, *input);
        err = inflate_step(deflate, wanted < *max ? wanted : *max, *max, to);
        if (err < 0)
            return err;
        *max -= weir_buf_readable(to) - before;
        *input = weir_span_of(stream->next_in, had - (size_t)(stream->next_in - input->data));
        if (stream->avail_out > 0 && input->length == 0)
            return 0;
        if (stream->avail_out > 0 && !deflate->is_final)
            return WEIR_EMALFORMED;
    }
}

/* The message must end with a whole block. Bit 128: at the end of a block; 0 to 63: unused bits. */
static int end_message(weir__ws_deflate *deflate)
{
    int state = deflate->decompressor.data_type;
    bool is_whole = deflate->is_final || ((state & 128) != 0 && (state & 63) == 0);

    deflate->is_in_tail = false;
    if (deflate->terms.decompress_alone)
        end_decompressor(deflate);
    return is_whole ? 0 : WEIR_EMALFORMED;
}

int weir__ws_deflate_decompress(weir__ws_deflate *deflate, weir_span *part, bool is_last,
                                size_t max, weir_buf *to)
{
    int result = begin_decompressor(deflate);

    if (result == 0 && !deflate->is_in_tail)
        result = run_decompressor(deflate, part, &max, to);
    if (result != 0 || !is_last)
        return result;
    if (!deflate->is_in_tail) {
        deflate->is_in_tail = true;
        /* Without a block behind it, the last block of all has no tail. */
        deflate->tail = weir_span_of(tail, deflate->is_final ? 0 : TAIL_LENGTH);
    }
    result = deflate->tail.length > 0 ? run_decompressor(deflate, &deflate->tail, &max, to) : 0;
    return result == 0 ? end_message(deflate) : result;
}
