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
struct question {
    char name[32];
    char answer[64];
};

/* On a thread of `blocking`: may take as long as it likes, and touches nothing but its argument. */
static void *look_up(void *arg)
{
    struct question *question = arg;

    snprintf(question->answer, sizeof(question->answer), "%s is at home\n", question->name);
    return question;
}

/* Back on the connection's loop; `ctx` is NULL if the connection has gone meanwhile. */
static void on_found(weir_ctx *ctx, int err, void *result, void *arg)
{
    struct question *question = arg;
    weir_buf *buf;

    (void)result;
    if (ctx != NULL && err == 0)
        err = weir_buf_create_from(question->answer, strlen(question->answer), &buf);
    if (ctx != NULL && err == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
    else if (ctx != NULL)
        weir_fire_error(ctx, err, "it was not looked up");
    free(question); /* in any case: this is called exactly once */
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct question *question = calloc(1, sizeof(*question));
    int err = question == NULL ? -ENOMEM : 0;

    if (!err)
        err = weir_buf_read_string(weir_buf_of(msg), weir_buf_readable(weir_buf_of(msg)),
                                   question->name, sizeof(question->name));
    weir_msg_release(msg);
    if (!err)
        err = weir_ctx_offload(ctx, blocking, look_up, on_found, question);
    if (err < 0) {
        free(question);
        weir_fire_error(ctx, err, NULL);
    }
}

static const weir_handler who_is = {.name = "who-is", .read = on_read};
/* doc:end */

/* doc:begin slow */
static void slow_read(weir_ctx *ctx, weir_msg *msg)
{
    struct timespec a_while = {.tv_nsec = 1000000};

    nanosleep(&a_while, NULL); /* on any other thread this would be a crime */
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
    weir_group *group = user_data; /* made with .io = WEIR_IO_NONE: threads without sockets */

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
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = loops, .address = "127.0.0.1:0",
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
static void *tell(void *arg)
{
    weir_channel *channel = arg; /* retained for us */
    weir_buf *buf;

    if (weir_buf_create_from("a thread says hello\n", 20, &buf) == 0)
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

    assert_int_equal(
        pthread_create(&thread, NULL, tell, weir_channel_retain(weir_embedded_channel(embedded))),
        0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    weir_embedded_run(embedded);
    assert_text(weir_embedded_read_outbound(embedded), "a thread says hello\n");
    weir_embedded_release(embedded);
}

/* doc:begin on-loop */
struct visit {
    weir_channel *channel; /* retained */
    bool was_active;
    weir_promise *done;
};

static void look(void *arg, int status)
{
    struct visit *visit = arg;

    if (status == 0) /* on the channel's loop: handlers do not run meanwhile */
        visit->was_active = weir_channel_is_active(visit->channel);
    weir_promise_succeed(visit->done, NULL);
}

static int visit_channel(struct visit *visit)
{
    return weir_execute(weir_channel_executor(visit->channel), look, visit);
}
/* doc:end */

TEST(threads, visit_a_channel_on_its_loop)
{
    weir_embedded *embedded = embed(&nothing, NULL);
    struct visit visit = {.channel = weir_embedded_channel(embedded)};

    assert_int_equal(weir_promise_create(NULL, &visit.done), 0);
    assert_int_equal(visit_channel(&visit), 0);
    weir_embedded_run(embedded);
    assert_true(weir_promise_is_done(visit.done));
    assert_true(visit.was_active);
    weir_promise_release(visit.done);
    weir_embedded_release(embedded);
}
