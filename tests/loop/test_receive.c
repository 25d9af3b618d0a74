/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving from streams, on each backend: all data arrives, in order. The end of streams is in
 * test_receive_end.c.
 */
#include <string.h>

#include "support/loop/suite.h"

/* Lets the other end send so much while the peer receives it. */
static void exchange(struct driver *driver, struct peer *peer, uint64_t count)
{
    uint64_t end = peer->remote_out.position + count;

    driver_until(driver, (peer_remote_send(peer, (size_t)(end - peer->remote_out.position)),
                          peer->bytes) == end);
}

/* ---- data ---- */

TEST_EACH_BACKEND(receive, delivers_data)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_until(driver, peer->bytes == 100);
    assert_string_equal(peer->history, "r.");
}

TEST_EACH_BACKEND(receive, delivers_data_from_before_the_start)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_run_until_idle(driver);
    assert_string_equal(peer->history, "");
    peer_receive_start(peer, false);
    peer_receive_start(peer, false);
    assert_string_equal(peer->history, "");
    driver_until(driver, peer->bytes == 100);
}

TEST_EACH_BACKEND(receive, a_byte_at_a_time)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    for (unsigned i = 1; i <= 500; i++) {
        assert_int_equal(peer_remote_send(peer, 1), 1);
        driver_until(driver, peer->bytes == i);
    }
    assert_int_equal(peer->receives, 500);
    assert_int_equal(peer->completes, 500);
}

TEST_EACH_BACKEND(receive, megabytes)
{
    struct peer *tcp = peer_open_pair(driver, PAIR_TCP);
    struct peer *local = peer_open_pair(driver, PAIR_UNIX);

    peer_receive_start(tcp, false);
    peer_receive_start(local, false);
    exchange(driver, tcp, 8 << 20);
    exchange(driver, local, 8 << 20);
}

/* Between bulk and small messages strategies may change: not a byte may be lost by that. */
TEST_EACH_BACKEND(receive, large_and_small_in_turn)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    for (int i = 0; i < 20; i++) {
        exchange(driver, peer, 200000);
        for (int small = 0; small < 12; small++)
            exchange(driver, peer, 100);
        exchange(driver, peer, 8192);
        exchange(driver, peer, 16384);
    }
}

TEST_EACH_BACKEND(receive, messages_of_a_seqpacket_socket_one_by_one)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX_SEQPACKET);

    for (unsigned i = 1; i <= 40; i++)
        assert_int_equal(peer_remote_send(peer, i), i);
    peer_receive_start(peer, false);
    driver_until(driver, peer->datagrams == 40);
    assert_int_equal(peer->bytes, 40 * 41 / 2);
}

TEST_EACH_BACKEND(receive, large_messages_of_a_seqpacket_socket_whole)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX_SEQPACKET);
    char packet[30000];

    peer->handle->window = sizeof(packet);
    peer_receive_start(peer, false);
    for (unsigned i = 1; i <= 10; i++) {
        stream_write(&peer->remote_out, packet, sizeof(packet));
        assert_int_equal(send(peer->remote, packet, sizeof(packet), 0), sizeof(packet));
        driver_until(driver, peer->datagrams == i);
        assert_int_equal(peer->bytes, 30000 * i);
    }
}

/* The reader of a turn stops at the mark, though there is more behind it. */
TEST_EACH_BACKEND(receive, does_not_stall_at_urgent_data)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    for (unsigned i = 1; i <= 20; i++) {
        assert_int_equal(peer_remote_send(peer, 100), 100);
        assert_int_equal(send(peer->remote, "!", 1, MSG_OOB), 1);
        assert_int_equal(peer_remote_send(peer, 100), 100);
        driver_until(driver, peer->bytes == 200ull * i);
    }
    driver_run_until_idle(driver);
}

