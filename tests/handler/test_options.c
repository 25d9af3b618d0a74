/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid options of handlers and codecs: each is rejected, and the log names it.
 */
#include <weir/embedded.h>

#include <weir/connection_limits.h>
#include <weir/diagnostics.h>
#include <weir/flow_control.h>
#include <weir/proxy_protocol.h>
#include <weir/timeouts.h>
#include <weir/traffic.h>

#include "support/executor/log_capture.h"
#include "support/test.h"

TEST(options, invalid_ones_of_handlers_are_named)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_options_rejected(weir_idle_add(pipeline, WEIR_IDLE_OPTIONS(.reader_ns = -2)),
                            "reader_ns is -2");
    assert_options_rejected(weir_idle_add(pipeline, WEIR_IDLE_OPTIONS(.writer_ns = -3)),
                            "writer_ns is -3");
    assert_options_rejected(weir_idle_add(pipeline, WEIR_IDLE_OPTIONS(.both_ns = -4)),
                            "both_ns is -4");
    assert_options_rejected(
        weir_read_timeout_add(pipeline, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = -2)),
        "read-timeout -: invalid options: timeout_ns is -2");
    assert_options_rejected(
        weir_write_timeout_add(pipeline, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = -2)),
        "write-timeout -: invalid options: timeout_ns is -2");
    assert_options_rejected(
        weir_flush_consolidation_add(pipeline, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.max_flushes = -1)),
        "max_flushes is -1");
    assert_options_rejected(weir_logging_add(pipeline, WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_OFF)),
                            "level is 5, the maximum is 4");
    assert_options_rejected(weir_traffic_shaping_add(pipeline, NULL), "traffic is NULL");
    weir_embedded_release(embedded);
}

TEST(options, invalid_ones_of_shared_objects_are_named)
{
    static const weir_ip_rule no_subnet = {"10.0.0.0/33", WEIR_IP_ACCEPT};
    static const weir_ip_rule no_verdict = {"10.0.0.0/8", (enum weir_ip_verdict)7};
    weir_traffic *traffic = NULL;
    weir_ip_filter *filter = NULL;
    weir_pcap *pcap = NULL;

    assert_options_rejected(weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.read_rate = -5), &traffic),
                            "read_rate is -5");
    assert_options_rejected(weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.burst_ns = -2), &traffic),
                            "burst_ns is -2, the minimum is -1");
    assert_options_rejected(
        weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.rules = &no_subnet, .rule_count = 1),
                              &filter),
        "ip-filter 10.0.0.0/33: invalid options: not a subnet");
    assert_options_rejected(
        weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.rules = &no_verdict, .rule_count = 1),
                              &filter),
        "verdict is 7");
    assert_options_rejected(
        weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.default_verdict = (enum weir_ip_verdict)2),
                              &filter),
        "default_verdict is 2");
    assert_options_rejected(weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.rule_count = 3), &filter),
                            "rule_count is 3, but .rules is NULL");
    assert_options_rejected(weir_pcap_create(NULL, &pcap), ".path is required");
    assert_options_rejected(
        weir_pcap_create(WEIR_PCAP_OPTIONS(.path = "/tmp/x", .max_bytes = 1), &pcap),
        "pcap /tmp/x: invalid options: max_bytes is 1");
}

TEST(options, invalid_ones_of_proxy_headers_are_named)
{
    weir_proxy_header *header = NULL;
    weir_address ipv4, ipv6;

    assert_int_equal(weir_address_parse("192.0.2.1:1", &ipv4), 0);
    assert_int_equal(weir_address_parse("[2001:db8::1]:1", &ipv6), 0);
    assert_options_rejected(
        weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(.version = 3), &header), "version is 3");
    assert_options_rejected(
        weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(.source = &ipv4, .destination = &ipv6),
                                 &header),
        "source and destination must have one family");
    assert_options_rejected(weir_proxy_header_create(
                                WEIR_PROXY_HEADER_OPTIONS(.version = 1, .checksum = true), &header),
                            "version 1");
    assert_options_rejected(
        weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(.checksum = true), &header),
        "require addresses");
}
