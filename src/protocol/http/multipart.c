/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of multipart/form-data.
 *
 *      --boundary CRLF fields CRLF CRLF content CRLF--boundary CRLF ... CRLF--boundary--
 *
 * Content ends with the delimiter, CRLF--boundary. Only its first byte is a CR; so where a
 * comparison with it fails, no earlier byte than the failing one can begin another, and the search
 * goes on there: each byte of content is compared once, after memchr has found the CR. A delimiter
 * that the end of the input cuts is not kept but counted: if it turns out to be content, its bytes
 * are those of the delimiter itself.
 */
#include <weir/http_body.h>

#include <errno.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "base/options.h"
#include "protocol/http/chars.h"
#include "protocol/http/parameters.h"
#include "protocol/http/part.h"

#define MAX_PARTS 1000
#define MAX_HEADER_BYTES 8192
#define MAX_BOUNDARY 70
#define MAX_PADDING 256 /* blanks behind a boundary */

enum state {
    PREAMBLE,     /* before the first boundary */
    BEHIND,       /* behind a boundary: "--", or blanks and CRLF */
    BEHIND_DASH,  /* behind a boundary and "-" */
    BEHIND_BLANK, /* blanks behind a boundary */
    BEHIND_CR,    /* behind a boundary and CR */
    FIELDS,       /* the head of a part */
    CONTENT,
    DELIMITED, /* content has been reported, and a delimiter follows */
    EPILOGUE,  /* behind the last boundary */
};

struct weir_http_multipart {
    enum state state;
    int err;                             /* the failure, for further calls */
    uint8_t delimiter[4 + MAX_BOUNDARY]; /* CRLF--boundary */
    size_t delimiter_length;
    size_t matched; /* bytes of the delimiter at the end of the input so far */
    size_t line;    /* bytes of the last line of the fields so far */
    size_t padding;
    size_t parts;
    size_t max_parts;
    size_t max_header_bytes;
    uint64_t bytes;
    uint64_t max_bytes;
    weir_buf *fields; /* and text decoded from them */
    weir_http_part part;
};

/* ---- lifecycle ---- */

static bool is_boundary(weir_span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!weir__http_char_is(text.data[i], WEIR__HTTP_ALPHA | WEIR__HTTP_DIGIT) &&
            (text.data[i] == '\0' || strchr("'()+_,-./:=? ", text.data[i]) == NULL))
            return false;
    return text.length > 0 && text.length <= MAX_BOUNDARY && text.data[text.length - 1] != ' ';
}

static int find_boundary(weir_span content_type, weir_span *ret_boundary)
{
    weir_span type = weir__http_parameters_begin(&content_type);
    weir__http_parameter parameter;

    if (!weir__http_is_text(type, "multipart/form-data"))
        return -ENOTSUP;
    if (weir__http_parameters_find(content_type, "boundary", &parameter) <= 0 ||
        !is_boundary(parameter.value))
        return WEIR_EMALFORMED;
    *ret_boundary = parameter.value;
    return 0;
}

static void init(weir_http_multipart *multipart, weir_span boundary,
                 const weir_http_multipart_options *options)
{
    memset(multipart, 0, sizeof(*multipart));
    memcpy(multipart->delimiter, "\r\n--", 4);
    memcpy(multipart->delimiter + 4, boundary.data, boundary.length);
    multipart->delimiter_length = 4 + boundary.length;
    multipart->matched = 2; /* the first boundary may be at the very start */
    multipart->max_parts = options->max_parts > 0 ? (size_t)options->max_parts : MAX_PARTS;
    multipart->max_header_bytes =
        options->max_header_bytes > 0 ? (size_t)options->max_header_bytes : MAX_HEADER_BYTES;
    multipart->max_bytes = options->max_bytes > 0 ? options->max_bytes : UINT64_MAX;
}

