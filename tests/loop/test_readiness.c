/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readiness turned into completions, one event at a time: which calls are made, what is noted, and
 * what the kernel is asked to watch for.
 */
#include "loop/readiness.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>

#include "os/system.h"
#include "support/loop/faults.h"
#include "support/loop/peer.h"
#include "support/loop/scripted.h"
#include "support/loop/suite.h"
#include "support/memory.h"
#include "support/test.h"

#define figure(driver, name) atomic_load(&(driver)->io->stats.name)

static void open_driver(struct driver *driver, const struct backend *backend)
{
    char reason[64];

    assert_int_equal(driver_open(driver, backend, reason, sizeof(reason)), 0);
}

/* A turn in which the peer has these events. */
static void deliver(struct peer *peer, unsigned events)
{
    scripted_event(peer->handle, events);
    driver_turn(peer->driver);
}

/* A peer that receives, with `count` bytes waiting. */
static struct peer *open_receiver(struct driver *driver, uint32_t window, size_t bytes)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->handle->window = window;
    peer_receive_start(peer, false);
    if (bytes > 0)
        assert_int_equal(peer_remote_send(peer, bytes), bytes);
    return peer;
}

/* A vector of `count` elements of one byte. */
static void fill_vector(struct iovec *vector, size_t count)
{
    static char byte = 'x';

    for (size_t i = 0; i < count; i++)
        vector[i] = (struct iovec){&byte, 1};
}

/* ---- receiving: calls and memory ---- */

TEST(readiness, a_read_that_leaves_room_is_the_last)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_level);
    peer = open_receiver(&driver, 100, 99);
    assert_int_equal(driver.memory.taken, 0);
    deliver(peer, POLLIN);
    assert_string_equal(peer->history, "r.");
    assert_int_equal(figure(&driver, receives), 1);
    assert_int_equal(driver.memory.taken, 1);
    suite_close(&driver);
}

TEST(readiness, a_read_that_fills_its_block_is_followed_by_another)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_level);
    peer = open_receiver(&driver, 100, 300);
    deliver(peer, POLLIN);
    assert_string_equal(peer->history, "rrr.");
    assert_int_equal(figure(&driver, receives), 4);
    assert_int_equal(driver.memory.taken, 4);
    assert_int_equal(driver.memory.live, 0);
    deliver(peer, POLLIN);
    assert_string_equal(peer->history, "rrr.");
    suite_close(&driver);
}

static void widen(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer->handle->window = 1000;
}

TEST(readiness, the_window_may_change_between_two_reads)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_level);
    peer = open_receiver(&driver, 10, 1000);
    peer->react = widen;
    deliver(peer, POLLIN);
    assert_string_equal(peer->history, "rr.");
    assert_int_equal(peer->largest, 990);
    suite_close(&driver);
}

/* fast_receive and receive: of a handle without edges and of one with them. */
static void receive_in_a_turn(const struct backend *backend, size_t bytes, struct peer *ret_peer)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, backend);
    peer = open_receiver(&driver, 100, bytes);
    deliver(peer, POLLIN);
    *ret_peer = *peer;
    suite_close(&driver);
}

TEST(readiness, a_level_and_an_edge_bring_the_same)
{
    const size_t sizes[] = {1, 99, 100, 101, 250, 300, 100 * WEIR__IO_READS_MAX + 1};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct peer level, edge;

        receive_in_a_turn(&scripted_level, sizes[i], &level);
        receive_in_a_turn(&scripted_edge, sizes[i], &edge);
        assert_string_equal(edge.history, level.history);
        assert_int_equal(edge.bytes, level.bytes);
        assert_int_equal(edge.largest, level.largest);
        assert_true(level.bytes > 0);
    }
}

TEST(readiness, reads_that_bring_little_are_counted)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_edge);
    peer = open_receiver(&driver, WEIR__IO_SMALL, WEIR__IO_SMALL - 1);
    for (unsigned i = 1; i <= UINT8_MAX + 2; i++) {
        deliver(peer, POLLIN);
        assert_int_equal(peer->handle->small_reads, i < UINT8_MAX ? i : UINT8_MAX);
        assert_int_equal(peer_remote_send(peer, 1), 1);
    }
    assert_int_equal(peer_remote_send(peer, WEIR__IO_SMALL - 1), WEIR__IO_SMALL - 1);
    deliver(peer, POLLIN);
    assert_int_equal(peer->handle->small_reads, 0);
    suite_close(&driver);
}

/* ---- edges ---- */

