/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timestamp.h"

#include <stdio.h>

#define DAYS_OF_ERA 146097      /* 400 years */
#define DAYS_BEFORE_1970 719468 /* since 1 March of year 0 */
#define MS_OF_DAY ((int64_t)24 * 60 * 60 * 1000)

struct date {
    uint16_t year;
    uint8_t month;
    uint8_t day;
};

/* Years begin in March, so that a leap day is the last day of its year. */
static struct date date_of(int64_t days)
{
    unsigned total = (unsigned)(days + DAYS_BEFORE_1970);
    unsigned era = total / DAYS_OF_ERA, day = total % DAYS_OF_ERA;
    unsigned year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    unsigned day_of_year = day - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * day_of_year + 2) / 153; /* 0 = March */

    return (struct date){
        .year = (uint16_t)(year + 400 * era + (month >= 10)),
        .month = (uint8_t)(month < 10 ? month + 3 : month - 9),
        .day = (uint8_t)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

const char *weir__timestamp(int64_t realtime_ns, char buffer[WEIR__TIMESTAMP_SIZE])
{
    int64_t ms = realtime_ns / 1000000;
    struct date date = date_of(ms / MS_OF_DAY);
    unsigned of_day = (unsigned)(ms % MS_OF_DAY);

    (void)snprintf(buffer, WEIR__TIMESTAMP_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", date.year,
                   date.month, date.day, of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60,
                   of_day % 1000);
    return buffer;
}
