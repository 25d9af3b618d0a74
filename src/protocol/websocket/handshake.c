/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/websocket/handshake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/http_uri.h>
#include <weir/random.h>
#include <weir/text_codecs.h>

#include "base/options.h"
#include "protocol/http/chars.h"
#include "protocol/http/parameters.h"
#include "protocol/websocket/sha1.h"

#define KEY_BYTES 16
#define BITS_MAX 15
#define EXTENSION "permessage-deflate"
#define EXTENSION_TEXT 192 /* bytes of an offer or an answer with all parameters */

/* ---- key ---- */

void weir__ws_accept_of(weir_span key, char ret_accept[WEIR__WS_ACCEPT + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t text[WEIR__WS_KEY + sizeof(guid) - 1], hash[WEIR__SHA1_LENGTH];

    memcpy(text, key.data, WEIR__WS_KEY);
    memcpy(text + WEIR__WS_KEY, guid, sizeof(guid) - 1);
    weir__sha1(weir_span_of(text, sizeof(text)), hash);
    ret_accept[weir_base64_encode(weir_span_of(hash, sizeof(hash)), 0, ret_accept)] = '\0';
}

void weir__ws_create_key(char ret_key[WEIR__WS_KEY + 1])
{
    uint8_t bytes[KEY_BYTES];

    weir_random_bytes(bytes, sizeof(bytes));
    ret_key[weir_base64_encode(weir_span_of(bytes, sizeof(bytes)), 0, ret_key)] = '\0';
}

static bool is_key(weir_span key)
{
    uint8_t bytes[WEIR__WS_KEY];

    return key.length == WEIR__WS_KEY && weir_base64_decode(key, 0, bytes) == KEY_BYTES;
}

/* The value of a field that must not be repeated; data is NULL if it is missing, or is. */
static weir_span only_value(const weir_http_headers *headers, enum weir_http_name name)
{
    weir_span value, other;
    size_t index = 0;

    if (!weir_http_headers_next(headers, name, &index, &value) ||
        weir_http_headers_next(headers, name, &index, &other))
        return weir_span_of(NULL, 0);
    return value;
}

/* ---- origin ---- */

/* The origin has the host and port that were asked for; a missing port is that of its scheme. */
static bool is_same_host(const weir_http_request *request, weir_span origin)
{
    weir_http_uri page, host;

    if (weir_http_uri_parse(origin, &page) < 0 || page.scheme.data == NULL ||
        page.host.data == NULL ||
        weir_http_authority_parse(weir_http_request_authority(request), &host) < 0)
        return false;
    host.scheme = page.scheme;
    return weir__http_same_text(page.host, host.host) &&
           weir_http_uri_port(&page) == weir_http_uri_port(&host);
}

static bool is_allowed(const weir_http_request *request, const char *const *origins)
{
    const weir_http_headers *headers = weir_http_request_headers(request);
    weir_span origin = weir_http_headers_get(headers, WEIR_HTTP_ORIGIN);

    if (origin.data == NULL)
        return true;
    if (only_value(headers, WEIR_HTTP_ORIGIN).data == NULL)
        return false;
    if (origins == NULL)
        return is_same_host(request, origin);
    for (; *origins != NULL; origins++)
        if (strcmp(*origins, "*") == 0 || weir__http_is_text(origin, *origins))
            return true;
    return false;
}

/* ---- requests ---- */

static bool is_upgrade(const weir_http_headers *headers)
{
    return weir_http_headers_have_token(headers, WEIR_HTTP_UPGRADE, "websocket") &&
           weir_http_headers_have_token(headers, WEIR_HTTP_CONNECTION, "upgrade");
}

int weir__ws_check_request(const weir_http_request *request, const char *const *origins,
                           const char **ret_detail)
{
    const weir_http_headers *headers = weir_http_request_headers(request);

    *ret_detail = "a WebSocket is asked for by GET and HTTP/1.1, without content";
    if (weir_http_request_method(request) != WEIR_HTTP_METHOD_GET ||
        weir_http_request_version(request) != WEIR_HTTP_1_1 ||
        weir_http_request_content_length(request) != 0)
        return 400;
    *ret_detail = "expected Connection: Upgrade and Upgrade: websocket";
    if (!is_upgrade(headers))
        return 426;
    *ret_detail = "expected Sec-WebSocket-Version: 13";
    if (!weir__http_is_text(only_value(headers, WEIR_HTTP_SEC_WEBSOCKET_VERSION), "13"))
        return 426;
    *ret_detail = "expected one Sec-WebSocket-Key, base64 of 16 bytes";
    if (!is_key(only_value(headers, WEIR_HTTP_SEC_WEBSOCKET_KEY)))
        return 400;
    *ret_detail = "the Origin is not allowed";
    return is_allowed(request, origins) ? 0 : 403;
}

int weir__ws_add_version(weir_http_headers *headers)
{
    int err = weir_http_headers_set_text(headers, WEIR_HTTP_UPGRADE, "websocket");

    if (err < 0)
        return err;
    return weir_http_headers_set_text(headers, WEIR_HTTP_SEC_WEBSOCKET_VERSION, "13");
}

/* ---- subprotocols ---- */

/* Names of subprotocols are case-sensitive. */
static bool is_offered(const weir_http_headers *headers, const char *protocol)
{
    weir_span list, element;
    size_t index = 0;

    while (weir_http_headers_next(headers, WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL, &index, &list))
        while (weir__http_list_next(&list, &element))
            if (weir_span_equal(element, weir_span_of_text(protocol)))
                return true;
    return false;
}

static const char *select_protocol(const weir_http_headers *headers, const char *const *protocols)
{
    for (; protocols != NULL && *protocols != NULL; protocols++)
        if (is_offered(headers, *protocols))
            return *protocols;
    return NULL;
}

/* ---- permessage-deflate ---- */

/* The parameters of an offer or an answer. Bits: 0 = missing. */
struct parameters {
    uint8_t server_bits;
    uint8_t client_bits;
    bool has_client_bits; /* perhaps without a value: then client_bits is 15 */
    bool server_alone;    /* server_no_context_takeover */
    bool client_alone;
};

/* 8 to 15, without a leading zero; 0 if it is something else. */
static uint8_t parse_bits(weir_span value)
{
    unsigned bits = 0;

    if (value.length < 1 || value.length > 2 || value.data[0] == '0' ||
        !weir__http_chars_are(value, WEIR__HTTP_DIGIT))
        return 0;
    for (size_t i = 0; i < value.length; i++)
        bits = bits * 10 + (value.data[i] - (unsigned)'0');
    return bits >= 8 && bits <= BITS_MAX ? (uint8_t)bits : 0;
}

/* A flag is given once and has no value. */
static bool set_flag(bool *flag, weir_span value)
{
    bool fits = !*flag && value.data == NULL;

    *flag = true;
    return fits;
}

/* False if the parameter is unknown, repeated, or has a wrong value. `value.data` is NULL if it has
 * none. */
static bool set_parameter(struct parameters *all, weir_span name, weir_span value)
{
    bool has_bits;

    if (weir__http_is_text(name, "server_no_context_takeover"))
        return set_flag(&all->server_alone, value);
    if (weir__http_is_text(name, "client_no_context_takeover"))
        return set_flag(&all->client_alone, value);
    if (weir__http_is_text(name, "server_max_window_bits")) {
        has_bits = all->server_bits != 0;
        all->server_bits = parse_bits(value);
        return !has_bits && all->server_bits != 0;
    }
    if (!weir__http_is_text(name, "client_max_window_bits"))
        return false;
    has_bits = all->has_client_bits;
    all->has_client_bits = true;
    all->client_bits = value.data != NULL ? parse_bits(value) : BITS_MAX;
    return !has_bits && all->client_bits != 0;
}

/* Reads all parameters of an offer or an answer. False if one of them is malformed or unknown. */
static bool parse_parameters(weir_span rest, struct parameters *ret_all)
{
    struct parameters all = {0};
    uint8_t unquoted[8];

    while (rest.length > 0) {
        weir_span after = weir__http_span_from(rest, 1), name, value = weir_span_of(NULL, 0);
        weir__http_parameter found;

        name = weir__http_parameters_begin(&after);
        if (weir_span_find(name, '=') < 0) {
            rest = after;
        } else {
            if (weir__http_parameters_next(&rest, &found) != 1 ||
                found.value.length > sizeof(unquoted))
                return false;
            name = found.name;
            value = weir_span_of(unquoted, weir__http_unquote(&found, unquoted));
        }
        if (!set_parameter(&all, name, value))
            return false;
    }
    *ret_all = all;
    return true;
}

static uint8_t smaller(int a, int b)
{
    return (uint8_t)(a < b ? a : b);
}

/* A window that is larger than that of the compressor does no harm. */
static uint8_t decompress_bits(int bits)
{
    return (uint8_t)(bits < 9 ? 9 : bits);
}

/* Answers an offer: both windows as small as both sides want. */
static void accept_offer(const struct parameters *offer, const weir_ws_options *options,
                         weir__ws_agreed *agreed)
{
    int ours = weir__ws_deflate_bits(options), theirs = weir__ws_inflate_bits(options);
    uint8_t client_bits = BITS_MAX;

    if (offer->server_bits != 0)
        ours = smaller(ours, offer->server_bits);
    if (offer->has_client_bits)
        client_bits = smaller(theirs, offer->client_bits);
    agreed->server_bits = offer->server_bits != 0 || ours < BITS_MAX ? (uint8_t)ours : 0;
    agreed->client_bits = client_bits < BITS_MAX ? client_bits : 0;
    agreed->deflate = (weir__ws_deflate_terms){
        .is_on = true,
        .compress_bits = (uint8_t)ours,
        .decompress_bits = decompress_bits(client_bits),
        .compress_alone = offer->server_alone || options->no_context_takeover,
        .decompress_alone = offer->client_alone || options->no_context_takeover,
    };
}

/* Accepts the first offer that can be accepted. */
static void select_deflate(const weir_http_headers *headers, const weir_ws_options *options,
                           weir__ws_agreed *agreed)
{
    weir_span list, offer;
    struct parameters parameters;
    size_t index = 0;

    while (weir_http_headers_next(headers, WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS, &index, &list)) {
        while (weir__http_list_next(&list, &offer)) {
            if (!weir__http_is_text(weir__http_parameters_begin(&offer), EXTENSION) ||
                !parse_parameters(offer, &parameters))
                continue;
            accept_offer(&parameters, options, agreed);
            return;
        }
    }
}

void weir__ws_agree(const weir_http_request *request, const weir_ws_options *options,
                    weir__ws_agreed *ret_agreed)
{
    const weir_http_headers *headers = weir_http_request_headers(request);

    *ret_agreed = (weir__ws_agreed){.protocol = select_protocol(headers, options->protocols)};
    if (options->deflate)
        select_deflate(headers, options, ret_agreed);
}

/* ---- fields ---- */

struct text {
    char bytes[EXTENSION_TEXT];
    size_t length;
};

static void add_text(struct text *text, const char *more)
{
    size_t length = strlen(more);

    memcpy(text->bytes + text->length, more, length);
    text->length += length;
}

/* `bits` 0: the parameter is left out. */
static void add_bits(struct text *text, const char *name, int bits)
{
    if (bits > 0)
        text->length += (size_t)snprintf(text->bytes + text->length,
                                         sizeof(text->bytes) - text->length, "; %s=%d", name, bits);
}

static int add_extension(weir_http_headers *headers, const struct text *text)
{
    return weir_http_headers_add(headers, WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS,
                                 weir_span_of(text->bytes, text->length));
}

static int add_answer(weir_http_headers *headers, const weir__ws_agreed *agreed)
{
    struct text text = {.length = 0};

    add_text(&text, EXTENSION);
    if (agreed->deflate.compress_alone)
        add_text(&text, "; server_no_context_takeover");
    if (agreed->deflate.decompress_alone)
        add_text(&text, "; client_no_context_takeover");
    add_bits(&text, "server_max_window_bits", agreed->server_bits);
    add_bits(&text, "client_max_window_bits", agreed->client_bits);
    return add_extension(headers, &text);
}

int weir__ws_add_response_fields(weir_http_headers *headers, const weir_http_request *request,
                                 const weir__ws_agreed *agreed)
{
    char accept[WEIR__WS_ACCEPT + 1];
    int err = weir_http_headers_set_text(headers, WEIR_HTTP_UPGRADE, "websocket");

    weir__ws_accept_of(
        weir_http_headers_get(weir_http_request_headers(request), WEIR_HTTP_SEC_WEBSOCKET_KEY),
        accept);
    if (err == 0)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_SEC_WEBSOCKET_ACCEPT, accept);
    if (err == 0 && agreed->protocol != NULL)
        err =
            weir_http_headers_set_text(headers, WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL, agreed->protocol);
    if (err == 0 && agreed->deflate.is_on)
        err = add_answer(headers, agreed);
    return err;
}

