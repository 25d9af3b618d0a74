/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closing, on each backend: with operations in flight, inside a batch, with the descriptor's number
 * reused at once. After close the only callback is `detached`.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/loop/suite.h"

/* ---- with everything in flight ---- */

struct scene {
    struct address address;
    struct peer *peers[6];
    int client;
};

/* One of each: accepting, connecting, receiving, sending, both, polling. */
static void set_scene(struct driver *driver, struct scene *scene)
{
    struct peer **peers = scene->peers;

    peers[0] = peer_open(driver, socket_listen(AF_INET, 8, &scene->address));
    peer_accept_start(peers[0]);
    scene->client = socket_connect(&scene->address);
    peers[1] = peer_open(driver, socket_new(AF_INET, SOCK_STREAM));
    peer_connect(peers[1], &scene->address);
    peers[2] = peer_open_pair(driver, PAIR_TCP);
    peer_receive_start(peers[2], false);
    assert_int_equal(peer_remote_send(peers[2], 10000), 10000);
    peers[3] = peer_open_pair(driver, PAIR_UNIX);
    peer_send(peers[3], 1 << 20);
    peers[4] = peer_open_pair(driver, PAIR_TCP);
    peer_receive_start(peers[4], true);
    assert_int_equal(peer_remote_send(peers[4], 10000), 10000);
    peer_send(peers[4], 16 << 20);
    peers[5] = peer_open(driver, eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
    peer_poll_start(peers[5], POLLIN);
}

static void close_scene(struct driver *driver, struct scene *scene)
{
    for (size_t i = 0; i < 6; i++)
        peer_close(scene->peers[i]);
    for (size_t i = 0; i < 6; i++) {
        driver_until(driver, scene->peers[i]->detaches == 1);
        assert_int_equal(scene->peers[i]->detaches, 1);
    }
    (void)close(scene->client);
}

TEST_EACH_BACKEND(close, with_everything_just_begun)
{
    struct scene scene;

    set_scene(driver, &scene);
    close_scene(driver, &scene);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(scene.peers[i]->history, "x");
}

TEST_EACH_BACKEND(close, with_everything_under_way)
{
    for (int turns = 0; turns < 4; turns++) {
        struct scene scene;

        set_scene(driver, &scene);
        for (int i = 0; i < turns; i++)
            driver_turn(driver);
        close_scene(driver, &scene);
    }
}

TEST_EACH_BACKEND(close, between_the_wait_and_the_dispatch)
{
    struct scene scene;

    set_scene(driver, &scene);
    driver_turn(driver);
    assert_true(weir__io_wait(driver->io, weir__monotonic_now() + weir_ms(100)) >= 0);
    close_scene(driver, &scene);
}

TEST_EACH_BACKEND(close, of_a_handle_that_wants_nothing)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_close(peer);
    assert_string_equal(peer->history, "");
    driver_until(driver, peer->detaches == 1);
    driver_run_until_idle(driver);
    assert_string_equal(peer->history, "x");
}

TEST_EACH_BACKEND(close, closes_the_descriptor)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct peer *peer = peer_open_pair(driver, kinds[i]);
        struct pollfd hup = {peer->remote, POLLIN, 0};

        peer_receive_start(peer, false);
        driver_turn(driver);
        peer_close(peer);
        driver_until(driver, peer->detaches == 1 && poll(&hup, 1, 0) == 1);
        assert_int_equal(socket_drain(peer->remote), 0);
    }
}

static void nothing_more(struct peer *peer, enum peer_event event)
{
    if (event == PEER_DETACHED)
        assert_int_equal(fcntl(*(int *)peer->arg, F_GETFD), -1);
}

TEST_EACH_BACKEND(close, has_closed_the_descriptor_when_it_is_detached)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    int descriptor = peer->descriptor;

    peer->arg = &descriptor;
    peer->react = nothing_more;
    peer_receive_start(peer, false);
    driver_turn(driver);
    peer_close(peer);
    driver_until(driver, peer->detaches == 1);
}

/* ---- inside a batch ---- */

struct group {
    struct peer *members[20];
    unsigned closed;
};

static void close_the_others(struct peer *peer, enum peer_event event)
{
    struct group *group = peer->arg;

    if (event != PEER_RECEIVED && event != PEER_POLLED)
        return;
    for (size_t i = 0; i < 20; i++) {
        if (group->members[i] != peer && !group->members[i]->closed) {
            peer_close(group->members[i]);
            group->closed++;
        }
    }
}

static void open_group(struct driver *driver, struct group *group)
{
    *group = (struct group){.closed = 0};
    for (size_t i = 0; i < 20; i++) {
        group->members[i] = peer_open_pair(driver, i % 2 == 0 ? PAIR_TCP : PAIR_UNIX);
        group->members[i]->arg = group;
        peer_receive_start(group->members[i], false);
    }
    driver_run_until_idle(driver);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(peer_remote_send(group->members[i], 5000), 5000);
}

