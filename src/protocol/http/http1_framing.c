/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/http1_framing.h"

#include <string.h>

#include <weir/http_uri.h>

#include "base/no_stack_protector.h"
#include "protocol/http/message.h"

#define LENGTH_DIGITS_MAX 18

static int refuse(const char **ret_detail, int status, const char *detail)
{
    *ret_detail = detail;
    return -status;
}

/* The number of fields with a name, counted up to 2. */
static int count(const weir_http_headers *headers, enum weir_http_name name)
{
    weir_span value;
    size_t index = 0;

    if (!weir_http_headers_next(headers, name, &index, &value))
        return 0;
    return weir_http_headers_next(headers, name, &index, &value) ? 2 : 1;
}

/* ---- content ---- */

/* A tabulator behind a value is white space, which other parsers take for a part of the value. The
 * received line is still behind it. */
static bool has_tabulator_behind(weir_span value)
{
    const uint8_t *at = value.data + value.length;

    while (*at == ' ')
        at++;
    return *at == '\t';
}

/* A repeated field is refused even if all lines are equal: it is the list that is refused, too. */
static int read_content_length(const weir_http_headers *headers, weir__http1_framing *framing,
                               const char **ret_detail)
{
    weir_span text = weir_http_headers_get(headers, WEIR_HTTP_CONTENT_LENGTH);

    if (headers->has_repeated && count(headers, WEIR_HTTP_CONTENT_LENGTH) > 1)
        return refuse(ret_detail, 400, "several Content-Length fields");
    if (text.length == 0 || text.length > LENGTH_DIGITS_MAX ||
        !weir__http_chars_are(text, WEIR__HTTP_DIGIT) || has_tabulator_behind(text))
        return refuse(ret_detail, 400, "malformed Content-Length");
    framing->length = 0;
    for (size_t i = 0; i < text.length; i++)
        framing->length = framing->length * 10 + (text.data[i] - (unsigned)'0');
    framing->content = framing->length > 0 ? WEIR__HTTP1_LENGTH : WEIR__HTTP1_NO_CONTENT;
    return 0;
}

/* True if a list has an element without text, which recipients may ignore, and some do not. */
static bool has_empty_element(weir_span list)
{
    bool is_empty = true;

    for (size_t i = 0; i < list.length; i++)
        if (list.data[i] != ',')
            is_empty = is_empty && (list.data[i] == ' ' || list.data[i] == '\t');
        else if (is_empty)
            return true;
        else
            is_empty = true;
    return is_empty;
}

/* "chunked" must be the only coding, once. */
static int read_transfer_encoding(const weir_http_headers *headers, weir__http1_framing *framing,
                                  const char **ret_detail)
{
    bool is_chunked = false, has_other = false;
    weir_span list, coding;
    size_t index = 0;

    while (weir_http_headers_next(headers, WEIR_HTTP_TRANSFER_ENCODING, &index, &list)) {
        if (has_empty_element(list) || has_tabulator_behind(list))
            return refuse(ret_detail, 400, "malformed Transfer-Encoding");
        while (weir__http_list_next(&list, &coding)) {
            if (is_chunked)
                return refuse(ret_detail, 400, "chunked is not the last transfer coding");
            if (weir__http_is_text(coding, "chunked"))
                is_chunked = true;
            else
                has_other = true;
        }
    }
    if (has_other)
        return refuse(ret_detail, 501, "unknown transfer coding");
    framing->content = WEIR__HTTP1_CHUNKED;
    return 0;
}

/* Content-Length or Transfer-Encoding, at most one of them. */
static int read_content(const weir__http_head *head, weir__http1_framing *framing,
                        const char **ret_detail)
{
    const weir_http_headers *headers = &head->headers;
    bool has_length = weir__http_headers_have(headers, WEIR_HTTP_CONTENT_LENGTH);

    if (!weir__http_headers_have(headers, WEIR_HTTP_TRANSFER_ENCODING))
        return has_length ? read_content_length(headers, framing, ret_detail) : 0;
    if (has_length)
        return refuse(ret_detail, 400, "Transfer-Encoding together with Content-Length");
    if (head->version == WEIR_HTTP_1_0)
        return refuse(ret_detail, 400, "Transfer-Encoding in HTTP/1.0");
    return read_transfer_encoding(headers, framing, ret_detail);
}

