/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/date.h"

#include <stdio.h>

#include "support/test.h"

#define DAY INT64_C(86400)
#define NOW INT64_C(1794829772) /* in November 2026 */

static void assert_format(int64_t seconds, const char *expected)
{
    char text[WEIR__HTTP_DATE_SIZE];

    assert_string_equal(weir__http_date_format(seconds, text), expected);
}

TEST(date, is_formatted)
{
    assert_format(784111777, "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_format(0, "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_format(951782400, "Tue, 29 Feb 2000 00:00:00 GMT");
    assert_format(NOW, "Mon, 16 Nov 2026 11:49:32 GMT");
    assert_format(-1, "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_format(INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
}

static void assert_parsed(const char *text, int64_t now, int64_t expected)
{
    int64_t seconds = INT64_MIN;

    if (weir__http_date_parse(weir_span_of_text(text), now, &seconds) != 0)
        fail_msg("%s is refused", text);
    assert_int_equal(seconds, expected);
}

TEST(date, of_all_three_formats_is_parsed)
{
    assert_parsed("Sun, 06 Nov 1994 08:49:37 GMT", NOW, 784111777);
    assert_parsed("Sunday, 06-Nov-94 08:49:37 GMT", NOW, 784111777);
    assert_parsed("Sun Nov  6 08:49:37 1994", NOW, 784111777);
    assert_parsed("Wed Nov 16 08:49:37 1994", NOW, 784975777);
    assert_parsed("Sat, 31 Dec 2016 23:59:60 GMT", NOW, 1483228800);
    assert_parsed("Mon, 01 Jan 1601 00:00:00 GMT", NOW, -INT64_C(11644473600));
}

TEST(date, of_two_digits_is_at_most_50_years_ahead)
{
    assert_parsed("Monday, 16-Nov-76 11:49:32 GMT", NOW, NOW + 18263 * DAY);
    assert_parsed("Wednesday, 16-Nov-77 11:49:32 GMT", NOW, NOW - 17897 * DAY);
    assert_parsed("Monday, 16-Nov-26 11:49:32 GMT", NOW, NOW);
}

TEST(date, is_refused_if_malformed)
{
    static const char *const texts[] = {
        "",
        "Sun",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov1994 08:49:37 GMT",
        "Sun, 06 Nox 1994 08:49:37 GMT",
        "Son, 06 Nov 1994 08:49:37 GMT",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1600 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov xx 08:49:37 1994",
        "Sun Nov  0 08:49:37 1994",
        "784111777",
    };
    int64_t seconds;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (weir__http_date_parse(weir_span_of_text(texts[i]), NOW, &seconds) != WEIR_EMALFORMED)
            fail_msg("%s is accepted", texts[i]);
}

/* Counts days as a child would: month by month. */
TEST(date, of_each_day_of_230_years_is_that_of_a_plain_calendar)
{
    static const char *const days[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = 0, seconds;
    char expected[64], text[WEIR__HTTP_DATE_SIZE];

    for (int year = 1970; year <= 2200; year++) {
        for (int month = 0; month < 12; month++) {
            int length = lengths[month];

            if (month == 1 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
                length++;
            for (int of_month = 1; of_month <= length; of_month++, day++) {
                seconds = day * DAY + day % DAY;
                (void)snprintf(expected, sizeof(expected), "%s, %02d %s %d %02d:%02d:%02d GMT",
                               days[day % 7], of_month, months[month], year,
                               (int)(seconds % DAY / 3600), (int)(seconds / 60 % 60),
                               (int)(seconds % 60));
                assert_string_equal(weir__http_date_format(seconds, text), expected);
                assert_parsed(text, NOW, seconds);
            }
        }
    }
}

static void assert_cookie_date(const char *text, int64_t expected)
{
    int64_t seconds = -1;

    if (weir__http_date_parse_cookie(weir_span_of_text(text), &seconds) != 0)
        seconds = -1;
    if (seconds != expected)
        fail_msg("%s is %lld", text, (long long)seconds);
}

TEST(date, of_a_cookie_may_have_any_format)
{
    assert_cookie_date("Sun, 06 Nov 1994 08:49:37 GMT", 784111777);
    assert_cookie_date("Sun, 06-Nov-1994 08:49:37 GMT", 784111777);
    assert_cookie_date("Sunday, 06-Nov-94 08:49:37 GMT", 784111777);
    assert_cookie_date("Sun Nov  6 08:49:37 1994", 784111777);
    assert_cookie_date("6 november 94 8:49:37", 784111777);
    assert_cookie_date("8:49:37 1994 6 Nov", 784111777);
    assert_cookie_date("06 Nov 1994 08:49:37x", 784111777);
    assert_cookie_date("16-Nov-26 11:49:32", NOW);
    assert_cookie_date("", -1);
    assert_cookie_date("Sun, 06 Nov 1994", -1);
    assert_cookie_date("06 Nov 08:49:37", -1);
    assert_cookie_date("32 Nov 1994 08:49:37", -1);
    assert_cookie_date("31 Nov 1994 08:49:37", -1);
    assert_cookie_date("06 Nov 1600 08:49:37", -1);
    assert_cookie_date("06 Nov 1994 08:49:60", -1);
    assert_cookie_date("06 Nov 1994 24:49:00", -1);
    assert_cookie_date("06 Nov 1994 008:49:00", -1);
    assert_cookie_date("06 Nov 19941 08:49:00", -1);
    assert_cookie_date("06 No 1994 08:49:00", -1);
}
