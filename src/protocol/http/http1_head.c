/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/http1_head.h"

#include <errno.h>
#include <string.h>

#include "buffer/msg.h"
#include "protocol/http/http1_scan.h"

enum {
    START,  /* before the start line */
    METHOD, /* in the method of a request */
    TARGET,
    VERSION, /* in the version of a request, or in that and the status of a response */
    REASON,
    LINE, /* at the start of a field, or of the empty line */
    NAME,
    BLANKS, /* before a value */
    VALUE,
};

/* Heads up to this length are copied: that is cheaper than counting references to a buffer which
 * several requests share, and does not pin a large buffer as long as the request lives. */
#define COPY_MAX 512

void weir__http1_parser_init(weir__http1_parser *parser)
{
    *parser = (weir__http1_parser){.state = START};
}

void weir__http1_parser_init_trailers(weir__http1_parser *parser)
{
    *parser = (weir__http1_parser){.state = LINE, .is_trailer = true};
}

static int refuse(weir__http1_parser *parser, int status, const char *detail)
{
    parser->detail = detail;
    return -status;
}

/* The bytes that may be looked at. */
static weir_span visible(weir_span bytes, size_t start, uint32_t max)
{
    size_t limit = start + max + 2; /* and its CRLF */

    return weir_span_of(bytes.data, bytes.length < limit ? bytes.length : limit);
}

/* ---- request lines ---- */

/* Skips empty lines before a request (RFC 9112 2.2). */
static int skip_empty_lines(weir__http1_parser *parser, weir_span bytes)
{
    while (parser->at < bytes.length) {
        uint8_t byte = bytes.data[parser->at];

        if (byte == '\n')
            return refuse(parser, 400, "line feed without carriage return");
        if (byte != '\r')
            return 1;
        if (parser->at + 1 == bytes.length)
            return 0;
        if (bytes.data[parser->at + 1] != '\n')
            return refuse(parser, 400, "carriage return without line feed");
        parser->at += 2;
    }
    return 0;
}

static const uint8_t *scan_token(const uint8_t *at, const uint8_t *end)
{
    while (at < end && weir__http_char_is(*at, WEIR__HTTP_TOKEN))
        at++;
    return at;
}

static int parse_method(weir__http1_parser *parser, weir_http_request *request, weir_span bytes)
{
    weir_span method;

    parser->at =
        (uint32_t)(scan_token(bytes.data + parser->at, bytes.data + bytes.length) - bytes.data);
    if (parser->at == bytes.length)
        return 0;
    method = weir_span_of(bytes.data + parser->mark, parser->at - parser->mark);
    if (bytes.data[parser->at] != ' ' || method.length == 0)
        return refuse(parser, 400, "malformed method");
    request->method = (uint8_t)weir_http_method_of(method);
    request->method_text = parser->mark;
    request->method_length = (uint32_t)method.length;
    parser->at++;
    return 1;
}

