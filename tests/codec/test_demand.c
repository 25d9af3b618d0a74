/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read requests and decoders: with auto-read off, each request delivers one message.
 */
#include <errno.h>
#include <string.h>

#include <weir/aggregator.h>
#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/codec.h>
#include <weir/embedded.h>
#include <weir/handler.h>
#include <weir/proxy_protocol.h>

#include "support/codec/feed.h"
#include "support/codec/letter_consumer.h"
#include "support/memory.h"

#define MANY 10000

/* ---- letters: one message for each byte, made by each base ---- */

static int take_letter(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir_buf *letter;

    (void)ctx;
    if (weir_buf_read_slice(in, 1, &letter) < 0)
        return -ENOMEM;
    *ret_msg = weir_buf_msg(letter);
    return 1;
}

static const weir_decoder letters = {
    .handler = {.name = "letters", WEIR_DECODER_SLOTS(weir_decoder_state)},
    .decode = take_letter,
};

/* The same with weir_decoder_pass. */
static int pass_letters(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir_msg *letter;

    (void)ret_msg;
    while (weir_buf_readable(in) > 0) {
        if (take_letter(ctx, in, &letter) < 0)
            return -ENOMEM;
        weir_decoder_pass(ctx, letter);
    }
    return 1;
}

static const weir_decoder passed_letters = {
    .handler = {.name = "passed-letters", WEIR_DECODER_SLOTS(weir_decoder_state)},
    .decode = pass_letters,
};

static int spell(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    weir_buf *word = weir_buf_of(msg);
    weir_msg *letter;
    int err = 0;

    while (err == 0 && weir_buf_readable(word) > 0) {
        err = take_letter(ctx, word, &letter) < 0 ? -ENOMEM : weir_msg_list_add(out, letter);
    }
    return err;
}

static const weir_msg_decoder spelling = {
    .handler = {.name = "spelling", WEIR_MSG_DECODER_SLOTS(weir_msg_decoder_state)},
    .decode = spell,
};

static int spell_next(weir_ctx *ctx, weir_msg *msg, weir_msg **ret_msg)
{
    weir_buf *word = weir_buf_of(msg);

    if (weir_buf_readable(word) > 0 && take_letter(ctx, word, ret_msg) < 0)
        return -ENOMEM;
    return weir_buf_readable(word) > 0;
}

static const weir_msg_decoder lazy_spelling = {
    .handler = {.name = "lazy-spelling", WEIR_MSG_DECODER_SLOTS(weir_msg_decoder_state)},
    .type = &weir_buf_type,
    .decode_next = spell_next,
};

static const weir_handler *const bases[] = {&letters.handler, &passed_letters.handler,
                                            &spelling.handler, &lazy_spelling.handler};

#define BASES (sizeof(bases) / sizeof(bases[0]))

static weir_embedded *open_with(const weir_handler *handler, bool on_demand)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    memset(&consumed, 0, sizeof(consumed));
    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = on_demand,
                                                                  .half_closure = true)),
            &embedded),
        0);
    pipeline = weir_embedded_pipeline(embedded);
    if (handler != NULL)
        assert_int_equal(weir_pipeline_add_last(pipeline, handler, NULL), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &letter_consumer, NULL), 0);
    return embedded;
}

/* ---- one at a time ---- */

static void switch_off(weir_ctx *ctx, char letter)
{
    if (letter == 'b')
        weir_ctx_set_auto_read(ctx, false);
}

TEST(demand, messages_wait_once_auto_read_is_off)
{
    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(bases[i], false);

        consumed.on_letter = switch_off;
        letters_put(embedded, "abcd");
        assert_consumed("ab;");
        letters_put(embedded, "ef");
        assert_consumed("");
        letters_request(embedded);
        assert_consumed("c;");
        letters_set_auto_read(embedded, true); /* everything queued, and the data in the socket */
        assert_consumed("d;ef;");
        letters_put(embedded, "g");
        assert_consumed("g;");
        weir_embedded_release(embedded);
    }
}

TEST(demand, each_request_brings_one_message)
{
    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(bases[i], true);

        letters_put(embedded, "abc");
        letters_put(embedded, "d");
        assert_consumed("");
        letters_request(embedded);
        assert_consumed("a;");
        letters_request(embedded);
        letters_request(embedded);
        assert_consumed("b;c;");
        letters_request(embedded); /* from here on the socket has to be read again */
        assert_consumed("d;");
        letters_request(embedded); /* waits for data */
        letters_request(embedded); /* requests do not add up */
        assert_consumed("");
        letters_put(embedded, "ef");
        assert_consumed("e;");
        weir_embedded_release(embedded);
    }
}

