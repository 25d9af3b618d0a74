/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams in capture files.
 */
#include <weir/diagnostics.h>

#include <stdio.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/datagram.h>
#include <weir/embedded.h>
#include <weir/transport.h>

#include "support/channel/test_channel.h"
#include "support/handler/capture.h"
#include "support/memory.h"
#include "support/test.h"
#include "support/transport/datagram_endpoint.h"

#define CHECKS "-e udp.length -e udp.checksum.status -e udp.payload -e _ws.malformed "

static void open_box(struct datagram_endpoint *endpoint, struct host *host, weir_pcap *pcap,
                     const char *address)
{
    weir_channel *channel;

    assert_int_equal(weir_udp_create(NULL, &channel), 0);
    if (pcap != NULL)
        assert_int_equal(weir_pcap_add(weir_channel_pipeline(channel), pcap), 0);
    endpoint_adopt(endpoint, host, channel);
    assert_int_equal(endpoint_bind(endpoint, address), 0);
    assert_endpoint_events(endpoint, "active");
}

/* Sends a word, and receives an answer. */
static void talk(struct datagram_endpoint *here, struct datagram_endpoint *there)
{
    assert_int_equal(endpoint_send(here, "ping", &there->address), 0);
    assert_endpoint_events(there, "read(ping)");
    assert_int_equal(endpoint_send(there, "pong!", &there->sender), 0);
    assert_endpoint_events(here, "read(pong!)");
}

static void talk_between(struct host *host, weir_pcap *pcap, const char *near, const char *far,
                         unsigned ports[2])
{
    struct datagram_endpoint here, there;

    open_box(&here, host, pcap, near);
    open_box(&there, host, NULL, far);
    talk(&here, &there);
    ports[0] = weir_address_port(&here.address);
    ports[1] = weir_address_port(&there.address);
    endpoint_close(&here);
    endpoint_close(&there);
}

TEST_EACH_HOST(pcap_datagram, is_read_by_tshark)
{
    unsigned ipv4[2], ipv6[2];
    struct capture capture;
    char expected[512];

    capture_needs_tshark();
    capture_open(&capture, 0);
    talk_between(host, capture.pcap, "127.0.0.1:0", "127.0.0.2:0", ipv4);
    talk_between(host, capture.pcap, "[::1]:0", "[::1]:0", ipv6);
    capture_end(&capture);
    (void)snprintf(expected, sizeof(expected),
                   "127.0.0.1  %u 127.0.0.2  %u 1 12 1 70696e67 \n"
                   "127.0.0.2  %u 127.0.0.1  %u 1 13 1 706f6e6721 \n"
                   " ::1 %u  ::1 %u  12 1 70696e67 \n"
                   " ::1 %u  ::1 %u  13 1 706f6e6721 \n",
                   ipv4[0], ipv4[1], ipv4[1], ipv4[0], ipv6[0], ipv6[1], ipv6[1], ipv6[0]);
    assert_read_back(&capture,
                     "-e ip.src -e ipv6.src -e udp.srcport -e ip.dst -e ipv6.dst -e udp.dstport "
                     "-e ip.checksum.status " CHECKS,
                     expected);
    capture_remove(&capture);
}

/* Plain bytes are one datagram each; an empty one is a packet; segmented ones are several. */
TEST(pcap_datagram, of_a_connected_channel_is_each_that_is_sent)
{
    struct host host;
    struct datagram_endpoint here, there;
    struct capture capture;
    weir_datagram *datagram;

    capture_needs_tshark();
    capture_open(&capture, 0);
    host_open(&host, BACKEND_EPOLL);
    open_box(&here, &host, capture.pcap, "127.0.0.1:0");
    open_box(&there, &host, NULL, "127.0.0.2:0");
    assert_int_equal(endpoint_connect(&here, &there.address), 0);
    assert_int_equal(endpoint_write(&here, text_msg("plain")), 0);
    assert_int_equal(weir_datagram_create(NULL, NULL, &datagram), 0);
    assert_int_equal(endpoint_write(&here, weir_datagram_msg(datagram)), 0);
    assert_int_equal(weir_datagram_create(text_msg("abcde"), NULL, &datagram), 0);
    weir_datagram_set_segment_size(datagram, 2);
    assert_int_equal(endpoint_write(&here, weir_datagram_msg(datagram)), 0);
    assert_endpoint_events(&there, "read(plain) read() read(ab) read(cd) read(e)");
    endpoint_close(&here);
    endpoint_close(&there);
    host_close(&host);
    capture_end(&capture);
    assert_read_back(&capture, "-e ip.src -e ip.dst " CHECKS,
                     "127.0.0.1 127.0.0.2 13 1 706c61696e \n"
                     "127.0.0.1 127.0.0.2 8 1  \n"
                     "127.0.0.1 127.0.0.2 10 1 6162 \n"
                     "127.0.0.1 127.0.0.2 10 1 6364 \n"
                     "127.0.0.1 127.0.0.2 9 1 65 \n");
    capture_remove(&capture);
}