static int add_offer(weir_http_headers *headers, const weir_ws_options *options)
{
    int ours = weir__ws_deflate_bits(options), theirs = weir__ws_inflate_bits(options);
    struct text text = {.length = 0};

    add_text(&text, EXTENSION);
    if (ours == BITS_MAX)
        add_text(&text, "; client_max_window_bits");
    else
        add_bits(&text, "client_max_window_bits", ours);
    add_bits(&text, "server_max_window_bits", theirs < BITS_MAX ? theirs : 0);
    if (options->no_context_takeover)
        add_text(&text, "; client_no_context_takeover; server_no_context_takeover");
    return add_extension(headers, &text);
}

/* All in one field, best first: some servers read only one. */
static int add_protocols(weir_http_headers *headers, const char *const *protocols)
{
    weir_buf *list;
    int err = weir_buf_create(256, 0, &list);

    if (err < 0)
        return err;
    for (const char *const *protocol = protocols; err == 0 && *protocol != NULL; protocol++)
        err = weir_buf_printf(list, "%s%s", protocol == protocols ? "" : ", ", *protocol);
    if (err == 0)
        err = weir_http_headers_set(headers, WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL, weir_buf_span(list));
    weir_buf_release(list);
    return err;
}

int weir__ws_add_request_fields(weir_http_headers *headers, const char *key,
                                const weir_ws_options *options)
{
    int err = weir_http_headers_set_text(headers, WEIR_HTTP_UPGRADE, "websocket");

    if (err == 0)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_SEC_WEBSOCKET_VERSION, "13");
    if (err == 0)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_SEC_WEBSOCKET_KEY, key);
    if (err == 0 && options->protocols != NULL && options->protocols[0] != NULL)
        err = add_protocols(headers, options->protocols);
    if (err == 0 && options->deflate)
        err = add_offer(headers, options);
    return err;
}

