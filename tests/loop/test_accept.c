/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepting connections, on each backend.
 */
#include <errno.h>
#include <unistd.h>

#include "os/system.h"
#include "support/loop/suite.h"

#define CLIENTS 50

static struct peer *open_listener(struct driver *driver, int family, struct address *ret_address)
{
    return peer_open(driver, socket_listen(family, 1024, ret_address));
}

static void connect_clients(const struct address *address, int *clients, int count)
{
    for (int i = 0; i < count; i++)
        clients[i] = socket_connect(address);
}

static void close_all(const int *descriptors, int count)
{
    for (int i = 0; i < count; i++)
        (void)close(descriptors[i]);
}

/* ---- connections ---- */

/* That no turn tells more than 16, and each ends with one read_complete, is the peer's to see. */
static void accept_many(struct driver *driver, int family)
{
    struct address address;
    struct peer *listener = open_listener(driver, family, &address);
    int clients[CLIENTS];

    connect_clients(&address, clients, CLIENTS);
    peer_accept_start(listener);
    driver_until(driver, listener->accepts == CLIENTS);
    assert_true(listener->completes >= (CLIENTS + WEIR__IO_READS_MAX - 1) / WEIR__IO_READS_MAX);
    close_all(clients, CLIENTS);
}

TEST_EACH_BACKEND(accept, delivers_all_connections_at_most_sixteen_per_turn)
{
    accept_many(driver, AF_INET);
}

TEST_EACH_BACKEND(accept, works_on_unix_sockets)
{
    accept_many(driver, AF_UNIX);
}

TEST_EACH_BACKEND(accept, delivers_connections_as_they_arrive)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);

    peer_accept_start(listener);
    peer_accept_start(listener);
    for (unsigned i = 1; i <= 20; i++) {
        int client = socket_connect(&address);

        driver_until(driver, listener->accepts == i);
        (void)close(client);
    }
}

/* Descriptors in the backend: those that are open and are not counted by anybody else. */
struct held {
    size_t others;
    size_t most;
};

static void count_held(struct peer *listener, enum peer_event event)
{
    struct held *held = listener->arg;
    size_t count;

    if (event != PEER_ACCEPTED)
        return;
    count = descriptors_open() - held->others - listener->accepts;
    if (count > held->most)
        held->most = count;
}

/* However long the owner takes for each, the others wait in the backlog, which is limited. */
TEST_EACH_BACKEND(accept, takes_connections_only_to_deliver_them)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int clients[CLIENTS];
    struct held held = {0};

    peer_accept_start(listener);
    driver_run_until_idle(driver);
    connect_clients(&address, clients, CLIENTS);
    held.others = descriptors_open();
    listener->arg = &held;
    listener->react = count_held;
    driver_until(driver, listener->accepts == CLIENTS);
    assert_int_equal(held.most, 0);
    close_all(clients, CLIENTS);
}

static void note_address(weir__io_handle *handle, int descriptor, const struct sockaddr *peer,
                         socklen_t peer_length)
{
    struct sockaddr_storage actual = {0};
    socklen_t length = sizeof(actual);

    (void)handle;
    assert_true(descriptor >= 0);
    assert_int_equal(getpeername(descriptor, (struct sockaddr *)&actual, &length), 0);
    if (peer != NULL) {
        assert_int_equal(peer_length, length);
        assert_memory_equal(peer, &actual, length);
    }
    (void)close(descriptor);
}

static void note_detached(weir__io_handle *handle)
{
    handle->owner = NULL;
}

static void no_word(weir__io_handle *handle)
{
    (void)handle;
}

TEST_EACH_BACKEND(accept, passes_the_peers_address_if_any)
{
    static const weir__io_owner owner = {
        .accepted = note_address,
        .read_complete = no_word,
        .detached = note_detached,
    };
    struct address address;
    weir__io_handle handle;
    uint64_t events = atomic_load(&driver->io->stats.events);
    int client;

    weir__io_handle_init(&handle, socket_listen(AF_INET, 8, &address), &owner);
    assert_int_equal(weir__io_attach(driver->io, &handle), 0);
    client = socket_connect(&address);
    weir__io_accept_start(&handle);
    driver_until(driver, atomic_load(&driver->io->stats.events) > events);
    weir__io_close(&handle);
    driver_until(driver, handle.owner == NULL);
    (void)close(client);
}

/* ---- stopping ---- */

TEST_EACH_BACKEND(accept, delivers_nothing_before_start_and_after_stop)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int clients[3];

    connect_clients(&address, clients, 1);
    driver_run_until_idle(driver);
    peer_accept_start(listener);
    driver_until(driver, listener->accepts == 1);
    peer_accept_stop(listener);
    peer_accept_stop(listener);
    connect_clients(&address, clients + 1, 2);
    driver_run_until_idle(driver);
    assert_int_equal(listener->accepts, 1);

    peer_accept_start(listener);
    driver_until(driver, listener->accepts == 3);
    close_all(clients, 3);
}

static void stop_accepting(struct peer *peer, enum peer_event event)
{
    if (event == PEER_ACCEPTED)
        peer_accept_stop(peer);
}

TEST_EACH_BACKEND(accept, stops_in_the_call_back_and_loses_nobody)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int clients[CLIENTS];

    connect_clients(&address, clients, CLIENTS);
    listener->react = stop_accepting;
    for (unsigned i = 1; i <= CLIENTS; i++) {
        peer_accept_start(listener);
        driver_until(driver, listener->accepts == i);
        driver_turn(driver);
        assert_int_equal(listener->accepts, i);
    }
    close_all(clients, CLIENTS);
}

static void start_again(struct peer *peer, enum peer_event event)
{
    if (event != PEER_ACCEPTED)
        return;
    peer_accept_stop(peer);
    peer_accept_start(peer);
}

