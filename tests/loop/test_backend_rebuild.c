/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacing the kernel object, on each backend: started operations stay started, and nothing is
 * lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/executor/log_capture.h"
#include "support/loop/suite.h"

#define TOTAL (4u << 20)

static void rebuild(struct driver *driver)
{
    assert_int_equal(weir__io_rebuild(driver->io), 0);
}

TEST_EACH_BACKEND(rebuild, of_nothing)
{
    for (int i = 0; i < 10; i++) {
        rebuild(driver);
        driver_turn(driver);
    }
}

/* ---- during traffic ---- */

static struct peer *open_talker(struct driver *driver, int descriptor)
{
    struct peer *peer = peer_open(driver, descriptor);

    peer_receive_start(peer, false);
    peer_send(peer, TOTAL);
    return peer;
}

/* A handle continues to the last byte, or gets `failed`: none hangs. */
static bool is_settled(const struct peer *peer, const struct peer *other)
{
    return peer->fails > 0 || other->fails > 0 ||
           (peer->bytes == TOTAL && peer->bytes_sent == TOTAL);
}

static void talk_through_rebuilds(struct driver *driver, enum pair_kind kind)
{
    struct peer *peers[8];
    int pair[2];

    for (int i = 0; i < 8; i++) {
        if (i % 2 == 0)
            socket_pair(kind, pair);
        peers[i] = open_talker(driver, pair[i % 2]);
    }
    for (int i = 0; i < 20; i++) {
        for (int turns = 0; turns < i % 4; turns++)
            driver_turn(driver);
        rebuild(driver);
    }
    for (int i = 0; i < 8; i++) {
        driver_until(driver, is_settled(peers[i], peers[i ^ 1]));
        assert_int_equal(peers[i]->fails, 0); /* sends can be cancelled: all of them settle */
    }
}

TEST_EACH_BACKEND(rebuild, in_the_midst_of_traffic_loses_no_byte)
{
    talk_through_rebuilds(driver, PAIR_TCP);
    talk_through_rebuilds(driver, PAIR_UNIX);
}

TEST_EACH_BACKEND(rebuild, keeps_what_was_started)
{
    struct address address;
    struct peer *listener = peer_open(driver, socket_listen(AF_INET, 8, &address));
    struct peer *poller = peer_open(driver, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    struct peer *reader = peer_open_pair(driver, PAIR_TCP);
    struct peer *stopped = peer_open_pair(driver, PAIR_TCP);
    const uint64_t one = 1;

    peer_accept_start(listener);
    peer_poll_start(poller, POLLIN);
    peer_receive_start(reader, false);
    peer_receive_start(stopped, false);
    peer_receive_stop(stopped);
    driver_run_until_idle(driver);
    rebuild(driver);

    assert_int_equal(peer_remote_send(stopped, 100), 100);
    assert_int_equal(peer_remote_send(reader, 100), 100);
    assert_int_equal(write(poller->descriptor, &one, sizeof(one)), sizeof(one));
    (void)close(socket_connect(&address));
    driver_until(driver, listener->accepts == 1 && poller->polls > 0 && reader->bytes == 100);
    peer_poll_stop(poller);
    driver_run_until_idle(driver);
    assert_int_equal(stopped->bytes, 0);
    peer_receive_start(stopped, false);
    driver_until(driver, stopped->bytes == 100);
}

/* Events that the old one had found, but not yet told. */
TEST_EACH_BACKEND(rebuild, between_the_wait_and_the_dispatch)
{
    struct peer *peers[20];

    for (int i = 0; i < 20; i++) {
        peers[i] = peer_open_pair(driver, PAIR_TCP);
        peer_receive_start(peers[i], false);
    }
    driver_run_until_idle(driver);
    for (int i = 0; i < 20; i++)
        assert_int_equal(peer_remote_send(peers[i], 20000), 20000);
    peer_remote_close(peers[0]);
    assert_true(weir__io_wait(driver->io, weir__monotonic_now() + TEST_TIMEOUT_NS) > 0);
    rebuild(driver);
    for (int i = 0; i < 20; i++)
        driver_until(driver, peers[i]->bytes == 20000);
    driver_until(driver, peers[0]->ends == 1);
}

TEST_EACH_BACKEND(rebuild, while_connecting_comes_to_an_end)
{
    struct address address;
    int listener = socket_listen(AF_INET, 8, &address);
    struct peer *client = peer_open(driver, socket_new(AF_INET, SOCK_STREAM));

    peer_connect(client, &address);
    rebuild(driver);
    driver_until(driver, client->connects + client->fails == 1);
    if (client->connects == 1)
        assert_int_equal(client->connect_result, 0);
    (void)close(listener);
}

TEST_EACH_BACKEND(rebuild, with_handles_that_are_being_closed)
{
    struct peer *peers[10];

    for (int i = 0; i < 10; i++) {
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
        peer_receive_start(peers[i], false);
        peer_send(peers[i], TOTAL);
    }
    driver_turn(driver);
    for (int i = 0; i < 10; i++)
        peer_close(peers[i]);
    rebuild(driver);
    for (int i = 0; i < 10; i++) {
        driver_until(driver, peers[i]->detaches == 1);
        assert_string_equal(peers[i]->history, "x");
    }
}

TEST_EACH_BACKEND(rebuild, with_datagrams_and_file_ranges_waiting)
{
    struct peer *mail = peer_open_pair(driver, PAIR_UNIX_DATAGRAM);
    struct iovec vector = {mail->history, 10};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &vector, .msg_iovlen = 1}};

    (void)socket_fill(mail->descriptor);
    assert_int_equal(peer_send_datagrams(mail, &message, 1), 0);
    driver_turn(driver);
    rebuild(driver);
    driver_run_until_idle(driver);
    assert_int_equal(mail->sents, 0);
    assert_true(socket_drain(mail->remote) > 0);
    driver_until(driver, mail->sents == 1);
}