/* A socket bound to any address of both families. */
TEST(pcap_datagram, has_the_family_of_the_other_side)
{
    struct host host;
    struct datagram_endpoint here, there;
    struct capture capture;
    weir_address reach;

    capture_needs_tshark();
    capture_open(&capture, 0);
    host_open(&host, BACKEND_EPOLL);
    open_box(&here, &host, capture.pcap, "[::]:0");
    open_box(&there, &host, NULL, "127.0.0.2:0");
    assert_int_equal(weir_address_parse("127.0.0.1:0", &reach), 0);
    weir_address_set_port(&reach, weir_address_port(&here.address));
    assert_int_equal(endpoint_send(&there, "x", &reach), 0);
    assert_endpoint_events(&here, "read(x)");
    assert_int_equal(endpoint_send(&here, "y", &here.sender), 0);
    assert_endpoint_events(&there, "read(y)");
    endpoint_close(&here);
    endpoint_close(&there);
    host_close(&host);
    capture_end(&capture);
    assert_read_back(&capture, "-e ip.src -e ip.dst " CHECKS,
                     "127.0.0.2 0.0.0.0 9 1 78 \n"
                     "0.0.0.0 127.0.0.2 9 1 79 \n");
    capture_remove(&capture);
}

TEST(pcap_datagram, of_a_unix_socket_has_placeholder_addresses)
{
    struct host host;
    struct datagram_endpoint here, there;
    struct capture capture;
    weir_channel *channel;
    char expected[256];
    unsigned id;

    capture_needs_tshark();
    capture_open(&capture, 0);
    host_open(&host, BACKEND_EPOLL);
    endpoint_open_unix(&there, &host, NULL);
    assert_int_equal(weir_unix_create(WEIR_KIND_DATAGRAM, NULL, &channel), 0);
    assert_int_equal(weir_pcap_add(weir_channel_pipeline(channel), capture.pcap), 0);
    endpoint_adopt(&here, &host, channel);
    assert_int_equal(endpoint_connect(&here, &there.address), 0);
    assert_endpoint_events(&here, "active");
    talk(&here, &there);
    id = (uint16_t)weir_channel_id(channel);
    endpoint_close(&here);
    endpoint_close(&there);
    host_close(&host);
    capture_end(&capture);
    (void)snprintf(expected, sizeof(expected),
                   "127.0.0.1 %u 127.0.0.2 %u 12 1 70696e67 \n"
                   "127.0.0.2 %u 127.0.0.1 %u 13 1 706f6e6721 \n",
                   id, id, id, id);
    assert_read_back(&capture, "-e ip.src -e udp.srcport -e ip.dst -e udp.dstport " CHECKS,
                     expected);
    capture_remove(&capture);
}

/* ---- without sockets ---- */

/* Two buffers as a composite. */
static weir_msg *long_msg(size_t length)
{
    weir_composite *composite;
    weir_buf *half;

    assert_int_equal(weir_composite_create(0, &composite), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_buf_create(length / 2, 0, &half), 0);
        memset(weir_buf_space(half), 0xff, length / 2);
        assert_int_equal(weir_buf_advance(half, length / 2), 0);
        assert_int_equal(weir_composite_add(composite, weir_buf_msg(half)), 0);
    }
    return weir_composite_msg(composite);
}

static void write_long(weir_embedded *embedded, size_t length, const char *recipient)
{
    weir_datagram *datagram;
    weir_address address;

    assert_int_equal(weir_address_parse(recipient, &address), 0);
    assert_int_equal(weir_datagram_create(long_msg(length), &address, &datagram), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_datagram_msg(datagram)), 0);
}

/*
 * The longest payload of each family fits; one more byte, which only Unix sockets allow, is split.
 */
TEST(pcap_datagram, is_split_only_beyond_the_udp_maximum)
{
    weir_embedded *embedded = NULL;
    struct capture capture;

    capture_needs_tshark();
    capture_open(&capture, 0);
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_pcap_add(weir_embedded_pipeline(embedded), capture.pcap), 0);
    write_long(embedded, 65506, "192.0.2.1:1");
    write_long(embedded, 65526, "[2001:db8::1]:1");
    write_long(embedded, 65508, "unix:/nowhere");
    weir_embedded_release(embedded);
    capture_end(&capture);
    assert_read_back(&capture, "-Y udp -e udp.length -e udp.checksum.status -e _ws.malformed",
                     "65514 1 \n65534 1 \n65515 1 \n9 1 \n");
    capture_remove(&capture);
}
