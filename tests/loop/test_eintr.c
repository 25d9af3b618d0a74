/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that interrupt every system call, on each backend: the loop does not notice.
 */
#include <signal.h>
#include <sys/time.h>

#include "support/loop/signals.h"
#include "support/loop/suite.h"

#define TOTAL (2u << 20)

/* A signal every 50 us, whose handler does not restart the call. */
static void begin_storm(void)
{
    const struct itimerval often = {{0, 50}, {0, 50}};

    signals_count(SIGALRM);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
}

static void end_storm(void)
{
    const struct itimerval never = {{0, 0}, {0, 0}};

    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
}

/* No assert in the storm: a test that is left while it rages would take the others along. */
static void weather_the_storm(struct driver *driver, bool (*is_over)(void *arg), void *arg)
{
    int64_t give_up_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    bool fine = true;

    begin_storm();
    while (fine && !is_over(arg) && weir__monotonic_now() < give_up_ns)
        fine = driver_step(driver, weir_ms(10));
    end_storm();
    assert_true(fine);
    assert_true(is_over(arg));
    assert_true(signals_counted() > 0);
}

/* ---- traffic ---- */

static bool is_all_there(void *arg)
{
    struct peer **peers = arg;
    bool all = signals_counted() > 100;

    for (int i = 0; i < 4; i++)
        all &= peers[i]->bytes == TOTAL && peers[i]->bytes_sent == TOTAL;
    return all;
}

TEST_EACH_BACKEND(eintr, traffic_loses_no_byte)
{
    struct peer *peers[4];
    int pair[2];

    for (int i = 0; i < 4; i++) {
        if (i % 2 == 0)
            socket_pair(i == 0 ? PAIR_TCP : PAIR_UNIX, pair);
        peers[i] = peer_open(driver, pair[i % 2]);
        peer_receive_start(peers[i], false);
        peer_send(peers[i], TOTAL);
    }
    weather_the_storm(driver, is_all_there, peers);
}

/* ---- connections ---- */

struct doors {
    struct address address;
    struct peer *listener;
    struct peer *client; /* of the moment */
    unsigned count;
};

static bool is_visited(void *arg)
{
    struct doors *doors = arg;
    struct driver *driver = doors->listener->driver;

    if (doors->client != NULL && doors->client->connects == 0)
        return false;
    if (doors->client != NULL && doors->client->connect_result != 0)
        driver_fail(driver, "connect fails with %d", doors->client->connect_result);
    if (doors->client != NULL)
        peer_close(doors->client);
    if (doors->count == 100)
        return doors->listener->accepts == 100 && signals_counted() > 20;
    doors->count++;
    doors->client = peer_open(driver, socket_new(AF_INET, SOCK_STREAM));
    peer_connect(doors->client, &doors->address);
    return false;
}

TEST_EACH_BACKEND(eintr, connections_are_made)
{
    struct doors doors = {.count = 0};

    doors.listener = peer_open(driver, socket_listen(AF_INET, 128, &doors.address));
    peer_accept_start(doors.listener);
    weather_the_storm(driver, is_visited, &doors);
}

/* ---- waiting ---- */

/* An interrupted wait may return, but has nothing to tell; and no error. */
TEST_EACH_BACKEND(eintr, waits_are_interrupted_without_an_error)
{
    int64_t end_ns;
    int worst = 0;

    begin_storm();
    end_ns = weir__monotonic_now() + weir_ms(100);
    while (weir__monotonic_now() < end_ns) {
        int events = weir__io_wait(driver->io, end_ns);

        worst = events != 0 ? events : worst;
        (void)weir__io_dispatch(driver->io, WEIR_NEVER);
    }
    end_storm();
    assert_int_equal(worst, 0);
    assert_true(signals_counted() > 10);
}

TEST_EACH_BACKEND(eintr, rebuilds_come_through)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    int worst = 0;

    peer_receive_start(peer, false);
    begin_storm();
    for (int i = 0; i < 50; i++) {
        int err = weir__io_rebuild(driver->io);

        worst = err != 0 ? err : worst;
        (void)driver_step(driver, weir_ms(1));
    }
    end_storm();
    assert_int_equal(worst, 0);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_until(driver, peer->bytes == 100);
}
