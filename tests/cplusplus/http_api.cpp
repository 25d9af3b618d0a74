/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses every public function of libweir-http once from C++11, as api.cpp does for libweir.
 */
#include <cerrno>
#include <cstring>
#include <string>

#include <unistd.h>

#include <weir/dashboard.h>
#include <weir/http.h>
#include <weir/http1.h>
#include <weir/http_body.h>
#include <weir/http_client.h>
#include <weir/http_cookies.h>
#include <weir/http_events.h>
#include <weir/http_files.h>
#include <weir/http_filters.h>
#include <weir/http_forward.h>
#include <weir/http_metrics.h>
#include <weir/http_server.h>
#include <weir/http_uri.h>
#include <weir/websocket.h>
#include <weir/weir.h>

#include "embedded_connection.h"

namespace
{

const int64_t patience = weir_seconds(10);

/* ---- messages ---- */

weir_http_request *request_of(const char *method, const char *target)
{
    weir_http_request *request = nullptr;

    EXPECT(weir_http_request_create(method, target, &request) == 0);
    return request;
}

void use_names()
{
    EXPECT(std::strcmp(weir_http_method_text(WEIR_HTTP_METHOD_GET), "GET") == 0);
    EXPECT(std::strcmp(weir_http_name_text(WEIR_HTTP_HOST), "Host") == 0);
    EXPECT(weir_http_method_of(text("PUT")) == WEIR_HTTP_METHOD_PUT);
    EXPECT(weir_http_name_of(text("content-type")) == WEIR_HTTP_CONTENT_TYPE);
    EXPECT(std::strcmp(weir_http_status_text(404), "Not Found") == 0);
}

void read_headers(const weir_http_headers *headers)
{
    weir_span value;
    size_t index = 0;

    EXPECT(weir_http_headers_count(headers) == 4);
    EXPECT(is(weir_http_headers_at(headers, 0).name, "Vary"));
    EXPECT(is(weir_http_headers_get(headers, WEIR_HTTP_VARY), "Accept"));
    EXPECT(is(weir_http_headers_get_named(headers, "x-other"), "1"));
    EXPECT(weir_http_headers_next(headers, WEIR_HTTP_VARY, &index, &value));
    EXPECT(weir_http_headers_next(headers, WEIR_HTTP_VARY, &index, &value));
    EXPECT(is(value, "Origin"));
    EXPECT(weir_http_headers_have_token(headers, WEIR_HTTP_VARY, "origin"));
}

void use_headers()
{
    weir_http_request *request = request_of("GET", "/"), *copy = request_of("GET", "/");
    weir_http_headers *headers = weir_http_request_headers(request);

    EXPECT(weir_http_headers_add(headers, WEIR_HTTP_VARY, text("Accept")) == 0);
    EXPECT(weir_http_headers_add_text(headers, WEIR_HTTP_VARY, "Origin") == 0);
    EXPECT(weir_http_headers_add_named(headers, text("X-Other"), text("1")) == 0);
    EXPECT(weir_http_headers_add_text(headers, WEIR_HTTP_CONNECTION, "x-other") == 0);
    read_headers(headers);
    EXPECT(weir_http_headers_append(weir_http_request_headers(copy), headers) == 0);
    EXPECT(weir_http_headers_set(headers, WEIR_HTTP_VARY, text("*")) == 0);
    EXPECT(weir_http_headers_set_text(headers, WEIR_HTTP_AGE, "7") == 0);
    EXPECT(weir_http_headers_remove(headers, WEIR_HTTP_VARY) == 1);
    EXPECT(weir_http_headers_remove_named(headers, "age") == 1);
    weir_http_headers_remove_hop_by_hop(headers);
    EXPECT(weir_http_headers_count(headers) == 0);
    EXPECT(weir_http_headers_count(weir_http_request_headers(copy)) == 4);
    weir_msg_release(weir_http_request_msg(copy));
    weir_msg_release(weir_http_request_msg(request));
}

void use_request()
{
    weir_http_request *request = request_of("POST", "/a?b");

    EXPECT(weir_http_request_msg(request)->type == &weir_http_request_type);
    EXPECT(weir_http_request_of(weir_http_request_msg(request)) == request);
    EXPECT(weir_http_request_method(request) == WEIR_HTTP_METHOD_POST);
    EXPECT(is(weir_http_request_method_text(request), "POST"));
    EXPECT(is(weir_http_request_target(request), "/a?b"));
    EXPECT(is(weir_http_request_path(request), "/a"));
    EXPECT(is(weir_http_request_query(request), "b"));
    EXPECT(weir_http_request_authority(request).length == 0);
    EXPECT(weir_http_request_version(request) == WEIR_HTTP_1_1);
    EXPECT(weir_http_request_set_target(request, text("/c")) == 0);
    EXPECT(weir_http_request_set_content_length(request, 3) == 0);
    EXPECT(weir_http_request_content_length(request) == 3);
    EXPECT(!weir_http_request_expects_continue(request));
    weir_msg_release(weir_http_request_msg(request));
}

void use_response()
{
    weir_http_response *response = nullptr;

    EXPECT(weir_http_response_create(200, &response) == 0);
    EXPECT(weir_http_response_msg(response)->type == &weir_http_response_type);
    EXPECT(weir_http_response_of(weir_http_response_msg(response)) == response);
    EXPECT(weir_http_response_set_status(response, 404) == 0);
    EXPECT(weir_http_response_status(response) == 404);
    EXPECT(is(weir_http_response_reason(response), "Not Found"));
    EXPECT(weir_http_response_version(response) == WEIR_HTTP_1_1);
    EXPECT(weir_http_headers_count(weir_http_response_headers(response)) == 0);
    EXPECT(weir_http_response_set_content_length(response, WEIR_HTTP_UNKNOWN_LENGTH) == 0);
    EXPECT(weir_http_response_content_length(response) == WEIR_HTTP_UNKNOWN_LENGTH);
    weir_http_response_set_closes(response, true);
    EXPECT(weir_http_response_closes(response));
    weir_msg_release(weir_http_response_msg(response));
}

void use_end()
{
    weir_http_end *end = nullptr;

    EXPECT(weir_http_end_create(&end) == 0);
    EXPECT(weir_http_end_msg(end)->type == &weir_http_end_type);
    EXPECT(weir_http_headers_count(weir_http_end_trailers(end)) == 0);
    EXPECT(weir_http_end_of(weir_http_end_static()) != end);
    weir_msg_release(weir_http_end_msg(end));
}

void use_full()
{
    connection server;

    EXPECT(weir_http1_server_add(server.pipeline(), WEIR_HTTP1_OPTIONS()) == 0);
    EXPECT(weir_http_aggregator_add(server.pipeline(), 0) == 0);
    server.receive("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    weir_http_full *full = weir_http_full_of(weir_embedded_read_inbound(server.embedded));
    EXPECT(full != nullptr);
    EXPECT(weir_http_request_method(weir_http_full_request(full)) == WEIR_HTTP_METHOD_PUT);
    EXPECT(weir_http_full_response(full) == nullptr);
    EXPECT(is(weir_buf_span(weir_http_full_content(full)), "abc"));
    EXPECT(weir_http_full_trailers(full) == nullptr);
    weir_msg_release(weir_http_full_msg(full));
}

int refused = 0;

void hear_refusal(weir_ctx *ctx, weir_msg *event)
{
    const weir_http_refusal *refusal = weir_http_refusal_of(event);

    if (refusal != nullptr) {
        refused = weir_http_refusal_status(refusal);
        EXPECT(std::strlen(weir_http_refusal_detail(refusal)) > 0);
    }
    weir_fire_event(ctx, event);
}

void use_refusal()
{
    static weir_handler listener;
    connection server;

    listener.name = "listener";
    listener.event = hear_refusal;
    EXPECT(weir_http1_server_add(server.pipeline(), nullptr) == 0);
    EXPECT(weir_pipeline_add_last(server.pipeline(), &listener, nullptr) == 0);
    server.receive("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    EXPECT(refused == 400 && has(server.sent(), "400 Bad Request"));
}

void use_client_codec()
{
    connection client;

    EXPECT(weir_http1_client_add(client.pipeline(), nullptr) == 0);
    EXPECT(weir_http_decompression_add(client.pipeline(), nullptr) == 0);
    weir_http_request *request = request_of("GET", "/");
    weir_http_headers *headers = weir_http_request_headers(request);
    EXPECT(weir_http_headers_add_text(headers, WEIR_HTTP_HOST, "x") == 0);
    EXPECT(weir_embedded_write_outbound(client.embedded, weir_http_request_msg(request)) == 0);
    EXPECT(weir_embedded_write_outbound(client.embedded, weir_http_end_static()) == 0);
    EXPECT(has(client.sent(), "GET / HTTP/1.1\r\n"));
    client.receive("HTTP/1.1 204 No Content\r\n\r\n");
    weir_msg *head = weir_embedded_read_inbound(client.embedded);
    EXPECT(weir_http_response_status(weir_http_response_of(head)) == 204);
    weir_msg_release(head);
}

/* ---- URIs and cookies ---- */

void use_uri()
{
    weir_http_uri uri;
    weir_buf *buf = buf_of("");
    char path[] = "/a/./b/../c";

    EXPECT(weir_http_uri_parse(text("https://www.example.org/a?b#c"), &uri) == 0);
    EXPECT(is(uri.host, "www.example.org") && weir_http_uri_port(&uri) == 443);
    EXPECT(weir_http_authority_parse(text("[::1]:80"), &uri) == 0 && uri.is_ip_literal);
    EXPECT(weir_http_authority_is_valid(text("localhost:80")));
    EXPECT(weir_http_uri_resolve(text("http://a/b/d"), text("../c?x"), buf) == 0);
    EXPECT(is(weir_buf_span(buf), "http://a/c?x"));
    EXPECT(weir_http_path_remove_dots(path, std::strlen(path)) == 4);
    weir_buf_release(buf);
}

void use_query()
{
    weir_buf *buf = buf_of(""), *encoded = buf_of("");
    weir_span rest, name, value;
    char decoded[16];

    EXPECT(weir_http_query_add(buf, text("a"), text("x y")) == 0);
    EXPECT(weir_http_query_add(buf, text("b"), text("2")) == 0);
    rest = weir_buf_span(buf);
    EXPECT(weir_http_query_find(rest, text("b"), &value) && is(value, "2"));
    EXPECT(weir_http_query_next(&rest, &name, &value) && is(name, "a"));
    EXPECT(weir_http_query_decode(value, decoded) == 3 && std::memcmp(decoded, "x y", 3) == 0);
    EXPECT(weir_http_percent_encode(encoded, text("/ "), WEIR_HTTP_PERCENT_PATH) == 0);
    EXPECT(is(weir_buf_span(encoded), "/%20"));
    EXPECT(weir_http_percent_decode(weir_buf_span(encoded), decoded) == 2);
    weir_buf_release(encoded);
    weir_buf_release(buf);
}

void use_cookies()
{
    weir_http_request *request = request_of("GET", "/");
    weir_http_headers *headers = weir_http_request_headers(request);
    weir_http_cookie_options options = *WEIR_HTTP_COOKIE_OPTIONS();
    weir_http_set_cookie cookie;
    weir_span rest = text("a=1; b=2"), name, value;

    EXPECT(weir_http_headers_add(headers, WEIR_HTTP_COOKIE, rest) == 0);
    EXPECT(is(weir_http_cookie_get(headers, "b"), "2"));
    EXPECT(weir_http_cookie_next(&rest, &name, &value) && is(name, "a") && is(value, "1"));
    options.name = "c";
    options.value = "3";
    options.same_site = WEIR_HTTP_SAME_SITE_STRICT;
    EXPECT(weir_http_cookie_set(headers, &options) == 0);
    value = weir_http_headers_get(headers, WEIR_HTTP_SET_COOKIE);
    EXPECT(weir_http_set_cookie_parse(value, &cookie) == 0 && is(cookie.value, "3"));
    EXPECT(cookie.same_site == WEIR_HTTP_SAME_SITE_STRICT);
    weir_msg_release(weir_http_request_msg(request));
}

void use_cookie_jar()
{
    weir_http_cookie_jar *jar = nullptr;
    weir_buf *buf = buf_of("");
    weir_http_uri uri;

    EXPECT(weir_http_cookie_jar_create(WEIR_HTTP_COOKIE_JAR_OPTIONS(), &jar) == 0);
    EXPECT(weir_http_uri_parse(text("http://example.org/"), &uri) == 0);
    EXPECT(weir_http_cookie_jar_store(jar, &uri, text("a=1")) == 0);
    EXPECT(weir_http_cookie_jar_count(jar) == 1);
    EXPECT(weir_http_cookie_jar_write(jar, &uri, buf) == 0 && is(weir_buf_span(buf), "a=1"));
    weir_http_cookie_jar_clear(jar);
    EXPECT(weir_http_cookie_jar_count(jar) == 0);
    weir_http_cookie_jar_release(weir_http_cookie_jar_retain(jar));
    weir_http_cookie_jar_release(jar);
    weir_buf_release(buf);
}

/* ---- filters ---- */

void add_access_log(weir_pipeline *pipeline)
{
    weir_http_access_log_options options = *WEIR_HTTP_ACCESS_LOG_OPTIONS();
    weir_http_access_log *log = nullptr;

    options.path = "/dev/null";
    EXPECT(weir_http_access_log_create(&options, &log) == 0);
    EXPECT(weir_http_access_log_add(pipeline, log) == 0);
    weir_http_access_log_reopen(log);
    EXPECT(weir_http_access_log_lost(log) == 0);
    weir_http_access_log_release(weir_http_access_log_retain(log));
    weir_http_access_log_release(log);
}

void add_client_limit(weir_pipeline *pipeline)
{
    weir_http_client_limit_options options = *WEIR_HTTP_CLIENT_LIMIT_OPTIONS();
    weir_http_client_limit *limit = nullptr;

    options.max_concurrent = 1;
    EXPECT(weir_http_client_limit_create(&options, &limit) == 0);
    EXPECT(weir_http_client_limit_add(pipeline, limit) == 0);
    weir_http_client_limit_release(weir_http_client_limit_retain(limit));
    weir_http_client_limit_release(limit);
}

void use_filters()
{
    static const char *const origins[] = {"https://example.org", nullptr};
    weir_http_cors_options cors = *WEIR_HTTP_CORS_OPTIONS();
    connection server;
    weir_pipeline *pipeline = server.pipeline();

    cors.origins = origins;
    EXPECT(weir_http1_server_add(pipeline, nullptr) == 0);
    add_access_log(pipeline);
    EXPECT(weir_http_request_ids_add(pipeline) == 0);
    add_client_limit(pipeline);
    EXPECT(weir_http_security_add(pipeline, WEIR_HTTP_SECURITY_OPTIONS()) == 0);
    EXPECT(weir_http_cors_add(pipeline, &cors) == 0);
    EXPECT(weir_http_compression_add(pipeline, WEIR_HTTP_COMPRESSION_OPTIONS()) == 0);
    server.receive("OPTIONS / HTTP/1.1\r\nHost: x\r\nOrigin: https://example.org\r\n"
                   "Access-Control-Request-Method: GET\r\n\r\n");
    std::string answer = server.sent();
    EXPECT(has(answer, "HTTP/1.1 204"));
    EXPECT(has(answer, "X-Request-Id") && has(answer, "X-Content-Type-Options: nosniff"));
}

/* ---- exchanges ---- */

/* A connection to a server with one route. */
struct site : connection {
    site(const char *method, weir_http_handler_fn *handler, void *user_data = nullptr,
         bool streaming = false)
    {
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
        weir_http_route routes[] = {WEIR_HTTP_ROUTE(method, "/{path*}", handler, user_data),
                                    WEIR_HTTP_ROUTES_END};
#pragma GCC diagnostic pop
        weir_http_router *router = nullptr;

        routes[0].streaming = streaming;
        EXPECT(weir__http_route(method, "/", handler).user_data == nullptr); /* of the macro */
        EXPECT(weir_http_router_create(routes, &router) == 0);
        EXPECT(weir_http1_server_add(pipeline(), nullptr) == 0);
        EXPECT(weir_http_router_add(pipeline(), router, 0) == 0);
        weir_http_router_release(weir_http_router_retain(router));
        weir_http_router_release(router);
    }

    /* Sends a request and returns what has been answered. */
    std::string call(const char *start, const char *fields = "", const char *content = "") const
    {
        std::string bytes = std::string(start) + " HTTP/1.1\r\nHost: x\r\n" + fields;

        if (*content != '\0')
            bytes += "Content-Length: " + std::to_string(std::strlen(content)) + "\r\n";
        bytes += std::string("\r\n") + content;
        (void)weir_embedded_write_inbound(embedded, msg_of(bytes.c_str()));
        return sent();
    }
};

void look_at(weir_http_exchange *exchange)
{
    const weir_http_request *request = weir_http_exchange_request(exchange);
    weir_address address;

    EXPECT(weir_http_exchange_client(exchange, &address) == 0);
    EXPECT(is(weir_http_request_authority(request), "x"));
    EXPECT(weir_http_exchange_query(exchange, "q").data == nullptr);
    EXPECT(weir_buf_readable(weir_http_exchange_content(exchange)) == 0);
    EXPECT(weir_channel_is_active(weir_http_exchange_channel(exchange)));
    EXPECT(std::strcmp(weir_http_exchange_route(exchange), "/{path*}") == 0);
    EXPECT(weir_http_headers_count(weir_http_exchange_headers(exchange)) == 0);
}

int answer_in_kind(weir_http_exchange *exchange, const std::string &kind)
{
    if (kind == "bytes")
        return weir_http_respond_bytes(exchange, 200, "image/png", "png", 3);
    if (kind == "json")
        return weir_http_respond_json(exchange, 200, buf_of("{}"));
    if (kind == "redirect")
        return weir_http_respond_redirect(exchange, 303, "/text");
    if (kind == "error")
        return weir_http_respond_error(exchange, 403, "not you");
    if (kind == "text")
        return weir_http_respond_text(exchange, 200, "a text");
    return weir_http_respond(exchange, 200, msg_of("a message"));
}

/* The client has loops of its own, where the exchange is not. */
void try_to_forward(weir_http_exchange *exchange)
{
    weir_http_client *client = nullptr;

    EXPECT(weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(), &client) == 0);
    EXPECT(weir_http_forward(exchange, client, "http://127.0.0.1:1", WEIR_HTTP_FORWARD_OPTIONS()) ==
           -EINVAL);
    weir_http_client_release(client);
}

void answer_once(weir_http_exchange *exchange, void *)
{
    std::string kind = string_of(weir_http_exchange_parameter(exchange, "path"));

    look_at(exchange);
    try_to_forward(exchange);
    EXPECT(weir_http_exchange_retain(exchange) == exchange);
    EXPECT(answer_in_kind(exchange, kind) == 0);
    weir_http_exchange_release(exchange);
}

void use_responses()
{
    site server("GET", answer_once);

    EXPECT(has(server.call("GET /bytes"), "Content-Type: image/png"));
    EXPECT(has(server.call("GET /json"), "Content-Type: application/json"));
    EXPECT(has(server.call("GET /redirect"), "Location: /text"));
    EXPECT(has(server.call("GET /error"), "HTTP/1.1 403 Forbidden"));
    EXPECT(has(server.call("GET /text"), "\r\n\r\na text"));
    EXPECT(has(server.call("GET /"), "\r\n\r\na message"));
}

void never(weir_http_exchange *, void *)
{
    EXPECT(false);
}

/* Repeats the first piece of the content, when all of it has come. */
void stream_back(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    weir_msg **piece = static_cast<weir_msg **>(user_data);
    weir_http_end *end = nullptr;

    EXPECT(err == 0);
    if (msg != nullptr) {
        EXPECT(*piece == nullptr);
        *piece = msg;
        weir_http_exchange_read(exchange);
        return;
    }
    EXPECT(weir_http_exchange_trailers(exchange) == nullptr);
    EXPECT(weir_http_exchange_begin(exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH) == 0);
    EXPECT(weir_http_exchange_headers(exchange) == nullptr);
    EXPECT(weir_http_exchange_is_writable(exchange));
    EXPECT(weir_http_exchange_write(exchange, *piece, nullptr) == 0);
    EXPECT(weir_http_end_create(&end) == 0);
    EXPECT(weir_http_headers_add_named(weir_http_end_trailers(end), text("X-Sum"), text("7")) == 0);
    EXPECT(weir_http_exchange_end(exchange, end) == 0);
    weir_http_exchange_release(exchange);
}

void answer_in_pieces(weir_http_exchange *exchange, void *user_data)
{
    EXPECT(weir_http_exchange_retain(exchange) == exchange);
    weir_http_exchange_on_lost(exchange, never, nullptr);
    weir_http_exchange_on_lost(exchange, nullptr, nullptr);
    weir_http_exchange_on_writable(exchange, never, nullptr);
    weir_http_exchange_on_writable(exchange, nullptr, nullptr);
    weir_http_exchange_on_content(exchange, stream_back, user_data);
    weir_http_exchange_read(exchange);
}

void break_off(weir_http_exchange *exchange, void *)
{
    EXPECT(weir_http_exchange_begin(exchange, 200, 10) == 0);
    weir_http_exchange_abort(exchange);
}

void use_streams()
{
    weir_msg *piece = nullptr;
    site server("POST", answer_in_pieces, &piece, true), broken("GET", break_off);
    std::string answer = server.call("POST /", "TE: trailers\r\n", "abc");

    EXPECT(has(answer, "abc") && has(answer, "X-Sum: 7"));
    (void)broken.call("GET /");
    EXPECT(!weir_channel_is_active(weir_embedded_channel(broken.embedded)));
}

/* ---- content of requests ---- */

void use_accept()
{
    static const char *const types[] = {"text/html", "application/json", nullptr};
    weir_http_request *request = request_of("GET", "/");
    weir_http_headers *headers = weir_http_request_headers(request);

    EXPECT(weir_http_headers_add_text(headers, WEIR_HTTP_ACCEPT, "application/json") == 0);
    EXPECT(weir_http_accept_type(headers, types) == 1);
    weir_msg_release(weir_http_request_msg(request));
}

void answer_form(weir_http_exchange *exchange, void *)
{
    weir_http_form *form = nullptr;

    EXPECT(weir_http_form_read(exchange, &form) == 0);
    EXPECT(is(weir_http_form_get(form, "b"), "2"));
    weir_http_form_release(form);
    EXPECT(weir_http_respond_text(exchange, 200, "filled in") == 0);
}

void use_form()
{
    site server("POST", answer_form);
    const char *type = "Content-Type: application/x-www-form-urlencoded\r\n";
    weir_http_form *form = nullptr;

    EXPECT(weir_http_form_create(text("a=x+y"), 0, &form) == 0);
    EXPECT(weir_http_form_count(form) == 1);
    EXPECT(is(weir_http_form_name(form, 0), "a") && is(weir_http_form_value(form, 0), "x y"));
    weir_http_form_release(form);
    EXPECT(has(server.call("POST /", type, "a=1&b=2"), "filled in"));
}

const char *const multipart_type = "multipart/form-data; boundary=xYz";
const char *const multipart_content =
    "--xYz\r\nContent-Disposition: form-data; name=a\r\n\r\nsome text\r\n--xYz--\r\n";

void use_multipart()
{
    weir_http_multipart *multipart = nullptr;
    weir_span input = text(multipart_content), data;
    std::string all;

    EXPECT(weir_http_multipart_create(text(multipart_type), WEIR_HTTP_MULTIPART_OPTIONS(),
                                      &multipart) == 0);
    for (int event; (event = weir_http_multipart_next(multipart, &input, &data)) > 0;) {
        const weir_http_part *part = weir_http_multipart_part(multipart);

        if (event == WEIR_HTTP_MULTIPART_PART)
            EXPECT(is(part->name, "a") &&
                   is(weir_http_part_field(part, "content-disposition"), "form-data; name=a"));
        if (event == WEIR_HTTP_MULTIPART_DATA)
            all += string_of(data);
    }
    EXPECT(all == "some text");
    EXPECT(weir_http_multipart_finish(multipart) == 0);
    weir_http_multipart_release(multipart);
}

void take_upload(weir_http_exchange *exchange, weir_http_upload *upload, int err, void *user_data)
{
    char copy[4];
    weir_msg *msg = nullptr;

    EXPECT(err == 0 && weir_http_upload_count(upload) == 1);
    EXPECT(weir_http_upload_find(upload, "a") == 0);
    EXPECT(is(weir_http_upload_part(upload, 0)->content_type, "text/plain"));
    EXPECT(weir_http_upload_length(upload, 0) == 9);
    EXPECT(is(weir_http_upload_bytes(upload, 0), "some text"));
    EXPECT(weir_http_upload_copy(upload, 0, 5, copy, 4) == 0);
    EXPECT(std::memcmp(copy, "text", 4) == 0);
    EXPECT(weir_http_upload_msg(upload, 0, &msg) == 0);
    EXPECT(weir_http_upload_save(upload, 0, static_cast<folder *>(user_data)->other.c_str()) == 0);
    weir_http_upload_release(upload);
    EXPECT(weir_http_respond(exchange, 200, msg) == 0);
}

void answer_upload(weir_http_exchange *exchange, void *user_data)
{
    weir_http_upload_read(exchange, WEIR_HTTP_UPLOAD_OPTIONS(), take_upload, user_data);
}

void use_upload()
{
    folder files;
    site server("POST", answer_upload, &files, true);
    std::string type = std::string("Content-Type: ") + multipart_type + "\r\n";

    EXPECT(has(server.call("POST /", type.c_str(), multipart_content), "\r\n\r\nsome text"));
    EXPECT(access(files.other.c_str(), R_OK) == 0);
}

/* ---- files and events ---- */

void answer_file(weir_http_exchange *exchange, void *user_data)
{
    weir_http_files_root *root = static_cast<weir_http_files_root *>(user_data);

    EXPECT(weir_http_respond_file(exchange, root, text("a.txt")) == 0);
}

void use_files()
{
    folder files;
    weir_http_files_options options = *WEIR_HTTP_FILES_OPTIONS();
    weir_http_files_root *root = nullptr;

    options.root = files.path;
    options.blocking = true;
    EXPECT(weir_http_files_root_create(&options, &root) == 0);
    {
        site server("GET", weir_http_files, root), other("GET", answer_file, root);

        EXPECT(has(server.call("GET /a.txt"), "\r\n\r\na file"));
        EXPECT(has(server.call("GET /none"), "404 Not Found"));
        EXPECT(has(other.call("GET /b"), "\r\n\r\na file"));
    }
    weir_http_files_root_release(weir_http_files_root_retain(root));
    weir_http_files_root_release(root);
}

void answer_events(weir_http_exchange *exchange, void *user_data)
{
    weir_http_events **events = static_cast<weir_http_events **>(user_data);

    EXPECT(weir_http_events_begin(exchange, WEIR_HTTP_EVENTS_OPTIONS(), events) == 0);
}

void use_events()
{
    weir_http_events *events = nullptr;
    site server("GET", answer_events, &events);
    weir_http_event event = *WEIR_HTTP_EVENT();

    event.data = "42";
    EXPECT(has(server.call("GET /", "Last-Event-ID: 6\r\n"), "text/event-stream"));
    EXPECT(is(weir_http_events_last_id(events), "6"));
    EXPECT(weir_http_events_send(events, &event) == 0);
    weir_embedded_run(server.embedded);
    EXPECT(has(server.sent(), "data: 42\n\n"));
    EXPECT(weir_http_events_queued(events) == 0);
    weir_http_events_close(events);
    weir_embedded_run(server.embedded);
    EXPECT(weir_http_events_is_closed(events));
    weir_http_events_release(weir_http_events_retain(events));
    weir_http_events_release(events);
}

/* ---- servers and clients ---- */

void repeat(weir_http_exchange *exchange, void *)
{
    weir_buf *content = weir_buf_retain(weir_http_exchange_content(exchange));

    EXPECT(weir_http_respond(exchange, 200, weir_buf_msg(content)) == 0);
}

weir_http_server *start_server()
{
    weir_http_server_options options = *WEIR_HTTP_SERVER_OPTIONS();
    weir_http_route routes[2] = {};
    weir_http_server *server = nullptr;

    routes[0].method = "*";
    routes[0].path = "/";
    routes[0].handler = repeat;
    options.address = "127.0.0.1:0";
    options.routes = routes;
    options.threads = 1;
    EXPECT(weir_http_server_start(&options, &server) == 0);
    routes[0].path = "/more";
    EXPECT(weir_http_server_add_routes(server, routes, nullptr, nullptr) == 0);
    return server;
}

std::string url_of(const weir_http_server *server)
{
    weir_channel *listener = weir_server_listener(weir_http_server_server(server), 0);
    weir_address address;

    EXPECT(weir_channel_local_address(listener, &address) == 0);
    return "http://127.0.0.1:" + std::to_string(weir_address_port(&address)) + "/";
}

bool is_full(weir_http_full *full, const char *content)
{
    return weir_http_response_status(weir_http_full_response(full)) == 200 &&
           is(weir_buf_span(weir_http_full_content(full)), content);
}

void use_fetches(weir_http_client *client, const std::string &url)
{
    weir_http_fetch_options options = *WEIR_HTTP_FETCH_OPTIONS();
    weir_promise *fetching = nullptr;
    weir_http_full *full = nullptr;

    options.url = url.c_str();
    EXPECT(weir_http_client_fetch(client, &options, &fetching) == 0);
    EXPECT(weir_promise_sync(fetching, patience) == 0);
    EXPECT(is_full(static_cast<weir_http_full *>(weir_promise_value(fetching)), ""));
    weir_promise_release(fetching);
    options.method = "POST";
    options.content = msg_of("abc");
    EXPECT(weir_http_client_fetch_sync(client, &options, &full) == 0 && is_full(full, "abc"));
    weir_msg_release(options.content);
    weir_msg_release(weir_http_full_msg(full));
    EXPECT(weir_http_get_sync(url.c_str(), nullptr, &full) == 0 && is_full(full, ""));
    weir_msg_release(weir_http_full_msg(full));
}

/* What has become of a call. */
struct outcome {
    weir_promise *ended = nullptr;
    std::string url, content;
    int status = 0;

    outcome()
    {
        EXPECT(weir_promise_create(nullptr, &ended) == 0);
    }

    ~outcome()
    {
        weir_promise_release(ended);
    }

    outcome(const outcome &) = delete;
    outcome &operator=(const outcome &) = delete;
};

void take_head(weir_http_call *call, weir_http_response *response, void *user_data)
{
    static_cast<outcome *>(user_data)->status = weir_http_response_status(response);
    weir_http_call_read(call);
}

void take_content(weir_http_call *call, weir_msg *msg, void *user_data)
{
    static_cast<outcome *>(user_data)->content += string_of(weir_buf_span(weir_buf_of(msg)));
    weir_msg_release(msg);
    weir_http_call_read(call);
}

void take_end(weir_http_call *call, int err, const char *detail, void *user_data)
{
    outcome *out = static_cast<outcome *>(user_data);
    char url[64];

    EXPECT(weir_in_executor(weir_http_call_executor(call)));
    EXPECT(weir_http_call_format_url(call, url, sizeof(url)) < sizeof(url));
    EXPECT(weir_http_call_trailers(call) == nullptr);
    out->url = url;
    if (err == 0) {
        EXPECT(weir_http_call_is_sent(call));
        EXPECT(weir_promise_succeed(out->ended, nullptr) == 0);
    } else {
        EXPECT(weir_promise_fail(out->ended, err, detail) == 0);
    }
}

weir_http_call *send_to(weir_http_client *client, const std::string &url, outcome &out)
{
    static weir_http_call_events events = {};
    weir_http_call_options options = *WEIR_HTTP_CALL_OPTIONS();
    weir_http_request *request = request_of("POST", url.c_str());
    weir_http_call *call = nullptr;

    events.head = take_head;
    events.content = take_content;
    events.end = take_end;
    options.events = &events;
    options.user_data = &out;
    options.stream_content = true;
    options.read_on_demand = true;
    EXPECT(weir_http_request_set_content_length(request, WEIR_HTTP_UNKNOWN_LENGTH) == 0);
    EXPECT(weir_http_client_send(client, request, nullptr, &options, &call) == 0);
    return call;
}

void use_calls(weir_http_client *client, const std::string &url)
{
    outcome answered, cancelled;
    weir_http_call *call = send_to(client, url, answered);

    (void)weir_http_call_is_writable(call); /* true as soon as there is a connection */
    EXPECT(weir_http_call_write(call, msg_of("some content"), nullptr) == 0);
    EXPECT(weir_http_call_end(call, nullptr) == 0);
    EXPECT(weir_promise_sync(answered.ended, patience) == 0);
    EXPECT(answered.status == 200 && answered.url == url && answered.content == "some content");
    weir_http_call_release(weir_http_call_retain(call));
    weir_http_call_release(call);
    call = send_to(client, url, cancelled);
    weir_http_call_cancel(call);
    EXPECT(weir_promise_sync(cancelled.ended, patience) == WEIR_ECANCELED);
    weir_http_call_release(call);
}

void use_client(const std::string &url)
{
    weir_http_client *client = nullptr;
    weir_http_client_stats stats;

    EXPECT(weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(), &client) == 0);
    use_fetches(client, url);
    use_calls(client, url);
    weir_http_client_read_stats(client, &stats);
    EXPECT(stats.succeeded == 3 && stats.failed == 1);
    weir_http_client_close(client);
    EXPECT(weir_promise_sync(weir_http_client_closed(client), patience) == 0);
    weir_http_client_release(weir_http_client_retain(client));
    weir_http_client_release(client);
}

void use_server()
{
    weir_http_server *server = start_server(), *closed = start_server();

    use_client(url_of(server));
    EXPECT(weir_http_server_stop(server, patience) == 0);
    weir_http_server_release(server);
    weir_server_close(weir_http_server_server(closed));
    EXPECT(weir_http_server_run(closed) == 0); /* it is closed: no need to wait for a signal */
    weir_http_server_release(closed);
}

/* ---- upgrades and WebSockets ---- */

int add_nothing(weir_channel *, void *)
{
    return 0;
}

void upgrade(weir_http_exchange *exchange, void *)
{
    EXPECT(weir_http_headers_add_text(weir_http_exchange_headers(exchange), WEIR_HTTP_UPGRADE,
                                      "other") == 0);
    EXPECT(weir_http_exchange_upgrade(exchange, add_nothing, nullptr) == 0);
}

void use_upgrade()
{
    site server("GET", upgrade, nullptr);

    EXPECT(has(server.call("GET /", "Connection: Upgrade\r\nUpgrade: other\r\n"),
               "101 Switching Protocols"));
}

void use_ws_messages()
{
    weir_ws_message *one = nullptr, *other = nullptr;

    EXPECT(weir_ws_message_create(WEIR_WS_TEXT, buf_of("hello"), &one) == 0);
    EXPECT(weir_ws_message_create_from(WEIR_WS_BINARY, "hello", 5, &other) == 0);
    EXPECT(weir_ws_message_of(weir_ws_message_msg(one)) == one);
    EXPECT(weir_ws_message_type(other) == WEIR_WS_BINARY);
    EXPECT(weir_buf_equal(weir_ws_message_payload(one), weir_ws_message_payload(other)));
    EXPECT(is(weir_ws_message_bytes(other), "hello"));
    weir_ws_message_set_part(one, true, false);
    EXPECT(weir_ws_message_is_first(one) && !weir_ws_message_is_last(one));
    weir_msg_release(weir_ws_message_msg(one));
    weir_msg_release(weir_ws_message_msg(other));
}

struct talk {
    std::string received;
    unsigned code;
    weir_promise *opened, *answered, *closed;
};

void ws_echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, nullptr);
}

