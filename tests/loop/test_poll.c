/* SPDX-License-Identifier: Apache-2.0 */
/* Specific to the poll backend: its slots. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "support/loop/faults.h"
#include "support/loop/peer.h"
#include "support/loop/suite.h"
#include "support/memory.h"
#include "support/test.h"

#define MANY 40

#define figure(driver, name) atomic_load(&(driver)->io->stats.name)

static void open_many(struct driver *driver, struct peer *peers[MANY],
                      void (*react)(struct peer *, enum peer_event))
{
    suite_open(driver, BACKEND_POLL);
    for (size_t i = 0; i < MANY; i++) {
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
        peers[i]->react = react;
        peers[i]->arg = peers;
        peer_receive_start(peers[i], false);
        assert_int_equal(peer_remote_send(peers[i], 1 + i), 1 + i);
    }
}

/* Closes another one, which has its event in the same batch or has had it, and opens a third. */
static void close_another(struct peer *peer, enum peer_event event)
{
    struct peer **peers = peer->arg;
    size_t i = 0;

    if (event != PEER_RECEIVED || peer->receives > 1)
        return;
    while (peers[i] != peer)
        i++;
    peer_close(peers[(i * 7 + 3) % MANY]);
    peer_receive_start(peer_open_pair(peer->driver, PAIR_UNIX), false);
}

TEST(poll, keeps_slots_while_others_leave_and_join)
{
    struct peer *peers[MANY];
    struct driver driver;

    open_many(&driver, peers, close_another);
    driver_run_until_idle(&driver);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(peers[i]->closed || peers[i]->bytes == i + 1);
        if (!peers[i]->closed)
            assert_int_equal(peer_remote_send(peers[i], 10), 10);
    }
    driver_run_until_idle(&driver);
    for (size_t i = 0; i < MANY; i++)
        assert_true(peers[i]->closed || peers[i]->bytes == i + 11);
    suite_close(&driver);
}

static void stop_receiving(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_receive_stop(peer);
}

TEST(poll, a_stop_in_a_callback_removes_the_interest_at_once)
{
    struct driver driver;
    struct peer *peer;

    suite_open(&driver, BACKEND_POLL);
    peer = peer_open_pair(&driver, PAIR_UNIX);
    peer->react = stop_receiving;
    peer_receive_start(peer, false);
    assert_int_equal(peer->handle->armed, POLLIN);
    assert_int_equal(peer_remote_send(peer, 1), 1);
    driver_turn(&driver);
    assert_int_equal(peer->receives, 1);
    assert_int_equal(peer->handle->armed, 0);
    suite_close(&driver);
}

/* A slot that moves into one that is still to be seen to brings its event along, once. */
static void close_a_neighbour(struct peer *peer, enum peer_event event)
{
    struct peer **peers = peer->arg;
    size_t i = 0;

    if (event != PEER_POLLED)
        return;
    while (peers[i] != peer)
        i++;
    peer_close(peers[(i * 7 + 3) % MANY]);
}

TEST(poll, delivers_nothing_twice_while_others_leave)
{
    struct peer *peers[MANY];
    struct driver driver;

    suite_open(&driver, BACKEND_POLL);
    for (size_t i = 0; i < MANY; i++) {
        peers[i] = peer_open_pair(&driver, PAIR_UNIX);
        peers[i]->react = close_a_neighbour;
        peers[i]->arg = peers;
        peer_poll_start(peers[i], POLLOUT);
    }
    assert_int_equal(weir__io_wait(driver.io, 0), MANY);
    peer_close(peers[0]);
    peer_close(peers[1]);
    driver_turn(&driver); /* the peers complain of a second event in a turn */
    for (size_t i = 0; i < MANY; i++)
        assert_true(peers[i]->closed || peers[i]->polls == 1);
    driver_turn(&driver);
    suite_close(&driver);
}

static bool dispatch(struct driver *driver, int64_t until_ns)
{
    bool more;

    driver->turn++;
    driver->dispatching = true;
    more = weir__io_dispatch(driver->io, until_ns);
    driver->dispatching = false;
    return more;
}

static size_t delivered_count(struct peer *peers[MANY])
{
    size_t count = 0;

    for (size_t i = 0; i < MANY; i++)
        count += peers[i]->receives;
    return count;
}

