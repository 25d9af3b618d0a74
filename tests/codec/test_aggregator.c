/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of aggregators: Netty's MessageAggregatorTest, and more.
 *
 * A message starts with '(' and ends with ')', with its content in any number of parts between
 * them. "(5" announces a length, "(?" wants a reply, '#' in a part is an error. Messages with
 * another first character are not parts.
 */
#include <weir/aggregator.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/embedded.h>
#include <weir/error.h>

#include "support/codec/feed.h"
#include "support/memory.h"

#define LIMIT 8

static const char *text_in(const weir_msg *msg, size_t *ret_length)
{
    const weir_buf *buf = (const weir_buf *)(const void *)msg;

    *ret_length = weir_buf_readable(buf);
    return (const char *)weir_buf_bytes(buf);
}

/* "(" is a start, ".x" content, ".x)" the end, "(x)" all of it. */
static unsigned kind_of(const weir_msg *msg)
{
    size_t length;
    const char *text = text_in(msg, &length);
    unsigned kind = text[0] == '('   ? WEIR_AGGREGATOR_START
                    : text[0] == '.' ? WEIR_AGGREGATOR_CONTENT
                                     : 0;

    if (kind != 0 && text[length - 1] == ')')
        kind |= WEIR_AGGREGATOR_LAST;
    if (kind == (WEIR_AGGREGATOR_START | WEIR_AGGREGATOR_LAST))
        kind |= WEIR_AGGREGATOR_CONTENT;
    return kind;
}

static int64_t size_of(const weir_msg *part)
{
    size_t length;
    const char *text = text_in(part, &length);

    return (int64_t)length - 1 - (text[length - 1] == ')');
}

static int put(weir_buf *whole, const weir_msg *part)
{
    size_t length;
    const char *text = text_in(part, &length);

    if (memchr(text, '#', length) != NULL)
        return WEIR_EMALFORMED;
    return weir_buf_write_bytes(whole, text + 1, (size_t)size_of(part));
}

static int begin(weir_ctx *ctx, weir_msg *start, weir_msg **ret_whole)
{
    weir_buf *whole = NULL;
    int err = weir_buf_create(0, 0, &whole);

    (void)ctx;
    if (err == 0 && (kind_of(start) & WEIR_AGGREGATOR_CONTENT) != 0)
        err = put(whole, start);
    if (err < 0)
        weir_buf_release(whole);
    else
        *ret_whole = weir_buf_msg(whole);
    return err;
}

static int append(weir_ctx *ctx, weir_msg *whole, weir_msg *part)
{
    (void)ctx;
    return put(weir_buf_of(whole), part);
}

static int end(weir_ctx *ctx, weir_msg *whole)
{
    (void)ctx;
    return weir_buf_readable(weir_buf_of(whole)) == 3 ? WEIR_EMALFORMED
                                                      : 0; /* rejects a length of 3 */
}

static int64_t announced(const weir_msg *start)
{
    size_t length;
    const char *text = text_in(start, &length);

    return length > 1 && text[1] >= '0' && text[1] <= '9' ? text[1] - '0' : -1;
}

static enum weir_aggregator_action reply(weir_ctx *ctx, weir_msg *start, int64_t limit,
                                         weir_msg **ret_reply)
{
    size_t length;
    const char *text = text_in(start, &length);
    weir_buf *buf;

    (void)ctx;
    assert_int_equal(limit, LIMIT);
    if (length < 2 || strchr("?~=", text[1]) == NULL)
        return WEIR_AGGREGATOR_CONTINUE;
    if (weir_buf_create_from(text + 1, 1, &buf) == 0)
        *ret_reply = weir_buf_msg(buf);
    return text[1] == '?'   ? WEIR_AGGREGATOR_CONTINUE
           : text[1] == '~' ? WEIR_AGGREGATOR_SKIP
                            : WEIR_AGGREGATOR_CLOSE;
}

static int init(void *state, const void *options)
{
    (void)options;
    weir_aggregator_set_max_length(state, LIMIT);
    return 0;
}

#define TABLE(...)                                                                          \
    {                                                                                       \
        .handler = {.name = "aggregator",                                                   \
                    .init = init,                                                           \
                    WEIR_AGGREGATOR_SLOTS(weir_aggregator_state)},                          \
        .classify = kind_of, .begin = begin, .append = append, .end = end, .size = size_of, \
        __VA_ARGS__                                                                         \
    }

static const weir_aggregator plain = TABLE(.announced_length = announced, .reply = reply);

