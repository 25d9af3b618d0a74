/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opening handshake of a WebSocket: a request or a response with any fields is accepted or
 * refused, and what is agreed on lies within the options; our server accepts what our client
 * offers, and the other way round. Input: options of the server, of the client, a line for each
 * field.
 */
#include <stdlib.h>

#include <weir/error.h>

#include "protocol/websocket/handshake.h"

#define COUNTS 4 /* bytes before the fields */
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="

enum { HAS_FIELDS = 1 }; /* of the first byte: the required fields are there */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static const char *const protocols[] = {"chat", "mqtt", NULL};

static int add_nothing(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

/* Windows of 9 to 15 bits, or the default. */
static weir_ws_options options_of(uint8_t first, uint8_t second)
{
    return (weir_ws_options){
        .size = sizeof(weir_ws_options),
        .init = add_nothing,
        .protocols = (first & 2) != 0 ? protocols + ((first & 4) != 0) : NULL,
        .deflate = (first & 8) != 0,
        .no_context_takeover = (first & 16) != 0,
        .deflate_window_bits = (second & 7) != 0 ? 8 + (second & 7) : 0,
        .inflate_window_bits = (second & 0x70) != 0 ? 8 + ((second & 0x70) >> 4) : 0,
    };
}

/* "Name: value" lines; those that are no fields are skipped. */
static void add_fields(weir_http_headers *headers, weir_span text)
{
    while (text.length > 0) {
        ssize_t end = weir_span_find(text, '\n');
        weir_span line = weir_span_of(text.data, end < 0 ? text.length : (size_t)end);
        ssize_t colon = weir_span_find(line, ':');

        if (colon > 0)
            (void)weir_http_headers_add_named(
                headers, weir_span_of(line.data, (size_t)colon),
                weir_span_of(line.data + colon + 1, line.length - (size_t)colon - 1));
        text = end < 0 ? weir_span_of(NULL, 0)
                       : weir_span_of(text.data + end + 1, text.length - (size_t)end - 1);
    }
}

static bool is_known(const char *protocol, const weir_ws_options *options)
{
    const char *const *known = options->protocols;

    while (known != NULL && *known != NULL && *known != protocol)
        known++;
    return protocol == NULL || (known != NULL && *known != NULL);
}

static void check_agreed(const weir__ws_agreed *agreed, const weir_ws_options *options)
{
    const weir__ws_deflate_terms *terms = &agreed->deflate;

    expect(is_known(agreed->protocol, options));
    if (!terms->is_on)
        return;
    expect(options->deflate);
    expect(terms->compress_bits >= 8 && terms->compress_bits <= weir__ws_deflate_bits(options));
    expect(terms->decompress_bits >= 9 && terms->decompress_bits <= 15);
    expect(terms->compress_alone || !options->no_context_takeover);
    expect(terms->decompress_alone || !options->no_context_takeover);
}

static weir_http_request *new_request(void)
{
    weir_http_request *request = NULL;

    expect(weir_http_request_create("GET", "/", &request) == 0);
    expect(weir_http_headers_add_text(weir_http_request_headers(request), WEIR_HTTP_HOST, "h") ==
           0);
    expect(weir_http_headers_add_text(weir_http_request_headers(request), WEIR_HTTP_CONNECTION,
                                      "Upgrade") == 0);
    return request;
}

static weir_http_response *new_response(void)
{
    weir_http_response *response = NULL;

    expect(weir_http_response_create(101, &response) == 0);
    expect(weir_http_headers_add_text(weir_http_response_headers(response), WEIR_HTTP_CONNECTION,
                                      "Upgrade") == 0);
    return response;
}

/* ---- any fields ---- */

static void check_request(const weir_ws_options *server, bool has_fields, weir_span text)
{
    static const char *const origins[] = {"https://example.org", NULL};
    weir_http_request *request = new_request();
    weir_http_response *response = new_response();
    const char *detail = NULL;
    weir__ws_agreed agreed;
    int status;

    if (has_fields)
        expect(weir__ws_add_request_fields(weir_http_request_headers(request), KEY,
                                           &(weir_ws_options){.size = sizeof(weir_ws_options)}) ==
               0);
    add_fields(weir_http_request_headers(request), text);
    status = weir__ws_check_request(request, server->deflate ? origins : NULL, &detail);
    expect(status == 0 || status == 400 || status == 403 || status == 426);
    expect(detail != NULL);
    if (status == 0) {
        weir__ws_agree(request, server, &agreed);
        check_agreed(&agreed, server);
        expect(weir__ws_add_response_fields(weir_http_response_headers(response), request,
                                            &agreed) == 0);
    }
    weir_msg_release(weir_http_request_msg(request));
    weir_msg_release(weir_http_response_msg(response));
}

static void check_response(const weir_ws_options *client, bool has_fields, weir_span text)
{
    weir_http_response *response = new_response();
    weir_http_headers *headers = weir_http_response_headers(response);
    const char *detail = NULL;
    char accept[WEIR__WS_ACCEPT + 1];
    weir__ws_agreed agreed;
    int err;

    weir__ws_accept_of(weir_span_of_text(KEY), accept);
    if (has_fields) {
        expect(weir_http_headers_add_text(headers, WEIR_HTTP_UPGRADE, "websocket") == 0);
        expect(weir_http_headers_add_text(headers, WEIR_HTTP_SEC_WEBSOCKET_ACCEPT, accept) == 0);
    }
    add_fields(headers, text);
    err = weir__ws_check_response(response, KEY, client, &agreed, &detail);
    expect(err == 0 || (err == WEIR_EMALFORMED && detail != NULL));
    if (err == 0) {
        check_agreed(&agreed, client);
        expect(!agreed.deflate.is_on ||
               agreed.deflate.decompress_bits <= weir__ws_inflate_bits(client));
    }
    weir_msg_release(weir_http_response_msg(response));
}

/* ---- ours with ours ---- */

/* What one side compresses, the other can decompress. */
static void check_mirror(const weir__ws_deflate_terms *from, const weir__ws_deflate_terms *to)
{
    expect(from->compress_bits <= to->decompress_bits);
    expect(from->compress_alone || !to->decompress_alone);
}

static void check_both(const weir_ws_options *server, const weir_ws_options *client)
{
    weir_http_request *request = new_request();
    weir_http_response *response = new_response();
    weir__ws_agreed there, here;
    const char *detail = NULL;
    char key[WEIR__WS_KEY + 1];

    weir__ws_create_key(key);
    expect(weir__ws_add_request_fields(weir_http_request_headers(request), key, client) == 0);
    expect(weir__ws_check_request(request, NULL, &detail) == 0);
    weir__ws_agree(request, server, &there);
    expect(weir__ws_add_response_fields(weir_http_response_headers(response), request, &there) ==
           0);
    expect(weir__ws_check_response(response, key, client, &here, &detail) == 0);
    expect(here.deflate.is_on == there.deflate.is_on);
    expect(here.deflate.is_on == (server->deflate && client->deflate));
    expect((here.protocol == NULL) == (there.protocol == NULL));
    if (here.protocol != NULL)
        expect(
            weir_span_equal(weir_span_of_text(here.protocol), weir_span_of_text(there.protocol)));
    if (here.deflate.is_on) {
        check_mirror(&here.deflate, &there.deflate);
        check_mirror(&there.deflate, &here.deflate);
    }
    weir_msg_release(weir_http_request_msg(request));
    weir_msg_release(weir_http_response_msg(response));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_ws_options server, client;
    weir_span text;
    bool has_fields;

    if (size < COUNTS || size > 4096)
        return 0;
    text = weir_span_of(data + COUNTS, size - COUNTS);
    has_fields = (data[0] & HAS_FIELDS) != 0;
    server = options_of(data[0], data[1]);
    client = options_of(data[2], data[3]);
    check_request(&server, has_fields, text);
    check_response(&client, has_fields, text);
    check_both(&server, &client);
    return 0;
}
