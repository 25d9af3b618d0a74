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

/* Parts of the extensions of a chunk (RFC 9112 7.1.1). */
enum {
    SEMICOLON, /* expected, behind blanks */
    BEFORE_NAME,
    NAME,
    EQUALS, /* or a semicolon expected, behind a name and blanks */
    BEFORE_VALUE,
    VALUE,
    QUOTED,
    ESCAPED,
    BEHIND_QUOTED,
};

#define SIZE_DIGITS_MAX 16
/* Extensions are not for us, and a peer must not make us read them for ever. A chunk may have 4 KiB
 * of them. All together may have 128 bytes a chunk and as many as there is content, signatures say,
 * and 16 KiB more. */
#define EXTENSIONS_MAX 4096
#define EXTENSIONS_USUAL 128
#define EXCESS_MAX (16 * 1024)
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

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* Behind a name or a value. -1 if the byte must not follow. */
static int part_behind(int part, uint8_t byte)
{
    if (is_blank(byte))
        return part == NAME || part == EQUALS ? EQUALS : SEMICOLON;
    if (byte == ';')
        return BEFORE_NAME;
    return byte == '=' && (part == NAME || part == EQUALS) ? BEFORE_VALUE : -1;
}

/* The part of the extensions that the byte belongs to; -1 if it must not follow. */
static int next_part(int part, uint8_t byte)
{
    bool is_token = weir__http_char_is(byte, WEIR__HTTP_TOKEN);

    switch (part) {
    case BEFORE_NAME:
        return is_token ? NAME : is_blank(byte) ? BEFORE_NAME : -1;
    case BEFORE_VALUE:
        return is_token ? VALUE : byte == '"' ? QUOTED : is_blank(byte) ? BEFORE_VALUE : -1;
    case NAME:
    case VALUE:
        return is_token ? part : part_behind(part, byte);
    case QUOTED:
        if (byte == '"')
            return BEHIND_QUOTED;
        return !weir__http_char_is(byte, WEIR__HTTP_VALUE) ? -1 : byte == '\\' ? ESCAPED : QUOTED;
    case ESCAPED:
        return weir__http_char_is(byte, WEIR__HTTP_VALUE) ? QUOTED : -1;
    default:
        return part_behind(part, byte);
    }
}

static int read_extension(weir__http1_body *body, weir__http1_parser *parser, weir_buf *in)
{
    weir_span bytes = weir_buf_span(in);
    size_t length = 0;
    int part = body->part;

    while (length < bytes.length && bytes.data[length] != '\r' && part >= 0)
        part = next_part(part, bytes.data[length++]);
    if (length > (size_t)(EXTENSIONS_MAX - body->extension))
        return refuse(parser, "chunk extensions longer than 4 KiB");
    body->extension = (uint16_t)(body->extension + length);
    if (part >= 0 && length < bytes.length)
        body->state = SIZE_LF;
    if (part < 0 ||
        (body->state == SIZE_LF && part != NAME && part != VALUE && part != BEHIND_QUOTED))
        return refuse(parser, "malformed chunk extension");
    body->part = (uint8_t)part;
    (void)weir_buf_skip(in, length + (body->state == SIZE_LF));
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
    if (body->digits == 0 || (byte != ';' && byte != '\r' && !is_blank(byte)))
        return refuse(parser, "malformed chunk size");
    if (body->left > max_chunk)
        return refuse(parser, "chunk larger than the limit");
    body->state = byte == '\r' ? SIZE_LF : EXTENSION;
    body->part = byte == ';' ? BEFORE_NAME : SEMICOLON;
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
    uint64_t excess = (uint64_t)body->excess + body->extension;
    int result = read_byte(body, parser, in, '\n', body->left > 0 ? DATA : TRAILERS);

    if (result > 0 && body->extension > 0) {
        excess =
            excess > EXTENSIONS_USUAL + body->left ? excess - EXTENSIONS_USUAL - body->left : 0;
        if (excess > EXCESS_MAX)
            return refuse(parser, "more chunk extensions than content");
        body->excess = (uint16_t)excess;
        body->extension = 0;
    }
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