static void ask_in_read(weir_ctx *ctx, char letter)
{
    (void)letter;
    weir_request_read(ctx);
}

static void ask_in_read_complete(weir_ctx *ctx)
{
    weir_request_read(ctx);
}

static void put_many(weir_embedded *embedded)
{
    static char text[MANY + 1];

    memset(text, 'x', MANY);
    letters_request(embedded);
    letters_put(embedded, text);
    assert_int_equal(consumed.count, MANY);
    assert_int_equal(consumed.max_depth, 1);
}

TEST(demand, many_requests_from_inside_do_not_need_stack)
{
    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(bases[i], true);

        consumed.on_letter = ask_in_read;
        put_many(embedded);
        weir_embedded_release(embedded);
        embedded = open_with(bases[i], true);
        consumed.on_complete = ask_in_read_complete;
        put_many(embedded);
        weir_embedded_release(embedded);
    }
}

/* Two decoders: the lower one is called from inside a message that it passed on. */
TEST(demand, many_requests_through_two_decoders_do_not_need_stack)
{
    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(bases[i], true);

        assert_int_equal(weir_pipeline_add(weir_embedded_pipeline(embedded),
                                           WEIR_PLACE(.before = "consumer"), &letters.handler,
                                           NULL),
                         0);
        consumed.on_complete = ask_in_read_complete;
        put_many(embedded);
        weir_embedded_release(embedded);
    }
}

/* ---- the order of answers ---- */

static void go_on(void *arg, int status)
{
    (void)status;
    weir_channel_set_auto_read(arg, true);
}

/* The obvious code: switch off, work on another thread, switch on when done. */
static void work_on(weir_ctx *ctx, char letter)
{
    weir_channel *channel = weir_ctx_channel(ctx);

    (void)letter;
    weir_ctx_set_auto_read(ctx, false);
    assert_int_equal(weir_execute(weir_channel_executor(channel), go_on, channel), 0);
}

TEST(demand, work_that_switches_auto_read_runs_in_sequence)
{
    weir_embedded *embedded = open_with(NULL, false);

    assert_int_equal(weir_pipeline_add(weir_embedded_pipeline(embedded),
                                       WEIR_PLACE(.before = "consumer"), &letters.handler, NULL),
                     0);
    consumed.on_letter = work_on;
    letters_put(embedded, "abc");
    letters_put(embedded, "de");
    assert_consumed("a;b;c;d;e;");
    weir_embedded_release(embedded);
}

/* ---- the end ---- */

TEST(demand, the_end_of_the_input_waits_behind_messages)
{
    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(bases[i], true);

        letters_put(embedded, "abc");
        weir_embedded_end_input(embedded);
        letters_request(embedded);
        assert_consumed("a;");
        weir_channel_shutdown_input(weir_embedded_channel(embedded), NULL); /* without a request */
        weir_embedded_run(embedded);
        assert_consumed("");
        letters_request(embedded);
        assert_consumed("b;");
        letters_request(embedded);
        assert_consumed("c;E");
        weir_embedded_release(embedded);
    }
}

static int take_rest(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    return weir_buf_readable(in) > 0 ? take_letter(ctx, in, ret_msg) : 0;
}

static int take_none(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    (void)in;
    (void)ret_msg;
    return weir_decoder_need(ctx, 100);
}

TEST(demand, a_message_of_decode_last_waits_too)
{
    static const weir_decoder rest = {
        .handler = {.name = "rest", WEIR_DECODER_SLOTS(weir_decoder_state)},
        .decode = take_none,
        .decode_last = take_rest,
    };
    weir_embedded *embedded = open_with(&rest.handler, false);

    letters_put(embedded, "abc");
    letters_set_auto_read(embedded, false);
    assert_consumed(";");
    weir_channel_shutdown_input(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_consumed("");
    letters_request(embedded);
    assert_consumed("a;");
    letters_set_auto_read(embedded, true);
    assert_consumed("bc;E");
    weir_embedded_release(embedded);
}

TEST(demand, a_close_releases_waiting_messages)
{
    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(bases[i], true);

        letters_put(embedded, "abc");
        letters_request(embedded);
        weir_channel_close(weir_embedded_channel(embedded), NULL);
        weir_embedded_run(embedded);
        assert_consumed("a;");
        assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
        weir_embedded_release(embedded);
    }
}

/* ---- handlers that come and go ---- */

