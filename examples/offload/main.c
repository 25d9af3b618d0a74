/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow work off the event loop, in two ways: a handler on another group, or single offloaded tasks.
 *     offload [--way handler|task] [--port 8010] [--io auto|epoll|uring|poll] [--threads N]
 *             [--boss-threads N]
 *
 * Answers "ping" with "pong" at once, and everything else with its checksum, which takes a fifth of
 * a second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

#include "support/settings.h"

#define UNDER_WAY_MAX 8

static weir_group *slow; /* threads that may block */

/* Stands for a query to a database, a file on a slow disk, a large computation. */
static uint64_t slow_checksum(const weir_buf *buf)
{
    const struct timespec fifth = {.tv_nsec = 200 * 1000 * 1000};
    const uint8_t *bytes = weir_buf_bytes(buf);
    uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a */

    nanosleep(&fifth, NULL);
    for (size_t i = 0; i < weir_buf_readable(buf); i++)
        sum = (sum ^ bytes[i]) * UINT64_C(1099511628211);
    return sum;
}

static void answer(weir_ctx *ctx, uint64_t sum)
{
    weir_buf *buf;
    int err = weir_buf_create(32, 0, &buf);

    if (err < 0) {
        weir_fire_error(ctx, err, "no memory for an answer");
        return;
    }
    (void)weir_buf_printf(buf, "%016llx\n", (unsigned long long)sum);
    weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

/* ---- one way: a handler on another group ---- */

/* doc:begin handler */
/* On a thread of `slow`: it may block, and the channel's loop does not notice. What comes meanwhile
 * waits, in order; when that is much, the channel stops reading. */
static void on_request(weir_ctx *ctx, weir_msg *msg)
{
    answer(ctx, slow_checksum(weir_buf_of(msg)));
    weir_msg_release(msg);
}

static const weir_handler remote_checksum = {.name = "checksum", .read = on_request};

static int add_handler(weir_pipeline *pipeline)
{
    return weir_pipeline_add(pipeline, WEIR_PLACE(.group = slow), &remote_checksum, NULL);
}
/* doc:end */

/* ---- the other: pieces of work ---- */

/* doc:begin task */
struct request {
    weir_msg *msg;
    uint64_t sum;
};

/* Of one connection. */
struct client {
    unsigned under_way; /* requests */
};

/* On a thread of `slow`. */
static void *work(void *arg)
{
    struct request *request = arg;

    request->sum = slow_checksum(weir_buf_of(request->msg));
    return request;
}

/* Back on the loop; without a context if the handler has gone meanwhile. */
static void on_done(weir_ctx *ctx, int err, void *result, void *arg)
{
    struct request *request = arg;

    (void)result;
    if (ctx != NULL) {
        struct client *client = weir_ctx_state(ctx);

        weir_ctx_set_auto_read(ctx, --client->under_way < UNDER_WAY_MAX);
    }
    if (ctx != NULL && err == 0)
        answer(ctx, request->sum);
    weir_msg_release(request->msg);
    free(request);
}

/* Several pieces may be under way at once, and come back in any order: but not any number. */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct client *client = weir_ctx_state(ctx);
    struct request *request = malloc(sizeof(*request));

    if (request != NULL)
        *request = (struct request){.msg = msg};
    if (request == NULL || weir_ctx_offload(ctx, slow, work, on_done, request) < 0) {
        free(request);
        weir_msg_release(msg);
        weir_close(ctx, NULL);
        return;
    }
    weir_ctx_set_auto_read(ctx, ++client->under_way < UNDER_WAY_MAX);
}

static const weir_handler checksum_by_task = {
    .name = "checksum",
    .state_size = sizeof(struct client),
    .read = on_read,
};
/* doc:end */

/* ---- on the loop ---- */

/* Answers quick requests here, and passes the others on. */
static void on_ping(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    if (weir_buf_readable(buf) != 5 || memcmp(weir_buf_bytes(buf), "ping\n", 5) != 0) {
        weir_fire_read(ctx, msg);
        return;
    }
    weir_msg_release(msg);
    if (weir_buf_wrap_static("pong\n", 5, &buf) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static const weir_handler ping = {.name = "ping", .read = on_ping};

static int init_with_handler(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &ping, NULL);

    (void)user_data;
    return err ? err : add_handler(pipeline);
}

static int init_with_tasks(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &ping, NULL);

    (void)user_data;
    return err ? err : weir_pipeline_add_last(pipeline, &checksum_by_task, NULL);
}

int main(int argc, char **argv)
{
    const char *way = settings_take(&argc, argv, "--way");
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 8010);
    bool by_task = way != NULL && strcmp(way, "task") == 0;
    int result;

    if (way != NULL && !by_task && strcmp(way, "handler") != 0) {
        fprintf(stderr, "offload: invalid --way: expected handler or task\n");
        return 2;
    }
    if (weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 4, .name = "slow"),
                          &slow) < 0)
        return EXIT_FAILURE;
    result = serve(&settings, by_task ? init_with_tasks : init_with_handler);
    weir_group_release(slow); /* waits for its threads */
    return result;
}
