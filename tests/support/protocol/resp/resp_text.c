/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/resp/resp_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/test.h"

/* ---- as text ---- */

struct sink {
    char *text;
    size_t size;
    size_t length;
};

static void put(struct sink *sink, const void *bytes, size_t length)
{
    assert_true(sink->length + length < sink->size);
    memcpy(sink->text + sink->length, bytes, length);
    sink->length += length;
    sink->text[sink->length] = '\0';
}

static void put_text(struct sink *sink, const char *text)
{
    put(sink, text, strlen(text));
}

static void put_value(struct sink *sink, const weir_resp *value);

static void put_elements(struct sink *sink, const weir_resp *value)
{
    put_text(sink, "(");
    for (size_t i = 0; i < weir_resp_count(value); i++) {
        put_text(sink, i > 0 ? " " : "");
        put_value(sink, weir_resp_at(value, i));
    }
    put_text(sink, ")");
}

static void put_value(struct sink *sink, const weir_resp *value)
{
    char kind = (char)weir_resp_kind(value), number[64] = "";

    if (weir_resp_attributes(value) != NULL)
        put_value(sink, weir_resp_attributes(value));
    put(sink, &kind, 1);
    if (kind == WEIR_RESP_INTEGER)
        (void)snprintf(number, sizeof(number), "%" PRId64, weir_resp_integer(value));
    else if (kind == WEIR_RESP_BOOLEAN)
        (void)snprintf(number, sizeof(number), "%s", weir_resp_integer(value) ? "t" : "f");
    else if (kind == WEIR_RESP_DOUBLE)
        (void)snprintf(number, sizeof(number), "%.17g", weir_resp_double(value));
    else if (weir_resp_is_bulk_header(value))
        (void)snprintf(number, sizeof(number), "<%" PRIu64 ">", weir_resp_bulk_length(value));
    else if (weir_resp_buf(value) != NULL)
        put(sink, weir_buf_bytes(weir_resp_buf(value)), weir_buf_readable(weir_resp_buf(value)));
    else if (kind != WEIR_RESP_NULL)
        put_elements(sink, value);
    put_text(sink, number);
}

void resp_format(const weir_msg *msg, char *text, size_t size)
{
    struct sink sink = {text, size, 0};

    text[0] = '\0';
    if (weir_msg_is(msg, &weir_resp_type))
        put_value(&sink, (const weir_resp *)(const void *)msg);
    else if (weir_msg_is(msg, &weir_buf_type)) /* such as an error: see feed.c */
        put(&sink, weir_buf_bytes((const weir_buf *)(const void *)msg), weir_msg_size(msg));
}

/* ---- random ---- */

static weir_resp *random_text(weir__random *random, enum weir_resp_kind kind)
{
    char text[40] = "txt:";
    size_t length = (size_t)weir__random_below(random, 30) + 4;
    weir_resp *value = NULL;

    for (size_t i = 4; i < length; i++) {
        text[i] = (char)weir__random_next(random);
        if (text[i] == '\r' || text[i] == '\n')
            text[i] = '-';
    }
    if (kind == WEIR_RESP_BULK && length > 6)
        memcpy(text + 4, "\r\n", 2);
    if (kind == WEIR_RESP_BIG_NUMBER)
        length = (size_t)snprintf(text, sizeof(text), "-%020" PRIu64, weir__random_next(random));
    assert_int_equal(weir_resp_create_text(kind, text, length, &value), 0);
    return value;
}

static weir_resp *random_aggregate(weir__random *random, enum weir_resp_kind kind, unsigned depth)
{
    size_t count = (size_t)weir__random_below(random, 5) * 2;
    weir_resp *value = NULL;

    assert_int_equal(weir_resp_create_aggregate(kind, &value), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(weir_resp_add(value, resp_random(random, depth - 1)), 0);
    return value;
}

static weir_resp *random_number(weir__random *random, enum weir_resp_kind kind)
{
    uint64_t bits = weir__random_next(random) >> weir__random_below(random, 64);
    weir_resp *value = NULL;
    double number;

    memcpy(&number, &bits, sizeof(number));
    if (number != number)
        number = 0.1;
    if (kind == WEIR_RESP_DOUBLE)
        assert_int_equal(weir_resp_create_double(number, &value), 0);
    else if (kind == WEIR_RESP_BOOLEAN)
        assert_int_equal(weir_resp_create_boolean(bits % 2 == 0, &value), 0);
    else if (kind == WEIR_RESP_INTEGER)
        assert_int_equal(weir_resp_create_integer((int64_t)bits, &value), 0);
    else
        assert_int_equal(weir_resp_create_null(&value), 0);
    return value;
}

static weir_resp *random_kind(weir__random *random, char kind, unsigned depth)
{
    if (strchr("*%~>", kind) != NULL)
        return random_aggregate(random, (enum weir_resp_kind)kind, depth);
    if (strchr("+-$(!=", kind) != NULL)
        return random_text(random, (enum weir_resp_kind)kind);
    return random_number(random, (enum weir_resp_kind)kind);
}

weir_resp *resp_random(weir__random *random, unsigned depth)
{
    static const char kinds[] = "+-$(!=_#,:*%~>";
    char kind = kinds[weir__random_below(random, depth > 1 ? 14 : 10)];
    weir_resp *value = random_kind(random, kind, depth);

    if (depth > 2 && weir__random_below(random, 8) == 0)
        assert_int_equal(weir_resp_set_attributes(
                             value, random_aggregate(random, WEIR_RESP_ATTRIBUTE, depth - 1)),
                         0);
    return value;
}
