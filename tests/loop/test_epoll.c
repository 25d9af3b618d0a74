/* SPDX-License-Identifier: Apache-2.0 */
/* Specific to the epoll backend: which calls it makes, and which it does not. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "support/loop/faults.h"
#include "support/loop/peer.h"
#include "support/loop/suite.h"
#include "support/memory.h"
#include "support/test.h"

#define figure(driver, name) atomic_load(&(driver)->io->stats.name)

static void open_epoll(struct driver *driver)
{
    suite_open(driver, BACKEND_EPOLL);
}

/* Turns until nothing happens; returns how many events there were in three further turns. */
static uint64_t events_at_rest(struct driver *driver)
{
    uint64_t events;

    driver_run_until_idle(driver);
    events = figure(driver, events);
    driver_run_until_idle(driver);
    return figure(driver, events) - events;
}

/* How many calls of epoll_ctl there were since the last time. */
static uint64_t controls_since(struct driver *driver, uint64_t *before)
{
    uint64_t now = figure(driver, controls), since = now - *before;

    *before = now;
    return since;
}

/* ---- interest ---- */

TEST(epoll, watches_nothing_that_nobody_wants)
{
    struct driver driver;
    uint64_t before;
    struct peer *peer;

    open_epoll(&driver);
    before = figure(&driver, controls);
    peer = peer_open_pair(&driver, PAIR_TCP);
    peer_close(peer);
    assert_int_equal(controls_since(&driver, &before), 0);
    suite_close(&driver);
}

TEST(epoll, makes_no_call_that_changes_nothing)
{
    struct driver driver;
    uint64_t before;
    struct peer *peer;

    open_epoll(&driver);
    before = figure(&driver, controls);
    peer = peer_open_pair(&driver, PAIR_TCP);
    peer_receive_start(peer, false);
    assert_int_equal(controls_since(&driver, &before), 1);
    for (unsigned i = 1; i <= 10; i++) {
        peer_receive_stop(peer);
        peer_receive_start(peer, i % 2 == 0);
        assert_int_equal(peer_remote_send(peer, 10), 10);
        driver_until(&driver, peer->receives == i);
    }
    peer_send(peer, 10);
    assert_int_equal(controls_since(&driver, &before), 0);
    peer_close(peer);
    assert_int_equal(controls_since(&driver, &before), 1);
    suite_close(&driver);
}

TEST(epoll, takes_interest_back_when_its_event_comes)
{
    struct driver driver;
    uint64_t before;
    struct peer *peer;

    open_epoll(&driver);
    peer = peer_open_pair(&driver, PAIR_TCP);
    peer_receive_start(peer, false);
    peer_receive_stop(peer);
    driver_run_until_idle(&driver);
    before = figure(&driver, controls);
    assert_int_equal(peer_remote_send(peer, 10), 10);
    assert_int_equal(events_at_rest(&driver), 0);
    assert_int_equal(controls_since(&driver, &before), 1);
    peer_receive_start(peer, false);
    assert_int_equal(controls_since(&driver, &before), 1);
    driver_until(&driver, peer->bytes == 10);
    suite_close(&driver);
}

TEST(epoll, takes_interest_in_room_back)
{
    struct driver driver;
    uint64_t before;
    struct peer *peer;

    open_epoll(&driver);
    peer = peer_open_pair(&driver, PAIR_UNIX);
    peer_receive_start(peer, false);
    before = figure(&driver, controls);
    peer_send(peer, 1 << 20);
    assert_true(peer->awaits_writable);
    assert_int_equal(controls_since(&driver, &before), 1);
    driver_until(&driver, (peer_remote_receive(peer), peer->remote_in.position) == 1 << 20);
    assert_int_equal(events_at_rest(&driver), 0);
    assert_int_equal(controls_since(&driver, &before), 1);
    suite_close(&driver);
}

