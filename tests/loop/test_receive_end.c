/* SPDX-License-Identifier: Apache-2.0 */
/* How receiving ends, on each backend: end of stream, a reset, our own close. */
#include <errno.h>

#include "support/loop/suite.h"

static void expect_end(struct driver *driver, struct peer *peer, uint64_t bytes, int err)
{
    driver_until(driver, peer->ends == 1);
    driver_run_until_idle(driver);
    assert_int_equal(peer->ends, 1);
    assert_int_equal(peer->end_error, err);
    assert_int_equal(peer->bytes, bytes);
}

/* ---- the end of the stream ---- */

TEST_EACH_BACKEND(receive_end, comes_when_the_peer_closes)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX, PAIR_UNIX_SEQPACKET};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct peer *peer = peer_open_pair(driver, kinds[i]);

        peer_receive_start(peer, false);
        driver_turn(driver);
        peer_remote_close(peer);
        expect_end(driver, peer, 0, 0);
    }
}

TEST_EACH_BACKEND(receive_end, comes_after_the_data_of_the_same_batch)
{
    static const size_t sizes[] = {1, 100, 8192, 16384, 100000};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct peer *peer = peer_open_pair(driver, PAIR_TCP);

        peer_receive_start(peer, false);
        driver_turn(driver);
        assert_int_equal(peer_remote_send(peer, sizes[i]), sizes[i]);
        peer_remote_close(peer);
        expect_end(driver, peer, sizes[i], 0);
    }
}

TEST_EACH_BACKEND(receive_end, comes_after_data_that_took_many_turns)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);

    peer->handle->window = 512;
    assert_int_equal(peer_remote_send(peer, 50000), 50000);
    peer_remote_close(peer);
    peer_receive_start(peer, false);
    expect_end(driver, peer, 50000, 0);
}

TEST_EACH_BACKEND(receive_end, is_kept_while_receiving_is_stopped)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_turn(driver);
    peer_receive_stop(peer);
    assert_int_equal(peer_remote_send(peer, 1000), 1000);
    peer_remote_close(peer);
    driver_run_until_idle(driver);
    assert_string_equal(peer->history, "");
    peer_receive_start(peer, false);
    expect_end(driver, peer, 1000, 0);
}

static void stop_receiving(struct peer *peer, enum peer_event event)
{
    if (event == PEER_RECEIVED)
        peer_receive_stop(peer);
}

TEST_EACH_BACKEND(receive_end, is_kept_when_stopped_in_the_call_back_before_it)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->react = stop_receiving;
    peer_receive_start(peer, false);
    driver_turn(driver);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    peer_remote_close(peer);
    driver_until(driver, peer->bytes == 100);
    driver_run_until_idle(driver);
    assert_int_equal(peer->ends, 0);
    peer_receive_start(peer, false);
    expect_end(driver, peer, 100, 0);
}

TEST_EACH_BACKEND(receive_end, is_reported_to_a_single_read)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    assert_int_equal(peer_remote_send(peer, 100), 100);
    peer_remote_close(peer);
    peer_receive_start(peer, true);
    driver_until(driver, peer->receives == 1);
    driver_run_until_idle(driver);
    assert_int_equal(peer->ends, 0);
    peer_receive_start(peer, true);
    expect_end(driver, peer, 100, 0);
}

TEST_EACH_BACKEND(receive_end, leaves_the_other_direction_open)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    assert_int_equal(shutdown(peer->remote, SHUT_WR), 0);
    expect_end(driver, peer, 100, 0);
    peer_send(peer, 1 << 20);
    driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) == 1 << 20);
    driver_run_until_idle(driver);
    assert_int_equal(peer->ends, 1);
}

TEST_EACH_BACKEND(receive_end, while_a_send_is_under_way)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    peer_send(peer, 8 << 20);
    driver_turn(driver);
    assert_int_equal(shutdown(peer->remote, SHUT_WR), 0);
    expect_end(driver, peer, 0, 0);
    driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) == 8 << 20);
}

/* ---- errors ---- */

