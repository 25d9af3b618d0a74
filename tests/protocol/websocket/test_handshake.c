/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "protocol/websocket/handshake.h"
#include "protocol/websocket/sha1.h"
#include "support/test.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="

struct line {
    const char *name;
    const char *value;
};

static int add_nothing(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

static void add(weir_http_headers *headers, const char *name, const char *value)
{
    assert_int_equal(
        weir_http_headers_add_named(headers, weir_span_of_text(name), weir_span_of_text(value)), 0);
}

static weir_http_request *create_request(const struct line *lines)
{
    weir_http_request *request;

    assert_int_equal(weir_http_request_create("GET", "/chat", &request), 0);
    for (; lines->name != NULL; lines++)
        add(weir_http_request_headers(request), lines->name, lines->value);
    return request;
}

#define REQUEST(...) create_request((const struct line[]){__VA_ARGS__, {NULL, NULL}})
#define UPGRADE                                        \
    {"Host", "example.org"}, {"Upgrade", "websocket"}, \
    {                                                  \
        "Connection", "Upgrade"                        \
    }
#define VERSION                       \
    {                                 \
        "Sec-WebSocket-Version", "13" \
    }
#define VALID                    \
    UPGRADE, VERSION,            \
    {                            \
        "Sec-WebSocket-Key", KEY \
    }

static int check(weir_http_request *request, const char *const *origins)
{
    const char *detail;
    int status = weir__ws_check_request(request, origins, &detail);

    weir_msg_release(weir_http_request_msg(request));
    return status;
}

static const char *field(const weir_http_headers *headers, enum weir_http_name name, char *text)
{
    weir_span value = weir_http_headers_get(headers, name);

    if (value.data == NULL)
        return "(none)";
    memcpy(text, value.data, value.length);
    text[value.length] = '\0';
    return text;
}

/* ---- key ---- */

static void expect_hash(const char *text, const char *expected)
{
    uint8_t hash[WEIR__SHA1_LENGTH];
    char hex[2 * WEIR__SHA1_LENGTH + 1];

    weir__sha1(weir_span_of_text(text), hash);
    for (size_t i = 0; i < sizeof(hash); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    assert_string_equal(hex, expected);
}

/* FIPS 180-4, and every length around the end of a block. */
TEST(sha1, hashes_the_examples)
{
    char many[120];

    expect_hash("", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    expect_hash("abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    memset(many, 'a', sizeof(many));
    many[119] = '\0';
    expect_hash(many, "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56");
    many[64] = '\0';
    expect_hash(many, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    many[63] = '\0';
    expect_hash(many, "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
    many[55] = '\0';
    expect_hash(many, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
}

TEST(handshake, answers_the_key_of_the_rfc)
{
    char accept[WEIR__WS_ACCEPT + 1];

    weir__ws_accept_of(weir_span_of_text(KEY), accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(handshake, creates_keys_that_it_accepts)
{
    char key[WEIR__WS_KEY + 1], other[WEIR__WS_KEY + 1];

    weir__ws_create_key(key);
    weir__ws_create_key(other);
    assert_string_not_equal(key, other);
    assert_int_equal(check(REQUEST(UPGRADE, VERSION, {"Sec-WebSocket-Key", key}), NULL), 0);
}

/* ---- requests ---- */

TEST(handshake, accepts_requests_that_are_right)
{
    assert_int_equal(check(REQUEST(VALID), NULL), 0);
    assert_int_equal(
        check(REQUEST({"Host", "h"}, {"Upgrade", "foo, WebSocket"},
                      {"Connection", "keep-alive, UPGRADE"}, VERSION, {"Sec-WebSocket-Key", KEY}),
              NULL),
        0);
}

TEST(handshake, refuses_requests_that_are_wrong)
{
    weir_http_request *post, *full = REQUEST(VALID);

    assert_int_equal(check(REQUEST({"Host", "h"}), NULL), 426);
    assert_int_equal(check(REQUEST({"Upgrade", "websocket"}, VERSION), NULL), 426);
    assert_int_equal(check(REQUEST({"Upgrade", "h2c"}, {"Connection", "upgrade"}, VERSION), NULL),
                     426);
    assert_int_equal(check(REQUEST(UPGRADE, {"Sec-WebSocket-Key", KEY}), NULL), 426);
    assert_int_equal(
        check(REQUEST(UPGRADE, {"Sec-WebSocket-Version", "8"}, {"Sec-WebSocket-Key", KEY}), NULL),
        426);
    assert_int_equal(check(REQUEST(VALID, VERSION), NULL), 426);
    assert_int_equal(check(REQUEST(UPGRADE, VERSION), NULL), 400);
    assert_int_equal(check(REQUEST(VALID, {"Sec-WebSocket-Key", KEY}), NULL), 400);
    assert_int_equal(check(REQUEST(UPGRADE, VERSION, {"Sec-WebSocket-Key", "c2hvcnQ="}), NULL),
                     400);
    assert_int_equal(
        check(REQUEST(UPGRADE, VERSION, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZTE="}), NULL),
        400);
    assert_int_equal(
        check(REQUEST(UPGRADE, VERSION, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ!="}), NULL),
        400);
    assert_int_equal(weir_http_request_set_content_length(full, 1), 0);
    assert_int_equal(check(full, NULL), 400);
    assert_int_equal(weir_http_request_create("POST", "/", &post), 0);
    assert_int_equal(check(post, NULL), 400);
}

TEST(handshake, refuses_foreign_origins)
{
    static const char *const some[] = {"https://a.example", "http://b.example:81", NULL};
    static const char *const any[] = {"*", NULL};
    static const char *const none[] = {NULL};

    static const struct {
        const char *origin;
        const char *const *origins;
        int status;
    } rows[] = {
        {"https://example.org", NULL, 0},
        {"http://EXAMPLE.org", NULL, 0},
        {"https://example.org:443", NULL, 0},
        {"https://example.org:444", NULL, 403},
        {"https://evil.example", NULL, 403},
        {"https://example.org.evil.example", NULL, 403},
        {"example.org", NULL, 403},
        {"null", NULL, 403},
        {"", NULL, 403},
        {"https://a.example", some, 0},
        {"HTTPS://a.EXAMPLE", some, 0},
        {"http://a.example", some, 403},
        {"http://b.example:81", some, 0},
        {"http://b.example", some, 403},
        {"https://example.org", some, 403},
        {"null", any, 0},
        {"https://example.org", none, 403},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(check(REQUEST(VALID, {"Origin", rows[i].origin}), rows[i].origins),
                         rows[i].status);
    assert_int_equal(check(REQUEST(VALID), none), 0);
    assert_int_equal(
        check(REQUEST(VALID, {"Origin", "https://a.example"}, {"Origin", "https://a.example"}),
              some),
        403);
    assert_int_equal(check(REQUEST({"Host", "example.org:8080"}, {"Upgrade", "websocket"},
                                   {"Connection", "upgrade"}, VERSION, {"Sec-WebSocket-Key", KEY},
                                   {"Origin", "http://example.org:8080"}),
                           NULL),
                     0);
}

/* ---- agreement ---- */

static const char *const chats[] = {"v2.chat", "chat", NULL};

static const char *protocol_of(const char *offered)
{
    weir_http_request *request = REQUEST(VALID, {"Sec-WebSocket-Protocol", offered});
    weir__ws_agreed agreed;

    weir__ws_agree(request, WEIR_WS_OPTIONS(.init = add_nothing, .protocols = chats), &agreed);
    weir_msg_release(weir_http_request_msg(request));
    return agreed.protocol != NULL ? agreed.protocol : "(none)";
}

static const char *protocol_of_lines(const char *first, const char *second)
{
    weir_http_request *request =
        REQUEST(VALID, {"Sec-WebSocket-Protocol", first}, {"Sec-WebSocket-Protocol", second});
    weir__ws_agreed agreed;

    weir__ws_agree(request, WEIR_WS_OPTIONS(.init = add_nothing, .protocols = chats), &agreed);
    weir_msg_release(weir_http_request_msg(request));
    return agreed.protocol != NULL ? agreed.protocol : "(none)";
}

TEST(handshake, selects_our_best_subprotocol)
{
    assert_string_equal(protocol_of_lines("other", "chat"), "chat");
    assert_string_equal(protocol_of_lines("chat", "v2.chat"), "v2.chat");
    assert_string_equal(protocol_of("chat"), "chat");
    assert_string_equal(protocol_of("chat, v2.chat"), "v2.chat");
    assert_string_equal(protocol_of("CHAT"), "(none)");
    assert_string_equal(protocol_of("chatty, ,"), "(none)");
}

/* The answer of a server to an offer. */
static const char *answer_to(const char *offer, const weir_ws_options *options)
{
    static char text[256];
    weir_http_request *request = REQUEST(VALID, {"Sec-WebSocket-Extensions", offer});
    weir_http_response *response;
    weir__ws_agreed agreed;
    const char *answer;

    assert_int_equal(weir_http_response_create(101, &response), 0);
    weir__ws_agree(request, options, &agreed);
    assert_int_equal(
        weir__ws_add_response_fields(weir_http_response_headers(response), request, &agreed), 0);
    answer = field(weir_http_response_headers(response), WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS, text);
    assert_int_equal(agreed.deflate.is_on, strcmp(answer, "(none)") != 0);
    weir_msg_release(weir_http_request_msg(request));
    weir_msg_release(weir_http_response_msg(response));
    return answer;
}

#define DEFLATE "permessage-deflate"

TEST(handshake, answers_offers_of_compression)
{
    static const char *const wrong[] = {
        "x-webkit-deflate-frame",
        DEFLATE "; server_max_window_bits",
        DEFLATE "; server_max_window_bits=7",
        DEFLATE "; server_max_window_bits=16",
        DEFLATE "; server_max_window_bits=010",
        DEFLATE "; server_max_window_bits=10; server_max_window_bits=10",
        DEFLATE "; client_max_window_bits=\"\"",
        DEFLATE "; client_max_window_bits=1x",
        DEFLATE "; client_max_window_bits; client_max_window_bits",
        DEFLATE "; client_no_context_takeover=1",
        DEFLATE "; client_no_context_takeover; client_no_context_takeover",
        DEFLATE "; server_no_context_takeover; server_no_context_takeover",
        DEFLATE "; unknown",
        DEFLATE "; unknown=\"1, permessage-deflate\"",
        DEFLATE "; ; server_no_context_takeover",
        DEFLATE ";",
        DEFLATE "; =1",
        DEFLATE "=1",
    };
    const weir_ws_options *plain = WEIR_WS_OPTIONS(.init = add_nothing, .deflate = true);
    const weir_ws_options *large =
        WEIR_WS_OPTIONS(.init = add_nothing, .deflate = true, .deflate_window_bits = 15);
    const weir_ws_options *small =
        WEIR_WS_OPTIONS(.init = add_nothing, .deflate = true, .deflate_window_bits = 9,
                        .inflate_window_bits = 10, .no_context_takeover = true);

    assert_string_equal(answer_to(DEFLATE, WEIR_WS_OPTIONS(.init = add_nothing)), "(none)");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_string_equal(answer_to(wrong[i], plain), "(none)");
    assert_string_equal(answer_to(DEFLATE, large), DEFLATE);
    assert_string_equal(answer_to(DEFLATE, plain), DEFLATE "; server_max_window_bits=12");
    assert_string_equal(answer_to("PerMessage-Deflate; client_max_window_bits", large), DEFLATE);
    assert_string_equal(answer_to(DEFLATE "; server_max_window_bits=15", large),
                        DEFLATE "; server_max_window_bits=15");
    assert_string_equal(answer_to(DEFLATE "; server_max_window_bits=\"1\\0\"", plain),
                        DEFLATE "; server_max_window_bits=10");
    assert_string_equal(answer_to(DEFLATE "; server_max_window_bits=8", plain),
                        DEFLATE "; server_max_window_bits=8");
    assert_string_equal(answer_to(DEFLATE "; client_max_window_bits=8", large),
                        DEFLATE "; client_max_window_bits=8");
    assert_string_equal(answer_to(DEFLATE "; server_no_context_takeover", large),
                        DEFLATE "; server_no_context_takeover");
    assert_string_equal(answer_to(DEFLATE "; client_no_context_takeover", large),
                        DEFLATE "; client_no_context_takeover");
    assert_string_equal(answer_to(DEFLATE "; client_max_window_bits", small),
                        DEFLATE "; server_no_context_takeover; client_no_context_takeover"
                                "; server_max_window_bits=9; client_max_window_bits=10");
    assert_string_equal(answer_to(DEFLATE, small),
                        DEFLATE "; server_no_context_takeover; client_no_context_takeover"
                                "; server_max_window_bits=9");
    assert_string_equal(answer_to("foo, " DEFLATE "; unknown, " DEFLATE
                                  "; server_max_window_bits=11, " DEFLATE,
                                  large),
                        DEFLATE "; server_max_window_bits=11");
}

/* ---- clients ---- */

/* Does the handshake of a client that offers `options` with a server that answers as given. NULL:
 * the right answer. */
static int check_answer(const weir_ws_options *options, enum weir_http_name name, const char *value,
                        weir__ws_agreed *ret_agreed)
{
    weir_http_response *response;
    weir_http_headers *headers;
    const char *detail;
    int err;

    assert_int_equal(weir_http_response_create(101, &response), 0);
    headers = weir_http_response_headers(response);
    add(headers, "Connection", "upgrade");
    add(headers, "Upgrade", "WebSocket");
    add(headers, "Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    if (value != NULL)
        assert_int_equal(weir_http_headers_set_text(headers, name, value), 0);
    else if (name != WEIR_HTTP_OTHER)
        (void)weir_http_headers_remove(headers, name);
    err = weir__ws_check_response(response, KEY, options, ret_agreed, &detail);
    weir_msg_release(weir_http_response_msg(response));
    return err;
}

/* A right response with another line of this name, and one of `value` if that is not NULL. */
static int check_twice(const char *name, const char *value)
{
    weir_http_response *response = NULL;
    weir__ws_agreed agreed;
    weir_http_headers *headers;
    const char *detail;
    int err;

    assert_int_equal(weir_http_response_create(101, &response), 0);
    headers = weir_http_response_headers(response);
    add(headers, "Connection", "upgrade");
    add(headers, "Upgrade", "WebSocket");
    add(headers, "Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    if (value != NULL)
        add(headers, name, value);
    add(headers, name, value != NULL ? value : "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    err = weir__ws_check_response(
        response, KEY, WEIR_WS_OPTIONS(.init = add_nothing, .protocols = chats), &agreed, &detail);
    weir_msg_release(weir_http_response_msg(response));
    return err;
}

TEST(handshake, refuses_wrong_responses)
{
    const weir_ws_options *options = WEIR_WS_OPTIONS(.init = add_nothing, .protocols = chats);
    weir__ws_agreed agreed;

    static const struct {
        enum weir_http_name name;
        const char *value;
        int err;
    } rows[] = {
        {WEIR_HTTP_OTHER, NULL, 0},
        {WEIR_HTTP_CONNECTION, NULL, WEIR_EMALFORMED},
        {WEIR_HTTP_UPGRADE, NULL, WEIR_EMALFORMED},
        {WEIR_HTTP_UPGRADE, "h2c", WEIR_EMALFORMED},
        {WEIR_HTTP_SEC_WEBSOCKET_ACCEPT, NULL, WEIR_EMALFORMED},
        {WEIR_HTTP_SEC_WEBSOCKET_ACCEPT, "S3pPLMBiTxaQ9kYGzzhZRbK+xOo=", WEIR_EMALFORMED},
        {WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL, "chat", 0},
        {WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL, "other", WEIR_EMALFORMED},
        {WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL, "chat, v2.chat", WEIR_EMALFORMED},
        {WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS, DEFLATE, WEIR_EMALFORMED},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(check_answer(options, rows[i].name, rows[i].value, &agreed), rows[i].err);
    assert_int_equal(check_answer(options, WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL, "chat", &agreed), 0);
    assert_string_equal(agreed.protocol, "chat");
    assert_int_equal(check_twice("Sec-WebSocket-Accept", NULL), WEIR_EMALFORMED);
    assert_int_equal(check_twice("Sec-WebSocket-Protocol", "chat"), WEIR_EMALFORMED);
}

static int check_extension(const weir_ws_options *options, const char *answer,
                           weir__ws_deflate_terms *ret_terms)
{
    weir__ws_agreed agreed;
    int err = check_answer(options, WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS, answer, &agreed);

    *ret_terms = agreed.deflate;
    return err;
}

TEST(handshake, takes_only_answers_to_its_offer)
{
    static const char *const wrong[] = {
        "foo",
        DEFLATE ", " DEFLATE,
        DEFLATE "; foo",
        DEFLATE "; client_max_window_bits=13",
        DEFLATE "; server_max_window_bits",
    };
    const weir_ws_options *options = WEIR_WS_OPTIONS(.init = add_nothing, .deflate = true);
    const weir_ws_options *small =
        WEIR_WS_OPTIONS(.init = add_nothing, .deflate = true, .inflate_window_bits = 10,
                        .no_context_takeover = true);
    weir__ws_deflate_terms terms;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(check_extension(options, wrong[i], &terms), WEIR_EMALFORMED);
    assert_int_equal(check_extension(options, NULL, &terms), 0);
    assert_false(terms.is_on);
    assert_int_equal(check_extension(options, DEFLATE, &terms), 0);
    assert_true(terms.is_on && terms.compress_bits == 12 && terms.decompress_bits == 15);
    assert_false(terms.compress_alone || terms.decompress_alone);
    assert_int_equal(check_extension(options,
                                     DEFLATE "; client_max_window_bits=8; server_max_window_bits=8"
                                             "; client_no_context_takeover",
                                     &terms),
                     0);
    assert_true(terms.compress_bits == 8 && terms.decompress_bits == 9 && terms.compress_alone);
    assert_int_equal(check_extension(small, DEFLATE, &terms), WEIR_EMALFORMED);
    assert_int_equal(check_extension(small, DEFLATE "; server_max_window_bits=10", &terms),
                     WEIR_EMALFORMED);
    assert_int_equal(
        check_extension(small, DEFLATE "; server_max_window_bits=11; server_no_context_takeover",
                        &terms),
        WEIR_EMALFORMED);
    assert_int_equal(
        check_extension(small, DEFLATE "; server_max_window_bits=10; server_no_context_takeover",
                        &terms),
        0);
    assert_true(terms.decompress_bits == 10 && terms.compress_alone && terms.decompress_alone);
}

/* Every combination of options: both sides agree on the same. */
TEST(handshake, agrees_with_itself)
{
    for (unsigned i = 0; i < 256; i++) {
        const weir_ws_options *client =
            WEIR_WS_OPTIONS(.init = add_nothing, .deflate = true,
                            .deflate_window_bits = 9 + (int)(i & 1) * 6,
                            .inflate_window_bits = 9 + (int)(i >> 1 & 1) * 6,
                            .no_context_takeover = i >> 2 & 1, .protocols = chats);
        const weir_ws_options *server =
            WEIR_WS_OPTIONS(.init = add_nothing, .deflate = i >> 3 & 1,
                            .deflate_window_bits = 9 + (int)(i >> 4 & 1) * 6,
                            .inflate_window_bits = 9 + (int)(i >> 5 & 1) * 6,
                            .no_context_takeover = i >> 6 & 1,
                            .protocols = i >> 7 != 0 ? chats : NULL);
        weir_http_request *request = REQUEST({"Host", "h"}, {"Connection", "Upgrade"});
        weir_http_response *response;
        weir__ws_agreed ours, theirs;
        const char *detail;

        assert_int_equal(
            weir__ws_add_request_fields(weir_http_request_headers(request), KEY, client), 0);
        assert_int_equal(weir__ws_check_request(request, NULL, &detail), 0);
        weir__ws_agree(request, server, &ours);
        assert_int_equal(weir_http_response_create(101, &response), 0);
        add(weir_http_response_headers(response), "Connection", "Upgrade");
        assert_int_equal(
            weir__ws_add_response_fields(weir_http_response_headers(response), request, &ours), 0);
        assert_int_equal(weir__ws_check_response(response, KEY, client, &theirs, &detail), 0);
        assert_int_equal(ours.deflate.is_on, theirs.deflate.is_on);
        assert_true(ours.deflate.compress_bits <= theirs.deflate.decompress_bits);
        assert_true(theirs.deflate.compress_bits <= ours.deflate.decompress_bits);
        assert_int_equal(ours.deflate.compress_alone, theirs.deflate.decompress_alone);
        assert_int_equal(ours.deflate.decompress_alone, theirs.deflate.compress_alone);
        assert_ptr_equal(ours.protocol, theirs.protocol);
        weir_msg_release(weir_http_request_msg(request));
        weir_msg_release(weir_http_response_msg(response));
    }
}

TEST(handshake, checks_options)
{
    static const char *const wrong[] = {"a b", NULL};

    assert_int_equal(weir__ws_check_options(WEIR_WS_OPTIONS(.init = add_nothing)), 0);
    assert_int_equal(weir__ws_check_options(WEIR_WS_OPTIONS(.deflate = true)), -EINVAL);
    assert_int_equal(
        weir__ws_check_options(WEIR_WS_OPTIONS(.init = add_nothing, .protocols = wrong)), -EINVAL);
    assert_int_equal(
        weir__ws_check_options(WEIR_WS_OPTIONS(.init = add_nothing, .deflate_window_bits = 8)),
        -EINVAL);
    assert_int_equal(
        weir__ws_check_options(WEIR_WS_OPTIONS(.init = add_nothing, .inflate_window_bits = 16)),
        -EINVAL);
    assert_int_equal(
        weir__ws_check_options(WEIR_WS_OPTIONS(.init = add_nothing, .deflate_level = 10)), -EINVAL);
}