TEST_EACH_BACKEND(receive, from_both_ends_of_a_pair_at_once)
{
    struct peer *peers[2];
    int pair[2];

    socket_pair(PAIR_TCP, pair);
    for (int i = 0; i < 2; i++) {
        peers[i] = peer_open(driver, pair[i]);
        peer_receive_start(peers[i], false);
    }
    for (int i = 0; i < 2; i++)
        peer_send(peers[i], 4 << 20);
    driver_until(driver, peers[0]->bytes == 4 << 20 && peers[1]->bytes == 4 << 20);
}

/* ---- how much at a time ---- */

TEST_EACH_BACKEND(receive, reads_sixteen_times_a_turn_at_most)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer->handle->window = 1024;
    peer->handle->exact_window = true;
    assert_int_equal(peer_remote_send(peer, 100 * 1024), 100 * 1024);
    peer_receive_start(peer, false);
    driver_until(driver, peer->bytes == 100 * 1024);
    assert_true(peer->largest <= 1024);
    assert_true(peer->completes >= 100 / WEIR__IO_READS_MAX);
}

/* What a peer whose socket never runs dry gets in a turn. */
struct share {
    uint64_t turn;
    uint64_t bytes; /* and reads, in this turn */
    unsigned reads;
    uint64_t total;
    uint64_t most;
    unsigned most_reads;
    int64_t work_ns; /* that each read makes */
};

static void work_for(int64_t duration_ns)
{
    int64_t end_ns = weir__monotonic_now() + duration_ns;

    while (weir__monotonic_now() < end_ns) {
    }
}

static void take_share_and_no_more(struct peer *peer, enum peer_event event)
{
    struct share *share = peer->arg;

    if (event != PEER_RECEIVED)
        return;
    if (share->turn != peer->driver->turn) {
        share->turn = peer->driver->turn;
        share->bytes = 0;
        share->reads = 0;
    }
    share->bytes += peer->bytes - share->total;
    share->total = peer->bytes;
    share->reads++;
    if (share->bytes > share->most)
        share->most = share->bytes;
    if (share->reads > share->most_reads)
        share->most_reads = share->reads;
    work_for(share->work_ns);
}

static void take_share(struct peer *peer, enum peer_event event)
{
    take_share_and_no_more(peer, event);
    if (event == PEER_RECEIVED)
        (void)peer_remote_send(peer, peer->handle->window);
}

static void flood(struct driver *driver, struct share *share, uint32_t window)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer->arg = share;
    peer->react = take_share;
    peer->handle->window = window;
    peer->handle->exact_window = true;
    for (int i = 0; i < 3; i++)
        (void)peer_remote_send(peer, window);
    peer_receive_start(peer, false);
    driver_until(driver, peer->receives >= 40);
    peer->react = NULL;
}

/* A handle that is read sixteen times would get a megabyte, and others would wait for that. */
TEST_EACH_BACKEND(receive, bounds_the_bytes_of_a_turn)
{
    struct share share = {0};

    flood(driver, &share, 32 * 1024);
    assert_in_range(share.most, 64 * 1024, WEIR__IO_BYTES_MAX + 32 * 1024);
}

TEST_EACH_BACKEND(receive, bounds_the_work_of_a_turn)
{
    struct share share = {.work_ns = weir_ms(1)};

    flood(driver, &share, 1024);
    assert_in_range(share.most_reads, 1, 2); /* the clock is read after the first */
}

/* A ring has received many small messages before the first is delivered. */
TEST_EACH_BACKEND(receive, bounds_the_work_of_a_turn_of_small_reads)
{
    enum { BEFORE = 20, BYTES = 32 * 1024 };
    struct share share = {.work_ns = weir_ms(1)};
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    for (unsigned i = 1; i <= BEFORE; i++) {
        assert_int_equal(peer_remote_send(peer, 1), 1);
        driver_until(driver, peer->bytes == i);
    }
    share.total = BEFORE;
    peer->arg = &share;
    peer->react = take_share_and_no_more;
    assert_int_equal(peer_remote_send(peer, BYTES), BYTES);
    driver_until(driver, peer->bytes == BEFORE + BYTES);
    assert_in_range(share.most_reads, 1, 2);
}