TEST_EACH_BACKEND(receive_end, reports_a_reset)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_turn(driver);
    peer_remote_reset(peer);
    expect_end(driver, peer, 0, -ECONNRESET);
}

TEST_EACH_BACKEND(receive_end, reports_a_reset_from_before_the_start)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_remote_reset(peer);
    driver_run_until_idle(driver);
    peer_receive_start(peer, false);
    expect_end(driver, peer, 0, -ECONNRESET);
}

TEST_EACH_BACKEND(receive_end, reports_a_reset_that_came_while_stopped)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_turn(driver);
    peer_receive_stop(peer);
    driver_turn(driver);
    peer_remote_reset(peer);
    driver_run_until_idle(driver);
    assert_string_equal(peer->history, "");
    peer_receive_start(peer, false);
    expect_end(driver, peer, 0, -ECONNRESET);
}

/* How much of the data survives the reset is the kernel's affair. */
TEST_EACH_BACKEND(receive_end, reports_a_reset_after_data)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_turn(driver);
    assert_int_equal(peer_remote_send(peer, 30000), 30000);
    peer_remote_reset(peer);
    driver_until(driver, peer->ends == 1);
    assert_int_equal(peer->end_error, -ECONNRESET);
    assert_true(peer->bytes <= 30000);
}

/* The stream ends, and then the other end refuses what we send. */
TEST_EACH_BACKEND(receive_end, of_a_stream_that_is_ended_and_then_reset)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_send(peer, 1000);
    assert_int_equal(peer_remote_send(peer, 1000), 1000);
    assert_int_equal(shutdown(peer->remote, SHUT_WR), 0);
    peer_remote_close(peer);
    peer_receive_start(peer, false);
    driver_until(driver, peer->ends == 1);
    assert_true(peer->end_error == 0 || peer->end_error == -ECONNRESET ||
                peer->end_error == -EPIPE);
    driver_run_until_idle(driver);
    assert_int_equal(peer->ends, 1);
}

TEST_EACH_BACKEND(receive_end, of_what_is_not_connected_is_an_error)
{
    struct peer *peer = peer_open(driver, socket_new(AF_INET, SOCK_STREAM));

    peer_receive_start(peer, false);
    expect_end(driver, peer, 0, -ENOTCONN);
}

/* ---- closing ---- */

TEST_EACH_BACKEND(receive_end, nothing_is_delivered_after_a_close_while_data_waits)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_turn(driver);
    assert_int_equal(peer_remote_send(peer, 30000), 30000);
    peer_close(peer);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "x");
}

/* The wait has seen the event, but the dispatch has not. */
TEST_EACH_BACKEND(receive_end, nothing_is_delivered_after_a_close_between_wait_and_dispatch)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, 3000), 3000);
    assert_true(weir__io_wait(driver->io, weir__monotonic_now() + TEST_TIMEOUT_NS) > 0);
    peer_close(peer);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "x");
}

static void close_peer(struct peer *peer, enum peer_event event)
{
    if (event == *(enum peer_event *)peer->arg)
        peer_close(peer);
}

static struct peer *close_when(struct driver *driver, enum peer_event *event)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer->arg = event;
    peer->react = close_peer;
    peer->handle->window = 1000;
    peer_receive_start(peer, false);
    assert_int_equal(peer_remote_send(peer, 30000), 30000);
    peer_remote_close(peer);
    driver_until(driver, peer->detaches == 1);
    return peer;
}

TEST_EACH_BACKEND(receive_end, by_a_close_in_received)
{
    enum peer_event event = PEER_RECEIVED;

    assert_string_equal(close_when(driver, &event)->history, "rx");
}

TEST_EACH_BACKEND(receive_end, by_a_close_in_read_complete)
{
    enum peer_event event = PEER_COMPLETE;
    struct peer *peer = close_when(driver, &event);

    assert_int_equal(peer->completes, 1);
    assert_true(peer->receives <= WEIR__IO_READS_MAX);
}

TEST_EACH_BACKEND(receive_end, by_a_close_in_receive_ended)
{
    enum peer_event event = PEER_ENDED;

    assert_int_equal(close_when(driver, &event)->bytes, 30000);
}

