/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving a handle from one backend to another, of the same and of each other kind, during traffic:
 * nothing is lost.
 */
#include <errno.h>
#include <unistd.h>

#include "support/loop/suite.h"

/* Moves it to another driver, or only out and in again. */
static void move(struct peer *peer, struct driver *to)
{
    struct driver *from = peer->driver;
    unsigned detaches = peer->detaches;

    peer_detach(peer);
    driver_until(from, peer->detaches == detaches + 1);
    assert_int_equal(peer_attach(peer, to), 0);
}

/* ---- alone ---- */

TEST_EACH_BACKEND(detach, leaves_the_descriptor_open)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_detach(peer);
    assert_string_equal(peer->history, "");
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "x");
    assert_int_equal(peer_remote_send(peer, 10), 10);
    assert_int_equal(socket_drain(peer->descriptor), 10);
}

TEST_EACH_BACKEND(detach, leaves_data_in_the_socket)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, 30000), 30000);
    peer_detach(peer);
    driver_until(driver, peer->detaches == 1);
    assert_int_equal(peer->bytes + socket_drain(peer->descriptor), 30000);
}

TEST_EACH_BACKEND(detach, the_same_handle_may_be_attached_again)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    for (unsigned i = 1; i <= 20; i++) {
        move(peer, driver);
        peer_receive_start(peer, false);
        assert_int_equal(peer_remote_send(peer, 1000), 1000);
        driver_until(driver, peer->bytes == 1000ull * i);
    }
}

static void detach_peer(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED && !peer->detaching)
        peer_detach(peer);
}

TEST_EACH_BACKEND(detach, in_the_call_back_loses_nothing)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->handle->window = 1000;
    peer->react = detach_peer;
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 30000), 30000);
    driver_until(driver, peer->detaches == 1);
    assert_true(peer->receives >= 1);
    assert_int_equal(peer->bytes + socket_drain(peer->descriptor), 30000);
}

TEST_EACH_BACKEND(detach, while_it_waits_for_memory)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    driver->memory.refuse = SIZE_MAX;
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    for (int i = 0; i < 3; i++)
        driver_turn(driver);
    move(peer, driver);
    driver->memory.refuse = 0;
    peer_receive_start(peer, false);
    driver_until(driver, peer->bytes == 100);
}

TEST_EACH_BACKEND(detach, then_close_delivers_nothing)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    peer_detach(peer);
    peer_close(peer);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "x");
}

TEST_EACH_BACKEND(detach, while_connecting)
{
    struct address address;
    int listener = socket_listen(AF_INET, 8, &address);
    struct peer *peer = peer_open(driver, socket_new(AF_INET, SOCK_STREAM));

    peer_connect(peer, &address);
    peer_detach(peer);
    driver_until(driver, peer->detaches == 1);
    (void)close(listener);
}

TEST_EACH_BACKEND(detach, of_a_listener_loses_no_connection)
{
    struct address address;
    struct peer *listener = peer_open(driver, socket_listen(AF_INET, 64, &address));
    int clients[40];

    peer_accept_start(listener);
    driver_run_until_idle(driver);
    for (int i = 0; i < 40; i++)
        clients[i] = socket_connect(&address);
    driver_turn(driver);
    move(listener, driver);
    peer_accept_start(listener);
    driver_until(driver, listener->accepts == 40);
    for (int i = 0; i < 40; i++)
        (void)close(clients[i]);
}

static void stop_accepting(struct peer *peer, enum peer_event event)
{
    if (event == PEER_ACCEPTED)
        peer_accept_stop(peer);
}

/* The kernel may have accepted more than was delivered before the stop. */
TEST_EACH_BACKEND(detach, of_a_listener_that_was_stopped_loses_no_connection)
{
    struct address address;
    struct peer *listener = peer_open(driver, socket_listen(AF_INET, 64, &address));
    int clients[40];

    for (int i = 0; i < 40; i++)
        clients[i] = socket_connect(&address);
    listener->react = stop_accepting;
    peer_accept_start(listener);
    driver_until(driver, listener->accepts == 1);
    listener->react = NULL;
    move(listener, driver);
    peer_accept_start(listener);
    driver_until(driver, listener->accepts == 40);
    for (int i = 0; i < 40; i++)
        (void)close(clients[i]);
}

