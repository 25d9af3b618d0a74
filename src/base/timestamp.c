/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timestamp.h"

#include <stdio.h>

#include "base/calendar.h"

#define MS_OF_DAY ((int64_t)24 * 60 * 60 * 1000)

const char *weir__timestamp(int64_t realtime_ns, char buffer[WEIR__TIMESTAMP_SIZE])
{
    int64_t ms = realtime_ns / 1000000;
    weir__date date = weir__date_of_days(ms / MS_OF_DAY);
    unsigned of_day = (unsigned)(ms % MS_OF_DAY);

    (void)snprintf(buffer, WEIR__TIMESTAMP_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", date.year,
                   date.month, date.day, of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60,
                   of_day % 1000);
    return buffer;
}