void ws_greet(weir_ctx *ctx, weir_msg *event)
{
    if (weir_ws_opened_of(event) != nullptr) {
        weir_ws_write_text(ctx, "a", nullptr);
        weir_ws_write_binary(ctx, "b", 1, nullptr);
    }
    weir_fire_event(ctx, event);
}

void ws_receive(weir_ctx *ctx, weir_msg *msg)
{
    talk *of = *static_cast<talk **>(weir_ctx_state(ctx));

    of->received += string_of(weir_ws_message_bytes(weir_ws_message_of(msg)));
    weir_msg_release(msg);
    if (of->received == "abcd")
        (void)weir_promise_succeed(of->answered, nullptr);
}

void ws_note_end(weir_ctx *ctx, weir_msg *event)
{
    talk *of = *static_cast<talk **>(weir_ctx_state(ctx));

    if (weir_ws_closed_of(event) != nullptr) {
        of->code = weir_ws_closed_of(event)->code;
        (void)weir_promise_succeed(of->closed, nullptr);
    }
    weir_fire_event(ctx, event);
}

int init_talk(void *state, const void *options)
{
    std::memcpy(state, options, sizeof(talk *));
    return 0;
}

int add_ws_server(weir_channel *channel, void *)
{
    static weir_handler handler;

    handler.name = "echo";
    handler.read = ws_echo;
    handler.event = ws_greet;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &handler, nullptr);
}

