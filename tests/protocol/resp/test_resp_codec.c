/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RESP codec: bytes to values and back.
 */
#include <weir/resp.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/error.h>
#include <weir/file_range.h>

#include "support/buffer/buf.h"
#include "support/codec/feed.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/property.h"
#include "support/protocol/resp/resp_text.h"

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(weir_resp_codec_add(pipeline, feed->arg), 0);
}

static const struct feed feed = {.add = add, .format = resp_format};

static weir_embedded *open_with(const weir_resp_options *options)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_resp_codec_add(weir_embedded_pipeline(embedded), options), 0);
    return embedded;
}

static int put(weir_embedded *embedded, const char *text)
{
    return weir_embedded_write_inbound(embedded, feed_bytes(text, strlen(text)));
}

static void assert_comes(weir_embedded *embedded, const char *expected)
{
    weir_msg *msg = weir_embedded_read_inbound(embedded);
    char text[FEED_SIZE];

    assert_non_null(msg);
    resp_format(msg, text, sizeof(text));
    assert_string_equal(text, expected);
    weir_msg_release(msg);
}

/* ---- in ---- */

TEST(resp_codec, reads_resp2)
{
    assert_text_fed(&feed, "+OK\r\n-ERR no\r\n:-42\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n",
                    "+OK|-ERR no|:-42|$a\r\nbc|$");
    assert_text_fed(&feed, "*3\r\n:1\r\n*2\r\n+a\r\n$1\r\nb\r\n*0\r\n*0\r\n+z\r\n",
                    "*(:1 *(+a $b) *())|*()|+z");
}

TEST(resp_codec, reads_both_nulls_of_resp2)
{
    assert_text_fed(&feed, "$-1\r\n*-1\r\n*2\r\n$-1\r\n*-1\r\n", "_|_|*(_ _)");
}

TEST(resp_codec, reads_resp3)
{
    assert_text_fed(&feed, "_\r\n#t\r\n#f\r\n,1.5\r\n,-inf\r\n,1e3\r\n(-123456789012345678901\r\n",
                    "_|#t|#f|,1.5|,-inf|,1000|(-123456789012345678901");
    assert_text_fed(&feed, "!5\r\nERR x\r\n=7\r\ntxt:abc\r\n", "!ERR x|=txt:abc");
    assert_text_fed(&feed, "%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n#t\r\n>2\r\n+m\r\n_\r\n",
                    "%(+a :1 +b ~(#t))|>(+m _)");
}

TEST(resp_codec, attaches_attributes_to_the_next_value)
{
    assert_text_fed(&feed, "|1\r\n+k\r\n:1\r\n*2\r\n|1\r\n+x\r\n*0\r\n:2\r\n:3\r\n+end\r\n",
                    "|(+k :1)*(|(+x *()):2 :3)|+end");
    assert_text_fed(&feed, "|0\r\n|0\r\n", "error(WEIR_EMALFORMED)");
}

