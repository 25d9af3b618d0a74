/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving by a buffer ring: switching to poll and back, queued events, and too few buffers. */
#include <errno.h>
#include <unistd.h>

#include "loop/uring.h"
#include "support/executor/log_capture.h"
#include "support/loop/suite.h"
#include "support/loop/uring_seam.h"

#define BUFFER_SIZE 4096
#define BUFFER_COUNT 512    /* at most, */
#define BUFFER_COUNT_MIN 64 /* and at first */
#define TOTAL (5 * BUFFER_SIZE)
#define MUCH (40 * BUFFER_SIZE) /* more completions than between two looks at the clock */

static bool by_ring(const struct peer *peer)
{
    return weir__uring_is_in_flight(peer->handle, WEIR__URING_RECEIVE);
}

static bool by_poll(const struct peer *peer)
{
    return weir__uring_is_in_flight(peer->handle, WEIR__URING_POLL);
}

static void exchange(struct driver *driver, struct peer *peer, size_t count)
{
    uint64_t before = peer->bytes;

    assert_int_equal(peer_remote_send(peer, count), count);
    driver_until(driver, peer->bytes == before + count);
}

/* ---- there and back ---- */

static void change_manners(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer_receive_start(peer, false);
    exchange(driver, peer, 100);
    assert_true(by_ring(peer) && !by_poll(peer));
    for (int round = 0; round < 20; round++) {
        exchange(driver, peer, BUFFER_SIZE);
        exchange(driver, peer, 100); /* full, but not twice in a row */
        assert_true(by_ring(peer));
        exchange(driver, peer, 5 * BUFFER_SIZE);
        driver_until(driver, by_poll(peer) && !by_ring(peer));
        for (int i = 0; i < 7; i++)
            exchange(driver, peer, 100);
        exchange(driver, peer, 5000); /* not small */
        for (int i = 0; i < 7; i++)
            exchange(driver, peer, 100);
        assert_true(by_poll(peer));
        exchange(driver, peer, 100);
        driver_until(driver, by_ring(peer) && !by_poll(peer));
    }
    peer_remote_close(peer);
    driver_until(driver, peer->ends == 1);
}

TEST(uring_receive, changes_to_poll_for_much_and_back_for_little)
{
    suite_run(BACKEND_URING, change_manners);
}

/* A new connection is received from by poll, until it is known to bring little. */
static void start_by_poll(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    for (int i = 0; i < 8; i++) {
        assert_false(by_ring(peer));
        exchange(driver, peer, 100);
    }
    driver_until(driver, by_ring(peer) && !by_poll(peer));
    exchange(driver, peer, 100);
}

TEST(uring_receive, begins_by_poll)
{
    uint8_t fresh_reads = weir__uring_fresh_reads;

    weir__uring_fresh_reads = 8;
    suite_run(BACKEND_URING, start_by_poll);
    weir__uring_fresh_reads = fresh_reads;
}

static void receive_narrowly(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer->handle->window = 1000;
    peer->handle->exact_window = true;
    peer_receive_start(peer, false);
    exchange(driver, peer, 3000);
    assert_true(by_poll(peer) && !by_ring(peer));
    assert_int_equal(peer->largest, 1000);
}

TEST(uring_receive, by_poll_if_the_owner_wants_less_than_a_buffer)
{
    suite_run(BACKEND_URING, receive_narrowly);
}

static int refuse_buffers(struct io_uring *ring, struct io_uring_buf_reg *buffers, unsigned flags)
{
    (void)ring;
    (void)buffers;
    (void)flags;
    return -EINVAL;
}

static void receive_without_ring(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    assert_true(log_capture_count(WEIR_LOG_WARN) == 1);
    assert_true(log_capture_last_contains("receives by poll"));
    peer_receive_start(peer, false);
    exchange(driver, peer, 100);
    assert_true(by_poll(peer));
}

