/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/programs/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_SIZE 16
#define RETRY_NS weir_ms(20)

bool load_retries(int err)
{
    if (err != -ENOMEM && err != -EMFILE)
        return false;
    weir_sim_sleep(weir_ms(1));
    return true;
}

int load_group(const char *name, int threads, weir_group **ret_group)
{
    int err;

    do {
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = name, .threads = threads), ret_group);
    } while (load_retries(err));
    return err;
}

/* ---- messages ---- */

static size_t answer_size(const struct load *load, unsigned id)
{
    uint32_t mixed = (id + 1) * UINT32_C(2654435761);

    return 8 + (mixed >> 8) % load->max_answer;
}

static uint8_t byte_of(unsigned id, size_t position)
{
    return (uint8_t)(id * 31 + position * 131 + (position >> 8));
}

static int make_message(unsigned id, size_t length, weir_msg **ret_msg)
{
    uint8_t bytes[256];
    weir_buf *buf;
    int err = weir_buf_create(length, 0, &buf);

    if (err < 0)
        return err;
    (void)weir_buf_write_u64(buf, id);
    for (size_t i = 8; i < length; i += sizeof(bytes)) {
        size_t count = length - i < sizeof(bytes) ? length - i : sizeof(bytes);

        for (size_t j = 0; j < count; j++)
            bytes[j] = byte_of(id, i + j);
        (void)weir_buf_write_bytes(buf, bytes, count);
    }
    *ret_msg = weir_buf_msg(buf);
    return 0;
}

/* Reads and checks a message, and releases it. */
static unsigned take_message(struct load *load, weir_msg *msg, bool is_answer)
{
    weir_buf *buf = weir_buf_of(msg);
    size_t length = weir_buf_readable(buf);
    const uint8_t *bytes = weir_buf_bytes(buf);
    uint64_t id = UINT64_MAX;

    (void)weir_buf_read_u64(buf, &id);
    if (id >= LOAD_CLIENTS_MAX * LOAD_REQUESTS_MAX) {
        weir_sim_fail(load->sim, "a message with the id %llu", (unsigned long long)id);
        id = 0;
    }
    if (length != (is_answer ? answer_size(load, (unsigned)id) : REQUEST_SIZE))
        weir_sim_fail(load->sim, "%s %u has %zu bytes", is_answer ? "answer" : "request",
                      (unsigned)id, length);
    for (size_t i = 8; i < length; i++)
        if (bytes[i] != byte_of((unsigned)id, i))
            weir_sim_fail(load->sim, "a wrong byte %zu in message %u", i, (unsigned)id);
    weir_msg_release(msg);
    return (unsigned)id;
}

/* ---- the server ---- */

struct answerer {
    struct load *load;
    unsigned server;
    unsigned busy; /* answers that are being made */
    bool draining;
    bool closing;
};

struct job {
    weir_ctx *ctx; /* retained, or NULL if offloaded */
    unsigned id;
    struct load *load;
    unsigned server;
};

static void end_if_drained(weir_ctx *ctx, struct answerer *self)
{
    if (!self->draining || self->closing || self->busy > 0)
        return;
    self->closing = true;
    weir_close(ctx, NULL);
}

static void answer(weir_ctx *ctx, unsigned id)
{
    struct answerer *self = weir_ctx_state(ctx);
    weir_msg *msg;

    self->busy--;
    if (make_message(id, answer_size(self->load, id), &msg) < 0) {
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
        return;
    }
    self->load->seen[id].answers[self->server]++;
    weir_write_and_flush(ctx, msg, NULL);
    end_if_drained(ctx, self);
}

/* On the loop, after a delay. */
static void on_delay(void *arg, int status)
{
    struct job *job = arg;

    if (status == 0 && !weir_ctx_is_removed(job->ctx))
        answer(job->ctx, job->id);
    weir_ctx_release(job->ctx);
    free(job);
}