TEST(resp_codec, rejects_malformed_input)
{
    static const char *const wrong[] = {
        "hello\r\n",     "\r\n",          "\n",
        "+OK\n",         "+O\rK\r\n",     ":\r\n",
        ":1x\r\n",       ":--1\r\n",      "$-2\r\n",
        "$x\r\n",        "*-2\r\n",       "%-1\r\n",
        "$?\r\n",        "*?\r\n",        "#x\r\n",
        "#\r\n",         "_x\r\n",        ",1,5\r\n",
        ",0x1\r\n",      "(12a\r\n",      "(\r\n",
        "=3\r\ntxt\r\n", "$1\r\nabc\r\n", "$1\r\na\rb\r\n",
        ",.\r\n",        ",1e\r\n",       ":9223372036854775808\r\n",
        "!-1\r\n",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_text_fed(&feed, wrong[i], "error(WEIR_EMALFORMED)");
}

TEST(resp_codec, reads_the_largest_and_the_smallest_integer)
{
    assert_text_fed(&feed, ":9223372036854775807\r\n:-9223372036854775808\r\n:+7\r\n",
                    ":9223372036854775807|:-9223372036854775808|:7");
}

TEST(resp_codec, rejects_a_number_that_does_not_end)
{
    char text[101];

    memset(text, '1', sizeof(text));
    text[0] = ':';
    text[100] = '\0';
    assert_text_fed(&feed, text, "error(WEIR_EMALFORMED)");
}

/* ---- inline ---- */

static const struct feed commands = {
    .add = add,
    .format = resp_format,
    .arg = &(const weir_resp_options){.size = sizeof(weir_resp_options), .inline_commands = true},
};

TEST(resp_codec, reads_inline_commands)
{
    assert_text_fed(&commands, "PING\r\n\r\n SET  key\tvalue \n*1\r\n$4\r\nPING\r\n",
                    "*($PING)|*($SET $key $value)|*($PING)");
    assert_text_fed(&commands, "a \"b \\\"\\x41\\n\\q\" 'c \\' \\n' d'e'\n\"\"\n",
                    "*($a $b \"A\nq $c ' \\n $de)|*($)");
    assert_text_fed(&commands, "+not a simple one\n", "*($+not $a $simple $one)");
}

TEST(resp_codec, rejects_an_unclosed_quote)
{
    assert_text_fed(&commands, "a 'b\n", "error(WEIR_EMALFORMED)");
    assert_text_fed(&commands, "a \"b\\\n", "error(WEIR_EMALFORMED)");
    assert_text_fed(&commands, "a \"b\"c\n", "error(WEIR_EMALFORMED)");
}

/* ---- limits ---- */

static const struct feed narrow = {
    .add = add,
    .format = resp_format,
    .arg = &(const weir_resp_options){.size = sizeof(weir_resp_options),
                                      .max_bytes = 10,
                                      .max_elements = 4,
                                      .max_line = 6,
                                      .max_depth = 2},
};

TEST(resp_codec, skips_a_value_whose_texts_are_too_long)
{
    assert_text_fed(&narrow, "$11\r\n12345678901\r\n+a\r\n", "error(WEIR_ETOOLONG)|+a");
    assert_text_fed(&narrow, "*3\r\n$9\r\n123456789\r\n$2\r\nab\r\n:1\r\n+a\r\n",
                    "error(WEIR_ETOOLONG)|+a");
    assert_text_fed(&narrow, "$10\r\n1234567890\r\n$10\r\n1234567890\r\n",
                    "$1234567890|$1234567890");
}

TEST(resp_codec, skips_a_value_with_too_many_elements)
{
    assert_text_fed(&narrow, "*5\r\n:1\r\n:2\r\n:3\r\n$3\r\n\r\n4\r\n_\r\n+a\r\n",
                    "error(WEIR_ETOOLONG)|+a");
    assert_text_fed(&narrow, "*2\r\n%2\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n+a\r\n",
                    "error(WEIR_ETOOLONG)|+a");
    assert_text_fed(&narrow, "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n", "*(:1 :2 :3 :4)");
}

TEST(resp_codec, skips_a_value_that_is_too_deep)
{
    assert_text_fed(&narrow, "*2\r\n*1\r\n*2\r\n*1\r\n:1\r\n:2\r\n:3\r\n+a\r\n",
                    "error(WEIR_ETOOLONG)|+a");
    assert_text_fed(&narrow, "*1\r\n*1\r\n:1\r\n", "*(*(:1))");
}

TEST(resp_codec, skips_a_value_whose_attributes_are_too_large)
{
    assert_text_fed(&narrow, "|3\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n+a\r\n",
                    "error(WEIR_ETOOLONG)|+a");
    assert_text_fed(&narrow, "*1\r\n|1\r\n:1\r\n*1\r\n:2\r\n:3\r\n+a\r\n",
                    "error(WEIR_ETOOLONG)|+a");
    assert_text_fed(&narrow, "*1\r\n*1\r\n|1\r\n:1\r\n|1\r\n:9\r\n:9\r\n:2\r\n:3\r\n+a\r\n",
                    "error(WEIR_ETOOLONG)|+a");
}

TEST(resp_codec, skips_lines_that_are_too_long)
{
    assert_text_fed(&narrow, "+1234567\r\n+a\r\n-12345678901234567\r\n+123456\r\n",
                    "error(WEIR_ETOOLONG)|+a|error(WEIR_ETOOLONG)|+123456");
    assert_text_fed(&narrow, "*2\r\n+1234567\r\n+1234567890123\r\n+a\r\n",
                    "error(WEIR_ETOOLONG)|+a");
}

TEST(resp_codec, rejects_malformed_input_while_skipping)
{
    assert_text_fed(&narrow, "*5\r\n:1\r\nx\r\n", "error(WEIR_ETOOLONG)|error(WEIR_EMALFORMED)");
    assert_text_fed(&narrow, "*5\r\n$-7\r\n", "error(WEIR_ETOOLONG)|error(WEIR_EMALFORMED)");
}

TEST(resp_codec, handles_huge_lengths)
{
    assert_text_fed(&feed, "$9223372036854775807\r\nabc", "error(WEIR_ETOOLONG)");
    assert_text_fed(&feed, "*9223372036854775807\r\n:1\r\n", "error(WEIR_ETOOLONG)");
    assert_text_fed(&feed, "*4097\r\n%9223372036854775807\r\n%9223372036854775807\r\n",
                    "error(WEIR_ETOOLONG)|error(WEIR_EMALFORMED)"); /* above 2^64 */
}

TEST(resp_codec, allocates_nothing_for_announced_lengths)
{
    weir_embedded *embedded = open_with(NULL);
    size_t before, allocations;

    for (int i = 0; i < 2; i++) { /* the first time, pools may be created */
        before = test_memory_live();
        allocations = test_memory_allocations();
        assert_int_equal(put(embedded, "*4096\r\n$1000000\r\n"), 0);
        assert_true(test_memory_live() - before < 10);
        assert_true(test_memory_allocations() - allocations < 20);
        weir_embedded_release(embedded);
        embedded = i == 0 ? open_with(NULL) : NULL;
    }
}

static char last_detail[200];

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    (void)err;
    (void)snprintf(last_detail, sizeof(last_detail), "%s", detail);
}

