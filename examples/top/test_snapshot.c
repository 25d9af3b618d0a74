/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading metrics: JSON, distributions, and the URL that they come from.
 */
#include "top/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "top/url.h"

static struct snapshot *parse(const char *json)
{
    return snapshot_parse(json, strlen(json));
}

TEST(snapshot, has_metrics_with_labels_and_buckets)
{
    struct snapshot *snapshot = parse(
        " {\"time\": 1794867658.424, \"more\": [1, {\"a\": null}, \"\\u00e9\", -1.5e3, true],\n"
        "\"metrics\":[{\"name\":\"a.b\",\"labels\":{\"loop\":\"x-1#3\",\"q\":"
        "\"\\\"\\\\\\n\\u00e9\"},"
        "\"kind\":\"counter\",\"value\":9007199254740993},"
        "{\"name\":\"h\",\"labels\":{},\"kind\":\"histogram\",\"count\":3,\"sum\":5,"
        "\"buckets\":[[1,1],[3,2]]},"
        "{\"name\":\"a.b\",\"labels\":{\"loop\":\"x-2#4\"},\"kind\":\"counter\",\"value\":-2}]}");
    const struct metric *metric;

    assert_non_null(snapshot);
    assert_true(snapshot->time > 1794867658.4 && snapshot->time < 1794867658.5);
    assert_int_equal(snapshot->count, 3);
    metric = snapshot_find(snapshot, "a.b", "loop", "x-1#3");
    assert_true(metric->value == INT64_C(9007199254740993));
    assert_string_equal(metric_label(metric, "q"), "\"\\\n\xc3\xa9");
    assert_null(metric_label(metric, "p"));
    metric = snapshot_find(snapshot, "h", NULL, NULL);
    assert_int_equal(metric->value, 3);
    assert_int_equal(metric->bucket_count, 2);
    assert_int_equal(metric->buckets[1].upper, 3);
    assert_int_equal(metric->buckets[1].count, 2);
    assert_null(snapshot_find(snapshot, "h", "loop", "x-1#3"));
    assert_true(snapshot_sum(snapshot, "a.b", NULL, NULL) == INT64_C(9007199254740991));
    assert_int_equal(snapshot_sum(snapshot, "a.b", "loop", "x-2#4"), -2);
    assert_int_equal(snapshot_sum(snapshot, "none", NULL, NULL), 0);
    snapshot_free(snapshot);
}

/* Also cut off at each byte. */
TEST(snapshot, that_is_malformed_is_rejected)
{
    static const char whole[] =
        "{\"time\":1,\"metrics\":[{\"name\":\"h\",\"labels\":{\"l\":\"\\n\"},"
        "\"buckets\":[[1,2]],\"x\":false}]}";
    static const char *const wrong[] = {
        "",
        "Hello",
        "[]",
        "{}",
        "{\"metrics\":[]}",
        "{\"time\":1}",
        "{\"time\":1,\"metrics\":[1]}",
        "{\"time\":1,\"metrics\":[{\"name\":1}]}",
        "{\"time\":1,\"metrics\":[{\"name\":\"\\x\"}]}",
        "{\"time\":1,\"metrics\":[{\"name\":\"\\u12\"}]}",
        "{\"time\":1,\"metrics\":[{\"name\":\"\xff\"}]}",
        "{\"time\":1,\"metrics\":[{\"buckets\":[[1]]}]}x",
        "{\"time\":1,\"metrics\":[{\"buckets\":[[1,2,3]]}]}",
        "{\"time\":1,\"metrics\":[{\"buckets\":[[1,2]],\"buckets\":[[1,2]]}]}",
        "{\"time\":1,\"metrics\":[{} {}]}",
        "{\"time\":1,\"metrics\":[,]}",
        "{\"time\":1,\"a\":[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]],\"metrics\":[]}",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_null(parse(wrong[i]));
    for (size_t length = 0; length < sizeof(whole) - 1; length++)
        assert_null(snapshot_parse(whole, length));
    snapshot_free(parse(whole));
}

TEST(spread, is_that_of_the_values_since_before)
{
    struct bucket old[] = {{10, 100}, {30, 5}};
    struct bucket new[] = {{10, 100}, {20, 98}, {30, 6}, {40, 1}};
    struct metric before = {.buckets = old, .bucket_count = 2};
    struct metric now = {.buckets = new, .bucket_count = 4};
    struct spread spread = spread_between(&before, &now);

    assert_int_equal(spread.count, 100);
    assert_int_equal(spread.p50, 20);
    assert_int_equal(spread.p99, 30);
    assert_int_equal(spread.max, 40);
    spread = spread_between(NULL, &before);
    assert_int_equal(spread.count, 105);
    assert_int_equal(spread.p50, 10);
    assert_int_equal(spread.p99, 30);
    assert_int_equal(spread_between(&now, &before).count, 0); /* the program was restarted */
    assert_int_equal(spread_between(&now, NULL).max, 0);
}

static void expect_url(const char *given, const char *expected, const char *expected_token)
{
    char url[URL_SIZE], token[16];

    assert_true(url_of_metrics(given, url));
    assert_string_equal(url, expected);
    assert_true(url_find_token(given, token, sizeof(token)));
    assert_string_equal(token, expected_token);
}

TEST(url, of_a_server_or_its_page_becomes_that_of_its_metrics)
{
    expect_url("localhost:8080", "http://localhost:8080/metrics?format=json", "");
    expect_url("http://[::1]:8080/", "http://[::1]:8080/metrics?format=json", "");
    expect_url("https://a.org/weir/?token=x1&y", "https://a.org/metrics?format=json", "x1");
    expect_url("https://a.org/weir/?y&token=x2#z", "https://a.org/metrics?format=json", "x2");
    expect_url("http://a.org/stats", "http://a.org/stats?format=json", "");
    expect_url("a.org/stats?tokens=1#x", "http://a.org/stats?tokens=1&format=json", "");
    expect_url("a.org?notoken=1", "http://a.org/metrics?format=json", "");
}

TEST(url, that_is_too_long_is_rejected)
{
    char given[URL_SIZE + 100], url[URL_SIZE], token[16];

    memset(given, 'a', sizeof(given) - 1);
    given[sizeof(given) - 1] = '\0';
    assert_false(url_of_metrics(given, url));
    memcpy(given, "http://a/?token=", 16);
    assert_false(url_find_token(given, token, sizeof(token)));
    url_of_server("https://a.org:1/metrics", url);
    assert_string_equal(url, "https://a.org:1");
}
