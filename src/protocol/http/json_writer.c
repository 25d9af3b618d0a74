/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/json_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void append(weir__json *json, const void *bytes, size_t length)
{
    if (json->err == 0)
        json->err = weir_buf_write_bytes(json->buf, bytes, length);
}

static void begin_value(weir__json *json)
{
    if (json->is_open)
        append(json, ",", 1);
    json->is_open = true;
}

void weir__json_open(weir__json *json, char bracket)
{
    begin_value(json);
    append(json, &bracket, 1);
    json->is_open = false;
}

void weir__json_close(weir__json *json, char bracket)
{
    append(json, &bracket, 1);
    json->is_open = true;
}

void weir__json_raw(weir__json *json, weir_span value)
{
    begin_value(json);
    append(json, value.data, value.length);
}

void weir__json_key(weir__json *json, const char *key)
{
    begin_value(json);
    append(json, "\"", 1);
    append(json, key, strlen(key));
    append(json, "\":", 2);
    json->is_open = false;
}

void weir__json_int(weir__json *json, int64_t value)
{
    char text[24];

    weir__json_raw(json,
                   weir_span_of(text, (size_t)snprintf(text, sizeof(text), "%" PRId64, value)));
}

void weir__json_bool(weir__json *json, bool value)
{
    weir__json_raw(json, weir_span_of_text(value ? "true" : "false"));
}

/* ---- texts ---- */

static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* The length of the UTF-8 character, of more than one byte, that a span begins with; 0 if none. */
static size_t character_length(weir_span span)
{
    for (size_t length = 2; length <= 4 && length <= span.length; length++)
        if (weir_span_is_utf8(weir_span_of(span.data, length)))
            return length;
    return 0;
}

static void append_escape(weir__json *json, uint8_t byte)
{
    char text[8];

    if (byte == '"' || byte == '\\')
        append(json, text, (size_t)snprintf(text, sizeof(text), "\\%c", byte));
    else if (byte < 0x80)
        append(json, text, (size_t)snprintf(text, sizeof(text), "\\u%04x", byte));
    else
        append(json, "\\ufffd", 6);
}

void weir__json_span(weir__json *json, weir_span text)
{
    size_t length;

    begin_value(json);
    append(json, "\"", 1);
    while (text.length > 0) {
        for (length = 0; length < text.length && is_plain(text.data[length]);)
            length++;
        if (length == 0 && text.data[0] >= 0x80)
            length = character_length(text);
        if (length == 0) {
            append_escape(json, text.data[0]);
            length = 1;
        } else {
            append(json, text.data, length);
        }
        text.data += length;
        text.length -= length;
    }
    append(json, "\"", 1);
}

void weir__json_text(weir__json *json, const char *text)
{
    weir__json_span(json, weir_span_of_text(text));
}

void weir__json_key_text(weir__json *json, const char *key)
{
    weir__json_text(json, key);
    append(json, ":", 1);
    json->is_open = false;
}
