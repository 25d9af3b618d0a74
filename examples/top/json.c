/* SPDX-License-Identifier: Apache-2.0 */
#include "top/json.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16
#define NUMBER_LENGTH_MAX 40

static void skip_space(struct json *json)
{
    while (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t')
        json->at++;
}

/* Reads a character if it is the next one. */
static bool take(struct json *json, char c)
{
    skip_space(json);
    if (json->failed || *json->at != c)
        return false;
    json->at++;
    return true;
}

static void expect(struct json *json, char c)
{
    if (!take(json, c))
        json->failed = true;
}

void json_open(struct json *json, char bracket)
{
    expect(json, bracket);
    json->is_first = true;
}

bool json_next(struct json *json, char bracket)
{
    bool is_first = json->is_first;

    json->is_first = false;
    if (take(json, bracket))
        return false;
    if (!is_first)
        expect(json, ',');
    return !json->failed;
}

/* ---- strings ---- */

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* The four digits of \uXXXX. Halves of surrogate pairs, and NUL, become "?". */
static unsigned read_code(struct json *json)
{
    unsigned code = 0;

    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = *json->at != '\0' ? strchr(digits, *json->at | 0x20) : NULL;

        if (digit == NULL) {
            json->failed = true;
            return '?';
        }
        code = code << 4 | (unsigned)(digit - digits);
        json->at++;
    }
    return code == 0 || (code >= 0xd800 && code < 0xe000) ? '?' : code;
}

static char *read_escape(struct json *json, char *to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char name = *json->at;
    const char *found = name != '\0' ? strchr(names, name) : NULL;

    if (name == 'u') {
        json->at++;
        return put_utf8(to, read_code(json));
    }
    if (found == NULL) {
        json->failed = true;
        return to;
    }
    json->at++;
    *to++ = values[found - names];
    return to;
}

const char *json_text(struct json *json)
{
    char *from, *to;

    expect(json, '"');
    from = to = json->at;
    while (!json->failed && *json->at != '"') {
        if (*json->at == '\0') {
            json->failed = true;
        } else if (*json->at == '\\') {
            json->at++;
            to = read_escape(json, to);
        } else {
            *to++ = *json->at++;
        }
    }
    if (json->failed)
        return "";
    json->at++;
    *to = '\0'; /* at the closing quote, or before it */
    return from;
}

const char *json_key(struct json *json)
{
    const char *key = json_text(json);

    expect(json, ':');
    return key;
}

/* ---- other values ---- */

static bool is_of_number(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* Copies the characters of a number. */
static void read_number(struct json *json, char buffer[NUMBER_LENGTH_MAX + 1])
{
    size_t length = 0;

    skip_space(json);
    while (length < NUMBER_LENGTH_MAX && is_of_number(*json->at))
        buffer[length++] = *json->at++;
    buffer[length] = '\0';
    if (length == 0 || is_of_number(*json->at))
        json->failed = true;
}

double json_double(struct json *json)
{
    char number[NUMBER_LENGTH_MAX + 1], *end;
    double value;

    read_number(json, number);
    value = strtod(number, &end);
    if (*end != '\0')
        json->failed = true;
    return json->failed ? 0 : value;
}

int64_t json_int(struct json *json)
{
    char number[NUMBER_LENGTH_MAX + 1], *end;
    int64_t value;

    read_number(json, number);
    value = strtoll(number, &end, 10);
    if (*end != '\0')
        json->failed = true;
    return json->failed ? 0 : value;
}

static void skip_word(struct json *json)
{
    char *from = json->at;

    while (*json->at >= 'a' && *json->at <= 'z') /* true, false, null */
        json->at++;
    if (json->at == from)
        json->failed = true;
}

static void skip_value(struct json *json, int depth)
{
    skip_space(json);
    if (depth == DEPTH_MAX)
        json->failed = true;
    else if (*json->at == '"')
        (void)json_text(json);
    else if (*json->at == '{')
        for (json_open(json, '{'); json_next(json, '}'); skip_value(json, depth + 1))
            (void)json_key(json);
    else if (*json->at == '[')
        for (json_open(json, '['); json_next(json, ']');)
            skip_value(json, depth + 1);
    else if (is_of_number(*json->at))
        (void)json_double(json);
    else
        skip_word(json);
    json->is_first = false;
}

void json_skip(struct json *json)
{
    skip_value(json, 0);
}
