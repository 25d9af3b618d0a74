/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timestamp.h"

#include <stdio.h>
#include <time.h>

#include "support/test.h"

#define SECOND ((int64_t)1000000000)

static void assert_timestamp(int64_t realtime_ns, const char *text)
{
    char buffer[WEIR__TIMESTAMP_SIZE];

    assert_string_equal(weir__timestamp(realtime_ns, buffer), text);
}

TEST(timestamp, is_iso_8601_with_milliseconds)
{
    assert_timestamp(0, "1970-01-01T00:00:00.000Z");
    assert_timestamp(1, "1970-01-01T00:00:00.000Z");
    assert_timestamp(1794795903 * SECOND + 123999999, "2026-11-16T02:25:03.123Z");
    assert_timestamp(951782399 * SECOND + 999000000, "2000-02-28T23:59:59.999Z");
    assert_timestamp(951782400 * SECOND, "2000-02-29T00:00:00.000Z");
    assert_timestamp(4107542400 * SECOND, "2100-03-01T00:00:00.000Z");
    assert_timestamp(INT64_MAX, "2262-04-11T23:47:16.854Z");
}

/* Every day of three centuries, compared with libc. */
TEST(timestamp, agrees_with_libc)
{
    char expected[WEIR__TIMESTAMP_SIZE];

    for (int64_t day = 0; day < 106000; day++) {
        time_t seconds = (time_t)(day * 86400 + (day * 7919) % 86400);
        struct tm parts;

        assert_non_null(gmtime_r(&seconds, &parts));
        assert_true(strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S.000Z", &parts) > 0);
        assert_timestamp((int64_t)seconds * SECOND, expected);
    }
}
