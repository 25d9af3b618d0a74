/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote call server: answers small calls at once and computes large ones on other threads, so that
 * they delay nobody. The client is rpc-client.
 *     rpc [--port 8025] [--io auto|epoll|uring|poll|blocking] [--threads N] [--boss-threads N]
 *         [--tls] [--cert FILE] [--key FILE]
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/rpc.h"
#include "support/settings.h"

#define UNDER_WAY_MAX 64

/* Of one connection. */
struct caller {
    unsigned under_way; /* jobs */
};

struct job {
    uint32_t id;
    uint64_t number;
};

static weir_group *thinkers;

static void answer(weir_ctx *ctx, uint32_t id, uint64_t number)
{
    weir_buf *buf;

    if (weir_buf_create(12, 0, &buf) < 0) {
        weir_fire_error(ctx, -ENOMEM, "no memory for an answer"); /* at the tail it closes */
        return;
    }
    (void)weir_buf_write_u32(buf, id);
    (void)weir_buf_write_u64(buf, number);
    weir_write(ctx, weir_buf_msg(buf), NULL);
}

/* Stops reading from a client that does not read, or has many jobs in progress. */
static void choose_whether_to_read(weir_ctx *ctx)
{
    const struct caller *caller = weir_ctx_state(ctx);

    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx) && caller->under_way < UNDER_WAY_MAX);
}

/* ---- slow calls ---- */

/* doc:begin offload */
static void *find_factor(void *arg)
{
    struct job *job = arg;
    uint64_t factor = 2;

    while (factor * factor <= job->number && job->number % factor != 0)
        factor++;
    job->number = factor * factor <= job->number ? factor : job->number;
    return job;
}

/* On the loop again; without a context if the connection is gone. */
static void on_found(weir_ctx *ctx, int err, void *result, void *arg)
{
    const struct job *job = result;

    if (ctx != NULL && err == 0) {
        answer(ctx, job->id, job->number);
        weir_flush(ctx);
    }
    if (ctx != NULL) {
        ((struct caller *)weir_ctx_state(ctx))->under_way--;
        choose_whether_to_read(ctx);
    }
    free(arg);
}
/* doc:end */

/* 32 bits: bounds the time of a call. */
static void think(weir_ctx *ctx, uint32_t id, uint32_t number)
{
    struct caller *caller = weir_ctx_state(ctx);
    struct job *job = malloc(sizeof(*job));
    int err = job != NULL ? 0 : -ENOMEM;

    if (!err) {
        *job = (struct job){id, number};
        err = weir_ctx_offload(ctx, thinkers, find_factor, on_found, job);
    }
    if (err) {
        free(job);
        weir_fire_error(ctx, err, "the request cannot be offloaded");
    } else {
        caller->under_way++;
        choose_whether_to_read(ctx);
    }
}

/* ---- calls ---- */

/* doc:begin read */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg); /* one frame, without its length */
    uint8_t method = 0;
    uint64_t number = 0;
    uint32_t id = 0;

    if (weir_buf_read_u32(buf, &id) < 0 || weir_buf_read_u8(buf, &method) < 0 ||
        weir_buf_read_u64(buf, &number) < 0 || method > RPC_FACTOR)
        weir_fire_error(ctx, WEIR_EMALFORMED, "that is no call");
    else if (method == RPC_SQUARE)
        answer(ctx, id, number * number);
    else
        think(ctx, id, (uint32_t)number);
    weir_msg_release(msg);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx); /* sends all immediate answers together */
}
/* doc:end */

static const weir_handler calls = {
    .name = "calls",
    .state_size = sizeof(struct caller),
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = choose_whether_to_read,
};

static int init_child(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = rpc_frames_add(pipeline);

    (void)user_data;
    return err ? err : weir_pipeline_add_last(pipeline, &calls, NULL);
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8025);
    int result;

    if (weir_group_create(WEIR_GROUP_OPTIONS(.threads = 2, .io = WEIR_IO_NONE), &thinkers) < 0)
        return EXIT_FAILURE;
    result = serve(&settings, init_child);
    weir_group_release(thinkers);
    return result;
}