/* At the tail, an error would close the channel. */
static const weir_handler listener = {.name = "listener", .error = on_error};

/* A million levels, 8 of which are built. */
TEST(resp_codec, survives_a_million_levels)
{
    weir_embedded *embedded = open_with(NULL);
    char levels[4000];

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &listener, NULL), 0);
    last_detail[0] = '\0';
    for (size_t i = 0; i < sizeof(levels); i += 4)
        memcpy(levels + i, "*1\r\n", 4);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(levels, sizeof(levels))),
                         0);
    assert_string_equal(last_detail, "aggregates nested 9 deep: max_depth is 8");
    assert_int_equal(put(embedded, ":1\r\n+a\r\n"), 0);
    assert_comes(embedded, "+a");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

static void assert_refused(const weir_resp_options *options, const char *text, const char *expected)
{
    weir_embedded *embedded = open_with(options);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &listener, NULL), 0);
    last_detail[0] = '\0';
    assert_int_equal(put(embedded, text), 0);
    assert_string_equal(last_detail, expected);
    weir_embedded_release(embedded);
}

TEST(resp_codec, reports_the_value_and_the_limit)
{
    assert_refused(WEIR_RESP_OPTIONS(.max_bytes = 77), "*2\r\n+abc\r\n$75\r\n",
                   "text of 75 bytes after 3 in the value: max_bytes is 77");
    assert_refused(WEIR_RESP_OPTIONS(.max_elements = 4), "*2\r\n%2\r\n",
                   "aggregate of 2 pairs after 2 elements: max_elements is 4");
    assert_refused(WEIR_RESP_OPTIONS(.max_elements = 4), "*5\r\n",
                   "aggregate of 5 elements after 0 elements: max_elements is 4");
    assert_refused(WEIR_RESP_OPTIONS(.max_depth = 1), "*1\r\n*1\r\n",
                   "aggregates nested 2 deep: max_depth is 1");
    assert_refused(WEIR_RESP_OPTIONS(.max_line = 5), "+123456\r\n",
                   "line longer than max_line, 5 bytes");
    assert_refused(WEIR_RESP_OPTIONS(.max_memory = 600), "*3\r\n:1\r\n:2\r\n",
                   "value of 768 bytes of memory: max_memory is 600");
    assert_refused(WEIR_RESP_OPTIONS(.max_memory = 600), "*3\r\n$90\r\n",
                   "value of 602 bytes of memory: max_memory is 600");
    assert_refused(WEIR_RESP_OPTIONS(.max_memory = 600, .inline_commands = true), "a b c\r\n",
                   "more than 2 words in a command: max_elements is 4096, max_memory is 600");
}

