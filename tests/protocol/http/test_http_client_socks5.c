/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels through SOCKS5 proxies, with an embedded channel: the test is the proxy.
 */
#include "protocol/http/http_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/embedded.h>
#include <weir/error.h>

#include "support/memory.h"
#include "support/test.h"

/* Counts `active` behind the tunnel. */
struct witness {
    unsigned actives;
    int err;
    char detail[128];
};

static struct witness witness;

static void on_active(weir_ctx *ctx)
{
    witness.actives++;
    weir_fire_active(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    witness.err = err;
    (void)snprintf(witness.detail, sizeof(witness.detail), "%s", detail != NULL ? detail : "");
}

static const weir_handler witness_handler = {
    .name = "witness", .active = on_active, .error = on_error};

static weir_embedded *open_tunnel(const char *host, const char *userinfo)
{
    weir_embedded *e = NULL;
    weir_pipeline *pipeline;

    witness = (struct witness){0};
    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.connect_later = true), &e), 0);
    pipeline = weir_embedded_pipeline(e);
    assert_int_equal(weir__http_socks5_add(pipeline, host, 443,
                                           userinfo != NULL ? weir_span_of_text(userinfo)
                                                            : weir_span_of(NULL, 0)),
                     0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &witness_handler, NULL), 0);
    weir_channel_connect(weir_embedded_channel(e), &(weir_address){0}, NULL, NULL);
    weir_embedded_run(e);
    return e;
}

static void receive(weir_embedded *e, const char *bytes, size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(bytes, length, &buf), 0);
    (void)weir_embedded_write_inbound(e, weir_buf_msg(buf));
}

static void expect_sent(weir_embedded *e, const char *bytes, size_t length)
{
    weir_msg *msg = weir_embedded_read_outbound(e);
    weir_buf *buf = weir_buf_of(msg);

    assert_non_null(buf);
    assert_int_equal(weir_buf_readable(buf), length);
    assert_memory_equal(weir_buf_bytes(buf), bytes, length);
    weir_msg_release(msg);
}

#define RECEIVE(bytes) receive(e, bytes, sizeof(bytes) - 1)
#define EXPECT(bytes) expect_sent(e, bytes, sizeof(bytes) - 1)

TEST(http_client_socks5, asks_the_proxy_to_resolve_a_name)
{
    weir_embedded *e = open_tunnel("example.test", NULL);
    weir_msg *msg;

    EXPECT("\5\1\0");
    RECEIVE("\5\0");
    EXPECT("\5\1\0\3\14example.test\1\273");
    assert_int_equal(witness.actives, 0);
    RECEIVE("\5\0\0\1\12\0\0\1\0\120rest");
    assert_int_equal(witness.actives, 1);
    msg = weir_embedded_read_inbound(e);
    assert_non_null(msg);
    assert_memory_equal(weir_buf_bytes(weir_buf_of(msg)), "rest", 4);
    weir_msg_release(msg);
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(e)), 1);
    weir_embedded_release(e);
}

TEST(http_client_socks5, sends_addresses_as_bytes)
{
    weir_embedded *e = open_tunnel("192.0.2.1", NULL);

    EXPECT("\5\1\0");
    RECEIVE("\5\0");
    EXPECT("\5\1\0\1\300\0\2\1\1\273");
    weir_embedded_release(e);

    e = open_tunnel("2001:db8::1", NULL);
    EXPECT("\5\1\0");
    RECEIVE("\5\0");
    EXPECT("\5\1\0\4\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\1\273");
    weir_embedded_release(e);
}

TEST(http_client_socks5, authenticates_with_a_password)
{
    weir_embedded *e = open_tunnel("a", "user:pass:word");

    EXPECT("\5\1\2");
    RECEIVE("\5\2");
    EXPECT("\1\4user\11pass:word");
    RECEIVE("\1\0");
    EXPECT("\5\1\0\3\1a\1\273");
    RECEIVE("\5\0\0\3\3abc\0\120");
    assert_int_equal(witness.actives, 1);
    weir_embedded_release(e);
}

TEST(http_client_socks5, takes_a_user_without_a_password)
{
    weir_embedded *e = open_tunnel("a", "user");

    EXPECT("\5\1\2");
    RECEIVE("\5\2");
    EXPECT("\1\4user\0");
    weir_embedded_release(e);
}

