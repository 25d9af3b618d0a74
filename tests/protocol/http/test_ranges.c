/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/ranges.h"

#include <stdio.h>

#include "support/test.h"

/* The ranges as text, "0-99 200-299"; "all" if they are ignored, "none" if not satisfiable. */
static void assert_ranges(const char *value, uint64_t size, const char *expected)
{
    weir__http_range ranges[WEIR__HTTP_MAX_RANGES];
    char text[1024] = "";
    size_t length = 0;
    int count = weir__http_ranges_parse(weir_span_of_text(value), size, ranges);

    if (count == 0)
        (void)snprintf(text, sizeof(text), "all");
    else if (count == WEIR_EBOUNDS)
        (void)snprintf(text, sizeof(text), "none");
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%llu-%llu",
                                   i > 0 ? " " : "", (unsigned long long)ranges[i].offset,
                                   (unsigned long long)(ranges[i].offset + ranges[i].length - 1));
    assert_string_equal(text, expected);
}

TEST(ranges, are_parsed)
{
    assert_ranges("bytes=0-99", 1000, "0-99");
    assert_ranges("bytes=0-0", 1000, "0-0");
    assert_ranges("bytes=500-", 1000, "500-999");
    assert_ranges("bytes=-5", 1000, "995-999");
    assert_ranges("bytes=-5000", 1000, "0-999");
    assert_ranges("bytes=990-5000", 1000, "990-999");
    assert_ranges("bytes=999-", 1000, "999-999");
    assert_ranges("Bytes=0-99, 200-299 ,\t-5", 1000, "0-99 200-299 995-999");
    assert_ranges("bytes=,,0-1,,", 1000, "0-1");
    assert_ranges("bytes=500-599,0-99", 1000, "500-599 0-99");
    assert_ranges("bytes=0-99999999999999999999999", 1000, "0-999");
    assert_ranges("bytes=0-9223372036854775807", INT64_MAX, "0-9223372036854775806");
}

TEST(ranges, are_ignored_if_malformed)
{
    static const char *const values[] = {"",
                                         "bytes",
                                         "bytes=",
                                         "bytes=,",
                                         "bytes=-",
                                         "bytes=a-b",
                                         "bytes=5-4",
                                         "bytes=1",
                                         "bytes=1-2-3",
                                         "bytes=1 -2",
                                         "bytes=1- 2",
                                         "bytes =1-2",
                                         "items=0-1",
                                         "bytes 0-1",
                                         "bytes=--1",
                                         "bytes=0-1;2-",
                                         "bytes=+1-2",
                                         "bytes=0x1-2",
                                         "bytes=0-1,x",
                                         "bytes=0-1,5-4",
                                         "bytes=1.5-2"};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_ranges(values[i], 1000, "all");
}

TEST(ranges, beyond_the_content_are_not_satisfiable)
{
    assert_ranges("bytes=1000-", 1000, "none");
    assert_ranges("bytes=1000-1001,5000-", 1000, "none");
    assert_ranges("bytes=-0", 1000, "none");
    assert_ranges("bytes=99999999999999999999999-", 1000, "none");
    assert_ranges("bytes=18446744073709551616-", 1000, "none"); /* 0, in 64 bits */
    assert_ranges("bytes=1000-,0-1", 1000, "0-1");
    assert_ranges("bytes=0-", 0, "none");
    assert_ranges("bytes=-1", 0, "all");
}

TEST(ranges, that_are_near_become_one)
{
    assert_ranges("bytes=0-99,100-199", 1000, "0-199");
    assert_ranges("bytes=0-99,179-199", 1000, "0-199");
    assert_ranges("bytes=0-99,180-199", 1000, "0-99 180-199");
    assert_ranges("bytes=100-199,0-50", 1000, "0-199");
    assert_ranges("bytes=0-99,50-149", 1000, "0-149");
    assert_ranges("bytes=0-99,300-399,600-699,90-310", 1000, "0-399 600-699");
    assert_ranges("bytes=600-699,0-99,300-399,90-310", 1000, "600-699 0-399");
    assert_ranges("bytes=0-9,500-509,150-159,60-109", 1000, "0-159 500-509");
    assert_ranges("bytes=0-9,200-209,400-409,100-109,300-309", 1000,
                  "0-9 200-209 400-409 100-109 300-309");
}

TEST(ranges, are_ignored_if_too_many_or_overlapping)
{
    char value[65536];
    size_t length = (size_t)snprintf(value, sizeof(value), "bytes=");
    size_t last = 0;

    assert_ranges("bytes=0-99,50-149,100-199", 1000, "0-199");
    assert_ranges("bytes=0-,0-,0-", 1000, "0-999");
    assert_ranges("bytes=0-,0-,0-,0-", 1000, "all");
    for (int i = 0; i < WEIR__HTTP_MAX_RANGES; i++) {
        last = length;
        length +=
            (size_t)snprintf(value + length, sizeof(value) - length, "%d-%d,", i * 100, i * 100);
    }
    value[last - 1] = '\0';
    assert_ranges(value, 10000,
                  "0-0 100-100 200-200 300-300 400-400 500-500 600-600 700-700 800-800 900-900 "
                  "1000-1000 1100-1100 1200-1200 1300-1300 1400-1400");
    value[last - 1] = ',';
    (void)snprintf(value + length, sizeof(value) - length, "9000-");
    assert_ranges(value, 10000, "all");
    length = (size_t)snprintf(value, sizeof(value), "bytes=");
    for (int i = 0; length < sizeof(value) - 8; i++)
        length += (size_t)snprintf(value + length, sizeof(value) - length, "%d-,", i % 10);
    assert_ranges(value, 10000, "all");
}

TEST(ranges, content_range_is_formatted)
{
    char text[WEIR__HTTP_CONTENT_RANGE_SIZE];

    assert_string_equal(weir__http_content_range(&(weir__http_range){0, 100}, 1234, text),
                        "bytes 0-99/1234");
    assert_string_equal(weir__http_content_range(NULL, 1234, text), "bytes */1234");
    assert_string_equal(
        weir__http_content_range(&(weir__http_range){INT64_MAX - 1, 1}, INT64_MAX, text),
        "bytes 9223372036854775806-9223372036854775806/9223372036854775807");
}
