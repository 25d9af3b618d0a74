/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/22-connection-limits.md shows.
 */
#include <stdio.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"

static struct call_counter left;

/* doc:begin who */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;
    weir_buf *answer;

    weir_msg_release(msg);
    if (weir_proxy_source(weir_ctx_channel(ctx), &address) < 0)
        return;
    weir_address_format(&address, text, sizeof(text));
    if (weir_buf_create_from(text, strlen(text), &answer) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(answer), NULL);
}

static const weir_handler whoami = {.name = "whoami", .read = on_read};
/* doc:end */

static void on_removed(weir_ctx *ctx)
{
    (void)ctx;
    call_counter_add(&left);
}

static const weir_handler teller = {.name = "teller", .removed = on_removed};

/* doc:begin server */
struct front {
    weir_ip_filter *filter;
    weir_connection_limit *limit;
    weir_counters *counters;
};

/* In the listener's pipeline: applies to every accepted connection. */
static int init_server(weir_channel *listener, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(listener);
    struct front *front = user_data;
    int err = weir_ip_filter_add(pipeline, front->filter);

    return err < 0 ? err : weir_connection_limit_add(pipeline, front->limit);
}

static int init_child(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    struct front *front = user_data;
    int err = weir_counters_add(pipeline, front->counters);

    if (!err)
        err = weir_proxy_receiver_add(pipeline, NULL);
    if (!err)
        err = weir_pipeline_add_last(pipeline, &whoami, NULL);
    return err;
}
/* doc:end */

static int init_told(weir_channel *channel, void *user_data)
{
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &teller, NULL);

    return err < 0 ? err : init_child(channel, user_data);
}

/* doc:begin make */
static int create_limits(struct front *front)
{
    static const weir_ip_rule rules[] = {
        {"127.0.0.0/8", WEIR_IP_ACCEPT}, /* our proxies */
        {"10.7.0.0/16", WEIR_IP_ACCEPT},
    };
    int err = weir_ip_filter_create(
        WEIR_IP_FILTER_OPTIONS(.rules = rules, .rule_count = 2, .default_verdict = WEIR_IP_REJECT),
        &front->filter);

    if (!err)
        err = weir_connection_limit_create(WEIR_CONNECTION_LIMIT_OPTIONS(.max = 2), &front->limit);
    if (!err)
        err = weir_counters_create(WEIR_COUNTERS_OPTIONS(.name = "front"), &front->counters);
    return err;
}
/* doc:end */

static weir_server *serve(struct front *front, weir_group *group)
{
    weir_server *server = NULL;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.workers = group, .address = "127.0.0.1:0",
                                              .init_server = init_server, .init_child = init_told,
                                              .user_data = front),
                          &server),
        0);
    return server;
}

static void close_server(struct front *front, weir_server *server, weir_group *group)
{
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    end_group(group);
    weir_ip_filter_release(front->filter);
    weir_connection_limit_release(front->limit);
    weir_counters_release(front->counters);
}

TEST(guide_connection_limits, accept_known_peers_up_to_the_limit)
{
    struct front front = {0};
    weir_group *group = make_loops(2);
    weir_server *server;
    weir_metric_value value;
    int peers[3];

    assert_int_equal(create_limits(&front), 0);
    server = serve(&front, group);
    for (int i = 0; i < 2; i++) {
        peers[i] = raw_client_connect(server);
        raw_client_send(peers[i], "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nwho is it?");
        raw_client_receive(peers[i], "192.0.2.1:56324");
    }
    peers[2] = raw_client_connect(server);
    raw_client_receive_end(peers[2]);
    raw_client_close(peers[2]);
    raw_client_close(peers[0]);
    assert_true(call_counter_await(&left, 2)); /* the rejected and the closed connection */
    assert_int_equal(weir_metric_read("front.channels", &value), 0);
    assert_int_equal(value.value, 2);
    raw_client_close(peers[1]);
    close_server(&front, server, group);
}

TEST(guide_connection_limits, reject_other_peers)
{
    static const weir_ip_rule nobody = {"127.0.0.1", WEIR_IP_REJECT};
    struct front front = {0};
    weir_group *group = make_loops(2);
    weir_server *server;
    int peer;

    assert_int_equal(create_limits(&front), 0);
    weir_ip_filter_release(front.filter);
    assert_int_equal(weir_ip_filter_create(
                         WEIR_IP_FILTER_OPTIONS(.rules = &nobody, .rule_count = 1), &front.filter),
                     0);
    weir_connection_limit_release(front.limit); /* rejected connections may still count there */
    assert_int_equal(
        weir_connection_limit_create(WEIR_CONNECTION_LIMIT_OPTIONS(.max = 5), &front.limit), 0);
    server = serve(&front, group);
    for (int i = 0; i < 5; i++) {
        peer = raw_client_connect(server);
        raw_client_receive_end(peer);
        raw_client_close(peer);
    }
    assert_int_equal(weir_ip_filter_rejected(front.filter), 5);
    close_server(&front, server, group);
}

/* doc:begin watch */
static int watch(weir_pipeline *pipeline, weir_pcap *pcap, weir_timing *timing)
{
    int err = weir_pcap_add(pipeline, pcap); /* bytes as on the wire */

    if (!err)
        err = weir_logging_add(pipeline, WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_DEBUG));
    if (!err)
        err = weir_timing_add(pipeline, timing); /* measures the handlers added later */
    return err;
}
/* doc:end */

TEST(guide_connection_limits, diagnostics_observe_the_pipeline)
{
    weir_embedded *embedded = NULL;
    weir_timing *timing = NULL;
    weir_pcap *pcap = NULL;
    weir_histogram_summary summary;
    weir_buf *buf = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_pcap_create(WEIR_PCAP_OPTIONS(.path = "/dev/null"), &pcap), 0);
    assert_int_equal(weir_timing_create(NULL, &timing), 0);
    assert_int_equal(watch(weir_embedded_pipeline(embedded), pcap, timing), 0);
    assert_int_equal(weir_buf_create_from("x", 1, &buf), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_buf_msg(buf)), 0);
    weir_histogram_read(weir_timing_histogram(timing, WEIR_TIMING_READ), &summary);
    assert_int_equal(summary.count, 1);
    weir_embedded_release(embedded);
    weir_timing_release(timing);
    weir_pcap_release(pcap);
}