/* The last slots move while a part of the batch is not dispatched yet. */
TEST(poll, goes_on_with_a_batch_where_it_stopped)
{
    struct peer *peers[MANY];
    struct driver driver;
    uint64_t waits;

    open_many(&driver, peers, NULL);
    assert_int_equal(weir__io_wait(driver.io, 0), MANY);
    waits = figure(&driver, waits);
    assert_true(dispatch(&driver, 0));
    assert_int_equal(delivered_count(peers), WEIR__IO_CLOCK_INTERVAL);
    assert_int_equal(weir__io_wait(driver.io, WEIR_NEVER), MANY - WEIR__IO_CLOCK_INTERVAL);
    assert_int_equal(figure(&driver, waits), waits);
    peer_close(peers[0]);
    peer_close(peers[MANY - 1]);
    assert_false(dispatch(&driver, WEIR_NEVER));
    assert_int_equal(delivered_count(peers), MANY - 1);
    suite_close(&driver);
}

TEST(poll, drops_a_batch_whose_handles_have_all_left)
{
    struct peer *peers[MANY];
    struct driver driver;

    open_many(&driver, peers, NULL);
    assert_int_equal(weir__io_wait(driver.io, 0), MANY);
    for (size_t i = 0; i < MANY; i++)
        peer_close(peers[i]);
    assert_false(dispatch(&driver, WEIR_NEVER));
    assert_int_equal(delivered_count(peers), 0);
    assert_int_equal(weir__io_wait(driver.io, 0), 0);
    suite_close(&driver);
}

TEST(poll, is_quiet_about_a_hang_up_that_nobody_wants)
{
    struct driver driver;
    struct peer *peer;
    uint64_t events;

    suite_open(&driver, BACKEND_POLL);
    peer = peer_open_pair(&driver, PAIR_UNIX);
    peer_receive_start(peer, false);
    peer_receive_stop(peer);
    peer_remote_close(peer);
    driver_run_until_idle(&driver);
    events = figure(&driver, events);
    driver_run_until_idle(&driver);
    assert_int_equal(figure(&driver, events), events);
    peer_receive_start(peer, false);
    driver_until(&driver, peer->ends == 1);
    suite_close(&driver);
}

TEST(poll, fails_what_is_no_descriptor)
{
    struct driver driver;
    struct peer *peer;

    suite_open(&driver, BACKEND_POLL);
    peer = peer_open(&driver, open("/dev/null", O_RDONLY | O_CLOEXEC));
    (void)close(peer->descriptor);
    peer_poll_start(peer, POLLIN);
    driver_until(&driver, peer->fails == 1);
    assert_int_equal(peer->fail_error, -EBADF);
    driver_run_until_idle(&driver);
    suite_close(&driver);
}

TEST(poll, rebuild_fails_invalid_descriptors_and_keeps_the_others)
{
    struct driver driver;
    struct peer *peer, *other;

    suite_open(&driver, BACKEND_POLL);
    peer = peer_open(&driver, open("/dev/null", O_RDONLY | O_CLOEXEC));
    other = peer_open_pair(&driver, PAIR_UNIX);
    peer_poll_start(peer, POLLIN);
    peer_receive_start(other, false);
    (void)close(peer->descriptor);
    assert_int_equal(weir__io_rebuild(driver.io), 0);
    assert_string_equal(peer->history, "");
    driver_turn(&driver);
    assert_int_equal(peer->fail_error, -EBADF);
    assert_int_equal(peer_remote_send(other, 10), 10);
    driver_until(&driver, other->bytes == 10);
    suite_close(&driver);
}

TEST(poll, has_no_room_without_memory)
{
    struct driver driver;
    struct peer *spare, *other = NULL;

    suite_open(&driver, BACKEND_POLL);
    spare = peer_open_pair(&driver, PAIR_UNIX);
    peer_detach(spare);
    driver_until(&driver, spare->detaches == 1);
    for (int slots = 1; slots < 16; slots++) /* the first is the eventfd's */
        other = peer_open_pair(&driver, PAIR_UNIX);
    for (unsigned n = 1; n <= 2; n++) {
        test_memory_fail_at(n);
        assert_int_equal(peer_attach(spare, &driver), -ENOMEM);
        test_memory_fail_at(0);
    }
    peer_receive_start(other, false);
    assert_int_equal(peer_remote_send(other, 10), 10);
    driver_until(&driver, other->bytes == 10);
    assert_int_equal(peer_attach(spare, &driver), 0);
    peer_receive_start(spare, false);
    assert_int_equal(peer_remote_send(spare, 10), 10);
    driver_until(&driver, spare->bytes == 10);
    suite_close(&driver);
}

TEST(poll, that_is_refused_gives_a_reason)
{
    size_t descriptors = descriptors_open();
    char reason[128];
    weir__io *io;

    for (unsigned n = 1; n <= 3; n++) {
        strcpy(reason, "");
        test_memory_fail_at(n);
        assert_int_equal(backend_create(&backends[BACKEND_POLL], &io, reason, sizeof(reason)),
                         -ENOMEM);
        test_memory_fail_at(0);
        assert_non_null(strstr(reason, "memory"));
    }
    assert_int_equal(descriptors_open(), descriptors);
}
