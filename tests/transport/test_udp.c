/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP: how channels begin and end, and where datagrams go.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/transport/datagram_endpoint.h"

/* ---- bound ---- */

TEST_EACH_HOST(udp, is_active_when_it_is_bound)
{
    struct datagram_endpoint endpoint;

    endpoint_init(&endpoint, host, NULL);
    assert_false(weir_channel_is_active(endpoint.channel));
    assert_int_equal(endpoint_bind(&endpoint, "127.0.0.1:0"), 0);
    assert_endpoint_events(&endpoint, "active");
    assert_true(weir_channel_is_active(endpoint.channel));
    assert_true(weir_address_port(&endpoint.address) != 0);
    assert_int_equal(weir_channel_remote_address(endpoint.channel, &endpoint.address), -ENOTCONN);
    endpoint_close(&endpoint);
}

TEST_EACH_HOST(udp, brings_datagrams_with_addresses)
{
    struct datagram_endpoint here, there;

    endpoint_open(&here, host, NULL);
    endpoint_open(&there, host, NULL);
    assert_int_equal(endpoint_send(&here, "ping", &there.address), 0);
    assert_endpoint_events(&there, "read(ping)");
    assert_true(weir_address_equal(&there.sender, &here.address));
    assert_int_equal(endpoint_send(&there, "pong", &there.sender), 0);
    assert_endpoint_events(&here, "read(pong)");
    endpoint_close(&here);
    endpoint_close(&there);
}

static void check_recipient(weir_ctx *ctx, weir_datagram *datagram)
{
    struct datagram_endpoint *endpoint = endpoint_of(ctx);

    if (weir_address_equal(weir_datagram_recipient(datagram), &endpoint->address))
        event_log_write(&endpoint->events, "mine");
    weir_datagram_release(datagram);
}

TEST_EACH_HOST(udp, reports_the_recipient_of_a_datagram)
{
    struct datagram_endpoint endpoint;

    endpoint_open(&endpoint, host, NULL);
    endpoint.on_read = check_recipient;
    assert_int_equal(endpoint_send(&endpoint, "x", &endpoint.address), 0);
    assert_endpoint_events(&endpoint, "mine");
    endpoint_close(&endpoint);
}

TEST_EACH_HOST(udp, speaks_ipv6)
{
    struct datagram_endpoint here, there;

    endpoint_init(&here, host, NULL);
    endpoint_init(&there, host, NULL);
    assert_int_equal(endpoint_bind(&here, "[::1]:0"), 0);
    assert_int_equal(endpoint_bind(&there, "[::1]:0"), 0);
    assert_endpoint_events(&there, "active");
    assert_int_equal(endpoint_send(&here, "six", &there.address), 0);
    assert_endpoint_events(&there, "read(six)");
    assert_true(weir_address_equal(&there.sender, &here.address));
    endpoint_close(&here);
    endpoint_close(&there);
}

TEST_EACH_HOST(udp, cannot_be_bound_twice)
{
    struct datagram_endpoint endpoint;

    endpoint_open(&endpoint, host, NULL);
    assert_int_equal(endpoint_bind(&endpoint, "127.0.0.1:0"), -EALREADY);
    assert_true(weir_channel_is_open(endpoint.channel));
    endpoint_close(&endpoint);
}

TEST_EACH_HOST(udp, shares_a_port_only_if_it_is_to)
{
    const weir_channel_options *shared = WEIR_CHANNEL_OPTIONS(.reuse_port = true);
    struct datagram_endpoint first, second, third;
    char address[WEIR_ADDRESS_TEXT_SIZE];

    endpoint_open(&first, host, shared);
    (void)weir_address_format(&first.address, address, sizeof(address));
    endpoint_init(&second, host, shared);
    assert_int_equal(endpoint_bind(&second, address), 0);
    endpoint_init(&third, host, NULL);
    assert_int_equal(endpoint_bind(&third, address), -EADDRINUSE);
    endpoint_close(&first);
    endpoint_close(&second);
    endpoint_close(&third);
}

/* Also if neither of them asks for it; the address of a datagram socket is not reused. */
TEST_EACH_HOST(udp, has_its_port_for_itself)
{
    struct datagram_endpoint first, second;
    char address[WEIR_ADDRESS_TEXT_SIZE];

    endpoint_open(&first, host, NULL);
    (void)weir_address_format(&first.address, address, sizeof(address));
    endpoint_init(&second, host, NULL);
    assert_int_equal(endpoint_bind(&second, address), -EADDRINUSE);
    endpoint_close(&first);
    endpoint_close(&second);
}

