/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis client against a Redis that dies and restarts without its data.
 *
 * Each connection uses keys of its own, so that the reply to every command is known before it is
 * sent. Each command completes exactly once, with that reply or with an error; replies come in the
 * order of the commands. Subscribers subscribe again after each loss; what a publisher sends
 * arrives in order and at most once, and arrives at all if it was published after the confirmation
 * on a connection that lasts.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define ADDRESS "10.0.0.1:6379"
#define CLIENTS 2
#define COMMANDS 24 /* of a client */
#define SLOTS 3     /* keys of a connection */
#define KEYS_MAX 128
#define SUBSCRIBERS_MAX 8
#define TEXT_MAX 64
#define PATIENCE_NS weir_seconds(2)

/* ---- the server: one thread, so its data needs no lock ---- */

struct entry {
    char key[TEXT_MAX], value[TEXT_MAX];
};

struct store {
    struct entry entries[KEYS_MAX];
    unsigned count;
    weir_channel *subscribers[SUBSCRIBERS_MAX];
    unsigned subscriber_count;
};

struct session {
    struct store *store;
    bool is_subscribed, is_resp3;
};

static struct entry *find(struct store *store, const char *key)
{
    for (unsigned i = 0; i < store->count; i++)
        if (strcmp(store->entries[i].key, key) == 0)
            return &store->entries[i];
    return NULL;
}

static struct entry *get_or_add(struct store *store, const char *key)
{
    struct entry *entry = find(store, key);

    if (entry == NULL) {
        if (store->count == KEYS_MAX) /* the oldest connections are gone */
            store->count = 0;
        entry = &store->entries[store->count++];
        (void)snprintf(entry->key, sizeof(entry->key), "%s", key);
        entry->value[0] = '\0';
    }
    return entry;
}

static int bulk(const char *text, weir_resp **ret_value)
{
    return weir_resp_create_text(WEIR_RESP_BULK, text, strlen(text), ret_value);
}

static int add_text(weir_resp *list, const char *text)
{
    weir_resp *value = NULL;
    int err = bulk(text, &value);

    return err < 0 ? err : weir_resp_add(list, value);
}

static int add_integer(weir_resp *list, int64_t integer)
{
    weir_resp *value = NULL;
    int err = weir_resp_create_integer(integer, &value);

    return err < 0 ? err : weir_resp_add(list, value);
}

/* (a, b, c) as a PUSH, which becomes an ARRAY in RESP2; c may be NULL: then it is `count`. */
static int push_of(const char *a, const char *b, const char *c, int64_t count,
                   weir_resp **ret_value)
{
    weir_resp *list = NULL;
    int err = weir_resp_create_aggregate(WEIR_RESP_PUSH, &list);

    if (err < 0)
        return err;
    err = add_text(list, a);
    if (err == 0)
        err = add_text(list, b);
    if (err == 0)
        err = c != NULL ? add_text(list, c) : add_integer(list, count);
    if (err < 0)
        weir_resp_release(list);
    else
        *ret_value = list;
    return err;
}

/* Each subscriber gets a message of its own: a value must not be changed after a write, and the
 * versions differ. One that cannot be notified loses its connection, as with the real Redis. */
static int publish(struct store *store, const char *channel, const char *text,
                   weir_resp **ret_reply)
{
    unsigned notified = 0;

    for (unsigned i = 0; i < store->subscriber_count; i++) {
        weir_channel *subscriber = store->subscribers[i];
        weir_resp *message = NULL;

        if (push_of("message", channel, text, 0, &message) < 0) {
            weir_channel_abort(subscriber, NULL);
        } else {
            weir_channel_write_and_flush(subscriber, weir_resp_msg(message), NULL);
            notified++;
        }
    }
    return weir_resp_create_integer(notified, ret_reply);
}

