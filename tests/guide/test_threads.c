/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/11-threads.md shows.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"

static weir_group *blocking;

/* doc:begin offload */
struct query {
    char name[32];
    char answer[64];
};

/* On a thread of `blocking`: may block, and accesses only its argument. */
static void *look_up(void *arg)
{
    struct query *query = arg;

    snprintf(query->answer, sizeof(query->answer), "%s is at home\n", query->name);
    return query;
}

/* Back on the connection's loop; `ctx` is NULL if the handler was removed meanwhile. */
static void on_found(weir_ctx *ctx, int err, void *result, void *arg)
{
    struct query *query = arg;
    weir_buf *buf;

    (void)result;
    if (ctx != NULL && err == 0)
        err = weir_buf_create_from(query->answer, strlen(query->answer), &buf);
    if (ctx != NULL && err == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
    else if (ctx != NULL)
        weir_fire_error(ctx, err, "lookup failed");
    free(query); /* always: this is called exactly once */
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct query *query = calloc(1, sizeof(*query));
    int err = query == NULL ? -ENOMEM : 0;

    if (!err)
        err = weir_buf_read_string(weir_buf_of(msg), weir_buf_readable(weir_buf_of(msg)),
                                   query->name, sizeof(query->name));
    weir_msg_release(msg);
    if (!err)
        err = weir_ctx_offload(ctx, blocking, look_up, on_found, query);
    if (err < 0) {
        free(query);
        weir_fire_error(ctx, err, NULL);
    }
}

static const weir_handler who_is = {.name = "who-is", .read = on_read};
/* doc:end */

/* doc:begin slow */
static void slow_read(weir_ctx *ctx, weir_msg *msg)
{
    struct timespec a_while = {.tv_nsec = 1000000};

    nanosleep(&a_while, NULL); /* never do this on an event loop */
    weir_write(ctx, msg, NULL);
}

static void slow_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler slow = {
    .name = "slow", .read = slow_read, .read_complete = slow_read_complete};

static int init_slow(weir_channel *channel, void *user_data)
{
    weir_group *group = user_data; /* created with .io = WEIR_IO_NONE */

    return weir_pipeline_add(weir_channel_pipeline(channel), WEIR_PLACE(.group = group), &slow,
                             NULL);
}
/* doc:end */

static int init_who_is(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &who_is, NULL);
}

static weir_server *start(weir_group *loops, weir_init_fn *init_child)
{
    weir_server *server = NULL;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.workers = loops, .address = "127.0.0.1:0",
                                              .init_child = init_child, .user_data = blocking),
                          &server),
        0);
    return server;
}

static void ask(weir_init_fn *init_child, const char *question, const char *answer)
{
    weir_group *loops = make_loops(1);
    weir_server *server;
    int peer;

    blocking = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    server = start(loops, init_child);
    peer = raw_client_connect(server);
    raw_client_send(peer, question);
    raw_client_receive(peer, answer);
    raw_client_close(peer);
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    weir_group_release(loops);
    end_group(blocking);
}

TEST(threads, do_what_would_block_a_loop)
{
    ask(init_who_is, "ada", "ada is at home\n");
}

TEST(threads, run_a_handler_that_blocks)
{
    ask(init_slow, "zzz", "zzz");
}

/* doc:begin thread */
static void *send_greeting(void *arg)
{
    weir_channel *channel = arg; /* retained for us */
    weir_buf *buf;

    if (weir_buf_create_from("hello from a thread\n", 20, &buf) == 0)
        weir_channel_write_and_flush(channel, weir_buf_msg(buf), NULL);
    weir_channel_release(channel);
    return NULL;
}
/* doc:end */

static const weir_handler nothing = {.name = "nothing"};

TEST(threads, write_to_channels)
{
    weir_embedded *embedded = embed(&nothing, NULL);
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, send_greeting,
                                    weir_channel_retain(weir_embedded_channel(embedded))),
                     0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    weir_embedded_run(embedded);
    assert_text(weir_embedded_read_outbound(embedded), "hello from a thread\n");
    weir_embedded_release(embedded);
}

/* doc:begin on-loop */
struct inspection {
    weir_channel *channel; /* retained */
    bool was_active;
    weir_promise *done;
};

static void inspect(void *arg, int status)
{
    struct inspection *inspection = arg;

    if (status == 0) /* on the channel's loop: handlers do not run meanwhile */
        inspection->was_active = weir_channel_is_active(inspection->channel);
    weir_promise_succeed(inspection->done, NULL);
}

static int inspect_channel(struct inspection *inspection)
{
    return weir_execute(weir_channel_executor(inspection->channel), inspect, inspection);
}
/* doc:end */

TEST(threads, inspect_a_channel_on_its_loop)
{
    weir_embedded *embedded = embed(&nothing, NULL);
    struct inspection inspection = {.channel = weir_embedded_channel(embedded)};

    assert_int_equal(weir_promise_create(NULL, &inspection.done), 0);
    assert_int_equal(inspect_channel(&inspection), 0);
    weir_embedded_run(embedded);
    assert_true(weir_promise_is_done(inspection.done));
    assert_true(inspection.was_active);
    weir_promise_release(inspection.done);
    weir_embedded_release(embedded);
}