static weir_embedded *open_with(const weir_aggregator *aggregator, bool on_demand)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = on_demand,
                                                                  .keep_open_on_error = true)),
            &embedded),
        0);
    assert_int_equal(
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &aggregator->handler, NULL), 0);
    return embedded;
}

/* Feeds the words of a text. Returns the first error. */
static int put_words(weir_embedded *embedded, const char *words)
{
    int err = 0, result;
    size_t length;

    for (; *words != '\0'; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        result = weir_embedded_write_inbound(embedded, feed_bytes(words, length));
        err = err == 0 ? result : err;
    }
    return err;
}

static void assert_comes(weir_msg *msg, const char *text)
{
    size_t length;
    const char *bytes;

    assert_non_null(msg);
    bytes = text_in(msg, &length);
    assert_int_equal(length, strlen(text));
    assert_memory_equal(bytes, text, length);
    weir_msg_release(msg);
}

static void assert_made(const char *words, int err, const char *whole)
{
    weir_embedded *embedded = open_with(&plain, false);

    assert_int_equal(put_words(embedded, words), err);
    if (whole != NULL)
        assert_comes(weir_embedded_read_inbound(embedded), whole);
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

TEST(aggregator, combines_parts_into_one_message)
{
    assert_made("( .ab .c .d)", 0, "abcd");
    assert_made("( .)", 0, "");
    assert_made("(whole)", 0, "whole");
    assert_made("other", 0, "other");
    assert_made("( .12345678)", 0, "12345678"); /* the limit falls into it */
}

TEST(aggregator, combines_one_message_after_another)
{
    weir_embedded *embedded = open_with(&plain, false);

    assert_int_equal(put_words(embedded, "( .a) ( other .b) (c) .d ( .e"), 0);
    assert_comes(weir_embedded_read_inbound(embedded), "a");
    assert_comes(weir_embedded_read_inbound(embedded), "other");
    assert_comes(weir_embedded_read_inbound(embedded), "b");
    assert_comes(weir_embedded_read_inbound(embedded), "c");
    assert_null(weir_embedded_read_inbound(embedded)); /* "d" belongs to no message */
    weir_embedded_release(embedded);                   /* and "e" is incomplete */
}

TEST(aggregator, rejects_a_message_over_the_limit_and_skips_the_rest)
{
    assert_made("( .1234 .56789 .x .y) ( .ok)", WEIR_ETOOLONG, "ok");
    assert_made("(123456789) (ok)", WEIR_ETOOLONG, "ok");
    assert_made("(9 .x .y) (ok)", WEIR_ETOOLONG, "ok"); /* the announced length */
    assert_made("(8 .ok)", 0, "ok");
}

static void record_error(weir_ctx *ctx, int err, const char *detail)
{
    assert_int_equal(err, WEIR_ETOOLONG);
    assert_string_equal(detail, "message over the limit of 8 bytes");
    weir_fire_read(ctx, feed_bytes("caught", 6));
}

TEST(aggregator, names_the_limit)
{
    static const weir_handler error_handler = {.name = "error_handler", .error = record_error};
    weir_embedded *embedded = open_with(&plain, false);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &error_handler, NULL),
                     0);
    assert_int_equal(put_words(embedded, "(9"), 0);
    assert_comes(weir_embedded_read_inbound(embedded), "caught");
    weir_embedded_release(embedded);
}

static void forgive(weir_ctx *ctx, weir_msg *msg)
{
    weir_fire_read(ctx, feed_bytes("long", 4));
    (void)msg;
}

