/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture files as tshark, the command line tool of Wireshark, reads them.
 */
#include <weir/diagnostics.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/embedded.h>
#include <weir/file_range.h>
#include <weir/log.h>
#include <weir/pipeline.h>

#include "channel/transport.h"
#include "os/system.h"
#include "support/channel/test_channel.h"
#include "support/codec/feed.h"
#include "support/handler/capture.h"
#include "support/memory.h"
#include "support/test.h"
#include "support/transport/embedded_threads.h"

#define FILE_HEAD 24
#define PACKET_HEAD 16
#define IPV4_TCP 40

static struct capture file;

/* ---- capturing ---- */

static weir_pcap *open_pcap(uint64_t max_bytes)
{
    capture_open(&file, max_bytes);
    return file.pcap;
}

static weir_embedded *open_with(weir_pcap *pcap, const char *local, const char *remote)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.register_later = true,
                                                                .local = local, .remote = remote),
                                          &embedded),
                     0);
    assert_int_equal(weir_pcap_add(weir_embedded_pipeline(embedded), pcap), 0);
    assert_int_equal(weir_embedded_register(embedded), 0);
    return embedded;
}

static void receive(weir_embedded *embedded, const char *text)
{
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(text, strlen(text))), 0);
}

static void send_text(weir_embedded *embedded, const char *text)
{
    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes(text, strlen(text))), 0);
}

static void end(weir_embedded *embedded)
{
    (void)weir_embedded_finish(embedded);
    weir_embedded_release(embedded);
}

/* ---- tshark ---- */

#define FIELDS(ip) "-e " ip ".src -e tcp.srcport -e " ip ".dst -e tcp.dstport "
#define NUMBERS "-e tcp.flags.str -e tcp.seq -e tcp.ack "
#define CHECKS "-e tcp.checksum.status -e tcp.payload -e _ws.malformed -e tcp.analysis.flags"

TEST(pcap, is_read_by_tshark)
{
    weir_pcap *pcap;
    weir_embedded *embedded;

    capture_needs_tshark();
    pcap = open_pcap(0);
    embedded = open_with(pcap, "192.0.2.1:40000", "198.51.100.7:443");
    send_text(embedded, "ping!");
    receive(embedded, "pong");
    receive(embedded, "x");
    send_text(embedded, "ok");
    end(embedded);
    weir_pcap_release(pcap);
    assert_read_back(&file, FIELDS("ip") "-e ip.checksum.status",
                     "192.0.2.1 40000 198.51.100.7 443 1\n"
                     "198.51.100.7 443 192.0.2.1 40000 1\n"
                     "192.0.2.1 40000 198.51.100.7 443 1\n"
                     "192.0.2.1 40000 198.51.100.7 443 1\n"
                     "198.51.100.7 443 192.0.2.1 40000 1\n"
                     "198.51.100.7 443 192.0.2.1 40000 1\n"
                     "192.0.2.1 40000 198.51.100.7 443 1\n"
                     "192.0.2.1 40000 198.51.100.7 443 1\n"
                     "198.51.100.7 443 192.0.2.1 40000 1\n"
                     "192.0.2.1 40000 198.51.100.7 443 1\n");
    assert_read_back(&file, NUMBERS CHECKS,
                     "··········S· 0 0 1   \n"
                     "·······A··S· 0 1 1   \n"
                     "·······A···· 1 1 1   \n"
                     "·······AP··· 1 1 1 70696e6721  \n"
                     "·······AP··· 1 6 1 706f6e67  \n"
                     "·······AP··· 5 6 1 78  \n"
                     "·······AP··· 6 6 1 6f6b  \n"
                     "·······A···F 8 6 1   \n"
                     "·······A···F 6 9 1   \n"
                     "·······A···· 9 7 1   \n");
    capture_remove(&file);
}

TEST(pcap, supports_ipv6_and_orders_packets_of_all_channels)
{
    weir_pcap *pcap;
    weir_embedded *first, *second;

    capture_needs_tshark();
    pcap = open_pcap(0);
    first = open_with(pcap, "[2001:db8::1]:1", "[2001:db8::2]:2");
    second = open_with(pcap, "[2001:db8::1]:1", "[2001:db8::3]:3");
    receive(first, "odd");
    receive(second, "even");
    receive(first, "again");
    weir_embedded_release(first);
    weir_embedded_release(second);
    weir_pcap_release(pcap);
    assert_read_back(&file, "-Y tcp.payload " FIELDS("ipv6") CHECKS,
                     "2001:db8::2 2 2001:db8::1 1 1 6f6464  \n"
                     "2001:db8::3 3 2001:db8::1 1 1 6576656e  \n"
                     "2001:db8::2 2 2001:db8::1 1 1 616761696e  \n");
    capture_remove(&file);
}

/* ---- the same without tshark ---- */

struct captured {
    uint8_t bytes[400000];
    size_t length;
    size_t at; /* of the next packet */
};

static struct captured captured;

