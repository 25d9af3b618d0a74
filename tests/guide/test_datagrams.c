/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/12-datagrams.md shows.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"

/* doc:begin echo */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_datagram_make_reply(weir_datagram_of(msg));
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler echo = {
    .name = "echo", .read = on_read, .read_complete = on_read_complete};

static int init_server(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}
/* doc:end */

#define ADDRESS "127.0.0.1:0"

static weir_server *start(weir_group *loops)
{
    weir_server *server = NULL;
    /* doc:begin server */
    int err = weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .workers = loops,
                                                    .address = ADDRESS, .acceptors = 2,
                                                    .init_server = init_server),
                                &server);
    /* doc:end */

    assert_int_equal(err, 0);
    return server;
}

/* What a client hears: datagrams and errors. */
struct heard {
    struct call_counter datagrams;
    struct call_counter errors;
    size_t bytes;
    int err;
};

static void hear(weir_ctx *ctx, weir_msg *msg)
{
    struct heard *heard = *(struct heard **)weir_ctx_state(ctx);

    /* doc:begin received */
    weir_datagram *datagram = weir_datagram_of(msg);
    weir_buf *buf = weir_datagram_buf(datagram); /* empty if it had no bytes */
    const weir_address *from = weir_datagram_sender(datagram);
    /* doc:end */

    heard->bytes += buf != NULL ? weir_buf_readable(buf) : 0;
    if (from->length > 0)
        call_counter_add(&heard->datagrams);
    weir_msg_release(msg);
}

static void hear_error(weir_ctx *ctx, int err, const char *detail)
{
    struct heard *heard = *(struct heard **)weir_ctx_state(ctx);

    (void)detail;
    heard->err = err;
    call_counter_add(&heard->errors);
}

static int hear_init(void *state, const void *options)
{
    *(void **)state = *(void *const *)options;
    return 0;
}

static const weir_handler hearer = {.name = "hearer",
                                    .state_size = sizeof(void *),
                                    .init = hear_init,
                                    .read = hear,
                                    .error = hear_error};

static int init(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &hearer, &user_data);
}

/* doc:begin client */
static int call(weir_group *loops, const weir_address *server, void *user_data,
                weir_channel **ret_channel)
{
    return weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .group = loops,
                                                        .addresses = server, .address_count = 1,
                                                        .init = init, .user_data = user_data),
                                    ret_channel);
}

static void say(weir_channel *channel, const char *text)
{
    weir_buf *buf;

    if (weir_buf_create_from(text, strlen(text), &buf) == 0) /* a plain buffer: one datagram */
        weir_channel_write_and_flush(channel, weir_buf_msg(buf), NULL);
}
/* doc:end */

static void hang_up(weir_channel *channel)
{
    weir_channel_abort(channel, NULL);
    weir_channel_release(channel);
}

TEST(datagrams, come_back)
{
    weir_group *loops = make_loops(2);
    weir_server *server = start(loops);
    weir_channel *client = NULL;
    struct heard heard = {.err = 0};
    weir_address address;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_int_equal(call(loops, &address, &heard, &client), 0);
    say(client, "hello");
    assert_true(call_counter_await(&heard.datagrams, 1));
    assert_int_equal(heard.bytes, 5);
    hang_up(client);
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    weir_group_release(loops);
}

TEST(datagrams, that_nobody_receives_are_an_error_and_no_end)
{
    weir_group *loops = make_loops(1);
    weir_channel *client = NULL;
    struct heard heard = {.err = 0};
    weir_address address = unused_address();

    assert_int_equal(call(loops, &address, &heard, &client), 0);
    say(client, "anybody?");
    assert_true(call_counter_await(&heard.errors, 1));
    assert_int_equal(heard.err, -ECONNREFUSED);
    assert_true(weir_channel_is_active(client));
    hang_up(client);
    end_group(loops);
}

/* doc:begin send-to */
static int send_to(weir_channel *channel, const weir_address *recipient, weir_msg *content,
                   uint16_t segment, weir_promise *sent)
{
    weir_datagram *datagram;
    int err = weir_datagram_create(content, recipient, &datagram); /* takes the content */

    if (err < 0)
        return err;
    weir_datagram_set_segment_size(datagram, segment); /* 0: all of it is one */
    weir_channel_write_and_flush(channel, weir_datagram_msg(datagram), sent);
    return 0;
}
/* doc:end */

TEST(datagrams, are_cut_into_segments)
{
    weir_group *loops = make_loops(2);
    weir_server *server = start(loops);
    weir_channel *client = NULL;
    struct heard heard = {.err = 0};
    weir_address address;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_int_equal(call(loops, &address, &heard, &client), 0);
    assert_int_equal(send_to(client, NULL, sized_msg(2500), 1000, NULL), 0);
    assert_true(call_counter_await(&heard.datagrams, 3));
    assert_int_equal(heard.bytes, 2500);
    hang_up(client);
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    weir_group_release(loops);
}

/* doc:begin join */
static int join(weir_channel *channel, const char *group, const char *interface)
{
    weir_address address;
    weir_promise *joined = NULL;
    int err = weir_address_parse(group, &address);

    if (!err)
        err = weir_promise_create(NULL, &joined);
    if (!err) {
        weir_udp_join(channel, &address, interface, NULL, joined); /* NULL: whoever sends to it */
        err = weir_promise_sync(joined, WEIR_NEVER);
    }
    weir_promise_release(joined);
    return err;
}
/* doc:end */

TEST(datagrams, are_for_many)
{
    weir_group *loops = make_loops(2);
    weir_server *server = start(loops);

    assert_int_equal(join(weir_server_listener(server, 0), "239.20.21.22:0", "lo"), 0);
    assert_int_equal(join(weir_server_listener(server, 0), "239.20.21.22:0", "no-such"), -ENODEV);
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    weir_group_release(loops);
}

/* ---- on a loop of the program's own ---- */

/* doc:begin own-loop */
/* On the thread that runs `loop`. */
static int listen_on(weir_executor *loop, const char *address, weir_server **ret_server)
{
    return weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .loop = loop,
                                                 .address = address, .init_server = init_server),
                             ret_server);
}
/* doc:end */

static void await_bytes(weir_executor *loop, int peer)
{
    char byte;

    while (recv(peer, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0) {
        assert_int_equal(errno, EAGAIN);
        assert_true(weir_loop_run_once(loop, weir_ms(100)) >= 0);
    }
}

TEST(datagrams, come_to_a_loop_of_the_programs_own)
{
    weir_executor *loop = NULL;
    weir_server *server = NULL;
    weir_address address;
    int peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_int_equal(weir_loop_create(NULL, &loop), 0);
    assert_int_equal(listen_on(loop, ADDRESS, &server), 0);
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_int_equal(connect(peer, weir_address_sockaddr(&address), address.length), 0);
    assert_int_equal(send(peer, "hello", 5, 0), 5);
    await_bytes(loop, peer);
    raw_client_receive(peer, "hello");
    close(peer);
    assert_int_equal(weir_server_stop(server, 0, weir_seconds(10)), 0);
    weir_server_release(server);
    weir_executor_release(loop);
}
