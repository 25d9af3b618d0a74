/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel group of real connections: everybody who comes to a server.
 */
#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel_group.h>
#include <weir/error.h>
#include <weir/pipeline.h>
#include <weir/server.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"

#define VISITORS 24

struct party {
    weir_group *workers;
    weir_server *server;
    weir_channel_group *guests;
    struct call_counter joined;
    struct call_counter left; /* and no member any more */
    int peers[VISITORS];
};

static void on_left(weir_promise *promise, void *user_data)
{
    (void)promise;
    call_counter_add(user_data);
}

/* The listener comes after the group's own. */
static int admit(weir_channel *channel, void *user_data)
{
    struct party *party = user_data;
    int err = weir_channel_group_add(party->guests, channel);

    if (err == 0)
        err = weir_promise_add_listener(weir_channel_closed(channel), on_left, &party->left);
    if (err == 0)
        call_counter_add(&party->joined);
    return err;
}

static void open_party(struct party *party, struct host *host)
{
    memset(party, 0, sizeof(*party));
    assert_int_equal(weir_channel_group_create(NULL, &party->guests), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 2),
                                       &party->workers),
                     0);
    assert_int_equal(
        weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = host->group, .workers = party->workers,
                                .address = "127.0.0.1:0", .init_child = admit,
                                .child_options = WEIR_CHANNEL_OPTIONS(.send_buffer = 16384),
                                .user_data = party),
            &party->server),
        0);
    for (int i = 0; i < VISITORS; i++)
        party->peers[i] = raw_client_connect(party->server);
    assert_true(call_counter_await(&party->joined, VISITORS));
}

static void close_party(struct party *party)
{
    for (int i = 0; i < VISITORS; i++)
        raw_client_close(party->peers[i]);
    assert_int_equal(weir_server_stop(party->server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(party->server);
    assert_int_equal(weir_channel_group_size(party->guests), 0);
    weir_channel_group_release(party->guests);
    weir_group_release(party->workers);
}

static weir_promise *new_promise(void)
{
    weir_promise *promise = NULL;

    assert_int_equal(weir_promise_create(NULL, &promise), 0);
    return promise;
}

static weir_msg *text(const char *words)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(words, strlen(words), &buf), 0);
    return weir_buf_msg(buf);
}

static void say_to_all(struct party *party, const char *words, uintptr_t hearers)
{
    weir_promise *done = new_promise();

    weir_channel_group_write_and_flush(party->guests, text(words), done, NULL, NULL);
    assert_int_equal(weir_promise_sync(done, TEST_TIMEOUT_NS), 0);
    assert_int_equal((uintptr_t)weir_promise_value(done), hearers);
    weir_promise_release(done);
}

TEST_EACH_LOOP(broadcast, reaches_all_channels_on_every_loop)
{
    struct party party;

    open_party(&party, host);
    say_to_all(&party, "hello, ", VISITORS);
    say_to_all(&party, "world", VISITORS);
    for (int i = 0; i < VISITORS; i++)
        raw_client_receive(party.peers[i], "hello, world");
    close_party(&party);
}

TEST_EACH_LOOP(broadcast, skips_closed_channels)
{
    struct party party;

    open_party(&party, host);
    for (int i = 0; i < 3; i++)
        raw_client_close(party.peers[i]);
    assert_true(call_counter_await(&party.left, 3));
    assert_int_equal(weir_channel_group_size(party.guests), VISITORS - 3);
    say_to_all(&party, "x", VISITORS - 3);
    for (int i = 0; i < 3; i++)
        party.peers[i] = raw_client_connect(party.server);
    close_party(&party);
}

TEST_EACH_LOOP(broadcast, of_the_end_reaches_everybody)
{
    struct party party;
    weir_promise *done = new_promise();

    open_party(&party, host);
    weir_channel_group_write(party.guests, text("bye"), NULL, NULL, NULL);
    weir_channel_group_close(party.guests, done, weir_match_connections, NULL);
    for (int i = 0; i < VISITORS; i++) {
        raw_client_receive(party.peers[i], "bye");
        raw_client_receive_end(party.peers[i]);
        raw_client_close(party.peers[i]);
    }
    assert_int_equal(weir_promise_sync(done, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(&party.left, VISITORS));
    assert_int_equal(weir_channel_group_size(party.guests), 0);
    for (int i = 0; i < VISITORS; i++)
        party.peers[i] = raw_client_connect(party.server);
    weir_promise_release(done);
    close_party(&party);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void await_loops(struct party *party)
{
    for (size_t i = 0; i < 2; i++)
        run_on_executor(weir_group_at(party->workers, i), nothing, NULL);
}

struct pending {
    int64_t most;
    unsigned writable;
};

static void look_at(weir_channel *channel, void *user_data)
{
    struct pending *pending = user_data;

    if (weir_channel_pending_bytes(channel) > pending->most)
        pending->most = weir_channel_pending_bytes(channel);
    pending->writable += weir_channel_is_writable(channel);
}

#define LARGE 100000

/*
 * A client that does not read receives nothing more once it is full. Delivery by the kernel takes
 * time: a client that is full for a moment may have room again, and receives some more.
 */
TEST_EACH_LOOP(broadcast, is_not_queued_for_clients_that_do_not_read)
{
    static char large[LARGE + 1];
    struct party party;
    struct pending pending = {.writable = VISITORS};

    memset(large, 'x', LARGE);
    open_party(&party, host);
    for (int i = 0; i < 50 || pending.writable > 0; i++) {
        weir_channel_group_write_and_flush(party.guests, text(large), NULL, weir_match_writable,
                                           NULL);
        await_loops(&party);
        pending = (struct pending){0};
        weir_channel_group_foreach(party.guests, look_at, &pending);
        assert_in_range(pending.most, 0, 64 * 1024 + LARGE + 1000);
    }
    assert_true(pending.most > 0);
    close_party(&party);
}