static void *offloaded(void *arg)
{
    struct job *job = arg;

    weir_sim_sleep((int64_t)weir_sim_random(job->load->sim, (uint64_t)job->load->max_work_ns));
    return NULL;
}

static void on_offloaded(weir_ctx *ctx, int err, void *result, void *arg)
{
    struct job *job = arg;

    (void)result;
    if (ctx != NULL && err == 0)
        answer(ctx, job->id);
    else if (ctx != NULL)
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
    free(job);
}

/* Answers at once, after a delay, or after work on another executor. */
static int begin_answer(weir_ctx *ctx, struct answerer *self, unsigned id)
{
    struct load *load = self->load;
    uint64_t way = load->max_work_ns > 0 ? weir_sim_random(load->sim, 3) : 0;
    struct job *job;
    int err;

    if (way == 0) {
        answer(ctx, id);
        return 0;
    }
    job = calloc(1, sizeof(*job));
    if (job == NULL)
        return -ENOMEM;
    *job = (struct job){.id = id, .load = load, .server = self->server};
    if (way == 2 && load->offload[self->server] != NULL) {
        err = weir_ctx_offload(ctx, load->offload[self->server], offloaded, on_offloaded, job);
        if (err < 0)
            free(job);
        return err;
    }
    job->ctx = weir_ctx_retain(ctx);
    err = weir_schedule(weir_ctx_executor(ctx),
                        (int64_t)weir_sim_random(load->sim, (uint64_t)load->max_work_ns), on_delay,
                        job, NULL);
    if (err < 0) {
        weir_ctx_release(ctx);
        free(job);
    }
    return err;
}

