/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/06-channels.md shows.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/echo_service.h"

/* doc:begin ask */
static void introduce(weir_channel *channel, FILE *to)
{
    char text[320], peer[WEIR_ADDRESS_TEXT_SIZE] = "nobody";
    weir_address address;

    if (weir_channel_remote_address(channel, &address) == 0)
        weir_address_format(&address, peer, sizeof(peer));
    fprintf(to, "%s talks to %s, and %lld bytes wait to be sent\n",
            weir_channel_format(channel, text, sizeof(text)), peer,
            (long long)weir_channel_pending_bytes(channel));
}
/* doc:end */

static const weir_handler nothing = {.name = "nothing"};

TEST(channels, introduce_themselves)
{
    weir_embedded *embedded = embed(&nothing, NULL);
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    assert_non_null(to);
    introduce(weir_embedded_channel(embedded), to);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, "talks to inproc:embedded, and 0 bytes wait to be sent\n"));
    free(text);
    weir_embedded_release(embedded);
}

static weir_server *listen_with_options(weir_group *group, struct echo_service *service)
{
    weir_server *server = NULL;
    /* doc:begin options */
    int cork = 1;
    const weir_socket_option more[] = {{IPPROTO_TCP, TCP_CORK, cork}}; /* level, name, value */
    const weir_channel_options *child =
        WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_seconds(1), .high_mark = 1 << 20,
                             .keep_alive = true, .socket_options = more, .socket_option_count = 1);
    int err = weir_server_start(WEIR_SERVER_OPTIONS(.workers = group, .address = "127.0.0.1:0",
                                                    .init_child = echo_service_init,
                                                    .user_data = service, .child_options = child),
                                &server);
    /* doc:end */

    assert_int_equal(err, 0);
    return server;
}

TEST(channels, have_options)
{
    weir_group *group = make_loops(1);
    struct echo_service service = {0};
    weir_server *server = listen_with_options(group, &service);
    weir_channel_options options = {0};

    weir_channel_get_options(weir_server_listener(server, 0), &options);
    assert_int_equal(options.close_timeout_ns, weir_seconds(3)); /* the listener's own */
    echo_service_stop(server);
    weir_group_release(group);
}

/* doc:begin by-hand */
static int connect_by_hand(weir_group *group, const char *where, weir_channel **ret_channel)
{
    weir_channel *channel = NULL;
    weir_promise *connected = NULL;
    weir_address remote;
    int err = weir_address_parse(where, &remote);

    if (!err)
        err = weir_tcp_create(NULL, &channel);
    if (!err)
        err = weir_promise_create(NULL, &connected);
    if (!err) {
        weir_group_register(group, channel, NULL); /* it has a loop from here on */
        weir_channel_connect(channel, &remote, NULL, connected);
        err = weir_promise_sync(connected, WEIR_NEVER);
    }
    weir_promise_release(connected);
    if (err < 0)
        weir_channel_release(channel); /* NULL is ignored; a failed connect has closed it */
    else
        *ret_channel = channel;
    return err;
}
/* doc:end */

TEST(channels, are_connected_by_hand)
{
    weir_group *group = make_loops(1);
    struct echo_service service = {0};
    weir_server *server = listen_with_options(group, &service);
    weir_channel *channel = NULL;
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    weir_address_format(&address, text, sizeof(text));
    assert_int_equal(connect_by_hand(group, text, &channel), 0);
    assert_true(weir_channel_is_active(channel));
    weir_channel_release(channel);
    echo_service_stop(server);
    weir_group_release(group);
}

/* doc:begin attribute */
struct session {
    char user[32];
};

static const weir_attribute session_of = {.name = "session", .free = free};

static int log_in(weir_channel *channel, const char *user)
{
    struct session *session = calloc(1, sizeof(*session));
    int err = session == NULL ? -ENOMEM : 0;

    if (!err) {
        snprintf(session->user, sizeof(session->user), "%s", user);
        err = weir_attribute_set(channel, &session_of, session); /* freed with the channel */
    }
    if (err < 0)
        free(session);
    return err;
}
/* doc:end */

TEST(channels, carry_values)
{
    weir_embedded *embedded = embed(&nothing, NULL);
    weir_channel *channel = weir_embedded_channel(embedded);

    assert_int_equal(log_in(channel, "ada"), 0);
    assert_string_equal(((struct session *)weir_attribute_get(channel, &session_of))->user, "ada");
    weir_embedded_release(embedded);
}

/* doc:begin half */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    if (event == weir_event_input_closed())
        weir_close(ctx, NULL); /* the peer sends no more; pending writes are sent first */
    weir_fire_event(ctx, event);
}

static const weir_handler answer_then_close = {.name = "half", .event = on_event};
/* doc:end */

TEST(channels, close_by_halves)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
            &embedded),
        0);
    assert_int_equal(
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &answer_then_close, NULL), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("answer")), 0);
    weir_embedded_end_input(embedded);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_text(weir_embedded_read_outbound(embedded), "answer");
    weir_embedded_release(embedded);
}

/* doc:begin adopt */
static int adopt(weir_group *group, int descriptor, const weir_handler *handler,
                 weir_channel **ret_channel)
{
    weir_channel *channel;
    int err = weir_adopt(descriptor, NULL, &channel); /* a connected socket, of whatever kind */

    if (err < 0)
        return err; /* the descriptor is still ours */
    err = weir_pipeline_add_last(weir_channel_pipeline(channel), handler, NULL);
    if (err < 0) {
        weir_channel_release(channel); /* also closes it: it was never registered */
        return err;
    }
    weir_group_register(group, channel, NULL); /* from here on it is active */
    *ret_channel = channel;
    return 0;
}
/* doc:end */

static void say_hello(weir_ctx *ctx)
{
    weir_write_and_flush(ctx, text_msg("hello"), NULL);
}

static const weir_handler greeter = {.name = "greeter", .active = say_hello};

TEST(channels, are_made_of_sockets_that_exist)
{
    weir_group *group = make_loops(1);
    weir_channel *channel = NULL;
    char text[6] = "";
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(adopt(group, ends[0], &greeter, &channel), 0);
    assert_int_equal(recv(ends[1], text, 5, MSG_WAITALL), 5);
    assert_string_equal(text, "hello");
    close(ends[1]);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
    end_group(group);
}