/* The kernel reports a stream that has ended for as long as it is open. */
TEST_EACH_BACKEND(receive_end, does_not_spin_afterwards)
{
    struct peer *ended = peer_open_pair(driver, PAIR_TCP);
    struct peer *reset = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(ended, false);
    peer_receive_start(reset, false);
    peer_remote_close(ended);
    peer_remote_reset(reset);
    driver_until(driver, ended->ends == 1 && reset->ends == 1);
    driver_run_until_idle(driver);
    driver_sleep(driver, weir_ms(50));
}

/* ---- without memory ---- */

static const enum pair_kind connected_kinds[] = {PAIR_TCP, PAIR_UNIX, PAIR_UNIX_SEQPACKET};
#define CONNECTED_KINDS (sizeof(connected_kinds) / sizeof(connected_kinds[0]))

TEST_EACH_BACKEND(receive_end, is_reported_without_memory)
{
    driver->memory.refuse = SIZE_MAX;
    for (size_t i = 0; i < CONNECTED_KINDS; i++) {
        struct peer *peer = peer_open_pair(driver, connected_kinds[i]);

        peer_receive_start(peer, false);
        driver_turn(driver);
        peer_remote_close(peer);
        expect_end(driver, peer, 0, 0);
        peer_close(peer);
    }
}

TEST_EACH_BACKEND(receive_end, is_reported_when_memory_runs_out_later)
{
    for (size_t i = 0; i < CONNECTED_KINDS; i++) {
        struct peer *peer = peer_open_pair(driver, connected_kinds[i]);

        driver->memory.refuse = 0;
        peer_receive_start(peer, false);
        assert_int_equal(peer_remote_send(peer, 100), 100);
        driver_until(driver, peer->bytes == 100);
        driver->memory.refuse = SIZE_MAX;
        peer_remote_close(peer);
        expect_end(driver, peer, 100, 0);
        peer_close(peer);
    }
}

TEST_EACH_BACKEND(receive_end, a_reset_is_reported_without_memory)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    driver->memory.refuse = SIZE_MAX;
    peer_receive_start(peer, false);
    driver_turn(driver);
    peer_remote_reset(peer);
    expect_end(driver, peer, 0, -ECONNRESET);
}

TEST_EACH_BACKEND(receive_end, waits_behind_data_that_waits_for_memory)
{
    struct peer *peers[CONNECTED_KINDS];

    driver->memory.refuse = SIZE_MAX;
    for (size_t i = 0; i < CONNECTED_KINDS; i++) {
        peers[i] = peer_open_pair(driver, connected_kinds[i]);
        peer_receive_start(peers[i], false);
        driver_turn(driver);
        assert_int_equal(peer_remote_send(peers[i], 100), 100);
        peer_remote_close(peers[i]);
    }
    driver_run_until_idle(driver);
    for (size_t i = 0; i < CONNECTED_KINDS; i++)
        assert_string_equal(peers[i]->history, "");
    driver->memory.refuse = 0;
    for (size_t i = 0; i < CONNECTED_KINDS; i++)
        expect_end(driver, peers[i], 100, 0);
}

/* The tries of many cost no more than those of one. */
TEST_EACH_BACKEND(receive_end, many_that_wait_for_memory_are_not_tried_one_by_one)
{
    struct peer *peers[50];
    size_t refused;

    driver->memory.refuse = SIZE_MAX;
    for (size_t i = 0; i < 50; i++) {
        peers[i] = peer_open_pair(driver, PAIR_UNIX);
        peer_receive_start(peers[i], false);
        assert_int_equal(peer_remote_send(peers[i], 100), 100);
    }
    driver_run_until_idle(driver);
    refused = driver->memory.refused;
    driver_sleep(driver, weir_ms(100));
    assert_in_range(driver->memory.refused - refused, 0, 10);
    driver->memory.refuse = 0;
    for (size_t i = 0; i < 50; i++)
        driver_until(driver, peers[i]->bytes == 100);
}