TEST(uring_receive, by_poll_if_the_kernel_has_no_buffer_rings)
{
    uring_seam_restore();
    weir__uring_system.register_buffers = refuse_buffers;
    log_capture_start();
    suite_run(BACKEND_URING, receive_without_ring);
    uring_seam_restore();
}

/* ---- what is kept ---- */

static void stop_at_once(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_receive_stop(peer);
}

/* A peer that has received one buffer and stopped, while others are kept. */
static struct peer *open_stopped(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, TOTAL), TOTAL);
    peer->react = stop_at_once;
    driver_until(driver, peer->receives == 1);
    driver_run_until_idle(driver);
    assert_int_equal(peer->bytes, BUFFER_SIZE);
    assert_non_null(peer->handle->undelivered);
    return peer;
}

static void stop_and_start(struct driver *driver)
{
    struct peer *peer = open_stopped(driver);

    peer_remote_close(peer);
    driver_run_until_idle(driver);
    for (unsigned i = 2; peer->bytes < TOTAL; i++) {
        assert_int_equal(peer->ends, 0);
        peer_receive_start(peer, i % 2 == 0); /* once is enough, too */
        driver_until(driver, peer->receives == i);
        driver_run_until_idle(driver);
        assert_int_equal(peer->receives, i);
    }
    assert_null(peer->handle->undelivered);
    peer_receive_start(peer, false);
    driver_until(driver, peer->ends == 1);
}

TEST(uring_receive, queues_received_data_when_stopped)
{
    suite_run(BACKEND_URING, stop_and_start);
}

static void close_stopped(struct driver *driver)
{
    struct peer *peer = open_stopped(driver);

    peer_close(peer); /* suite_run counts the blocks */
    driver_until(driver, peer->detaches == 1);
}

static void detach_stopped(struct driver *driver)
{
    struct peer *peer = open_stopped(driver);

    peer_detach(peer);
    driver_until(driver, peer->detaches == 1);
    assert_true(peer->bytes > BUFFER_SIZE);
    assert_int_equal(peer->bytes + socket_waiting(peer->descriptor), TOTAL);
}

static void rebuild_stopped(struct driver *driver)
{
    struct peer *peer = open_stopped(driver);

    assert_int_equal(weir__io_rebuild(driver->io), 0);
    driver_run_until_idle(driver);
    assert_int_equal(peer->bytes, BUFFER_SIZE);
    peer->react = NULL;
    peer_receive_start(peer, false);
    driver_until(driver, peer->bytes == TOTAL);
    exchange(driver, peer, 100);
}

TEST(uring_receive, frees_or_delivers_queued_data)
{
    suite_run(BACKEND_URING, close_stopped);
    suite_run(BACKEND_URING, detach_stopped);
    suite_run(BACKEND_URING, rebuild_stopped);
}

/* No new ring is available: queued events are still delivered. */
static int refuse_ring(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
    (void)entries;
    (void)ring;
    (void)params;
    return -EMFILE;
}

static void detach_without_ring(struct driver *driver)
{
    struct peer *peer = open_stopped(driver);

    weir__uring_system.setup = refuse_ring;
    log_capture_start();
    assert_int_equal(weir__io_rebuild(driver->io), -EMFILE);
    peer_detach(peer);
    driver_until(driver, peer->detaches == 1);
    assert_int_equal(peer->bytes + socket_waiting(peer->descriptor), TOTAL);
}

TEST(uring_receive, hands_over_what_is_kept_also_without_a_ring)
{
    uring_seam_restore();
    suite_run(BACKEND_URING, detach_without_ring);
    uring_seam_restore();
}

static void detach_lost(struct peer *peer, enum peer_event event)
{
    if (event == PEER_FAILED)
        peer_detach(peer);
}

/* The loop has lost it while the ring still receives. */
static void detach_failed(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    assert_true(weir__io_wait(driver->io, weir__monotonic_now() + TEST_TIMEOUT_NS) > 0);
    weir__uring_fail(peer->handle, -EIO);
    peer->react = detach_lost;
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "fx");
}

