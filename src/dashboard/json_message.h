/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket message that is a JSON object:
 *
 *      if (weir__json_message_begin(&json, "notice") < 0)
 *          return NULL;
 *      weir__json_put_text(&json, "text", text);
 *      return weir__json_message_end(&json);
 */
#ifndef WEIR_DASHBOARD_JSON_MESSAGE_H
#define WEIR_DASHBOARD_JSON_MESSAGE_H

#include <weir/websocket.h>

#include "protocol/http/json_writer.h"

/* Fails: -ENOMEM. */
int weir__json_message_begin(weir__json *json, const char *type);

/* NULL if something of it could not be written. Frees the buffer then. */
weir_ws_message *weir__json_message_end(weir__json *json);

/* A key and its value. */
void weir__json_put_text(weir__json *json, const char *key, const char *value);
void weir__json_put_int(weir__json *json, const char *key, int64_t value);
void weir__json_put_bool(weir__json *json, const char *key, bool value);

#endif
