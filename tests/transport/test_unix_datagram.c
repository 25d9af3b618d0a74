/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix datagrams: what they have that UDP has not. None is lost, and descriptors go with them.
 */
#include <weir/descriptors.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/loop.h>
#include <weir/transport.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/loop/sockets.h"
#include "support/transport/datagram_endpoint.h"

#define MANY 2000 /* more than any queue of the system's holds */

TEST_EACH_HOST(unix_datagram, bring_the_address_of_their_sender)
{
    struct datagram_endpoint here, there;

    endpoint_open_unix(&here, host, NULL);
    endpoint_open_unix(&there, host, NULL);
    assert_int_equal(endpoint_send(&here, "ping", &there.address), 0);
    assert_endpoint_events(&there, "read(ping)");
    assert_true(weir_address_equal(&there.sender, &here.address));
    assert_int_equal(endpoint_send(&there, "pong", &there.sender), 0);
    assert_endpoint_events(&here, "read(pong)");
    assert_int_equal(endpoint_send(&here, "", &there.address), 0);
    assert_endpoint_events(&there, "read()");
    endpoint_close(&here);
    endpoint_close(&there);
}

/* One that is only connected gets a name, so that it can be answered. */
TEST_EACH_HOST(unix_datagram, are_answered_also_if_their_sender_has_chosen_no_name)
{
    struct datagram_endpoint here, there;

    endpoint_open_unix(&there, host, NULL);
    endpoint_init_unix(&here, host, NULL);
    assert_int_equal(endpoint_connect(&here, &there.address), 0);
    assert_endpoint_events(&here, "active");
    assert_int_equal(endpoint_write(&here, text_msg("ping")), 0);
    assert_endpoint_events(&there, "read(ping)");
    assert_true(there.sender.length > sizeof(sa_family_t));
    assert_int_equal(endpoint_send(&there, "pong", &there.sender), 0);
    assert_endpoint_events(&here, "read(pong)");
    endpoint_close(&here);
    endpoint_close(&there);
}

TEST_EACH_HOST(unix_datagram, that_cannot_be_sent_fail_alone)
{
    struct datagram_endpoint here, there;
    weir_address nobody;

    endpoint_open_unix(&here, host, NULL);
    endpoint_open_unix(&there, host, NULL);
    assert_int_equal(weir_address_parse("unix:@weir-nobody", &nobody), 0);
    assert_int_equal(endpoint_send(&here, "x", &nobody), -ECONNREFUSED);
    assert_int_equal(endpoint_write(&here, text_msg("x")), -EDESTADDRREQ);
    assert_int_equal(endpoint_send(&here, "y", &there.address), 0);
    assert_endpoint_events(&there, "read(y)");
    endpoint_close(&here);
    endpoint_close(&there);
}

TEST_EACH_HOST(unix_datagram, that_are_too_long_are_an_error)
{
    struct datagram_endpoint here, there;

    endpoint_open_unix(&here, host, NULL);
    endpoint_open_unix(&there, host, WEIR_CHANNEL_OPTIONS(.datagram_size = 4));
    assert_int_equal(endpoint_send(&here, "12345", &there.address), 0);
    assert_int_equal(endpoint_send(&here, "1234", &there.address), 0);
    assert_endpoint_events(&there, "error(EMSGSIZE) read(1234)");
    endpoint_close(&here);
    endpoint_close(&there);
}

static void count(weir_ctx *ctx, weir_datagram *datagram)
{
    (void)ctx;
    weir_datagram_release(datagram);
}

/* Sends until long after the recipient is full; it reads only then. */
static void check_patience(struct datagram_endpoint *here, struct datagram_endpoint *there,
                           const weir_address *recipient)
{
    weir_promise *last = endpoint_promise(here);

    there->on_read = count;
    weir_channel_set_auto_read(there->channel, false);
    for (int i = 1; i < MANY; i++)
        weir_channel_write(here->channel, make_datagram("x", recipient), NULL);
    weir_channel_write_and_flush(here->channel, make_datagram("x", recipient), last);
    assert_int_equal(weir_promise_await(last, weir_ms(20)), -ETIMEDOUT);
    weir_channel_set_auto_read(there->channel, true);
    assert_int_equal(endpoint_result(last), 0);
    assert_true(call_counter_await(&there->notes, MANY + 1)); /* and it is active */
}