TEST(uring_receive, delivers_nothing_for_a_failed_and_detached_handle)
{
    suite_run(BACKEND_URING, detach_failed);
}

/*
 * An unfinished batch, as when the time is up, ends in the rebuild: no callback is made inside the
 * rebuild, and `read_complete` follows later.
 */
static void rebuild_within_batch(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, MUCH), MUCH);
    assert_true(weir__io_wait(driver->io, weir__monotonic_now() + TEST_TIMEOUT_NS) >
                WEIR__IO_CLOCK_INTERVAL);
    driver->dispatching = true;
    assert_true(weir__io_dispatch(driver->io, 0));
    driver->dispatching = false;
    assert_int_equal(peer->receives, WEIR__IO_READS_MAX);
    assert_int_equal(peer->completes, 0);
    assert_int_equal(weir__io_rebuild(driver->io), 0);
    driver->dispatching = true;
    (void)weir__io_dispatch(driver->io, WEIR_NEVER);
    driver->dispatching = false;
    assert_int_equal(peer->completes, 1);
    driver_until(driver, peer->bytes == MUCH);
}

TEST(uring_receive, is_completed_after_a_rebuild_in_the_midst_of_a_batch)
{
    suite_run(BACKEND_URING, rebuild_within_batch);
}

/* ---- buffers ---- */

/* More messages at once than there are buffers: nobody misses one, and nobody stalls. */
static void exhaust(struct driver *driver)
{
    static struct peer *peers[2 * BUFFER_COUNT];

    for (int i = 0; i < 2 * BUFFER_COUNT; i++) {
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
        peer_receive_start(peers[i], false);
    }
    driver_run_until_idle(driver);
    for (uint64_t round = 1; round <= 5; round++) {
        for (int i = 0; i < 2 * BUFFER_COUNT; i++)
            assert_int_equal(peer_remote_send(peers[i], 50), 50);
        for (int i = 0; i < 2 * BUFFER_COUNT; i++)
            driver_until(driver, peers[i]->bytes == 50 * round);
    }
    driver_run_until_idle(driver);
    for (int i = 0; i < 2 * BUFFER_COUNT; i++)
        assert_true(by_ring(peers[i]));
}

static void exhaust_few(struct driver *driver)
{
    exhaust(driver);
    assert_int_equal(driver->memory.live,
                     BUFFER_COUNT_MIN); /* the kernel receives some at a time */
}

static void exhaust_all(struct driver *driver)
{
    exhaust(driver);
    assert_int_equal(driver->memory.live, BUFFER_COUNT);
}

/* A ring that receives whenever the thread makes a system call. */
static int setup_undeferred(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
    params->flags &= ~(unsigned)(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
    return uring_real.setup(entries, ring, params);
}

TEST(uring_receive, is_not_stopped_by_too_few_buffers)
{
    uring_seam_restore();
    suite_run(BACKEND_URING, exhaust_few);
    weir__uring_system.setup = setup_undeferred;
    suite_run(BACKEND_URING, exhaust_all);
    uring_seam_restore();
}

static void take_memory_late(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    driver_run_until_idle(driver);
    assert_int_equal(driver->memory.taken, 0); /* nobody receives yet */
    peer_receive_start(peer, false);
    exchange(driver, peer, 10);
    driver_run_until_idle(driver);
    assert_int_equal(driver->memory.live, BUFFER_COUNT_MIN);
    assert_int_equal(driver->memory.taken, BUFFER_COUNT_MIN + 1); /* one for the bytes */
}

TEST(uring_receive, takes_memory_when_somebody_receives)
{
    suite_run(BACKEND_URING, take_memory_late);
}

/* Some of the buffers have memory: they are used up, then receiving waits for more. */
static void run_out_of_memory(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    driver->memory.refuse = SIZE_MAX;
    for (int i = 0; i < 3 * BUFFER_COUNT; i++) {
        if (peer_remote_send(peer, 10) < 10)
            break;
        driver_turn(driver);
    }
    driver_run_until_idle(driver);
    assert_int_equal(peer->receives, BUFFER_COUNT_MIN);
    assert_int_equal(driver->memory.live, 0);
    driver->memory.refuse = 0;
    driver_until(driver, peer->bytes == peer->remote_out.position);
    for (int i = 0; i < WEIR__URING_SMALL_MIN; i++)
        exchange(driver, peer, 10);
    driver_until(driver, by_ring(peer)); /* with new buffers */
    exchange(driver, peer, 100);
}

TEST(uring_receive, waits_for_memory)
{
    suite_run(BACKEND_URING, run_out_of_memory);
}

/* ---- bytes that come while others are kept ---- */

static struct peer *paused;
static unsigned completions_of_paused;

static void pause_at_once(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED && peer->receives == 1)
        peer_receive_stop(peer);
}

