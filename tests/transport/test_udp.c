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
    struct mailbox box;

    mailbox_make(&box, host, NULL);
    assert_false(weir_channel_is_active(box.channel));
    assert_int_equal(mailbox_bind(&box, "127.0.0.1:0"), 0);
    assert_mail(&box, "active");
    assert_true(weir_channel_is_active(box.channel));
    assert_true(weir_address_port(&box.address) != 0);
    assert_int_equal(weir_channel_remote_address(box.channel, &box.address), -ENOTCONN);
    mailbox_close(&box);
}

TEST_EACH_HOST(udp, brings_datagrams_with_addresses)
{
    struct mailbox here, there;

    mailbox_open(&here, host, NULL);
    mailbox_open(&there, host, NULL);
    assert_int_equal(mailbox_post(&here, "ping", &there.address), 0);
    assert_mail(&there, "read(ping)");
    assert_true(weir_address_equal(&there.sender, &here.address));
    assert_int_equal(mailbox_post(&there, "pong", &there.sender), 0);
    assert_mail(&here, "read(pong)");
    mailbox_close(&here);
    mailbox_close(&there);
}

static void check_recipient(weir_ctx *ctx, weir_datagram *datagram)
{
    struct mailbox *box = mailbox_of(ctx);

    if (weir_address_equal(weir_datagram_recipient(datagram), &box->address))
        event_log_write(&box->events, "mine");
    weir_datagram_release(datagram);
}

TEST_EACH_HOST(udp, says_whom_a_datagram_was_for)
{
    struct mailbox box;

    mailbox_open(&box, host, NULL);
    box.on_read = check_recipient;
    assert_int_equal(mailbox_post(&box, "x", &box.address), 0);
    assert_mail(&box, "mine");
    mailbox_close(&box);
}

TEST_EACH_HOST(udp, speaks_ipv6)
{
    struct mailbox here, there;

    mailbox_make(&here, host, NULL);
    mailbox_make(&there, host, NULL);
    assert_int_equal(mailbox_bind(&here, "[::1]:0"), 0);
    assert_int_equal(mailbox_bind(&there, "[::1]:0"), 0);
    assert_mail(&there, "active");
    assert_int_equal(mailbox_post(&here, "six", &there.address), 0);
    assert_mail(&there, "read(six)");
    assert_true(weir_address_equal(&there.sender, &here.address));
    mailbox_close(&here);
    mailbox_close(&there);
}

TEST_EACH_HOST(udp, cannot_be_bound_twice)
{
    struct mailbox box;

    mailbox_open(&box, host, NULL);
    assert_int_equal(mailbox_bind(&box, "127.0.0.1:0"), -EALREADY);
    assert_true(weir_channel_is_open(box.channel));
    mailbox_close(&box);
}

/* D 99 */
TEST_EACH_HOST(udp, shares_a_port_only_if_it_is_to)
{
    const weir_channel_options *shared = WEIR_CHANNEL_OPTIONS(.reuse_port = true);
    struct mailbox first, second, third;
    char address[WEIR_ADDRESS_TEXT_SIZE];

    mailbox_open(&first, host, shared);
    (void)weir_address_format(&first.address, address, sizeof(address));
    mailbox_make(&second, host, shared);
    assert_int_equal(mailbox_bind(&second, address), 0);
    mailbox_make(&third, host, NULL);
    assert_int_equal(mailbox_bind(&third, address), -EADDRINUSE);
    mailbox_close(&first);
    mailbox_close(&second);
    mailbox_close(&third);
}

/* D 99: also if neither of them asks for it; the address of a datagram socket is not reused. */
TEST_EACH_HOST(udp, has_its_port_for_itself)
{
    struct mailbox first, second;
    char address[WEIR_ADDRESS_TEXT_SIZE];

    mailbox_open(&first, host, NULL);
    (void)weir_address_format(&first.address, address, sizeof(address));
    mailbox_make(&second, host, NULL);
    assert_int_equal(mailbox_bind(&second, address), -EADDRINUSE);
    mailbox_close(&first);
    mailbox_close(&second);
}