static int subscribe(weir_ctx *ctx, struct session *session, const char *channel,
                     weir_resp **ret_reply)
{
    struct store *store = session->store;
    int err = push_of("subscribe", channel, NULL, 1, ret_reply);

    if (err < 0)
        return err;
    if (!session->is_subscribed && store->subscriber_count == SUBSCRIBERS_MAX) {
        weir_resp_release(*ret_reply);
        return -ENOSPC;
    }
    if (!session->is_subscribed)
        store->subscribers[store->subscriber_count++] = weir_channel_retain(weir_ctx_channel(ctx));
    session->is_subscribed = true;
    return 0;
}

static int error_reply(const char *text, weir_resp **ret_reply)
{
    return weir_resp_create_text(WEIR_RESP_ERROR, text, strlen(text), ret_reply);
}

static int increment(struct store *store, const char *key, weir_resp **ret_reply)
{
    struct entry *entry = get_or_add(store, key);
    char *end;
    long number = strtol(entry->value, &end, 10);

    if (*end != '\0')
        return error_reply("ERR value is not an integer", ret_reply);
    (void)snprintf(entry->value, sizeof(entry->value), "%ld", number + 1);
    return weir_resp_create_integer(number + 1, ret_reply);
}

static int hello(weir_ctx *ctx, struct session *session, weir_resp **ret_reply)
{
    int err = weir_resp_create_aggregate(WEIR_RESP_MAP, ret_reply);

    if (err < 0)
        return err;
    err = add_text(*ret_reply, "proto");
    if (err == 0)
        err = add_integer(*ret_reply, 3);
    if (err == 0)
        err = weir_resp_codec_set_version(weir_ctx_pipeline(ctx), 3);
    if (err < 0)
        weir_resp_release(*ret_reply);
    session->is_resp3 = err == 0;
    return err;
}

static void copy_text(const weir_resp *value, char *text)
{
    weir_span bytes = value != NULL ? weir_resp_text(value) : weir_span_of("", 0);
    size_t length = bytes.length < TEXT_MAX ? bytes.length : TEXT_MAX - 1;

    memcpy(text, bytes.data, length);
    text[length] = '\0';
}

static int answer(weir_ctx *ctx, struct session *session, const weir_resp *command,
                  weir_resp **ret_reply)
{
    char name[TEXT_MAX], first[TEXT_MAX], second[TEXT_MAX];
    struct store *store = session->store;

    copy_text(weir_resp_at(command, 0), name);
    copy_text(weir_resp_at(command, 1), first);
    copy_text(weir_resp_at(command, 2), second);
    if (strcmp(name, "SET") == 0) {
        (void)snprintf(get_or_add(store, first)->value, TEXT_MAX, "%s", second);
        return weir_resp_create_text(WEIR_RESP_SIMPLE, "OK", 2, ret_reply);
    }
    if (strcmp(name, "GET") == 0) {
        const struct entry *entry = find(store, first);

        return entry != NULL ? bulk(entry->value, ret_reply) : weir_resp_create_null(ret_reply);
    }
    if (strcmp(name, "INCR") == 0)
        return increment(store, first, ret_reply);
    if (strcmp(name, "ECHO") == 0)
        return bulk(first, ret_reply);
    if (strcmp(name, "PUBLISH") == 0)
        return publish(store, first, second, ret_reply);
    if (strcmp(name, "SUBSCRIBE") == 0)
        return subscribe(ctx, session, first, ret_reply);
    if (strcmp(name, "HELLO") == 0)
        return hello(ctx, session, ret_reply);
    return error_reply("ERR unknown command", ret_reply);
}

static void server_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_resp *command = weir_resp_of(msg), *reply = NULL;

    if (answer(ctx, weir_ctx_state(ctx), command, &reply) < 0)
        weir_channel_abort(weir_ctx_channel(ctx), NULL); /* later replies must not take its place */
    else
        weir_write(ctx, weir_resp_msg(reply), NULL);
    weir_msg_release(msg);
}

