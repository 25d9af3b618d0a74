/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_body.h>

#include <stdio.h>
#include <string.h>

#include "support/memory.h"
#include "support/protocol/http/http_text.h"
#include "support/protocol/http/multipart_transcript.h"
#include "support/test.h"

#define TYPE "multipart/form-data; boundary=xYz"
#define HEAD(name) "--xYz\r\nContent-Disposition: form-data; name=" name "\r\n\r\n"

static void assert_transcript(weir_buf *found, const char *expected)
{
    assert_int_equal(weir_buf_write_bytes(found, "", 1), 0);
    assert_string_equal((const char *)weir_buf_bytes(found), expected);
    weir_buf_release(found);
}

/* Whole, in every two parts, and byte by byte. */
static void assert_events_of(const char *type, const weir_http_multipart_options *options,
                             const char *content, const char *expected)
{
    weir_span span = weir_span_of_text(content);

    assert_transcript(transcript_of(type, options, span, SIZE_MAX, SIZE_MAX), expected);
    assert_transcript(transcript_of(type, options, span, 1, 1), expected);
    for (size_t first = 1; first < span.length; first++)
        assert_transcript(transcript_of(type, options, span, first, SIZE_MAX), expected);
}

static void assert_events(const char *content, const char *expected)
{
    assert_events_of(TYPE, NULL, content, expected);
}

TEST(multipart, is_taken_apart)
{
    assert_events(HEAD("a") "1\r\n" HEAD("\"b c\"") "\r\n--xYz--\r\n",
                  "[a|-|text/plain](1)[b c|-|text/plain]()end");
    assert_events("--xYz\r\ncontent-disposition: Form-Data; Name=\"f\"; filename=\"x.txt\"\r\n"
                  "Content-Type: image/png\r\nX: y\r\n\r\n\x89\n\r\n\r\n--xYz--",
                  "[f|x.txt|image/png](\x89\n\r\n)end");
}

TEST(multipart, content_that_resembles_a_boundary_is_content)
{
    assert_events(HEAD("a") "\r\n--xY\r\n--xy\r\n-\r\r\n\r\n--\r\n--xYz--",
                  "[a|-|text/plain](\r\n--xY\r\n--xy\r\n-\r\r\n\r\n--)end");
    assert_events(HEAD("a") "--xYz\r\n--xYz--", "[a|-|text/plain](--xYz)end");
    assert_events(HEAD("a") "\n--xYz--\r\n--xYz--", "[a|-|text/plain](\n--xYz--)end");
    assert_events(HEAD("a") "\r--xYz--\r\r\n--xYz--", "[a|-|text/plain](\r--xYz--\r)end");
}

TEST(multipart, what_surrounds_the_parts_is_ignored)
{
    assert_events("hello\r\n--xY\r\n" HEAD("a") "1\r\n--xYz--\r\nbye\r\n" HEAD("b"),
                  "[a|-|text/plain](1)end");
    assert_events("\r\n" HEAD("a") "1\r\n--xYz--", "[a|-|text/plain](1)end");
    assert_events("--xYz--", "end");
    assert_events("--xYz \t\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--xYz--",
                  "[a|-|text/plain](1)end");
}

/* Their number is limited behind each boundary. */
TEST(multipart, blanks_behind_boundaries_are_ignored)
{
    static const char part[] =
        "--xYz          \r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n";
    char content[64 * sizeof(part)] = "", expected[64 * sizeof(part)] = "";

    for (int i = 0; i < 30; i++) {
        strcat(content, part);
        strcat(expected, "[a|-|text/plain](1)");
    }
    strcat(content, "--xYz--");
    strcat(expected, "end");
    assert_transcript(transcript_of(TYPE, NULL, weir_span_of_text(content), SIZE_MAX, SIZE_MAX),
                      expected);
}

TEST(multipart, that_is_cut_off_is_malformed)
{
    assert_events("", "!WEIR_EMALFORMED");
    assert_events("--xYz", "!WEIR_EMALFORMED");
    assert_events("--xYz-", "!WEIR_EMALFORMED");
    assert_events("--xYz\r\nContent-", "!WEIR_EMALFORMED");
    assert_events(HEAD("a") "1", "[a|-|text/plain](1!WEIR_EMALFORMED");
    assert_events(HEAD("a") "1\r\n--xYz", "[a|-|text/plain](1)!WEIR_EMALFORMED");
    assert_events("no boundary at all", "!WEIR_EMALFORMED");
}

TEST(multipart, a_boundary_with_something_behind_it_is_malformed)
{
    assert_events("--xYza\r\n", "!WEIR_EMALFORMED");
    assert_events("--xYz-\r\n", "!WEIR_EMALFORMED");
    assert_events("--xYz\n", "!WEIR_EMALFORMED");
    assert_events("--xYz\r\r\n", "!WEIR_EMALFORMED");
    assert_events("--xYz --\r\n", "!WEIR_EMALFORMED");
    assert_events(HEAD("a") "1\r\n--xYzw", "[a|-|text/plain](1)!WEIR_EMALFORMED");
}

