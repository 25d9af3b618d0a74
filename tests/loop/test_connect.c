/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting, on each backend. The peer checks that no result comes from inside the call. */
#include <errno.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/loop/suite.h"

#define BACKLOG_MAX 64

static struct peer *open_client(struct driver *driver, int family)
{
    return peer_open(driver, socket_new(family, SOCK_STREAM));
}

static void expect_result(struct driver *driver, struct peer *client, int result)
{
    driver_until(driver, client->connects == 1);
    driver_run_until_idle(driver);
    assert_int_equal(client->connects, 1);
    assert_int_equal(client->connect_result, result);
}

/* A listener that lets nobody in any more, and those who wait before it. */
struct crowd {
    struct address address;
    int listener;
    int waiting[BACKLOG_MAX];
    int count;
};

static bool join(struct crowd *crowd)
{
    const struct sockaddr *address = (const struct sockaddr *)&crowd->address.storage;
    int descriptor = socket_new(crowd->address.storage.ss_family, SOCK_STREAM);
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    bool taken;

    taken =
        connect(descriptor, address, crowd->address.length) == 0 ||
        (errno == EINPROGRESS && getpeername(descriptor, (struct sockaddr *)&peer, &length) == 0);
    crowd->waiting[crowd->count++] = descriptor;
    return taken;
}

static void gather(struct crowd *crowd, int family)
{
    *crowd = (struct crowd){.count = 0};
    crowd->listener = socket_listen(family, 0, &crowd->address);
    while (crowd->count < BACKLOG_MAX && join(crowd))
        continue;
    assert_true(crowd->count < BACKLOG_MAX);
}

static void disperse(struct crowd *crowd)
{
    for (int i = 0; i < crowd->count; i++)
        (void)close(crowd->waiting[i]);
    (void)close(crowd->listener);
}

/* ---- success ---- */

static void connect_and_talk(struct driver *driver, int family)
{
    struct address address;
    int listener = socket_listen(family, 8, &address);
    struct peer *client = open_client(driver, family);

    peer_connect(client, &address);
    assert_int_equal(client->connects, 0);
    expect_result(driver, client, 0);

    client->remote = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(client->remote >= 0);
    peer_receive_start(client, false);
    assert_int_equal(peer_remote_send(client, 1000), 1000);
    driver_until(driver, client->bytes == 1000);
    peer_send(client, 1000);
    driver_until(driver, (peer_remote_receive(client), client->remote_in.position) == 1000);
    (void)close(listener);
}

TEST_EACH_BACKEND(connect, establishes_a_connection_that_works)
{
    connect_and_talk(driver, AF_INET);
}

TEST_EACH_BACKEND(connect, reaches_a_unix_socket)
{
    connect_and_talk(driver, AF_UNIX);
}

TEST_EACH_BACKEND(connect, many_at_once)
{
    struct address address;
    int listener = socket_listen(AF_INET, 256, &address);
    struct peer *clients[100];

    for (int i = 0; i < 100; i++) {
        clients[i] = open_client(driver, AF_INET);
        peer_connect(clients[i], &address);
    }
    for (int i = 0; i < 100; i++) {
        driver_until(driver, clients[i]->connects == 1);
        assert_int_equal(clients[i]->connect_result, 0);
    }
    (void)close(listener);
}

static void receive_and_send(struct peer *peer, enum peer_event event)
{
    if (event != PEER_CONNECTED)
        return;
    peer_receive_start(peer, false);
    peer_send(peer, 100);
}

TEST_EACH_BACKEND(connect, lets_the_call_back_send_and_receive_at_once)
{
    struct address address;
    int listener = socket_listen(AF_INET, 8, &address);
    struct peer *client = open_client(driver, AF_INET);

    client->react = receive_and_send;
    peer_connect(client, &address);
    expect_result(driver, client, 0);
    client->remote = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_int_equal(peer_remote_receive(client), 100);
    assert_int_equal(peer_remote_send(client, 100), 100);
    driver_until(driver, client->bytes == 100);
    (void)close(listener);
}

TEST_EACH_BACKEND(connect, is_followed_by_the_receive_that_was_started_meanwhile)
{
    struct address address;
    int listener = socket_listen(AF_INET, 8, &address);
    struct peer *client = open_client(driver, AF_INET);

    peer_connect(client, &address);
    peer_receive_start(client, false);
    expect_result(driver, client, 0);
    client->remote = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_int_equal(peer_remote_send(client, 100), 100);
    driver_until(driver, client->bytes == 100);
    assert_string_equal(client->history, "cr.");
    (void)close(listener);
}

/* A socket that is not connected has hung up, says the kernel: that is not the result. */
TEST_EACH_BACKEND(connect, after_a_receive_was_started_is_reported)
{
    struct crowd crowd;
    struct peer *client = open_client(driver, AF_INET);

    gather(&crowd, AF_INET);
    peer_receive_start(client, false);
    peer_connect(client, &crowd.address);
    driver_run_until_idle(driver);
    assert_int_equal(client->connects, 0);
    disperse(&crowd);
    driver_until(driver, client->connects == 1);
    assert_int_equal(client->connect_result, -ECONNREFUSED);
    driver_run_until_idle(driver);
    assert_int_equal(client->connects, 1);
}