TEST_EACH_BACKEND(receive, follows_the_window_as_it_changes)
{
    static const uint32_t windows[] = {1, 100, 4096, 3, 65536, 1 << 20, 0};
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->handle->exact_window = true;
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        uint32_t window = windows[i] == 0 ? WEIR__IO_WINDOW : windows[i];

        peer->largest = 0;
        peer->handle->window = windows[i];
        peer_receive_start(peer, false);
        exchange(driver, peer, 1000);
        assert_true(peer->largest <= window);
        peer_receive_stop(peer);
        driver_run_until_idle(driver);
    }
}

TEST_EACH_BACKEND(receive, counts_on_no_more_of_a_block_than_it_asked_for)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    driver->memory.extra = 1000;
    peer->handle->window = 500;
    peer->handle->exact_window = true;
    peer_receive_start(peer, false);
    exchange(driver, peer, 100000);
    assert_true(peer->largest <= 500);
}

/* ---- once ---- */

TEST_EACH_BACKEND(receive, once_delivers_once_and_leaves_the_rest_in_the_socket)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->handle->window = 1000;
    assert_int_equal(peer_remote_send(peer, 10000), 10000);
    for (unsigned i = 1; i <= 10; i++) {
        peer_receive_start(peer, true);
        driver_until(driver, peer->receives == i);
        driver_run_until_idle(driver);
        assert_int_equal(peer->receives, i);
        assert_int_equal(peer->bytes + socket_waiting(peer->handle->descriptor), 10000);
    }
}

TEST_EACH_BACKEND(receive, once_waits_for_data)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    for (unsigned i = 1; i <= 20; i++) {
        peer_receive_start(peer, true);
        driver_turn(driver);
        assert_int_equal(peer_remote_send(peer, 100), 100);
        driver_until(driver, peer->receives == i);
        assert_int_equal(peer->bytes, 100 * i);
        assert_int_equal(peer->completes, i);
    }
}

static void once_more(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_receive_start(peer, true);
}

TEST_EACH_BACKEND(receive, once_may_be_asked_for_again_in_the_call_back)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->react = once_more;
    peer->handle->window = 700;
    peer_receive_start(peer, true);
    exchange(driver, peer, 100000);
}

TEST_EACH_BACKEND(receive, for_good_after_once)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, true);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_until(driver, peer->receives == 1);
    peer_receive_start(peer, false);
    exchange(driver, peer, 300000);
}

/* What was asked for last counts. */
TEST_EACH_BACKEND(receive, for_good_while_once_is_still_waited_for)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, true);
    driver_run_until_idle(driver);
    peer_receive_start(peer, false);
    for (int i = 0; i < 5; i++)
        exchange(driver, peer, 1000);
}

TEST_EACH_BACKEND(receive, once_after_for_good)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    exchange(driver, peer, 1000);
    driver_run_until_idle(driver);
    peer_receive_start(peer, true);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_until(driver, peer->bytes == 1100);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_run_until_idle(driver);
    assert_int_equal(peer->bytes, 1100);
    peer_receive_start(peer, true);
    driver_until(driver, peer->bytes == 1200);
}

/* ---- stopping ---- */

TEST_EACH_BACKEND(receive, delivers_nothing_while_stopped_and_loses_nothing)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    uint64_t before;

    peer_receive_start(peer, false);
    for (unsigned i = 0; i < 50; i++) {
        exchange(driver, peer, 1000);
        before = peer->bytes;
        peer_receive_stop(peer);
        peer_receive_stop(peer);
        assert_int_equal(peer_remote_send(peer, 5000), 5000);
        driver_turn(driver);
        driver_turn(driver);
        assert_int_equal(peer->bytes, before);
        peer_receive_start(peer, false);
        driver_until(driver, peer->bytes == before + 5000);
    }
}

