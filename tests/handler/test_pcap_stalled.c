/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture to a pipe whose reader has stopped.
 */
#include <weir/diagnostics.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/embedded.h>

#include "os/file_writer.h"
#include "os/thread.h"
#include "support/codec/feed.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/handler/capture.h"
#include "support/transport/connection.h"

#define FILE_HEAD 24
#define PACKET_HEAD 16
#define CAPTURED_MAX (8 * 1024 * 1024)
#define TEXT_SIZE 4000
#define TEXTS 300

static void restore_grace(void)
{
    atomic_store(&weir__file_writer_grace_ns, weir_seconds(5));
}

__attribute__((constructor)) static void restore_grace_after_each_test(void)
{
    test_before_leak_check(restore_grace);
}

/* ---- the pipe ---- */

struct stalled {
    char path[40];
    int reader;
    weir_pcap *pcap;
    weir__thread thread; /* of the reader, once it continues */
    uint8_t *bytes;
    size_t length;
};

static void stalled_open(struct stalled *stalled)
{
    *stalled = (struct stalled){.bytes = malloc(CAPTURED_MAX)};
    assert_non_null(stalled->bytes);
    (void)snprintf(stalled->path, sizeof(stalled->path), "/tmp/weir-pcap-%d.pipe", (int)getpid());
    (void)unlink(stalled->path);
    assert_int_equal(mkfifo(stalled->path, 0600), 0);
    stalled->reader = open(stalled->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(stalled->reader >= 0);
    assert_int_equal(fcntl(stalled->reader, F_SETFL, 0), 0);
    assert_int_equal(
        weir_pcap_create(WEIR_PCAP_OPTIONS(.path = stalled->path, .queue_bytes = 256 * 1024),
                         &stalled->pcap),
        0);
}

static void read_all(void *arg)
{
    struct stalled *stalled = arg;
    ssize_t more;

    do {
        more =
            read(stalled->reader, stalled->bytes + stalled->length, CAPTURED_MAX - stalled->length);
        stalled->length += more > 0 ? (size_t)more : 0;
    } while (more > 0 || (more < 0 && errno == EINTR));
}

static void stalled_go_on(struct stalled *stalled)
{
    assert_int_equal(weir__thread_start("reader", read_all, stalled, &stalled->thread), 0);
}

/* Returns the number of packets, each of which must be complete. */
static uint64_t stalled_count(struct stalled *stalled)
{
    size_t at = FILE_HEAD;
    uint64_t count = 0;

    weir__thread_join(&stalled->thread);
    assert_true(stalled->length >= FILE_HEAD);
    while (at < stalled->length) {
        uint32_t lengths[2];

        assert_true(stalled->length - at >= PACKET_HEAD);
        memcpy(lengths, stalled->bytes + at + 8, sizeof(lengths));
        assert_int_equal(lengths[0], lengths[1]);
        assert_true(stalled->length - at - PACKET_HEAD >= lengths[0]);
        assert_int_equal(stalled->bytes[at + PACKET_HEAD], 0x45); /* IPv4 */
        at += PACKET_HEAD + lengths[0];
        count++;
    }
    return count;
}

static void stalled_close(struct stalled *stalled)
{
    assert_int_equal(close(stalled->reader), 0);
    assert_int_equal(unlink(stalled->path), 0);
    free(stalled->bytes);
}

/* ---- tests ---- */

/* Without the background thread, the loop would block after 64 KiB. */
TEST_EACH_CONNECTION(pcap_stalled, does_not_stop_a_loop)
{
    static char text[TEXT_SIZE + 1];
    struct stalled stalled;
    weir_pcap_stats stats;

    memset(text, 'x', TEXT_SIZE);
    log_capture_start();
    stalled_open(&stalled);
    connection_open(connection, NULL);
    connection->server.on_read = connection_discard;
    assert_int_equal(weir_pcap_add(weir_channel_pipeline(connection->client.channel), stalled.pcap),
                     0);
    for (unsigned i = 0; i < TEXTS; i++)
        connection_send(&connection->client, text);
    connection_await_received(&connection->server, (uint64_t)TEXTS * TEXT_SIZE);
    weir_pcap_read_stats(stalled.pcap, &stats);
    assert_int_equal(stats.packets + stats.dropped, TEXTS);
    assert_in_range(stats.dropped, 1, TEXTS - 50);
    assert_int_equal(stats.skipped, stats.dropped);
    assert_int_equal(stats.error, 0);
    assert_in_range(log_capture_count(WEIR_LOG_WARN), 1, 10);

    stalled_go_on(&stalled);
    connection_close(connection);
    host_end(&connection->near);
    weir_pcap_read_stats(stalled.pcap, &stats);
    weir_pcap_release(stalled.pcap);
    assert_int_equal(stalled_count(&stalled), stats.packets);
    stalled_close(&stalled);
}

/* ---- without a network ---- */

static weir_embedded *open_channel(weir_pcap *pcap)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.register_later = true), &embedded),
                     0);
    assert_int_equal(weir_pcap_add(weir_embedded_pipeline(embedded), pcap), 0);
    assert_int_equal(weir_embedded_register(embedded), 0);
    return embedded;
}