TEST_EACH_HOST(udp, shares_its_address_with_reuse_address)
{
    const weir_channel_options *shared = WEIR_CHANNEL_OPTIONS(.reuse_address = WEIR_ON);
    struct mailbox first, second;
    char address[WEIR_ADDRESS_TEXT_SIZE];

    mailbox_open(&first, host, shared);
    (void)weir_address_format(&first.address, address, sizeof(address));
    mailbox_make(&second, host, shared);
    assert_int_equal(mailbox_bind(&second, address), 0);
    mailbox_close(&first);
    mailbox_close(&second);
}

/* ---- connected ---- */

TEST_EACH_HOST(udp, is_active_when_it_is_connected)
{
    struct mailbox here, there;
    weir_address remote;

    mailbox_open(&there, host, NULL);
    mailbox_make(&here, host, NULL);
    assert_int_equal(mailbox_connect(&here, &there.address), 0);
    assert_mail(&here, "active");
    assert_int_equal(weir_channel_remote_address(here.channel, &remote), 0);
    assert_true(weir_address_equal(&remote, &there.address));
    assert_int_equal(mailbox_write(&here, text_msg("plain")), 0);
    assert_mail(&there, "read(plain)");
    assert_true(weir_address_equal(&there.sender, &here.address));
    assert_int_equal(mailbox_post(&here, "addressed", NULL), 0);
    assert_mail(&there, "read(addressed)");
    mailbox_close(&here);
    mailbox_close(&there);
}

TEST_EACH_HOST(udp, hears_only_its_peer_when_it_is_connected)
{
    struct mailbox here, peer, stranger;

    mailbox_open(&here, host, NULL);
    mailbox_open(&peer, host, NULL);
    mailbox_open(&stranger, host, NULL);
    assert_int_equal(mailbox_connect(&here, &peer.address), 0);
    assert_int_equal(mailbox_post(&stranger, "ad", &here.address), 0);
    assert_int_equal(mailbox_post(&peer, "news", &here.address), 0);
    assert_mail(&here, "read(news)"); /* and no second `active` */
    mailbox_close(&here);
    mailbox_close(&peer);
    mailbox_close(&stranger);
}

TEST_EACH_HOST(udp, can_be_connected_to_another_peer)
{
    struct mailbox here, first, second;

    mailbox_open(&first, host, NULL);
    mailbox_open(&second, host, NULL);
    mailbox_make(&here, host, NULL);
    assert_int_equal(mailbox_connect(&here, &first.address), 0);
    assert_int_equal(mailbox_connect(&here, &second.address), 0);
    assert_int_equal(mailbox_write(&here, text_msg("x")), 0);
    assert_mail(&second, "read(x)");
    mailbox_close(&here);
    mailbox_close(&first);
    mailbox_close(&second);
}

TEST_EACH_HOST(udp, is_bound_and_connected_at_once)
{
    struct mailbox here, there;
    weir_address local;
    weir_promise *connected;

    mailbox_open(&there, host, NULL);
    mailbox_make(&here, host, NULL);
    connected = mailbox_promise(&here);
    assert_int_equal(weir_address_parse("127.0.0.2:0", &local), 0);
    weir_channel_connect(here.channel, &there.address, &local, connected);
    assert_int_equal(mailbox_result(connected), 0);
    assert_int_equal(mailbox_write(&here, text_msg("x")), 0);
    assert_mail(&there, "read(x)");
    weir_address_set_port(&local, weir_address_port(&there.sender));
    assert_true(weir_address_equal(&there.sender, &local));
    mailbox_close(&here);
    mailbox_close(&there);
}

TEST_EACH_HOST(udp, is_inactive_when_it_is_disconnected)
{
    struct mailbox here, there;
    weir_address remote;

    mailbox_open(&there, host, NULL);
    mailbox_make(&here, host, NULL);
    assert_int_equal(mailbox_do(&here, weir_channel_disconnect), -ENOTCONN);
    assert_int_equal(mailbox_connect(&here, &there.address), 0);
    assert_int_equal(mailbox_do(&here, weir_channel_disconnect), 0);
    assert_mail(&here, "active inactive");
    assert_int_equal(weir_channel_remote_address(here.channel, &remote), -ENOTCONN);
    assert_int_equal(mailbox_write(&here, text_msg("x")), -EDESTADDRREQ);
    assert_int_equal(mailbox_connect(&here, &there.address), 0);
    assert_mail(&here, "active");
    assert_int_equal(mailbox_write(&here, text_msg("again")), 0);
    assert_mail(&there, "read(again)");
    mailbox_close(&here);
    mailbox_close(&there);
}

