/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets whose peers pass unwanted descriptors: a read ends at the bytes that came with one,
 * though more data follows, and no edge reports that.
 */
#include <string.h>

#include "support/loop/suite.h"

#define CROWD 80

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
        peers[i]->handle->exact_window = i % 2 == 0; /* a ring receives from these by poll */
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

TEST_EACH_BACKEND(cut_reads, one_reader_does_not_stall)
{
    struct peer *peer;

    open_crowd(driver, &peer, 1);
    for (unsigned i = 1; i <= 20; i++) {
        send_hidden(&peer, 1);
        driver_until(driver, peer->bytes == 200ull * i);
    }
}

TEST_EACH_BACKEND(cut_reads, many_readers_do_not_stall)
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
TEST_EACH_BACKEND(cut_reads, what_is_hidden_may_hide_more)
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

TEST_EACH_BACKEND(cut_reads, end_with_the_handle)
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
TEST_EACH_BACKEND(cut_reads, do_not_withhold_data_from_another_loop)
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

TEST_EACH_BACKEND(cut_reads, of_one_that_has_stopped_are_remembered)
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