static bool is_persistent(const weir__http_head *head)
{
    const weir_http_headers *headers = &head->headers;
    weir_span value;

    if (!weir__http_headers_have(headers, WEIR_HTTP_CONNECTION))
        return head->version != WEIR_HTTP_1_0;
    value = weir_http_headers_get(headers, WEIR_HTTP_CONNECTION);
    if (!headers->has_repeated && value.length == 10 && memcmp(value.data, "keep-alive", 10) == 0)
        return true; /* what browsers send */
    if (weir_http_headers_have_token(headers, WEIR_HTTP_CONNECTION, "close"))
        return false;
    return head->version != WEIR_HTTP_1_0 ||
           weir_http_headers_have_token(headers, WEIR_HTTP_CONNECTION, "keep-alive");
}

static int64_t content_length(const weir__http1_framing *framing)
{
    if (framing->content == WEIR__HTTP1_LENGTH)
        return (int64_t)framing->length;
    return framing->content == WEIR__HTTP1_NO_CONTENT ? 0 : WEIR_HTTP_UNKNOWN_LENGTH;
}

/* ---- requests ---- */

/* Most requests have the Host of the request before: the last one is remembered. */
static bool is_valid_host(weir_span host)
{
    static _Thread_local struct {
        uint8_t length;
        uint8_t text[63];
    } last __attribute__((tls_model("initial-exec")));

    if (host.length == last.length && memcmp(host.data, last.text, host.length) == 0)
        return true;
    if (!weir_http_authority_is_valid(host))
        return false;
    if (host.length <= sizeof(last.text)) {
        last.length = (uint8_t)host.length;
        memcpy(last.text, host.data, host.length);
    }
    return true;
}

/* Host may be empty: the target has no authority then (RFC 9110 7.2). */
WEIR__NO_STACK_PROTECTOR static int check_host(weir_http_request *request, const char **ret_detail)
{
    const weir_http_headers *headers = &request->head.headers;
    weir_span host = weir_http_headers_get(headers, WEIR_HTTP_HOST);

    if (host.data == NULL) {
        if (request->head.version == WEIR_HTTP_1_0)
            return 0;
        return refuse(ret_detail, 400, "no Host field");
    }
    if (headers->has_repeated && count(headers, WEIR_HTTP_HOST) > 1)
        return refuse(ret_detail, 400, "several Host fields");
    if (host.length > 0 && !is_valid_host(host))
        return refuse(ret_detail, 400, "malformed Host");
    return 0;
}

/* The authority of an absolute target replaces Host, so that nobody decides by the other one. */
static int check_absolute_target(weir_http_request *request, weir_span target,
                                 const char **ret_detail)
{
    weir_span authority = weir__http_target_authority(target), host;

    if (authority.data == NULL || !weir_http_authority_is_valid(authority))
        return refuse(ret_detail, 400, "malformed target");
    host = weir_http_headers_get(&request->head.headers, WEIR_HTTP_HOST);
    if (host.data == NULL || weir__http_same_text(host, authority))
        return 0;
    return weir_http_headers_set(&request->head.headers, WEIR_HTTP_HOST, authority);
}

static int check_target(weir_http_request *request, const char **ret_detail)
{
    weir_span target = weir_http_request_target(request);
    weir_http_uri authority;

    if (request->has_fragment)
        return refuse(ret_detail, 400, "fragment in the target");
    if (request->method == WEIR_HTTP_METHOD_CONNECT) { /* with a port: RFC 9110 9.3.6 */
        if (weir_http_authority_parse(target, &authority) < 0 || authority.port <= 0)
            return refuse(ret_detail, 400, "malformed target of CONNECT");
        return 0;
    }
    if (target.data[0] == '/')
        return 0;
    if (target.length == 1 && target.data[0] == '*' && request->method == WEIR_HTTP_METHOD_OPTIONS)
        return 0;
    return check_absolute_target(request, target, ret_detail);
}

