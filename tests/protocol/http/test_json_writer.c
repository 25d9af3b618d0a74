/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "protocol/http/json_writer.h"
#include "support/memory.h"
#include "support/test.h"

static weir_buf *create_buf(void)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(16, 0, &buf), 0);
    return buf;
}

static void assert_written(weir_buf *buf, const char *text)
{
    if (!weir_span_equal(weir_buf_span(buf), weir_span_of_text(text)))
        fail_msg("\"%.*s\" instead of \"%s\"", (int)weir_buf_readable(buf),
                 (const char *)weir_buf_bytes(buf), text);
    weir_buf_release(buf);
}

static void write_all(weir__json *json)
{
    weir__json_open(json, '{');
    weir__json_key(json, "empty");
    weir__json_open(json, '[');
    weir__json_close(json, ']');
    weir__json_key(json, "rows");
    weir__json_open(json, '[');
    weir__json_int(json, INT64_MIN);
    weir__json_text(json, "x");
    weir__json_open(json, '[');
    weir__json_bool(json, true);
    weir__json_bool(json, false);
    weir__json_close(json, ']');
    weir__json_raw(json, weir_span_of_text("1.5"));
    weir__json_close(json, ']');
    weir__json_key(json, "last");
    weir__json_open(json, '{');
    weir__json_close(json, '}');
    weir__json_close(json, '}');
}

TEST(json_writer, writes_nested_values_with_commas)
{
    weir__json json = {create_buf()};

    write_all(&json);
    assert_int_equal(json.err, 0);
    assert_written(json.buf, "{\"empty\":[],\"rows\":[-9223372036854775808,\"x\",[true,false],1.5],"
                             "\"last\":{}}");
}

TEST(json_writer, escapes_texts)
{
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"", "\"\""},
        {"a\"b\\c</script>", "\"a\\\"b\\\\c</script>\""},
        {"\n\t\x01\x7f", "\"\\u000a\\u0009\\u0001\\u007f\""},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb8!", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb8!\""},
        {"\xc3", "\"\\ufffd\""}, /* incomplete */
        {"\xc0\xaf\xed\xa0\x80",
         "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* overlong, surrogate */
        {"\xe2\x82z\xff", "\"\\ufffd\\ufffdz\\ufffd\""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir__json json = {create_buf()};

        weir__json_text(&json, rows[i].text);
        assert_int_equal(json.err, 0);
        assert_written(json.buf, rows[i].json);
    }
}

TEST(json_writer, reports_a_lack_of_memory_once_for_all)
{
    for (unsigned n = 1;; n++) {
        weir__json json = {create_buf()};
        bool has_failed;

        test_memory_fail_at(n);
        write_all(&json);
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(json.err, has_failed ? -ENOMEM : 0);
        weir_buf_release(json.buf);
        if (!has_failed)
            return;
    }
}
