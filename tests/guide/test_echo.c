/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of docs/guide/02-echo.md: a handler that passes everything on, and a write from another
 * thread.
 */
#include <stdio.h>
#include <weir/weir.h>

#include "guide/guide_fixture.h"

/* doc:begin tell */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    printf("%zu bytes in\n", weir_buf_readable(weir_buf_of(msg)));
    weir_fire_read(ctx, msg);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    printf("%zu bytes out\n", weir_buf_readable(weir_buf_of(msg)));
    weir_write(ctx, msg, done);
}

static const weir_handler tell = {.name = "tell", .read = on_read, .write = on_write};
/* doc:end */

/* doc:begin greet */
static void greet(weir_channel *channel)
{
    weir_buf *buf;

    if (weir_buf_create_from("hello\n", 6, &buf) == 0)
        weir_channel_write_and_flush(channel, weir_buf_msg(buf), NULL);
}
/* doc:end */

TEST(echo, a_handler_that_only_looks_passes_on_what_it_has_seen)
{
    weir_embedded *embedded = embed(&tell, NULL);

    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("abc")), 0);
    assert_text(weir_embedded_read_inbound(embedded), "abc");
    greet(weir_embedded_channel(embedded));
    assert_text(weir_embedded_read_outbound(embedded), "hello\n");
    weir_embedded_release(embedded);
}

TEST(echo, a_greeting_for_a_closed_channel_is_released)
{
    weir_embedded *embedded = embed(&tell, NULL);

    assert_false(weir_embedded_finish(embedded));
    greet(weir_embedded_channel(embedded));
    assert_null(weir_embedded_read_outbound(embedded));
    weir_embedded_release(embedded);
}