/* As the call-back of another handle might, in the middle of a batch. */
static void go_on_at_the_third(struct io_uring_cqe *completion)
{
    const uint64_t name = (uintptr_t)paused->handle | WEIR__URING_RECEIVE;

    if (completion->user_data == name && ++completions_of_paused == 3)
        peer_receive_start(paused, false);
}

/* The second is kept, because nobody wants it. The third is wanted again, but comes after it; a
 * peer complains about bytes that are out of order. */
static void receive_while_some_is_kept(struct driver *driver)
{
    paused = peer_open_pair(driver, PAIR_UNIX);
    paused->react = pause_at_once;
    completions_of_paused = 0;
    peer_receive_start(paused, false);
    driver_run_until_idle(driver);
    weir__uring_fault = go_on_at_the_third;
    assert_int_equal(peer_remote_send(paused, TOTAL), TOTAL);
    driver_until(driver, paused->bytes == TOTAL);
    weir__uring_fault = NULL;
    assert_true(completions_of_paused >= 3);
}

TEST(uring_receive, queues_bytes_behind_those_that_are_kept)
{
    suite_run(BACKEND_URING, receive_while_some_is_kept);
}

/* ---- a slow owner ---- */

#define SLOW_TURNS 200
#define SLOW_MESSAGES 16 /* each turn: the kernel has more buffers than that */
#define BLOCKS_MAX (4 * BUFFER_COUNT_MIN)

static void keep_full(struct driver *driver, struct peer *peer, unsigned turns, size_t size)
{
    for (unsigned i = 0; i < turns; i++) {
        for (unsigned message = 0; message < SLOW_MESSAGES; message++)
            (void)peer_remote_send(peer, size);
        driver_turn(driver);
        assert_true(driver->memory.live <= BLOCKS_MAX);
        assert_true(peer->handle->undelivered == NULL || !by_ring(peer) ||
                    weir__uring_is_cancelled(peer->handle, WEIR__URING_RECEIVE));
    }
}

static void receive_the_rest(struct driver *driver, struct peer *peer)
{
    peer_remote_close(peer);
    driver_until(driver, peer->ends == 1);
    assert_int_equal(peer->end_error, 0);
    assert_int_equal(peer->bytes, peer->remote_out.position);
}

/* Eight small reads, then sixteen buffers a turn, of which each delivers two. */
static void receive_slowly(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    for (int i = 0; i < 8; i++)
        exchange(driver, peer, 100);
    driver_until(driver, by_ring(peer));
    peer->handle->reads = 2;
    keep_full(driver, peer, SLOW_TURNS, BUFFER_SIZE);
    assert_true(by_poll(peer));
    peer->handle->reads = WEIR__IO_READS_MAX;
    receive_the_rest(driver, peer);
}

TEST(uring_receive, leaves_to_the_socket_what_the_owner_does_not_take)
{
    uint8_t fresh_reads = weir__uring_fresh_reads;

    weir__uring_fresh_reads = 8;
    suite_run(BACKEND_URING, receive_slowly);
    weir__uring_fresh_reads = fresh_reads;
}

