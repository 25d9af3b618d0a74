/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/json_message.h"

#define INITIAL_SIZE 512
#define MAX_SIZE ((size_t)16 << 20)

void weir__json_put_text(weir__json *json, const char *key, const char *value)
{
    weir__json_key(json, key);
    weir__json_text(json, value);
}

void weir__json_put_int(weir__json *json, const char *key, int64_t value)
{
    weir__json_key(json, key);
    weir__json_int(json, value);
}

void weir__json_put_bool(weir__json *json, const char *key, bool value)
{
    weir__json_key(json, key);
    weir__json_bool(json, value);
}

int weir__json_message_begin(weir__json *json, const char *type)
{
    int err;

    *json = (weir__json){NULL};
    err = weir_buf_create(INITIAL_SIZE, MAX_SIZE, &json->buf);
    if (err < 0)
        return err;
    weir__json_open(json, '{');
    weir__json_put_text(json, "type", type);
    return 0;
}

weir_ws_message *weir__json_message_end(weir__json *json)
{
    weir_ws_message *message = NULL;

    weir__json_close(json, '}');
    if (json->err < 0) {
        weir_buf_release(json->buf);
        return NULL;
    }
    return weir_ws_message_create(WEIR_WS_TEXT, json->buf, &message) == 0 ? message : NULL;
}
