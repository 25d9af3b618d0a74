/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates of the Gregorian calendar from days since 1 January 1970, and back, from the year 1 on.
 * Takes no lock, unlike gmtime_r. Header-only, so that libweir-http can use it.
 */
#ifndef WEIR_BASE_CALENDAR_H
#define WEIR_BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR__DAYS_OF_ERA 146097      /* 400 years */
#define WEIR__DAYS_BEFORE_1970 719468 /* since 1 March of year 0 */

typedef struct weir__date {
    uint16_t year;
    uint8_t month; /* 1 to 12 */
    uint8_t day;   /* 1 to 31 */
} weir__date;

/* Years begin in March, so that a leap day is the last day of its year. */
static inline weir__date weir__date_of_days(int64_t days)
{
    unsigned total = (unsigned)(days + WEIR__DAYS_BEFORE_1970);
    unsigned era = total / WEIR__DAYS_OF_ERA, day = total % WEIR__DAYS_OF_ERA;
    unsigned year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    unsigned day_of_year = day - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * day_of_year + 2) / 153; /* 0 = March */

    return (weir__date){
        .year = (uint16_t)(year + 400 * era + (month >= 10)),
        .month = (uint8_t)(month < 10 ? month + 3 : month - 9),
        .day = (uint8_t)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

static inline int64_t weir__date_days(weir__date date)
{
    unsigned year = date.year - (unsigned)(date.month <= 2), of_era = year % 400;
    unsigned month = date.month > 2 ? date.month - 3u : date.month + 9u;
    unsigned day_of_year = (153 * month + 2) / 5 + date.day - 1u;
    unsigned day = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;

    return (int64_t)(year / 400) * WEIR__DAYS_OF_ERA + day - WEIR__DAYS_BEFORE_1970;
}

/* True if there is such a day. */
static inline bool weir__date_is_valid(unsigned year, unsigned month, unsigned day)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1] + (unsigned)(month == 2 && is_leap);
}

#endif
