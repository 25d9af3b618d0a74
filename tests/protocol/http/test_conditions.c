/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/conditions.h"

#include "support/test.h"

#define MODIFIED INT64_C(784111777) /* Sun, 06 Nov 1994 08:49:37 GMT */
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define SAME "Sun, 06 Nov 1994 08:49:37 GMT"
#define AFTER "Sun, 06 Nov 1994 08:49:38 GMT"
#define NOW (MODIFIED + 1000)

struct row {
    const char *if_match, *if_none_match, *if_modified_since, *if_unmodified_since;
    int read_status;  /* of GET */
    int write_status; /* of PUT */
};

static weir_span field(const char *text)
{
    return text != NULL ? weir_span_of_text(text) : weir_span_of(NULL, 0);
}

static void assert_rows(const struct row *rows, size_t count, const char *etag, int64_t modified,
                        bool is_there)
{
    weir__http_validators validators = {field(etag), modified, is_there};

    for (size_t i = 0; i < count; i++) {
        weir__http_conditions conditions = {.if_match = field(rows[i].if_match),
                                            .if_none_match = field(rows[i].if_none_match),
                                            .if_modified_since = field(rows[i].if_modified_since),
                                            .if_unmodified_since =
                                                field(rows[i].if_unmodified_since)};
        int read = weir__http_conditions_status(&conditions, &validators, true, NOW);
        int write = weir__http_conditions_status(&conditions, &validators, false, NOW);

        if (read != rows[i].read_status || write != rows[i].write_status)
            fail_msg("row %zu: %d %d", i, read, write);
    }
}

#define ASSERT_ROWS(rows, ...) assert_rows(rows, sizeof(rows) / sizeof((rows)[0]), __VA_ARGS__)

TEST(conditions, count_in_the_order_of_the_rfc)
{
    static const struct row rows[] = {
        {NULL, NULL, NULL, NULL, 0, 0},
        {"\"a\"", NULL, NULL, NULL, 0, 0},
        {"*", NULL, NULL, NULL, 0, 0},
        {"\"b\"", NULL, NULL, NULL, 412, 412},
        {"W/\"a\"", NULL, NULL, NULL, 412, 412},
        {"\"b\" , \"a\"", NULL, NULL, NULL, 0, 0},
        {"a", NULL, NULL, NULL, 412, 412},
        {"", NULL, NULL, NULL, 412, 412},
        {NULL, NULL, NULL, BEFORE, 412, 412},
        {NULL, NULL, NULL, SAME, 0, 0},
        {NULL, NULL, NULL, AFTER, 0, 0},
        {NULL, NULL, NULL, "yesterday", 0, 0},
        {"\"a\"", NULL, NULL, BEFORE, 0, 0}, /* If-Match wins */
        {NULL, "\"a\"", NULL, NULL, 304, 412},
        {NULL, "*", NULL, NULL, 304, 412},
        {NULL, "W/\"a\"", NULL, NULL, 304, 412},
        {NULL, "\"b\",\"c\"", NULL, NULL, 0, 0},
        {NULL, "\"b\",,W/\"a\",", NULL, NULL, 304, 412},
        {NULL, "a", NULL, NULL, 0, 0},
        {NULL, NULL, BEFORE, NULL, 0, 0},
        {NULL, NULL, SAME, NULL, 304, 0},
        {NULL, NULL, AFTER, NULL, 304, 0},
        {NULL, NULL, "yesterday", NULL, 0, 0},
        {NULL, "\"b\"", AFTER, NULL, 0, 0}, /* If-None-Match wins */
        {"\"a\"", "\"a\"", NULL, NULL, 304, 412},
        {"\"b\"", "\"a\"", NULL, NULL, 412, 412},
        {NULL, NULL, AFTER, BEFORE, 412, 412},
    };

    ASSERT_ROWS(rows, "\"a\"", MODIFIED, true);
}

TEST(conditions, on_what_does_not_exist)
{
    static const struct row rows[] = {
        {"*", NULL, NULL, NULL, 412, 412}, {"\"a\"", NULL, NULL, NULL, 412, 412},
        {NULL, "*", NULL, NULL, 0, 0},     {NULL, NULL, AFTER, NULL, 0, 0},
        {NULL, NULL, NULL, BEFORE, 0, 0},
    };

    ASSERT_ROWS(rows, NULL, -1, false);
}

TEST(conditions, without_validators_are_not_met)
{
    static const struct row rows[] = {
        {"*", NULL, NULL, NULL, 0, 0},     {"\"a\"", NULL, NULL, NULL, 412, 412},
        {NULL, "\"a\"", NULL, NULL, 0, 0}, {NULL, NULL, AFTER, NULL, 0, 0},
        {NULL, NULL, NULL, BEFORE, 0, 0},
    };

    ASSERT_ROWS(rows, NULL, -1, true);
}

static bool allows_range(const char *if_range, const char *etag, int64_t now)
{
    weir__http_conditions conditions = {.if_range = field(if_range)};
    weir__http_validators validators = {field(etag), MODIFIED, true};

    return weir__http_conditions_allow_range(&conditions, &validators, now);
}

TEST(conditions, if_range_is_compared_strongly)
{
    assert_true(allows_range(NULL, "\"a\"", NOW));
    assert_true(allows_range("\"a\"", "\"a\"", NOW));
    assert_false(allows_range("\"b\"", "\"a\"", NOW));
    assert_false(allows_range("W/\"a\"", "W/\"a\"", NOW));
    assert_false(allows_range("\"a\"", "W/\"a\"", NOW));
    assert_false(allows_range("\"a\"", NULL, NOW));
    assert_true(allows_range(SAME, "\"a\"", NOW));
    assert_false(allows_range(SAME, "\"a\"", MODIFIED));
    assert_false(allows_range(BEFORE, "\"a\"", NOW));
    assert_false(allows_range(AFTER, "\"a\"", NOW));
    assert_false(allows_range("a", "\"a\"", NOW));
    assert_false(allows_range("\"a\", \"a\"", "\"a\"", NOW));
}

TEST(etag, is_quoted)
{
    assert_true(weir__http_etag_is_valid(weir_span_of_text("\"\"")));
    assert_true(weir__http_etag_is_valid(weir_span_of_text("\"a,b\xe4\"")));
    assert_true(weir__http_etag_is_valid(weir_span_of_text("W/\"a\"")));
    assert_false(weir__http_etag_is_valid(weir_span_of_text("")));
    assert_false(weir__http_etag_is_valid(weir_span_of_text("W/")));
    assert_false(weir__http_etag_is_valid(weir_span_of_text("\"")));
    assert_false(weir__http_etag_is_valid(weir_span_of_text("w/\"a\"")));
    assert_false(weir__http_etag_is_valid(weir_span_of_text("\"a b\"")));
    assert_false(weir__http_etag_is_valid(weir_span_of_text("\"a\"b")));
    assert_false(weir__http_etag_is_valid(weir_span_of_text("*")));
    assert_true(weir__http_etags_have(weir_span_of_text("\"a,b\",\"c\""),
                                      weir_span_of_text("\"c\""), false));
    assert_false(
        weir__http_etags_have(weir_span_of_text("\"a\" \"c\""), weir_span_of_text("\"c\""), false));
}