/* ---- responses ---- */

/* False if the server has selected a subprotocol that was not offered, or several. */
static bool check_protocol(const weir_http_headers *headers, const char *const *protocols,
                           const char **ret_protocol)
{
    weir_span selected = only_value(headers, WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL);

    *ret_protocol = NULL;
    if (selected.data == NULL)
        return weir_http_headers_get(headers, WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL).data == NULL;
    for (; protocols != NULL && *protocols != NULL; protocols++)
        if (weir_span_equal(selected, weir_span_of_text(*protocols))) {
            *ret_protocol = *protocols;
            return true;
        }
    return false;
}

/* Both windows are at most as large as those of the offer. */
static bool take_answer(const struct parameters *answer, const weir_ws_options *options,
                        weir__ws_deflate_terms *terms)
{
    int ours = weir__ws_deflate_bits(options), theirs = weir__ws_inflate_bits(options);
    int server_bits = answer->server_bits != 0 ? answer->server_bits : BITS_MAX;

    if (server_bits > theirs || answer->client_bits > ours ||
        (options->no_context_takeover && !answer->server_alone))
        return false;
    *terms = (weir__ws_deflate_terms){
        .is_on = true,
        .compress_bits = answer->has_client_bits ? answer->client_bits : (uint8_t)ours,
        .decompress_bits = decompress_bits(server_bits),
        .compress_alone = answer->client_alone || options->no_context_takeover,
        .decompress_alone = answer->server_alone,
    };
    return true;
}

