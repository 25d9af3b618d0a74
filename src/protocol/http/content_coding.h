/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content codings: gzip, deflate, br and zstd as one table of functions each, over memory only. The
 * libraries behind them are used in content_coding_zlib.c, content_coding_brotli.c and
 * content_coding_zstd.c, and nowhere else.
 *
 * Encoders and decoders are streams: each step consumes input and fills output, as far as both
 * last.
 */
#ifndef WEIR_PROTOCOL_HTTP_CONTENT_CODING_H
#define WEIR_PROTOCOL_HTTP_CONTENT_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/buf.h>

/* The memory that the decoders of one message may have: a window of 8 MiB, the maximum of RFC 9659,
 * and tables. A window is touched only as far as content is decoded. */
#define WEIR__HTTP_DECODER_MEMORY ((size_t)10 * 1024 * 1024)
#define WEIR__HTTP_WINDOW_LOG_MAX 23

/* A bounded number of bytes, for the library behind a coding. */
typedef struct weir__http_coding_memory {
    size_t left;
    bool is_exceeded; /* an allocation failed because of the bound */
} weir__http_coding_memory;

void *weir__http_coding_alloc(weir__http_coding_memory *memory, size_t size);
void weir__http_coding_free(weir__http_coding_memory *memory, void *block);

/* The error of a failed allocation: WEIR_ETOOLONG beyond the bound, otherwise -ENOMEM. */
int weir__http_coding_memory_error(const weir__http_coding_memory *memory);

/* Input and output of a step; advanced by it. */
typedef struct weir__http_coding_step {
    const uint8_t *in;
    size_t in_left;
    uint8_t *out;
    size_t out_left;
} weir__http_coding_step;

enum weir__http_coding_op {
    WEIR__HTTP_CODING_RUN,
    WEIR__HTTP_CODING_FLUSH, /* everything so far can be decoded by the receiver */
    WEIR__HTTP_CODING_FINISH,
};

typedef struct weir__http_coding {
    const char *name;

    /* `level` is 1 to 9; `length` that of the content, -1 = unknown: a hint. */
    int (*create_encoder)(weir__http_coding_memory *memory, int level, int64_t length,
                          void **ret_encoder);
    /* Returns 1 if it needs more room for output, 0 if input and operation are done. */
    int (*encode)(void *encoder, weir__http_coding_step *step, enum weir__http_coding_op op);
    void (*free_encoder)(void *encoder);

    int (*create_decoder)(weir__http_coding_memory *memory, void **ret_decoder);
    /* Consumes input until it or the room for output is used up. Returns 1 if the content may end
     * here, 0 if more must follow. Fails with WEIR_EMALFORMED (also: bytes behind the end),
     * WEIR_ETOOLONG (too much memory), -ENOMEM. */
    int (*decode)(void *decoder, weir__http_coding_step *step);
    void (*free_decoder)(void *decoder);
} weir__http_coding;

extern const weir__http_coding weir__http_gzip;
extern const weir__http_coding weir__http_deflate; /* decodes deflate without a header, too */
extern const weir__http_coding weir__http_brotli;  /* only with WEIR_HAVE_BROTLI */
extern const weir__http_coding weir__http_zstd;    /* only with WEIR_HAVE_ZSTD */

/* The codings of this build, the preferred one first. */
#define WEIR__HTTP_CODINGS_MAX 4
extern const weir__http_coding *const weir__http_codings[];
extern const size_t weir__http_coding_count;

/* The coding with a name, case-insensitively; "x-gzip" is gzip. NULL if it is unknown. */
const weir__http_coding *weir__http_coding_find(weir_span name);

/* ---- encoding content ---- */

typedef struct weir__http_content_encoder {
    const weir__http_coding *coding;
    void *state; /* NULL = not in use */
    weir__http_coding_memory memory;
} weir__http_content_encoder;

int weir__http_content_encoder_begin(weir__http_content_encoder *encoder,
                                     const weir__http_coding *coding, int level, int64_t length);

/* Encodes all input into `out`, which grows as needed. Fails with -ENOMEM. */
int weir__http_content_encoder_run(weir__http_content_encoder *encoder, weir_span in,
                                   enum weir__http_coding_op op, weir_buf *out);

/* Frees the state, if there is one. */
void weir__http_content_encoder_end(weir__http_content_encoder *encoder);

/* ---- decoding content ---- */

#define WEIR__HTTP_CODINGS_STACKED 3

typedef struct weir__http_decoder_limits {
    uint64_t max_decoded;
    uint64_t max_ratio; /* beyond WEIR__HTTP_RATIO_FREE bytes */
} weir__http_decoder_limits;

#define WEIR__HTTP_RATIO_FREE ((uint64_t)1024 * 1024)

typedef struct weir__http_content_decoder weir__http_content_decoder;

/*
 * Creates a decoder for a list of codings as in Content-Encoding: "gzip, br" is decoded in reverse
 * order; "identity" and empty elements are ignored. `*ret_decoder` is NULL if there is nothing to
 * decode. Fails with -ENOTSUP (an unknown coding, or more than three), -ENOMEM.
 */
int weir__http_content_decoder_create(const weir_span *lists, size_t count,
                                      const weir__http_decoder_limits *limits,
                                      weir__http_content_decoder **ret_decoder);
void weir__http_content_decoder_free(weir__http_content_decoder *decoder);

/*
 * Decodes until `in`, which is advanced, is used up or `out` has no room left; it does not grow.
 * Returns 1 if `out` is full and there may be more, 0 if more input is needed. Fails with
 * WEIR_EMALFORMED, WEIR_ETOOLONG, -ENOMEM.
 */
int weir__http_content_decoder_run(weir__http_content_decoder *decoder, weir_span *in,
                                   weir_buf *out);

/* True if the content may end here. Content without any bytes may. */
bool weir__http_content_decoder_is_complete(const weir__http_content_decoder *decoder);

#endif
