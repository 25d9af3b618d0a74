/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PENDING_MAX 1024 /* unanswered requests of a client, beyond which it is not read */

/* One key of a command, one shard that it is for, or an answer that waits for those before it. */
struct request {
    struct request *next;
    weir_task task;
    weir_channel *channel;   /* retained while it is away */
    struct command *command; /* retained */
    struct shard *shard;     /* NULL = it is only an answer */
    weir_span key;
    uint64_t hash;
    weir_buf *answer; /* NULL = none */
    struct shard_stats stats;
    int err;
    bool is_done;
};

struct session {
    struct cache *cache;
    struct request *first; /* in the order of commands */
    struct request *last;
    size_t pending;
    struct shard_stats totals; /* of the STATS that is being answered */
    bool is_ending;            /* no more commands: when all are answered, it is closed */
};

static const weir_handler session;

/* ---- what can be said at any time ---- */

static void write_text(weir_ctx *ctx, const char *text)
{
    weir_buf *buf;

    if (weir_buf_wrap_static(text, strlen(text), &buf) == 0)
        weir_write(ctx, weir_buf_msg(buf), NULL);
    else
        weir_close(ctx, NULL);
}

/* Ends the connection. */
static void fail(weir_ctx *ctx, int err)
{
    if (err == WEIR_ETOOLONG)
        write_text(ctx, "CLIENT_ERROR line too long\r\n");
    else if (err == -ENOMEM)
        write_text(ctx, "SERVER_ERROR out of memory\r\n");
    weir_close(ctx, NULL);
}

/* ---- requests ---- */

static void free_request(struct request *request)
{
    weir_buf_release(request->answer);
    weir_msg_release(&request->command->msg);
    weir_channel_release(request->channel);
    free(request);
}

static struct request *add_request(weir_ctx *ctx, struct command *command, struct shard *shard)
{
    struct session *self = weir_ctx_state(ctx);
    struct request *request = calloc(1, sizeof(*request));

    if (request == NULL) {
        fail(ctx, -ENOMEM);
        return NULL;
    }
    weir_msg_retain(&command->msg);
    request->command = command;
    request->shard = shard;
    if (self->last != NULL)
        self->last->next = request;
    else
        self->first = request;
    self->last = request;
    self->pending++;
    return request;
}

static struct request *pop_request(struct session *self)
{
    struct request *request = self->first;

    self->first = request->next;
    if (self->first == NULL)
        self->last = NULL;
    self->pending--;
    return request;
}

/* ---- there and back ---- */

/* On the shard's loop. */
static void execute(struct request *request)
{
    if (request->command->verb == STATS) {
        request->stats = shard_read_stats(request->shard);
        return;
    }
    request->err = weir_buf_create(64, 0, &request->answer);
    if (request->err == 0)
        request->err = shard_execute(request->shard, request->command, request->key, request->hash,
                                     request->answer);
}

static void answer(weir_ctx *ctx);

/* doc:begin hop */
/* Back on the client's loop. */
static void on_returned(void *arg, int status)
{
    struct request *request = arg;
    weir_ctx *ctx = weir_pipeline_find_handler(weir_channel_pipeline(request->channel), &session);

    if (ctx == NULL) {
        free_request(request); /* the client has gone, and its queue with it */
        return;
    }
    if (status < 0)
        request->err = status;
    request->is_done = true;
    answer(ctx);
    weir_flush(ctx);
}

/* On the shard's loop; `status` says if that has been shut down. */
static void on_arrived(void *arg, int status)
{
    struct request *request = arg;

    if (status == 0)
        execute(request);
    else
        request->err = status;
    weir_task_init(&request->task, on_returned, request);
    if (weir_execute_task(weir_channel_executor(request->channel), &request->task) < 0)
        free_request(request); /* the client's loop has ended, and its queue with it */
}

static void send_request(weir_ctx *ctx, struct request *request)
{
    int err;

    if (request->shard->loop == weir_ctx_executor(ctx)) {
        execute(request);
        request->is_done = true;
        return;
    }
    request->channel = weir_channel_retain(weir_ctx_channel(ctx));
    weir_task_init(&request->task, on_arrived, request);
    err = weir_execute_task(request->shard->loop, &request->task);
    if (err) {
        request->err = err;
        request->is_done = true;
    }
}
/* doc:end */

/* ---- answers ---- */

static void add_up(struct shard_stats *totals, const struct shard_stats *stats)
{
    totals->gets += stats->gets;
    totals->hits += stats->hits;
    totals->sets += stats->sets;
    totals->store.items += stats->store.items;
    totals->store.bytes += stats->store.bytes;
    totals->store.total_items += stats->store.total_items;
    totals->store.evictions += stats->store.evictions;
}

static int print_stats(const struct session *self, weir_buf *buf)
{
    const struct shard_stats *totals = &self->totals;
    int64_t now = time(NULL);

    return weir_buf_printf(
        buf,
        "STAT pid %ld\r\nSTAT uptime %" PRId64 "\r\nSTAT time %" PRId64 "\r\nSTAT version %s\r\n"
        "STAT cmd_get %" PRIu64 "\r\nSTAT cmd_set %" PRIu64 "\r\n"
        "STAT get_hits %" PRIu64 "\r\nSTAT get_misses %" PRIu64 "\r\n"
        "STAT curr_items %" PRIu64 "\r\nSTAT total_items %" PRIu64 "\r\n"
        "STAT bytes %" PRIu64 "\r\nSTAT limit_maxbytes %zu\r\nSTAT evictions %" PRIu64 "\r\n"
        "STAT threads %zu\r\nEND\r\n",
        (long)getpid(), now - self->cache->started_at, now, weir_version(), totals->gets,
        totals->sets, totals->hits, totals->gets - totals->hits, totals->store.items,
        totals->store.total_items, totals->store.bytes, self->cache->max_bytes,
        totals->store.evictions, self->cache->count);
}

