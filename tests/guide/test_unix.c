/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/13-unix.md shows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guide/guide_fixture.h"
#include "support/executor/call_counter.h"

static weir_server *start(weir_group *loops, const char *address, weir_init_fn *init_child)
{
    weir_server *server = NULL;
    /* doc:begin server */
    int err = weir_server_start(
        WEIR_SERVER_OPTIONS(.workers = loops, .address = address, /* "unix:/run/shop.sock" */
                            .init_child = init_child,
                            .options = WEIR_CHANNEL_OPTIONS(.unix_mode = 0600)),
        &server);
    /* doc:end */

    assert_int_equal(err, 0);
    return server;
}

/* doc:begin peer */
static void only_ours(weir_ctx *ctx)
{
    weir_unix_peer peer;

    if (weir_unix_read_peer(weir_ctx_channel(ctx), &peer) < 0 || peer.uid != getuid())
        weir_close(ctx, NULL); /* the kernel says who it is: nobody can pretend */
    else
        weir_fire_active(ctx);
}

static const weir_handler guard = {.name = "guard", .active = only_ours};
/* doc:end */

/* doc:begin give */
static void give(weir_ctx *ctx, int descriptor)
{
    weir_descriptors *passed;
    int err = weir_descriptors_create_one(descriptor, &passed); /* takes it, on failure too */

    if (err < 0)
        weir_fire_error(ctx, err, NULL);
    else
        weir_write_and_flush(ctx, weir_descriptors_msg(passed), NULL); /* sent, then closed here */
}
/* doc:end */

static void give_pipe(weir_ctx *ctx)
{
    int ends[2];

    if (pipe(ends) == 0) {
        (void)!write(ends[1], "inside", 6);
        close(ends[1]);
        give(ctx, ends[0]);
    }
}

static const weir_handler giver = {.name = "giver", .active = give_pipe};

static int init_giver(weir_channel *channel, void *user_data)
{
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &guard, NULL);

    (void)user_data;
    return err < 0 ? err : weir_pipeline_add_last(weir_channel_pipeline(channel), &giver, NULL);
}

/* doc:begin take */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_promise *got = *(weir_promise **)weir_ctx_state(ctx);
    weir_descriptors *passed = weir_descriptors_of(msg); /* NULL: only bytes, a weir_buf */
    int descriptor = passed != NULL ? weir_descriptors_take(passed, 0) : -ENOENT;

    if (descriptor >= 0)
        weir_promise_succeed(got, (void *)(intptr_t)descriptor); /* ours, to be closed */
    weir_msg_release(msg);                                       /* closes what was not taken */
}
/* doc:end */

static int init_taker_state(void *state, const void *options)
{
    *(void **)state = *(void *const *)options;
    return 0;
}

static const weir_handler taker = {
    .name = "taker", .state_size = sizeof(void *), .init = init_taker_state, .read = on_read};

static int init_taker(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &taker, &user_data);
}

static int call(weir_group *loops, const char *address, weir_promise *got,
                weir_channel **ret_channel)
{
    weir_channel *channel = NULL;
    /* doc:begin client */
    int err = weir_client_connect_sync(
        WEIR_CLIENT_OPTIONS(.group = loops, .address = address, .init = init_taker,
                            .user_data = got,
                            .options = WEIR_CHANNEL_OPTIONS(.receive_descriptors = true)),
        &channel);
    /* doc:end */

    *ret_channel = channel;
    return err;
}

static void stop(weir_server *server, weir_group *loops)
{
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    weir_group_release(loops);
}

TEST(unix, passes_a_descriptor)
{
    weir_group *loops = make_loops(1);
    char address[64], text[7] = "";
    weir_server *server;
    weir_channel *client = NULL;
    weir_promise *got = NULL;
    struct stat file;
    int descriptor;

    snprintf(address, sizeof(address), "unix:/tmp/weir-guide-%d.sock", getpid());
    server = start(loops, address, init_giver);
    assert_int_equal(stat(address + 5, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(weir_promise_create(NULL, &got), 0);
    assert_int_equal(call(loops, address, got, &client), 0);
    assert_int_equal(weir_promise_sync(got, TEST_TIMEOUT_NS), 0);
    descriptor = (int)(intptr_t)weir_promise_value(got);
    assert_int_equal(read(descriptor, text, 6), 6);
    assert_string_equal(text, "inside");
    close(descriptor);
    weir_channel_abort(client, NULL);
    weir_channel_release(client);
    stop(server, loops);
    weir_promise_release(got);
    assert_int_equal(stat(address + 5, &file), -1); /* removed by the close */
}

/* ---- packets ---- */

static struct call_counter packets;
static size_t longest;

static void hear_packet(weir_ctx *ctx, weir_msg *msg)
{
    size_t size = weir_buf_readable(weir_buf_of(msg));

    (void)ctx;
    longest = size > longest ? size : longest;
    weir_msg_release(msg);
    call_counter_add(&packets);
}

static const weir_handler hearer = {.name = "hearer", .read = hear_packet};

static int init_hearer(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &hearer, NULL);
}

TEST(unix, keeps_packets_apart)
{
    weir_group *loops = make_loops(1);
    weir_server *server = NULL;
    weir_channel *client = NULL;
    char address[64];
    int err;

    snprintf(address, sizeof(address), "unix:@weir-guide-%d", getpid());
    /* doc:begin seqpacket */
    err = weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_SEQPACKET, .workers = loops,
                                                .address = address, /* "unix:@shop": no file */
                                                .init_child = init_hearer),
                            &server);
    if (!err)
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.kind = WEIR_KIND_SEQPACKET, .group = loops, .address = address),
            &client);
    /* doc:end */
    assert_int_equal(err, 0);
    weir_channel_write(client, text_msg("one"), NULL);
    weir_channel_write_and_flush(client, text_msg("three"), NULL);
    assert_true(call_counter_await(&packets, 2));
    weir_channel_abort(client, NULL);
    weir_channel_release(client);
    stop(server, loops);
    assert_int_equal(longest, 5);
}