static void server_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void server_inactive(weir_ctx *ctx)
{
    const struct session *session = weir_ctx_state(ctx);
    struct store *store = session->store;

    for (unsigned i = 0; i < store->subscriber_count; i++) {
        if (store->subscribers[i] != weir_ctx_channel(ctx))
            continue;
        weir_channel_release(store->subscribers[i]);
        store->subscribers[i] = store->subscribers[--store->subscriber_count];
        break;
    }
    weir_fire_inactive(ctx);
}

/* A reply that could not be written is missing in the stream. */
static void server_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static const weir_handler server_handler = {
    .name = "server",
    .state_size = sizeof(struct session),
    .read = server_read,
    .read_complete = server_read_complete,
    .inactive = server_inactive,
    .error = server_error,
};

static int init_session(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = sim_watch(pipeline);

    if (err == 0)
        err = weir_resp_codec_add(pipeline, NULL);
    if (err == 0)
        err = weir_pipeline_add_last(pipeline, &server_handler, NULL);
    if (err < 0)
        return err;
    ((struct session *)weir_ctx_state(weir_pipeline_find(pipeline, "server")))->store = user_data;
    return 0;
}

/* Starting may fail while faults happen. */
static int server_main(void *arg)
{
    int err, tries = 0;

    (void)arg;
    do {
        struct store store = {.count = 0};

        if (tries > 0)
            weir_sim_sleep(weir_ms(20));
        err = sim_serve(ADDRESS, 1, init_session, &store);
    } while (err < 0 && !weir_sim_is_dying() && ++tries < 100);
    return err;
}

/* ---- the clients ---- */

enum { OUTCOME_NONE, OUTCOME_REPLY, OUTCOME_ERROR };

struct world {
    unsigned connections;
    unsigned client_connections; /* open ones have replies to check */
    unsigned commands, replies;
    unsigned published;
    bool subscriber_stops;
    unsigned expected;  /* the final message, if not 0 */
    unsigned confirmed; /* subscriptions */
    bool has_final;
};

static struct world world;

/* Lives as long as its client: a reply may be delivered after the connection was given up. */
struct connection {
    struct connection *next;
    unsigned number;
    weir_channel *channel;
    unsigned sent;            /* commands */
    unsigned last;            /* that completed with a reply */
    bool has_failed;          /* a command; what the server has is uncertain from there on */
    unsigned versions[SLOTS]; /* last ones set */
    unsigned counter;
};

struct command {
    struct connection *connection;
    unsigned order;
    int outcome;
    char name[12], key[TEXT_MAX], value[TEXT_MAX];
    char expected[TEXT_MAX]; /* "" = null */
};

struct client {
    unsigned number;
    weir_group *group;
    struct connection *connections;
    struct command commands[COMMANDS + 1];
    unsigned count;
};

static const char *reply_text(const weir_promise *reply, char *text)
{
    const weir_resp *value = weir_promise_value(reply);

    if (weir_promise_result(reply) < 0)
        (void)snprintf(text, TEXT_MAX, "%s", weir_promise_detail(reply));
    else if (weir_resp_kind(value) == WEIR_RESP_INTEGER)
        (void)snprintf(text, TEXT_MAX, "%lld", (long long)weir_resp_integer(value));
    else if (weir_resp_kind(value) == WEIR_RESP_MAP)
        (void)snprintf(text, TEXT_MAX, "map");
    else
        copy_text(value, text);
    return text;
}

/* After a command has failed, the server may have executed it or not. */
static bool is_plausible(const struct command *command, const char *text)
{
    bool is_number = text[strspn(text, "0123456789")] == '\0';

    if (strcmp(command->name, "GET") == 0)
        return is_number || strncmp(text, command->key, strlen(command->key)) == 0;
    return strcmp(command->name, "INCR") == 0 && (is_number || strncmp(text, "ERR", 3) == 0);
}