static int parse_target(weir__http1_parser *parser, weir_http_request *request, weir_span bytes)
{
    const uint8_t *end = bytes.data + bytes.length;

    parser->at = (uint32_t)(weir__http1_scan_target(bytes.data + parser->at, end) - bytes.data);
    if (parser->at == bytes.length)
        return 0;
    if (bytes.data[parser->at] != ' ' || parser->at == parser->mark)
        return refuse(parser, 400, "malformed target");
    request->target = parser->mark;
    request->target_length = parser->at - parser->mark;
    parser->at++;
    return 1;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* "HTTP/1.1" and CRLF, byte by byte. */
static int parse_odd_version(weir__http1_parser *parser, weir_http_request *request,
                             weir_span bytes)
{
    static const char form[] = "HTTP/d.d\r\n";

    for (; parser->at < parser->mark + 10; parser->at++) {
        char expected = form[parser->at - parser->mark];
        uint8_t byte;

        if (parser->at == bytes.length)
            return 0;
        byte = bytes.data[parser->at];
        if (expected == 'd' ? !is_digit(byte) : byte != (uint8_t)expected)
            return refuse(parser, 400, "malformed version");
    }
    if (bytes.data[parser->mark + 5] != '1')
        return refuse(parser, 505, "version other than HTTP/1.1 and HTTP/1.0");
    request->head.version = bytes.data[parser->mark + 7] == '0' ? WEIR_HTTP_1_0 : WEIR_HTTP_1_1;
    return 1;
}

static inline int parse_version(weir__http1_parser *parser, weir_http_request *request,
                                weir_span bytes)
{
    if (bytes.length - parser->mark >= 10 &&
        memcmp(bytes.data + parser->mark, "HTTP/1.1\r\n", 10) == 0) {
        request->head.version = WEIR_HTTP_1_1;
        parser->at = parser->mark + 10;
        return 1;
    }
    return parse_odd_version(parser, request, bytes);
}

static int parse_request_line(weir__http1_parser *parser, weir_http_request *request,
                              weir_span bytes)
{
    int result = 1;

    if (parser->state == START) {
        result = skip_empty_lines(parser, bytes);
        if (result <= 0)
            return result;
        parser->mark = parser->at;
        parser->state = METHOD;
    }
    if (parser->state == METHOD) {
        result = parse_method(parser, request, bytes);
        if (result <= 0)
            return result;
        parser->mark = parser->at;
        parser->state = TARGET;
    }
    if (parser->state == TARGET) {
        result = parse_target(parser, request, bytes);
        if (result <= 0)
            return result;
        parser->mark = parser->at;
        parser->state = VERSION;
    }
    return parse_version(parser, request, bytes);
}

/* The length of one of the most frequent methods; 0 if it is another one. */
static inline uint32_t frequent_method(const uint8_t *at, weir_http_request *request)
{
    if (memcmp(at, "GET ", 4) == 0) {
        request->method = WEIR_HTTP_METHOD_GET;
        return 3;
    }
    if (memcmp(at, "POST ", 5) == 0) {
        request->method = WEIR_HTTP_METHOD_POST;
        return 4;
    }
    if (memcmp(at, "HEAD ", 5) == 0) {
        request->method = WEIR_HTTP_METHOD_HEAD;
        return 4;
    }
    return 0;
}

/* Parses a whole request line of the usual form at once. Any other is left to the state machine,
 * which sets everything again. */
static inline int fast_parse_request_line(weir__http1_parser *parser, weir_http_request *request,
                                          weir_span bytes)
{
    const uint8_t *end = bytes.data + bytes.length, *target, *blank;
    uint32_t length;

    if (bytes.length < 16)
        return 0;
    length = frequent_method(bytes.data, request);
    if (length == 0)
        return 0;
    target = bytes.data + length + 1;
    blank = weir__http1_scan_target(target, end);
    if (end - blank < 11 || blank == target || memcmp(blank, " HTTP/1.1\r\n", 11) != 0)
        return 0;
    request->method_text = 0;
    request->method_length = length;
    request->target = length + 1;
    request->target_length = (uint32_t)(blank - target);
    request->head.version = WEIR_HTTP_1_1;
    parser->at = (uint32_t)(blank + 11 - bytes.data);
    return 1;
}

int weir__http1_parse_request(weir__http1_parser *parser, const weir__http1_limits *limits,
                              weir_http_request *request, weir_span bytes)
{
    if (parser->state < LINE) {
        weir_span line = visible(bytes, 0, limits->max_start_line);
        int result = parser->at == 0 ? fast_parse_request_line(parser, request, line) : 0;

        if (result == 0)
            result = parse_request_line(parser, request, line);
        if (result == 0 && line.length < bytes.length)
            return refuse(parser, 414, "request line longer than the limit");
        if (result <= 0)
            return result;
        parser->fields = parser->at;
        parser->state = LINE;
    }
    return weir__http1_parse_fields(parser, limits, &request->head.headers, bytes);
}

/* ---- status lines ---- */

/* "HTTP/1.1 200", then a blank and a reason, or nothing. */
static int parse_status(weir__http1_parser *parser, weir_http_response *response, weir_span bytes)
{
    static const char form[] = "HTTP/1.d ddd";
    uint32_t length = sizeof(form) - 1;
    const uint8_t *status = bytes.data + 9;

    for (; parser->at < length; parser->at++) {
        char expected = form[parser->at];
        uint8_t byte;

        if (parser->at == bytes.length)
            return 0;
        byte = bytes.data[parser->at];
        if (expected == 'd' ? !is_digit(byte) : byte != (uint8_t)expected)
            return refuse(parser, 400, "malformed status line");
    }
    if (parser->at == bytes.length)
        return 0;
    if (bytes.data[length] != ' ' && bytes.data[length] != '\r')
        return refuse(parser, 400, "malformed status line");
    response->status =
        (uint16_t)((status[0] - '0') * 100 + (status[1] - '0') * 10 + (status[2] - '0'));
    if (response->status < 100 || response->status > 599)
        return refuse(parser, 400, "status below 100 or above 599");
    response->head.version = bytes.data[7] == '0' ? WEIR_HTTP_1_0 : WEIR_HTTP_1_1;
    if (bytes.data[length] == ' ')
        parser->at++;
    return 1;
}

/* The end of a line: 1 if it is there. `at` is at a byte that is not part of the line. */
static int parse_line_end(weir__http1_parser *parser, weir_span bytes)
{
    uint8_t byte = bytes.data[parser->at];

    if (byte == '\n')
        return refuse(parser, 400, "line feed without carriage return");
    if (byte != '\r')
        return refuse(parser, 400, "control character in a line");
    if (parser->at + 1 == bytes.length)
        return 0;
    if (bytes.data[parser->at + 1] != '\n')
        return refuse(parser, 400, "carriage return without line feed");
    parser->at += 2;
    return 1;
}

static int parse_reason(weir__http1_parser *parser, weir_http_response *response, weir_span bytes)
{
    const uint8_t *end = bytes.data + bytes.length;
    int result;

    parser->at = (uint32_t)(weir__http1_scan_value(bytes.data + parser->at, end) - bytes.data);
    if (parser->at == bytes.length)
        return 0;
    response->reason = parser->mark;
    response->reason_length = parser->at - parser->mark;
    response->has_reason = true;
    result = parse_line_end(parser, bytes);
    return result;
}

int weir__http1_parse_response(weir__http1_parser *parser, const weir__http1_limits *limits,
                               weir_http_response *response, weir_span bytes)
{
    weir_span line = visible(bytes, 0, limits->max_start_line);
    int result = 1;

    if (parser->state == START) {
        result = parse_status(parser, response, line);
        if (result > 0) {
            parser->mark = parser->at;
            parser->state = REASON;
        }
    }
    if (result > 0 && parser->state == REASON) {
        result = parse_reason(parser, response, line);
        if (result > 0) {
            parser->fields = parser->at;
            parser->state = LINE;
        }
    }
    if (result == 0 && line.length < bytes.length)
        return refuse(parser, 414, "status line longer than the limit");
    if (result <= 0)
        return result;
    return weir__http1_parse_fields(parser, limits, &response->head.headers, bytes);
}

/* ---- fields ---- */

/* Fields that describe the message, its framing or its route: without effect at its end, they would
 * only deceive (RFC 9110 6.5.1). */
static bool is_allowed_in_trailers(enum weir_http_name name)
{
    switch (name) {
    case WEIR_HTTP_AUTHORIZATION:
    case WEIR_HTTP_CACHE_CONTROL:
    case WEIR_HTTP_CONNECTION:
    case WEIR_HTTP_CONTENT_ENCODING:
    case WEIR_HTTP_CONTENT_LENGTH:
    case WEIR_HTTP_CONTENT_RANGE:
    case WEIR_HTTP_CONTENT_TYPE:
    case WEIR_HTTP_COOKIE:
    case WEIR_HTTP_EXPECT:
    case WEIR_HTTP_FORWARDED:
    case WEIR_HTTP_HOST:
    case WEIR_HTTP_KEEP_ALIVE:
    case WEIR_HTTP_PROXY_AUTHENTICATE:
    case WEIR_HTTP_PROXY_AUTHORIZATION:
    case WEIR_HTTP_PROXY_CONNECTION:
    case WEIR_HTTP_RANGE:
    case WEIR_HTTP_SET_COOKIE:
    case WEIR_HTTP_TE:
    case WEIR_HTTP_TRAILER:
    case WEIR_HTTP_TRANSFER_ENCODING:
    case WEIR_HTTP_UPGRADE:
    case WEIR_HTTP_VIA:
    case WEIR_HTTP_WWW_AUTHENTICATE:
    case WEIR_HTTP_X_FORWARDED_FOR:
    case WEIR_HTTP_X_FORWARDED_PROTO:
        return false;
    default:
        return true;
    }
}

static inline bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* Stores a field whose value may have blanks behind it. */
__attribute__((always_inline)) static inline int push(weir__http1_parser *parser,
                                                      const weir__http1_limits *limits,
                                                      weir_http_headers *headers,
                                                      const uint8_t *bytes, weir__http_field field)
{
    if (parser->count++ >= limits->max_header_fields)
        return refuse(parser, 431, "more fields than the limit");
    while (field.value_length > 0 && is_blank(bytes[field.value + field.value_length - 1]))
        field.value_length--;
    if (parser->is_trailer && !is_allowed_in_trailers((enum weir_http_name)field.id))
        return 0;
    return weir__http_headers_push(headers, field);
}

/* The same for the state machine. */
static int push_scanned(weir__http1_parser *parser, const weir__http1_limits *limits,
                        weir_http_headers *headers, const uint8_t *bytes, uint32_t end)
{
    weir_span name = weir_span_of(bytes + parser->mark, parser->name_length);
    weir__http_field field = {.name = parser->mark,
                              .name_length = (uint16_t)parser->name_length,
                              .value = parser->value,
                              .value_length = end - parser->value,
                              .id = (uint8_t)weir_http_name_of(name)};

    return push(parser, limits, headers, bytes, field);
}

static int refuse_name(weir__http1_parser *parser, uint8_t byte)
{
    if (parser->name_length == 0)
        return refuse(parser, 400,
                      byte == ' ' || byte == '\t' ? "folded field" : "field name is empty");
    if (byte == ' ' || byte == '\t')
        return refuse(parser, 400, "blank before the colon of a field");
    return refuse(parser, 400, "malformed field name");
}

static inline int parse_name(weir__http1_parser *parser, weir_span bytes)
{
    const uint8_t *end = bytes.data + bytes.length;

    parser->at = (uint32_t)(scan_token(bytes.data + parser->at, end) - bytes.data);
    if (parser->at == bytes.length)
        return 0;
    parser->name_length = parser->at - parser->mark;
    if (bytes.data[parser->at] != ':' || parser->name_length == 0)
        return refuse_name(parser, bytes.data[parser->at]);
    if (parser->name_length > UINT16_MAX)
        return refuse(parser, 431, "field name longer than 64 KiB");
    parser->at++;
    return 1;
}

/* The colon behind a name; NULL if something else comes first, or the name is too long. Names with
 * a number are recognized as a whole, so their bytes need not be looked at. */
static inline const uint8_t *scan_name(const uint8_t *name, const uint8_t *end, uint8_t *ret_id)
{
    const uint8_t *at = name;

#ifdef WEIR__HTTP1_VECTOR
    if (end - name >= WEIR__HTTP1_VECTOR) {
        unsigned length = weir__http1_bytes_before(name, ':');

        *ret_id = (uint8_t)weir_http_name_of(weir_span_of(name, length));
        if (*ret_id != WEIR_HTTP_OTHER && length < WEIR__HTTP1_VECTOR)
            return name + length;
    }
#endif
    at = scan_token(name, end);
    if (at == name || at == end || *at != ':' || at - name > UINT16_MAX)
        return NULL;
    *ret_id = (uint8_t)weir_http_name_of(weir_span_of(name, (size_t)(at - name)));
    return at;
}

/* Parses whole lines of the usual form, as many as there are. A line of another form, or that is
 * not complete, is left to the state machine. */
static inline int fast_parse_lines(weir__http1_parser *parser, const weir__http1_limits *limits,
                                   weir_http_headers *headers, weir_span bytes)
{
    const uint8_t *start = bytes.data, *end = start + bytes.length, *at = start + parser->at;
    int result = 0;

    while (end - at > 2 && *at != '\r' && result == 0) {
        const uint8_t *colon, *value, *line_end;
        weir__http_field field;

        colon = scan_name(at, end, &field.id);
        if (colon == NULL)
            break;
        value = colon + 1;
        while (value < end && is_blank(*value))
            value++;
        line_end = weir__http1_scan_value(value, end);
        if (end - line_end < 2 || line_end[0] != '\r' || line_end[1] != '\n')
            break;
        field.name = (uint32_t)(at - start);
        field.name_length = (uint16_t)(colon - at);
        field.value = (uint32_t)(value - start);
        field.value_length = (uint32_t)(line_end - value);
        at = line_end + 2;
        result = push(parser, limits, headers, start, field);
    }
    parser->at = (uint32_t)(at - start);
    return result;
}

/* Up to the value of a field; 1 if it has begun. */
static int parse_field_start(weir__http1_parser *parser, weir_span bytes)
{
    int result;

    if (parser->state == NAME) {
        result = parse_name(parser, bytes);
        if (result <= 0)
            return result;
        parser->state = BLANKS;
    }
    if (parser->state == BLANKS) {
        while (parser->at < bytes.length && is_blank(bytes.data[parser->at]))
            parser->at++;
        if (parser->at == bytes.length)
            return 0;
        parser->value = parser->at;
        parser->state = VALUE;
    }
    return 1;
}

static int parse_value(weir__http1_parser *parser, const weir__http1_limits *limits,
                       weir_http_headers *headers, weir_span bytes)
{
    const uint8_t *end = bytes.data + bytes.length;
    uint32_t value_end;
    int result;

    parser->at = (uint32_t)(weir__http1_scan_value(bytes.data + parser->at, end) - bytes.data);
    if (parser->at == bytes.length)
        return 0;
    value_end = parser->at;
    result = parse_line_end(parser, bytes);
    if (result <= 0)
        return result;
    parser->state = LINE;
    result = push_scanned(parser, limits, headers, bytes.data, value_end);
    return result < 0 ? result : 1;
}

static int parse_lines(weir__http1_parser *parser, const weir__http1_limits *limits,
                       weir_http_headers *headers, weir_span bytes)
{
    int result = 1;

    while (result > 0) {
        if (parser->state == LINE) {
            result = fast_parse_lines(parser, limits, headers, bytes);
            if (result < 0)
                return result;
            if (parser->at == bytes.length)
                return 0;
            if (bytes.data[parser->at] == '\r')
                return parse_line_end(parser, bytes);
            parser->mark = parser->at;
            parser->state = NAME;
        }
        result = parse_field_start(parser, bytes);
        if (result > 0)
            result = parse_value(parser, limits, headers, bytes);
    }
    return result;
}

int weir__http1_parse_fields(weir__http1_parser *parser, const weir__http1_limits *limits,
                             weir_http_headers *headers, weir_span bytes)
{
    weir_span lines = visible(bytes, parser->fields, limits->max_header_bytes);
    int result = parse_lines(parser, limits, headers, lines);

    if (result == 0 && lines.length < bytes.length)
        return refuse(parser, 431, "fields longer than the limit");
    return result;
}

void weir__http1_keep(weir_http_headers *headers, weir_buf **received, weir_buf *in, size_t length)
{
    if (length <= COPY_MAX && weir__http_headers_room(headers) >= length) {
        headers->added += (uint32_t)length;
        memcpy(headers->end - headers->added, weir_buf_bytes(in), length);
        headers->received = headers->end - headers->added;
    } else {
        headers->received = weir_buf_bytes(in);
        (void)weir__msg_retain_owned(weir_buf_msg(in)); /* the codec's, which lends it to nobody */
        *received = in;
    }
}