static void receive_texts(weir_embedded *embedded, unsigned count)
{
    static uint8_t text[TEXT_SIZE];

    for (unsigned i = 0; i < count; i++)
        assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(text, sizeof(text))), 0);
}

TEST(pcap_stalled, is_read_by_tshark_after_a_stall)
{
    struct capture file = {.path = "/tmp/weir-pcap-XXXXXX"};
    struct stalled stalled;
    weir_pcap_stats before, after;
    weir_embedded *embedded;
    char lines[8192];
    unsigned count = 0;
    int copy;

    capture_needs_tshark();
    log_capture_start();
    stalled_open(&stalled);
    embedded = open_channel(stalled.pcap);
    receive_texts(embedded, TEXTS);
    weir_pcap_read_stats(stalled.pcap, &before);
    assert_true(before.dropped > 0);
    stalled_go_on(&stalled);
    assert_int_equal(weir_pcap_flush(stalled.pcap), 0);
    receive_texts(embedded, 3); /* there is room again */
    weir_embedded_release(embedded);
    weir_pcap_read_stats(stalled.pcap, &after);
    assert_int_equal(after.dropped, before.dropped);
    assert_true(after.packets >= before.packets + 3);
    weir_pcap_release(stalled.pcap);
    assert_int_equal(stalled_count(&stalled), after.packets);

    copy = mkstemp(file.path);
    assert_true(copy >= 0);
    assert_int_equal(write(copy, stalled.bytes, stalled.length), stalled.length);
    close(copy);
    capture_read_back(&file, "-e tcp.len -e _ws.malformed", lines, sizeof(lines));
    for (const char *at = lines; *at != '\0'; at = strchr(at, '\n') + 1) {
        assert_true(strncmp(at, "4000 \n", 6) == 0 || strncmp(at, "0 \n", 3) == 0);
        count++;
    }
    assert_int_equal(count, after.packets);
    capture_remove(&file);
    stalled_close(&stalled);
}

static void release_pcap(void *pcap)
{
    weir_pcap_release(pcap);
}

TEST_EACH_LOOP(pcap_stalled, is_finished_behind_the_back_of_a_loop)
{
    struct stalled stalled;
    weir_pcap_stats stats;
    weir_embedded *embedded;

    log_capture_start();
    stalled_open(&stalled);
    embedded = open_channel(stalled.pcap);
    receive_texts(embedded, TEXTS);
    weir_embedded_release(embedded);
    weir_pcap_read_stats(stalled.pcap, &stats);
    atomic_store(&weir__file_writer_grace_ns, 100 * TEST_TIMEOUT_NS); /* too long for a loop */
    run_on_executor(host->loop, release_pcap, stalled.pcap);
    assert_false(weir__file_writers_wait(0));
    stalled_go_on(&stalled);
    assert_int_equal(stalled_count(&stalled), stats.packets);
    assert_true(weir__file_writers_wait(TEST_TIMEOUT_NS));
    stalled_close(&stalled);
}

/* Less than the queue holds: nothing may be dropped. */
TEST(pcap_stalled, a_regular_file_loses_nothing)
{
    struct capture file;
    weir_pcap_stats stats;
    weir_embedded *embedded;
    struct stat status;

    capture_open(&file, 0);
    embedded = open_channel(file.pcap);
    receive_texts(embedded, 3000);
    assert_int_equal(weir_pcap_flush(file.pcap), 0);
    weir_pcap_read_stats(file.pcap, &stats);
    assert_int_equal(stats.dropped, 0);
    assert_int_equal(stats.skipped, 0);
    assert_int_equal(stats.packets, 3000 + 3);
    assert_int_equal(stat(file.path, &status), 0);
    assert_int_equal(status.st_size, FILE_HEAD + 3003 * (PACKET_HEAD + 40) + 3000 * TEXT_SIZE);
    weir_embedded_release(embedded);
    capture_end(&file);
    capture_remove(&file);
}