static void on_reply(weir_promise *reply, void *user_data)
{
    struct command *command = user_data;
    struct connection *connection = command->connection;
    weir_sim *sim = weir_sim_current();
    int err = weir_promise_result(reply);
    char text[TEXT_MAX];

    if (command->outcome != OUTCOME_NONE)
        weir_sim_fail(sim, "command %u of connection %u completed twice", command->order,
                      connection->number);
    command->outcome = err < 0 && err != WEIR_EREPLY ? OUTCOME_ERROR : OUTCOME_REPLY;
    weir_sim_note(sim, "%s %s of %u: %s", command->name, command->key, connection->number,
                  reply_text(reply, text));
    if (command->outcome == OUTCOME_ERROR) {
        connection->has_failed = true;
        return;
    }
    world.replies++;
    if (command->order <= connection->last)
        weir_sim_fail(sim, "reply %u overtook reply %u", connection->last, command->order);
    connection->last = command->order;
    if (err == WEIR_EREPLY && strcmp(text, weir_error_text(err)) == 0) /* no memory for its text */
        (void)snprintf(text, sizeof(text), "ERR value is not an integer");
    if (strcmp(command->name, "PUBLISH") == 0 || strcmp(text, command->expected) == 0 ||
        (connection->has_failed && is_plausible(command, text)))
        return;
    weir_sim_fail(sim, "%s %s on connection %u: \"%s\" instead of \"%s\"", command->name,
                  command->key, connection->number, text, command->expected);
}

static unsigned draw(unsigned limit)
{
    return (unsigned)weir_sim_random(weir_sim_current(), limit);
}

/* Fills a command in, and what its reply will be. */
static void prepare(struct connection *connection, struct command *command)
{
    unsigned slot = draw(SLOTS), kind = draw(8);

    *command = (struct command){.connection = connection, .order = ++connection->sent};
    (void)snprintf(command->key, TEXT_MAX, "k%u.%u", connection->number, slot);
    if (kind <= 2) {
        (void)strcpy(command->name, "SET");
        (void)snprintf(command->value, TEXT_MAX, "k%u.%u=%u", connection->number, slot,
                       ++connection->versions[slot]);
        (void)strcpy(command->expected, "OK");
    } else if (kind <= 4) {
        (void)strcpy(command->name, "GET");
        if (connection->versions[slot] > 0)
            (void)snprintf(command->expected, TEXT_MAX, "k%u.%u=%u", connection->number, slot,
                           connection->versions[slot]);
    } else if (kind == 5 && connection->versions[slot] > 0) {
        (void)strcpy(command->name, "INCR"); /* of a text */
        (void)strcpy(command->expected, "ERR value is not an integer");
    } else if (kind <= 6) {
        (void)strcpy(command->name, "INCR");
        (void)snprintf(command->key, TEXT_MAX, "n%u", connection->number);
        (void)snprintf(command->expected, TEXT_MAX, "%u", ++connection->counter);
    } else {
        (void)strcpy(command->name, "PUBLISH");
        (void)strcpy(command->key, "news");
        (void)snprintf(command->value, TEXT_MAX, "%u", ++world.published);
    }
}

static int send_command(struct connection *connection, struct command *command,
                        weir_promise **ret_reply)
{
    weir_span arguments[3] = {weir_span_of_text(command->name), weir_span_of_text(command->key),
                              weir_span_of_text(command->value)};
    int err = weir_redis_command(connection->channel, arguments, command->value[0] != '\0' ? 3 : 2,
                                 ret_reply);

    world.commands++;
    if (err == 0) {
        err = weir_promise_add_listener(*ret_reply, on_reply, command);
        if (err < 0)
            (void)weir_promise_await(*ret_reply, WEIR_NEVER);
    }
    if (err < 0) {
        command->outcome = OUTCOME_ERROR;
        connection->has_failed = true;
    }
    return err;
}