/* Data is on its way while it is stopped and started. */
TEST_EACH_BACKEND(receive, may_be_stopped_and_started_at_any_time)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    uint64_t sent = 0;

    for (unsigned i = 0; i < 400; i++) {
        peer_receive_start(peer, false);
        sent += peer_remote_send(peer, 300 + i * 10);
        if (i % 3 == 0)
            driver_turn(driver);
        peer_receive_stop(peer);
        if (i % 5 == 0)
            driver_turn(driver);
    }
    peer_receive_start(peer, false);
    driver_until(driver, peer->bytes == sent);
}

static void stop_receiving(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_receive_stop(peer);
}

TEST_EACH_BACKEND(receive, stopped_in_the_callback_ends_the_batch)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->react = stop_receiving;
    peer->handle->window = 1000;
    assert_int_equal(peer_remote_send(peer, 20000), 20000);
    for (unsigned i = 1; peer->bytes < 20000; i++) {
        peer_receive_start(peer, false);
        driver_until(driver, peer->receives == i);
        driver_turn(driver);
        assert_int_equal(peer->receives, i);
        assert_int_equal(peer->completes, i);
    }
}

static void stop_and_start(struct peer *peer, enum peer_event event)
{
    if (event != PEER_RECEIVED)
        return;
    peer_receive_stop(peer);
    peer_receive_start(peer, peer->receives % 3 == 0);
}

static void start_when_complete(struct peer *peer, enum peer_event event)
{
    stop_and_start(peer, event);
    if (event == PEER_COMPLETE)
        peer_receive_start(peer, false);
}

TEST_EACH_BACKEND(receive, stopped_and_started_in_the_call_back_goes_on)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->react = start_when_complete;
    peer->handle->window = 5000;
    peer_receive_start(peer, false);
    exchange(driver, peer, 1 << 20);
}

static void stop_the_other(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_receive_stop(peer->arg);
}

TEST_EACH_BACKEND(receive, stopped_by_another_handle_of_the_batch)
{
    struct peer *peers[2];

    for (int i = 0; i < 2; i++) {
        peers[i] = peer_open_pair(driver, PAIR_TCP);
        peer_receive_start(peers[i], false);
        peers[i]->react = stop_the_other;
    }
    peers[0]->arg = peers[1];
    peers[1]->arg = peers[0];
    driver_run_until_idle(driver);
    for (int i = 0; i < 2; i++)
        assert_int_equal(peer_remote_send(peers[i], 1000), 1000);
    driver_until(driver, peers[0]->bytes + peers[1]->bytes == 1000);
    driver_run_until_idle(driver);
    assert_int_equal(peers[0]->bytes + peers[1]->bytes, 1000);

    for (int i = 0; i < 2; i++) {
        peers[i]->react = NULL;
        peer_receive_start(peers[i], false);
    }
    driver_until(driver, peers[0]->bytes == 1000 && peers[1]->bytes == 1000);
}

/* ---- memory ---- */

TEST_EACH_BACKEND(receive, waits_for_memory_and_loses_nothing)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    driver->memory.refuse = SIZE_MAX;
    peer_receive_start(peer, false);
    for (unsigned i = 0; i < 2000 && driver->memory.refused == 0; i++) {
        (void)peer_remote_send(peer, 50);
        driver_turn(driver);
    }
    assert_true(driver->memory.refused > 0);
    driver->memory.refuse = 0;
    driver_until(driver, peer->bytes == peer->remote_out.position);
    exchange(driver, peer, 100000);
}