/* All are ready at once: whoever comes first closes the rest, whose events stand behind it. */
TEST_EACH_BACKEND(close, of_all_others_of_the_batch)
{
    struct group group;

    open_group(driver, &group);
    for (size_t i = 0; i < 20; i++)
        group.members[i]->react = close_the_others;
    driver_until(driver, group.closed == 19);
    driver_run_until_idle(driver);
    for (size_t i = 0; i < 20; i++) {
        struct peer *peer = group.members[i];

        if (peer->closed)
            assert_string_equal(peer->history, "x");
        else
            assert_int_equal(peer->bytes, 5000);
    }
}

static void close_self(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_close(peer);
}

TEST_EACH_BACKEND(close, of_each_of_the_batch_by_itself)
{
    struct group group;

    open_group(driver, &group);
    for (size_t i = 0; i < 20; i++)
        group.members[i]->react = close_self;
    for (size_t i = 0; i < 20; i++) {
        driver_until(driver, group.members[i]->detaches == 1);
        assert_string_equal(group.members[i]->history, "rx");
    }
}

/* ---- reused numbers ---- */

struct reuse {
    struct peer *members[2];
    struct peer *heirs[8];
    int number; /* of the descriptor that was closed */
    unsigned count;
    unsigned same; /* heirs that have its number */
};

/* New sockets, one of which gets the number if it is free already. Their own data are there. */
static void open_heirs(struct driver *driver, struct reuse *reuse, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct peer *heir = peer_open_pair(driver, PAIR_UNIX);

        reuse->same += heir->descriptor == reuse->number || heir->remote == reuse->number;
        heir->in.seed = heir->remote_out.seed = 77;
        (void)peer_remote_send(heir, 100 + reuse->count);
        peer_receive_start(heir, false);
        reuse->heirs[reuse->count++] = heir;
    }
}

static void close_and_replace(struct peer *peer, enum peer_event event)
{
    struct reuse *reuse = peer->arg;
    struct peer *other;

    if (event != PEER_RECEIVED || reuse->count > 0)
        return;
    other = reuse->members[reuse->members[0] == peer];
    reuse->number = other->descriptor;
    peer_close(other);
    open_heirs(peer->driver, reuse, 4);
}

/*
 * A and B are ready in one batch. A's call-back closes B and opens others, which may get B's number
 * while B's event is still in the batch: it must reach neither B nor them.
 */
static void reuse_a_number(struct driver *driver, enum pair_kind kind)
{
    struct reuse reuse = {.count = 0};

    for (size_t i = 0; i < 2; i++) {
        reuse.members[i] = peer_open_pair(driver, kind);
        reuse.members[i]->arg = &reuse;
        reuse.members[i]->react = close_and_replace;
        peer_receive_start(reuse.members[i], false);
    }
    driver_run_until_idle(driver);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(peer_remote_send(reuse.members[i], 1000), 1000);
    driver_until(driver, reuse.members[0]->detaches + reuse.members[1]->detaches == 1);
    open_heirs(driver, &reuse, 4); /* those get it for sure */
    for (unsigned i = 0; i < 8; i++) {
        driver_until(driver, reuse.heirs[i]->bytes == 100 + i);
        assert_int_equal(peer_remote_send(reuse.heirs[i], 50), 50);
        driver_until(driver, reuse.heirs[i]->bytes == 150 + i);
    }
    assert_true(reuse.same > 0);
    for (size_t i = 0; i < 2; i++) {
        if (reuse.members[i]->closed)
            assert_string_equal(reuse.members[i]->history, "x");
        else
            assert_int_equal(reuse.members[i]->bytes, 1000);
    }
}

TEST_EACH_BACKEND(close, a_reused_number_gets_no_event_of_the_closed_one)
{
    for (int i = 0; i < 10; i++)
        reuse_a_number(driver, i % 2 == 0 ? PAIR_TCP : PAIR_UNIX);
}

static void close_and_reopen(struct peer *peer, enum peer_event event)
{
    struct reuse *reuse = peer->arg;

    if (event != PEER_RECEIVED)
        return;
    reuse->number = peer->descriptor;
    peer_close(peer);
    open_heirs(peer->driver, reuse, 4);
}

TEST_EACH_BACKEND(close, in_the_call_back_never_reads_from_the_reused_number)
{
    struct reuse reuse = {.count = 0};
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->arg = &reuse;
    peer->react = close_and_reopen;
    peer->handle->window = 100;
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 5000), 5000);
    driver_until(driver, reuse.count == 4);
    for (unsigned i = 0; i < 4; i++)
        driver_until(driver, reuse.heirs[i]->bytes == 100 + i);
    assert_string_equal(peer->history, "rx");
}