static void write_stats(weir_ctx *ctx)
{
    struct session *self = weir_ctx_state(ctx);
    weir_buf *buf = NULL;
    int err = weir_buf_create(1024, 0, &buf);

    if (!err)
        err = print_stats(self, buf);
    self->totals = (struct shard_stats){.gets = 0};
    if (err) {
        weir_buf_release(buf);
        fail(ctx, err);
    } else {
        weir_write(ctx, weir_buf_msg(buf), NULL);
    }
}

/* The last request of a command, which goes to no shard. */
static void write_end(weir_ctx *ctx, const struct command *command)
{
    if (command->error != NULL && !command->noreply)
        write_text(ctx, command->error);
    if (command->error != NULL)
        return;
    if (command->verb == STATS)
        write_stats(ctx);
    else if (command->verb == VERSION)
        write_text(ctx, "VERSION 1.6.0 (weir)\r\n");
    else if (command->verb == QUIT)
        weir_close(ctx, NULL);
    else if (command->verb < SET)
        write_text(ctx, "END\r\n");
    else if (!command->noreply)
        write_text(ctx, "OK\r\n");
}

static void write_answer(weir_ctx *ctx, struct request *request)
{
    struct session *self = weir_ctx_state(ctx);

    if (request->shard == NULL) {
        write_end(ctx, request->command);
    } else if (request->err < 0) {
        fail(ctx, request->err);
    } else if (request->command->verb == STATS) {
        add_up(&self->totals, &request->stats);
    } else if (weir_buf_readable(request->answer) > 0) {
        weir_write(ctx, weir_buf_msg(request->answer), NULL);
        request->answer = NULL;
    }
}

static void control_reading(weir_ctx *ctx)
{
    const struct session *self = weir_ctx_state(ctx);

    weir_ctx_set_auto_read(ctx, !self->is_ending && weir_ctx_is_writable(ctx) &&
                                    self->pending < PENDING_MAX);
}

/* Of all requests that are done and have none before them that is not. */
static void answer(weir_ctx *ctx)
{
    struct session *self = weir_ctx_state(ctx);

    while (self->first != NULL && self->first->is_done) {
        struct request *request = pop_request(self);

        write_answer(ctx, request);
        free_request(request);
    }
    if (self->is_ending && self->first == NULL)
        weir_close(ctx, NULL);
    control_reading(ctx);
}

/* ---- commands ---- */

static void ask_for_key(weir_ctx *ctx, struct command *command, weir_span key)
{
    struct session *self = weir_ctx_state(ctx);
    uint64_t hash;
    struct shard *shard = cache_shard(self->cache, key, &hash);
    struct request *request = add_request(ctx, command, shard);

    if (request == NULL)
        return;
    request->key = key;
    request->hash = hash;
    send_request(ctx, request);
}

static void ask_all_shards(weir_ctx *ctx, struct command *command)
{
    struct session *self = weir_ctx_state(ctx);

    for (size_t i = 0; i < self->cache->count; i++) {
        struct request *request = add_request(ctx, command, &self->cache->shards[i]);

        if (request != NULL)
            send_request(ctx, request);
    }
}

static void ask(weir_ctx *ctx, struct command *command)
{
    weir_span keys = command->keys, key;

    if (command->error != NULL)
        return;
    if (command->verb == STATS || command->verb == FLUSH_ALL)
        ask_all_shards(ctx, command);
    else
        while (command_next_key(&keys, &key))
            ask_for_key(ctx, command, key);
}

/* Commands with one key are answered by its shard. */
static bool has_end(const struct command *command)
{
    return command->error != NULL || command->verb < SET || command->verb > TOUCH;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct command *command = command_of(msg);
    struct request *last;

    ask(ctx, command);
    last = has_end(command) ? add_request(ctx, command, NULL) : NULL;
    if (last != NULL)
        last->is_done = true;
    weir_msg_release(msg);
    answer(ctx);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

/* ---- life ---- */

static int init(void *state, const void *options)
{
    ((struct session *)state)->cache = *(struct cache *const *)options;
    return 0;
}

/* Requests that are away free themselves when they come back. */
static void on_removed(weir_ctx *ctx)
{
    struct session *self = weir_ctx_state(ctx);

    while (self->first != NULL) {
        struct request *request = pop_request(self);

        if (request->is_done)
            free_request(request);
    }
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)detail; /* that a client has gone away is no news */
    fail(ctx, err);
}

/* Also when the group shuts down. */
static void end(weir_ctx *ctx)
{
    struct session *self = weir_ctx_state(ctx);

    self->is_ending = true;
    answer(ctx);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    if (event == weir_event_input_closed())
        end(ctx); /* some of the answers may still be on their way */
    weir_fire_event(ctx, event);
}

static const weir_handler session = {
    .name = "session",
    .state_size = sizeof(struct session),
    .init = init,
    .removed = on_removed,
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = control_reading,
    .event = on_event,
    .error = on_error,
    .draining = end,
};

int session_init(weir_channel *channel, void *cache)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = commands_add(pipeline, ((struct cache *)cache)->item_max);

    return err ? err : weir_pipeline_add_last(pipeline, &session, &cache);
}