/* False if the server has selected an extension that was not offered, or several. */
static bool check_extensions(const weir_http_headers *headers, const weir_ws_options *options,
                             weir__ws_deflate_terms *terms)
{
    weir_span list, answer;
    struct parameters parameters;
    size_t index = 0;

    while (weir_http_headers_next(headers, WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS, &index, &list)) {
        while (weir__http_list_next(&list, &answer)) {
            if (!options->deflate || terms->is_on ||
                !weir__http_is_text(weir__http_parameters_begin(&answer), EXTENSION) ||
                !parse_parameters(answer, &parameters) || !take_answer(&parameters, options, terms))
                return false;
        }
    }
    return true;
}

int weir__ws_check_response(const weir_http_response *response, const char *key,
                            const weir_ws_options *options, weir__ws_agreed *ret_agreed,
                            const char **ret_detail)
{
    const weir_http_headers *headers = weir_http_response_headers(response);
    char accept[WEIR__WS_ACCEPT + 1];

    *ret_agreed = (weir__ws_agreed){.protocol = NULL};
    *ret_detail = "the response has no Connection: Upgrade and Upgrade: websocket";
    if (!is_upgrade(headers))
        return WEIR_EMALFORMED;
    weir__ws_accept_of(weir_span_of_text(key), accept);
    *ret_detail = "Sec-WebSocket-Accept does not match the key";
    if (!weir_span_equal(only_value(headers, WEIR_HTTP_SEC_WEBSOCKET_ACCEPT),
                         weir_span_of_text(accept)))
        return WEIR_EMALFORMED;
    *ret_detail = "the server selected a subprotocol that was not offered";
    if (!check_protocol(headers, options->protocols, &ret_agreed->protocol))
        return WEIR_EMALFORMED;
    *ret_detail = "the server selected an extension that was not offered";
    return check_extensions(headers, options, &ret_agreed->deflate) ? 0 : WEIR_EMALFORMED;
}