TEST(resp_codec, skips_a_value_that_takes_too_much_memory)
{
    const struct feed small = {
        .add = add,
        .format = resp_format,
        .arg = &(const weir_resp_options){.size = sizeof(weir_resp_options), .max_memory = 1024},
    };

    assert_text_fed(&small, "*4\r\n:1\r\n_\r\n$-1\r\n#t\r\n+a\r\n", "error(WEIR_ETOOLONG)|+a");
    assert_text_fed(&small, "*3\r\n:1\r\n_\r\n$-1\r\n+a\r\n", "*(:1 _ _)|+a");
    assert_text_fed(&small, "*2\r\n*1\r\n*1\r\n:1\r\n:2\r\n+a\r\n", "error(WEIR_ETOOLONG)|+a");
    assert_text_fed(&small, "$769\r\n", "error(WEIR_ETOOLONG)");
}

/* 4 MiB of "*0" once took 91 MiB. */
TEST(resp_codec, takes_little_memory_for_many_empty_arrays)
{
    enum { PIECES = 64, PIECE = 4 * 16384 };
    weir_embedded *embedded = open_with(WEIR_RESP_OPTIONS(.max_elements = 1 << 20));
    static char piece[PIECE];
    size_t before, most = 0;

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &listener, NULL), 0);
    for (size_t i = 0; i < PIECE; i += 4)
        memcpy(piece + i, "*0\r\n", 4);
    before = test_memory_live_bytes();
    assert_int_equal(put(embedded, "*1048576\r\n"), 0);
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(piece, PIECE)), 0);
        if (test_memory_live_bytes() > most)
            most = test_memory_live_bytes();
    }
    assert_in_range(most - before, 0, 2 << 20);
    assert_non_null(strstr(last_detail, "max_memory is 2097152"));
    assert_int_equal(put(embedded, "+a\r\n"), 0);
    assert_comes(embedded, "+a");
    weir_embedded_release(embedded);
}

/* ---- parsing and skipping agree ---- */

static const char *const each_kind[] = {
    "+OK\r\n",
    "-ERR no\r\n",
    ":-42\r\n",
    "$5\r\na\r\nbc\r\n",
    "$0\r\n\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*2\r\n$-1\r\n*-1\r\n",
    "_\r\n",
    "#t\r\n",
    "#f\r\n",
    ",1.5\r\n",
    ",-inf\r\n",
    "(-123456789012345678901\r\n",
    "!5\r\nERR x\r\n",
    "=7\r\ntxt:abc\r\n",
    "%0\r\n",
    "%2\r\n+a\r\n:1\r\n$-1\r\n~1\r\n#t\r\n",
    "~2\r\n$1\r\nb\r\n$-1\r\n",
    ">2\r\n+m\r\n_\r\n",
    "|1\r\n+k\r\n$-1\r\n:2\r\n",
    "|0\r\n*1\r\n|1\r\n+x\r\n*0\r\n$-1\r\n",
};

/* Reads the value as an element: "*(...)|+end", or "error(...)|+end" if it is skipped. */
static void assert_ends_alike(const char *value)
{
    const struct feed few = {
        .add = add, .format = resp_format, .arg = WEIR_RESP_OPTIONS(.max_elements = 11)};
    char text[FEED_SIZE];

    (void)snprintf(text, sizeof(text),
                   "*12\r\n%s:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"
                   ":1\r\n:1\r\n:1\r\n:1\r\n+end\r\n",
                   value);
    assert_text_fed(&few, text, "error(WEIR_ETOOLONG)|+end");
}

