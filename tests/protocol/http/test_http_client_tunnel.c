/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels through HTTP proxies, with an embedded channel: the test is the proxy.
 */
#include "protocol/http/http_client.h"

#include <errno.h>
#include <string.h>

#include <weir/embedded.h>
#include <weir/error.h>

#include "support/test.h"

/* Counts `active` behind the tunnel. */
static struct witness {
    unsigned actives;
    int err;
} witness;

static void on_active(weir_ctx *ctx)
{
    witness.actives++;
    weir_fire_active(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    (void)detail;
    witness.err = err;
}

static const weir_handler witness_handler = {
    .name = "witness", .active = on_active, .error = on_error};

static weir_embedded *open_tunnel(void)
{
    weir_embedded *e = NULL;

    witness = (struct witness){0};
    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.connect_later = true), &e), 0);
    assert_int_equal(weir__http_tunnel_add(weir_embedded_pipeline(e), "a:443", NULL), 0);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(e), &witness_handler, NULL), 0);
    weir_channel_connect(weir_embedded_channel(e), &(weir_address){0}, NULL, NULL);
    weir_embedded_run(e);
    weir_msg_release(weir_embedded_read_outbound(e)); /* the request */
    return e;
}

static void receive(weir_embedded *e, const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    (void)weir_embedded_write_inbound(e, weir_buf_msg(buf));
}

TEST(http_client_tunnel, does_not_wait_for_ever)
{
    weir_embedded *e = open_tunnel();

    weir_embedded_advance(e, weir_seconds(11));
    assert_int_equal(witness.err, -ETIMEDOUT);
    assert_int_equal(witness.actives, 0);
    assert_false(weir_channel_is_open(weir_embedded_channel(e)));
    weir_embedded_release(e);
}

TEST(http_client_tunnel, has_all_the_time_when_it_is_open)
{
    weir_embedded *e = open_tunnel();
    weir_msg *msg;

    receive(e, "HTTP/1.1 103 Early Hints\r\n\r\n");
    assert_int_equal(witness.actives, 0);
    receive(e, "HTTP/1.1 200 OK\r\n\r\nbytes");
    assert_int_equal(witness.actives, 1);
    msg = weir_embedded_read_inbound(e);
    assert_non_null(msg);
    assert_true(weir_span_equal(weir_buf_span(weir_buf_of(msg)), weir_span_of_text("bytes")));
    weir_msg_release(msg);
    weir_embedded_advance(e, weir_seconds(3600));
    assert_int_equal(witness.err, 0);
    assert_true(weir_channel_is_open(weir_embedded_channel(e)));
    weir_embedded_release(e);
}

TEST(http_client_tunnel, is_not_opened_by_a_refusal)
{
    weir_embedded *e = open_tunnel();

    receive(e, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbytes");
    assert_int_equal(witness.err, -EACCES);
    assert_int_equal(witness.actives, 0);
    assert_false(weir_channel_is_open(weir_embedded_channel(e)));
    weir_embedded_release(e);
}