TEST_EACH_HOST(udp, shares_its_address_with_reuse_address)
{
    const weir_channel_options *shared = WEIR_CHANNEL_OPTIONS(.reuse_address = WEIR_ON);
    struct datagram_endpoint first, second;
    char address[WEIR_ADDRESS_TEXT_SIZE];

    endpoint_open(&first, host, shared);
    (void)weir_address_format(&first.address, address, sizeof(address));
    endpoint_init(&second, host, shared);
    assert_int_equal(endpoint_bind(&second, address), 0);
    endpoint_close(&first);
    endpoint_close(&second);
}

/* ---- connected ---- */

TEST_EACH_HOST(udp, is_active_when_it_is_connected)
{
    struct datagram_endpoint here, there;
    weir_address remote;

    endpoint_open(&there, host, NULL);
    endpoint_init(&here, host, NULL);
    assert_int_equal(endpoint_connect(&here, &there.address), 0);
    assert_endpoint_events(&here, "active");
    assert_int_equal(weir_channel_remote_address(here.channel, &remote), 0);
    assert_true(weir_address_equal(&remote, &there.address));
    assert_int_equal(endpoint_write(&here, text_msg("plain")), 0);
    assert_endpoint_events(&there, "read(plain)");
    assert_true(weir_address_equal(&there.sender, &here.address));
    assert_int_equal(endpoint_send(&here, "addressed", NULL), 0);
    assert_endpoint_events(&there, "read(addressed)");
    endpoint_close(&here);
    endpoint_close(&there);
}

TEST_EACH_HOST(udp, receives_only_from_its_peer_when_connected)
{
    struct datagram_endpoint here, peer, stranger;

    endpoint_open(&here, host, NULL);
    endpoint_open(&peer, host, NULL);
    endpoint_open(&stranger, host, NULL);
    assert_int_equal(endpoint_connect(&here, &peer.address), 0);
    assert_int_equal(endpoint_send(&stranger, "ad", &here.address), 0);
    assert_int_equal(endpoint_send(&peer, "news", &here.address), 0);
    assert_endpoint_events(&here, "read(news)"); /* and no second `active` */
    endpoint_close(&here);
    endpoint_close(&peer);
    endpoint_close(&stranger);
}

TEST_EACH_HOST(udp, can_be_connected_to_another_peer)
{
    struct datagram_endpoint here, first, second;

    endpoint_open(&first, host, NULL);
    endpoint_open(&second, host, NULL);
    endpoint_init(&here, host, NULL);
    assert_int_equal(endpoint_connect(&here, &first.address), 0);
    assert_int_equal(endpoint_connect(&here, &second.address), 0);
    assert_int_equal(endpoint_write(&here, text_msg("x")), 0);
    assert_endpoint_events(&second, "read(x)");
    endpoint_close(&here);
    endpoint_close(&first);
    endpoint_close(&second);
}

TEST_EACH_HOST(udp, is_bound_and_connected_at_once)
{
    struct datagram_endpoint here, there;
    weir_address local;
    weir_promise *connected;

    endpoint_open(&there, host, NULL);
    endpoint_init(&here, host, NULL);
    connected = endpoint_promise(&here);
    assert_int_equal(weir_address_parse("127.0.0.2:0", &local), 0);
    weir_channel_connect(here.channel, &there.address, &local, connected);
    assert_int_equal(endpoint_result(connected), 0);
    assert_int_equal(endpoint_write(&here, text_msg("x")), 0);
    assert_endpoint_events(&there, "read(x)");
    weir_address_set_port(&local, weir_address_port(&there.sender));
    assert_true(weir_address_equal(&there.sender, &local));
    endpoint_close(&here);
    endpoint_close(&there);
}

TEST_EACH_HOST(udp, is_inactive_when_it_is_disconnected)
{
    struct datagram_endpoint here, there;
    weir_address remote;

    endpoint_open(&there, host, NULL);
    endpoint_init(&here, host, NULL);
    assert_int_equal(endpoint_do(&here, weir_channel_disconnect), -ENOTCONN);
    assert_int_equal(endpoint_connect(&here, &there.address), 0);
    assert_int_equal(endpoint_do(&here, weir_channel_disconnect), 0);
    assert_endpoint_events(&here, "active inactive");
    assert_int_equal(weir_channel_remote_address(here.channel, &remote), -ENOTCONN);
    assert_int_equal(endpoint_write(&here, text_msg("x")), -EDESTADDRREQ);
    assert_int_equal(endpoint_connect(&here, &there.address), 0);
    assert_endpoint_events(&here, "active");
    assert_int_equal(endpoint_write(&here, text_msg("again")), 0);
    assert_endpoint_events(&there, "read(again)");
    endpoint_close(&here);
    endpoint_close(&there);
}