TEST(resp_codec, skips_exactly_what_it_would_have_read)
{
    weir_embedded *embedded = open_with(NULL);

    for (size_t i = 0; i < sizeof(each_kind) / sizeof(each_kind[0]); i++) {
        assert_int_equal(put(embedded, each_kind[i]), 0); /* one complete value */
        weir_msg_release(weir_embedded_read_inbound(embedded));
        assert_int_equal(put(embedded, "+end\r\n"), 0);
        assert_comes(embedded, "+end");
        assert_ends_alike(each_kind[i]);
    }
    weir_embedded_release(embedded);
}

/* The random values contain every kind, nested. */
TEST(resp_codec, skips_random_values_to_their_end)
{
    weir_embedded *embedded = open_with(WEIR_RESP_OPTIONS(.max_elements = 1));
    weir__random random;
    weir_resp *value;
    weir_buf *bytes;

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &listener, NULL), 0);
    weir__random_init(&random, 14);
    for (int i = 0; i < 2000; i++) {
        value = resp_random(&random, 1 + (unsigned)i % 4);
        assert_int_equal(weir_buf_create_from("*2\r\n:1\r\n", 8, &bytes), 0);
        assert_int_equal(weir_resp_write(value, 3, bytes), 0);
        assert_int_equal(weir_buf_write_bytes(bytes, "+end\r\n", 6), 0);
        assert_int_equal(weir_embedded_write_inbound(embedded, weir_buf_msg(bytes)), 0);
        assert_comes(embedded, "+end");
        assert_null(weir_embedded_read_inbound(embedded));
        weir_resp_release(value);
    }
    weir_embedded_release(embedded);
}

/* ---- streams ---- */

TEST(resp_codec, streams_a_long_bulk)
{
    weir_embedded *embedded = open_with(WEIR_RESP_OPTIONS(.stream_threshold = 5, .max_bytes = 5));

    assert_int_equal(put(embedded, "$4\r\nabcd\r\n$9\r\n123"), 0);
    assert_comes(embedded, "$abcd");
    assert_comes(embedded, "$<9>");
    assert_comes(embedded, "123");
    assert_int_equal(put(embedded, "45"), 0);
    assert_comes(embedded, "45");
    assert_int_equal(put(embedded, "6789\r"), 0);
    assert_comes(embedded, "6789");
    assert_int_equal(put(embedded, "\n*1\r\n$5\r\nabcde\r\n"), 0);
    assert_comes(embedded, "*($abcde)");
    weir_embedded_release(embedded);
}

TEST(resp_codec, rejects_a_stream_with_a_wrong_end)
{
    weir_embedded *embedded = open_with(WEIR_RESP_OPTIONS(.stream_threshold = 1));

    assert_int_equal(put(embedded, "$1\r\nab\r\n"), WEIR_EMALFORMED);
    assert_comes(embedded, "$<1>");
    assert_comes(embedded, "a");
    weir_embedded_release(embedded);
}

TEST(resp_codec, returns_texts_as_slices_of_the_input)
{
    weir_embedded *embedded = open_with(NULL);
    weir_msg *bytes = feed_bytes("$3\r\nabc\r\n", 9), *msg;
    const uint8_t *there = weir_buf_bytes(weir_buf_of(bytes)) + 4;

    assert_int_equal(weir_embedded_write_inbound(embedded, bytes), 0);
    msg = weir_embedded_read_inbound(embedded);
    assert_ptr_equal(weir_resp_text(weir_resp_of(msg)).data, there);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

/* ---- out ---- */

static void assert_written(weir_embedded *embedded, const char *expected)
{
    char text[FEED_SIZE] = "";
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
        strncat(text, (const char *)weir_buf_bytes(weir_buf_of(msg)), weir_msg_size(msg));
        weir_msg_release(msg);
    }
    assert_string_equal(text, expected);
}

/* A value that contains every kind, read from bytes. */
static const char everything[] = "*9\r\n_\r\n#t\r\n,0.5\r\n(12\r\n!5\r\na\r\nbc\r\n=5\r\ntxt:x\r\n"
                                 "%1\r\n+k\r\n:1\r\n~1\r\n$1\r\nb\r\n>1\r\n-E\r\n";