TEST_EACH_BACKEND(accept, goes_on_if_stopped_and_started_in_the_call_back)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int clients[CLIENTS];

    connect_clients(&address, clients, CLIENTS);
    listener->react = start_again;
    peer_accept_start(listener);
    driver_until(driver, listener->accepts == CLIENTS);
    close_all(clients, CLIENTS);
}

static void close_listener(struct peer *peer, enum peer_event event)
{
    if (event == PEER_ACCEPTED)
        peer_close(peer);
}

/* Those that the kernel had handed out already are closed with it: the descriptors are counted. */
TEST_EACH_BACKEND(accept, delivers_nothing_after_a_close_in_the_callback)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int clients[CLIENTS];

    connect_clients(&address, clients, CLIENTS);
    listener->react = close_listener;
    peer_accept_start(listener);
    driver_until(driver, listener->detaches == 1);
    assert_int_equal(listener->accepts, 1);
    close_all(clients, CLIENTS);
}

TEST_EACH_BACKEND(accept, closed_while_connections_wait_takes_them_along)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int clients[CLIENTS];

    peer_accept_start(listener);
    driver_run_until_idle(driver);
    connect_clients(&address, clients, CLIENTS);
    peer_close(listener);
    driver_until(driver, listener->detaches == 1);
    assert_int_equal(listener->accepts, 0);
    close_all(clients, CLIENTS);
}

TEST_EACH_BACKEND(accept, closed_while_stopped_takes_connections_along)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int clients[CLIENTS];

    connect_clients(&address, clients, CLIENTS);
    listener->react = stop_accepting;
    peer_accept_start(listener);
    driver_until(driver, listener->accepts == 1);
    driver_run_until_idle(driver);
    peer_close(listener);
    driver_until(driver, listener->detaches == 1);
    close_all(clients, CLIENTS);
}

/* ---- errors ---- */

TEST_EACH_BACKEND(accept, stops_with_the_error_when_descriptors_run_out)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int client = socket_connect(&address);
    rlim_t limit;

    peer_accept_start(listener);
    limit = descriptors_forbid();
    for (int i = 0; i < 1000 && listener->accept_error == 0; i++)
        (void)driver_step(driver, weir_ms(10));
    for (int i = 0; i < 5; i++)
        (void)driver_step(driver, weir_ms(1));
    descriptors_limit(limit);
    assert_int_equal(listener->accept_error, -EMFILE);
    assert_int_equal(listener->accepts, 0);
    assert_false(listener->accepting);
    assert_string_equal(listener->history, "a.");

    driver_run_until_idle(driver);
    assert_int_equal(listener->accepts, 0);
    peer_accept_start(listener);
    driver_until(driver, listener->accepts == 1);
    (void)close(client);
}

TEST_EACH_BACKEND(accept, delivers_connections_before_the_error_too)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int clients[5];
    rlim_t limit;

    connect_clients(&address, clients, 5);
    limit = descriptors_forbid();
    descriptors_limit((rlim_t)clients[4] + 4);
    peer_accept_start(listener);
    for (int i = 0; i < 1000 && listener->accept_error == 0; i++)
        (void)driver_step(driver, weir_ms(10));
    descriptors_limit(limit);
    assert_int_equal(listener->accept_error, -EMFILE);
    assert_true(listener->accepts < 5);

    peer_accept_start(listener);
    driver_until(driver, listener->accepts == 5);
    close_all(clients, 5);
}

TEST_EACH_BACKEND(accept, survives_clients_that_are_gone_already)
{
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int client;

    for (int i = 0; i < 10; i++)
        socket_reset(socket_connect(&address));
    client = socket_connect(&address);
    peer_accept_start(listener);
    driver_until(driver, listener->accepts > 0);
    driver_run_until_idle(driver);
    assert_int_equal(listener->accept_error, 0);
    assert_true(listener->accepting);
    (void)close(client);
}

/* The kernel answers with these in place of a connection. */
static struct {
    int (*accept4)(int descriptor, struct sockaddr *address, socklen_t *length, int flags);
    int errors[8];
    unsigned count;
} refusals;

static int refuse(int descriptor, struct sockaddr *address, socklen_t *length, int flags)
{
    if (refusals.count == 0)
        return refusals.accept4(descriptor, address, length, flags);
    errno = refusals.errors[--refusals.count];
    return -1;
}

static void refuse_next(const int *errors, unsigned count)
{
    refusals.accept4 = weir__sys.accept4;
    weir__sys.accept4 = refuse;
    refusals.count = count;
    for (unsigned i = 0; i < count; i++)
        refusals.errors[i] = errors[i];
}

TEST_EACH_BACKEND(accept, does_not_report_aborted_connections)
{
    static const int aborted[] = {ECONNABORTED, EPROTO, EINTR, ENETDOWN, EHOSTUNREACH};
    struct address address;
    struct peer *listener = open_listener(driver, AF_INET, &address);
    int client = socket_connect(&address);

    refuse_next(aborted, sizeof(aborted) / sizeof(aborted[0]));
    peer_accept_start(listener);
    for (int i = 0; i < 1000 && listener->accepts == 0; i++)
        (void)driver_step(driver, weir_ms(10));
    weir__sys.accept4 = refusals.accept4;
    refusals.count = 0;
    assert_int_equal(listener->accepts, 1);
    assert_int_equal(listener->accept_error, 0);
    (void)close(client);
}

TEST_EACH_BACKEND(accept, on_what_does_not_listen_is_an_error)
{
    struct peer *peer = peer_open(driver, socket_new(AF_INET, SOCK_STREAM));

    peer_accept_start(peer);
    driver_until(driver, peer->accept_error != 0);
    assert_int_equal(peer->accept_error, -EINVAL);
}