TEST_EACH_BACKEND(receive, tries_again_as_soon_as_memory_has_returned)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    driver->memory.refuse = SIZE_MAX;
    assert_int_equal(peer_remote_send(peer, 100), 100);
    peer_receive_start(peer, true);
    for (unsigned i = 0; i < 2000 && driver->memory.refused == 0; i++)
        driver_turn(driver);
    assert_int_equal(peer->bytes, 0);
    driver->memory.refuse = 0;
    weir__io_memory_returned(driver->io);
    (void)driver_step(driver, 0);
    (void)driver_step(driver, 0);
    assert_int_equal(peer->bytes, 100);
}

/* Nobody says that there is memory again, and nothing else happens. */
TEST_EACH_BACKEND(receive, tries_again_by_itself)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    int64_t begin_ns = weir__monotonic_now();

    driver->memory.refuse = 3;
    assert_int_equal(peer_remote_send(peer, 100), 100);
    peer_receive_start(peer, true);
    while (peer->bytes < 100)
        assert_true(driver_step(driver, weir_seconds(3600)));
    assert_int_equal(driver->memory.refused, 3);
    assert_true(weir__monotonic_now() - begin_ns < TEST_TIMEOUT_NS);
}

/* A loop that is out of memory must not spin: every try costs 10 ms. */
TEST_EACH_BACKEND(receive, without_memory_does_not_spin)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    driver->memory.refuse = SIZE_MAX;
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_sleep(driver, weir_ms(200));
    assert_int_equal(peer->bytes, 0);
    driver->memory.refuse = 0;
    driver_until(driver, peer->bytes == 100);
}

TEST_EACH_BACKEND(receive, now_and_then_without_memory)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    for (int i = 0; i < 20; i++) {
        driver->memory.refuse = 3;
        exchange(driver, peer, 50000);
    }
}

TEST_EACH_BACKEND(receive, closed_while_it_waits_for_memory)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    driver->memory.refuse = SIZE_MAX;
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    for (unsigned i = 0; i < 10; i++)
        driver_turn(driver);
    peer_close(peer);
    driver_until(driver, peer->detaches == 1);
    driver->memory.refuse = 0;
    driver_run_until_idle(driver);
    assert_string_equal(peer->history, "x");
}

TEST_EACH_BACKEND(receive, stopped_while_it_waits_for_memory)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    driver->memory.refuse = SIZE_MAX;
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    for (unsigned i = 0; i < 3; i++)
        driver_turn(driver);
    peer_receive_stop(peer);
    driver->memory.refuse = 0;
    for (unsigned i = 0; i < 5; i++)
        driver_turn(driver);
    assert_string_equal(peer->history, "");
    peer_receive_start(peer, false);
    driver_until(driver, peer->bytes == 100);
}

TEST_EACH_BACKEND(receive, an_idle_stream_holds_no_memory)
{
    struct peer *peers[20];
    size_t live;

    for (int i = 0; i < 20; i++) {
        peers[i] = peer_open_pair(driver, PAIR_TCP);
        peer_receive_start(peers[i], false);
    }
    driver_run_until_idle(driver);
    live = driver->memory.live; /* of a buffer ring, which is the loop's */
    if (driver->backend->io != WEIR_IO_URING)
        assert_int_equal(live, 0);
    for (int i = 0; i < 20; i++)
        exchange(driver, peers[i], 1000);
    driver_run_until_idle(driver);
    assert_int_equal(driver->memory.live, live);
}

/* The delays of a shortage do not stay for the next one. */
TEST_EACH_BACKEND(receive, is_tried_again_soon_after_a_long_shortage)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    driver->memory.refuse = SIZE_MAX;
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    driver_until(driver, driver->io->retry_at_ns != WEIR_NEVER);
    while (driver->io->retry_ns < WEIR__IO_RETRY_MAX_NS) {
        driver->io->retry_at_ns = weir__monotonic_now(); /* the time has come */
        driver_turn(driver);
    }
    driver->memory.refuse = 0;
    driver->io->retry_at_ns = weir__monotonic_now();
    driver_until(driver, peer->bytes == 100);
    assert_int_equal(driver->io->retry_ns, WEIR__IO_RETRY_NS);
}