static weir_msg *read_value(const char *bytes)
{
    weir_embedded *embedded = open_with(NULL);
    weir_msg *msg;

    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(bytes, strlen(bytes))), 0);
    msg = weir_embedded_read_inbound(embedded);
    assert_non_null(msg);
    weir_embedded_release(embedded);
    return msg;
}

TEST(resp_codec, writes_version_3)
{
    weir_embedded *embedded = open_with(WEIR_RESP_OPTIONS(.version = 3));

    (void)weir_embedded_write_outbound(embedded, read_value(everything));
    assert_written(embedded, everything);
    (void)weir_embedded_write_outbound(embedded, read_value("|1\r\n+a\r\n+b\r\n:1\r\n"));
    assert_written(embedded, "|1\r\n+a\r\n+b\r\n:1\r\n");
    weir_embedded_release(embedded);
}

TEST(resp_codec, writes_resp3_kinds_in_version_2)
{
    weir_embedded *embedded = open_with(NULL);

    (void)weir_embedded_write_outbound(embedded, read_value(everything));
    assert_written(embedded, "*9\r\n$-1\r\n:1\r\n$3\r\n0.5\r\n$2\r\n12\r\n-a  bc\r\n$1\r\nx\r\n"
                             "*2\r\n+k\r\n:1\r\n*1\r\n$1\r\nb\r\n*1\r\n-E\r\n");
    (void)weir_embedded_write_outbound(embedded, read_value("|1\r\n+a\r\n+b\r\n:1\r\n"));
    assert_written(embedded, ":1\r\n");
    weir_embedded_release(embedded);
}

TEST(resp_codec, changes_its_version)
{
    weir_embedded *embedded = open_with(NULL);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);

    assert_int_equal(weir_resp_codec_set_version(pipeline, 4), -EINVAL);
    assert_int_equal(weir_resp_codec_set_version(pipeline, 3), 0);
    (void)weir_embedded_write_outbound(embedded, read_value("$-1\r\n"));
    assert_written(embedded, "_\r\n");
    assert_int_equal(weir_pipeline_remove(pipeline, "resp", NULL), 0);
    assert_int_equal(weir_resp_codec_set_version(pipeline, 2), -ENOENT);
    weir_embedded_release(embedded);
}

TEST(resp_codec, rejects_a_key_without_a_value)
{
    weir_embedded *embedded = open_with(NULL);
    weir_resp *map = NULL, *key = NULL;

    assert_int_equal(weir_resp_create_aggregate(WEIR_RESP_MAP, &map), 0);
    assert_int_equal(weir_resp_create_null(&key), 0);
    assert_int_equal(weir_resp_add(map, key), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_resp_msg(map)), -EINVAL);
    assert_written(embedded, "");
    weir_embedded_release(embedded);
}

TEST(resp_codec, writes_a_bulk_header_and_its_bytes)
{
    weir_embedded *embedded = open_with(NULL);
    weir_resp *head = NULL;

    assert_int_equal(weir_resp_create_bulk_header(5, &head), 0);
    (void)weir_embedded_write_outbound(embedded, weir_resp_msg(head));
    (void)weir_embedded_write_outbound(embedded, feed_bytes("abc", 3));
    assert_int_equal(weir_embedded_write_outbound(embedded, read_value(":1\r\n")), -EINVAL);
    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes("defg", 4)), WEIR_ETOOLONG);
    (void)weir_embedded_write_outbound(embedded, feed_bytes("de", 2));
    (void)weir_embedded_write_outbound(embedded, read_value(":1\r\n"));
    assert_written(embedded, "$5\r\nabcde\r\n:1\r\n");
    assert_int_equal(weir_resp_create_bulk_header(0, &head), 0);
    (void)weir_embedded_write_outbound(embedded, weir_resp_msg(head));
    (void)weir_embedded_write_outbound(embedded, feed_bytes("plain", 5));
    assert_written(embedded, "$0\r\n\r\nplain");
    weir_embedded_release(embedded);
}

static weir_promise *write_with_promise(weir_embedded *embedded, weir_msg *msg, bool is_cancelled)
{
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_promise *done = NULL;

    assert_int_equal(weir_promise_create(weir_channel_executor(channel), &done), 0);
    if (is_cancelled)
        assert_int_equal(weir_promise_cancel(done), 0);
    weir_channel_write(channel, msg, done);
    return done;
}