int weir_http_multipart_create(weir_span content_type,
                               const weir_http_multipart_options *caller_options,
                               weir_http_multipart **ret_multipart)
{
    weir_http_multipart_options options;
    weir_http_multipart *multipart;
    weir_span boundary;
    int err = weir__options_read(&options, sizeof(options), caller_options);

    if (!err)
        err = weir__options_check("http", NULL, WEIR__OPTION_FROM(&options, max_parts, 0),
                                  WEIR__OPTION_FROM(&options, max_header_bytes, 0));
    if (!err)
        err = find_boundary(content_type, &boundary);
    if (err)
        return err;
    multipart = weir_memory_alloc(sizeof(*multipart));
    if (multipart == NULL)
        return -ENOMEM;
    init(multipart, boundary, &options);
    err = weir_buf_create(0, 0, &multipart->fields);
    if (err) {
        weir_memory_free(multipart);
        return err;
    }
    *ret_multipart = multipart;
    return 0;
}

void weir_http_multipart_release(weir_http_multipart *multipart)
{
    if (multipart == NULL)
        return;
    weir_buf_release(multipart->fields);
    weir_memory_free(multipart);
}

const weir_http_part *weir_http_multipart_part(const weir_http_multipart *multipart)
{
    return &multipart->part;
}

weir_span weir__http_multipart_block(const weir_http_multipart *multipart)
{
    return weir_buf_span(multipart->fields);
}

int weir_http_multipart_finish(const weir_http_multipart *multipart)
{
    if (multipart->err)
        return multipart->err;
    return multipart->state == EPILOGUE ? 0 : WEIR_EMALFORMED;
}

/* ---- the search for the delimiter ---- */

static void consume(weir_http_multipart *multipart, weir_span *input, size_t length)
{
    *input = weir__http_span_from(*input, length);
    multipart->bytes += length;
}

/* The number of bytes that the input and the delimiter, from `from` on, have in common. */
static size_t compare(const weir_http_multipart *multipart, weir_span input, size_t from)
{
    size_t length = 0;

    while (length < input.length && from + length < multipart->delimiter_length &&
           input.data[length] == multipart->delimiter[from + length])
        length++;
    return length;
}

/* Continues a delimiter that the input before has begun. */
static void resume(weir_http_multipart *multipart, weir_span *input, weir_span *ret_data)
{
    size_t more = compare(multipart, *input, multipart->matched);
    bool is_cut = more == input->length;

    multipart->matched += more;
    consume(multipart, input, more);
    if (multipart->matched == multipart->delimiter_length) {
        multipart->state = DELIMITED;
    } else if (!is_cut) {
        *ret_data = weir_span_of(multipart->delimiter, multipart->matched);
        multipart->matched = 0;
    }
}

/* Consumes content up to a delimiter and the delimiter itself, or what the input has of both. */
static void search(weir_http_multipart *multipart, weir_span *input, weir_span *ret_data)
{
    size_t at = 0, common;
    ssize_t found;

    for (;; at += common) {
        found = weir_span_find(weir__http_span_from(*input, at), '\r');
        if (found < 0) {
            *ret_data = *input;
            consume(multipart, input, input->length);
            return;
        }
        at += (size_t)found;
        common = compare(multipart, weir__http_span_from(*input, at), 0);
        if (common == multipart->delimiter_length || at + common == input->length)
            break;
    }
    *ret_data = weir_span_of(input->data, at);
    consume(multipart, input, at + common);
    multipart->matched = common;
    if (common == multipart->delimiter_length)
        multipart->state = DELIMITED;
}

/* Returns DATA if there is some, otherwise MORE. */
static int read_content(weir_http_multipart *multipart, weir_span *input, weir_span *ret_data)
{
    weir_span data = {NULL, 0};
    bool is_content = multipart->state == CONTENT;

    if (multipart->matched > 0)
        resume(multipart, input, &data);
    else
        search(multipart, input, &data);
    if (data.length == 0 || !is_content)
        return WEIR_HTTP_MULTIPART_MORE;
    *ret_data = data;
    return WEIR_HTTP_MULTIPART_DATA;
}

/* ---- boundaries and heads ---- */

