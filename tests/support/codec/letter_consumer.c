/* SPDX-License-Identifier: Apache-2.0 */
#include "support/codec/letter_consumer.h"

#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>

#include "support/codec/feed.h"

struct letter_log consumed;

static void record(char what)
{
    if (consumed.length < sizeof(consumed.text) - 1)
        consumed.text[consumed.length++] = what;
}

static void enter(void)
{
    consumed.depth++;
    if (consumed.depth > consumed.max_depth)
        consumed.max_depth = consumed.depth;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);
    char letter = buf != NULL ? (char)weir_buf_bytes(buf)[0] : '?';

    weir_msg_release(msg);
    record(letter);
    consumed.count++;
    enter();
    if (consumed.on_letter != NULL)
        consumed.on_letter(ctx, letter);
    consumed.depth--;
}

static void on_read_complete(weir_ctx *ctx)
{
    record(';');
    enter();
    if (consumed.on_complete != NULL)
        consumed.on_complete(ctx);
    consumed.depth--;
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    (void)ctx;
    if (event == weir_event_input_closed())
        record('E');
    weir_msg_release(event);
}

const weir_handler letter_consumer = {
    .name = "consumer", .read = on_read, .read_complete = on_read_complete, .event = on_event};

void letters_put(weir_embedded *embedded, const char *text)
{
    (void)weir_embedded_write_inbound(embedded, feed_bytes(text, strlen(text)));
}

void letters_request(weir_embedded *embedded)
{
    weir_channel_request_read(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
}

void letters_set_auto_read(weir_embedded *embedded, bool on)
{
    weir_channel_set_auto_read(weir_embedded_channel(embedded), on);
    weir_embedded_run(embedded);
}