TEST(http_client_socks5, rejects_what_is_too_long)
{
    weir_embedded *e = NULL;
    char userinfo[2 * 255 + 3], host[257];

    assert_int_equal(weir_embedded_create(NULL, &e), 0);
    memset(userinfo, 'u', sizeof(userinfo));
    memset(host, 'h', sizeof(host));
    host[256] = '\0';
    for (int i = 0; i < 2; i++) { /* the user, the password */
        userinfo[i == 0 ? 256 : 2] = ':';
        assert_int_equal(weir__http_socks5_add(weir_embedded_pipeline(e), "a", 443,
                                               weir_span_of(userinfo, i == 0 ? 258 : 260)),
                         -EINVAL);
    }
    assert_int_equal(
        weir__http_socks5_add(weir_embedded_pipeline(e), host, 443, weir_span_of(NULL, 0)),
        -EINVAL);
    weir_embedded_release(e);
}

TEST(http_client_socks5, reads_answers_byte_by_byte)
{
    static const char answers[] = "\5\2\1\0\5\0\0\4"
                                  "0123456789abcdef"
                                  "\0\120";
    weir_embedded *e = open_tunnel("a", "u:p");

    for (size_t i = 0; i < sizeof(answers) - 1; i++) {
        assert_int_equal(witness.actives, 0);
        receive(e, &answers[i], 1);
    }
    assert_int_equal(witness.actives, 1);
    assert_null(weir_embedded_read_inbound(e));
    weir_embedded_release(e);
}

static void expect_failure(const char *userinfo, const char *first, size_t first_length,
                           const char *second, size_t second_length, int err)
{
    weir_embedded *e = open_tunnel("a", userinfo);

    receive(e, first, first_length);
    if (second != NULL)
        receive(e, second, second_length);
    assert_int_equal(witness.err, err);
    assert_int_equal(witness.actives, 0);
    assert_false(weir_channel_is_open(weir_embedded_channel(e)));
    weir_embedded_release(e);
}

#define EXPECT_FAILURE(userinfo, first, second, err) \
    expect_failure(userinfo, first, sizeof(first) - 1, second, sizeof(second) - 1, err)

TEST(http_client_socks5, reports_what_the_proxy_refuses)
{
    EXPECT_FAILURE(NULL, "\5\377", "", -EACCES);
    EXPECT_FAILURE(NULL, "\5\2", "", -EACCES);
    EXPECT_FAILURE("u:p", "\5\0", "", -EACCES);
    EXPECT_FAILURE("u:p", "\5\2", "\1\1", -EACCES);
    EXPECT_FAILURE(NULL, "HTTP/1.1 400", "", WEIR_EMALFORMED);
    EXPECT_FAILURE(NULL, "\5\0", "\5\5\0\1\0\0\0\0\0\0", -ECONNREFUSED);
    EXPECT_FAILURE(NULL, "\5\0", "\5\4\0\1\0\0\0\0\0\0", -EHOSTUNREACH);
    EXPECT_FAILURE(NULL, "\5\0", "\5\2\0\1\0\0\0\0\0\0", -EACCES);
    EXPECT_FAILURE(NULL, "\5\0", "\4\0\0\1\0\0\0\0\0\0", WEIR_EMALFORMED);
    EXPECT_FAILURE(NULL, "\5\0", "\5\0\0\7\0", WEIR_EMALFORMED);
}

TEST(http_client_socks5, does_not_wait_for_ever)
{
    weir_embedded *e = open_tunnel("a", NULL);

    weir_embedded_advance(e, weir_seconds(11));
    assert_int_equal(witness.err, -ETIMEDOUT);
    assert_false(weir_channel_is_open(weir_embedded_channel(e)));
    weir_embedded_release(e);
}

TEST(http_client_socks5, survives_failed_allocations)
{
    for (unsigned n = 1;; n++) {
        weir_embedded *e = NULL;
        bool failed;

        assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.connect_later = true), &e), 0);
        test_memory_fail_at(n);
        if (weir__http_socks5_add(weir_embedded_pipeline(e), "a", 80, weir_span_of(NULL, 0)) == 0) {
            weir_channel_connect(weir_embedded_channel(e), &(weir_address){0}, NULL, NULL);
            weir_embedded_run(e);
        }
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(e);
        if (!failed)
            break;
    }
}