/* The first packet was dropped: a second one, a second later, finds room. */
TEST_EACH_BACKEND(connect, is_established_when_the_backlog_has_room_again)
{
    struct crowd crowd;
    struct peer *client = open_client(driver, AF_INET);

    gather(&crowd, AF_INET);
    peer_connect(client, &crowd.address);
    driver_run_until_idle(driver);
    assert_int_equal(client->connects, 0);
    for (int i = 0; i < crowd.count; i++) {
        int taken = accept4(crowd.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (taken >= 0)
            (void)close(taken);
    }
    expect_result(driver, client, 0);
    disperse(&crowd);
}

/* ---- failure ---- */

TEST_EACH_BACKEND(connect, refused_is_reported)
{
    struct address address;
    struct peer *client = open_client(driver, AF_INET);

    (void)close(socket_bind(AF_INET, SOCK_STREAM, &address));
    peer_connect(client, &address);
    assert_int_equal(client->connects, 0);
    expect_result(driver, client, -ECONNREFUSED);
}

static void close_client(struct peer *peer, enum peer_event event)
{
    if (event == PEER_CONNECTED)
        peer_close(peer);
}

TEST_EACH_BACKEND(connect, refused_may_close_in_the_call_back)
{
    struct address address;
    struct peer *client = open_client(driver, AF_INET);

    (void)close(socket_bind(AF_INET, SOCK_STREAM, &address));
    client->react = close_client;
    peer_connect(client, &address);
    driver_until(driver, client->detaches == 1);
    assert_string_equal(client->history, "cx");
}

TEST_EACH_BACKEND(connect, to_an_unknown_family_fails)
{
    struct address address = {.storage = {.ss_family = AF_UNIX}, .length = sizeof(sa_family_t) + 2};
    struct peer *client = open_client(driver, AF_INET);

    peer_connect(client, &address);
    driver_until(driver, client->connects == 1);
    assert_true(client->connect_result < 0);
}

TEST_EACH_BACKEND(connect, to_a_missing_path_fails)
{
    struct address address = {.length = sizeof(struct sockaddr_un)};
    struct sockaddr_un *local = (struct sockaddr_un *)&address.storage;
    struct peer *client = open_client(driver, AF_UNIX);

    *local = (struct sockaddr_un){.sun_family = AF_UNIX, .sun_path = "/nowhere/socket"};
    peer_connect(client, &address);
    expect_result(driver, client, -ENOENT);
}

TEST_EACH_BACKEND(connect, to_a_full_unix_backlog_is_an_error)
{
    struct crowd crowd;
    struct peer *client = open_client(driver, AF_UNIX);

    gather(&crowd, AF_UNIX);
    peer_connect(client, &crowd.address);
    expect_result(driver, client, -EAGAIN);
    disperse(&crowd);
}

/* ---- giving up ---- */

TEST_EACH_BACKEND(connect, to_a_full_backlog_reports_nothing_until_closed)
{
    struct crowd crowd;
    struct peer *client = open_client(driver, AF_INET);

    gather(&crowd, AF_INET);
    peer_connect(client, &crowd.address);
    for (int i = 0; i < 10; i++)
        driver_turn(driver);
    assert_int_equal(client->connects, 0);
    peer_close(client);
    driver_until(driver, client->detaches == 1);
    assert_string_equal(client->history, "x");
    disperse(&crowd);
}

/* The attempt is the socket's: what replaces the backend's part has no result for it. */
TEST_EACH_BACKEND(connect, to_a_full_backlog_goes_on_through_a_rebuild)
{
    struct crowd crowd;
    struct peer *client = open_client(driver, AF_INET);

    gather(&crowd, AF_INET);
    peer_connect(client, &crowd.address);
    driver_run_until_idle(driver);
    assert_int_equal(weir__io_rebuild(driver->io), 0);
    driver_run_until_idle(driver);
    assert_int_equal(client->connects, 0);
    assert_int_equal(client->fails, 0);
    peer_close(client);
    driver_until(driver, client->detaches == 1);
    disperse(&crowd);
}

TEST_EACH_BACKEND(connect, closed_before_its_result_reports_nothing)
{
    struct address address;
    int listener = socket_listen(AF_INET, 8, &address);
    struct peer *good = open_client(driver, AF_INET);
    struct peer *bad = open_client(driver, AF_INET);
    struct address nobody;

    (void)close(socket_bind(AF_INET, SOCK_STREAM, &nobody));
    peer_connect(good, &address);
    peer_connect(bad, &nobody);
    peer_close(good);
    peer_close(bad);
    driver_until(driver, good->detaches == 1 && bad->detaches == 1);
    assert_string_equal(good->history, "x");
    assert_string_equal(bad->history, "x");
    (void)close(listener);
}

/* It would come to its end when the handle's memory is somebody else's. */
static void connect_when_left(struct driver *driver, void (*leave)(struct peer *peer))
{
    struct address address;
    int listener = socket_listen(AF_INET, 8, &address);
    struct peer *client = open_client(driver, AF_INET);

    leave(client);
    peer_connect(client, &address);
    assert_int_equal(atomic_load(&driver->io->stats.connects), 0);
    driver_until(driver, client->detaches == 1);
    assert_string_equal(client->history, "x");
    (void)close(listener);
}

TEST_EACH_BACKEND(connect, of_a_handle_that_is_leaving_does_nothing)
{
    connect_when_left(driver, peer_detach);
    connect_when_left(driver, peer_close);
}