static void load(void)
{
    FILE *stream = fopen(file.path, "r");

    assert_non_null(stream);
    captured.length = fread(captured.bytes, 1, sizeof(captured.bytes), stream);
    captured.at = FILE_HEAD;
    assert_int_equal(fclose(stream), 0);
    capture_remove(&file);
    assert_true(captured.length >= FILE_HEAD);
}

static uint32_t be32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Reads the next packet: flags, sequence number and payload. False at the end of the file. */
static bool next_packet(unsigned *flags, uint32_t *number, size_t *payload)
{
    const uint8_t *packet = captured.bytes + captured.at + PACKET_HEAD;
    uint32_t stored;

    if (captured.at == captured.length)
        return false;
    assert_true(captured.length - captured.at >= PACKET_HEAD + IPV4_TCP);
    memcpy(&stored, captured.bytes + captured.at + 8, sizeof(stored));
    assert_true(captured.length - captured.at - PACKET_HEAD >= stored);
    *flags = packet[33];
    *number = be32(packet + 24);
    *payload = stored - IPV4_TCP;
    captured.at += PACKET_HEAD + stored;
    return true;
}

static void assert_packet(unsigned flags, uint32_t number, size_t payload)
{
    unsigned found_flags;
    uint32_t found_number;
    size_t found_payload;

    assert_true(next_packet(&found_flags, &found_number, &found_payload));
    assert_int_equal(found_flags, flags);
    assert_int_equal(found_number, number);
    assert_int_equal(found_payload, payload);
}

static void assert_no_packet(void)
{
    assert_int_equal(captured.at, captured.length);
}

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

static void assert_handshake(void)
{
    assert_packet(SYN, 0, 0);
    assert_packet(SYN | ACK, 0, 0);
    assert_packet(ACK, 1, 0);
}

TEST(pcap, splits_long_messages_into_packets)
{
    enum { LENGTH = 100000, MOST = 65535 - IPV4_TCP };
    weir_pcap *pcap = open_pcap(0);
    weir_embedded *embedded = open_with(pcap, NULL, NULL);
    weir_composite *composite = NULL;
    weir_buf *half;

    assert_int_equal(weir_composite_create(0, &composite), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_buf_create(LENGTH / 2, 0, &half), 0);
        memset(weir_buf_space(half), 'a' + i, LENGTH / 2);
        assert_int_equal(weir_buf_advance(half, LENGTH / 2), 0);
        assert_int_equal(weir_composite_add(composite, weir_buf_msg(half)), 0);
    }
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_composite_msg(composite)), 0);
    weir_embedded_release(embedded);
    weir_pcap_release(pcap);
    load();
    assert_handshake();
    assert_packet(PSH | ACK, 1, MOST);
    assert_int_equal(captured.bytes[captured.at - 1], 'b');
    assert_packet(PSH | ACK, 1 + MOST, LENGTH - MOST);
    assert_packet(FIN | ACK, 1, 0);
    assert_packet(FIN | ACK, 1 + LENGTH, 0);
    assert_packet(ACK, 2, 0);
    assert_no_packet();
}

TEST(pcap, counts_the_bytes_of_files)
{
    weir_pcap *pcap = open_pcap(0);
    weir_embedded *embedded = open_with(pcap, NULL, NULL);
    weir_file_range *range = NULL;

    assert_int_equal(weir_file_range_create(0, 7, 1000, 0, &range), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_file_range_msg(range)), 0);
    send_text(embedded, "x");
    weir_embedded_release(embedded);
    weir_pcap_release(pcap);
    load();
    assert_handshake();
    assert_packet(PSH | ACK, 1001, 1);
}

TEST(pcap, added_late_has_no_handshake)
{
    weir_pcap *pcap = open_pcap(0);
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_pcap_add(weir_embedded_pipeline(embedded), pcap), 0);
    receive(embedded, "x");
    assert_int_equal(weir_pcap_flush(pcap), 0);
    load();
    assert_packet(PSH | ACK, 0, 1);
    assert_no_packet();
    weir_embedded_release(embedded);
    weir_pcap_release(pcap);
}

TEST(pcap, shows_which_side_closed_first)
{
    weir_pcap *pcap = open_pcap(0);
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
            &embedded),
        0);
    assert_int_equal(weir_pcap_add(weir_embedded_pipeline(embedded), pcap), 0);
    weir_embedded_end_input(embedded);
    send_text(embedded, "bye");
    end(embedded);

    embedded = open_with(pcap, NULL, NULL); /* ended by a reset: no packet follows */
    weir_pipeline_fire_error(weir_embedded_pipeline(embedded), -ECONNRESET, NULL);
    assert_int_equal(weir_embedded_take_error(embedded), -ECONNRESET);
    weir_embedded_release(embedded);
    weir_pcap_release(pcap);
    load();
    assert_packet(FIN | ACK, 0, 0);
    assert_packet(PSH | ACK, 0, 3);
    assert_packet(FIN | ACK, 3, 0);
    assert_packet(ACK, 1, 0);
    assert_handshake();
    assert_packet(RST | ACK, 1, 0);
    assert_no_packet();
}