TEST(readiness, an_edge_is_read_over_as_many_turns_as_it_takes)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_edge);
    peer = open_receiver(&driver, 10, 1000);
    deliver(peer, POLLIN);
    assert_int_equal(peer->bytes, 10 * WEIR__IO_READS_MAX);
    assert_true(weir__io_has_pending(driver.io));
    driver_until(&driver, peer->bytes == 1000);
    driver_run_until_idle(&driver);
    assert_false(weir__io_has_pending(driver.io));
    suite_close(&driver);
}

TEST(readiness, a_level_is_not_remembered)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_level);
    peer = open_receiver(&driver, 10, 1000);
    deliver(peer, POLLIN);
    assert_int_equal(peer->bytes, 10 * WEIR__IO_READS_MAX);
    assert_false(weir__io_has_pending(driver.io));
    suite_close(&driver);
}

/* While it waits for its turn, an event of the same turn adds nothing. */
TEST(readiness, an_edge_that_is_due_is_not_read_twice_in_a_turn)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_edge);
    peer = open_receiver(&driver, 10, 1000);
    deliver(peer, POLLIN);
    deliver(peer, POLLIN);
    assert_int_equal(peer->bytes, 2 * 10 * WEIR__IO_READS_MAX);
    suite_close(&driver);
}

TEST(readiness, an_edge_that_nobody_wants_is_remembered)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_edge);
    peer = open_receiver(&driver, 1000, 100);
    peer_receive_stop(peer);
    deliver(peer, POLLIN);
    assert_string_equal(peer->history, "");
    peer_receive_start(peer, false);
    driver_turn(&driver);
    assert_string_equal(peer->history, "r.");
    peer_receive_stop(peer);
    peer_receive_start(peer, false);
    assert_false(weir__io_has_pending(driver.io));
    suite_close(&driver);
}

static void stop(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_receive_stop(peer);
}

TEST(readiness, what_a_stop_leaves_of_an_edge_is_remembered)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_edge);
    peer = open_receiver(&driver, 100, 250);
    peer->react = stop;
    deliver(peer, POLLIN);
    assert_string_equal(peer->history, "r.");
    for (unsigned receives = 2; receives <= 3; receives++) {
        peer_receive_start(peer, false);
        driver_turn(&driver);
        assert_int_equal(peer->receives, receives);
    }
    assert_int_equal(peer->bytes, 250);
    suite_close(&driver);
}

TEST(readiness, what_once_leaves_of_an_edge_is_remembered)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_edge);
    peer = open_receiver(&driver, 100, 250);
    peer_receive_start(peer, true);
    deliver(peer, POLLIN);
    assert_int_equal(peer->bytes, 100);
    peer_receive_start(peer, true);
    driver_turn(&driver);
    assert_int_equal(peer->bytes, 200);
    peer_receive_start(peer, true);
    driver_turn(&driver);
    assert_int_equal(peer->bytes, 250);
    suite_close(&driver);
}

/* A short read says nothing of the end behind it: the edge does, once. */
TEST(readiness, an_edge_that_reports_the_end_is_read_up_to_it)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_edge);
    peer = open_receiver(&driver, 1000, 100);
    peer_remote_close(peer);
    deliver(peer, POLLIN | POLLRDHUP);
    assert_string_equal(peer->history, "re.");
    assert_int_equal(peer->end_error, 0);
    suite_close(&driver);
}

TEST(readiness, the_end_is_reported_again_after_a_restart)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_edge);
    peer = open_receiver(&driver, 1000, 0);
    peer_remote_close(peer);
    deliver(peer, POLLIN | POLLRDHUP);
    peer_receive_start(peer, false);
    driver_turn(&driver);
    assert_string_equal(peer->history, "e.e.");
    suite_close(&driver);
}

static void receive_again(struct peer *peer, enum peer_event event)
{
    if (event == PEER_ENDED)
        peer_receive_start(peer, false);
}

static void deliver_one_end(const struct backend *backend, enum pair_kind kind)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, backend);
    peer = peer_open_pair(&driver, kind);
    peer->react = receive_again;
    peer_receive_start(peer, false);
    assert_int_equal(shutdown(peer->descriptor, SHUT_RDWR), 0);
    faults_install();
    faults_inject(FAULT_RECVMMSG, 1, UINT64_MAX / 2, ENETDOWN);
    deliver(peer, POLLIN | POLLHUP);
    faults_remove();
    assert_string_equal(peer->history, "e.");
    suite_close(&driver);
}

