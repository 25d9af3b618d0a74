/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON to a buffer:
 *
 *      weir__json json = {buf};
 *
 *      weir__json_open(&json, '{');
 *      weir__json_key(&json, "name");
 *      weir__json_text(&json, name);
 *      weir__json_close(&json, '}');
 *      return json.err;
 *
 * Commas are added where they are needed. After a failure nothing more is written.
 */
#ifndef WEIR_PROTOCOL_HTTP_JSON_WRITER_H
#define WEIR_PROTOCOL_HTTP_JSON_WRITER_H

#include <weir/buf.h>

/* Initialize with the buffer. */
typedef struct weir__json {
    weir_buf *buf; /* borrowed */
    int err;       /* -ENOMEM, or 0 */
    bool is_open;  /* the next value follows another one: needs a comma */
} weir__json;

/* Begin and end an object, '{' and '}', or an array, '[' and ']'. */
void weir__json_open(weir__json *json, char bracket);
void weir__json_close(weir__json *json, char bracket);

/* The key of the next value, which is not escaped. */
void weir__json_key(weir__json *json, const char *key);

/* The same, escaped. */
void weir__json_key_text(weir__json *json, const char *key);

/* Values. Bytes of a text that are not UTF-8 are written as U+FFFD. */
void weir__json_text(weir__json *json, const char *text);
void weir__json_span(weir__json *json, weir_span text);
void weir__json_int(weir__json *json, int64_t value);
void weir__json_bool(weir__json *json, bool value);
void weir__json_raw(weir__json *json, weir_span value); /* JSON */

#endif
