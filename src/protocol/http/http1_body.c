/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/http1_body.h"

#include <errno.h>

#include "protocol/http/http1_scan.h"

enum {
    SIZE,      /* in the size of a chunk */
    EXTENSION, /* behind it, up to the end of the line */
    SIZE_LF,   /* at the end of that line */
    DATA,
    DATA_CR, /* behind the data */
    DATA_LF,
    TRAILERS,
    ENDED,
};

#define SIZE_DIGITS_MAX 16
#define EXTENSIONS_MAX 4096
#define GATHER_MAX 2048 /* chunks up to this size are copied together */

void weir__http1_body_init(weir__http1_body *body, const weir__http1_framing *framing)
{
    *body = (weir__http1_body){
        .content = (uint8_t)framing->content, .state = SIZE, .left = framing->length};
    if (framing->content != WEIR__HTTP1_LENGTH)
        body->left = 0;
}

void weir__http1_body_deinit(weir__http1_body *body)
{
    if (body->end != NULL)
        weir_msg_release(weir_http_end_msg(body->end));
    body->end = NULL;
}

weir_msg *weir__http1_body_take_end(weir__http1_body *body)
{
    weir_http_end *end = body->end;

    body->end = NULL;
    return end != NULL ? weir_http_end_msg(end) : weir_http_end_static();
}

static int refuse(weir__http1_parser *parser, const char *detail)
{
    parser->detail = detail;
    return -400;
}

/* Up to `length` bytes, without a copy. */
static int take(weir_buf *in, uint64_t length, weir_buf **ret_content)
{
    size_t there = weir_buf_readable(in);

    return weir_buf_read_slice(in, length < there ? (size_t)length : there, ret_content);
}

/* ---- chunks ---- */

/* Extensions are not for us; a client must not make us read them for ever. */
static int read_extension(weir__http1_body *body, weir__http1_parser *parser, weir_buf *in)
{
    weir_span bytes = weir_buf_span(in);
    const uint8_t *stop = weir__http1_scan_value(bytes.data, bytes.data + bytes.length);
    size_t length = (size_t)(stop - bytes.data);

    if (length > (size_t)(EXTENSIONS_MAX - body->extension))
        return refuse(parser, "chunk extensions longer than 4 KiB");
    body->extension = (uint16_t)(body->extension + length);
    (void)weir_buf_skip(in, length);
    if (length == bytes.length)
        return 1;
    if (*stop != '\r')
        return refuse(parser, "chunk size line does not end with CRLF");
    (void)weir_buf_skip(in, 1);
    body->state = SIZE_LF;
    return 1;
}

static int read_size(weir__http1_body *body, weir__http1_parser *parser, uint64_t max_chunk,
                     weir_buf *in)
{
    uint8_t byte = *weir_buf_bytes(in);

    if (weir__http_char_is(byte, WEIR__HTTP_HEX)) {
        if (body->digits == SIZE_DIGITS_MAX)
            return refuse(parser, "chunk size with more than 16 digits");
        body->digits++;
        body->left = body->left << 4 | weir__http_hex_value(byte);
        (void)weir_buf_skip(in, 1);
        return 1;
    }
    if (body->digits == 0 || (byte != ';' && byte != '\r'))
        return refuse(parser, "malformed chunk size");
    if (body->left > max_chunk)
        return refuse(parser, "chunk larger than the limit");
    body->state = byte == ';' ? EXTENSION : SIZE_LF;
    (void)weir_buf_skip(in, 1);
    return 1;
}

static int read_byte(weir__http1_body *body, weir__http1_parser *parser, weir_buf *in,
                     uint8_t expected, uint8_t next)
{
    if (*weir_buf_bytes(in) != expected)
        return refuse(parser, body->state == SIZE_LF ? "chunk size line does not end with CRLF"
                                                     : "no CRLF behind the data of a chunk");
    (void)weir_buf_skip(in, 1);
    body->state = next;
    return 1;
}

/* Behind the size line: data, or trailers behind the last chunk. */
static int begin_chunk(weir__http1_body *body, weir__http1_parser *parser, weir_buf *in)
{
    int result = read_byte(body, parser, in, '\n', body->left > 0 ? DATA : TRAILERS);

    if (result > 0 && body->state == TRAILERS)
        weir__http1_parser_init_trailers(parser);
    body->digits = 0;
    return result;
}