/* A hang-up cannot be masked: it would be reported forever. */
TEST(epoll, is_quiet_about_a_hang_up_that_nobody_wants)
{
    struct driver driver;
    uint64_t before;
    struct peer *peer;

    open_epoll(&driver);
    peer = peer_open_pair(&driver, PAIR_UNIX);
    peer_receive_start(peer, false);
    peer_receive_stop(peer);
    before = figure(&driver, controls);
    peer_remote_close(peer);
    assert_int_equal(events_at_rest(&driver), 0);
    assert_int_equal(controls_since(&driver, &before), 1);
    peer_receive_start(peer, false);
    driver_until(&driver, peer->ends == 1);
    assert_int_equal(events_at_rest(&driver), 0);
    suite_close(&driver);
}

TEST(epoll, does_not_report_handles_without_memory)
{
    struct driver driver;
    struct peer *peer;
    uint64_t events;

    open_epoll(&driver);
    peer = peer_open_pair(&driver, PAIR_UNIX);
    driver.memory.refuse = SIZE_MAX;
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 10), 10);
    peer_remote_close(peer);
    driver_until(&driver, driver.memory.refused >= 3);
    events = figure(&driver, events);
    driver_until(&driver, driver.memory.refused >= 6);
    assert_int_equal(figure(&driver, events), events);
    driver.memory.refuse = 0;
    driver_until(&driver, peer->ends == 1);
    assert_int_equal(peer->bytes, 10);
    suite_close(&driver);
}

