/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may see a dashboard.
 *
 *      with a token        the query of the page, the cookie that it sets, or a bearer's token
 *      without one         everyone who reaches the server, which is bound to loopback addresses
 *
 * A browser on this machine reaches them, too, for any page that it shows. Such a page can use a
 * name of its own that resolves to 127.0.0.1 (DNS rebinding), so without a token the host that was
 * asked for must be a name of this machine. The WebSocket also compares the origin with the host.
 *
 * A proxy on this machine makes everyone a local visitor. So without a token requests are refused
 * that have a field of a proxy, or a PROXY header with an address of another machine.
 */
#include <stdio.h>
#include <string.h>

#include <weir/http_cookies.h>
#include <weir/proxy_protocol.h>
#include <weir/server.h>

#include "dashboard/dashboard.h"
#include "protocol/http/chars.h"
#include "protocol/http/http_server.h"

#define COOKIE_NAME_SIZE 32

/* Takes as long for any wrong token of the right length. */
static bool is_token(const weir__dashboard *dashboard, weir_span given)
{
    size_t length = strlen(dashboard->token);
    unsigned difference = 0;

    if (given.data == NULL || given.length != length)
        return false;
    for (size_t i = 0; i < length; i++)
        difference |= given.data[i] ^ (unsigned char)dashboard->token[i];
    return difference == 0;
}

/* Cookies are those of a host: servers on other ports have others. */
static const char *cookie_name(weir_http_exchange *exchange, char name[COOKIE_NAME_SIZE])
{
    weir_address local;
    unsigned port = 0;

    if (weir_channel_local_address(weir_http_exchange_channel(exchange), &local) == 0)
        port = weir_address_port(&local);
    (void)snprintf(name, COOKIE_NAME_SIZE, "weir_dashboard_%u", port);
    return name;
}

static bool has_token(const weir__dashboard *dashboard, weir_http_exchange *exchange)
{
    static const char scheme[] = "Bearer ";
    const weir_http_headers *headers =
        weir_http_request_headers(weir_http_exchange_request(exchange));
    weir_span bearer = weir_http_headers_get(headers, WEIR_HTTP_AUTHORIZATION);
    char name[COOKIE_NAME_SIZE];

    if (bearer.length > strlen(scheme) && memcmp(bearer.data, scheme, strlen(scheme)) == 0)
        return is_token(dashboard,
                        weir_span_of(bearer.data + strlen(scheme), bearer.length - strlen(scheme)));
    return is_token(dashboard, weir_http_cookie_get(headers, cookie_name(exchange, name)));
}

static void redirect_with_cookie(weir__dashboard *dashboard, weir_http_exchange *exchange)
{
    const char *path = dashboard->path[0] != '\0' ? dashboard->path : "/";
    weir_channel *channel = weir_http_exchange_channel(exchange);
    char name[COOKIE_NAME_SIZE], location[256];
    int err = weir_http_cookie_set(
        weir_http_exchange_headers(exchange),
        WEIR_HTTP_COOKIE_OPTIONS(.name = cookie_name(exchange, name), .value = dashboard->token,
                                 .path = path, .http_only = true,
                                 .secure = weir__http_server_is_tls(dashboard->server, channel),
                                 .same_site = WEIR_HTTP_SAME_SITE_STRICT));

    (void)snprintf(location, sizeof(location), "%s/", dashboard->path);
    if (err == 0)
        (void)weir_http_respond_redirect(exchange, 303, location);
}

static bool check_token(weir__dashboard *dashboard, weir_http_exchange *exchange)
{
    weir_span query = weir_http_exchange_query(exchange, "token");

    if (query.data != NULL && is_token(dashboard, query)) {
        redirect_with_cookie(dashboard, exchange);
        return false;
    }
    if (query.data == NULL && has_token(dashboard, exchange))
        return true;
    if (query.data != NULL) {
        (void)weir_http_respond_error(exchange, 403, "wrong token");
        return false;
    }
    if (weir_http_headers_set_text(weir_http_exchange_headers(exchange), WEIR_HTTP_WWW_AUTHENTICATE,
                                   "Bearer realm=\"weir dashboard\"") == 0)
        (void)weir_http_respond_error(exchange, 401,
                                      "open the URL with ?token=..., which the program has logged");
    return false;
}

/* ---- names of this machine ---- */

static bool begins_with(weir_span text, const char *start)
{
    return text.length >= strlen(start) && memcmp(text.data, start, strlen(start)) == 0;
}

static bool ends_with_localhost(weir_span name)
{
    static const char localhost[] = "localhost";
    size_t length = strlen(localhost);

    if (name.length < length)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((name.data[name.length - length + i] | 0x20) != localhost[i])
            return false;
    return name.length == length || name.data[name.length - length - 1] == '.';
}

/* 127.0.0.0/8, but no name that begins so. */
static bool is_loopback_ipv4(weir_span host)
{
    for (size_t i = 0; i < host.length; i++)
        if (host.data[i] != '.' && (host.data[i] < '0' || host.data[i] > '9'))
            return false;
    return begins_with(host, "127.");
}

static bool is_local_authority(weir_span authority)
{
    weir_span host = authority;

    while (host.length > 0 && host.data[host.length - 1] >= '0' &&
           host.data[host.length - 1] <= '9')
        host.length--;
    if (host.length > 0 && host.data[host.length - 1] == ':')
        host.length--;
    else
        host = authority;
    return ends_with_localhost(host) || is_loopback_ipv4(host) ||
           weir_span_equal(host, weir_span_of_text("[::1]"));
}

bool weir__dashboard_is_local(const weir_address *address)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_span span = weir_span_of_text(weir_address_format(address, text, sizeof(text)));

    if (weir_address_port(address) == 0) /* a Unix socket, or one within the process */
        return address->length > 0;
    return begins_with(span, "127.") || begins_with(span, "[::1]:") ||
           begins_with(span, "[::ffff:127.");
}

/* ---- proxies ---- */

static bool is_proxy_field(weir_span name)
{
    static const char *const names[] = {"forwarded", "via", "x-real-ip"};
    static const char prefix[] = "x-forwarded-";

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (weir__http_is_text(name, names[i]))
            return true;
    return name.length >= strlen(prefix) &&
           weir__http_is_text(weir_span_of(name.data, strlen(prefix)), prefix);
}

static bool is_forwarded(weir_http_exchange *exchange)
{
    const weir_http_headers *headers =
        weir_http_request_headers(weir_http_exchange_request(exchange));
    weir_address source;

    for (size_t i = 0; i < weir_http_headers_count(headers); i++)
        if (is_proxy_field(weir_http_headers_at(headers, i).name))
            return true;
    return weir_proxy_source(weir_http_exchange_channel(exchange), &source) == 0 &&
           !weir__dashboard_is_local(&source);
}

bool weir__dashboard_admit(weir__dashboard *dashboard, weir_http_exchange *exchange)
{
    if (dashboard->token != NULL)
        return check_token(dashboard, exchange);
    if (!dashboard->options.open_to_proxies && is_forwarded(exchange)) {
        (void)weir_http_respond_error(exchange, 403,
                                      "a dashboard without a token is not shown through a proxy");
        return false;
    }
    if (is_local_authority(weir_http_request_authority(weir_http_exchange_request(exchange))))
        return true;
    (void)weir_http_respond_error(
        exchange, 403, "a dashboard without a token is shown at localhost and 127.0.0.1 only");
    return false;
}