TEST(multipart, file_names_are_decoded)
{
    static const char *const rows[][2] = {
        {"name=a; filename=b", "a|b"},
        {"name=\"a\";filename=\"\"", "a|"},
        {"name=a; filename=\"b\\\"c\\\\d\"", "a|b\"c\\d"},
        {"name=a; filename=\"C:\\dir\\b.txt\"", "a|C:\\dir\\b.txt"},
        {"name=a; filename=\"\xc3\xa4\"", "a|\xc3\xa4"},
        {"name=a; filename=\"%22\"", "a|%22"},
        {"name=a; filename*=UTF-8''%c3%a4%20b", "a|\xc3\xa4 b"},
        {"name=a; filename*=utf-8'de'b; filename=c", "a|b"},
        {"name=a; filename=c; filename*=utf-8'de'b", "a|b"},
        {"name=\"\"", "|-"},
        {"filename=b; name=a; other=\"x;y\"", "a|b"},
    };
    char content[256], expected[256];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)snprintf(content, sizeof(content),
                       "--xYz\r\nContent-Disposition: form-data; %s\r\n\r\n\r\n--xYz--",
                       rows[i][0]);
        (void)snprintf(expected, sizeof(expected), "[%s|text/plain]()end", rows[i][1]);
        assert_events(content, expected);
    }
}

TEST(multipart, heads_are_refused_if_malformed)
{
    static const char *const heads[] = {
        "",
        "Content-Type: text/plain\r\n",
        "Content-Disposition: form-data\r\n",
        "Content-Disposition: form-data; filename=b\r\n",
        "Content-Disposition: attachment; name=a\r\n",
        "Content-Disposition: form-data; name=a; name=b\r\n",
        "Content-Disposition: form-data; name=a; filename=b; filename=c\r\n",
        "Content-Disposition: form-data; name=a; filename*=b\r\n",
        "Content-Disposition: form-data; name=a; filename*=UTF-8''%ff\r\n",
        "Content-Disposition: form-data; name=a; filename*=UTF-8''%4\r\n",
        "Content-Disposition: form-data; name=a; filename*=latin1''b\r\n",
        "Content-Disposition: form-data; name=\"a\r\n",
        "Content-Disposition: form-data; name=a b\r\n",
        "Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b\r\n",
        "Content-Disposition: form-data;\r\n name=a\r\n",
        "Content-Disposition : form-data; name=a\r\n",
        "Content-Disposition: form-data; name=a\n",
        "Content-Disposition: form-data; name=a\r\nX\r\n",
        "Content-Disposition: form-data; name=a\r\n: x\r\n",
        "Content-Disposition: form-data; name=a\r\nX: \x01\r\n",
    };
    char content[256];

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        (void)snprintf(content, sizeof(content), "--xYz\r\n%s\r\n1\r\n--xYz--", heads[i]);
        assert_events(content, "!WEIR_EMALFORMED");
    }
}

TEST(multipart, fields_of_a_part_are_found)
{
    weir_span input = weir_span_of_text(
        "--xYz\r\nX-A: 1\r\nContent-Disposition: form-data; name=\"a\\\"\"\r\nx-b:2 \r\n\r\n");
    weir_http_multipart *multipart = NULL;
    const weir_http_part *part;
    weir_span data;

    assert_int_equal(weir_http_multipart_create(weir_span_of_text(TYPE), NULL, &multipart), 0);
    assert_int_equal(weir_http_multipart_next(multipart, &input, &data), WEIR_HTTP_MULTIPART_PART);
    part = weir_http_multipart_part(multipart);
    assert_span_text(weir_http_part_field(part, "x-a"), "1");
    assert_span_text(weir_http_part_field(part, "X-B"), "2");
    assert_span_text(weir_http_part_field(part, "content-disposition"),
                     "form-data; name=\"a\\\"\"");
    assert_span_text(part->name, "a\"");
    assert_null(weir_http_part_field(part, "X-C").data);
    weir_http_multipart_release(multipart);
}

TEST(multipart, needs_a_boundary)
{
    static const char *const types[] = {
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"a \"",
        "multipart/form-data; boundary=\"a;b\"",
        "multipart/form-data; boundary=a b",
        ("multipart/form-data; boundary="
         "01234567890123456789012345678901234567890123456789012345678901234567890"),
    };
    weir_http_multipart *multipart = NULL;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        assert_int_equal(weir_http_multipart_create(weir_span_of_text(types[i]), NULL, &multipart),
                         WEIR_EMALFORMED);
    assert_int_equal(weir_http_multipart_create(weir_span_of_text("text/plain"), NULL, &multipart),
                     -ENOTSUP);
    assert_int_equal(weir_http_multipart_create(weir_span_of_text(TYPE),
                                                WEIR_HTTP_MULTIPART_OPTIONS(.max_parts = -1),
                                                &multipart),
                     -EINVAL);
    assert_events_of("Multipart/Form-Data; charset=utf-8; Boundary=\"a ?=.b\"", NULL,
                     "--a ?=.b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--a ?=.b--",
                     "[a|-|text/plain](1)end");
}