TEST(resp_codec, does_not_cancel_parts_of_a_bulk)
{
    weir_embedded *embedded = open_with(NULL);
    weir_promise *done[4] = {NULL};
    weir_resp *head = NULL;

    assert_int_equal(weir_resp_create_bulk_header(3, &head), 0);
    done[0] = write_with_promise(embedded, weir_resp_msg(weir_resp_retain(head)), true);
    done[1] = write_with_promise(embedded, weir_resp_msg(head), false);
    done[2] = write_with_promise(embedded, feed_bytes("abc", 3), true);
    done[3] = write_with_promise(embedded, feed_bytes("xyz", 3), false);
    assert_true(weir_promise_cancel(done[1]) < 0);
    assert_true(weir_promise_cancel(done[3]) < 0);
    weir_channel_flush(weir_embedded_channel(embedded));
    assert_written(embedded, "$3\r\nxyz\r\n");
    for (size_t i = 0; i < 4; i++)
        weir_promise_release(done[i]);
    weir_embedded_release(embedded);
}

TEST(resp_codec, writes_a_bulk_header_and_a_file)
{
    weir_embedded *embedded = open_with(NULL);
    weir_file_range *range = NULL;
    weir_resp *head = NULL;
    weir_msg *msg;

    assert_int_equal(weir_resp_create_bulk_header(1234, &head), 0);
    (void)weir_embedded_write_outbound(embedded, weir_resp_msg(head));
    weir_msg_release(weir_embedded_read_outbound(embedded));
    assert_int_equal(weir_file_range_create(0, 0, 1235, 0, &range), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_file_range_msg(range)),
                     WEIR_ETOOLONG);
    assert_int_equal(weir_file_range_create(0, 0, 1234, 0, &range), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_file_range_msg(range)), 0);
    msg = weir_embedded_read_outbound(embedded);
    assert_ptr_equal(weir_file_range_of(msg), range);
    weir_msg_release(msg);
    assert_int_equal(weir_embedded_write_outbound(embedded, read_value(":1\r\n")), 0);
    assert_written(embedded, "\r\n:1\r\n");
    weir_embedded_release(embedded);
}

TEST(resp_codec, rejects_invalid_options)
{
    weir_embedded *embedded = open_with(NULL);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);

    assert_options_rejected(weir_resp_codec_add(pipeline, WEIR_RESP_OPTIONS(.version = 1)),
                            "resp -: invalid options: version is 1");
    assert_options_rejected(weir_resp_codec_add(pipeline, WEIR_RESP_OPTIONS(.max_depth = 2000)),
                            "max_depth is 2000");
    assert_options_rejected(weir_resp_codec_add(pipeline, WEIR_RESP_OPTIONS(.max_bytes = SIZE_MAX)),
                            "max_bytes is");
    weir_embedded_release(embedded);
}

TEST(resp_codec, writes_a_command_as_an_array_of_bulks)
{
    const weir_span arguments[] = {weir_span_of_text("SET"), weir_span_of_text("a\r\nb"),
                                   weir_span_of_text("")};
    weir_buf *buf;

    assert_int_equal(weir_buf_create(0, 0, &buf), 0);
    assert_int_equal(weir_resp_write_command(arguments, 3, buf), 0);
    assert_readable(buf, "*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n");
    weir_buf_release(buf);
}

/* ---- there and back again ---- */

struct round_trip {
    weir_embedded *embedded;
    weir_buf *bytes; /* written but not fed yet */
    char expected[64][FEED_SIZE / 2];
    size_t head, tail;
};

static void begin_trip(void *state)
{
    struct round_trip *trip = state;

    trip->embedded = open_with(WEIR_RESP_OPTIONS(.max_depth = 4));
    assert_int_equal(weir_buf_create(0, 0, &trip->bytes), 0);
}

static void end_trip(void *state)
{
    struct round_trip *trip = state;

    weir_buf_release(trip->bytes);
    weir_embedded_release(trip->embedded);
}