TEST(readiness, the_end_is_reported_once_per_turn_after_a_restart_inside)
{
    deliver_one_end(&scripted_level, PAIR_UNIX);
    deliver_one_end(&scripted_edge, PAIR_UNIX);
    deliver_one_end(&scripted_level, PAIR_UNIX_DATAGRAM);
    deliver_one_end(&scripted_edge, PAIR_UNIX_DATAGRAM);
}

/* A level-triggered listener, with this many clients. */
static struct peer *open_listener(struct driver *driver, struct address *address, int *ret_clients,
                                  size_t count)
{
    struct peer *listener;

    open_driver(driver, &scripted_edge); /* the polls of listeners check the state, also there */
    listener = peer_open(driver, socket_listen(AF_UNIX, 64, address));
    for (size_t i = 0; i < count; i++)
        ret_clients[i] = socket_connect(address);
    peer_accept_start(listener);
    return listener;
}

static void close_clients(const int *clients, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)close(clients[i]);
}

TEST(readiness, connections_beyond_a_turn_are_reported_again)
{
    struct driver driver;
    struct address address;
    int clients[WEIR__IO_READS_MAX + 4];
    struct peer *listener = open_listener(&driver, &address, clients, WEIR__IO_READS_MAX + 4);

    deliver(listener, POLLIN);
    assert_int_equal(listener->accepts, WEIR__IO_READS_MAX);
    driver_turn(&driver);
    assert_int_equal(listener->accepts, WEIR__IO_READS_MAX);
    deliver(listener, POLLIN);
    assert_int_equal(listener->accepts, WEIR__IO_READS_MAX + 4);
    close_clients(clients, WEIR__IO_READS_MAX + 4);
    suite_close(&driver);
}

static void pass_turns(struct driver *driver)
{
    atomic_fetch_add_explicit(&driver->io->stats.waits, 2, memory_order_relaxed);
}

TEST(readiness, a_turn_after_a_single_connection_asks_for_one)
{
    struct driver driver;
    struct address address;
    int clients[5];
    struct peer *listener = open_listener(&driver, &address, clients, 1);

    deliver(listener, POLLIN);
    assert_int_equal(listener->accepts, 1);
    assert_int_equal(driver.io->stats.accepts, 2); /* the second found nothing */
    pass_turns(&driver);
    clients[1] = socket_connect(&address);
    deliver(listener, POLLIN);
    assert_int_equal(listener->accepts, 2);
    assert_int_equal(driver.io->stats.accepts, 3);
    pass_turns(&driver);
    for (int i = 2; i < 5; i++)
        clients[i] = socket_connect(&address);
    deliver(listener, POLLIN);
    assert_int_equal(listener->accepts, 3);
    deliver(listener, POLLIN); /* at once: there were more */
    assert_int_equal(listener->accepts, 5);
    assert_int_equal(driver.io->stats.accepts, 7);
    close_clients(clients, 5);
    suite_close(&driver);
}

/* ---- what is watched for ---- */

TEST(readiness, a_stop_leaves_the_kernel_alone)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_level);
    peer = open_receiver(&driver, 1000, 100);
    for (int i = 0; i < 10; i++) {
        peer_receive_stop(peer);
        peer_receive_start(peer, i % 2 == 0);
    }
    deliver(peer, POLLIN);
    assert_string_equal(peer->history, "r.");
    assert_int_equal(scripted_of(driver.io)->arms, 1);
    suite_close(&driver);
}

TEST(readiness, a_connecting_handle_is_not_read)
{
    struct driver driver;
    struct address address;
    struct peer *peer;
    int listener = socket_listen(AF_INET, 1, &address);

    open_driver(&driver, &scripted_level);
    peer = peer_open(&driver, socket_new(AF_INET, SOCK_STREAM));
    peer_receive_start(peer, false);
    peer_connect(peer, &address);
    assert_int_equal(weir__readiness_wanted(peer->handle), POLLOUT);
    deliver(peer, POLLIN);
    assert_string_equal(peer->history, "");
    deliver(peer, POLLOUT);
    assert_string_equal(peer->history, "c");
    assert_int_equal(peer->connect_result, 0);
    assert_int_equal(weir__readiness_wanted(peer->handle), POLLIN);
    assert_int_equal(peer->handle->armed, POLLIN);
    (void)close(listener);
    suite_close(&driver);
}

static void send_to_full(struct peer *peer, enum peer_event event)
{
    struct iovec vector;

    if (event != PEER_CONNECTED)
        return;
    (void)socket_fill(peer->descriptor);
    fill_vector(&vector, 1);
    assert_int_equal(peer_send_vector(peer, &vector, 1), 0);
}