TEST(multipart, has_limits)
{
    assert_events_of(TYPE, WEIR_HTTP_MULTIPART_OPTIONS(.max_parts = 1),
                     HEAD("a") "1\r\n" HEAD("b") "2\r\n--xYz--",
                     "[a|-|text/plain](1)!WEIR_ETOOLONG");
    assert_events_of(TYPE, WEIR_HTTP_MULTIPART_OPTIONS(.max_parts = 2),
                     HEAD("a") "1\r\n" HEAD("b") "2\r\n--xYz--",
                     "[a|-|text/plain](1)[b|-|text/plain](2)end");
    assert_events_of(TYPE, WEIR_HTTP_MULTIPART_OPTIONS(.max_header_bytes = 42),
                     HEAD("a") "1\r\n" HEAD("bc") "2\r\n--xYz--",
                     "[a|-|text/plain](1)!WEIR_ETOOLONG");
    assert_transcript(transcript_of(TYPE, WEIR_HTTP_MULTIPART_OPTIONS(.max_bytes = 100),
                                    weir_span_of_text(HEAD("a") "1\r\n--xYz--"), 99, 99),
                      "[a|-|text/plain](1)end");
    assert_transcript(transcript_of(TYPE, WEIR_HTTP_MULTIPART_OPTIONS(.max_bytes = 49),
                                    weir_span_of_text(HEAD("a") "1\r\n--xYz--"), 1, 1),
                      "[a|-|text/plain](!WEIR_ETOOLONG");
}

static void feed_repeatedly(weir_http_multipart *multipart, const char *text, size_t count,
                            int expected)
{
    weir_span data, input;
    int event = 0;

    for (size_t i = 0; i < count && event >= 0; i++) {
        input = weir_span_of_text(text);
        do
            event = weir_http_multipart_next(multipart, &input, &data);
        while (event > 0);
    }
    assert_int_equal(event, expected);
}

TEST(multipart, of_a_million_parts_is_refused_with_little_memory)
{
    weir_http_multipart *multipart = NULL;
    size_t bytes;

    assert_int_equal(weir_http_multipart_create(weir_span_of_text(TYPE), NULL, &multipart), 0);
    feed_repeatedly(multipart, HEAD("a") "\r\n", 1, 0);
    bytes = test_memory_live_bytes();
    feed_repeatedly(multipart, HEAD("a") "\r\n", 999, 0);
    assert_int_equal(test_memory_live_bytes(), bytes);
    feed_repeatedly(multipart, HEAD("a") "\r\n", 999000, WEIR_ETOOLONG);
    weir_http_multipart_release(multipart);
}

/* Were it quadratic, it would not end before the timeout of the test. */
TEST(multipart, floods_of_almost_boundaries_take_linear_time)
{
    enum { SIZE = 8 << 20 };
    static const char *const floods[] = {"\r\n--", "\r", "\r\n--xY", "\r\n--xYw"};
    char *content = malloc(SIZE);
    weir_http_multipart *multipart = NULL;
    weir_span input, data;
    size_t length, total;

    assert_non_null(content);
    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        assert_int_equal(weir_http_multipart_create(weir_span_of_text(TYPE), NULL, &multipart), 0);
        feed_repeatedly(multipart, HEAD("a"), 1, 0);
        length = strlen(floods[i]);
        for (size_t at = 0; at < SIZE; at++)
            content[at] = floods[i][at % length];
        input = weir_span_of(content, SIZE);
        total = 0;
        while (weir_http_multipart_next(multipart, &input, &data) > 0)
            total += data.length;
        assert_in_range(total, SIZE - 8, SIZE);
        weir_http_multipart_release(multipart);
    }
    free(content);
}

TEST(multipart, survives_without_memory)
{
    weir_span content = weir_span_of_text(
        "--xYz\r\nContent-Disposition: form-data; name=\"abcdefghijklmnopqrstuvwxyz\"\r\nX: "
        "0123456789012345678901234567890123456789012345678901234567890123456789\r\n\r\n1");
    weir_http_multipart *multipart;
    weir_span input, data;
    int err;

    for (unsigned n = 1;; n++) {
        multipart = NULL;
        input = content;
        test_memory_fail_at(n);
        err = weir_http_multipart_create(weir_span_of_text(TYPE), NULL, &multipart);
        if (!err)
            err = weir_http_multipart_next(multipart, &input, &data);
        weir_http_multipart_release(multipart);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
    assert_int_equal(err, WEIR_HTTP_MULTIPART_PART);
}
