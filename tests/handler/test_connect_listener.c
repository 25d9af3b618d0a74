/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listeners of a connect run before `active` and may write: handlers that act at `active` must
 * handle these writes.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <weir/connection_limits.h>
#include <weir/diagnostics.h>
#include <weir/timeouts.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/handler/capture.h"
#include "support/transport/connection.h"

/* ---- on a wire ---- */

typedef int add_fn(weir_pipeline *pipeline, void *arg);

/* A client that is about to connect, with the tested handler and an event recorder behind it. */
static void open_client(struct test_channel *tc, add_fn *add, void *arg)
{
    tc_open_with(tc, &(const struct wire_options){.idle = true, .silent = true}, NULL);
    assert_int_equal(add(tc->pipeline, arg), 0);
    tc_add(tc, "a");
    tc_start(tc);
    event_log_clear(&tc->events);
}

static void connect_with(struct test_channel *tc, weir_listener_fn *listener)
{
    weir_promise *connected = NULL;
    weir_address address;

    assert_int_equal(weir_address_parse("127.0.0.1:2", &address), 0);
    assert_int_equal(weir_promise_create(tc->stepper.executor, &connected), 0);
    assert_int_equal(weir_promise_add_listener(connected, listener, tc), 0);
    weir_channel_connect(tc->channel, &address, NULL, connected);
    tc->wire->is_active = true;
    weir__channel_connected(tc->channel, 0);
    weir_promise_release(connected);
}

static void write_and_flush(weir_promise *connected, void *tc)
{
    (void)connected;
    tc_write(tc, "x", NULL);
    weir_channel_flush(((struct test_channel *)tc)->channel);
}

static void write_and_close(weir_promise *connected, void *tc)
{
    (void)connected;
    tc_write(tc, "x", NULL);
    weir_channel_close(((struct test_channel *)tc)->channel, NULL);
}

static void write_and_shut(weir_promise *connected, void *tc)
{
    (void)connected;
    tc_write(tc, "x", NULL);
    weir_channel_shutdown_output(((struct test_channel *)tc)->channel, NULL);
}

static weir_listener_fn *const ways_to_send[] = {write_and_flush, write_and_close, write_and_shut};

/* Waits until all handlers of the client have seen its end. */
static void end_client(struct connection *connection)
{
    weir_channel_abort(connection->client.channel, NULL);
    connection_await(&connection->client, "inactive", 1);
}

/* ---- accepted and rejected peers ---- */

static int add_filter(weir_pipeline *pipeline, void *filter)
{
    return weir_ip_filter_add(pipeline, filter);
}

static weir_ip_filter *make_filter(enum weir_ip_verdict default_verdict)
{
    weir_ip_filter *filter = NULL;

    assert_int_equal(
        weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.default_verdict = default_verdict), &filter),
        0);
    return filter;
}

/* Neither this write nor earlier ones are sent, whatever flushes them. */
TEST(ip_filter, sends_nothing_of_a_connect_listener_to_a_rejected_peer)
{
    weir_ip_filter *filter = make_filter(WEIR_IP_REJECT);
    struct test_channel tc;

    for (size_t i = 0; i < sizeof(ways_to_send) / sizeof(ways_to_send[0]); i++) {
        open_client(&tc, add_filter, filter);
        connect_with(&tc, ways_to_send[i]);
        tc_run(&tc);
        assert_int_equal(tc.wire->sent_length, 0);
        assert_false(weir_channel_is_open(tc.channel));
        assert_int_equal(event_log_count(&tc.events, "a.active"), 0);
        assert_int_equal(event_log_count(&tc.events, "a.inactive"), 0);
        assert_int_equal(weir_ip_filter_rejected(filter), i + 1);
        tc_close(&tc);
    }
    weir_ip_filter_release(filter);
}

TEST(ip_filter, lets_a_connect_listener_send_to_an_accepted_peer)
{
    weir_ip_filter *filter = make_filter(WEIR_IP_ACCEPT);
    struct test_channel tc;

    open_client(&tc, add_filter, filter);
    connect_with(&tc, write_and_flush);
    assert_sent(&tc, "x");
    assert_int_equal(event_log_count(&tc.events, "a.active"), 1);
    assert_int_equal(weir_pipeline_count(tc.pipeline), 1);
    tc_close(&tc);
    weir_ip_filter_release(filter);
}

TEST_EACH_CONNECTION(ip_filter, lets_no_connect_listener_send_to_a_rejected_peer_on_sockets)
{
    weir_ip_filter *filter = make_filter(WEIR_IP_REJECT);

    connection_prepare(connection,
                       &(const struct connection_options){.add = add_filter, .arg = filter});
    connection_start_and_send(connection, "x");
    connection_await(&connection->server, "inactive", 1);
    assert_int_equal(connection->server.received, 0);
    assert_int_equal(event_log_count(&connection->client.events, "active"), 0);
    connection_close(connection);
    weir_ip_filter_release(filter);
}

