/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many handles, on each backend.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "support/loop/suite.h"

#define HANDLES 9000
#define MESSAGE 100

static struct peer **open_pairs(struct driver *driver, size_t count)
{
    struct peer **peers = calloc(count, sizeof(struct peer *));
    int pair[2];

    assert_non_null(peers);
    for (size_t i = 0; i < count; i++) {
        if (i % 2 == 0)
            socket_pair(PAIR_UNIX, pair);
        peers[i] = peer_open(driver, pair[i % 2]);
    }
    return peers;
}

static bool all_have(struct peer **peers, size_t count, uint64_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (peers[i]->bytes != bytes)
            return false;
    }
    return true;
}

static void talk(struct driver *driver, struct peer **peers, uint64_t rounds)
{
    for (size_t i = 0; i < HANDLES; i++)
        peer_receive_start(peers[i], false);
    for (uint64_t round = 1; round <= rounds; round++) {
        for (size_t i = 0; i < HANDLES; i++)
            peer_send(peers[i], MESSAGE);
        driver_until(driver, all_have(peers, HANDLES, round * MESSAGE));
    }
}

TEST_EACH_BACKEND(many, handles_all_are_served)
{
    struct peer **peers = open_pairs(driver, HANDLES);

    assert_int_equal(atomic_load(&driver->io->stats.handles), HANDLES);
    talk(driver, peers, 3);
    for (size_t i = 0; i < HANDLES; i += 2)
        peer_close(peers[i]);
    for (size_t i = 0; i < HANDLES; i++)
        driver_until(driver, i % 2 == 0 ? peers[i]->detaches == 1 : peers[i]->ends == 1);
    assert_int_equal(atomic_load(&driver->io->stats.handles), HANDLES / 2);
    free(peers);
}

/* Replaces both ends of a pair by those of a new one, which say something at once. */
static void replace(struct driver *driver, struct peer **peers)
{
    int pair[2];

    socket_pair(PAIR_UNIX, pair);
    for (size_t i = 0; i < 2; i++) {
        peer_close(peers[i]);
        peers[i] = peer_open(driver, pair[i]);
        peer_receive_start(peers[i], false);
    }
    peer_send(peers[0], MESSAGE);
    peer_send(peers[1], MESSAGE);
}

TEST_EACH_BACKEND(many, handles_come_and_go)
{
    struct peer **peers = open_pairs(driver, 1000);

    for (size_t i = 0; i < 5000; i++) {
        replace(driver, &peers[(i * 7918) % 1000]);
        if (i % 10 == 0)
            driver_turn(driver);
    }
    driver_until(driver, all_have(peers, 1000, MESSAGE));
    driver_run_until_idle(driver);
    assert_int_equal(atomic_load(&driver->io->stats.handles), 1000);
    free(peers);
}

/* ---- a dispatch that has to stop ---- */

static void read_it(struct peer *peer, enum peer_event event)
{
    if (event == PEER_POLLED)
        peer_poll_stop(peer);
}

/* Its time is up at once: it goes on where it was the next time, and passes nobody over. */
TEST_EACH_BACKEND(many, ready_ones_are_delivered_over_several_dispatches)
{
    struct peer *peers[500];
    unsigned told = 0;
    unsigned dispatches = 0;

    for (int i = 0; i < 500; i++) {
        peers[i] = peer_open(driver, eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
        peers[i]->react = read_it;
        peer_poll_start(peers[i], POLLIN);
    }
    driver->dispatching = true;
    for (bool more = false; told < 500 && dispatches < 5000; dispatches++) {
        int events = weir__io_wait(driver->io, more ? 0 : weir__monotonic_now() + weir_ms(10));

        assert_true(events >= 0);
        driver->turn++;
        more = weir__io_dispatch(driver->io, 1);
        told = 0;
        for (int i = 0; i < 500; i++)
            told += peers[i]->polls;
    }
    driver->dispatching = false;
    assert_int_equal(told, 500);
    assert_true(dispatches > 1);
    for (int i = 0; i < 500; i++)
        assert_int_equal(peers[i]->polls, 1);
}