static int init_client(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_redis_add(weir_channel_pipeline(channel), NULL);
}

static struct connection *open_connection(struct client *client)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    int err = -ENOMEM;

    if (connection != NULL)
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = client->group, .address = ADDRESS, .init = init_client),
            &connection->channel);
    if (err < 0) {
        free(connection);
        return NULL;
    }
    connection->number = ++world.connections;
    connection->next = client->connections;
    client->connections = connection;
    return connection;
}

/* The first command of some connections switches to RESP3. */
static void switch_version(struct client *client, struct connection *connection)
{
    struct command *command = &client->commands[client->count++];
    weir_promise *reply = NULL;

    *command = (struct command){.connection = connection, .order = ++connection->sent};
    (void)strcpy(command->name, "HELLO");
    (void)strcpy(command->key, "3");
    (void)strcpy(command->expected, "map");
    (void)send_command(connection, command, &reply);
    weir_promise_release(reply);
}

/* A server that vanished, and whose reset was lost, never answers. */
static void await_reply(weir_channel *channel, weir_promise *reply)
{
    if (weir_promise_await(reply, PATIENCE_NS) == -ETIMEDOUT) {
        weir_channel_abort(channel, NULL);
        (void)weir_promise_await(reply, WEIR_NEVER);
    }
}

/* Commands without waiting, some of them cancelled; then the last reply is awaited. */
static int send_batch(struct client *client, struct connection *connection)
{
    unsigned count = 1 + draw(8);
    weir_promise *last = NULL;
    int err = 0;

    while (count-- > 0 && client->count < COMMANDS && err == 0) {
        struct command *command = &client->commands[client->count++];
        weir_promise *reply = NULL;

        prepare(connection, command);
        if (command->name[0] == 'P' && draw(2) == 0) { /* harmless if it is not executed */
            err = send_command(connection, command, &reply);
            if (err == 0 && weir_promise_cancel(reply) == 0)
                weir_sim_note(weir_sim_current(), "cancelled");
        } else {
            err = send_command(connection, command, &reply);
        }
        weir_promise_release(last);
        last = reply;
    }
    if (last != NULL)
        await_reply(connection->channel, last);
    weir_promise_release(last);
    return err;
}

static void talk(struct client *client, struct connection *connection)
{
    if (draw(3) == 0 && client->count < COMMANDS)
        switch_version(client, connection);
    while (client->count < COMMANDS && weir_channel_is_open(connection->channel) &&
           send_batch(client, connection) == 0 && draw(12) != 0)
        if (draw(2) == 0)
            weir_sim_sleep((int64_t)draw((unsigned)weir_ms(5)));
    if (draw(2) == 0)
        weir_channel_close(connection->channel, NULL);
    else
        weir_channel_abort(connection->channel, NULL);
    weir_channel_release(connection->channel);
    connection->channel = NULL;
}

static void end_client(struct client *client)
{
    sim_end_group(client->group);
    for (unsigned i = 0; i < client->count; i++)
        if (client->commands[i].outcome == OUTCOME_NONE)
            weir_sim_fail(weir_sim_current(), "%s %s of connection %u never completed",
                          client->commands[i].name, client->commands[i].key,
                          client->commands[i].connection->number);
    while (client->connections != NULL) {
        struct connection *connection = client->connections;

        client->connections = connection->next;
        free(connection);
    }
    free(client);
}

static int create_group(const char *name, weir_group **ret_group)
{
    int err;

    for (int tries = 0; tries < 100; tries++) {
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = name, .threads = 1), ret_group);
        if (err == 0)
            break;
        weir_sim_sleep(weir_ms(10));
    }
    return err;
}

static int client_main(void *arg)
{
    struct client *client = calloc(1, sizeof(*client));
    int err;

    (void)arg;
    if (client == NULL)
        return -ENOMEM;
    err = create_group("client", &client->group);
    for (int tries = 0; err == 0 && client->count < COMMANDS && tries < 40; tries++) {
        struct connection *connection = open_connection(client);

        if (connection != NULL)
            talk(client, connection);
        else
            weir_sim_sleep(weir_ms(20));
    }
    end_client(client);
    return err;
}