/* ---- what cannot be rebuilt ---- */

/* Its number is beyond those that a new kernel object gets. */
static struct peer *open_doomed(struct driver *driver)
{
    int pair[2];
    struct peer *peer;

    socket_pair(PAIR_TCP, pair);
    peer = peer_open(driver, fcntl(pair[0], F_DUPFD_CLOEXEC, 500));
    peer->remote = pair[1];
    (void)close(pair[0]);
    peer_receive_start(peer, false);
    return peer;
}

TEST_EACH_BACKEND(rebuild, a_bad_descriptor_fails_alone)
{
    struct peer *good = peer_open_pair(driver, PAIR_TCP);
    struct peer *bad = open_doomed(driver);

    peer_receive_start(good, false);
    driver_run_until_idle(driver);
    (void)close(bad->descriptor);
    rebuild(driver);
    driver_until(driver, bad->fails == 1);
    assert_int_equal(bad->fail_error, -EBADF);
    peer_close(bad);
    driver_until(driver, bad->detaches == 1);
    assert_int_equal(good->fails, 0);
    assert_int_equal(peer_remote_send(good, 100), 100);
    driver_until(driver, good->bytes == 100);
}

static void close_failed(struct peer *peer, enum peer_event event)
{
    if (event == PEER_FAILED)
        peer_close(peer);
}

TEST_EACH_BACKEND(rebuild, a_failed_handle_may_be_closed_in_the_call_back)
{
    struct peer *bad = open_doomed(driver);

    bad->react = close_failed;
    driver_run_until_idle(driver);
    (void)close(bad->descriptor);
    rebuild(driver);
    driver_until(driver, bad->detaches == 1);
    assert_string_equal(bad->history, "fx");
}

/*
 * No descriptor is available, not even the one that the old kernel object used. poll needs none,
 * but may not poll more descriptors than the limit.
 */
static int rebuild_in_vain(struct driver *driver)
{
    rlim_t limit = descriptors_forbid();
    int err;

    log_capture_start();
    descriptors_limit(3);
    err = weir__io_rebuild(driver->io);
    descriptors_limit(limit);
    if (driver->backend->type != &weir__io_poll)
        assert_int_equal(err, -EMFILE);
    return err;
}

TEST_EACH_BACKEND(rebuild, may_fail_and_work_later)
{
    struct peer *peers[2];
    int pair[2];

    socket_pair(PAIR_TCP, pair);
    for (int i = 0; i < 2; i++)
        peers[i] = open_talker(driver, pair[i]);
    for (int i = 0; i < 5; i++) {
        driver_turn(driver);
        (void)rebuild_in_vain(driver);
        (void)rebuild_in_vain(driver);
        rebuild(driver);
    }
    driver_until(driver, is_settled(peers[0], peers[1]) && is_settled(peers[1], peers[0]));
    assert_int_equal(peers[0]->fails + peers[1]->fails, 0);
}

/* While there is none, handles come and go, and what they want is remembered. */
TEST_EACH_BACKEND(rebuild, that_failed_leaves_handles_that_come_and_go)
{
    struct peer *before = peer_open_pair(driver, PAIR_TCP);
    struct peer *closed = peer_open_pair(driver, PAIR_TCP);
    struct peer *moved = peer_open_pair(driver, PAIR_TCP);
    struct peer *later;

    peer_receive_start(before, false);
    peer_receive_start(closed, false);
    peer_receive_start(moved, false);
    driver_turn(driver);
    if (rebuild_in_vain(driver) < 0) {
        peer_close(closed);
        peer_detach(moved);
        driver_until(driver, closed->detaches == 1 && moved->detaches == 1);
    }
    later = peer_open_pair(driver, PAIR_TCP);
    peer_receive_start(later, false);
    driver_run_until_idle(driver);
    rebuild(driver);
    assert_int_equal(peer_remote_send(before, 100), 100);
    assert_int_equal(peer_remote_send(later, 100), 100);
    driver_until(driver, before->bytes == 100 && later->bytes == 100);
}

TEST_EACH_BACKEND(rebuild, that_failed_leaves_waits_that_can_be_woken)
{
    int64_t begin_ns = weir__monotonic_now();

    (void)rebuild_in_vain(driver);
    assert_int_equal(weir__io_wait(driver->io, begin_ns + weir_ms(20)), 0);
    assert_false(driver->io->woken);
    for (int i = 0; i < 10; i++) {
        weir__io_wake(driver->io);
        assert_int_equal(weir__io_wait(driver->io, begin_ns + TEST_TIMEOUT_NS), 0);
        assert_true(driver->io->woken);
    }
    assert_true(weir__monotonic_now() - begin_ns < TEST_TIMEOUT_NS);
    rebuild(driver);
    weir__io_wake(driver->io);
    assert_int_equal(weir__io_wait(driver->io, begin_ns + 2 * TEST_TIMEOUT_NS), 0);
    assert_true(driver->io->woken);
}
