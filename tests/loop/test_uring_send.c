/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends in the ring: one system call a turn, memory that is lent until the send is made, and full
 * sockets, which keep no thread of the kernel busy.
 */
#include <errno.h>
#include <sys/socket.h>

#include "loop/uring.h"
#include "os/system.h"
#include "support/loop/suite.h"
#include "support/loop/uring_seam.h"

#define CROWD 200

static bool is_lent(const struct peer *peer)
{
    return weir__uring_is_in_flight(peer->handle, WEIR__URING_SEND) &&
           (peer->handle->wants & WEIR__IO_LENDS) != 0;
}

static void receive_all(struct driver *driver, struct peer *peer, uint64_t count)
{
    driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) == count);
}

/* ---- one call a turn ---- */

static unsigned enters, plain_calls;

static int enter_counting(unsigned ring, unsigned submit, unsigned wait, unsigned flags,
                          sigset_t *argument, size_t size)
{
    enters++;
    return uring_real.enter(ring, submit, wait, flags, argument, size);
}

static ssize_t send_counting(int descriptor, const void *bytes, size_t length, int flags)
{
    plain_calls++;
    return send(descriptor, bytes, length, flags);
}

static ssize_t recv_counting(int descriptor, void *bytes, size_t size, int flags)
{
    plain_calls++;
    return recv(descriptor, bytes, size, flags);
}

static void send_back(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_send(peer, 100);
}

/* Each turn sends the answers to the requests of the one before, and receives new requests. */
static void answer_requests(struct driver *driver)
{
    weir__system real = weir__sys;
    struct peer *peers[16];

    for (int i = 0; i < 16; i++) {
        peers[i] = peer_open_pair(driver, i % 2 == 0 ? PAIR_TCP : PAIR_UNIX);
        peers[i]->react = send_back;
        peer_receive_start(peers[i], false);
    }
    driver_run_until_idle(driver);
    weir__sys.send = send_counting;
    weir__sys.recv = recv_counting;
    enters = plain_calls = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 16; i++)
            assert_int_equal(peer_remote_send(peers[i], 100), 100);
        driver_turn(driver);
    }
    weir__sys = real;
    assert_int_equal(plain_calls, 0);
    assert_true(enters <= 50);
    for (int i = 0; i < 16; i++)
        receive_all(driver, peers[i], 50 * 100);
}

TEST(uring_send, costs_no_call_of_its_own)
{
    uring_seam_restore();
    weir__uring_system.enter = enter_counting;
    suite_run(BACKEND_URING, answer_requests);
    uring_seam_restore();
}

/* With one event in a turn, the completion of a send would need a turn of its own. */
static void answer_one(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    weir__system real = weir__sys;

    peer->react = send_back;
    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    weir__sys.send = send_counting;
    plain_calls = 0;
    for (unsigned i = 1; i <= 10; i++) {
        assert_int_equal(peer_remote_send(peer, 100), 100);
        driver_until(driver, peer->receives == i);
        assert_int_equal(plain_calls, i);
        assert_int_equal(peer_remote_receive(peer), 100);
    }
    weir__sys = real;
}

TEST(uring_send, is_not_by_the_ring_if_little_happens)
{
    unsigned lend_min = weir__uring_lend_min;

    weir__uring_lend_min = 4;
    suite_run(BACKEND_URING, answer_one);
    suite_run(BACKEND_URING, answer_requests);
    weir__uring_lend_min = lend_min;
}

/* ---- what is sent at once ---- */

static void send_kinds(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_send(peer, 16 * 1024);
    assert_true(is_lent(peer));
    receive_all(driver, peer, 16 * 1024);
    driver_run_until_idle(driver);
    peer_send(peer, 16 * 1024 + 1); /* much */
    assert_false(is_lent(peer));
    receive_all(driver, peer, 32 * 1024 + 1);
    peer->handle->last_send = true;
    peer_send(peer, 100);
    assert_false(is_lent(peer));
    receive_all(driver, peer, 32 * 1024 + 101);
}

TEST(uring_send, is_not_by_the_ring_if_much_or_last)
{
    suite_run(BACKEND_URING, send_kinds);
}