TEST(epoll, fails_what_it_cannot_watch)
{
    struct driver driver;
    struct peer *file, *closed;

    open_epoll(&driver);
    file = peer_open(&driver, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    closed = peer_open(&driver, open("/dev/null", O_RDONLY | O_CLOEXEC));
    (void)close(closed->descriptor);
    peer_poll_start(file, POLLIN);
    peer_poll_start(closed, POLLIN);
    driver_until(&driver, file->fails == 1 && closed->fails == 1);
    assert_int_equal(file->fail_error, -EPERM);
    assert_int_equal(closed->fail_error, -EBADF);
    suite_close(&driver);
}

/* ---- descriptors that live on ---- */

TEST(epoll, ignores_a_closed_descriptor_open_in_another_process)
{
    struct driver driver;
    struct peer *peer;
    int copy;

    open_epoll(&driver);
    peer = peer_open_pair(&driver, PAIR_UNIX);
    copy = dup(peer->descriptor);
    peer_receive_start(peer, false);
    peer_close(peer);
    assert_int_equal(peer_remote_send(peer, 10), 10);
    assert_int_equal(events_at_rest(&driver), 0);
    (void)close(copy);
    suite_close(&driver);
}

/* It cannot be taken out of the set, which would go on to name a handle that is gone. */
TEST(epoll, asks_to_be_rebuilt_when_a_descriptor_was_closed_behind_its_back)
{
    struct driver driver;
    struct peer *peer, *other;
    int copy;

    open_epoll(&driver);
    other = peer_open_pair(&driver, PAIR_UNIX);
    peer_receive_start(other, false);
    peer = peer_open_pair(&driver, PAIR_UNIX);
    peer_receive_start(peer, false);
    copy = dup(peer->descriptor);
    (void)close(peer->descriptor);
    peer_close(peer);
    driver.dispatching = true;
    (void)weir__io_dispatch(driver.io, WEIR_NEVER);
    driver.dispatching = false;
    assert_int_equal(peer->detaches, 1);
    assert_int_equal(peer_remote_send(peer, 10), 10);
    assert_int_equal(weir__io_wait(driver.io, 0), -ESTALE);
    assert_int_equal(weir__io_rebuild(driver.io), 0);
    assert_int_equal(peer_remote_send(other, 10), 10);
    driver_until(&driver, other->bytes == 10);
    assert_int_equal(events_at_rest(&driver), 0);
    (void)close(copy);
    suite_close(&driver);
}

/* ---- the batch ---- */

#define MANY 200

/* Handles that are always ready. */
static void open_many(struct driver *driver, struct peer *peers[MANY])
{
    for (size_t i = 0; i < MANY; i++) {
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
        peer_poll_start(peers[i], POLLOUT);
    }
}

static bool dispatch(struct driver *driver, int64_t until_ns)
{
    bool more;

    driver->turn++;
    driver->dispatching = true;
    more = weir__io_dispatch(driver->io, until_ns);
    driver->dispatching = false;
    return more;
}

TEST(epoll, takes_more_events_after_a_batch_that_was_full)
{
    struct peer *peers[MANY];
    struct driver driver;

    open_epoll(&driver);
    open_many(&driver, peers);
    assert_int_equal(weir__io_wait(driver.io, 0), 64);
    assert_false(dispatch(&driver, WEIR_NEVER));
    assert_int_equal(weir__io_wait(driver.io, 0), 128);
    assert_false(dispatch(&driver, WEIR_NEVER));
    assert_int_equal(weir__io_wait(driver.io, 0), MANY);
    assert_false(dispatch(&driver, WEIR_NEVER));
    suite_close(&driver);
}

TEST(epoll, makes_do_with_its_array_when_it_cannot_grow)
{
    struct peer *peers[MANY];
    struct driver driver;

    open_epoll(&driver);
    open_many(&driver, peers);
    test_memory_fail_at(1);
    assert_int_equal(weir__io_wait(driver.io, 0), 64);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    assert_false(dispatch(&driver, WEIR_NEVER));
    assert_int_equal(weir__io_wait(driver.io, 0), 64);
    assert_false(dispatch(&driver, WEIR_NEVER));
    assert_int_equal(weir__io_wait(driver.io, 0), 128);
    assert_false(dispatch(&driver, WEIR_NEVER));
    suite_close(&driver);
}

static size_t delivered_count(struct peer *peers[MANY])
{
    size_t count = 0;

    for (size_t i = 0; i < MANY; i++)
        count += peers[i]->polls;
    return count;
}

TEST(epoll, goes_on_with_a_batch_where_it_stopped)
{
    struct peer *peers[MANY];
    struct driver driver;
    uint64_t waits;

    open_epoll(&driver);
    open_many(&driver, peers);
    assert_int_equal(weir__io_wait(driver.io, 0), 64);
    waits = figure(&driver, waits);
    assert_true(dispatch(&driver, 0));
    assert_int_equal(delivered_count(peers), WEIR__IO_CLOCK_INTERVAL);
    assert_int_equal(weir__io_wait(driver.io, WEIR_NEVER), 64 - WEIR__IO_CLOCK_INTERVAL);
    assert_int_equal(figure(&driver, waits), waits);
    for (size_t i = 0; i < MANY; i++)
        if (peers[i]->polls == 0)
            peer_close(peers[i]);
    assert_false(dispatch(&driver, WEIR_NEVER));
    assert_int_equal(delivered_count(peers), WEIR__IO_CLOCK_INTERVAL);
    suite_close(&driver);
}

/* ---- waiting ---- */

static void wait_without_pwait2(int err)
{
    struct driver driver;

    faults_install();
    open_epoll(&driver);
    faults_inject(FAULT_EPOLL_PWAIT2, 1, UINT64_MAX / 2, err);
    for (int i = 0; i < 5; i++) {
        int64_t deadline_ns = weir__monotonic_now() + weir_us(300 + 500 * i);

        assert_int_equal(weir__io_wait(driver.io, deadline_ns), 0);
        assert_true(weir__monotonic_now() >= deadline_ns);
    }
    assert_int_equal(faults_injected(), 1);
    faults_remove();
    suite_close(&driver);
}

TEST(epoll, is_not_early_where_there_is_no_epoll_pwait2)
{
    wait_without_pwait2(ENOSYS);
    wait_without_pwait2(EPERM);
}

TEST(epoll, asks_for_a_deadline_only_if_there_is_one)
{
    struct driver driver;
    uint64_t before;

    faults_install();
    open_epoll(&driver);
    before = faults_calls(FAULT_EPOLL_PWAIT2);
    assert_int_equal(weir__io_wait(driver.io, 0), 0);
    assert_int_equal(weir__io_wait(driver.io, 1), 0);
    weir__io_wake(driver.io);
    assert_int_equal(weir__io_wait(driver.io, WEIR_NEVER), 0);
    assert_int_equal(faults_calls(FAULT_EPOLL_PWAIT2), before);
    assert_int_equal(weir__io_wait(driver.io, weir__monotonic_now() + weir_ms(1)), 0);
    assert_int_equal(faults_calls(FAULT_EPOLL_PWAIT2), before + 1);
    faults_remove();
    suite_close(&driver);
}

TEST(epoll, never_reads_its_eventfd)
{
    struct driver driver;
    uint64_t reads;

    faults_install();
    open_epoll(&driver);
    reads = faults_calls(FAULT_READ);
    for (int i = 0; i < 10; i++) {
        weir__io_wake(driver.io);
        weir__io_wake(driver.io);
        assert_int_equal(weir__io_wait(driver.io, WEIR_NEVER), 0);
        assert_true(driver.io->woken);
        assert_int_equal(weir__io_wait(driver.io, 0), 0);
        assert_false(driver.io->woken);
    }
    assert_int_equal(faults_calls(FAULT_READ), reads);
    faults_remove();
    suite_close(&driver);
}

/* ---- beginning ---- */

TEST(epoll, that_is_refused_gives_a_reason)
{
    static const enum fault_call calls[] = {FAULT_EPOLL_CREATE1, FAULT_EPOLL_CTL};
    size_t descriptors = descriptors_open();
    char reason[128] = "";
    weir__io *io;

    faults_install();
    for (size_t i = 0; i < 2; i++) {
        faults_inject(calls[i], 1, 1, EMFILE);
        assert_int_equal(backend_create(&backends[BACKEND_EPOLL], &io, reason, sizeof(reason)),
                         -EMFILE);
        assert_non_null(strstr(reason, "ulimit"));
    }
    faults_remove();
    for (unsigned n = 1; n <= 2; n++) {
        test_memory_fail_at(n);
        assert_int_equal(backend_create(&backends[BACKEND_EPOLL], &io, reason, sizeof(reason)),
                         -ENOMEM);
        test_memory_fail_at(0);
    }
    assert_int_equal(descriptors_open(), descriptors);
}

TEST(epoll, rebuilt_watches_what_is_wanted_and_no_more)
{
    struct driver driver;
    uint64_t before;
    struct peer *peer;

    open_epoll(&driver);
    (void)peer_open_pair(&driver, PAIR_UNIX);
    peer = peer_open_pair(&driver, PAIR_UNIX);
    peer_receive_start(peer, false);
    before = figure(&driver, controls);
    assert_int_equal(weir__io_rebuild(driver.io), 0);
    assert_int_equal(controls_since(&driver, &before), 2); /* its own, and the eventfd's */
    assert_int_equal(peer_remote_send(peer, 10), 10);
    driver_until(&driver, peer->bytes == 10);
    suite_close(&driver);
}

TEST(epoll, without_a_set_remembers_what_is_wanted)
{
    struct driver driver;
    struct peer *peer;

    faults_install();
    open_epoll(&driver);
    faults_inject(FAULT_EPOLL_CREATE1, 1, 1, EMFILE);
    assert_int_equal(weir__io_rebuild(driver.io), -EMFILE);
    faults_remove();
    peer = peer_open_pair(&driver, PAIR_UNIX);
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 10), 10);
    driver_run_until_idle(&driver);
    assert_string_equal(peer->history, "");
    assert_int_equal(weir__io_rebuild(driver.io), 0);
    driver_until(&driver, peer->bytes == 10);
    suite_close(&driver);
}