TEST_EACH_HOST(unix_datagram, wait_for_a_peer_that_does_not_read)
{
    struct datagram_endpoint here, there;

    endpoint_open_unix(&there, host, NULL);
    endpoint_init_unix(&here, host, NULL);
    assert_int_equal(endpoint_connect(&here, &there.address), 0);
    check_patience(&here, &there, NULL);
    endpoint_close(&here);
    endpoint_close(&there);
}

/* The system does not tell when a recipient has room whom nobody is connected to. */
TEST_EACH_HOST(unix_datagram, wait_for_a_recipient_that_does_not_read)
{
    struct datagram_endpoint here, there;

    endpoint_open_unix(&here, host, NULL);
    endpoint_open_unix(&there, host, NULL);
    check_patience(&here, &there, &there.address);
    endpoint_close(&here);
    endpoint_close(&there);
}

static uint64_t sends_of(const struct datagram_endpoint *endpoint)
{
    weir_loop_stats stats;

    assert_int_equal(weir_loop_read_stats(weir_channel_executor(endpoint->channel), &stats), 0);
    return stats.sends;
}

/* That the peer has room says nothing of others. */
TEST_EACH_HOST(unix_datagram, wait_for_a_recipient_that_is_not_the_peer)
{
    struct datagram_endpoint here, there, peer;
    uint64_t before;

    endpoint_open_unix(&here, host, NULL);
    endpoint_open_unix(&there, host, NULL);
    endpoint_open_unix(&peer, host, NULL);
    assert_int_equal(endpoint_connect(&here, &peer.address), 0);
    before = sends_of(&here);
    check_patience(&here, &there, &there.address);
    assert_true(sends_of(&here) - before < MANY);
    endpoint_close(&here);
    endpoint_close(&there);
    endpoint_close(&peer);
}

TEST_EACH_HOST(unix_datagram, that_wait_fail_when_their_channel_is_closed)
{
    struct datagram_endpoint here, there;
    weir_promise *last;

    endpoint_open_unix(&here, host, NULL);
    endpoint_open_unix(&there, host, NULL);
    weir_channel_set_auto_read(there.channel, false);
    last = endpoint_promise(&here);
    for (int i = 1; i < MANY; i++)
        weir_channel_write(here.channel, make_datagram("x", &there.address), NULL);
    weir_channel_write_and_flush(here.channel, make_datagram("x", &there.address), last);
    assert_int_equal(weir_promise_await(last, weir_ms(5)), -ETIMEDOUT);
    endpoint_close(&here);
    assert_true(endpoint_result(last) < 0);
    endpoint_close(&there);
}

/* By then it looks for room only now and then, and the loop that it was on must not do so again. */
TEST_EACH_HOST(unix_datagram, that_wait_go_to_another_loop_with_their_channel)
{
    struct datagram_endpoint here, there;
    struct host other;
    weir_promise *last, *moved;

    host_open(&other, (enum backend_id)(host->backend - backends));
    endpoint_open_unix(&here, host, NULL);
    endpoint_open_unix(&there, host, NULL);
    weir_channel_set_auto_read(there.channel, false);
    last = endpoint_promise(&there);
    for (int i = 1; i < MANY; i++)
        weir_channel_write(here.channel, make_datagram("x", &there.address), NULL);
    weir_channel_write_and_flush(here.channel, make_datagram("x", &there.address), last);
    assert_int_equal(weir_promise_await(last, weir_ms(30)), -ETIMEDOUT);
    assert_int_equal(endpoint_do(&here, weir_channel_deregister), 0);
    assert_endpoint_events(&here, "unwritable unregistered");
    moved = endpoint_promise(&there);
    weir_group_register(other.group, here.channel, moved);
    assert_int_equal(endpoint_result(moved), 0);
    endpoint_close(&here);
    assert_true(endpoint_result(last) < 0);
    endpoint_close(&there);
    host_close(&other);
}