/* ---- options ---- */

int weir__ws_check_options(const weir_ws_options *options)
{
    const char *const *protocol = options->protocols;

    if (options->init == NULL)
        return weir__options_reject("websocket", NULL, ".init is required");
    for (; protocol != NULL && *protocol != NULL; protocol++)
        if (!weir__http_is_token(weir_span_of_text(*protocol)))
            return weir__options_reject("websocket", NULL, "the subprotocol \"%s\" is not a token",
                                        *protocol);
    if (options->deflate_window_bits != 0 && options->deflate_window_bits < 9)
        return weir__options_reject("websocket", NULL,
                                    "deflate_window_bits is %d, the minimum is 9",
                                    options->deflate_window_bits);
    if (options->inflate_window_bits != 0 && options->inflate_window_bits < 9)
        return weir__options_reject("websocket", NULL,
                                    "inflate_window_bits is %d, the minimum is 9",
                                    options->inflate_window_bits);
    return weir__options_check("websocket", NULL, WEIR__OPTION(options, deflate_level, 0, 9),
                               WEIR__OPTION(options, deflate_window_bits, 0, BITS_MAX),
                               WEIR__OPTION(options, inflate_window_bits, 0, BITS_MAX),
                               WEIR__OPTION_FROM(options, ping_interval_ns, WEIR_OFF),
                               WEIR__OPTION_FROM(options, close_timeout_ns, WEIR_OFF));
}
