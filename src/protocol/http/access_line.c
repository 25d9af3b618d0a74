/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/access_line.h"

#include <stdio.h>

#include <weir/http_uri.h>

#include "base/calendar.h"
#include "protocol/http/chars.h"
#include "protocol/http/date.h"
#include "protocol/http/forwarded.h"

/* Cut values: with six bytes for each, all of them together are below the maximum of a line. */
#define TARGET_MAX 8192
#define VALUE_MAX 2048

#define SECOND_NS INT64_C(1000000000)
#define SECONDS_OF_DAY 86400

enum escaping { AS_TEXT, AS_JSON };

/* ---- values ---- */

static bool is_plain(uint8_t byte)
{
    return byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
}

/* \x0a in text; \u000a in JSON, where a byte above 127 counts as Latin-1. */
static int write_escaped(weir_buf *to, weir_span value, enum escaping escaping, size_t max)
{
    int err = 0;

    if (value.length > max)
        value.length = max;
    while (err == 0 && value.length > 0) {
        size_t plain = 0;

        while (plain < value.length && is_plain(value.data[plain]))
            plain++;
        err = weir_buf_write_bytes(to, value.data, plain);
        if (err == 0 && plain < value.length) {
            err = weir_buf_printf(to, escaping == AS_JSON ? "\\u00%02x" : "\\x%02x",
                                  value.data[plain]);
            plain++;
        }
        value.data += plain;
        value.length -= plain;
    }
    return err;
}

/* ---- secrets in query strings ---- */

static bool is_secret(weir_span name)
{
    static const char *const names[] = {"token", "access_token", "password"};
    uint8_t decoded[64];
    ssize_t length;

    if (name.length > sizeof(decoded))
        return false;
    length = weir_http_query_decode(name, decoded);
    for (size_t i = 0; length >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
        if (weir__http_is_text(weir_span_of(decoded, (size_t)length), names[i]))
            return true;
    return false;
}

/* Writes a target or a URI, of at most `max` bytes. */
static int write_uri(weir_buf *to, weir_span uri, enum escaping escaping, size_t max)
{
    weir_span rest = uri, name, value;
    ssize_t query = weir_span_find(uri, '?');
    const uint8_t *from = uri.data, *end;
    int err = 0;

    if (query < 0)
        return write_escaped(to, uri, escaping, max);
    rest = weir__http_span_from(uri, (size_t)query + 1);
    if (uri.length > max)
        uri.length = max;
    end = uri.data + uri.length;
    while (err == 0 && weir_http_query_next(&rest, &name, &value)) {
        if (value.length == 0 || value.data >= end || !is_secret(name))
            continue;
        err = write_escaped(to, weir_span_of(from, (size_t)(value.data - from)), escaping, max);
        if (err == 0)
            err = weir_buf_write_string(to, "-");
        from = value.data + value.length;
    }
    if (err == 0 && from < end)
        err = write_escaped(to, weir_span_of(from, (size_t)(end - from)), escaping, max);
    return err;
}

static weir_span header_of(const weir__http_access *access, enum weir_http_name name)
{
    if (access->request == NULL)
        return weir_span_of(NULL, 0);
    return weir_http_headers_get(weir_http_request_headers(access->request), name);
}

static const char *version_text(const weir_http_request *request)
{
    switch (weir_http_request_version(request)) {
    case WEIR_HTTP_1_0:
        return "HTTP/1.0";
    case WEIR_HTTP_1_1:
        return "HTTP/1.1";
    default:
        return "HTTP/2.0";
    }
}

/* ---- times ---- */

/* "10/Oct/2026:13:55:36 +0000" of "Sat, 10 Oct 2026 13:55:36 GMT". Formatted once per second and
 * thread. */
static const char *common_time(int64_t time_ns)
{
    static _Thread_local struct {
        int64_t second;
        char text[32];
    } last;
    int64_t second = time_ns / SECOND_NS;
    char date[WEIR__HTTP_DATE_SIZE];

    if (second != last.second || last.text[0] == '\0') {
        (void)weir__http_date_format(second, date);
        (void)snprintf(last.text, sizeof(last.text), "%.2s/%.3s/%.4s:%.8s +0000", date + 5,
                       date + 8, date + 12, date + 17);
        last.second = second;
    }
    return last.text;
}

/* "2026-10-10T13:55:36", formatted once per second and thread. */
static const char *json_time(int64_t time_ns)
{
    static _Thread_local struct {
        int64_t second;
        char text[32];
    } last;
    int64_t second = time_ns / SECOND_NS;

    if (second != last.second || last.text[0] == '\0') {
        weir__date date = weir__date_of_days(second / SECONDS_OF_DAY);
        unsigned of_day = (unsigned)(second % SECONDS_OF_DAY);

        (void)snprintf(last.text, sizeof(last.text), "%04u-%02u-%02uT%02u:%02u:%02u", date.year,
                       date.month, date.day, of_day / 3600, of_day / 60 % 60, of_day % 60);
        last.second = second;
    }
    return last.text;
}

/* ---- lines ---- */

static int write_quoted(weir_buf *to, weir_span value)
{
    int err = weir_buf_write_string(to, " \"");

    if (err == 0)
        err = value.length > 0 ? write_uri(to, value, AS_TEXT, VALUE_MAX)
                               : weir_buf_write_string(to, "-");
    return err == 0 ? weir_buf_write_string(to, "\"") : err;
}

static int write_request(weir_buf *to, const weir_http_request *request)
{
    int err;

    if (request == NULL)
        return weir_buf_write_string(to, "\"-\"");
    err = weir_buf_write_string(to, "\"");
    if (err == 0)
        err = write_escaped(to, weir_http_request_method_text(request), AS_TEXT, VALUE_MAX);
    if (err == 0)
        err = weir_buf_write_string(to, " ");
    if (err == 0)
        err = write_uri(to, weir_http_request_target(request), AS_TEXT, TARGET_MAX);
    return err == 0 ? weir_buf_printf(to, " %s\"", version_text(request)) : err;
}

static int write_text_line(weir_buf *to, const weir__http_access *access, bool is_combined)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    int err = write_escaped(to, weir__http_address_host(access->remote, text), AS_TEXT, VALUE_MAX);

    if (err == 0)
        err = weir_buf_printf(to, " - - [%s] ", common_time(access->time_ns));
    if (err == 0)
        err = write_request(to, access->request);
    if (err == 0)
        err = weir_buf_printf(to, " %d %llu", access->status, (unsigned long long)access->bytes);
    if (err == 0 && is_combined)
        err = write_quoted(to, header_of(access, WEIR_HTTP_REFERER));
    if (err == 0 && is_combined)
        err = write_quoted(to, header_of(access, WEIR_HTTP_USER_AGENT));
    return err == 0 ? weir_buf_write_string(to, "\n") : err;
}