/* A port of the system's choice is given back with the connection: one of ours is not. */
TEST_EACH_HOST(udp, hears_everybody_again_when_it_is_disconnected_and_bound)
{
    struct mailbox here, peer, stranger;
    char address[WEIR_ADDRESS_TEXT_SIZE];

    mailbox_open(&here, host, NULL);
    (void)weir_address_format(&here.address, address, sizeof(address));
    mailbox_close(&here);
    mailbox_make(&here, host, NULL);
    assert_int_equal(mailbox_bind(&here, address), 0);
    mailbox_open(&peer, host, NULL);
    mailbox_open(&stranger, host, NULL);
    assert_int_equal(mailbox_connect(&here, &peer.address), 0);
    assert_int_equal(mailbox_do(&here, weir_channel_disconnect), 0);
    assert_int_equal(mailbox_post(&stranger, "hello", &here.address), 0);
    assert_mail(&here, "active read(hello)");
    mailbox_close(&here);
    mailbox_close(&peer);
    mailbox_close(&stranger);
}

/* ---- the end ---- */

TEST_EACH_HOST(udp, sends_what_was_written_before_a_close)
{
    struct mailbox here, there;
    weir_promise *before, *after, *closed;

    mailbox_open(&here, host, NULL);
    mailbox_open(&there, host, NULL);
    before = mailbox_promise(&here);
    after = mailbox_promise(&here);
    closed = mailbox_promise(&here);
    weir_channel_write(here.channel, letter("last", &there.address), before); /* not flushed */
    weir_channel_close(here.channel, closed);
    weir_channel_write_and_flush(here.channel, letter("late", &there.address), after);
    assert_int_equal(mailbox_result(before), 0);
    assert_int_equal(mailbox_result(closed), 0);
    assert_int_equal(mailbox_result(after), WEIR_ECLOSED);
    assert_mail(&there, "read(last)");
    events_await(&here.events, &here.notes, "unregistered", 1);
    assert_string_equal(here.events.text, "inactive unregistered");
    mailbox_close(&here);
    mailbox_close(&there);
}

TEST_EACH_HOST(udp, has_no_halves_to_close)
{
    struct mailbox box;

    mailbox_open(&box, host, NULL);
    assert_int_equal(mailbox_do(&box, weir_channel_shutdown_output), -ENOTSUP);
    assert_int_equal(mailbox_do(&box, weir_channel_shutdown_input), -ENOTSUP);
    assert_int_equal(mailbox_post(&box, "still", &box.address), 0);
    assert_mail(&box, "read(still)");
    mailbox_close(&box);
}

TEST_EACH_HOST(udp, moves_to_another_loop_and_loses_nothing)
{
    struct host other;
    struct mailbox here, there;
    weir_promise *registered;

    host_open(&other, (enum backend_id)(host->backend - backends));
    mailbox_open(&here, host, WEIR_CHANNEL_OPTIONS(.read_on_demand = true));
    mailbox_open(&there, host, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mailbox_post(&there, "x", &here.address), 0);
    weir_channel_request_read(here.channel);
    assert_mail(&here, "read(x)");
    assert_int_equal(mailbox_do(&here, weir_channel_deregister), 0);
    assert_mail(&here, "unregistered");
    assert_int_equal(mailbox_post(&there, "y", &here.address), 0);
    assert_int_equal(weir_promise_create(other.loop, &registered), 0);
    weir_group_register(other.group, here.channel, registered);
    assert_int_equal(mailbox_result(registered), 0);
    weir_channel_set_auto_read(here.channel, true);
    assert_mail(&here, "read(x) read(x) read(y)");
    assert_int_equal(mailbox_post(&here, "z", &there.address), 0);
    assert_mail(&there, "read(z)");
    mailbox_close(&here);
    mailbox_close(&there);
    host_close(&other);
}

TEST_EACH_HOST(udp, that_cannot_be_bound_is_closed)
{
    struct mailbox box;

    mailbox_make(&box, host, NULL);
    assert_int_equal(mailbox_bind(&box, "192.0.2.1:9"), -EADDRNOTAVAIL);
    assert_int_equal(weir_channel_await_closed(box.channel, TEST_TIMEOUT_NS), 0);
    mailbox_close(&box);
}
