/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip and deflate, by zlib. "deflate" is the format of zlib (RFC 1950); some senders leave its
 * header out, which the first two bytes show.
 */
#include "protocol/http/content_coding.h"

#include <errno.h>
#include <zlib.h>

#include <weir/error.h>

#define GZIP_WINDOW 16 /* added to the window bits: gzip instead of zlib */
#define WINDOW_BITS_MIN 9
#define WINDOW_BITS_MAX 15
#define GZIP_MAGIC 0x1f /* the first byte of a member */

struct encoder {
    z_stream stream;
    weir__http_coding_memory *memory;
};

enum decoder_state {
    AT_START,  /* nothing was decoded: the format is unknown */
    IN_STREAM, /* `stream` is initialized */
    AT_END,    /* the same, and the content may end here */
};

struct decoder {
    z_stream stream;
    weir__http_coding_memory *memory;
    enum decoder_state state;
    bool is_gzip;
    uint8_t header[2]; /* of deflate: the first bytes, before the format is known */
    unsigned header_length;
};

static void *alloc(void *opaque, unsigned count, unsigned size)
{
    return weir__http_coding_alloc(opaque, (size_t)count * size);
}

static void release(void *opaque, void *block)
{
    weir__http_coding_free(opaque, block);
}

static void set_memory(z_stream *stream, weir__http_coding_memory *memory)
{
    stream->zalloc = alloc;
    stream->zfree = release;
    stream->opaque = memory;
}

static unsigned at_most(size_t length)
{
    return length < UINT32_MAX ? (unsigned)length : UINT32_MAX;
}

/* Sets input and output of zlib to those of the step. */
static void begin_step(z_stream *stream, const weir__http_coding_step *step)
{
    stream->next_in = (Bytef *)(uintptr_t)step->in; /* zlib does not write to it */
    stream->avail_in = at_most(step->in_left);
    stream->next_out = step->out;
    stream->avail_out = at_most(step->out_left);
}

static void end_step(const z_stream *stream, weir__http_coding_step *step)
{
    step->in_left -= (size_t)(stream->next_in - step->in);
    step->in = stream->next_in;
    step->out_left -= (size_t)(stream->next_out - step->out);
    step->out = stream->next_out;
}

/* ---- encoder ---- */

/* Content that is known to be short needs a small window, and less memory: 16 KiB for 1 KiB. */
static int window_bits(int64_t length)
{
    int bits = WINDOW_BITS_MIN;

    if (length < 0)
        return WINDOW_BITS_MAX;
    while (bits < WINDOW_BITS_MAX && (INT64_C(1) << bits) < length)
        bits++;
    return bits;
}

static int create_encoder(weir__http_coding_memory *memory, int level, int64_t length, bool is_gzip,
                          void **ret_encoder)
{
    struct encoder *encoder = weir__http_coding_alloc(memory, sizeof(*encoder));
    int bits = window_bits(length), result;
    int memory_level = bits < WINDOW_BITS_MAX ? bits - WINDOW_BITS_MIN + 2 : 8;

    if (encoder == NULL)
        return -ENOMEM;
    *encoder = (struct encoder){.memory = memory};
    set_memory(&encoder->stream, memory);
    result = deflateInit2(&encoder->stream, level, Z_DEFLATED, bits + (is_gzip ? GZIP_WINDOW : 0),
                          memory_level, Z_DEFAULT_STRATEGY);
    if (result != Z_OK) {
        weir__http_coding_free(memory, encoder);
        return -ENOMEM;
    }
    *ret_encoder = encoder;
    return 0;
}

static int create_gzip_encoder(weir__http_coding_memory *memory, int level, int64_t length,
                               void **ret_encoder)
{
    return create_encoder(memory, level, length, true, ret_encoder);
}

static int create_deflate_encoder(weir__http_coding_memory *memory, int level, int64_t length,
                                  void **ret_encoder)
{
    return create_encoder(memory, level, length, false, ret_encoder);
}

static int encode(void *state, weir__http_coding_step *step, enum weir__http_coding_op op)
{
    static const int flushes[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH};
    struct encoder *encoder = state;
    int result;

    begin_step(&encoder->stream, step);
    result = deflate(&encoder->stream, flushes[op]);
    end_step(&encoder->stream, step);
    if (op == WEIR__HTTP_CODING_FINISH)
        return result != Z_STREAM_END;
    return step->in_left > 0 || step->out_left == 0;
}

static void free_encoder(void *state)
{
    struct encoder *encoder = state;

    (void)deflateEnd(&encoder->stream);
    weir__http_coding_free(encoder->memory, encoder);
}

/* ---- decoder ---- */

static int create_decoder(weir__http_coding_memory *memory, bool is_gzip, void **ret_decoder)
{
    struct decoder *decoder = weir__http_coding_alloc(memory, sizeof(*decoder));

    if (decoder == NULL)
        return weir__http_coding_memory_error(memory);
    *decoder = (struct decoder){.memory = memory, .is_gzip = is_gzip};
    set_memory(&decoder->stream, memory);
    *ret_decoder = decoder;
    return 0;
}