static bool write_one(struct round_trip *trip, const struct property_step *step)
{
    weir__random random;
    weir_resp *value;

    if (trip->tail - trip->head == 64)
        return true;
    weir__random_init(&random, (uint64_t)step->numbers[0] << 32 | step->numbers[1]);
    value = resp_random(&random, 1 + step->numbers[2] % 3);
    if (weir_msg_size(weir_resp_msg(value)) < FEED_SIZE / 4) {
        resp_format(weir_resp_msg(value), trip->expected[trip->tail++ % 64], FEED_SIZE / 2);
        PROPERTY(weir_resp_write(value, 3, trip->bytes) == 0);
    }
    weir_resp_release(value);
    return true;
}

static bool feed_some(struct round_trip *trip, const struct property_step *step)
{
    size_t length = weir_buf_readable(trip->bytes);
    char text[FEED_SIZE / 2];
    weir_msg *msg;

    if (step->numbers[0] % 4 != 0)
        length = length * (step->numbers[1] % 1024) / 1024;
    if (length == 0)
        return true;
    (void)weir_embedded_write_inbound(trip->embedded,
                                      feed_bytes(weir_buf_bytes(trip->bytes), length));
    (void)weir_buf_skip(trip->bytes, length);
    PROPERTY(weir_embedded_take_error(trip->embedded) == 0);
    while ((msg = weir_embedded_read_inbound(trip->embedded)) != NULL) {
        resp_format(msg, text, sizeof(text));
        weir_msg_release(msg);
        PROPERTY(trip->head < trip->tail);
        PROPERTY(strcmp(text, trip->expected[trip->head++ % 64]) == 0);
    }
    PROPERTY(weir_buf_readable(trip->bytes) > 0 || trip->head == trip->tail);
    return true;
}

static bool step_trip(void *state, const struct property_step *step)
{
    return step->kind == 0 ? write_one(state, step) : feed_some(state, step);
}

static void describe_trip(const struct property_step *step, char *text, size_t size)
{
    (void)snprintf(text, size, "%s %u %u %u", step->kind == 0 ? "write" : "feed", step->numbers[0],
                   step->numbers[1], step->numbers[2]);
}

static const struct property same_again = {
    .name = "resp",
    .state_size = sizeof(struct round_trip),
    .kinds = 2,
    .begin = begin_trip,
    .step = step_trip,
    .describe = describe_trip,
    .end = end_trip,
};

TEST(resp_codec, reads_what_it_has_written)
{
    property_check(&same_again, 300, 60);
}

/* ---- no memory ---- */

static bool survives_in(unsigned n)
{
    weir_embedded *embedded = open_with(WEIR_RESP_OPTIONS(.inline_commands = true));
    static const char text[] = "SET 'a b' c\r\n*3\r\n|1\r\n+a\r\n:1\r\n%1\r\n+a\r\n,1\r\n$1\r\nb";
    weir_msg *bytes = feed_bytes(text, sizeof(text) - 1), *msg;
    weir_msg *more = feed_bytes("\r\n#t\r\n+z\r\n", 10);

    test_memory_fail_at(n);
    (void)weir_embedded_write_inbound(embedded, bytes);
    (void)weir_embedded_write_inbound(embedded, more);
    while ((msg = weir_embedded_read_inbound(embedded)) != NULL)
        weir_msg_release(msg);
    weir_embedded_release(embedded);
    return !test_memory_failed();
}

TEST(resp_codec, survives_allocation_failures)
{
    for (unsigned n = 1; !survives_in(n); n++)
        ;
    test_memory_fail_at(0);
}

static bool survives_out(unsigned n)
{
    weir_embedded *embedded = open_with(NULL);
    weir_msg *value = read_value(everything), *msg;
    int err;

    test_memory_fail_at(n);
    err = weir_embedded_write_outbound(embedded, value);
    if (test_memory_failed())
        assert_int_equal(err, -ENOMEM);
    while ((msg = weir_embedded_read_outbound(embedded)) != NULL)
        weir_msg_release(msg);
    weir_embedded_release(embedded);
    return !test_memory_failed();
}

TEST(resp_codec, fails_a_write_without_memory)
{
    for (unsigned n = 1; !survives_out(n); n++)
        ;
    test_memory_fail_at(0);
}