static void attach_again(struct peer *peer, enum peer_event event)
{
    if (event != PEER_DETACHED || peer->detaches > 20)
        return;
    if (peer_attach(peer, peer->driver) < 0)
        driver_fail(peer->driver, "cannot be attached again");
    else
        peer_receive_start(peer, false);
}

TEST_EACH_BACKEND(detach, may_be_answered_by_attach_in_the_call_back)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->react = attach_again;
    peer_receive_start(peer, false);
    for (unsigned i = 1; i <= 20; i++) {
        peer_detach(peer);
        assert_int_equal(peer_remote_send(peer, 100), 100);
        driver_until(driver, peer->detaches == i && peer->bytes == 100 * i);
    }
    peer_detach(peer);
    driver_until(driver, peer->detaches == 21);
}

/* Something of it is lost, perhaps: whoever moves it on has to know. */
TEST_EACH_BACKEND(detach, of_a_failed_handle_delivers_the_failure_first)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    weir__io_fail(peer->handle, -EIO);
    peer_detach(peer);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "fx");
    assert_int_equal(peer->fail_error, -EIO);
}

static void close_failed(struct peer *peer, enum peer_event event)
{
    if (event == PEER_FAILED)
        peer_close(peer);
}

TEST_EACH_BACKEND(detach, of_a_handle_that_has_failed_may_be_answered_by_close)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    peer->react = close_failed;
    weir__io_fail(peer->handle, -EIO);
    peer_detach(peer);
    driver_until(driver, peer->detaches == 1);
    driver_run_until_idle(driver);
    assert_string_equal(peer->history, "fx");
}

/* ---- sends ---- */

/* `sent` reports before `detached` how much was sent: the rest is sent on the other loop. */
TEST_EACH_BACKEND(detach, during_a_send_reports_how_much_was_sent)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    for (unsigned i = 1; i <= 10; i++) {
        peer_send(peer, 1 << 20);
        assert_true(peer->awaits_writable);
        if (i % 2 == 0)
            driver_turn(driver);
        (void)peer_remote_receive(peer);
        move(peer, driver);
        peer_send(peer, 0);
        driver_until(driver,
                     (peer_remote_receive(peer), peer->remote_in.position) == (uint64_t)i << 20);
        driver_until(driver, peer->bytes_sent == (uint64_t)i << 20);
    }
}

/* ---- between backends ---- */

/* Both ends send and receive while one of them wanders. */
static void wander(struct driver *driver, enum backend_id there)
{
    const uint64_t total = 2 << 20;
    struct driver other;
    struct peer *moving;
    struct peer *staying;
    int pair[2];

    suite_open(&other, there);
    socket_pair(PAIR_TCP, pair);
    moving = peer_open(driver, pair[0]);
    staying = peer_open(driver, pair[1]);
    peer_receive_start(moving, false);
    peer_receive_start(staying, false);
    peer_send(moving, total);
    peer_send(staying, total);
    for (int i = 0; moving->bytes < total || staying->bytes < total; i++) {
        assert_true(i < 100000);
        driver_turn(driver);
        assert_true(driver_step(&other, 0));
        if (i % 3 == 2) {
            move(moving, moving->driver == driver ? &other : driver);
            peer_receive_start(moving, false);
            peer_send(moving, 0);
        }
    }
    assert_int_equal(moving->bytes_sent, total);
    suite_close(&other);
}

TEST_EACH_BACKEND(detach, and_attach_to_epoll_and_back)
{
    wander(driver, BACKEND_EPOLL);
}

TEST_EACH_BACKEND(detach, and_attach_to_uring_and_back)
{
    wander(driver, BACKEND_URING);
}

TEST_EACH_BACKEND(detach, and_attach_to_poll_and_back)
{
    wander(driver, BACKEND_POLL);
}