/* One byte behind a boundary. */
static int read_behind(weir_http_multipart *multipart, weir_span *input)
{
    uint8_t byte = input->data[0];
    enum state state = multipart->state;
    bool is_blank = (byte == ' ' || byte == '\t') && (state == BEHIND || state == BEHIND_BLANK);

    consume(multipart, input, 1);
    if (is_blank && ++multipart->padding <= MAX_PADDING) {
        multipart->state = BEHIND_BLANK;
    } else if (byte == '-' && state == BEHIND) {
        multipart->state = BEHIND_DASH;
    } else if (byte == '\r' && (state == BEHIND || state == BEHIND_BLANK)) {
        multipart->state = BEHIND_CR;
    } else if (byte == '-' && state == BEHIND_DASH) {
        multipart->state = EPILOGUE;
        return WEIR_HTTP_MULTIPART_END;
    } else if (byte == '\n' && state == BEHIND_CR) {
        if (multipart->parts++ == multipart->max_parts)
            return WEIR_ETOOLONG;
        multipart->state = FIELDS;
        weir_buf_clear(multipart->fields);
        multipart->line = 0;
    } else {
        return WEIR_EMALFORMED;
    }
    return WEIR_HTTP_MULTIPART_MORE;
}

static int begin_part(weir_http_multipart *multipart)
{
    weir_span text = weir_buf_span(multipart->fields);
    ssize_t decoded;
    int err = weir_buf_reserve(multipart->fields, text.length);

    if (err)
        return err;
    text = weir_span_of(weir_buf_bytes(multipart->fields), text.length - 2); /* without the CRLF */
    decoded = weir__http_part_parse(text, weir_buf_space(multipart->fields), &multipart->part);
    if (decoded < 0)
        return (int)decoded;
    err = weir_buf_advance(multipart->fields, (size_t)decoded);
    multipart->state = CONTENT;
    multipart->matched = 0;
    return err ? err : WEIR_HTTP_MULTIPART_PART;
}

/* A line of the head, or what the input has of it. An empty one ends the head. */
static int read_fields(weir_http_multipart *multipart, weir_span *input)
{
    ssize_t end = weir_span_find(*input, '\n');
    size_t length = end < 0 ? input->length : (size_t)end + 1;
    int err;

    if (length > multipart->max_header_bytes - weir_buf_readable(multipart->fields))
        return WEIR_ETOOLONG;
    err = weir_buf_write_bytes(multipart->fields, input->data, length);
    if (err)
        return err;
    consume(multipart, input, length);
    multipart->line += length;
    if (end < 0)
        return WEIR_HTTP_MULTIPART_MORE;
    if (multipart->line == 2 &&
        weir_buf_bytes(multipart->fields)[weir_buf_readable(multipart->fields) - 2] == '\r')
        return begin_part(multipart);
    multipart->line = 0;
    return WEIR_HTTP_MULTIPART_MORE;
}

static int step(weir_http_multipart *multipart, weir_span *input, weir_span *ret_data)
{
    switch (multipart->state) {
    case PREAMBLE:
    case CONTENT:
        return read_content(multipart, input, ret_data);
    case FIELDS:
        return read_fields(multipart, input);
    case EPILOGUE:
        consume(multipart, input, input->length);
        return WEIR_HTTP_MULTIPART_MORE;
    default:
        return read_behind(multipart, input);
    }
}

int weir_http_multipart_next(weir_http_multipart *multipart, weir_span *input, weir_span *ret_data)
{
    int event = multipart->err;

    while (event == WEIR_HTTP_MULTIPART_MORE) {
        if (multipart->state == DELIMITED) {
            multipart->state = BEHIND;
            multipart->matched = 0;
            multipart->padding = 0;
            if (multipart->parts > 0)
                return WEIR_HTTP_MULTIPART_PART_END;
        }
        if (input->length == 0)
            break;
        event = step(multipart, input, ret_data);
        if (event >= 0 && multipart->bytes > multipart->max_bytes)
            event = WEIR_ETOOLONG;
    }
    if (event < 0)
        multipart->err = event;
    return event;
}