int add_ws_client(weir_channel *channel, void *user_data)
{
    static weir_handler handler;

    handler.name = "talk";
    handler.state_size = sizeof(talk *);
    handler.init = init_talk;
    handler.read = ws_receive;
    handler.event = ws_note_end;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &handler, &user_data);
}

void accept_ws(weir_http_exchange *exchange, void *)
{
    weir_ws_options options = *WEIR_WS_OPTIONS();

    options.init = add_ws_server;
    EXPECT(weir_ws_accept(exchange, &options) == 0);
}

void use_ws_channel(weir_channel *channel, talk &of)
{
    weir_ws_send_text(channel, "c", nullptr);
    weir_ws_send_binary(channel, "d", 1, nullptr);
    EXPECT(weir_promise_sync(of.answered, patience) == 0);
    EXPECT(weir_ws_close(channel, WEIR_WS_NORMAL, "bye", nullptr) == 0);
    EXPECT(weir_promise_sync(of.closed, patience) == 0);
    EXPECT(of.code == WEIR_WS_NORMAL);
}

void use_ws_client(const std::string &url, weir_group *group)
{
    weir_ws_client_options options = *WEIR_WS_CLIENT_OPTIONS();
    weir_ws_options ws = *WEIR_WS_OPTIONS();
    talk of = {};

    EXPECT(weir_promise_create(nullptr, &of.opened) == 0);
    EXPECT(weir_promise_create(nullptr, &of.answered) == 0);
    EXPECT(weir_promise_create(nullptr, &of.closed) == 0);
    ws.init = add_ws_client;
    ws.user_data = &of;
    options.url = url.c_str();
    options.ws = &ws;
    options.group = group;
    EXPECT(weir_ws_connect(&options, of.opened) == 0);
    EXPECT(weir_promise_sync(of.opened, patience) == 0);
    use_ws_channel(static_cast<weir_channel *>(weir_promise_value(of.opened)), of);
    weir_promise_release(of.opened);
    EXPECT(weir_group_shutdown(group, 0, patience) == 0);
    EXPECT(weir_group_await_termination(group, patience) == 0);
    weir_promise_release(of.answered);
    weir_promise_release(of.closed);
}