/* ---- the subscriber ---- */

struct subscriber {
    unsigned last; /* message of this connection */
    bool is_confirmed;
};

static void on_push(weir_channel *channel, weir_resp *push, void *user_data)
{
    struct subscriber *subscriber = user_data;
    unsigned number = (unsigned)weir_resp_integer(weir_resp_at(push, 2));

    (void)channel;
    if (!weir_resp_is(weir_resp_at(push, 0), "message") ||
        !weir_resp_is(weir_resp_at(push, 1), "news"))
        weir_sim_fail(weir_sim_current(), "a push that is not a message of the channel");
    if (number == 0 || number > world.published)
        weir_sim_fail(weir_sim_current(), "message %u was never published", number);
    subscriber->last = number;
    if (number == world.expected)
        world.has_final = true;
}

static int init_subscriber(weir_channel *channel, void *user_data)
{
    return weir_redis_add(weir_channel_pipeline(channel),
                          WEIR_REDIS_OPTIONS(.push = on_push, .user_data = user_data));
}

/* Listens until the connection is lost or the subscriber stops. Notices a server that vanished. */
static void listen_to(weir_channel *channel)
{
    int err = 0;

    for (unsigned i = 1; err == 0 && !world.subscriber_stops; i++) {
        weir_promise *reply = NULL;

        if (weir_channel_await_closed(channel, weir_ms(20)) != -ETIMEDOUT)
            break;
        if (i % 8 != 0)
            continue;
        err = weir_redis_call(channel, &reply, "ECHO", "alive", NULL);
        if (err == 0)
            err = weir_promise_sync(reply, PATIENCE_NS);
        if (err == 0 && !weir_resp_is(weir_promise_value(reply), "alive"))
            weir_sim_fail(weir_sim_current(), "another reply than that to ECHO");
        weir_promise_release(reply);
    }
}

static void listen_once(weir_group *group, bool is_resp3)
{
    struct subscriber subscriber = {.last = 0};
    weir_channel *channel = NULL;
    weir_promise *reply = NULL;
    int err = weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = group, .address = ADDRESS,
                                                           .init = init_subscriber,
                                                           .user_data = &subscriber),
                                       &channel);

    if (err == 0 && is_resp3)
        err = weir_redis_call(channel, NULL, "HELLO", "3", NULL);
    if (err == 0)
        err = weir_redis_call(channel, &reply, "SUBSCRIBE", "news", NULL);
    if (err == 0)
        err = weir_promise_sync(reply, PATIENCE_NS);
    weir_promise_release(reply);
    if (err == 0) {
        world.confirmed++;
        listen_to(channel);
        world.confirmed--;
    }
    if (channel != NULL) {
        weir_channel_close(channel, NULL);
        (void)weir_channel_await_closed(channel, WEIR_NEVER); /* `subscriber` was lent to it */
        weir_channel_release(channel);
    }
}

static int subscriber_main(void *arg)
{
    weir_group *group = NULL;
    int err = create_group("sub", &group);

    while (err == 0 && !world.subscriber_stops) {
        listen_once(group, arg != NULL);
        if (!world.subscriber_stops)
            weir_sim_sleep(weir_ms(10));
    }
    sim_end_group(group);
    return err;
}

/* ---- the end: without faults everything works again ---- */

