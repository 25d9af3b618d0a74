/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the page, which the assembler embeds, and the routes that send them.
 */
#include <inttypes.h>
#include <stdio.h>

#include "dashboard/dashboard.h"

/* Defines two labels, weir__..._begin and weir__..._end, around a file under src/. */
#define EMBED(name, path)                     \
    __asm__(".pushsection .rodata, \"a\"\n"   \
            ".hidden weir__" #name "_begin\n" \
            ".hidden weir__" #name "_end\n"   \
            ".global weir__" #name "_begin\n" \
            ".global weir__" #name "_end\n"   \
            "weir__" #name "_begin:\n"        \
            ".incbin \"" path "\"\n"          \
            "weir__" #name "_end:\n"          \
            ".byte 0\n"                       \
            ".popsection\n");                 \
    extern const char weir__##name##_begin[], weir__##name##_end[]

EMBED(page_html, "dashboard/page/index.html");
EMBED(page_script, "dashboard/page/app.js");
EMBED(page_style, "dashboard/page/style.css");
EMBED(page_icon, "dashboard/page/icon.svg");

/* Scripts, styles and connections of this server only. Browsers that follow CSP 2 do not take
 * WebSockets for 'self'. */
#define POLICY                                                                               \
    "default-src 'self'; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; " \
    "frame-ancestors 'none'"

static int add_headers(weir_http_headers *headers, const char *tag)
{
    int err = weir_http_headers_set_text(headers, WEIR_HTTP_CONTENT_SECURITY_POLICY, POLICY);

    if (err == 0)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_X_CONTENT_TYPE_OPTIONS, "nosniff");
    if (err == 0)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_REFERRER_POLICY, "no-referrer");
    if (err == 0)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_CACHE_CONTROL, "no-cache");
    if (err == 0)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_ETAG, tag);
    return err;
}

static void send_file(weir_http_exchange *exchange, weir__dashboard *dashboard, const char *type,
                      weir_span content)
{
    weir_http_headers *headers = weir_http_exchange_headers(exchange);
    weir_buf *body = NULL;
    char tag[24];
    weir_span known;

    if (!weir__dashboard_admit(dashboard, exchange))
        return;
    (void)snprintf(tag, sizeof(tag), "\"%016" PRIx64 "\"", weir_span_hash(content, 0));
    if (add_headers(headers, tag) < 0)
        return;
    known = weir_http_headers_get(weir_http_request_headers(weir_http_exchange_request(exchange)),
                                  WEIR_HTTP_IF_NONE_MATCH);
    if (known.data != NULL && weir_span_equal(known, weir_span_of_text(tag))) {
        (void)weir_http_respond(exchange, 304, NULL);
        return;
    }
    if (weir_http_headers_set_text(headers, WEIR_HTTP_CONTENT_TYPE, type) < 0 ||
        weir_buf_wrap_static(content.data, content.length, &body) < 0)
        return;
    (void)weir_http_respond(exchange, 200, weir_buf_msg(body));
}

#define SPAN(name) weir_span_of(name##_begin, (size_t)(name##_end - name##_begin))

void weir__dashboard_send_page(weir_http_exchange *exchange, void *user_data)
{
    send_file(exchange, user_data, "text/html; charset=utf-8", SPAN(weir__page_html));
}

void weir__dashboard_send_script(weir_http_exchange *exchange, void *user_data)
{
    send_file(exchange, user_data, "text/javascript; charset=utf-8", SPAN(weir__page_script));
}

void weir__dashboard_send_style(weir_http_exchange *exchange, void *user_data)
{
    send_file(exchange, user_data, "text/css; charset=utf-8", SPAN(weir__page_style));
}

void weir__dashboard_send_icon(weir_http_exchange *exchange, void *user_data)
{
    send_file(exchange, user_data, "image/svg+xml", SPAN(weir__page_icon));
}

/* From the path without its "/" at the end; the query has the token. */
void weir__dashboard_redirect(weir_http_exchange *exchange, void *user_data)
{
    const weir__dashboard *dashboard = user_data;
    weir_span query = weir_http_request_query(weir_http_exchange_request(exchange));
    char location[512];

    (void)snprintf(location, sizeof(location), "%s/%s%.*s", dashboard->path,
                   query.length > 0 ? "?" : "", (int)query.length, (const char *)query.data);
    (void)weir_http_respond_redirect(exchange, 308, location);
}