/* More vectors than the ring keeps, and more sends than its queue holds. */
static void send_vectors(struct driver *driver)
{
    struct peer *peers[CROWD];
    unsigned lent = 0;

    for (int i = 0; i < CROWD; i++) {
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
        peers[i]->elements = 3;
    }
    for (uint64_t round = 1; round <= 5; round++) {
        lent = 0;
        for (int i = 0; i < CROWD; i++) {
            peer_send(peers[i], 300);
            lent += is_lent(peers[i]);
        }
        assert_int_equal(lent, WEIR__URING_VECTORS_MAX); /* in each turn */
        for (int i = 0; i < CROWD; i++)
            receive_all(driver, peers[i], 300 * round);
    }
}

TEST(uring_send, copies_vectors_while_there_is_room)
{
    suite_run(BACKEND_URING, send_vectors);
}

static void send_many(struct driver *driver)
{
    struct peer *peers[CROWD];

    for (int i = 0; i < CROWD; i++)
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
    for (uint64_t round = 1; round <= 5; round++) {
        for (int i = 0; i < CROWD; i++)
            peer_send(peers[i], 100);
        for (int i = 0; i < CROWD; i++)
            driver_until(driver, peers[i]->bytes_sent == 100 * round);
    }
    for (int i = 0; i < CROWD; i++)
        receive_all(driver, peers[i], 500);
}

TEST(uring_send, loses_nothing_when_the_queues_overflow)
{
    uring_seam_restore();
    weir__uring_system.setup = uring_setup_tiny;
    suite_run(BACKEND_URING, send_many);
    uring_seam_restore();
}

/* ---- while memory is lent ---- */

/* A peer frees its memory when it is detached: a sanitizer reports a late read. */
static void close_lent(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_send(peer, 1000);
    assert_true(is_lent(peer));
    peer_close(peer);
    assert_int_equal(peer->detaches, 0);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "x");
}

static void detach_lent(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_send(peer, 1000);
    assert_true(is_lent(peer));
    peer_detach(peer);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "sx");
    assert_int_equal(peer->bytes_sent, 1000);
    assert_int_equal(peer_remote_receive(peer), 1000);
}

/* The socket is full: nothing was sent, and nothing is lent any more. */
static void detach_full(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    (void)socket_fill(peer->handle->descriptor);
    peer_send(peer, 1000);
    assert_true(is_lent(peer));
    peer_detach(peer);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "sx");
    assert_int_equal(peer->bytes_sent, 0);
}

static void rebuild_lent(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    char byte = 'x';

    peer_send(peer, 1000);
    assert_true(is_lent(peer));
    assert_int_equal(weir__io_rebuild(driver->io), 0);
    assert_int_equal(weir__io_send(peer->handle, &(struct iovec){&byte, 1}, 1), -EALREADY);
    driver_until(driver, peer->bytes_sent == 1000);
    receive_all(driver, peer, 1000);
    peer_send(peer, 1000);
    receive_all(driver, peer, 2000);
}

static void send_and_stop(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED) {
        peer_send(peer->arg, 1000);
        assert_true(is_lent(peer->arg));
        peer_receive_stop(peer->arg);
    }
}

/* The data of a peer that has stopped meanwhile is queued, and then the end of its send is. */
static void rebuild_with_a_read_in_front(struct driver *driver)
{
    struct peer *first = peer_open_pair(driver, PAIR_UNIX);
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    first->react = send_and_stop;
    first->arg = peer;
    peer_receive_start(first, false);
    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(first, 100), 100);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_turn(driver);
    assert_non_null(peer->handle->undelivered);
    assert_int_equal(peer->sents, 0);
    assert_int_equal(weir__io_rebuild(driver->io), 0);
    driver_until(driver, peer->bytes_sent == 1000);
    assert_int_equal(peer->bytes, 0);
    peer_receive_start(peer, false);
    driver_until(driver, peer->bytes == 100);
}

