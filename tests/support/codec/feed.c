/* SPDX-License-Identifier: Apache-2.0 */
#include "support/codec/feed.h"

#include <stdio.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/error.h>

weir_msg *feed_bytes(const void *bytes, size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(bytes, length, &buf), 0);
    return weir_buf_msg(buf);
}

/* ---- what comes out ---- */

static void note(char *text, const char *word, size_t length)
{
    size_t there = strlen(text);

    assert_true(there + length + 2 < FEED_SIZE);
    if (there > 0)
        text[there++] = '|';
    memcpy(text + there, word, length);
    text[there + length] = '\0';
}

static void note_composite(weir_composite *composite, char *text)
{
    char bytes[FEED_SIZE];
    size_t length = weir_composite_readable(composite);

    assert_true(length < sizeof(bytes));
    assert_int_equal(weir_composite_peek_bytes(composite, bytes, length), 0);
    note(text, bytes, length);
}

static void note_msg(const struct feed *feed, weir_msg *msg, char *text)
{
    char word[FEED_SIZE];

    if (feed->format != NULL) {
        feed->format(msg, word, sizeof(word));
        note(text, word, strlen(word));
    } else if (weir_buf_of(msg) != NULL) {
        note(text, (const char *)weir_buf_bytes(weir_buf_of(msg)),
             weir_buf_readable(weir_buf_of(msg)));
    } else if (weir_composite_of(msg) != NULL) {
        note_composite(weir_composite_of(msg), text);
    } else {
        (void)snprintf(word, sizeof(word), "<%s>", msg->type->name);
        note(text, word, strlen(word));
    }
}

static void collect(const struct feed *feed, weir_embedded *embedded, char *text)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_inbound(embedded)) != NULL) {
        note_msg(feed, msg, text);
        weir_msg_release(msg);
    }
}

/* Records errors among the messages. */
static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    char word[128];

    (void)detail;
    (void)snprintf(word, sizeof(word), "error(%s)", weir_error_name(err));
    weir_fire_read(ctx, feed_bytes(word, strlen(word)));
}

static const weir_handler errors_as_messages = {.name = "errors", .error = on_error};

/* ---- what goes in ---- */

static weir_embedded *open_feed(const struct feed *feed, char *ret_text)
{
    weir_embedded *embedded = NULL;

    ret_text[0] = '\0';
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    feed->add(weir_embedded_pipeline(embedded), feed);
    assert_int_equal(
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &errors_as_messages, NULL), 0);
    return embedded;
}

static void put(const struct feed *feed, weir_embedded *embedded, const char *bytes, size_t length,
                char *text)
{
    if (length > 0)
        (void)weir_embedded_write_inbound(embedded, feed_bytes(bytes, length));
    collect(feed, embedded, text);
}

static void close_feed(const struct feed *feed, weir_embedded *embedded, char *text)
{
    weir_embedded_end_input(embedded);
    (void)weir_embedded_finish(embedded);
    collect(feed, embedded, text);
    weir_embedded_release(embedded);
}

void feed_cut(const struct feed *feed, const void *bytes, size_t length, size_t first,
              size_t second, char *ret_text)
{
    weir_embedded *embedded = open_feed(feed, ret_text);
    const char *from = bytes;

    put(feed, embedded, from, first, ret_text);
    put(feed, embedded, from + first, second - first, ret_text);
    put(feed, embedded, from + second, length - second, ret_text);
    close_feed(feed, embedded, ret_text);
}

void feed_bytewise(const struct feed *feed, const void *bytes, size_t length, char *ret_text)
{
    weir_embedded *embedded = open_feed(feed, ret_text);

    for (size_t i = 0; i < length; i++)
        put(feed, embedded, (const char *)bytes + i, 1, ret_text);
    close_feed(feed, embedded, ret_text);
}

/* Splits into three parts are sampled under TSan, which finds nothing in one thread. */
#ifdef __SANITIZE_THREAD__
#define SECOND_STEP 11
#else
#define SECOND_STEP 1
#endif

void assert_fed(const struct feed *feed, const void *bytes, size_t length, const char *expected)
{
    char text[FEED_SIZE];

    for (size_t first = 0; first <= length; first++)
        for (size_t second = first; second <= length; second += SECOND_STEP) {
            feed_cut(feed, bytes, length, first, second, text);
            if (strcmp(text, expected) != 0)
                print_error("cut at %zu and %zu:\n", first, second);
            assert_string_equal(text, expected);
        }
    feed_bytewise(feed, bytes, length, text);
    assert_string_equal(text, expected);
}