TEST(readiness, a_new_connection_is_not_reported_writable_twice)
{
    struct driver driver;
    struct address address;
    struct peer *peer;
    int listener = socket_listen(AF_INET, 1, &address);

    open_driver(&driver, &scripted_level);
    peer = peer_open(&driver, socket_new(AF_INET, SOCK_STREAM));
    peer->react = send_to_full;
    peer_connect(peer, &address);
    deliver(peer, POLLOUT);
    assert_string_equal(peer->history, "c");
    deliver(peer, POLLOUT);
    assert_string_equal(peer->history, "cs");
    (void)close(listener);
    suite_close(&driver);
}

TEST(readiness, a_handle_without_memory_watches_for_nothing)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_level);
    peer = open_receiver(&driver, 100, 10);
    driver.memory.refuse = 2;
    deliver(peer, POLLIN);
    assert_int_equal(weir__readiness_wanted(peer->handle), 0);
    assert_int_equal(figure(&driver, receives), 1); /* the peek that has found data */
    weir__io_memory_returned(driver.io);
    driver_turn(&driver);
    assert_int_equal(weir__readiness_wanted(peer->handle), 0);
    deliver(peer, POLLIN); /* an old event does not ask for memory */
    assert_int_equal(driver.memory.refused, 2);
    weir__io_memory_returned(driver.io);
    driver_turn(&driver);
    assert_string_equal(peer->history, "r.");
    assert_int_equal(weir__readiness_wanted(peer->handle), POLLIN);
    suite_close(&driver);
}

static void run_out(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED && peer->receives == 1)
        peer->driver->memory.refuse = 1;
}

TEST(readiness, memory_that_runs_out_in_the_middle_completes_what_was_read)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_level);
    peer = open_receiver(&driver, 100, 250);
    peer->react = run_out;
    deliver(peer, POLLIN);
    assert_string_equal(peer->history, "r.");
    weir__io_memory_returned(driver.io);
    driver_turn(&driver);
    assert_string_equal(peer->history, "r.rr.");
    suite_close(&driver);
}

/* ---- datagrams ---- */

static struct peer *open_datagrams(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX_DATAGRAM);

    peer_receive_start(peer, false);
    return peer;
}

static void send_datagrams(struct peer *peer, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(send(peer->remote, "x", 1, 0), 1);
}

TEST(readiness, datagrams_take_as_many_blocks_as_are_likely_to_come)
{
    struct driver driver;
    struct peer *peer;
    size_t taken;

    open_driver(&driver, &scripted_level);
    peer = open_datagrams(&driver);
    send_datagrams(peer, 1);
    deliver(peer, POLLIN);
    assert_int_equal(driver.memory.taken, 2);
    assert_int_equal(figure(&driver, receives), 1);
    for (int i = 0; i < 3; i++) {
        send_datagrams(peer, 8);
        deliver(peer, POLLIN);
    }
    assert_int_equal(peer->datagrams, 25);
    assert_int_equal(peer->handle->batch, 16);
    peer->handle->batch = 8;
    send_datagrams(peer, 11); /* 3 of 8 that were all the turn had left */
    deliver(peer, POLLIN);
    assert_int_equal(peer->handle->batch, 16);
    for (int i = 0; i < 4; i++) {
        taken = driver.memory.taken;
        send_datagrams(peer, 1);
        deliver(peer, POLLIN);
        assert_int_equal(peer->handle->batch, i < 2 ? 8 >> i : 2);
        if (i > 0) /* what the first has taken in vain is used up before */
            assert_int_equal(driver.memory.taken, taken);
    }
    suite_close(&driver);
}

TEST(readiness, datagrams_wait_for_their_batch_too)
{
    struct driver driver;
    struct peer *peer;

    open_driver(&driver, &scripted_level);
    peer = open_datagrams(&driver);
    send_datagrams(peer, 1);
    test_memory_fail_at(1);
    deliver(peer, POLLIN);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    assert_int_equal(driver.memory.taken, 0);
    weir__io_memory_returned(driver.io);
    driver_turn(&driver);
    assert_string_equal(peer->history, "d.");
    suite_close(&driver);
}

/*
 * With IP_RECVERR a refused datagram leaves a message in the error queue, and the socket in POLLERR
 * for ever. It must not keep the loop turning.
 */