/* A small chunk is copied behind those before it. Returns 0 if it has to wait for the next call. */
static int read_data(weir__http1_body *body, weir_buf *in, weir_buf **content)
{
    size_t there = weir_buf_readable(in);
    bool is_small = body->left <= GATHER_MAX && body->left <= there;
    int err;

    if (!is_small && *content != NULL)
        return 0;
    if (!is_small) {
        err = take(in, body->left, content);
        if (err < 0)
            return err;
        body->left -= weir_buf_readable(*content);
        body->state = body->left == 0 ? DATA_CR : DATA;
        return 0;
    }
    if (*content == NULL) {
        err = weir_buf_create(there < GATHER_MAX * 8 ? there : GATHER_MAX * 8, 0, content);
        if (err < 0)
            return err;
    }
    if (weir_buf_writable(*content) < body->left)
        return 0;
    (void)weir_buf_write_bytes(*content, weir_buf_bytes(in), (size_t)body->left);
    (void)weir_buf_skip(in, (size_t)body->left);
    body->left = 0;
    body->state = DATA_CR;
    return 1;
}

/* The trailers stay in `in` until they are complete. */
static int read_trailers(weir__http1_body *body, weir__http1_parser *parser,
                         const weir__http1_limits *limits, weir_buf *in)
{
    const uint8_t *bytes = weir_buf_bytes(in);
    int result;

    if (body->end == NULL && parser->at == 0 && weir_buf_readable(in) >= 2 && bytes[0] == '\r' &&
        bytes[1] == '\n') {
        (void)weir_buf_skip(in, 2);
        body->state = ENDED;
        return 2;
    }
    if (body->end == NULL) {
        result = weir_http_end_create(&body->end);
        if (result < 0)
            return result;
    }
    result = weir__http1_parse_fields(parser, limits, &body->end->trailers, weir_buf_span(in));
    if (result <= 0)
        return result;
    weir__http1_keep(&body->end->trailers, &body->end->received, in, parser->at);
    (void)weir_buf_skip(in, parser->at);
    if (body->end->trailers.count == 0) /* the empty line came in two parts, or all were dropped */
        weir__http1_body_deinit(body);
    body->state = ENDED;
    return 2;
}

static int read_chunks(weir__http1_body *body, weir__http1_parser *parser,
                       const weir__http1_limits *limits, uint64_t max_chunk, weir_buf *in,
                       weir_buf **content)
{
    int result = 1;

    while (result == 1 && weir_buf_readable(in) > 0) {
        switch (body->state) {
        case SIZE:
            result = read_size(body, parser, max_chunk, in);
            break;
        case EXTENSION:
            result = read_extension(body, parser, in);
            break;
        case SIZE_LF:
            result = begin_chunk(body, parser, in);
            break;
        case DATA:
            result = read_data(body, in, content);
            if (result == 0)
                return 1; /* `content` is complete */
            break;
        case DATA_CR:
            result = read_byte(body, parser, in, '\r', DATA_LF);
            break;
        case DATA_LF:
            result = read_byte(body, parser, in, '\n', SIZE);
            break;
        default:
            result = read_trailers(body, parser, limits, in);
        }
    }
    return result;
}

int weir__http1_body_read(weir__http1_body *body, weir__http1_parser *parser,
                          const weir__http1_limits *limits, uint64_t max_chunk, weir_buf *in,
                          weir_buf **ret_content)
{
    int err;

    *ret_content = NULL;
    switch (body->content) {
    case WEIR__HTTP1_NO_CONTENT:
        return 2;
    case WEIR__HTTP1_CHUNKED:
        return read_chunks(body, parser, limits, max_chunk, in, ret_content);
    case WEIR__HTTP1_LENGTH:
        err = take(in, body->left, ret_content);
        if (err < 0)
            return err;
        body->left -= weir_buf_readable(*ret_content);
        return body->left == 0 ? 2 : 1;
    default:
        err = take(in, UINT64_MAX, ret_content);
        return err < 0 ? err : 1;
    }
}