TEST(demand, a_removed_handler_forwards_waiting_messages)
{
    weir_embedded *embedded = open_with(&letters.handler, true);

    letters_put(embedded, "abc");
    letters_request(embedded);
    assert_consumed("a;");
    assert_int_equal(weir_pipeline_remove(weir_embedded_pipeline(embedded), "letters", NULL), 0);
    assert_consumed("b;"); /* as it came: "bc" */
    weir_embedded_release(embedded);
    embedded = open_with(&spelling.handler, true);
    letters_put(embedded, "abc");
    letters_request(embedded);
    assert_consumed("a;");
    assert_int_equal(weir_pipeline_remove(weir_embedded_pipeline(embedded), "spelling", NULL), 0);
    assert_consumed("bc;");
    weir_embedded_release(embedded);
}

static void remove_base(weir_ctx *ctx, char letter)
{
    if (letter == 'b')
        (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "spelling", NULL);
}

static void remove_any_base(weir_ctx *ctx, char letter)
{
    for (size_t i = 0; letter == 'b' && i < BASES; i++)
        (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), bases[i]->name, NULL);
}

TEST(demand, a_handler_removed_from_inside_forwards_the_rest_in_order)
{
    weir_embedded *embedded = open_with(&spelling.handler, false);

    consumed.on_letter = remove_base;
    letters_put(embedded, "abcd");
    assert_consumed("abcd;");
    weir_embedded_release(embedded);
}

/* A queued message does not use up the request of auto-read, which is passed to the channel. */
TEST(demand, auto_read_continues_when_a_handler_is_removed_as_it_resumes)
{
    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(bases[i], true);

        letters_put(embedded, "abcd");
        letters_request(embedded);
        assert_consumed("a;");
        consumed.on_letter = remove_any_base;
        letters_set_auto_read(embedded, true);
        assert_true(consumed.length > 0 && consumed.text[0] == 'b');
        consumed.length = 0;
        letters_put(embedded, "e");
        assert_consumed("e;");
        weir_embedded_release(embedded);
    }
}

static void ask_and_remove(weir_ctx *ctx, char letter)
{
    if (letter == 'a') {
        weir_request_read(ctx);
        (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "letters", NULL);
    }
}

TEST(demand, a_request_outlives_a_removed_handler_without_messages)
{
    weir_embedded *embedded = open_with(&letters.handler, true);

    consumed.on_letter = ask_and_remove;
    letters_request(embedded);
    letters_put(embedded, "a");
    letters_put(embedded, "b");
    letters_put(embedded, "c");
    assert_consumed("a;b;");
    weir_embedded_release(embedded);
}

/* A request that precedes the handler counts. */
TEST(demand, a_handler_added_late_answers_the_pending_request)
{
    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(NULL, true);

        letters_request(embedded);
        assert_int_equal(weir_pipeline_add_first(weir_embedded_pipeline(embedded), bases[i], NULL),
                         0);
        letters_put(embedded, "abc");
        assert_consumed("a;");
        assert_int_equal(weir_pipeline_add(weir_embedded_pipeline(embedded),
                                           WEIR_PLACE(.before = "consumer", .name = "second"),
                                           &letters.handler, NULL),
                         0);
        assert_consumed(""); /* no request */
        letters_request(embedded);
        assert_consumed("b;");
        weir_embedded_release(embedded);
    }
}

static void add_and_pass(weir_ctx *ctx, weir_msg *msg)
{
    IGNORE_RESULT(weir_pipeline_add(weir_ctx_pipeline(ctx), WEIR_PLACE(.after = weir_ctx_name(ctx)),
                                    &letters.handler, NULL));
    weir_fire_read(ctx, msg);
}

/* The handler is added while the answer is on its way. */
TEST(demand, a_handler_added_during_the_answer_passes_it_on)
{
    static const weir_handler adder = {.name = "adder", .read = add_and_pass};
    weir_embedded *embedded = open_with(&adder, true);

    letters_request(embedded);
    letters_put(embedded, "abc");
    assert_consumed("a;");
    letters_request(embedded);
    assert_consumed("b;");
    weir_embedded_release(embedded);
}

/* The same behind a decoder, whose answer it is. */
TEST(demand, a_handler_added_behind_another_during_the_answer_passes_it_on)
{
    static const weir_handler adder = {.name = "adder", .read = add_and_pass};

    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(&adder, true);

        assert_int_equal(weir_pipeline_add_first(weir_embedded_pipeline(embedded), bases[i], NULL),
                         0);
        letters_request(embedded);
        letters_put(embedded, "abc");
        assert_consumed("a;");
        letters_request(embedded);
        assert_consumed("b;");
        weir_embedded_release(embedded);
    }
}

static void replace_base(weir_ctx *ctx, weir_msg *msg)
{
    if (weir_buf_bytes(weir_buf_of(msg))[0] != 'b') {
        weir_fire_read(ctx, msg);
        return;
    }
    for (size_t i = 0; i < BASES; i++)
        (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), bases[i]->name, NULL);
    add_and_pass(ctx, msg);
}

