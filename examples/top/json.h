/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of JSON that works in place: strings are unescaped where they are.
 *
 *      json_open(json, '[');
 *      while (json_next(json, ']'))
 *          sum += json_int(json);
 *
 * The first mistake sets `failed`; after it, loops end and values are empty.
 */
#ifndef EXAMPLES_TOP_JSON_H
#define EXAMPLES_TOP_JSON_H

#include <stdbool.h>
#include <stdint.h>

struct json {
    char *at;      /* NUL-terminated */
    bool is_first; /* of an array or an object */
    bool failed;
};

/* Begins an array or an object. */
void json_open(struct json *json, char bracket);

/* True if there is another element or member; otherwise reads the closing bracket. */
bool json_next(struct json *json, char bracket);

/* The key of a member. */
const char *json_key(struct json *json);

const char *json_text(struct json *json);
int64_t json_int(struct json *json);
double json_double(struct json *json);

/* Reads a value of any type. */
void json_skip(struct json *json);

#endif