void use_websocket()
{
    weir_group_options group_options = *WEIR_GROUP_OPTIONS();
    weir_http_server *server = start_server();
    weir_http_route routes[2] = {};
    weir_group *group = nullptr;

    routes[0].method = "GET";
    routes[0].path = "/ws";
    routes[0].handler = accept_ws;
    group_options.threads = 1;
    EXPECT(weir_http_server_add_routes(server, routes, nullptr, nullptr) == 0);
    EXPECT(weir_group_create(&group_options, &group) == 0);
    use_ws_client("ws" + url_of(server).substr(4) + "ws", group);
    weir_group_release(group);
    weir_http_server_release(server);
}

/* ---- metrics and the dashboard ---- */

void use_http_metrics()
{
    site server("GET", weir_metrics_route);
    weir_buf *buf = nullptr;

    EXPECT(has(server.call("GET /"), "# TYPE "));
    EXPECT(weir_buf_create(0, 0, &buf) == 0);
    EXPECT(weir_metrics_write(buf, WEIR_METRICS_JSON) == 0);
    EXPECT(has(string_of(weir_buf_span(buf)), "\"metrics\":["));
    weir_buf_release(buf);
}

void use_dashboard()
{
    weir_http_server *server = start_server();
    char url[128];

    EXPECT(weir_dashboard_format_url(server, url, sizeof(url)) == -ENOENT);
    EXPECT(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS()) == 0);
    EXPECT(weir_dashboard_format_url(server, url, sizeof(url)) > 0);
    EXPECT(has(url, "/weir/"));
    weir_http_server_release(server);
}

} /* namespace */

int main()
{
    use_names();
    use_headers();
    use_request();
    use_response();
    use_end();
    use_full();
    use_refusal();
    use_client_codec();
    use_uri();
    use_query();
    use_cookies();
    use_cookie_jar();
    use_filters();
    use_responses();
    use_streams();
    use_accept();
    use_form();
    use_multipart();
    use_upload();
    use_files();
    use_events();
    use_server();
    use_upgrade();
    use_ws_messages();
    use_websocket();
    use_http_metrics();
    use_dashboard();
    return failures != 0;
}
