/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels that are bound to any address, on a host that has several: which of them a datagram has
 * come to, and that the answer leaves from there. Without being told the system would take the
 * first address of the interface, 127.0.0.1.
 */
#include <weir/transport.h>

#include <errno.h>

#include "support/test.h"
#include "support/transport/datagram_endpoint.h"

/* The recipients that were told, in the event log; and an answer. */
static void answer(weir_ctx *ctx, weir_datagram *datagram)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address recipient = *weir_datagram_recipient(datagram);

    weir_address_set_port(&recipient, 7);
    mailbox_note(mailbox_of(ctx), weir_address_format(&recipient, text, sizeof(text)));
    weir_datagram_make_reply(datagram);
    weir_write_and_flush(ctx, weir_datagram_msg(datagram), NULL);
}

static void open_server(struct mailbox *server, struct host *host, const char *address,
                        const weir_channel_options *options)
{
    mailbox_make(server, host, options);
    assert_int_equal(mailbox_bind(server, address), 0);
    assert_mail(server, "active");
    server->on_read = answer;
}

static weir_address with_port_of(const char *host, const struct mailbox *box)
{
    weir_address address;

    assert_int_equal(weir_address_parse(host, &address), 0);
    weir_address_set_port(&address, weir_address_port(&box->address));
    return address;
}

/* Somebody asks at this address of the server's, and is answered from there. */
static void ask(struct host *host, struct mailbox *server, const char *from, const char *at,
                const char *told)
{
    weir_address address = with_port_of(at, server);
    struct mailbox client;

    mailbox_make(&client, host, NULL);
    assert_int_equal(mailbox_bind(&client, from), 0);
    assert_mail(&client, "active");
    assert_int_equal(mailbox_post(&client, "x", &address), 0);
    assert_mail(server, told);
    assert_mail(&client, "read(x)");
    assert_true(weir_address_equal(&client.sender, &address));
    mailbox_close(&client);
}

TEST_EACH_HOST(udp_packet_info, sends_answers_from_where_they_were_asked)
{
    struct mailbox server;

    open_server(&server, host, "0.0.0.0:0", WEIR_CHANNEL_OPTIONS(.packet_info = true));
    ask(host, &server, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:7");
    ask(host, &server, "127.0.0.1:0", "127.0.0.2:0", "127.0.0.2:7");
    ask(host, &server, "127.0.0.2:0", "127.1.2.3:0", "127.1.2.3:7");
    mailbox_close(&server);
}

TEST_EACH_HOST(udp_packet_info, is_for_ipv6_and_for_both_on_one_socket)
{
    struct mailbox server;

    open_server(&server, host, "[::]:0", WEIR_CHANNEL_OPTIONS(.packet_info = true));
    ask(host, &server, "[::1]:0", "[::1]:0", "[::1]:7");
    ask(host, &server, "127.0.0.1:0", "127.0.0.3:0", "[::ffff:127.0.0.3]:7");
    mailbox_close(&server);
}

/* What the system has joined is answered from there, too, and in segments. */
TEST_EACH_HOST(udp_packet_info, goes_together_with_segments)
{
    struct mailbox server, client;
    weir_address address;
    weir_msg *msg;

    open_server(&server, host, "0.0.0.0:0", WEIR_CHANNEL_OPTIONS(.packet_info = true, .gro = true));
    mailbox_open(&client, host, NULL);
    address = with_port_of("127.0.0.9:0", &server);
    msg = letter("abcde", &address);
    weir_datagram_set_segment_size(weir_datagram_of(msg), 2);
    assert_int_equal(mailbox_write(&client, msg), 0);
    assert_mail(&server, "127.0.0.9:7 127.0.0.9:7 127.0.0.9:7");
    assert_mail(&client, "read(ab) read(cd) read(e)");
    assert_true(weir_address_equal(&client.sender, &address));

    msg = letter("vwxyz", &client.address);
    weir_datagram_set_segment_size(weir_datagram_of(msg), 3);
    address = with_port_of("127.0.0.8:0", &server);
    weir_datagram_set_sender(weir_datagram_of(msg), &address);
    assert_int_equal(mailbox_write(&server, msg), 0);
    assert_mail(&client, "read(vwx) read(yz)");
    assert_true(weir_address_equal(&client.sender, &address));
    mailbox_close(&client);
    mailbox_close(&server);
}

TEST_EACH_HOST(udp_packet_info, of_another_host_fails_its_datagram_only)
{
    struct mailbox here, there;
    weir_address stranger;
    weir_msg *msg;

    assert_int_equal(weir_address_parse("192.0.2.77:1", &stranger), 0);
    mailbox_open(&there, host, NULL);
    mailbox_make(&here, host, NULL);
    assert_int_equal(mailbox_bind(&here, "0.0.0.0:0"), 0);
    assert_mail(&here, "active");
    msg = letter("x", &there.address);
    weir_datagram_set_sender(weir_datagram_of(msg), &stranger);
    assert_true(mailbox_write(&here, msg) < 0);
    assert_int_equal(mailbox_post(&here, "y", &there.address), 0);
    assert_mail(&there, "read(y)");
    mailbox_close(&here);
    mailbox_close(&there);
}

/* As the recipient of what came is, on a channel without packet_info. */
TEST_EACH_HOST(udp_packet_info, of_any_address_leaves_it_to_the_system)
{
    static const char *const from[] = {"127.0.0.1:0", "[::1]:0"};
    struct mailbox here, there;
    weir_address any;
    weir_msg *msg;

    assert_int_equal(weir_address_parse("[::]:0", &any), 0);
    mailbox_make(&here, host, NULL);
    assert_int_equal(mailbox_bind(&here, "[::]:0"), 0);
    assert_mail(&here, "active");
    for (size_t i = 0; i < 2; i++) {
        mailbox_make(&there, host, NULL);
        assert_int_equal(mailbox_bind(&there, from[i]), 0);
        assert_mail(&there, "active");
        msg = letter("x", &there.address);
        weir_datagram_set_sender(weir_datagram_of(msg), &any);
        assert_int_equal(mailbox_write(&here, msg), 0);
        assert_mail(&there, "read(x)");
        mailbox_close(&there);
    }
    mailbox_close(&here);
}

/* Asked for later, and given up: what the channel is bound to is told then. */
TEST_EACH_HOST(udp_packet_info, can_be_changed)
{
    struct mailbox server, client;
    weir_address address;

    open_server(&server, host, "0.0.0.0:0", WEIR_CHANNEL_OPTIONS(.packet_info = true));
    ask(host, &server, "127.0.0.1:0", "127.0.0.2:0", "127.0.0.2:7");
    assert_int_equal(weir_channel_set_options(server.channel, WEIR_CHANNEL_OPTIONS()), 0);
    host_turn(host, 2);
    mailbox_open(&client, host, NULL);
    address = with_port_of("127.0.0.2:0", &server);
    assert_int_equal(mailbox_post(&client, "x", &address), 0);
    assert_mail(&server, "0.0.0.0:7");
    assert_mail(&client, "read(x)");
    mailbox_close(&client);
    mailbox_close(&server);
}
