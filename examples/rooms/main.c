/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chat rooms for telnet or nc that span all processes connected to one Redis server: a line is
 * published there, and each process sends it to its clients in that room.
 *     rooms [--redis 127.0.0.1:6379] [--port 8024] [--io auto|epoll|uring|poll] [--threads N]
 *           [--boss-threads N] [--tls] [--cert FILE] [--key FILE]
 *
 * The first line is a name and a room: "ann kitchen"; /quit leaves.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

#include "support/settings.h"

#define WORD_MAX 20
#define LINE_MAX_LENGTH 1000
#define PREFIX "weir-rooms:" /* of the channels in Redis */

struct guest {
    char name[WORD_MAX + 1];
    char topic[sizeof(PREFIX) + WORD_MAX]; /* the room's channel in Redis; "" = none yet */
};

static weir_channel_group *guests;
static weir_channel *redis;
static _Atomic bool is_closing;

/* Set once, so that Redis' loop may read it. */
static const weir_attribute topic_of = {.name = "topic", .free = free};

static void tell(weir_ctx *ctx, const char *text)
{
    weir_buf *buf;

    if (weir_buf_create_from(text, strlen(text), &buf) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

/* ---- Redis ---- */

/* doc:begin push */
/* Except slow readers: nothing is queued for them. */
static bool is_there(weir_channel *channel, void *topic)
{
    weir_span room = weir_span_of_text(weir_attribute_get(channel, &topic_of));

    return weir_span_equal(room, weir_resp_text(topic)) && weir_channel_is_writable(channel);
}

/* ("pmessage", pattern, topic, text): from any process, this one included. */
static void on_push(weir_channel *channel, weir_resp *push, void *user_data)
{
    weir_resp *topic = weir_resp_at(push, 2), *text = weir_resp_at(push, 3);

    (void)channel;
    (void)user_data;
    if (text != NULL && weir_resp_is(weir_resp_at(push, 0), "pmessage"))
        weir_channel_group_write_and_flush(
            guests, weir_buf_msg(weir_buf_retain(weir_resp_buf(text))), NULL, is_there, topic);
}

static int init_redis(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_redis_add(weir_channel_pipeline(channel), WEIR_REDIS_OPTIONS(.push = on_push));
}
/* doc:end */

/* Without Redis there are no rooms: exits, for a supervisor to restart. */
static void on_redis_closed(weir_promise *closed, void *user_data)
{
    (void)closed;
    (void)user_data;
    if (!is_closing) {
        fprintf(stderr, "rooms: the Redis server closed the connection\n");
        (void)kill(getpid(), SIGTERM);
    }
}

/* doc:begin subscribe */
/* In version 3 of its protocol one connection is enough, to publish and to subscribe. */
static int connect_redis(weir_group *group, const char *address)
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
/* doc:end */

/* doc:begin publish */
static void say(const struct guest *guest, const char *mark, const char *does, const char *line)
{
    char text[WORD_MAX + LINE_MAX_LENGTH + 20];
    int err;

    (void)snprintf(text, sizeof(text), "%s%s%s%s\n", mark, guest->name, does, line);
    err = weir_redis_call(redis, NULL, "PUBLISH", guest->topic, text, NULL);
    if (err)
        weir_log_write(WEIR_LOG_WARN, "rooms", guest->topic, "PUBLISH: %s", weir_error_text(err));
}
/* doc:end */

/* ---- guests ---- */

static void come_in(weir_ctx *ctx, struct guest *guest, const char *line)
{
    char room[WORD_MAX + 1], rest;
    char *topic;

    if (sscanf(line, "%20s %20s %c", guest->name, room, &rest) != 2) {
        tell(ctx, "* your name and a room, in one word each, please\n");
        return;
    }
    (void)snprintf(guest->topic, sizeof(guest->topic), PREFIX "%s", room);
    topic = strdup(guest->topic);
    if (topic == NULL || weir_attribute_set(weir_ctx_channel(ctx), &topic_of, topic) < 0) {
        free(topic);
        weir_close(ctx, NULL);
    } else if (weir_channel_group_add(guests, weir_ctx_channel(ctx)) < 0) {
        weir_close(ctx, NULL);
    } else {
        say(guest, "* ", " has come", "");
    }
}

static void on_line(weir_ctx *ctx, weir_msg *msg)
{
    struct guest *guest = weir_ctx_state(ctx);
    char line[LINE_MAX_LENGTH + 1];

    if (weir_buf_read_string(weir_buf_of(msg), weir_msg_size(msg), line, sizeof(line)) < 0)
        line[0] = '\0';
    weir_msg_release(msg);
    if (strcmp(line, "/quit") == 0)
        weir_close(ctx, NULL);
    else if (guest->topic[0] == '\0')
        come_in(ctx, guest, line);
    else if (!weir_channel_is_writable(redis)) /* nothing is queued for Redis, either */
        tell(ctx, "* too much is being said just now\n");
    else if (line[0] != '\0')
        say(guest, "", ": ", line);
}

static void on_active(weir_ctx *ctx)
{
    tell(ctx, "* your name and a room?\n");
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx)); /* stop reading from a slow reader */
}

static void on_inactive(weir_ctx *ctx)
{
    const struct guest *guest = weir_ctx_state(ctx);

    if (guest->topic[0] != '\0')
        say(guest, "* ", " has gone", "");
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    if (err == WEIR_ETOOLONG)
        tell(ctx, "* that was too long for a line\n");
    else
        weir_fire_error(ctx, err, detail); /* the tail closes the channel */
}

static const weir_handler room = {
    .name = "room",
    .state_size = sizeof(struct guest),
    .active = on_active,
    .read = on_line,
    .writability = on_writability,
    .inactive = on_inactive,
    .error = on_error,
};

static int init_child(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_lines_add(pipeline, WEIR_LINES_OPTIONS(.max_length = LINE_MAX_LENGTH));

    (void)user_data;
    return err ? err : weir_pipeline_add_last(pipeline, &room, NULL);
}

int main(int argc, char **argv)
{
    const char *address = settings_take(&argc, argv, "--redis");
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8024);
    weir_group *group = NULL;
    int result = EXIT_FAILURE;
    int err = weir_channel_group_create(WEIR_CHANNEL_GROUP_OPTIONS(.name = "rooms"), &guests);

    if (!err)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = settings.io), &group);
    if (!err)
        err = connect_redis(group, address ? address : "127.0.0.1:6379");
    if (err)
        fprintf(stderr, "rooms: cannot connect to Redis: %s (--redis ADDRESS:PORT)\n",
                weir_error_text(err));
    else
        result = serve(&settings, init_child);
    is_closing = true;
    weir_group_release(group); /* waits: departures are published before it ends */
    weir_channel_release(redis);
    weir_channel_group_release(guests);
    return result;
}
