/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir's side of docs/guide/19-migrating.md.
 */
#include <unistd.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"

/* doc:begin echo */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL); /* no copy, no request, nothing to free */
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler echo = {
    .name = "echo", .read = on_read, .read_complete = on_read_complete};
/* doc:end */

/* doc:begin timer */
struct heart {
    weir_timer timer; /* in the handler's state: no allocation, stopped by itself */
    int beats;
};

static void on_beat(weir_ctx *ctx, weir_timer *timer)
{
    struct heart *self = weir_ctx_state(ctx);

    self->beats++;
    (void)weir_ctx_timer_start(ctx, timer, weir_seconds(1), on_beat);
}

static void on_added(weir_ctx *ctx)
{
    struct heart *self = weir_ctx_state(ctx);

    (void)weir_ctx_timer_start(ctx, &self->timer, weir_seconds(1), on_beat);
}

static const weir_handler heart = {
    .name = "heart", .state_size = sizeof(struct heart), .added = on_added};
/* doc:end */

TEST(migrating, a_heart_beats)
{
    weir_embedded *embedded = embed(&heart, NULL);
    struct heart *state =
        weir_ctx_state(weir_pipeline_find(weir_embedded_pipeline(embedded), "heart"));

    weir_embedded_advance(embedded, weir_seconds(3));
    assert_int_equal(state->beats, 3);
    weir_embedded_release(embedded);
}

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

#define ADDRESS "127.0.0.1:0"

static int start(weir_group *boss, weir_group *workers, weir_server **ret_server)
{
    weir_server *server = NULL;
    /* doc:begin server */
    int err = weir_server_start(
        WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = ADDRESS,
                            .init_child = init_child,
                            .child_options = WEIR_CHANNEL_OPTIONS(.keep_alive = true)),
        &server);
    /* doc:end */

    *ret_server = server;
    return err;
}

TEST(migrating, an_echo_comes_back)
{
    weir_group *boss = make_loops(1), *workers = make_loops(1);
    weir_server *server = NULL;
    int peer;

    assert_int_equal(start(boss, workers, &server), 0);
    peer = raw_client_connect(server);
    raw_client_echo(peer, "hello");
    raw_client_close(peer);
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    weir_group_release(workers);
    weir_group_release(boss);
}

/* doc:begin wake */
static void on_wake(void *arg, int status)
{
    if (status == 0)
        call_counter_add(arg); /* on the loop */
}

static int wake(weir_executor *loop, struct call_counter *counter)
{
    return weir_execute(loop, on_wake, counter); /* each call runs: none is swallowed by another */
}
/* doc:end */

TEST(migrating, every_wake_counts)
{
    weir_group *loops = make_loops(1);
    struct call_counter counter = {0};

    assert_int_equal(wake(weir_group_next(loops), &counter), 0);
    assert_int_equal(wake(weir_group_next(loops), &counter), 0);
    assert_true(call_counter_await(&counter, 2));
    end_group(loops);
}

/* doc:begin embedded */
static void echoes(void)
{
    weir_embedded *embedded = embed(&echo, NULL);

    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("hello")), 0);
    assert_text(weir_embedded_read_outbound(embedded), "hello");
    assert_false(weir_embedded_finish(embedded));
    weir_embedded_release(embedded);
}
/* doc:end */

TEST(migrating, an_embedded_channel_echoes)
{
    echoes();
}

/* doc:begin watch */
static void on_ready(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    char byte;

    (void)events;
    if (read(weir_fd_watch_descriptor(watch), &byte, 1) == 1)
        weir_promise_succeed(user_data, NULL);
    weir_fd_watch_close(watch);
}

static int watch_pipe(weir_executor *loop, int descriptor, weir_promise *came)
{
    return weir_fd_watch_create(
        loop, descriptor,
        WEIR_FD_WATCH_OPTIONS(.events = WEIR_FD_READABLE, .ready = on_ready, .user_data = came),
        NULL);
}
/* doc:end */

TEST(migrating, a_pipe_is_watched)
{
    weir_group *loops = make_loops(1);
    weir_promise *came = NULL;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(weir_promise_create(NULL, &came), 0);
    assert_int_equal(watch_pipe(weir_group_next(loops), ends[0], came), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(weir_promise_sync(came, TEST_TIMEOUT_NS), 0);
    end_group(loops);
    weir_promise_release(came);
    close(ends[0]);
    close(ends[1]);
}
