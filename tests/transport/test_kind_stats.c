/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What channels of the other kinds count: test_tcp_stats.c has the rest.
 */
#include <errno.h>

#include <weir/embedded.h>

#include "support/channel/stats.h"
#include "support/channel/test_channel.h"
#include "support/transport/datagram_endpoint.h"
#include "support/transport/pair.h"

TEST_EACH_LOOP(udp_stats, are_exact)
{
    struct stats stats = stats_from_now("udp");
    struct datagram_endpoint here, there;

    endpoint_open(&here, host, NULL);
    endpoint_open(&there, host, NULL);
    assert_int_equal(endpoint_send(&here, "ping", &there.address), 0);
    assert_endpoint_events(&there, "read(ping)");
    assert_int_equal(endpoint_send(&there, "", &here.address), 0);
    assert_endpoint_events(&here, "read()");
    assert_stats(&stats, .open = 2, .active = 2, .created = 2, .messages_sent = 2, .bytes_sent = 4,
                 .messages_received = 2, .bytes_received = 4);
    endpoint_close(&here);
    endpoint_close(&there);
    assert_stats(&stats, .created = 2, .closed = 2, .messages_sent = 2, .bytes_sent = 4,
                 .messages_received = 2, .bytes_received = 4);
}

TEST_EACH_LOOP(udp_stats, count_an_unreachable_port)
{
    struct stats stats = stats_from_now("udp");
    struct datagram_endpoint here, gone;

    endpoint_open(&gone, host, NULL);
    endpoint_close(&gone);
    endpoint_init(&here, host, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    assert_int_equal(endpoint_connect(&here, &gone.address), 0);
    assert_endpoint_events(&here, "active");
    assert_int_equal(endpoint_send(&here, "anybody?", NULL), 0);
    assert_endpoint_events(&here, "error(ECONNREFUSED)");
    assert_stats(&stats, .open = 1, .active = 1, .created = 2, .closed = 1, .connected = 1,
                 .messages_sent = 1, .bytes_sent = 8, .errors = {.refused = 1});
    endpoint_close(&here);
}

TEST(inproc_stats, are_exact)
{
    struct stats stats = stats_from_now("inproc");
    struct pair pair;

    pair_open_connected(&pair, NULL);
    pair_send(&pair.client, "question", NULL);
    pair_run(&pair);
    assert_stats(&stats, .open = 2, .active = 2, .created = 2, .listeners = 1,
                 .listeners_active = 1, .accepted = 1, .connected = 1, .messages_sent = 1,
                 .bytes_sent = 8, .messages_received = 1, .bytes_received = 8);
    pair_close(&pair);
    assert_stats(&stats, .created = 2, .closed = 2, .accepted = 1, .connected = 1,
                 .messages_sent = 1, .bytes_sent = 8, .messages_received = 1, .bytes_received = 8);
}

TEST(embedded_stats, are_exact)
{
    struct stats stats = stats_from_now("embedded");
    weir_embedded *embedded;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("in")), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("out")), 0);
    assert_stats(&stats, .open = 1, .active = 1, .created = 1, .messages_sent = 1, .bytes_sent = 3,
                 .messages_received = 1, .bytes_received = 2);
    weir_embedded_release(embedded);
    assert_stats(&stats, .created = 1, .closed = 1, .messages_sent = 1, .bytes_sent = 3,
                 .messages_received = 1, .bytes_received = 2);
}