static int add_limit(weir_pipeline *pipeline, void *limit)
{
    return weir_connection_limit_add(pipeline, limit);
}

TEST_EACH_CONNECTION(connection_limit, counts_a_client_whose_connect_listener_writes_once)
{
    weir_connection_limit *limit = NULL;
    weir_connection_limit_stats stats;

    assert_int_equal(weir_connection_limit_create(WEIR_CONNECTION_LIMIT_OPTIONS(.max = 1), &limit),
                     0);
    connection_prepare(connection,
                       &(const struct connection_options){.add = add_limit, .arg = limit});
    connection_start_and_send(connection, "x");
    assert_end_events(&connection->client, "said active");
    assert_end_events(&connection->server, "registered active read(x)");
    weir_connection_limit_read_stats(limit, &stats);
    assert_int_equal(stats.open, 1);
    assert_int_equal(stats.accepted, 1);
    connection_close(connection);
    weir_connection_limit_release(limit);
}

/* ---- captures ---- */

enum { FILE_HEAD = 24, PACKET_HEAD = 16, IPV4_TCP = 40, FLAGS = 33 };
enum { SYN = 2, ACK = 16, PSH = 8, FIN = 1 };

static int add_pcap(weir_pipeline *pipeline, void *pcap)
{
    return weir_pcap_add(pipeline, pcap);
}

/* The start of a capture: a handshake of three packets, then these bytes. */
static void assert_begins_with_handshake(const char *path, const char *text)
{
    const uint8_t expected[] = {SYN, SYN | ACK, ACK, PSH | ACK};
    uint8_t bytes[512];
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(descriptor, bytes, sizeof(bytes));
    const uint8_t *packet = bytes + FILE_HEAD + PACKET_HEAD;

    (void)close(descriptor);
    assert_true(length >= FILE_HEAD + 4 * (PACKET_HEAD + IPV4_TCP) + (ssize_t)strlen(text));
    for (int i = 0; i < 4; i++, packet += IPV4_TCP + PACKET_HEAD)
        assert_int_equal(packet[FLAGS], expected[i]);
    assert_memory_equal(packet - PACKET_HEAD, text, strlen(text));
}

TEST(pcap, begins_with_the_handshake_if_a_connect_listener_writes)
{
    struct capture file;
    struct test_channel tc;

    capture_open(&file, 0);
    open_client(&tc, add_pcap, file.pcap);
    connect_with(&tc, write_and_flush);
    tc_close(&tc);
    capture_end(&file);
    assert_begins_with_handshake(file.path, "x");
    capture_remove(&file);
}

TEST_EACH_CONNECTION(pcap, begins_with_the_handshake_if_a_connect_listener_writes_to_a_socket)
{
    struct capture file;

    capture_open(&file, 0);
    connection_prepare(connection,
                       &(const struct connection_options){.add = add_pcap, .arg = file.pcap});
    connection_start_and_send(connection, "hello");
    assert_end_events(&connection->server, "registered active read(hello)");
    end_client(connection);
    capture_end(&file);
    assert_begins_with_handshake(file.path, "hello");
    capture_remove(&file);
}

/* ---- handlers that only look, and those of time ---- */

struct all {
    weir_counters *counters;
    weir_timing *timing;
};

static int add_all(weir_pipeline *pipeline, void *all_)
{
    struct all *all = all_;
    int err = weir_logging_add(pipeline, NULL);

    if (err == 0)
        err = weir_counters_add(pipeline, all->counters);
    if (err == 0)
        err = weir_timing_add(pipeline, all->timing);
    if (err == 0)
        err = weir_idle_add(pipeline, WEIR_IDLE_OPTIONS(.both_ns = weir_seconds(600)));
    if (err == 0)
        err = weir_read_timeout_add(pipeline, NULL);
    return err == 0 ? weir_write_timeout_add(pipeline, NULL) : err;
}

TEST_EACH_CONNECTION(handlers, that_look_on_see_what_a_connect_listener_writes)
{
    weir_counters_stats figures;
    struct all all = {0};

    log_capture_start();
    assert_int_equal(weir_counters_create(NULL, &all.counters), 0);
    assert_int_equal(weir_timing_create(NULL, &all.timing), 0);
    connection_prepare(connection, &(const struct connection_options){.add = add_all, .arg = &all});
    connection_start_and_send(connection, "x");
    assert_end_events(&connection->client, "said active");
    assert_end_events(&connection->server, "registered active read(x)");
    weir_counters_read_stats(all.counters, &figures);
    assert_int_equal(figures.open, 1);
    assert_int_equal(figures.channels, 1);
    assert_int_equal(figures.bytes_written, 1);
    end_client(connection);
    weir_counters_read_stats(all.counters, &figures);
    assert_int_equal(figures.open, 0);
    weir_counters_release(all.counters);
    weir_timing_release(all.timing);
}
