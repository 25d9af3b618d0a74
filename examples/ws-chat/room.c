/* SPDX-License-Identifier: Apache-2.0 */
#include "ws-chat/room.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/websocket.h>

#define PREFIX "weir-ws-chat:" /* of the channels in Redis */

const weir_attribute guest_of = {.name = "guest", .free = free};

static weir_channel_group *guests; /* in all rooms */
static weir_channel *redis;        /* NULL = this process only */
static _Atomic bool is_closing;

/* doc:begin broadcast */
/* Except slow readers: nothing is queued for them. */
static bool is_there(weir_channel *channel, void *room)
{
    const struct guest *guest = weir_attribute_get(channel, &guest_of);

    return weir_span_equal(weir_span_of_text(guest->room), *(const weir_span *)room) &&
           weir_channel_is_writable(channel);
}

/* Sends one message to all in a room, whatever loops they are on. Takes: text. */
static void deliver(weir_span room, weir_buf *text)
{
    weir_ws_message *message;

    if (weir_ws_message_create(WEIR_WS_TEXT, text, &message) == 0)
        weir_channel_group_write_and_flush(guests, weir_ws_message_msg(message), NULL, is_there,
                                           &room);
}
/* doc:end */

/* ---- Redis ---- */

/* ("pmessage", pattern, topic, text): from any process, this one included. */
static void on_push(weir_channel *channel, weir_resp *push, void *user_data)
{
    weir_resp *topic = weir_resp_at(push, 2), *text = weir_resp_at(push, 3);
    weir_span room;

    (void)channel;
    (void)user_data;
    if (text == NULL || !weir_resp_is(weir_resp_at(push, 0), "pmessage"))
        return;
    room = weir_resp_text(topic);
    deliver(weir_span_of(room.data + sizeof(PREFIX) - 1, room.length - (sizeof(PREFIX) - 1)),
            weir_buf_retain(weir_resp_buf(text)));
}

static int init_redis(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_redis_add(weir_channel_pipeline(channel), WEIR_REDIS_OPTIONS(.push = on_push));
}

/* Without Redis there are no rooms: exits, for a supervisor to restart. */
static void on_redis_closed(weir_promise *closed, void *user_data)
{
    (void)closed;
    (void)user_data;
    if (!is_closing) {
        fprintf(stderr, "ws-chat: the Redis server closed the connection\n");
        (void)kill(getpid(), SIGTERM);
    }
}

/* In version 3 of its protocol one connection is enough, to publish and to subscribe. */
int rooms_connect(weir_group *group, const char *address)
{
    weir_promise *hello = NULL, *subscribed = NULL, *closed;
    int err = weir_client_connect_sync(
        WEIR_CLIENT_OPTIONS(.group = group, .address = address, .init = init_redis), &redis);

    if (!err)
        err = weir_redis_call(redis, &hello, "HELLO", "3", NULL);
    if (!err)
        err = weir_redis_call(redis, &subscribed, "PSUBSCRIBE", PREFIX "*", NULL);
    if (!err)
        err = weir_promise_sync(hello, weir_seconds(10));
    if (!err)
        err = weir_promise_sync(subscribed, weir_seconds(10));
    weir_promise_release(hello);
    weir_promise_release(subscribed);
    if (err)
        return err;
    closed = weir_channel_closed(redis);
    return closed != NULL ? weir_promise_add_listener(closed, on_redis_closed, NULL) : -ENOMEM;
}

static bool publish(const char *room, weir_span text)
{
    char topic[sizeof(PREFIX) + WORD_MAX];
    int err;

    if (!weir_channel_is_writable(redis)) /* nothing is queued for Redis, either */
        return false;
    (void)snprintf(topic, sizeof(topic), PREFIX "%s", room);
    err = weir_redis_command(
        redis, (const weir_span[]){weir_span_of_text("PUBLISH"), weir_span_of_text(topic), text}, 3,
        NULL);
    if (err)
        weir_log_write(WEIR_LOG_WARN, "ws-chat", topic, "PUBLISH: %s", weir_error_text(err));
    return true;
}

/* ---- rooms ---- */

int rooms_open(void)
{
    return weir_channel_group_create(WEIR_CHANNEL_GROUP_OPTIONS(.name = "guests"), &guests);
}

void rooms_close(weir_group *group)
{
    is_closing = true;
    weir_group_release(group); /* waits: departures are published before it ends */
    weir_channel_release(redis);
    weir_channel_group_release(guests);
}

int room_enter(weir_channel *channel)
{
    return weir_channel_group_add(guests, channel);
}

bool room_say(const struct guest *guest, const char *prefix, weir_span text)
{
    char line[2 * WORD_MAX + TEXT_MAX];
    int length = snprintf(line, sizeof(line), "%s%s%.*s", prefix, guest->name, (int)text.length,
                          (const char *)text.data);
    weir_buf *buf;

    if (redis != NULL)
        return publish(guest->room, weir_span_of(line, (size_t)length));
    if (weir_buf_create_from(line, (size_t)length, &buf) == 0)
        deliver(weir_span_of_text(guest->room), buf);
    return true;
}