TEST(readiness, an_error_queue_that_nobody_reads_is_emptied)
{
    struct driver driver;
    struct address address;
    struct peer *peer;
    int on = 1, nobody = socket_bind(AF_INET, SOCK_DGRAM, &address);
    uint64_t events;

    suite_open(&driver, BACKEND_EPOLL);
    (void)close(nobody);
    peer = peer_open_datagrams(&driver, socket_new(AF_INET, SOCK_DGRAM));
    assert_int_equal(setsockopt(peer->descriptor, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)), 0);
    assert_int_equal(connect(peer->descriptor, (struct sockaddr *)&address.storage, address.length),
                     0);
    peer_receive_start(peer, false);
    assert_int_equal(send(peer->descriptor, "x", 1, 0), 1);
    driver_until(&driver, peer->ends == 1);
    assert_int_equal(peer->end_error, -ECONNREFUSED);
    peer_receive_start(peer, false);
    driver_run_until_idle(&driver);
    events = figure(&driver, events);
    driver_run_until_idle(&driver);
    assert_int_equal(figure(&driver, events), events);
    suite_close(&driver);
}

/* ---- sending ---- */

TEST(readiness, a_long_vector_is_sent_in_pieces)
{
    struct driver driver;
    struct peer *peer;
    struct iovec vector[2 * IOV_MAX + 1];

    open_driver(&driver, &scripted_level);
    peer = peer_open_pair(&driver, PAIR_TCP);
    fill_vector(vector, 2 * IOV_MAX + 1);
    assert_int_equal(peer_send_vector(peer, vector, 2 * IOV_MAX + 1), 2 * IOV_MAX + 1);
    assert_int_equal(figure(&driver, sends), 3);
    assert_int_equal(weir__readiness_send_now(peer->handle, vector, IOV_MAX + 1), IOV_MAX);
    assert_int_equal(peer_send_vector(peer, vector, 0), 0);
    suite_close(&driver);
}

TEST(readiness, an_error_after_a_success_is_the_next_sends)
{
    struct driver driver;
    struct peer *peer;
    struct iovec vector[IOV_MAX + 2];

    open_driver(&driver, &scripted_level);
    peer = peer_open_pair(&driver, PAIR_TCP);
    fill_vector(vector, IOV_MAX + 2);
    faults_install();
    faults_inject(FAULT_SENDMSG, 2, 2, EPIPE);
    assert_int_equal(peer_send_vector(peer, vector, IOV_MAX + 2), IOV_MAX);
    assert_int_equal(peer_send_vector(peer, vector, 1), -EALREADY);
    driver_turn(&driver);
    assert_string_equal(peer->history, "s");
    assert_int_equal(peer_send_vector(peer, vector + IOV_MAX, 2), -EPIPE);
    faults_remove();
    suite_close(&driver);
}

TEST(readiness, writable_is_reported_once_after_waiting)
{
    struct driver driver;
    struct peer *peer;
    struct iovec vector[1];

    open_driver(&driver, &scripted_level);
    peer = peer_open_pair(&driver, PAIR_TCP);
    fill_vector(vector, 1);
    deliver(peer, POLLOUT);
    assert_string_equal(peer->history, "");
    (void)socket_fill(peer->descriptor);
    assert_int_equal(peer_send_vector(peer, vector, 1), 0);
    assert_int_equal(weir__readiness_wanted(peer->handle), POLLOUT);
    deliver(peer, POLLOUT);
    deliver(peer, POLLOUT);
    assert_string_equal(peer->history, "s");
    assert_int_equal(weir__readiness_wanted(peer->handle), 0);
    suite_close(&driver);
}

/* Some files and some sockets give little at a time: the others of the loop have their turn. */
static ssize_t sendfile_slowly(int descriptor, int file, off_t *offset, size_t count)
{
    (void)descriptor;
    (void)file;
    (void)count;
    *offset += 1;
    return 1;
}

TEST(readiness, a_file_to_a_fast_reader_yields)
{
    struct driver driver;
    struct peer *peer;
    ssize_t (*real)(int, int, off_t *, size_t) = weir__sys.sendfile;

    open_driver(&driver, &scripted_level);
    peer = peer_open_pair(&driver, PAIR_TCP);
    weir__sys.sendfile = sendfile_slowly;
    assert_int_equal(peer_send_file(peer, 0, 0, 16), 16);
    assert_int_equal(peer_send_file(peer, 0, 0, 17), 16);
    weir__sys.sendfile = real;
    driver_turn(&driver);
    assert_string_equal(peer->history, "s");
    suite_close(&driver);
}
