/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets whose peers pass unwanted descriptors: a read ends at the bytes that came with one,
 * though more data follows, and no edge reports that. The result is the same on every backend; how
 * a ring finds out depends on the number of sockets that a turn reads from.
 */
#include <errno.h>
#include <string.h>

#include "support/loop/faults.h"
#include "support/loop/suite.h"

#define CROWD 80 /* more than a ring has doubts about at a time */

static void send_descriptor(struct peer *peer, size_t count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    char memory[100];
    struct iovec vector = {memory, count};
    struct msghdr message = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    stream_write(&peer->remote_out, memory, count);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &peer->remote, sizeof(int));
    assert_int_equal(sendmsg(peer->remote, &message, 0), count);
}

/* So many peers, each with a piece to read that hides another one. */
static void open_crowd(struct driver *driver, struct peer **peers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
        peers[i]->handle->unix_socket = true;
        peer_receive_start(peers[i], false);
    }
    driver_run_until_idle(driver); /* the edge is reported */
}

static void send_hidden(struct peer **peers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        send_descriptor(peers[i], 100);
        assert_int_equal(peer_remote_send(peers[i], 100), 100);
    }
}

static bool all_have(struct peer **peers, unsigned count, uint64_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        if (peers[i]->bytes != bytes)
            return false;
    }
    return true;
}

TEST_EACH_BACKEND(uring_recheck, one_reader_does_not_stall)
{
    struct peer *peer;

    open_crowd(driver, &peer, 1);
    for (unsigned i = 1; i <= 20; i++) {
        send_hidden(&peer, 1);
        driver_until(driver, peer->bytes == 200ull * i);
    }
}

TEST_EACH_BACKEND(uring_recheck, many_readers_do_not_stall)
{
    static const unsigned counts[] = {3, 4, 5, 20, CROWD};
    struct peer *peers[CROWD];
    uint64_t bytes = 0;

    open_crowd(driver, peers, CROWD);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (unsigned times = 1; times <= 3; times++) {
            send_hidden(peers, counts[i]);
            driver_until(driver, all_have(peers, counts[i], bytes + 200 * times));
        }
        send_hidden(peers + counts[i], CROWD - counts[i]);
        send_hidden(peers + counts[i], CROWD - counts[i]);
        send_hidden(peers + counts[i], CROWD - counts[i]);
        bytes += 600;
        driver_until(driver, all_have(peers, CROWD, bytes));
    }
}

/* Several reads of one turn may be cut. */
TEST_EACH_BACKEND(uring_recheck, what_is_hidden_may_hide_more)
{
    struct peer *peers[8];

    open_crowd(driver, peers, 8);
    for (int i = 0; i < 5; i++)
        send_hidden(peers, 8);
    driver_until(driver, all_have(peers, 8, 5 * 200));
}

static void close_when_told(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_close(peer);
}

static void detach_when_told(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_detach(peer);
}

static void stop_when_told(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_receive_stop(peer);
}

TEST_EACH_BACKEND(uring_recheck, end_with_the_handle)
{
    struct peer *peers[9];

    open_crowd(driver, peers, 9);
    for (int i = 0; i < 9; i += 3) {
        peers[i]->react = close_when_told;
        peers[i + 1]->react = detach_when_told;
    }
    send_hidden(peers, 9);
    for (int i = 0; i < 9; i += 3)
        driver_until(driver, peers[i]->detaches == 1 && peers[i + 1]->detaches == 1 &&
                                 peers[i + 2]->bytes == 200);
}

/* A handle that is attached again, here or on another loop, misses nothing. */
TEST_EACH_BACKEND(uring_recheck, do_not_withhold_data_from_another_loop)
{
    struct peer *peers[8];

    open_crowd(driver, peers, 8);
    for (int i = 0; i < 8; i++)
        peers[i]->react = detach_when_told;
    send_hidden(peers, 8);
    for (int i = 0; i < 8; i++) {
        driver_until(driver, peers[i]->detaches == 1);
        peers[i]->react = NULL;
        assert_int_equal(peer_attach(peers[i], driver), 0);
        peers[i]->handle->unix_socket = true;
        peer_receive_start(peers[i], false);
    }
    driver_until(driver, all_have(peers, 8, 200));
}

TEST_EACH_BACKEND(uring_recheck, of_one_that_has_stopped_are_remembered)
{
    struct peer *peers[8];

    open_crowd(driver, peers, 8);
    for (int i = 0; i < 8; i++)
        peers[i]->react = stop_when_told;
    send_hidden(peers, 8);
    driver_until(driver, all_have(peers, 8, 100));
    driver_run_until_idle(driver);
    assert_true(all_have(peers, 8, 100));
    for (int i = 0; i < 8; i++) {
        peers[i]->react = NULL;
        peer_receive_start(peers[i], false);
    }
    driver_until(driver, all_have(peers, 8, 200));
}

TEST_EACH_BACKEND(uring_recheck, remain_until_the_system_answers)
{
    struct peer *peers[8];

    open_crowd(driver, peers, 8);
    send_hidden(peers, 8);
    faults_install();
    faults_inject(FAULT_PPOLL, 1, 1, EINTR);
    driver_until(driver, all_have(peers, 8, 200));
    faults_remove();
}

#define SLEEP_NS weir_seconds(10)

static struct peer *busy; /* the test's own thread */

static void send_to_busy(struct peer *peer, enum peer_event event)
{
    if (event != PEER_RECEIVED)
        return;
    peer->react = NULL;
    assert_int_equal(peer_remote_send(busy, 100), 100);
    assert_int_equal(peer_remote_send(busy, 100), 100);
}

/*
 * A ring is woken for data that was read meanwhile, and finds nothing: that must not keep it from
 * sleeping.
 */
TEST_EACH_BACKEND(uring_recheck, do_not_sleep)
{
    int64_t until_ns = weir__monotonic_now() + SLEEP_NS;
    struct peer *peers[8];

    open_crowd(driver, peers, 8);
    busy = peers[7];
    peers[0]->react = send_to_busy;
    send_hidden(peers, 7);
    assert_int_equal(peer_remote_send(busy, 100), 100);
    while (!all_have(peers, 7, 200) || busy->bytes != 300)
        assert_true(driver_step(driver, SLEEP_NS));
    assert_true(weir__monotonic_now() < until_ns);
}
