/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/date.h"

#include "base/calendar.h"
#include "protocol/http/chars.h"

#define SECONDS_OF_DAY ((int64_t)86400)
#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */
#define FIRST_YEAR 1601
#define FAR_FUTURE_YEARS 50

static const char day_names[] = "ThuFriSatSunMonTueWed"; /* from 1 January 1970 on */
static const char month_names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* A date in parts; numbers as they were read. */
struct moment {
    unsigned year;
    unsigned month;
    unsigned day;
    unsigned hour;
    unsigned minute;
    unsigned second;
};

/* ---- formatting ---- */

static void put_two(char *to, unsigned number)
{
    to[0] = (char)('0' + number / 10);
    to[1] = (char)('0' + number % 10);
}

const char *weir__http_date_format(int64_t seconds, char text[WEIR__HTTP_DATE_SIZE])
{
    weir__date date;
    unsigned of_day;

    seconds = seconds < 0 ? 0 : seconds > LAST_SECOND ? LAST_SECOND : seconds;
    date = weir__date_of_days(seconds / SECONDS_OF_DAY);
    of_day = (unsigned)(seconds % SECONDS_OF_DAY);
    memcpy(text, "xxx, 00 xxx 0000 00:00:00 GMT", WEIR__HTTP_DATE_SIZE);
    memcpy(text, day_names + (size_t)(seconds / SECONDS_OF_DAY % 7) * 3, 3);
    put_two(text + 5, date.day);
    memcpy(text + 8, month_names + (size_t)(date.month - 1) * 3, 3);
    put_two(text + 12, date.year / 100u);
    put_two(text + 14, date.year % 100u);
    put_two(text + 17, of_day / 3600);
    put_two(text + 20, of_day / 60 % 60);
    put_two(text + 23, of_day % 60);
    return text;
}

/* ---- parsing ---- */

/* A second may be 60: a leap second. */
static int seconds_of(const struct moment *moment, int64_t *ret_seconds)
{
    weir__date date = {(uint16_t)moment->year, (uint8_t)moment->month, (uint8_t)moment->day};

    if (moment->year < FIRST_YEAR ||
        !weir__date_is_valid(moment->year, moment->month, moment->day) || moment->hour > 23 ||
        moment->minute > 59 || moment->second > 60)
        return WEIR_EMALFORMED;
    *ret_seconds = weir__date_days(date) * SECONDS_OF_DAY + moment->hour * 3600 +
                   moment->minute * 60 + moment->second;
    return 0;
}

static int64_t year_of(int64_t seconds)
{
    return weir__date_of_days(seconds > 0 ? seconds / SECONDS_OF_DAY : 0).year;
}

/* 1 to 12 for the name at `text`, of 3 characters; 0 if there is no such month. */
static unsigned month_of(const uint8_t *text)
{
    for (unsigned month = 0; month < 12; month++)
        if (weir__http_same_text(weir_span_of(text, 3), weir_span_of(month_names + month * 3, 3)))
            return month + 1;
    return 0;
}

/*
 * Compares text with a format of the same length: Y D h m s are digits of a number, bbb is the name
 * of a month, _ is a blank or the first digit of a day; all other characters stand for themselves.
 */
static bool matches(const uint8_t *text, const char *format, struct moment *moment)
{
    for (; *format != '\0'; format++, text++) {
        unsigned *number = *format == 'Y'   ? &moment->year
                           : *format == 'D' ? &moment->day
                           : *format == 'h' ? &moment->hour
                           : *format == 'm' ? &moment->minute
                           : *format == 's' ? &moment->second
                                            : NULL;

        if (number != NULL) {
            if (!weir__http_char_is(*text, WEIR__HTTP_DIGIT))
                return false;
            *number = 10 * *number + (*text - (unsigned)'0');
        } else if (*format == 'b') {
            moment->month = month_of(text);
            if (moment->month == 0)
                return false;
            format += 2;
            text += 2;
        } else if (*format == '_') {
            if (*text != ' ' && !weir__http_char_is(*text, WEIR__HTTP_DIGIT))
                return false;
            moment->day = *text == ' ' ? 0 : *text - (unsigned)'0';
        } else if (*text != (uint8_t)*format) {
            return false;
        }
    }
    return true;
}

/* The length of the name of a day, whole or of three letters; 0 if there is none. */
static size_t day_name_length(weir_span text)
{
    static const char *const names[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                        "Friday", "Saturday", "Sunday"};
    size_t length = 0;

    while (length < text.length && weir__http_char_is(text.data[length], WEIR__HTTP_ALPHA))
        length++;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if ((length == 3 || length == strlen(names[i])) && memcmp(text.data, names[i], length) == 0)
            return length;
    return 0;
}