/* An owner that takes one read of each turn, and switches reading off and on. */
static void receive_on_and_off(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->react = stop_at_once;
    for (unsigned i = 0; i < SLOW_TURNS; i++) {
        peer_receive_start(peer, false);
        keep_full(driver, peer, 1, BUFFER_SIZE);
    }
    peer->react = NULL;
    peer_receive_start(peer, false);
    receive_the_rest(driver, peer);
}

TEST(uring_receive, leaves_to_the_socket_what_comes_while_stopped)
{
    suite_run(BACKEND_URING, receive_on_and_off);
}

/* ---- a kernel that receives at any time ---- */

/* Small messages, of which a turn delivers two. */
static void receive_small_slowly(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    peer->handle->reads = 2;
    keep_full(driver, peer, SLOW_TURNS, 100);
    peer->handle->reads = WEIR__IO_READS_MAX;
    receive_the_rest(driver, peer);
}

TEST(uring_receive, leaves_to_the_socket_small_messages_too)
{
    uring_seam_restore();
    weir__uring_system.setup = setup_undeferred;
    suite_run(BACKEND_URING, receive_small_slowly);
    uring_seam_restore();
}

static struct peer *flooded;
static uint64_t flood_completions;

/* The buffer of the last completion is free again: a message takes it at once. */
static void send_at_each(struct io_uring_cqe *completion)
{
    if (completion->user_data == ((uintptr_t)flooded->handle | WEIR__URING_RECEIVE) &&
        completion->res > 0) {
        flood_completions++;
        (void)peer_remote_send(flooded, 10);
    }
}

static void send_small(struct peer *peer, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        (void)peer_remote_send(peer, 10);
}

/*
 * Many small reads, each in a buffer of its own, more arriving while they are queued: the kernel
 * stops during the turn, not at its end. In Debug the bound of the queue is asserted.
 */
static void flood(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    for (int i = 0; i < 20; i++) { /* until all buffers are in use */
        send_small(peer, 2 * BUFFER_COUNT);
        driver_run_until_idle(driver);
    }
    assert_true(by_ring(peer));
    send_small(peer, BUFFER_COUNT - 1); /* the last one would end the receive */
    peer->react = stop_at_once;
    flooded = peer;
    flood_completions = 0;
    weir__uring_fault = send_at_each;
    driver_turn(driver);
    driver_run_until_idle(driver);
    weir__uring_fault = NULL;
    assert_in_range(flood_completions, BUFFER_COUNT / 2 + 2, WEIR__URING_UNDELIVERED_MAX + 1);
    peer->react = NULL;
    peer_receive_start(peer, false);
    receive_the_rest(driver, peer);
}

TEST(uring_receive, is_cancelled_before_a_buffer_is_used_again)
{
    uring_seam_restore();
    weir__uring_system.setup = setup_undeferred;
    suite_run(BACKEND_URING, flood);
    uring_seam_restore();
}

/* ---- a kernel that takes no cancellation ---- */

static unsigned refusals;

static int enter_reluctantly(unsigned ring, unsigned submit, unsigned wait, unsigned flags,
                             sigset_t *argument, size_t size)
{
    if (submit > 0 && refusals > 0) {
        refusals--;
        return -EAGAIN;
    }
    return uring_real.enter(ring, submit, wait, flags, argument, size);
}

static void receive_slowly_without_room(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    peer->handle->reads = 2;
    assert_int_equal(peer_remote_send(peer, TOTAL), TOTAL);
    refusals = 20;
    keep_full(driver, peer, SLOW_TURNS, BUFFER_SIZE);
    assert_int_equal(refusals, 0);
    peer->handle->reads = WEIR__IO_READS_MAX;
    receive_the_rest(driver, peer);
}

TEST(uring_receive, is_cancelled_later_if_there_is_no_room)
{
    uring_seam_restore();
    weir__uring_system.enter = enter_reluctantly;
    suite_run(BACKEND_URING, receive_slowly_without_room);
    weir__uring_system.setup = uring_setup_tiny;
    suite_run(BACKEND_URING, receive_slowly_without_room);
    uring_seam_restore();
}