static int publish_last(struct client *client)
{
    struct connection *connection = NULL;
    weir_promise *reply = NULL;
    struct command *command = &client->commands[client->count++];
    int err;

    while (world.confirmed == 0)
        weir_sim_sleep(weir_ms(10));
    for (int tries = 0; connection == NULL && tries < 100; tries++) {
        connection = open_connection(client);
        if (connection == NULL)
            weir_sim_sleep(weir_ms(100));
    }
    if (connection == NULL)
        return -ENOTCONN;
    *command = (struct command){.connection = connection, .order = ++connection->sent};
    (void)strcpy(command->name, "PUBLISH");
    (void)strcpy(command->key, "news");
    (void)snprintf(command->value, TEXT_MAX, "%u", ++world.published);
    world.expected = world.published;
    err = send_command(connection, command, &reply);
    if (err == 0)
        err = weir_promise_sync(reply, weir_seconds(10));
    if (err == 0 && weir_resp_integer(weir_promise_value(reply)) == 0)
        err = -EAGAIN; /* the connection of the subscriber was lost, and it has not noticed yet */
    weir_promise_release(reply);
    weir_channel_close(connection->channel, NULL);
    weir_channel_release(connection->channel);
    for (int waits = 0; err == 0 && !world.has_final; waits++) {
        weir_sim_sleep(weir_ms(10));
        if (waits > 100)
            err = -EAGAIN;
    }
    return err;
}

static int final_main(void *arg)
{
    struct client *client = calloc(1, sizeof(*client));
    int err;

    (void)arg;
    if (client == NULL)
        return -ENOMEM;
    err = create_group("last", &client->group);
    for (int tries = 0; err == 0 && !world.has_final && tries < 10; tries++) {
        if (tries > 0)
            weir_sim_sleep(weir_ms(100));
        err = publish_last(client) == -EAGAIN || world.has_final ? 0 : -EIO;
    }
    if (!world.has_final)
        weir_sim_fail(weir_sim_current(), "the last message did not reach the subscriber");
    end_client(client);
    return err;
}

/* ---- the world ---- */

static int start_all(weir_sim *sim, weir_sim_process **server, weir_sim_process **clients,
                     weir_sim_process **subscriber, weir_sim_host **ret_host)
{
    weir_sim_host *hosts[CLIENTS + 2] = {0};
    int err = sim_create_hosts(sim, hosts, CLIENTS + 2);
    if (err == 0)
        err = weir_sim_start(hosts[0], "redis", server_main, NULL, server);
    if (err < 0)
        return err;
    weir_sim_restart(*server, weir_ms(10) + (int64_t)draw((unsigned)weir_ms(40)));
    for (unsigned i = 0; i < CLIENTS && err == 0; i++)
        err = weir_sim_start(hosts[i + 1], "client", client_main, NULL, &clients[i]);
    if (err == 0)
        err = weir_sim_start(hosts[CLIENTS + 1], "subscriber", subscriber_main,
                             draw(2) == 0 ? &world : NULL, subscriber);
    *ret_host = hosts[1];
    return err;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_process *server, *clients[CLIENTS], *subscriber, *final;
    weir_sim_host *host;
    int err;

    (void)arg;
    world = (struct world){.connections = 0};
    err = start_all(sim, &server, clients, &subscriber, &host);
    for (unsigned kills = draw(4); kills > 0 && err == 0; kills--) {
        weir_sim_sleep((int64_t)draw((unsigned)weir_ms(30)));
        weir_sim_kill(server);
    }
    for (unsigned i = 0; i < CLIENTS && err == 0; i++)
        err = weir_sim_join(clients[i]);
    if (err < 0)
        return err;
    weir_sim_calm(sim, true);
    err = weir_sim_start(host, "final", final_main, NULL, &final);
    if (err == 0)
        err = weir_sim_join(final);
    world.subscriber_stops = true;
    if (err == 0)
        err = weir_sim_join(subscriber);
    weir_sim_signal(server, SIGTERM);
    return err == 0 ? weir_sim_join(server) : err;
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed, SIM_TCP_KINDS, options);
    options->max_outage_ns = weir_ms(500);
}

SIM_PROGRAM(redis, "the Redis client against a Redis that dies and restarts", configure, run)