TEST_EACH_HOST(unix_datagram, that_wait_do_not_keep_their_channel_from_closing)
{
    struct datagram_endpoint here, there;
    weir_promise *last;

    endpoint_open_unix(&here, host, WEIR_CHANNEL_OPTIONS(.close_send_timeout_ns = weir_ms(50)));
    endpoint_open_unix(&there, host, NULL);
    weir_channel_set_auto_read(there.channel, false);
    last = endpoint_promise(&here);
    for (int i = 1; i < MANY; i++)
        weir_channel_write(here.channel, make_datagram("x", &there.address), NULL);
    weir_channel_write_and_flush(here.channel, make_datagram("x", &there.address), last);
    log_capture_start();
    assert_int_equal(endpoint_do(&here, weir_channel_close), -ETIMEDOUT);
    assert_int_equal(endpoint_result(last), -ETIMEDOUT);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    endpoint_close(&here);
    endpoint_close(&there);
}

/* ---- descriptors ---- */

static weir_msg *passing(const char *text, const weir_address *recipient)
{
    int number = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    weir_descriptors *descriptors;
    weir_datagram *datagram;
    weir_buf *bytes;

    assert_true(number >= 0);
    assert_int_equal(weir_buf_create_from(text, strlen(text), &bytes), 0);
    assert_int_equal(weir_descriptors_create(bytes, &number, 1, &descriptors), 0);
    if (recipient == NULL)
        return weir_descriptors_msg(descriptors);
    assert_int_equal(weir_datagram_create(weir_descriptors_msg(descriptors), recipient, &datagram),
                     0);
    return weir_datagram_msg(datagram);
}

static void use_descriptor(weir_ctx *ctx, weir_datagram *datagram)
{
    weir_descriptors *passed = weir_descriptors_of(weir_datagram_content(datagram));
    int file = passed != NULL ? weir_descriptors_take(passed, 0) : -1;
    char byte = 'x';

    if (file >= 0 && read(file, &byte, 1) == 1 && byte == '\0')
        event_log_write(&endpoint_of(ctx)->events, "zero");
    else
        event_log_write(&endpoint_of(ctx)->events, "nothing");
    if (file >= 0)
        close(file);
    weir_datagram_release(datagram);
}

TEST_EACH_LOOP(unix_datagram, bring_descriptors)
{
    const weir_channel_options *taking = WEIR_CHANNEL_OPTIONS(.receive_descriptors = true);
    size_t before = descriptors_open();
    struct datagram_endpoint here, there;

    endpoint_open_unix(&there, host, taking);
    endpoint_open_unix(&here, host, NULL);
    there.on_read = use_descriptor;
    weir_channel_write(here.channel, passing("a", &there.address), NULL);
    weir_channel_write(here.channel, passing("b", &there.address), NULL);
    assert_int_equal(endpoint_send(&here, "c", &there.address), 0);
    assert_endpoint_events(&there, "zero zero nothing");
    assert_int_equal(endpoint_connect(&here, &there.address), 0);
    assert_int_equal(endpoint_write(&here, passing("d", NULL)), 0);
    assert_endpoint_events(&there, "zero");
    endpoint_close(&here);
    endpoint_close(&there);
    assert_int_equal(descriptors_open(), before);
}

TEST_EACH_HOST(unix_datagram, bring_no_descriptors_unasked)
{
    struct datagram_endpoint here, there;
    size_t before;

    endpoint_open_unix(&there, host, NULL);
    endpoint_open_unix(&here, host, NULL);
    before = descriptors_open();
    assert_int_equal(endpoint_write(&here, passing("a", &there.address)), 0);
    assert_endpoint_events(&there, "read(a)");
    assert_int_equal(descriptors_open(), before);
    endpoint_close(&here);
    endpoint_close(&there);
}

TEST_EACH_HOST(unix_datagram, with_descriptors_do_not_go_by_udp)
{
    struct datagram_endpoint endpoint;

    endpoint_open(&endpoint, host, NULL);
    assert_int_equal(endpoint_write(&endpoint, passing("a", &endpoint.address)), -EPROTOTYPE);
    endpoint_close(&endpoint);
}
