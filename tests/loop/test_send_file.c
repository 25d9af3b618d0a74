/* SPDX-License-Identifier: Apache-2.0 */
/* Sending ranges of files, on each backend. The file contains the stream from its beginning. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/error.h>

#include "support/loop/signals.h"
#include "support/loop/suite.h"

#define FILE_SIZE (3u << 20)

static int make_file(void)
{
    int file = memfd_create("range", MFD_CLOEXEC);
    struct stream stream = {0};
    char memory[8192];

    assert_true(file >= 0);
    for (size_t at = 0; at < FILE_SIZE; at += sizeof(memory)) {
        stream_write(&stream, memory, sizeof(memory));
        assert_int_equal(write(file, memory, sizeof(memory)), sizeof(memory));
    }
    return file;
}

/* Sends the range however long that takes; returns 0, or the error. */
static int send_range(struct driver *driver, struct peer *peer, int file, off_t offset,
                      size_t count)
{
    while (count > 0) {
        ssize_t taken = peer_send_file(peer, file, offset, count);

        if (taken < 0)
            return (int)taken;
        offset += taken;
        count -= (size_t)taken;
        driver_until(driver, (peer_remote_receive(peer), !peer->awaits_writable));
        if (peer->send_error != 0)
            return peer->send_error;
    }
    return 0;
}

TEST_EACH_BACKEND(send_file, sends_a_whole_file)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    int file = make_file();

    assert_int_equal(send_range(driver, peer, file, 0, FILE_SIZE), 0);
    driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) == FILE_SIZE);
    assert_int_equal(lseek(file, 0, SEEK_CUR), FILE_SIZE); /* its own position does not move */
    (void)close(file);
}

TEST_EACH_BACKEND(send_file, begins_at_the_offset)
{
    static const off_t offsets[] = {1, 4095, 4096, 1000000, FILE_SIZE - 1};
    int file = make_file();

    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        struct peer *peer = peer_open_pair(driver, i % 2 == 0 ? PAIR_TCP : PAIR_UNIX);
        size_t count = (size_t)(FILE_SIZE - offsets[i]);

        if (count > 300001)
            count = 300001;
        peer->remote_in.position = (uint64_t)offsets[i];
        assert_int_equal(send_range(driver, peer, file, offsets[i], count), 0);
        driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) ==
                                 (uint64_t)offsets[i] + count);
    }
    (void)close(file);
}

TEST_EACH_BACKEND(send_file, waits_for_room)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);
    size_t filled = socket_fill(peer->handle->descriptor);
    int file = make_file();

    assert_int_equal(peer_send_file(peer, file, 0, 1000), 0);
    assert_int_equal(peer_send_file(peer, file, 0, 1000), -EALREADY);
    driver_run_until_idle(driver);
    assert_int_equal(peer->sents, 0);
    assert_int_equal(socket_drain(peer->remote), filled);
    driver_until(driver, peer->sents == 1);
    assert_int_equal(peer->send_error, 0);
    assert_int_equal(send_range(driver, peer, file, 0, 1000), 0);
    driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) == 1000);
    (void)close(file);
}

TEST_EACH_BACKEND(send_file, that_ends_before_the_range_is_truncated)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    int file = make_file();

    peer->remote_in.position = FILE_SIZE - 1000;
    assert_int_equal(send_range(driver, peer, file, FILE_SIZE - 1000, 5000), WEIR_ETRUNCATED);
    assert_int_equal(send_range(driver, peer, file, FILE_SIZE + 1000, 1), WEIR_ETRUNCATED);
    driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) == FILE_SIZE);
    (void)close(file);
}

TEST_EACH_BACKEND(send_file, that_is_cut_while_it_waits_is_truncated)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);
    int file = make_file();
    ssize_t taken = peer_send_file(peer, file, 0, FILE_SIZE);

    assert_true(taken > 0 && taken < (ssize_t)FILE_SIZE);
    assert_int_equal(ftruncate(file, taken + 100), 0);
    driver_until(driver, (peer_remote_receive(peer), !peer->awaits_writable));
    assert_int_equal(send_range(driver, peer, file, taken, FILE_SIZE - (size_t)taken),
                     WEIR_ETRUNCATED);
    (void)peer_remote_receive(peer);
    assert_int_equal(peer->remote_in.position, (uint64_t)taken + 100);
    (void)close(file);
}

TEST_EACH_BACKEND(send_file, follows_a_send_that_was_short)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);
    int file = make_file();

    for (int i = 0; i < 5; i++) {
        off_t offset;

        peer_send(peer, 400000);
        driver_until(driver, (peer_remote_receive(peer),
                              peer->bytes_sent == peer->out.position && peer->to_send == 0));
        offset = (off_t)peer->out.position;
        assert_int_equal(send_range(driver, peer, file, offset, 150000), 0);
        peer->out.position += 150000;
        peer->bytes_sent += 150000;
    }
    driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) == 5 * 550000);
    (void)close(file);
}

TEST_EACH_BACKEND(send_file, to_a_closed_peer_is_an_error_and_no_signal)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX};
    int file = make_file();

    signals_count(SIGPIPE);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct peer *peer = peer_open_pair(driver, kinds[i]);
        int err;

        peer_remote_close(peer);
        while ((err = (int)peer_send_file(peer, file, 0, 1000)) >= 0)
            driver_until(driver, !peer->awaits_writable);
        assert_true(err == -EPIPE || err == -ECONNRESET);
    }
    assert_int_equal(signals_counted(), 0);
    (void)close(file);
}

TEST_EACH_BACKEND(send_file, closed_while_it_waits_reports_nothing)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX);
    int file = make_file();

    (void)peer_send_file(peer, file, 0, FILE_SIZE);
    assert_true(peer->awaits_writable);
    driver_turn(driver);
    peer_close(peer);
    (void)close(file);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "x");
}

TEST_EACH_BACKEND(send_file, from_what_cannot_be_read_is_an_error)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    assert_int_equal(peer_send_file(peer, -1, 0, 1), -EBADF);
    peer->send_error = 0;
    peer_send(peer, 100);
    driver_until(driver, (peer_remote_receive(peer), peer->remote_in.position) == 100);
}