/* Also if that decoder has been removed meanwhile: it is its message. */
TEST(demand, a_handler_added_behind_one_removed_during_its_answer_passes_it_on)
{
    static const weir_handler replacer = {.name = "replacer", .read = replace_base};

    for (size_t i = 0; i < BASES; i++) {
        weir_embedded *embedded = open_with(&replacer, true);

        assert_int_equal(weir_pipeline_add_first(weir_embedded_pipeline(embedded), bases[i], NULL),
                         0);
        letters_put(embedded, "abc");
        letters_request(embedded);
        assert_consumed("a;");
        letters_request(embedded);
        assert_consumed("b;");
        weir_embedded_release(embedded);
    }
}

TEST(demand, bytes_after_a_proxy_header_wait_until_requested)
{
    weir_embedded *embedded = open_with(NULL, true);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);

    assert_int_equal(weir_pipeline_remove(pipeline, "consumer", NULL), 0);
    assert_int_equal(weir_proxy_receiver_add(pipeline, NULL), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &letters.handler, NULL), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &letter_consumer, NULL), 0);
    letters_request(embedded);
    letters_put(embedded, "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n");
    assert_consumed(";"); /* the header was read, and more is requested */
    letters_put(embedded, "ab");
    assert_consumed("a;");
    letters_request(embedded);
    assert_consumed("b;");
    weir_embedded_release(embedded);
}

/* ---- messages that are not bytes ---- */

static void free_nothing(weir_msg *msg)
{
    (void)msg;
}

static const weir_msg_type other_type = {.name = "other", .destroy = free_nothing};

TEST(demand, another_message_waits_behind_bytes)
{
    weir_embedded *embedded = open_with(&letters.handler, true);
    weir_msg other;

    weir_msg_init(&other, &other_type);
    letters_put(embedded, "abc");
    letters_request(embedded);
    weir_pipeline_fire_read(weir_embedded_pipeline(embedded), &other);
    weir_pipeline_fire_read_complete(weir_embedded_pipeline(embedded));
    assert_consumed("a;");
    letters_set_auto_read(embedded, true);
    assert_consumed("bc?;");
    weir_embedded_release(embedded);
}

/* ---- aggregators ---- */

static unsigned kind_of(const weir_msg *msg)
{
    switch (weir_buf_bytes(weir_buf_of((weir_msg *)(uintptr_t)msg))[0]) {
    case '(':
        return WEIR_AGGREGATOR_START;
    case ')':
        return WEIR_AGGREGATOR_LAST;
    default:
        return WEIR_AGGREGATOR_CONTENT;
    }
}

static int begin(weir_ctx *ctx, weir_msg *start, weir_msg **ret_whole)
{
    (void)ctx;
    *ret_whole = weir_msg_retain(start);
    return 0;
}

static int append(weir_ctx *ctx, weir_msg *whole, weir_msg *part)
{
    (void)ctx;
    (void)whole;
    (void)part;
    return 0;
}

static const weir_aggregator wholes = {
    .handler = {.name = "wholes", WEIR_AGGREGATOR_SLOTS(weir_aggregator_state)},
    .classify = kind_of,
    .begin = begin,
    .append = append,
};

TEST(demand, an_aggregator_requests_parts_only_on_request)
{
    weir_embedded *embedded = open_with(&letters.handler, true);

    assert_int_equal(weir_pipeline_add(weir_embedded_pipeline(embedded),
                                       WEIR_PLACE(.before = "consumer"), &wholes.handler, NULL),
                     0);
    letters_put(embedded, "(a)(b");
    letters_put(embedded, "c)(d)");
    assert_consumed("");
    letters_request(embedded);
    assert_consumed(";;(;"); /* read_complete follows each part */
    letters_request(embedded);
    consumed.text[consumed.length] = '\0';
    assert_non_null(strchr(consumed.text, '('));
    assert_ptr_equal(strchr(consumed.text, '('), strrchr(consumed.text, '('));
    weir_embedded_release(embedded);
}

/* ---- no memory ---- */

static bool read_without(const weir_handler *base, unsigned n)
{
    weir_embedded *embedded = open_with(base, true);
    weir_msg *msgs[2] = {feed_bytes("abc", 3), feed_bytes("de", 2)};
    bool failed;

    test_memory_fail_at(n);
    for (size_t i = 0; i < 2; i++)
        (void)weir_embedded_write_inbound(embedded, msgs[i]);
    for (size_t i = 0; i < 4; i++)
        letters_request(embedded);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    return failed;
}

TEST(demand, survives_allocation_failures)
{
    for (size_t i = 0; i < BASES; i++)
        for (unsigned n = 1; read_without(bases[i], n); n++)
            ;
}
