/* SPDX-License-Identifier: Apache-2.0 */
/* Sending vectors over streams, on each backend. Files are in test_send_file.c. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "support/loop/signals.h"
#include "support/loop/suite.h"

#define LARGE (4u << 20)
#define ELEMENTS 5000

static void receive_all(struct driver *driver, struct peer *peer, uint64_t count)
{
    driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) == count);
}

/* A vector over `memory`, which becomes the next bytes of the peer's stream. */
static void cut(struct peer *peer, char *memory, size_t size, struct iovec *vector, size_t count)
{
    size_t at = 0;

    stream_write(&peer->out, memory, size);
    for (size_t i = 0; i < count; i++) {
        size_t length = i + 1 < count ? (i * 7) % (2 * (size / count)) : size - at;

        if (length > size - at)
            length = size - at;
        vector[i] = (struct iovec){memory + at, length};
        at += length;
    }
}

/* What is left of a vector of which so much has been taken. */
static size_t advance(struct iovec *vector, size_t count, size_t taken)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        size_t gone = taken < vector[i].iov_len ? taken : vector[i].iov_len;

        taken -= gone;
        if (gone < vector[i].iov_len)
            vector[kept++] =
                (struct iovec){(char *)vector[i].iov_base + gone, vector[i].iov_len - gone};
    }
    return kept;
}

/* ---- whole and short ---- */

/* A ring sends with its next wait, and reports it. */
TEST_EACH_BACKEND(send, sends_a_small_vector_at_once)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    bool is_lent = driver->backend->io == WEIR_IO_URING;

    peer_send(peer, 1000);
    if (is_lent)
        driver_turn(driver);
    assert_int_equal(peer->bytes_sent, 1000);
    assert_int_equal(peer_remote_receive(peer), 1000);
    driver_run_until_idle(driver);
    assert_string_equal(peer->history, is_lent ? "s" : "");
}

TEST_EACH_BACKEND(send, an_empty_vector_sends_nothing)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    const struct iovec nothing = {NULL, 0};

    assert_int_equal(peer_send_vector(peer, &nothing, 0), 0);
    assert_int_equal(peer_send_vector(peer, &nothing, 1), 0);
    driver_run_until_idle(driver);
    assert_string_equal(peer->history, "");
    peer_send(peer, 10);
    receive_all(driver, peer, 10);
}

static void send_megabytes(struct driver *driver, enum pair_kind kind, unsigned elements)
{
    struct peer *peer = peer_open_pair(driver, kind);

    socket_shrink(peer->handle->descriptor, 16 * 1024);
    peer->elements = elements;
    peer_send(peer, LARGE);
    receive_all(driver, peer, LARGE);
    assert_true(peer->sents > 0);
    driver_until(driver, peer->bytes_sent == LARGE);
}

TEST_EACH_BACKEND(send, goes_on_when_there_is_room_again)
{
    send_megabytes(driver, PAIR_TCP, 1);
    send_megabytes(driver, PAIR_UNIX, 1);
}

TEST_EACH_BACKEND(send, gathers_what_is_left_of_a_vector)
{
    send_megabytes(driver, PAIR_TCP, 64);
    send_megabytes(driver, PAIR_UNIX, 17);
}

TEST_EACH_BACKEND(send, reports_writable_only_when_it_is)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);
    size_t filled = socket_fill(peer->handle->descriptor);

    peer_send(peer, 1000);
    assert_true(peer->awaits_writable);
    assert_int_equal(peer->bytes_sent, 0);
    driver_run_until_idle(driver);
    assert_int_equal(peer->sents, 0);

    assert_int_equal(socket_drain(peer->remote), filled);
    receive_all(driver, peer, 1000);
    driver_until(driver, peer->bytes_sent == 1000);
    driver_run_until_idle(driver);
    assert_false(peer->awaits_writable);
}

/* What was sent later must not overtake, and must not be sent at all by then. */
TEST_EACH_BACKEND(send, is_refused_while_one_is_under_way)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);
    size_t filled = socket_fill(peer->handle->descriptor);
    char byte = 'x';
    const struct iovec vector = {&byte, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iovlen = 1}};

    message.msg_hdr.msg_iov = (struct iovec[]){{&byte, 1}};
    peer_send(peer, 1000);
    assert_true(peer->awaits_writable);
    assert_int_equal(weir__io_send(peer->handle, &vector, 1), -EALREADY);
    assert_int_equal(weir__io_send_datagrams(peer->handle, &message, 1), -EALREADY);
    assert_int_equal(weir__io_send_file(peer->handle, 0, 0, 1), -EALREADY);
    driver_turn(driver);
    assert_int_equal(weir__io_send(peer->handle, &vector, 1), -EALREADY);

    assert_int_equal(socket_drain(peer->remote), filled);
    receive_all(driver, peer, 1000);
    driver_until(driver, !peer->awaits_writable);
    peer_send(peer, 1000);
    receive_all(driver, peer, 2000);
}

TEST_EACH_BACKEND(send, with_more_elements_than_the_kernel_takes)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    struct iovec *vector = calloc(ELEMENTS, sizeof(*vector));
    char *memory = malloc(LARGE);
    size_t count = ELEMENTS;
    size_t sent = 0;

    cut(peer, memory, LARGE, vector, count);
    while (sent < LARGE) {
        ssize_t taken = peer_send_vector(peer, vector, count);

        assert_true(taken >= 0);
        peer->last_sent = 0;
        driver_until(driver, (peer_remote_receive(peer), !peer->awaits_writable));
        assert_true(peer->last_sent >= 0);
        taken += peer->last_sent;
        count = advance(vector, count, (size_t)taken);
        sent += (size_t)taken;
    }
    receive_all(driver, peer, LARGE);
    free(vector);
    free(memory);
}

