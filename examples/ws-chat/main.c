/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chat rooms over WebSocket, for browsers, until SIGINT or SIGTERM. With --redis the rooms span all
 * processes that are connected to one Redis server.
 *     ws-chat [--redis 127.0.0.1:6379] [--deflate] [--port 8080]
 *             [--io auto|epoll|uring|poll|blocking] [--threads N] [--boss-threads N]
 *             [--tls] [--cert FILE] [--key FILE]
 *     ws-client 'ws://localhost:8080/rooms/kitchen?name=ann'
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/websocket.h>

#include "support/http.h"
#include "ws-chat/page.h"
#include "ws-chat/room.h"

static bool deflate;

/* ---- guests ---- */

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    const struct guest *guest = weir_attribute_get(channel, &guest_of);

    if (weir_ws_opened_of(event) != NULL && room_enter(channel) == 0)
        room_say(guest, "* ", weir_span_of_text(" has come"));
    if (weir_ws_closed_of(event) != NULL) /* the channel leaves the group by itself */
        room_say(guest, "* ", weir_span_of_text(" has gone"));
    weir_fire_event(ctx, event);
}

static void on_message(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    const struct guest *guest = weir_attribute_get(channel, &guest_of);
    weir_ws_message *message = weir_ws_message_of(msg);
    weir_span text = weir_ws_message_bytes(message);
    char line[TEXT_MAX + 3];

    if (weir_ws_message_type(message) != WEIR_WS_TEXT) {
        weir_ws_close(channel, WEIR_WS_UNSUPPORTED, "text only", NULL);
    } else {
        int length =
            snprintf(line, sizeof(line), ": %.*s", (int)text.length, (const char *)text.data);

        if (!room_say(guest, "", weir_span_of(line, (size_t)length)))
            weir_ws_write_text(ctx, "* too much is being said just now", NULL);
    }
    weir_msg_release(msg);
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx)); /* stop reading from a slow reader */
}

static const weir_handler chat = {
    .name = "chat",
    .event = on_event,
    .read = on_message,
    .writability = on_writability,
};

static int add_chat(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &chat, NULL);
}

/* ---- opening ---- */

/* Copies a word of printable UTF-8. */
static bool take_word(char word[WORD_MAX + 1], weir_span text)
{
    if (text.length == 0 || text.length > WORD_MAX || !weir_span_is_utf8(text))
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < ' ' || text.data[i] == 127)
            return false;
    }
    memcpy(word, text.data, text.length);
    word[text.length] = '\0';
    return true;
}

static void enter(weir_http_exchange *exchange, void *user_data)
{
    struct guest *guest = calloc(1, sizeof(*guest));

    (void)user_data;
    if (guest == NULL)
        return; /* answered with 500 */
    if (!take_word(guest->room, weir_http_exchange_parameter(exchange, "room")) ||
        !take_word(guest->name, weir_http_exchange_query(exchange, "name"))) {
        weir_http_respond_error(exchange, 400,
                                "expected /rooms/ROOM?name=NAME, 1 to 64 bytes each");
        free(guest);
    } else if (weir_attribute_set(weir_http_exchange_channel(exchange), &guest_of, guest) < 0) {
        free(guest);
    } else {
        (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_chat, .max_message = TEXT_MAX,
                                                       .deflate = deflate));
    }
}

static const weir_http_route routes[] = {WEIR_HTTP_ROUTE("GET", "/", show_page),
                                         WEIR_HTTP_ROUTE("GET", "/rooms/{room}", enter),
                                         WEIR_HTTP_ROUTES_END};

int main(int argc, char **argv)
{
    const char *redis = settings_take(&argc, argv, "--redis");
    struct settings settings;
    weir_group *group = NULL;
    int status = EXIT_FAILURE;
    int err = rooms_open();

    deflate = settings_take_switch(&argc, argv, "--deflate");
    settings = settings_read_tls(argc, argv, "0.0.0.0", 8080);
    if (!err && redis != NULL) {
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "redis"), &group);
        if (!err)
            err = rooms_connect(group, redis);
        if (err)
            fprintf(stderr, "ws-chat: cannot connect to Redis: %s (--redis ADDRESS:PORT)\n",
                    weir_error_text(err));
    }
    if (!err)
        status = serve_http(&settings, WEIR_HTTP_SERVER_OPTIONS(.routes = routes));
    rooms_close(group);
    return status;
}