TEST(uring_send, ends_before_its_handle_leaves)
{
    suite_run(BACKEND_URING, close_lent);
    suite_run(BACKEND_URING, detach_lent);
    suite_run(BACKEND_URING, detach_full);
    suite_run(BACKEND_URING, rebuild_lent);
    suite_run(BACKEND_URING, rebuild_with_a_read_in_front);
}

static void cancel_send(struct io_uring_cqe *completion)
{
    if ((completion->user_data & WEIR__URING_OP_MASK) == WEIR__URING_SEND)
        completion->res = -ECANCELED;
}

/* As after an interrupted submission: the owner is asked to send again. */
static void send_that_is_cancelled(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    char bytes[] = "bytes";

    weir__uring_fault = cancel_send;
    assert_int_equal(peer_send_vector(peer, &(struct iovec){bytes, 5}, 1), 0);
    assert_true(is_lent(peer));
    driver_until(driver, peer->sents == 1);
    assert_int_equal(peer->last_sent, 0);
    assert_int_equal(peer->fails, 0);
    weir__uring_fault = NULL;
    (void)socket_drain(peer->remote);
}

TEST(uring_send, that_was_not_tried_is_made_again)
{
    uring_seam_restore();
    suite_run(BACKEND_URING, send_that_is_cancelled);
    uring_seam_restore();
}

/* ---- failures ---- */

/*
 * The send takes the error of the socket, and a read that follows sees the end of the stream. The
 * read is due before the completion of the send is processed.
 */
static void reset_lent(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->handle->exact_window = true; /* receives by plain calls */
    peer_send(peer, 100);
    assert_true(is_lent(peer));
    peer_remote_reset(peer);
    peer->handle->unread = true;
    peer_receive_start(peer, false);
    driver_until(driver, peer->ends == 1);
    assert_int_equal(peer->send_error, -ECONNRESET);
    assert_string_equal(peer->history, "se.");
}

static void send_on_other(struct peer *peer, enum peer_event event)
{
    struct peer *other = peer->arg;

    if (event == PEER_RECEIVED) {
        peer_send(other, 100);
        assert_true(is_lent(other));
    }
}

/* The other way round: the read, which is before the submission, has the error, and has it once. */
static void reset_before_submission(struct driver *driver)
{
    struct peer *first = peer_open_pair(driver, PAIR_TCP);
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    first->react = send_on_other;
    first->arg = peer;
    peer->handle->exact_window = true;
    peer_receive_start(first, false);
    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(first, 10), 10);
    peer_remote_reset(peer);
    driver_until(driver, peer->ends == 1 && peer->send_error != 0);
    assert_int_equal(peer->end_error, -ECONNRESET);
    assert_int_equal(peer->send_error, -EPIPE);
}

TEST(uring_send, reports_its_failure_before_the_end_of_the_stream)
{
    suite_run(BACKEND_URING, reset_lent);
    suite_run(BACKEND_URING, reset_before_submission);
}

/* ---- full sockets ---- */

/*
 * Slow readers that have ended their own stream. Sends without MSG_DONTWAIT would occupy a thread
 * for each.
 */
static void send_to_slow_readers(struct driver *driver)
{
    unsigned before = thread_count();
    struct peer *peers[16];
    size_t filled[16];

    for (int i = 0; i < 16; i++) {
        peers[i] = peer_open_pair(driver, i % 2 == 0 ? PAIR_TCP : PAIR_UNIX);
        filled[i] = socket_fill(peers[i]->handle->descriptor);
        assert_int_equal(shutdown(peers[i]->remote, SHUT_WR), 0);
        peer_send(peers[i], 1000);
        assert_true(is_lent(peers[i]));
    }
    for (int i = 0; i < 300; i++)
        assert_true(driver_step(driver, 0));
    assert_int_equal(thread_count(), before);
    for (int i = 1; i < 16; i += 2) { /* TCP may find a little room after all */
        assert_int_equal(peers[i]->bytes_sent, 0);
        assert_int_equal(socket_drain(peers[i]->remote), filled[i]);
        receive_all(driver, peers[i], 1000);
    }
}

TEST(uring_send, to_slow_readers_keeps_no_thread_busy)
{
    suite_run(BACKEND_URING, send_to_slow_readers);
}
