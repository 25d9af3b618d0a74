/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IP filters: the first matching rule decides, on connections and on listeners.
 */
#include <weir/connection_limits.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/embedded.h>
#include <weir/log.h>
#include <weir/pipeline.h>

#include "channel/transport.h"
#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/test.h"

static const weir_ip_rule rules[] = {
    {"10.1.0.0/16", WEIR_IP_REJECT},
    {"10.0.0.0/8", WEIR_IP_ACCEPT},
    {"2001:db8::/32", WEIR_IP_ACCEPT},
};

static weir_ip_filter *make_filter(const weir_ip_filter_options *options)
{
    weir_ip_filter *filter = NULL;

    assert_int_equal(weir_ip_filter_create(options, &filter), 0);
    return filter;
}

static weir_ip_filter *make_strict(void)
{
    return make_filter(
        WEIR_IP_FILTER_OPTIONS(.rules = rules, .rule_count = 3, .default_verdict = WEIR_IP_REJECT));
}

static enum weir_ip_verdict judge(const weir_ip_filter *filter, const char *address)
{
    weir_address parsed;

    assert_int_equal(weir_address_parse(address, &parsed), 0);
    return weir_ip_filter_check(filter, &parsed);
}

TEST(ip_filter, applies_the_first_matching_rule)
{
    weir_ip_filter *filter = make_strict();

    assert_int_equal(judge(filter, "10.1.2.3:1"), WEIR_IP_REJECT);
    assert_int_equal(judge(filter, "10.2.2.3:1"), WEIR_IP_ACCEPT);
    assert_int_equal(judge(filter, "[::ffff:10.1.2.3]:1"), WEIR_IP_REJECT);
    assert_int_equal(judge(filter, "[2001:db8::5]:1"), WEIR_IP_ACCEPT);
    assert_int_equal(judge(filter, "[::1]:1"), WEIR_IP_REJECT);
    assert_int_equal(judge(filter, "unix:/run/x"), WEIR_IP_REJECT);
    weir_ip_filter_release(filter);
}

TEST(ip_filter, accepts_by_default)
{
    weir_ip_filter *filter = make_filter(WEIR_IP_FILTER_OPTIONS(.rules = rules, .rule_count = 1));

    assert_int_equal(judge(filter, "10.1.2.3:1"), WEIR_IP_REJECT);
    assert_int_equal(judge(filter, "192.0.2.1:1"), WEIR_IP_ACCEPT);
    weir_ip_filter_release(filter);
    filter = make_filter(NULL);
    assert_int_equal(judge(filter, "192.0.2.1:1"), WEIR_IP_ACCEPT);
    weir_ip_filter_release(filter);
    weir_ip_filter_release(NULL);
}

TEST(ip_filter, rejects_invalid_rules)
{
    static const weir_ip_rule no_subnet = {"somewhere", WEIR_IP_ACCEPT};
    static const weir_ip_rule no_verdict = {"10.0.0.0/8", (enum weir_ip_verdict)7};
    weir_ip_filter *filter = NULL;

    weir_log_set_level(WEIR_LOG_OFF);
    assert_int_equal(weir_ip_filter_create(
                         WEIR_IP_FILTER_OPTIONS(.rules = &no_subnet, .rule_count = 1), &filter),
                     -EINVAL);
    assert_int_equal(weir_ip_filter_create(
                         WEIR_IP_FILTER_OPTIONS(.rules = &no_verdict, .rule_count = 1), &filter),
                     -EINVAL);
    assert_int_equal(weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.rule_count = 1), &filter),
                     -EINVAL);
    assert_int_equal(
        weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.rules = rules, .rule_count = SIZE_MAX / 8),
                              &filter),
        -EINVAL);
    weir_log_set_level(WEIR_LOG_WARN);
}

/* ---- on a connection ---- */

static weir_embedded *connect_from(struct event_log *events, const char *address,
                                   weir_ip_filter *filter)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    assert_int_equal(
        weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.register_later = true, .remote = address),
                             &embedded),
        0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(weir_ip_filter_add(pipeline, filter), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &event_recorder, EVENT_RECORDER(events, "a")),
                     0);
    assert_int_equal(weir_embedded_register(embedded), 0);
    return embedded;
}

TEST(ip_filter, accepts_a_connection_and_removes_itself)
{
    weir_ip_filter *filter = make_strict();
    struct event_log events;
    weir_embedded *embedded;

    event_log_open(&events);
    embedded = connect_from(&events, "10.2.0.1:1", filter);
    assert_true(weir_channel_is_active(weir_embedded_channel(embedded)));
    assert_null(weir_pipeline_find(weir_embedded_pipeline(embedded), "ip-filter"));
    assert_events(&events, "a.added a.registered a.active a.request_read");
    assert_int_equal(weir_ip_filter_rejected(filter), 0);
    weir_embedded_release(embedded);
    event_log_close(&events);
    weir_ip_filter_release(filter);
}

TEST(ip_filter, aborts_a_connection_before_other_handlers_see_it)
{
    weir_ip_filter *filter = make_strict();
    struct event_log events;
    weir_embedded *embedded;

    event_log_open(&events);
    embedded = connect_from(&events, "10.1.0.1:1", filter);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_events(&events, "a.added a.registered a.request_read a.unregistered a.removed a.deinit");
    assert_int_equal(weir_ip_filter_rejected(filter), 1);
    weir_embedded_release(embedded);
    event_log_close(&events);
    weir_ip_filter_release(filter);
}

