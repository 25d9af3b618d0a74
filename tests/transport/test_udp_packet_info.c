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

/* Logs the recipient, and answers. */
static void answer(weir_ctx *ctx, weir_datagram *datagram)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address recipient = *weir_datagram_recipient(datagram);

    weir_address_set_port(&recipient, 7);
    endpoint_note(endpoint_of(ctx), weir_address_format(&recipient, text, sizeof(text)));
    weir_datagram_make_reply(datagram);
    weir_write_and_flush(ctx, weir_datagram_msg(datagram), NULL);
}

static void open_server(struct datagram_endpoint *server, struct host *host, const char *address,
                        const weir_channel_options *options)
{
    endpoint_init(server, host, options);
    assert_int_equal(endpoint_bind(server, address), 0);
    assert_endpoint_events(server, "active");
    server->on_read = answer;
}

static weir_address with_port_of(const char *host, const struct datagram_endpoint *endpoint)
{
    weir_address address;

    assert_int_equal(weir_address_parse(host, &address), 0);
    weir_address_set_port(&address, weir_address_port(&endpoint->address));
    return address;
}

/* Somebody asks at this address of the server's, and is answered from there. */
static void ask(struct host *host, struct datagram_endpoint *server, const char *from,
                const char *at, const char *told)
{
    weir_address address = with_port_of(at, server);
    struct datagram_endpoint client;

    endpoint_init(&client, host, NULL);
    assert_int_equal(endpoint_bind(&client, from), 0);
    assert_endpoint_events(&client, "active");
    assert_int_equal(endpoint_send(&client, "x", &address), 0);
    assert_endpoint_events(server, told);
    assert_endpoint_events(&client, "read(x)");
    assert_true(weir_address_equal(&client.sender, &address));
    endpoint_close(&client);
}

TEST_EACH_HOST(udp_packet_info, sends_answers_from_where_they_were_asked)
{
    struct datagram_endpoint server;

    open_server(&server, host, "0.0.0.0:0", WEIR_CHANNEL_OPTIONS(.packet_info = true));
    ask(host, &server, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:7");
    ask(host, &server, "127.0.0.1:0", "127.0.0.2:0", "127.0.0.2:7");
    ask(host, &server, "127.0.0.2:0", "127.1.2.3:0", "127.1.2.3:7");
    endpoint_close(&server);
}

TEST_EACH_HOST(udp_packet_info, is_for_ipv6_and_for_both_on_one_socket)
{
    struct datagram_endpoint server;

    open_server(&server, host, "[::]:0", WEIR_CHANNEL_OPTIONS(.packet_info = true));
    ask(host, &server, "[::1]:0", "[::1]:0", "[::1]:7");
    ask(host, &server, "127.0.0.1:0", "127.0.0.3:0", "[::ffff:127.0.0.3]:7");
    endpoint_close(&server);
}

/* What the system has joined is answered from there, too, and in segments. */
TEST_EACH_HOST(udp_packet_info, goes_together_with_segments)
{
    struct datagram_endpoint server, client;
    weir_address address;
    weir_msg *msg;

    open_server(&server, host, "0.0.0.0:0", WEIR_CHANNEL_OPTIONS(.packet_info = true, .gro = true));
    endpoint_open(&client, host, NULL);
    address = with_port_of("127.0.0.9:0", &server);
    msg = make_datagram("abcde", &address);
    weir_datagram_set_segment_size(weir_datagram_of(msg), 2);
    assert_int_equal(endpoint_write(&client, msg), 0);
    assert_endpoint_events(&server, "127.0.0.9:7 127.0.0.9:7 127.0.0.9:7");
    assert_endpoint_events(&client, "read(ab) read(cd) read(e)");
    assert_true(weir_address_equal(&client.sender, &address));

    msg = make_datagram("vwxyz", &client.address);
    weir_datagram_set_segment_size(weir_datagram_of(msg), 3);
    address = with_port_of("127.0.0.8:0", &server);
    weir_datagram_set_sender(weir_datagram_of(msg), &address);
    assert_int_equal(endpoint_write(&server, msg), 0);
    assert_endpoint_events(&client, "read(vwx) read(yz)");
    assert_true(weir_address_equal(&client.sender, &address));
    endpoint_close(&client);
    endpoint_close(&server);
}

TEST_EACH_HOST(udp_packet_info, of_another_host_fails_its_datagram_only)
{
    struct datagram_endpoint here, there;
    weir_address stranger;
    weir_msg *msg;

    assert_int_equal(weir_address_parse("192.0.2.77:1", &stranger), 0);
    endpoint_open(&there, host, NULL);
    endpoint_init(&here, host, NULL);
    assert_int_equal(endpoint_bind(&here, "0.0.0.0:0"), 0);
    assert_endpoint_events(&here, "active");
    msg = make_datagram("x", &there.address);
    weir_datagram_set_sender(weir_datagram_of(msg), &stranger);
    assert_true(endpoint_write(&here, msg) < 0);
    assert_int_equal(endpoint_send(&here, "y", &there.address), 0);
    assert_endpoint_events(&there, "read(y)");
    endpoint_close(&here);
    endpoint_close(&there);
}

/* As the recipient of what came is, on a channel without packet_info. */
TEST_EACH_HOST(udp_packet_info, of_any_address_leaves_it_to_the_system)
{
    static const char *const from[] = {"127.0.0.1:0", "[::1]:0"};
    struct datagram_endpoint here, there;
    weir_address any;
    weir_msg *msg;

    assert_int_equal(weir_address_parse("[::]:0", &any), 0);
    endpoint_init(&here, host, NULL);
    assert_int_equal(endpoint_bind(&here, "[::]:0"), 0);
    assert_endpoint_events(&here, "active");
    for (size_t i = 0; i < 2; i++) {
        endpoint_init(&there, host, NULL);
        assert_int_equal(endpoint_bind(&there, from[i]), 0);
        assert_endpoint_events(&there, "active");
        msg = make_datagram("x", &there.address);
        weir_datagram_set_sender(weir_datagram_of(msg), &any);
        assert_int_equal(endpoint_write(&here, msg), 0);
        assert_endpoint_events(&there, "read(x)");
        endpoint_close(&there);
    }
    endpoint_close(&here);
}

/* Switched on later, and off again: then the recipient is the bound address. */
TEST_EACH_HOST(udp_packet_info, can_be_changed)
{
    struct datagram_endpoint server, client;
    weir_address address;

    open_server(&server, host, "0.0.0.0:0", WEIR_CHANNEL_OPTIONS(.packet_info = true));
    ask(host, &server, "127.0.0.1:0", "127.0.0.2:0", "127.0.0.2:7");
    assert_int_equal(weir_channel_set_options(server.channel, WEIR_CHANNEL_OPTIONS()), 0);
    host_turn(host, 2);
    endpoint_open(&client, host, NULL);
    address = with_port_of("127.0.0.2:0", &server);
    assert_int_equal(endpoint_send(&client, "x", &address), 0);
    assert_endpoint_events(&server, "0.0.0.0:7");
    assert_endpoint_events(&client, "read(x)");
    endpoint_close(&client);
    endpoint_close(&server);
}