int weir__http_date_parse(weir_span text, int64_t now, int64_t *ret_seconds)
{
    static const char imf[] = ", DD bbb YYYY hh:mm:ss GMT", rfc850[] = ", DD-bbb-YY hh:mm:ss GMT";
    static const char asctime_format[] = " bbb _D hh:mm:ss YYYY";
    struct moment moment = {0};
    size_t name = day_name_length(text);
    weir_span rest = weir__http_span_from(text, name);
    bool is_valid = false;

    if (name == 3 && rest.length == sizeof(imf) - 1) {
        is_valid = matches(rest.data, imf, &moment);
    } else if (name == 3 && rest.length == sizeof(asctime_format) - 1) {
        is_valid = matches(rest.data, asctime_format, &moment);
    } else if (name > 3 && rest.length == sizeof(rfc850) - 1) {
        is_valid = matches(rest.data, rfc850, &moment);
        moment.year += (unsigned)(year_of(now) / 100 * 100);
        if (moment.year > year_of(now) + FAR_FUTURE_YEARS)
            moment.year -= 100;
    }
    return is_valid ? seconds_of(&moment, ret_seconds) : WEIR_EMALFORMED;
}

/* ---- cookies ---- */

/* Parts of a cookie's date that have been found. */
enum { FOUND_TIME = 1, FOUND_DAY = 2, FOUND_MONTH = 4, FOUND_YEAR = 8, FOUND_ALL = 15 };

static bool is_delimiter(uint8_t byte)
{
    return byte == '\t' || (byte >= 0x20 && byte <= 0x2f) || (byte >= 0x3b && byte <= 0x40) ||
           (byte >= 0x5b && byte <= 0x60) || (byte >= 0x7b && byte <= 0x7e);
}

/* Reads a number of up to `max` digits at `*at`. Returns the number of digits; more than `max`
 * are counted, too. */
static size_t read_number(weir_span token, size_t *at, unsigned max, unsigned *ret_number)
{
    size_t digits = 0;

    for (*ret_number = 0;
         *at < token.length && weir__http_char_is(token.data[*at], WEIR__HTTP_DIGIT); ++*at)
        if (++digits <= max)
            *ret_number = 10 * *ret_number + (token.data[*at] - (unsigned)'0');
    return digits;
}

/* "8:49:37" and anything that does not begin with a digit. */
static bool read_time(weir_span token, struct moment *moment)
{
    unsigned *parts[] = {&moment->hour, &moment->minute, &moment->second};
    size_t at = 0, digits;

    for (int i = 0; i < 3; i++) {
        if (i > 0 && (at == token.length || token.data[at++] != ':'))
            return false;
        digits = read_number(token, &at, 2, parts[i]);
        if (digits < 1 || digits > 2)
            return false;
    }
    return true;
}

/* The part of the date that the token is, among those that are not found yet; 0 if none. */
static unsigned read_token(weir_span token, unsigned found, struct moment *moment)
{
    struct moment time = *moment;
    unsigned number;
    size_t at = 0, digits = read_number(token, &at, 4, &number);

    if ((found & FOUND_TIME) == 0 && read_time(token, &time)) {
        *moment = time;
        return FOUND_TIME;
    }
    if ((found & FOUND_DAY) == 0 && (digits == 1 || digits == 2)) {
        moment->day = number;
        return FOUND_DAY;
    }
    if ((found & FOUND_MONTH) == 0 && token.length >= 3 && month_of(token.data) > 0) {
        moment->month = month_of(token.data);
        return FOUND_MONTH;
    }
    if ((found & FOUND_YEAR) == 0 && digits >= 2 && digits <= 4) {
        moment->year = number + (digits > 2 ? 0 : number >= 70 ? 1900 : 2000);
        return FOUND_YEAR;
    }
    return 0;
}

int weir__http_date_parse_cookie(weir_span text, int64_t *ret_seconds)
{
    struct moment moment = {0};
    unsigned found = 0;
    size_t start;

    for (size_t at = 0; at < text.length;) {
        while (at < text.length && is_delimiter(text.data[at]))
            at++;
        for (start = at; at < text.length && !is_delimiter(text.data[at]);)
            at++;
        found |= read_token(weir_span_of(text.data + start, at - start), found, &moment);
    }
    if (found != FOUND_ALL || moment.second > 59)
        return WEIR_EMALFORMED;
    return seconds_of(&moment, ret_seconds);
}
