/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoder. RESP3 kinds are written to RESP2 peers as a Redis server does.
 */
#include <errno.h>
#include <inttypes.h>

#include <weir/buf.h>
#include <weir/resp.h>

#include "protocol/resp/resp.h"
#include "protocol/resp/resp_number.h"

static int write_count(weir_buf *out, int kind, uint64_t count)
{
    return weir_buf_printf(out, "%c%" PRIu64 "\r\n", kind, count);
}

static int write_line(weir_buf *out, int kind, weir_span text)
{
    uint8_t first = (uint8_t)kind;
    int err = weir_buf_write_bytes(out, &first, 1);

    if (err == 0)
        err = weir_buf_write_bytes(out, text.data, text.length);
    return err < 0 ? err : weir_buf_write_bytes(out, "\r\n", 2);
}

static int write_bulk(weir_buf *out, int kind, weir_span text)
{
    int err = write_count(out, kind, text.length);

    if (err == 0)
        err = weir_buf_write_bytes(out, text.data, text.length);
    return err < 0 ? err : weir_buf_write_bytes(out, "\r\n", 2);
}

static int write_double(weir_buf *out, double number, int version)
{
    char text[WEIR__RESP_NUMBER_MAX];
    weir_span span = weir_span_of(text, weir__resp_write_double(number, text));

    return version == 3 ? write_line(out, WEIR_RESP_DOUBLE, span)
                        : write_bulk(out, WEIR_RESP_BULK, span);
}

static int write_text(weir_buf *out, const weir_resp *value, int version)
{
    weir_span all = weir_buf_span(value->text);

    if (value->kind == WEIR_RESP_SIMPLE || value->kind == WEIR_RESP_ERROR)
        return write_line(out, (int)value->kind, all);
    if (version == 3 && value->kind == WEIR_RESP_BIG_NUMBER)
        return write_line(out, WEIR_RESP_BIG_NUMBER, all);
    if (version == 3)
        return write_bulk(out, (int)value->kind, all);
    return write_bulk(out, WEIR_RESP_BULK, weir_resp_text(value));
}

/* As in Redis, line ends in an error line become spaces. */
static int write_bulk_error(weir_buf *out, const weir_resp *value)
{
    size_t from = weir_buf_write_index(out) + 1, length = weir_resp_text(value).length;
    int err = write_line(out, WEIR_RESP_ERROR, weir_resp_text(value));
    weir_span written;

    if (err < 0)
        return err;
    (void)weir_buf_get_span(out, from, length, &written);
    for (size_t i = 0; i < length; i++)
        if (written.data[i] == '\r' || written.data[i] == '\n')
            (void)weir_buf_set_bytes(out, from + i, " ", 1);
    return 0;
}

static int write_aggregate(weir_buf *out, const weir_resp *value, int version)
{
    bool is_map = weir__resp_kind_is_map(value->kind);
    int err;

    if (is_map && value->count % 2 != 0)
        return -EINVAL;
    if (version == 3)
        err = write_count(out, (int)value->kind, value->count / (is_map ? 2 : 1));
    else
        err = write_count(out, WEIR_RESP_ARRAY, value->count);
    for (size_t i = 0; err == 0 && i < value->count; i++)
        err = weir_resp_write(value->elements[i], version, out);
    return err;
}

static int write_value(weir_buf *out, const weir_resp *value, int version)
{
    switch (value->kind) {
    case WEIR_RESP_NULL:
        return weir_buf_write_string(out, version == 3 ? "_\r\n" : "$-1\r\n");
    case WEIR_RESP_INTEGER:
        return weir_buf_printf(out, ":%" PRId64 "\r\n", value->integer);
    case WEIR_RESP_BOOLEAN:
        if (version == 3)
            return weir_buf_write_string(out, value->integer ? "#t\r\n" : "#f\r\n");
        return weir_buf_printf(out, ":%" PRId64 "\r\n", value->integer);
    case WEIR_RESP_DOUBLE:
        return write_double(out, value->number, version);
    case WEIR_RESP_BULK_ERROR:
        return version == 3 ? write_text(out, value, 3) : write_bulk_error(out, value);
    case WEIR_RESP_SIMPLE:
    case WEIR_RESP_ERROR:
    case WEIR_RESP_BIG_NUMBER:
    case WEIR_RESP_VERBATIM:
        return write_text(out, value, version);
    case WEIR_RESP_BULK:
        return value->is_header ? write_count(out, WEIR_RESP_BULK, value->length)
                                : write_text(out, value, version);
    case WEIR_RESP_ARRAY:
    case WEIR_RESP_MAP:
    case WEIR_RESP_SET:
    case WEIR_RESP_PUSH:
    case WEIR_RESP_ATTRIBUTE:
        return write_aggregate(out, value, version);
    }
    return -EINVAL;
}

int weir_resp_write(const weir_resp *value, int version, weir_buf *out)
{
    int err = version == 2 || version == 3 ? 0 : -EINVAL;

    if (err == 0 && version == 3 && value->attributes != NULL)
        err = write_value(out, value->attributes, 3);
    return err < 0 ? err : write_value(out, value, version);
}

int weir_resp_write_command(const weir_span *arguments, size_t count, weir_buf *out)
{
    int err = write_count(out, WEIR_RESP_ARRAY, count);

    for (size_t i = 0; err == 0 && i < count; i++)
        err = write_bulk(out, WEIR_RESP_BULK, arguments[i]);
    return err;
}