static int create_gzip_decoder(weir__http_coding_memory *memory, void **ret_decoder)
{
    return create_decoder(memory, true, ret_decoder);
}

static int create_deflate_decoder(weir__http_coding_memory *memory, void **ret_decoder)
{
    return create_decoder(memory, false, ret_decoder);
}

static bool is_zlib_header(const uint8_t *header)
{
    return (header[0] & 0x0f) == Z_DEFLATED && header[0] >> 4 <= 7 &&
           (header[0] * 256 + header[1]) % 31 == 0;
}

/* Takes the bytes that show the format; then initializes the stream. Returns 1 when that is done,
 * 0 if it needs more. */
static int begin_stream(struct decoder *decoder, weir__http_coding_step *step)
{
    int bits = WINDOW_BITS_MAX;

    while (!decoder->is_gzip && decoder->header_length < 2) {
        if (step->in_left == 0)
            return 0;
        decoder->header[decoder->header_length++] = *step->in++;
        step->in_left--;
    }
    if (decoder->is_gzip)
        bits += GZIP_WINDOW;
    else if (!is_zlib_header(decoder->header))
        bits = -bits;
    if (inflateInit2(&decoder->stream, bits) != Z_OK)
        return weir__http_coding_memory_error(decoder->memory);
    decoder->state = IN_STREAM;
    return 1;
}

static int check(const struct decoder *decoder, int result)
{
    switch (result) {
    case Z_OK:
    case Z_BUF_ERROR: /* no input or no room: not an error */
    case Z_STREAM_END:
        return 0;
    case Z_MEM_ERROR:
        return weir__http_coding_memory_error(decoder->memory);
    default:
        return WEIR_EMALFORMED;
    }
}

static int run_inflate(struct decoder *decoder, weir__http_coding_step *step)
{
    int result;

    begin_step(&decoder->stream, step);
    result = inflate(&decoder->stream, Z_NO_FLUSH);
    end_step(&decoder->stream, step);
    if (result == Z_STREAM_END)
        decoder->state = AT_END;
    return check(decoder, result);
}

/* Feeds the bytes that begin_stream took. They complete a stream of two bytes at most, which is an
 * empty one of raw deflate. */
static int feed_header(struct decoder *decoder, weir__http_coding_step *step)
{
    weir__http_coding_step header = {.in = decoder->header,
                                     .in_left = decoder->header_length,
                                     .out = step->out,
                                     .out_left = step->out_left};
    int err = run_inflate(decoder, &header);

    if (err == 0 && header.in_left > 0)
        return WEIR_EMALFORMED;
    step->out = header.out;
    step->out_left = header.out_left;
    decoder->header_length = 0;
    return err;
}

/* gzip may consist of several members; nothing else may follow. */
static int begin_member(struct decoder *decoder, const weir__http_coding_step *step)
{
    if (!decoder->is_gzip || step->in[0] != GZIP_MAGIC)
        return WEIR_EMALFORMED;
    if (inflateReset(&decoder->stream) != Z_OK)
        return WEIR_EMALFORMED;
    decoder->state = IN_STREAM;
    return 0;
}

static int decode(void *state, weir__http_coding_step *step)
{
    struct decoder *decoder = state;
    size_t in_before, out_before;
    int err = 0;

    if (decoder->state == AT_START) {
        err = begin_stream(decoder, step);
        if (err <= 0)
            return err;
        err = decoder->header_length > 0 ? feed_header(decoder, step) : 0;
    }
    do {
        in_before = step->in_left;
        out_before = step->out_left;
        if (err == 0 && decoder->state == AT_END && step->in_left > 0)
            err = begin_member(decoder, step);
        if (err == 0 && decoder->state == IN_STREAM)
            err = run_inflate(decoder, step);
    } while (err == 0 && step->out_left > 0 && step->in_left > 0 &&
             (step->in_left != in_before || step->out_left != out_before));
    return err < 0 ? err : decoder->state == AT_END;
}

static void free_decoder(void *state)
{
    struct decoder *decoder = state;

    if (decoder->state != AT_START)
        (void)inflateEnd(&decoder->stream);
    weir__http_coding_free(decoder->memory, decoder);
}

const weir__http_coding weir__http_gzip = {
    .name = "gzip",
    .create_encoder = create_gzip_encoder,
    .encode = encode,
    .free_encoder = free_encoder,
    .create_decoder = create_gzip_decoder,
    .decode = decode,
    .free_decoder = free_decoder,
};

const weir__http_coding weir__http_deflate = {
    .name = "deflate",
    .create_encoder = create_deflate_encoder,
    .encode = encode,
    .free_encoder = free_encoder,
    .create_decoder = create_deflate_decoder,
    .decode = decode,
    .free_decoder = free_decoder,
};