TEST(aggregator, calls_too_long_instead_of_firing_the_error)
{
    static const weir_aggregator forgiving = TABLE(.too_long = forgive);
    weir_embedded *embedded = open_with(&forgiving, false);

    assert_int_equal(put_words(embedded, "( .123456789 .x) (123456789)"), 0);
    assert_comes(weir_embedded_read_inbound(embedded), "long");
    assert_comes(weir_embedded_read_inbound(embedded), "long");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

TEST(aggregator, fires_errors_of_callbacks_and_skips_the_rest)
{
    assert_made("( .a# .b) (ok)", WEIR_EMALFORMED, "ok");
    assert_made("(#) (ok)", WEIR_EMALFORMED, "ok");
    assert_made("( .abc) (ok)", WEIR_EMALFORMED, "ok"); /* of `end` */
}

TEST(aggregator, fires_an_error_if_a_start_follows_an_unfinished_message)
{
    assert_made("( .a ( .b)", WEIR_EMALFORMED, "b");
}

TEST(aggregator, replies_before_continuing)
{
    weir_embedded *embedded = open_with(&plain, false);

    assert_int_equal(put_words(embedded, "(?"), 0);
    assert_comes(weir_embedded_read_outbound(embedded), "?");
    assert_int_equal(put_words(embedded, ".ok)"), 0);
    assert_comes(weir_embedded_read_inbound(embedded), "ok");
    weir_embedded_release(embedded);
}

TEST(aggregator, replies_and_skips_the_message)
{
    weir_embedded *embedded = open_with(&plain, false);

    assert_int_equal(put_words(embedded, "(~ .no .no) (ok)"), 0);
    assert_comes(weir_embedded_read_outbound(embedded), "~");
    assert_comes(weir_embedded_read_inbound(embedded), "ok");
    assert_null(weir_embedded_read_inbound(embedded));
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(aggregator, replies_and_closes)
{
    weir_embedded *embedded = open_with(&plain, false);

    (void)put_words(embedded, "(=");
    assert_comes(weir_embedded_read_outbound(embedded), "=");
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(aggregator, requests_more_parts_with_reads_on_demand)
{
    weir_embedded *embedded = open_with(&plain, true);

    (void)put_words(embedded, "( .a .b) (c)");
    weir_channel_request_read(weir_embedded_channel(embedded)); /* one request, one message */
    weir_embedded_run(embedded);
    assert_comes(weir_embedded_read_inbound(embedded), "ab");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

static unsigned removals;

static void count_removal(weir_ctx *ctx)
{
    (void)ctx;
    removals++;
}

TEST(aggregator, releases_the_unfinished_message_when_removed)
{
    static const weir_aggregator counting = TABLE(.removed = count_removal);
    weir_embedded *embedded = open_with(&counting, false);

    removals = 0;
    assert_int_equal(put_words(embedded, "( .a"), 0);
    assert_int_equal(weir_pipeline_remove(weir_embedded_pipeline(embedded), "aggregator", NULL), 0);
    assert_int_equal(removals, 1);
    assert_int_equal(put_words(embedded, ".b)"), 0);
    assert_comes(weir_embedded_read_inbound(embedded), ".b)");
    weir_embedded_release(embedded);
}

static void remove_aggregator(weir_ctx *ctx, int err, const char *detail)
{
    (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "aggregator", NULL);
    weir_fire_error(ctx, err, detail);
}

TEST(aggregator, passes_messages_on_after_an_error_handler_removed_it)
{
    static const weir_handler remover = {.name = "remover", .error = remove_aggregator};
    weir_embedded *embedded = open_with(&plain, false);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &remover, NULL), 0);
    assert_int_equal(put_words(embedded, "( .a ( .b)"), WEIR_EMALFORMED);
    assert_comes(weir_embedded_read_inbound(embedded), "(");
    assert_comes(weir_embedded_read_inbound(embedded), ".b)");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

static int end_and_go(weir_ctx *ctx, weir_msg *whole)
{
    weir_ctx_remove(ctx);
    return end(ctx, whole);
}

TEST(aggregator, may_be_removed_by_its_end_callback)
{
    static const weir_aggregator going = {
        .handler = {.name = "aggregator",
                    .init = init,
                    WEIR_AGGREGATOR_SLOTS(weir_aggregator_state)},
        .classify = kind_of,
        .begin = begin,
        .append = append,
        .end = end_and_go,
        .size = size_of,
    };
    weir_embedded *embedded = open_with(&going, false);

    assert_int_equal(put_words(embedded, "( .ab) .c"), 0);
    assert_comes(weir_embedded_read_inbound(embedded), "ab");
    assert_comes(weir_embedded_read_inbound(embedded), ".c");
    weir_embedded_release(embedded);
}

static bool aggregate_without(unsigned n)
{
    weir_embedded *embedded = open_with(&plain, false);
    weir_msg *msgs[] = {feed_bytes("(", 1), feed_bytes(".ab", 3), feed_bytes("(?", 2),
                        feed_bytes(".)", 2)};
    bool failed;

    test_memory_fail_at(n);
    for (size_t i = 0; i < 4; i++)
        (void)weir_embedded_write_inbound(embedded, msgs[i]);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    return failed;
}

TEST(aggregator, survives_allocation_failures)
{
    for (unsigned n = 1; aggregate_without(n); n++)
        ;
}