/* A disconnect releases a port chosen by the kernel, but not one that was bound. */
TEST_EACH_HOST(udp, receives_from_all_again_when_disconnected_and_bound)
{
    struct datagram_endpoint here, peer, stranger;
    char address[WEIR_ADDRESS_TEXT_SIZE];

    endpoint_open(&here, host, NULL);
    (void)weir_address_format(&here.address, address, sizeof(address));
    endpoint_close(&here);
    endpoint_init(&here, host, NULL);
    assert_int_equal(endpoint_bind(&here, address), 0);
    endpoint_open(&peer, host, NULL);
    endpoint_open(&stranger, host, NULL);
    assert_int_equal(endpoint_connect(&here, &peer.address), 0);
    assert_int_equal(endpoint_do(&here, weir_channel_disconnect), 0);
    assert_int_equal(endpoint_send(&stranger, "hello", &here.address), 0);
    assert_endpoint_events(&here, "active read(hello)");
    endpoint_close(&here);
    endpoint_close(&peer);
    endpoint_close(&stranger);
}

/* ---- the end ---- */

TEST_EACH_HOST(udp, sends_what_was_written_before_a_close)
{
    struct datagram_endpoint here, there;
    weir_promise *before, *after, *closed;

    endpoint_open(&here, host, NULL);
    endpoint_open(&there, host, NULL);
    before = endpoint_promise(&here);
    after = endpoint_promise(&here);
    closed = endpoint_promise(&here);
    weir_channel_write(here.channel, make_datagram("last", &there.address),
                       before); /* not flushed */
    weir_channel_close(here.channel, closed);
    weir_channel_write_and_flush(here.channel, make_datagram("late", &there.address), after);
    assert_int_equal(endpoint_result(before), 0);
    assert_int_equal(endpoint_result(closed), 0);
    assert_int_equal(endpoint_result(after), WEIR_ECLOSED);
    assert_endpoint_events(&there, "read(last)");
    events_await(&here.events, &here.notes, "unregistered", 1);
    assert_string_equal(here.events.text, "inactive unregistered");
    endpoint_close(&here);
    endpoint_close(&there);
}

TEST_EACH_HOST(udp, has_no_halves_to_close)
{
    struct datagram_endpoint endpoint;

    endpoint_open(&endpoint, host, NULL);
    assert_int_equal(endpoint_do(&endpoint, weir_channel_shutdown_output), -ENOTSUP);
    assert_int_equal(endpoint_do(&endpoint, weir_channel_shutdown_input), -ENOTSUP);
    assert_int_equal(endpoint_send(&endpoint, "still", &endpoint.address), 0);
    assert_endpoint_events(&endpoint, "read(still)");
    endpoint_close(&endpoint);
}

TEST_EACH_HOST(udp, moves_to_another_loop_and_loses_nothing)
{
    struct host other;
    struct datagram_endpoint here, there;
    weir_promise *registered;

    host_open(&other, (enum backend_id)(host->backend - backends));
    endpoint_open(&here, host, WEIR_CHANNEL_OPTIONS(.read_on_demand = true));
    endpoint_open(&there, host, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(endpoint_send(&there, "x", &here.address), 0);
    weir_channel_request_read(here.channel);
    assert_endpoint_events(&here, "read(x)");
    assert_int_equal(endpoint_do(&here, weir_channel_deregister), 0);
    assert_endpoint_events(&here, "unregistered");
    assert_int_equal(endpoint_send(&there, "y", &here.address), 0);
    assert_int_equal(weir_promise_create(other.loop, &registered), 0);
    weir_group_register(other.group, here.channel, registered);
    assert_int_equal(endpoint_result(registered), 0);
    weir_channel_set_auto_read(here.channel, true);
    assert_endpoint_events(&here, "read(x) read(x) read(y)");
    assert_int_equal(endpoint_send(&here, "z", &there.address), 0);
    assert_endpoint_events(&there, "read(z)");
    endpoint_close(&here);
    endpoint_close(&there);
    host_close(&other);
}

TEST_EACH_HOST(udp, that_cannot_be_bound_is_closed)
{
    struct datagram_endpoint endpoint;

    endpoint_init(&endpoint, host, NULL);
    assert_int_equal(endpoint_bind(&endpoint, "192.0.2.1:9"), -EADDRNOTAVAIL);
    assert_int_equal(weir_channel_await_closed(endpoint.channel, TEST_TIMEOUT_NS), 0);
    endpoint_close(&endpoint);
}
