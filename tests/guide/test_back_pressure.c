/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/10-back-pressure.md shows besides the echo example.
 */
#include "guide/guide_fixture.h"

static int set_marks(weir_channel *channel)
{
    /* doc:begin marks */
    const weir_channel_options *careful =
        WEIR_CHANNEL_OPTIONS(.low_mark = 8 << 10, .high_mark = 16 << 10, /* advice */
                             .write_cap = 1 << 20);                      /* a limit */
    /* doc:end */

    return weir_channel_set_options(channel, careful);
}

/* doc:begin produce */
static weir_msg *next_line(void)
{
    weir_buf *buf;

    return weir_buf_create_from("0123456789\n", 11, &buf) == 0 ? weir_buf_msg(buf) : NULL;
}

static void produce(weir_ctx *ctx)
{
    weir_msg *msg = NULL;

    while (weir_ctx_is_writable(ctx) && (msg = next_line()) != NULL)
        weir_write(ctx, msg, NULL);
    weir_flush(ctx);
}

static const weir_handler generate = {
    .name = "generate", .active = produce, .writability = produce};
/* doc:end */

/* doc:begin sent */
static void on_sent(weir_promise *sent, void *user_data)
{
    weir_channel *from = user_data;

    if (weir_promise_result(sent) == 0)
        weir_channel_request_read(from);
    else
        weir_channel_close(from, NULL);
    weir_channel_release(from);
}
/* doc:end */

/* doc:begin try */
static bool try_write(weir_channel *channel, weir_msg *msg)
{
    if (!weir_channel_is_writable(channel))
        return false; /* the caller keeps the message */
    weir_channel_write_and_flush(channel, msg, NULL);
    return true;
}
/* doc:end */

static weir_embedded *with_space(const weir_handler *handler, int64_t space)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.socket_space = space, .register_later = true),
                             &embedded),
        0);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), handler, NULL), 0);
    assert_int_equal(set_marks(weir_embedded_channel(embedded)), 0);
    assert_int_equal(weir_embedded_register(embedded), 0);
    return embedded;
}

TEST(back_pressure, who_produces_stops_above_the_mark_and_goes_on)
{
    weir_embedded *embedded = with_space(&generate, 1);
    weir_channel *channel = weir_embedded_channel(embedded);
    int64_t pending = weir_channel_pending_bytes(channel);

    assert_false(weir_channel_is_writable(channel));
    assert_in_range(pending, 16 << 10, 17 << 10);
    weir_embedded_make_space(embedded, 12 << 10);

    assert_false(weir_channel_is_writable(channel)); /* it has produced again */
    assert_in_range(weir_channel_pending_bytes(channel), 8 << 10, 17 << 10);
    weir_embedded_release(embedded);
}

TEST(back_pressure, a_message_that_is_not_wanted_stays_with_the_producer)
{
    weir_embedded *embedded = with_space(&generate, 1);
    weir_msg *msg = text_msg("x");

    assert_false(try_write(weir_embedded_channel(embedded), msg));
    assert_int_equal(weir_msg_refs(msg), 1);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

TEST(back_pressure, the_next_piece_is_read_when_the_last_has_gone_out)
{
    weir_embedded *from = NULL, *to = NULL;
    weir_promise *sent = NULL;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)), &from),
        0);
    assert_int_equal(weir_embedded_create(NULL, &to), 0);
    assert_int_equal(weir_embedded_write_inbound(from, text_msg("next")), 0);
    assert_null(weir_embedded_read_inbound(from));
    assert_int_equal(weir_promise_create(weir_channel_executor(weir_embedded_channel(from)), &sent),
                     0);
    assert_int_equal(
        weir_promise_add_listener(sent, on_sent, weir_channel_retain(weir_embedded_channel(from))),
        0);
    weir_channel_write_and_flush(weir_embedded_channel(to), text_msg("last"), sent);
    weir_embedded_run(to);
    weir_embedded_run(from);
    assert_text(weir_embedded_read_inbound(from), "next");
    weir_promise_release(sent);
    weir_embedded_release(to);
    weir_embedded_release(from);
}