/* A member, unless it is empty. */
static int write_member(weir_buf *to, const char *name, weir_span value, size_t max)
{
    int err;

    if (value.length == 0)
        return 0;
    err = weir_buf_printf(to, ",\"%s\":\"", name);
    if (err == 0)
        err = write_uri(to, value, AS_JSON, max);
    return err == 0 ? weir_buf_write_string(to, "\"") : err;
}

static int write_json_request(weir_buf *to, const weir__http_access *access)
{
    const weir_http_request *request = access->request;
    int err;

    if (request == NULL)
        return 0;
    err = write_member(to, "method", weir_http_request_method_text(request), VALUE_MAX);
    if (err == 0)
        err = write_member(to, "target", weir_http_request_target(request), TARGET_MAX);
    if (err == 0)
        err = write_member(to, "version", weir_span_of_text(version_text(request)), VALUE_MAX);
    if (err == 0)
        err = write_member(to, "host", weir_http_request_authority(request), VALUE_MAX);
    if (err == 0)
        err = write_member(to, "referer", header_of(access, WEIR_HTTP_REFERER), VALUE_MAX);
    if (err == 0)
        err = write_member(to, "user_agent", header_of(access, WEIR_HTTP_USER_AGENT), VALUE_MAX);
    if (err == 0)
        err = write_member(to, "request_id", header_of(access, WEIR_HTTP_X_REQUEST_ID), VALUE_MAX);
    return err;
}

static int write_json_line(weir_buf *to, const weir__http_access *access)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    int err = weir_buf_printf(to, "{\"time\":\"%s.%03dZ\"", json_time(access->time_ns),
                              (int)(access->time_ns % SECOND_NS / 1000000));

    if (err == 0)
        err = write_member(to, "remote", weir__http_address_host(access->remote, text), VALUE_MAX);
    if (err == 0)
        err = write_json_request(to, access);
    if (err == 0)
        err = weir_buf_printf(to, ",\"status\":%d,\"bytes\":%llu,\"duration_us\":%lld",
                              access->status, (unsigned long long)access->bytes,
                              (long long)(access->duration_ns / 1000));
    if (err == 0 && access->is_aborted)
        err = weir_buf_write_string(to, ",\"aborted\":true");
    if (err == 0 && access->detail != NULL)
        err = write_member(to, "refusal", weir_span_of_text(access->detail), VALUE_MAX);
    return err == 0 ? weir_buf_write_string(to, "}\n") : err;
}

int weir__http_access_line(weir_buf *to, enum weir_http_log_format format,
                           const weir__http_access *access)
{
    if (format == WEIR_HTTP_LOG_JSON)
        return write_json_line(to, access);
    return write_text_line(to, access, format == WEIR_HTTP_LOG_COMBINED);
}