TEST(ip_filter, checks_at_once_when_added_late)
{
    weir_ip_filter *filter = make_strict();
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.remote = "10.1.0.1:1"), &embedded),
                     0);
    assert_int_equal(weir_ip_filter_add(weir_embedded_pipeline(embedded), filter), 0);
    weir_embedded_run(embedded);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_int_equal(weir_ip_filter_rejected(filter), 1);
    weir_embedded_release(embedded);

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.remote = "10.2.0.1:1"), &embedded),
                     0);
    assert_int_equal(weir_ip_filter_add(weir_embedded_pipeline(embedded), filter), 0);
    weir_embedded_run(embedded);
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(embedded)), 0);
    weir_embedded_release(embedded);
    weir_ip_filter_release(filter);
}

TEST(ip_filter, logs_rejections_at_info_with_a_rate_limit)
{
    weir_ip_filter *filter = make_strict();
    struct event_log events;

    event_log_open(&events);
    for (int i = 0; i < 60; i++) {
        if (i % 30 == 0) {
            weir_log_set_level(i == 0 ? WEIR_LOG_WARN : WEIR_LOG_INFO);
            log_capture_start();
        }
        weir_embedded_release(connect_from(&events, "10.1.2.3:55", filter));
        assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    }
    assert_int_equal(log_capture_count(WEIR_LOG_INFO), 10);
    assert_log_contains("10.1.2.3:55: rejected");
    event_log_close(&events);
    weir_ip_filter_release(filter);
}

/* ---- on a listener: its children come from 127.0.0.1:2 ---- */

/* The server's handler: consumes accepted channels. */
static void take(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg);
}

static const weir_handler taker = {.name = "taker", .read = take};

static weir_channel *accept_one(struct test_channel *tc)
{
    weir_channel *accepted = NULL;

    assert_int_equal(wire_create(&tc->events, &(const struct wire_options){.silent = true}, NULL,
                                 tc->channel, &accepted),
                     0);
    weir_pipeline_fire_read(tc->pipeline, weir__channel_msg(weir_channel_retain(accepted)));
    return accepted;
}

static void open_listener(struct test_channel *tc, weir_ip_filter *filter)
{
    tc_open_with(tc, &(const struct wire_options){.accepts = true, .silent = true}, NULL);
    assert_int_equal(weir_ip_filter_add(tc->pipeline, filter), 0);
    assert_int_equal(weir_pipeline_add_last(tc->pipeline, &taker, NULL), 0);
    tc_start(tc);
}

TEST(ip_filter, on_a_listener_checks_accepted_connections)
{
    static const weir_ip_rule loopback = {"127.0.0.0/8", WEIR_IP_REJECT};
    weir_ip_filter *filter =
        make_filter(WEIR_IP_FILTER_OPTIONS(.rules = &loopback, .rule_count = 1));
    weir_channel *accepted;
    struct test_channel tc;

    open_listener(&tc, filter);
    accepted = accept_one(&tc);
    assert_non_null(weir_pipeline_find(weir_channel_pipeline(accepted), "ip-filter"));
    weir_channel_register(accepted, weir_channel_executor(tc.channel), NULL);
    tc_run(&tc);
    assert_false(weir_channel_is_open(accepted));
    assert_int_equal(weir_ip_filter_rejected(filter), 1);
    assert_true(weir_channel_is_open(tc.channel));
    weir_channel_release(accepted);
    tc_close(&tc);
    weir_ip_filter_release(filter);
}

TEST(ip_filter, on_a_listener_closes_connections_without_memory)
{
    weir_ip_filter *filter = make_filter(NULL);
    weir_channel *accepted = NULL;
    struct test_channel tc;

    open_listener(&tc, filter);
    assert_int_equal(wire_create(&tc.events, &(const struct wire_options){.silent = true}, NULL,
                                 tc.channel, &accepted),
                     0);
    weir_log_set_level(WEIR_LOG_OFF);
    test_memory_fail_at(1);
    weir_pipeline_fire_read(tc.pipeline, weir__channel_msg(weir_channel_retain(accepted)));
    test_memory_fail_at(0);
    weir_log_set_level(WEIR_LOG_WARN);
    tc_run(&tc);
    assert_false(weir_channel_is_open(accepted));
    weir_channel_release(accepted);
    tc_close(&tc);
    weir_ip_filter_release(filter);
}

TEST(ip_filter, survives_allocation_failures)
{
    for (unsigned n = 1;; n++) {
        bool failed;
        weir_embedded *embedded = NULL;
        weir_ip_filter *filter = NULL;
        int err;

        assert_int_equal(
            weir_embedded_create(
                WEIR_EMBEDDED_OPTIONS(.register_later = true, .remote = "10.1.0.1:1"), &embedded),
            0);
        test_memory_fail_at(n);
        err =
            weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.rules = rules, .rule_count = 3), &filter);
        if (err == 0)
            err = weir_ip_filter_add(weir_embedded_pipeline(embedded), filter);
        if (err == 0) {
            (void)weir_embedded_register(embedded);
            assert_false(weir_channel_is_active(weir_embedded_channel(embedded)));
        }
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_ip_filter_release(filter);
        weir_embedded_release(embedded);
        if (!failed)
            break;
    }
}