static int check_expect(weir_http_request *request, const weir__http1_framing *framing,
                        const char **ret_detail)
{
    weir_span value;
    size_t index = 0;

    while (weir_http_headers_next(&request->head.headers, WEIR_HTTP_EXPECT, &index, &value))
        if (!weir__http_is_text(value, "100-continue"))
            return refuse(ret_detail, 417, "expectation other than 100-continue");
    request->expects_continue = index > 0 && framing->content != WEIR__HTTP1_NO_CONTENT &&
                                request->head.version != WEIR_HTTP_1_0;
    return 0;
}

/* A tunnel begins where the head of CONNECT ends, and TRACE has no content by definition. */
static bool may_have_content(const weir_http_request *request)
{
    return request->method != WEIR_HTTP_METHOD_CONNECT && request->method != WEIR_HTTP_METHOD_TRACE;
}

#define BIT(name, word) ((name) / 64 == (word) ? UINT64_C(1) << ((name) % 64) : 0)
#define FRAMING_BITS(word)                                                          \
    (BIT(WEIR_HTTP_CONTENT_LENGTH, word) | BIT(WEIR_HTTP_TRANSFER_ENCODING, word) | \
     BIT(WEIR_HTTP_CONNECTION, word) | BIT(WEIR_HTTP_EXPECT, word))

/* True if only Host is to be checked. */
static inline bool is_usual(const weir_http_request *request)
{
    const uint64_t *present = request->head.headers.present;

    return ((present[0] & FRAMING_BITS(0)) | (present[1] & FRAMING_BITS(1))) == 0 &&
           request->head.version == WEIR_HTTP_1_1 && request->method != WEIR_HTTP_METHOD_CONNECT &&
           !request->has_fragment && weir__http_request_target(request).data[0] == '/';
}

WEIR__NO_STACK_PROTECTOR int weir__http1_check_request(weir_http_request *request,
                                                       weir__http1_framing *ret_framing,
                                                       const char **ret_detail)
{
    int err;

    weir__http_request_find_path(request);
    *ret_framing = (weir__http1_framing){.content = WEIR__HTTP1_NO_CONTENT, .is_persistent = true};
    if (is_usual(request))
        return check_host(request, ret_detail);
    ret_framing->is_persistent = is_persistent(&request->head);
    err = check_host(request, ret_detail);
    if (err == 0)
        err = check_target(request, ret_detail);
    if (err == 0)
        err = read_content(&request->head, ret_framing, ret_detail);
    if (err == 0 && ret_framing->content != WEIR__HTTP1_NO_CONTENT && !may_have_content(request))
        err = refuse(ret_detail, 400, "content in a request with CONNECT or TRACE");
    if (err == 0 && weir__http_headers_have(&request->head.headers, WEIR_HTTP_EXPECT))
        err = check_expect(request, ret_framing, ret_detail);
    request->head.content_length = content_length(ret_framing);
    return err;
}

/* ---- responses ---- */

int weir__http1_check_response(weir_http_response *response, enum weir_http_method method,
                               weir__http1_framing *ret_framing, const char **ret_detail)
{
    int status = response->status, err;

    *ret_framing = (weir__http1_framing){.content = WEIR__HTTP1_UNTIL_CLOSE};
    err = read_content(&response->head, ret_framing, ret_detail);
    if (err < 0)
        return err;
    if (status < 200 &&
        (ret_framing->content == WEIR__HTTP1_LENGTH || ret_framing->content == WEIR__HTTP1_CHUNKED))
        return refuse(ret_detail, 400, "content in a response with status 100 to 199");
    ret_framing->is_persistent =
        is_persistent(&response->head) && ret_framing->content != WEIR__HTTP1_UNTIL_CLOSE;
    response->head.content_length = content_length(ret_framing);
    if (status < 200 || status == 204 || status == 304 || method == WEIR_HTTP_METHOD_HEAD) {
        if (ret_framing->content == WEIR__HTTP1_UNTIL_CLOSE) /* neither field: the usual case */
            ret_framing->is_persistent = is_persistent(&response->head);
        if (status < 200 || status == 204)
            response->head.content_length = 0;
        ret_framing->content = WEIR__HTTP1_NO_CONTENT;
    }
    response->closes = !ret_framing->is_persistent;
    return 0;
}