TEST_EACH_BACKEND(send, thousands_of_small_elements_are_taken_at_once)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    struct iovec vector[ELEMENTS];
    char memory[ELEMENTS];

    cut(peer, memory, ELEMENTS, vector, ELEMENTS);
    assert_int_equal(peer_send_vector(peer, vector, ELEMENTS), ELEMENTS);
    receive_all(driver, peer, ELEMENTS);
}

/* ---- while other things happen ---- */

TEST_EACH_BACKEND(send, and_receive_do_not_hinder_each_other)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    peer_send(peer, LARGE);
    for (unsigned i = 1; i <= 100; i++) {
        assert_int_equal(peer_remote_send(peer, 1000), 1000);
        driver_until(driver, peer->bytes == 1000ull * i);
    }
    receive_all(driver, peer, LARGE);
}

static void stop_receiving(struct peer *peer, enum peer_event event)
{
    if (event == PEER_SENT)
        peer_receive_stop(peer);
}

TEST_EACH_BACKEND(send, call_back_may_stop_receiving)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);
    size_t filled = socket_fill(peer->handle->descriptor);

    peer->react = stop_receiving;
    peer_receive_start(peer, false);
    peer_send(peer, 1000);
    driver_run_until_idle(driver);
    assert_int_equal(socket_drain(peer->remote), filled);
    receive_all(driver, peer, 1000);
    driver_until(driver, peer->sents > 0);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_run_until_idle(driver);
    assert_int_equal(peer->bytes, 0);
}

/* The peer will send no more, which does not mean that the socket is writable. */
TEST_EACH_BACKEND(send, to_a_half_closed_peer_waits_until_writable)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct peer *peer = peer_open_pair(driver, kinds[i]);

        peer_send(peer, 4 * LARGE);
        assert_int_equal(shutdown(peer->remote, SHUT_WR), 0);
        driver_run_until_idle(driver);
        assert_true(peer->awaits_writable);
        driver_sleep(driver, weir_ms(50));
        receive_all(driver, peer, 4 * LARGE);
    }
}

/* ---- the peer is gone ---- */

static bool is_gone(int err)
{
    return err == -EPIPE || err == -ECONNRESET;
}

static void expect_gone(struct driver *driver, struct peer *peer)
{
    signals_count(SIGPIPE);
    peer_send(peer, LARGE);
    driver_until(driver, peer->send_error != 0);
    assert_true(is_gone(peer->send_error));
    assert_int_equal(signals_counted(), 0);
}

TEST_EACH_BACKEND(send, to_a_closed_peer_is_an_error_and_no_signal)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct peer *peer = peer_open_pair(driver, kinds[i]);

        peer_remote_close(peer);
        expect_gone(driver, peer);
    }
}

TEST_EACH_BACKEND(send, to_a_reset_peer_is_an_error_and_no_signal)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_remote_reset(peer);
    expect_gone(driver, peer);
}

TEST_EACH_BACKEND(send, after_shutdown_is_an_error_and_no_signal)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    assert_int_equal(shutdown(peer->handle->descriptor, SHUT_WR), 0);
    expect_gone(driver, peer);
}

static void lose_while_sending(struct driver *driver, enum pair_kind kind, bool reset)
{
    struct peer *peer = peer_open_pair(driver, kind);

    peer_send(peer, LARGE * 4);
    driver_run_until_idle(driver);
    assert_true(peer->awaits_writable);
    if (reset)
        peer_remote_reset(peer);
    else
        peer_remote_close(peer);
    driver_until(driver, peer->send_error != 0);
    assert_true(is_gone(peer->send_error));
    driver_run_until_idle(driver);
}

TEST_EACH_BACKEND(send, in_progress_fails_when_the_peer_is_gone)
{
    lose_while_sending(driver, PAIR_TCP, false);
    lose_while_sending(driver, PAIR_TCP, true);
    lose_while_sending(driver, PAIR_UNIX, false);
}

/* ---- closing ---- */

/* The lent memory is freed with the handle: a sanitizer sees who still reads it. */
static void free_lent(struct peer *peer, enum peer_event event)
{
    if (event == PEER_DETACHED)
        free(peer->arg);
}

TEST_EACH_BACKEND(send, in_progress_is_ended_by_close)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct peer *peer = peer_open_pair(driver, kinds[i]);
        struct iovec vector = {malloc(LARGE * 4), LARGE * 4};

        stream_write(&peer->out, vector.iov_base, vector.iov_len);
        peer->arg = vector.iov_base;
        peer->react = free_lent;
        assert_true(peer_send_vector(peer, &vector, 1) < (ssize_t)vector.iov_len);
        if (i == 0)
            driver_turn(driver);
        peer_close(peer);
        driver_until(driver, peer->detaches == 1);
        assert_string_equal(peer->history, "x");
        (void)peer_remote_receive(peer); /* a beginning of the stream, or a reset */
    }
}

static void close_peer(struct peer *peer, enum peer_event event)
{
    if (event == PEER_SENT)
        peer_close(peer);
}

TEST_EACH_BACKEND(send, call_back_may_close)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer->react = close_peer;
    peer_receive_start(peer, false);
    peer_send(peer, LARGE);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_until(driver, (peer_remote_receive(peer), peer->detaches) == 1);
}

TEST_EACH_BACKEND(send, many_under_way_at_once)
{
    struct peer *peers[200];

    for (int i = 0; i < 200; i++) {
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
        peers[i]->elements = 1 + (unsigned)i % 9;
        peer_send(peers[i], 1 << 20);
    }
    for (int i = 0; i < 200; i++)
        receive_all(driver, peers[i], 1 << 20);
    for (int i = 0; i < 200; i++)
        driver_until(driver, peers[i]->bytes_sent == 1 << 20);
}
