/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Specific to rings: full queues, kernel threads, operations that do not end. What they have in
 * common with other backends is tested there.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/error.h>

#include "loop/uring.h"
#include "os/thread.h"
#include "support/executor/log_capture.h"
#include "support/loop/suite.h"
#include "support/loop/uring_seam.h"

/* ---- small queues ---- */

#define CROWD 200
#define SMALL_READS 8 /* after them a handle receives by the ring */

static void tick(int descriptor)
{
    const uint64_t one = 1;

    assert_int_equal(write(descriptor, &one, sizeof(one)), sizeof(one));
}

static void stop_polling(struct peer *peer, enum peer_event event)
{
    if (event == PEER_POLLED)
        peer_poll_stop(peer);
}

static bool all_were_polled(struct peer **peers, unsigned times)
{
    for (int i = 0; i < CROWD; i++) {
        if (peers[i]->polls < times)
            return false;
    }
    return true;
}

static void overflow(struct driver *driver)
{
    struct peer *peers[CROWD];

    for (int i = 0; i < CROWD; i++) {
        peers[i] = peer_open(driver, eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
        peers[i]->react = stop_polling;
    }
    for (unsigned round = 1; round <= 10; round++) {
        for (int i = 0; i < CROWD; i++)
            peer_poll_start(peers[i], POLLIN);
        driver_until(driver, all_were_polled(peers, round));
    }
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(peers[i]->polls, 10);
}

TEST(uring, loses_no_completion_when_the_queue_overflows)
{
    uring_seam_restore();
    weir__uring_system.setup = uring_setup_tiny;
    suite_run(BACKEND_URING, overflow);
    uring_seam_restore();
}

static void crowd_of_streams(struct driver *driver)
{
    struct peer *peers[CROWD];

    for (int i = 0; i < CROWD; i++) {
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
        peer_receive_start(peers[i], false);
    }
    driver_run_until_idle(driver);
    for (uint64_t round = 1; round <= 5; round++) {
        for (int i = 0; i < CROWD; i++)
            assert_int_equal(peer_remote_send(peers[i], 1000), 1000);
        for (int i = 0; i < CROWD; i++)
            driver_until(driver, peers[i]->bytes == 1000 * round);
    }
}

TEST(uring, loses_no_byte_when_the_queue_overflows)
{
    uring_seam_restore();
    weir__uring_system.setup = uring_setup_tiny;
    suite_run(BACKEND_URING, crowd_of_streams);
    uring_seam_restore();
}

/* ---- used entries ---- */

/* Entries of operations long past, with every field set. */
static int setup_with_garbage(unsigned entries, struct io_uring *ring,
                              struct io_uring_params *params)
{
    int err = uring_real.setup(entries, ring, params);

    if (err == 0)
        memset(ring->sq.sqes, 0xa5, ring->sq.ring_entries * sizeof(ring->sq.sqes[0]));
    return err;
}

/* The functions of liburing 2.3 clear an entry, too: the first one is looked at before that. */
static void use_garbage(struct driver *driver)
{
    weir__uring *ring = weir__uring_of(driver->io);
    const struct io_uring_sqe cleared = {0};
    struct io_uring_sqe *sqe;
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    sqe = weir__uring_next_sqe(ring);
    assert_non_null(sqe);
    assert_memory_equal(sqe, &cleared, sizeof(cleared));
    ring->ring.sq.sqe_tail--;
    peer_receive_start(peer, false);
    for (int i = 0; i < 2 * SMALL_READS; i++) {
        assert_int_equal(peer_remote_send(peer, 10), 10);
        driver_until(driver, peer->bytes == 10 * ((uint64_t)i + 1));
        peer_send(peer, 10);
        driver_until(driver, peer_remote_receive(peer) == 10);
    }
    peer_detach(peer);
    driver_until(driver, peer->detaches == 1);
}

TEST(uring, clears_the_entries_of_former_operations)
{
    uring_seam_restore();
    weir__uring_system.setup = setup_with_garbage;
    suite_run(BACKEND_URING, use_garbage);
    uring_seam_restore();
}

/* ---- a kernel that takes nothing ---- */

static unsigned busy_calls;

static int enter_busily(unsigned ring, unsigned submit, unsigned wait, unsigned flags,
                        sigset_t *argument, size_t size)
{
    if (busy_calls > 0) {
        busy_calls--;
        return -EBUSY;
    }
    return uring_real.enter(ring, submit, wait, flags, argument, size);
}

/* More is started than the queue holds, while nothing can be submitted: it is started later. */
static void catch_up(struct driver *driver)
{
    struct peer *peers[300];
    struct peer *listener;
    struct address address;

    listener = peer_open(driver, socket_listen(AF_INET, 8, &address));
    for (int i = 0; i < 300; i++)
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
    driver_run_until_idle(driver);
    busy_calls = 200;
    for (int i = 0; i < 300; i++)
        peer_receive_start(peers[i], false);
    peer_accept_start(listener);
    for (int i = 0; i < 300; i++)
        assert_int_equal(peer_remote_send(peers[i], 10), 10);
    (void)close(socket_connect(&address));
    for (int i = 0; i < 300; i++)
        driver_until(driver, peers[i]->bytes == 10);
    driver_until(driver, listener->accepts == 1);
    busy_calls = 1000; /* closing has to be caught up with, too */
}

TEST(uring, starts_later_what_the_kernel_does_not_take_now)
{
    uring_seam_restore();
    weir__uring_system.enter = enter_busily;
    suite_run(BACKEND_URING, catch_up);
    uring_seam_restore();
}

/* Nothing else would end the sleep of an owner that waits on the ring's descriptor. */
static void flush_busily(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    driver_run_until_idle(driver);
    assert_true(driver->io->retry_at_ns == WEIR_NEVER);
    peer_receive_start(peer, false);
    busy_calls = 1;
    driver->io->type->flush(driver->io);
    assert_true(driver->io->retry_at_ns <= weir__monotonic_now() + WEIR__IO_RETRY_MAX_NS);
    assert_int_equal(peer_remote_send(peer, 10), 10);
    driver_until(driver, peer->bytes == 10);
    driver_until(driver, driver->io->retry_at_ns == WEIR_NEVER);
}

TEST(uring, retries_a_flush_that_the_kernel_does_not_take)
{
    uring_seam_restore();
    weir__uring_system.enter = enter_busily;
    suite_run(BACKEND_URING, flush_busily);
    uring_seam_restore();
}

/* ---- system calls ---- */

static uint64_t enters(struct driver *driver)
{
    return atomic_load(&driver->io->stats.waits);
}

static void poll_once(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    uint64_t before;

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    before = enters(driver);
    for (int i = 0; i < 100; i++) {
        assert_false(driver->io->type->peek(driver->io));
        assert_int_equal(weir__io_wait(driver->io, 0), 0);
    }
    assert_int_equal(enters(driver), before);
    assert_int_equal(peer_remote_send(peer, 10), 10);
    assert_true(driver->io->type->peek(driver->io));
    assert_int_equal(enters(driver), before + 1);
    driver_until(driver, peer->bytes == 10);
}

TEST(uring, polls_without_a_system_call)
{
    suite_run(BACKEND_URING, poll_once);
}

/* ---- threads ---- */

static void keep_busy(struct driver *driver)
{
    unsigned before = thread_count();
    struct address tcp;
    struct address local;
    struct address full;
    struct peer *listener = peer_open(driver, socket_listen(AF_INET, 64, &tcp));
    int full_listener = socket_listen(AF_UNIX, 0, &full);
    struct peer *peers[16];

    peer_accept_start(listener);
    peer_accept_start(peer_open(driver, socket_listen(AF_UNIX, 4, &local)));
    for (int i = 0; i < 16; i++) {
        peers[i] = peer_open_pair(driver, i % 2 == 0 ? PAIR_TCP : PAIR_UNIX);
        peer_receive_start(peers[i], false);
        peer_send(peers[i], 16 << 20); /* nobody reads it */
        if (i % 4 < 2)
            assert_int_equal(shutdown(peers[i]->remote, SHUT_WR), 0);
        peer_connect(peer_open(driver, socket_new(AF_INET, SOCK_STREAM)), &tcp);
        peer_connect(peer_open(driver, socket_new(AF_UNIX, SOCK_STREAM)), &full);
    }
    driver_until(driver, listener->accepts == 16);
    driver_run_until_idle(driver);
    assert_int_equal(thread_count(), before);
    (void)close(full_listener);
}

TEST(uring, leaves_nothing_to_threads_of_the_kernel)
{
    suite_run(BACKEND_URING, keep_busy);
}

/* ---- the eventfd ---- */

static void end_watch(struct io_uring_cqe *completion)
{
    if (completion->user_data == WEIR__URING_WAKE)
        completion->flags &= ~IORING_CQE_F_MORE;
}

static void wake_again_and_again(struct driver *driver)
{
    for (int i = 0; i < 20; i++) {
        weir__io_wake(driver->io);
        do {
            int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

            assert_int_equal(weir__io_wait(driver->io, deadline_ns), 0);
            assert_true(weir__monotonic_now() < deadline_ns);
            (void)weir__io_dispatch(driver->io, WEIR_NEVER);
        } while (!driver->io->woken);
        assert_false(weir__uring_of(driver->io)->is_wake_watched);
    }
}

TEST(uring, watches_the_eventfd_again_when_the_kernel_has_stopped)
{
    uring_seam_restore();
    weir__uring_fault = end_watch;
    suite_run(BACKEND_URING, wake_again_and_again);
    uring_seam_restore();
}

/* Only the first enters fail, so that the one that waits does not. */
static int refuse_twice(unsigned ring, unsigned submit, unsigned wait, unsigned flags,
                        sigset_t *argument, size_t size)
{
    static unsigned calls;

    if (calls++ < 2)
        return -EAGAIN;
    return uring_real.enter(ring, submit, wait, flags, argument, size);
}

static void wake_when_full(struct driver *driver)
{
    int64_t begin_ns = weir__monotonic_now();

    for (int i = 0; i < 2; i++)
        peer_poll_start(peer_open(driver, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), POLLIN);
    weir__io_wake(driver->io);
    for (int i = 0; i < 3 && !driver->io->woken; i++)
        assert_int_equal(weir__io_wait(driver->io, begin_ns + TEST_TIMEOUT_NS), 0);
    assert_true(driver->io->woken);
    assert_true(weir__monotonic_now() - begin_ns < TEST_TIMEOUT_NS);
}

TEST(uring, can_be_woken_also_if_the_eventfd_could_not_be_watched_at_once)
{
    uring_seam_restore();
    weir__uring_system.setup = uring_setup_tiny;
    weir__uring_system.enter = refuse_twice;
    suite_run(BACKEND_URING, wake_when_full);
    uring_seam_restore();
}

/* ---- two completions of one turn ---- */

static weir__io_handle *hung_up;
static unsigned reports;

/*
 * A peer sends, and ends its stream before the data is read: as two completions of its poll, the
 * second of which was another handle's.
 */
static void report_apart(struct io_uring_cqe *completion)
{
    if (hung_up == NULL || (completion->user_data & WEIR__URING_OP_MASK) != WEIR__URING_POLL ||
        reports == 2)
        return;
    completion->user_data = (uintptr_t)hung_up | WEIR__URING_POLL;
    completion->res = reports == 0 ? POLLIN : POLLIN | POLLRDHUP;
    completion->flags |= IORING_CQE_F_MORE;
    reports++;
}

/* Unix sockets have the data at once, also on a busy machine. */
static struct peer *open_polled(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer->handle->exact_window = true; /* by poll */
    peer->handle->uring_polls = 3;     /* by a multishot one, as after its first reads */
    peer_receive_start(peer, false);
    return peer;
}

/* The peer has received the data, and the two reports are of one turn. */
static void hang_up_after_data(struct driver *driver, struct peer *peer)
{
    struct peer *other = open_polled(driver);

    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    peer_remote_close(peer);
    assert_int_equal(peer_remote_send(other, 1), 1);
    reports = 0;
    hung_up = peer->handle;
    driver_turn(driver);
    assert_int_equal(reports, 2);
    assert_int_equal(peer->bytes, 100);
    assert_int_equal(peer->ends, 0);
    hung_up = NULL;
}

static void hang_up_in_the_turn(struct driver *driver)
{
    struct peer *peer = open_polled(driver);

    hang_up_after_data(driver, peer);
    driver_until(driver, peer->ends == 1);
    assert_int_equal(peer->end_error, 0);
}

static void stop_in_received(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_receive_stop(peer);
}

static void hang_up_of_one_that_stops(struct driver *driver)
{
    struct peer *peer = open_polled(driver);

    peer->react = stop_in_received;
    hang_up_after_data(driver, peer);
    driver_run_until_idle(driver);
    assert_int_equal(peer->ends, 0);
    peer_receive_start(peer, false);
    driver_until(driver, peer->ends == 1);
}

TEST(uring, reads_again_after_a_hang_up_that_follows_a_read_of_the_turn)
{
    uring_seam_restore();
    weir__uring_fault = report_apart;
    suite_run(BACKEND_URING, hang_up_in_the_turn);
    suite_run(BACKEND_URING, hang_up_of_one_that_stops);
    uring_seam_restore();
}

/* ---- turns ---- */

/* The turn in which a handle has read has the same number as one 2^32 turns later. */
static void count_turns_anew(struct driver *driver)
{
    struct peer *peer = open_polled(driver);

    driver_run_until_idle(driver);
    for (unsigned round = 1; round <= 3; round++) {
        assert_int_equal(peer_remote_send(peer, 10), 10);
        weir__uring_of(driver->io)->turn = UINT32_MAX;
        driver_turn(driver);
        assert_int_equal(weir__uring_of(driver->io)->turn, 1);
        assert_int_equal(peer->bytes, 10 * round);
    }
}

TEST(uring, reads_in_each_turn_also_after_the_last_number)
{
    suite_run(BACKEND_URING, count_turns_anew);
}

/* ---- requests that do not end ---- */

static const weir__io_handle *silenced;

static void silence(struct io_uring_cqe *completion)
{
    if (silenced != NULL && (completion->user_data & ~7ull) == (uintptr_t)silenced)
        completion->user_data = WEIR__URING_CANCEL;
}

static void rebuild_around_a_stuck_one(struct driver *driver)
{
    struct peer *stuck = peer_open_pair(driver, PAIR_TCP);
    struct peer *leaving = peer_open_pair(driver, PAIR_TCP);
    struct peer *good = peer_open_pair(driver, PAIR_TCP);
    int64_t begin_ns;

    peer_receive_start(stuck, false);
    peer_receive_start(good, false);
    driver_run_until_idle(driver);
    silenced = stuck->handle; /* its last completion never arrives */
    begin_ns = weir__monotonic_now();
    assert_int_equal(weir__io_rebuild(driver->io), 0);
    assert_true(weir__monotonic_now() - begin_ns < TEST_TIMEOUT_NS);
    silenced = NULL;
    driver_until(driver, stuck->fails == 1);
    assert_int_equal(stuck->fail_error, WEIR_EREBUILT);
    assert_int_equal(peer_remote_send(good, 100), 100);
    driver_until(driver, good->bytes == 100);
    peer_receive_start(leaving, false);
    driver_run_until_idle(driver);
    silenced = leaving->handle; /* the same for one that is closed */
    peer_close(leaving);
    driver_run_until_idle(driver);
    assert_int_equal(leaving->detaches, 0);
    assert_int_equal(weir__io_rebuild(driver->io), 0);
    silenced = NULL;
    driver_until(driver, leaving->detaches == 1);
    assert_int_equal(good->fails, 0);
}

TEST(uring, a_request_that_does_not_end_costs_its_handle_alone)
{
    uring_seam_restore();
    weir__uring_fault = silence;
    suite_run(BACKEND_URING, rebuild_around_a_stuck_one);
    uring_seam_restore();
}

/* ---- a stall ---- */

static bool is_stalled;

/* As if the machine had left the thread without a CPU for longer than a rebuild waits. */
static int enter_after_a_stall(unsigned ring, unsigned submit, unsigned wait, unsigned flags,
                               sigset_t *argument, size_t size)
{
    if (is_stalled)
        weir__thread_sleep(weir_ms(1050));
    is_stalled = false;
    return uring_real.enter(ring, submit, wait, flags, argument, size);
}

TEST(uring, a_stall_during_a_rebuild_costs_no_handle)
{
    struct driver driver;
    struct peer *peer;

    uring_seam_restore();
    weir__uring_system.enter = enter_after_a_stall;
    suite_open(&driver, BACKEND_URING);
    peer = peer_open_pair(&driver, PAIR_TCP);
    peer_receive_start(peer, false);
    driver_turn(&driver);
    is_stalled = true;
    assert_int_equal(weir__io_rebuild(driver.io), 0);
    assert_false(is_stalled);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_until(&driver, peer->bytes == 100 || peer->fails > 0);
    assert_int_equal(peer->fails, 0);
    suite_close(&driver);
    uring_seam_restore();
}

/* ---- both ways ---- */

/* An eventfd has room as long as it is not full: two polls of one handle, one for each way. */
static void poll_both_ways(struct driver *driver)
{
    struct peer *peer = peer_open(driver, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));

    peer_poll_start(peer, POLLIN | POLLOUT);
    driver_until(driver, peer->polls > 0);
    assert_int_equal(peer->poll_events, POLLOUT);
    tick(peer->descriptor);
    driver_until(driver, peer->poll_events == (POLLIN | POLLOUT));
}

TEST(uring, polls_both_ways)
{
    suite_run(BACKEND_URING, poll_both_ways);
}