/* The children of a test channel connect from 127.0.0.1:2 to 127.0.0.1:1. */
TEST(pcap, of_an_accepted_channel_starts_with_the_peer)
{
    weir_pcap *pcap = open_pcap(0);
    weir_channel *accepted = NULL;
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.accepts = true, .silent = true}, NULL);
    assert_int_equal(wire_create(&tc.events, &(const struct wire_options){.silent = true}, NULL,
                                 tc.channel, &accepted),
                     0);
    assert_int_equal(weir_pcap_add(weir_channel_pipeline(accepted), pcap), 0);
    weir_channel_register(accepted, weir_channel_executor(tc.channel), NULL);
    tc_run(&tc);
    weir_channel_abort(accepted, NULL);
    tc_run(&tc);
    weir_channel_release(accepted);
    tc_close(&tc);
    weir_pcap_release(pcap);
    load();
    assert_int_equal(captured.bytes[FILE_HEAD + PACKET_HEAD + 21], 2); /* the port of the source */
    assert_handshake();
}

TEST(pcap, stops_at_max_bytes)
{
    weir_pcap *pcap = open_pcap(FILE_HEAD + 4 * (PACKET_HEAD + IPV4_TCP) + 1);
    weir_embedded *embedded = open_with(pcap, NULL, NULL);
    weir_pcap_stats stats;

    receive(embedded, "too long");
    receive(embedded, "x");
    receive(embedded, "x");
    weir_embedded_release(embedded);
    weir_pcap_read_stats(pcap, &stats);
    assert_int_equal(stats.packets, 4);
    assert_int_equal(stats.skipped, 2 + 3);
    assert_int_equal(stats.error, 0);
    weir_pcap_release(pcap);
    load();
    assert_handshake();
    assert_packet(PSH | ACK, 9, 1);
    assert_no_packet();
}

static ssize_t write_nothing(int descriptor, const void *memory, size_t size)
{
    (void)descriptor;
    (void)memory;
    (void)size;
    errno = ENOSPC;
    return -1;
}

TEST(pcap, reports_write_errors_without_blocking)
{
    ssize_t (*write_as_ever)(int, const void *, size_t) = weir__sys.write;
    weir_pcap *pcap = open_pcap(0);
    weir_embedded *embedded = open_with(pcap, NULL, NULL);
    weir_pcap_stats stats;

    weir_log_set_level(WEIR_LOG_OFF);
    weir__sys.write = write_nothing;
    assert_int_equal(weir_pcap_flush(pcap), -ENOSPC);
    weir__sys.write = write_as_ever;
    weir_log_set_level(WEIR_LOG_WARN);
    receive(embedded, "x");
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_int_equal(weir_pcap_flush(pcap), -ENOSPC);
    weir_pcap_read_stats(pcap, &stats);
    assert_int_equal(stats.error, -ENOSPC);
    assert_int_equal(stats.skipped, 1);
    weir_embedded_release(embedded);
    weir_pcap_release(pcap);
    capture_remove(&file);
}

TEST(pcap, fails_if_the_file_cannot_be_created)
{
    weir_pcap *pcap = NULL;

    assert_int_equal(weir_pcap_create(NULL, &pcap), -EINVAL);
    assert_int_equal(weir_pcap_create(WEIR_PCAP_OPTIONS(.path = "/tmp/x", .max_bytes = 1), &pcap),
                     -EINVAL);
    assert_int_equal(
        weir_pcap_create(WEIR_PCAP_OPTIONS(.path = "/dev/null", .queue_bytes = 1000), &pcap),
        -EINVAL);
    assert_int_equal(weir_pcap_create(WEIR_PCAP_OPTIONS(.path = "/nowhere/at/all"), &pcap),
                     -ENOENT);
    weir_pcap_release(NULL);
}

/* ---- threads, memory ---- */

static int add(weir_pipeline *pipeline, void *shared)
{
    return weir_pcap_add(pipeline, shared);
}

TEST(pcap, is_shared_by_threads)
{
    weir_pcap *pcap = open_pcap(0);
    unsigned flags, packets = 0;
    uint32_t number;
    size_t payload;

    embedded_threads_run(add, pcap);
    weir_pcap_release(pcap);
    load();
    while (next_packet(&flags, &number, &payload))
        packets += payload == 5;
    assert_int_equal(packets, EMBEDDED_MESSAGES);
}

TEST(pcap, survives_allocation_failures)
{
    for (unsigned n = 1;; n++) {
        weir_embedded *embedded = NULL;
        weir_pcap *pcap = NULL;
        bool failed;
        int err;

        assert_int_equal(
            weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.register_later = true), &embedded), 0);
        test_memory_fail_at(n);
        err = weir_pcap_create(WEIR_PCAP_OPTIONS(.path = "/dev/null"), &pcap);
        if (err == 0)
            err = weir_pcap_add(weir_embedded_pipeline(embedded), pcap);
        if (err == 0)
            err = weir_embedded_register(embedded);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(embedded);
        weir_pcap_release(pcap);
        if (!failed)
            break;
        assert_true(err == 0 || err == -ENOMEM);
    }
}