static void server_read(weir_ctx *ctx, weir_msg *msg)
{
    struct answerer *self = weir_ctx_state(ctx);
    unsigned id = take_message(self->load, msg, false);

    if (self->closing)
        weir_sim_fail(self->load->sim, "request %u was read after the close", id);
    self->load->seen[id].reads[self->server]++;
    self->busy++;
    if (begin_answer(ctx, self, id) < 0)
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void server_draining(weir_ctx *ctx)
{
    struct answerer *self = weir_ctx_state(ctx);

    self->draining = true;
    weir_ctx_set_auto_read(ctx, false);
    end_if_drained(ctx, self);
}

/* The client has sent its last request. */
static void server_event(weir_ctx *ctx, weir_msg *event)
{
    struct answerer *self = weir_ctx_state(ctx);

    if (event == weir_event_input_closed()) {
        self->draining = true;
        end_if_drained(ctx, self);
    }
    weir_msg_release(event);
}

static const weir_handler finishing = {
    .name = "answerer",
    .state_size = sizeof(struct answerer),
    .read = server_read,
    .event = server_event,
    .draining = server_draining,
};

static const weir_handler closing = {
    .name = "answerer",
    .state_size = sizeof(struct answerer),
    .read = server_read,
    .event = server_event,
};

static int add_frames(weir_pipeline *pipeline)
{
    int err = sim_watch(pipeline);

    if (err == 0)
        err = weir_length_field_add(pipeline, WEIR_LENGTH_FIELD_OPTIONS(.width = 4, .strip = 4));
    return err < 0 ? err
                   : weir_length_prepender_add(pipeline, WEIR_LENGTH_PREPENDER_OPTIONS(.width = 4));
}

int load_init_child(weir_channel *channel, void *user_data)
{
    const struct load_server *server = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    struct answerer *self;
    int err = add_frames(pipeline);

    if (err == 0)
        err = weir_pipeline_add_last(
            pipeline, server->load->drain == LOAD_FINISHES ? &finishing : &closing, NULL);
    if (err < 0)
        return err;
    self = weir_ctx_state(weir_pipeline_find(pipeline, "answerer"));
    self->load = server->load;
    self->server = server->number;
    server->load->accepted[server->number]++;
    return 0;
}

/* ---- the clients ---- */

struct client {
    struct load *load;
    unsigned number;
    unsigned server;   /* index of the address */
    unsigned answered; /* of all requests */
    unsigned open;     /* requests sent on this connection and not answered */
    unsigned on_this;  /* requests sent on this connection */
    bool is_open[LOAD_REQUESTS_MAX];
    bool is_answered[LOAD_REQUESTS_MAX];
    bool is_connected;
    bool ending;
    weir_timer retry;
    weir_listener connected; /* of `connecting` */
    weir_task begin;
};

struct asker {
    struct client *client;
    weir_timer timer; /* for an answer */
    weir_timer pause;
};

static struct client clients[LOAD_CLIENTS_MAX];

static void connect_client(struct client *client);

static void on_retry(weir_timer *timer)
{
    connect_client(WEIR_CONTAINER_OF(timer, struct client, retry));
}

static void retry(struct client *client, int64_t delay_ns)
{
    if (weir_timer_start(weir_group_at(client->load->group, 0), &client->retry, delay_ns,
                         on_retry) < 0)
        weir_sim_fail(client->load->sim, "a client cannot retry");
}

static void on_begin(void *arg, int status)
{
    struct client *client = arg;

    if (status == 0)
        retry(client, (int64_t)weir_sim_random(client->load->sim, weir_ms(5)));
}

static void go_elsewhere(struct client *client)
{
    if (!client->load->stays && client->load->addresses[++client->server] == NULL)
        client->server = 0;
}

static void client_done(struct client *client)
{
    if (--client->load->left == 0)
        (void)weir_promise_succeed(client->load->done, NULL);
}

/* The next request that was neither answered nor sent on this connection; -1 = none. */
static int next_request(const struct client *client)
{
    for (unsigned i = 0; i < client->load->requests; i++)
        if (!client->is_answered[i] && !client->is_open[i])
            return (int)i;
    return -1;
}

static void on_silence(weir_ctx *ctx, weir_timer *timer)
{
    struct asker *self = weir_ctx_state(ctx);

    (void)timer;
    self->client->load->timeouts++;
    weir_sim_note(self->client->load->sim, "client %u: no answer in time", self->client->number);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void send_request(weir_ctx *ctx, struct client *client, unsigned index)
{
    unsigned id = client->number * LOAD_REQUESTS_MAX + index;
    weir_msg *msg;

    if (make_message(id, REQUEST_SIZE, &msg) < 0) {
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
        return;
    }
    client->is_open[index] = true;
    client->open++;
    client->on_this++;
    client->load->seen[id].sent[client->server]++;
    weir_write_and_flush(ctx, msg, NULL);
}

static void ask(weir_ctx *ctx)
{
    struct asker *self = weir_ctx_state(ctx);
    struct client *client = self->client;
    const struct load *load = client->load;
    int index = 0;

    while (client->open < load->window &&
           (load->per_connection == 0 || client->on_this < load->per_connection) &&
           (index = next_request(client)) >= 0)
        send_request(ctx, client, (unsigned)index);
    if (client->open > 0) {
        (void)weir_ctx_timer_start(ctx, &self->timer, load->timeout_ns, on_silence);
    } else {
        client->ending = true;
        weir_close(ctx, NULL);
    }
}

/* A handler's timer may fire until it is removed, which follows the promise of the close. */
static void on_pause_over(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    if (weir_channel_is_open(weir_ctx_channel(ctx)))
        ask(ctx);
}

static void client_active(weir_ctx *ctx)
{
    ((struct asker *)weir_ctx_state(ctx))->client->is_connected = true;
    ask(ctx);
}

static void client_read(weir_ctx *ctx, weir_msg *msg)
{
    struct asker *self = weir_ctx_state(ctx);
    struct client *client = self->client;
    struct load *load = client->load;
    unsigned id = take_message(load, msg, true), index = id % LOAD_REQUESTS_MAX;

    if (id / LOAD_REQUESTS_MAX != client->number || !client->is_open[index]) {
        weir_sim_fail(load->sim, "client %u received answer %u, which it did not ask for",
                      client->number, id);
        return;
    }
    load->seen[id].received[client->server]++;
    client->is_open[index] = false;
    client->is_answered[index] = true;
    client->open--;
    client->answered++;
    if (load->max_pause_ns > 0)
        (void)weir_ctx_timer_start(
            ctx, &self->pause, (int64_t)weir_sim_random(load->sim, (uint64_t)load->max_pause_ns),
            on_pause_over);
    else
        ask(ctx);
}

static void client_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

/* The server has ended the connection. */
static void client_event(weir_ctx *ctx, weir_msg *event)
{
    if (event == weir_event_input_closed())
        weir_close(ctx, NULL);
    weir_msg_release(event);
}

/* The connection has ended. */
static void client_removed(weir_ctx *ctx)
{
    struct client *client = ((struct asker *)weir_ctx_state(ctx))->client;
    struct load *load = client->load;

    if (!client->is_connected)
        return; /* the attempt has failed: on_connected */
    client->is_connected = false;
    if (client->open > 0) {
        load->broken++;
        weir_sim_note(load->sim, "client %u: %u requests unanswered", client->number, client->open);
    }
    client->open = client->on_this = 0;
    memset(client->is_open, 0, sizeof(client->is_open));
    if (client->answered == load->requests) {
        client_done(client);
        return;
    }
    if (!client->ending)
        go_elsewhere(client);
    client->ending = false;
    retry(client, 0);
}

static const weir_handler asker = {
    .name = "asker",
    .state_size = sizeof(struct asker),
    .removed = client_removed,
    .active = client_active,
    .read = client_read,
    .event = client_event,
    .error = client_error,
};

static int init_client(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = add_frames(pipeline);

    if (err == 0)
        err = weir_pipeline_add_last(pipeline, &asker, NULL);
    if (err == 0)
        ((struct asker *)weir_ctx_state(weir_pipeline_find(pipeline, "asker")))->client = user_data;
    return err;
}

static void on_connected(weir_promise *connecting, void *user_data)
{
    struct client *client = user_data;

    if (weir_promise_result(connecting) == 0)
        return;
    client->load->refused++;
    weir_sim_note(client->load->sim, "client %u: not connected: %s", client->number,
                  weir_error_text(weir_promise_result(connecting)));
    go_elsewhere(client);
    retry(client, RETRY_NS);
}

static void connect_client(struct client *client)
{
    weir_promise *connecting = NULL;
    int err =
        weir_client_connect(WEIR_CLIENT_OPTIONS(.group = client->load->group,
                                                .address = client->load->addresses[client->server],
                                                .init = init_client, .user_data = client),
                            &connecting);

    if (err == -ENOMEM) {
        retry(client, RETRY_NS);
    } else if (err < 0) {
        weir_sim_fail(client->load->sim, "a client cannot connect: %s", weir_error_text(err));
    } else {
        client->connected = (weir_listener){.fn = on_connected, .user_data = client};
        weir_promise_listen(connecting, &client->connected);
    }
    weir_promise_release(connecting);
}

static int begin_client(struct load *load, unsigned number)
{
    struct client *client = &clients[number];
    unsigned addresses = 0;

    *client = (struct client){.load = load, .number = number};
    while (load->stays && load->addresses[addresses] != NULL)
        addresses++;
    if (addresses > 0)
        client->server = number % addresses;
    weir_task_init(&client->begin, on_begin, client);
    return weir_execute_task(weir_group_at(load->group, 0), &client->begin);
}

int load_clients_main(void *arg)
{
    struct load *load = arg;
    int err = load_group("client", 1, &load->group);

    load->left = load->clients;
    while (err == 0 && load_retries(err = weir_promise_create(NULL, &load->done)))
        err = 0;
    for (unsigned i = 0; i < load->clients && err == 0; i++)
        while (load_retries(err = begin_client(load, i)))
            continue;
    if (err == 0)
        err = weir_promise_sync(load->done, WEIR_NEVER);
    sim_end_group(load->group);
    weir_promise_release(load->done);
    return err;
}
