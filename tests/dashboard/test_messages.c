/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages to visitors, without connections: the folded histograms, and what happens without
 * memory.
 */
#include <stdio.h>
#include <string.h>

#include <weir/metric.h>

#include "dashboard/dashboard.h"
#include "support/memory.h"
#include "support/test.h"

static void free_message(weir_ws_message *message)
{
    weir_msg_release(weir_ws_message_msg(message));
}

static void assert_message_contains(const weir_ws_message *message, const char *part)
{
    weir_span bytes = weir_ws_message_bytes(message);

    if (weir_span_find_sequence(bytes, weir_span_of_text(part)) < 0)
        fail_msg("\"%.*s\" does not contain \"%s\"", (int)bytes.length, (const char *)bytes.data,
                 part);
}

TEST(stats, fold_histograms_to_powers_of_two)
{
    weir_metric *metric = NULL;
    weir_ws_message *message;

    assert_int_equal(weir_metric_create(WEIR_METRIC_HISTOGRAM, "shop.wait{a=\"\\\"\"}", &metric),
                     0);
    message = weir__dashboard_stats_message();
    assert_message_contains(message, "\"shop.wait{a=\\\"\\\\\\\"\\\"}\":{\"count\":0,");
    assert_message_contains(message, "\"buckets\":[]}");
    free_message(message);
    (void)weir_metric_record(metric, 4);
    (void)weir_metric_record(metric, 7);
    (void)weir_metric_record(metric, 8);
    (void)weir_metric_record(metric, 1023);
    message = weir__dashboard_stats_message();
    assert_message_contains(message, "\"buckets\":[3,2,1,0,0,0,0,0,1]}");
    free_message(message);
    weir_metric_release(metric);
}

TEST(stats, have_no_more_than_500_metrics)
{
    weir_metric *metrics[600];
    weir_ws_message *message;
    weir_span bytes;
    size_t count = 0;
    char name[32];

    for (unsigned i = 0; i < 600; i++) {
        (void)snprintf(name, sizeof(name), "shop.counter_%u", i);
        assert_int_equal(weir_metric_create(WEIR_METRIC_COUNTER, name, &metrics[i]), 0);
    }
    message = weir__dashboard_stats_message();
    bytes = weir_ws_message_bytes(message);
    for (size_t i = 0; i + 12 < bytes.length; i++)
        count += memcmp(bytes.data + i, "shop.counter", 12) == 0;
    assert_in_range(count, 300, 500);
    free_message(message);
    for (unsigned i = 0; i < 600; i++)
        weir_metric_release(metrics[i]);
}

/* Executors of two groups may have the same name. */
TEST(stats, have_a_row_for_each_executor)
{
    static const char *const groups[] = {"one", "two"};
    weir_metric *metrics[2] = {NULL};
    weir_ws_message *message;
    char text[128];

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(text, sizeof(text), "executor.pending{executor=\"same\",group=\"%s\"}",
                       groups[i]);
        assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, text, &metrics[i]), 0);
        (void)weir_metric_set(metrics[i], 70 + (int64_t)i);
    }
    message = weir__dashboard_stats_message();
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(text, sizeof(text),
                       "{\"name\":\"same\",\"group\":\"%s\",\"is_loop\":false,\"pending\":7%zu}",
                       groups[i], i);
        assert_message_contains(message, text);
        weir_metric_release(metrics[i]);
    }
    free_message(message);
}

TEST(messages, are_left_out_without_memory)
{
    weir_ws_message *message = NULL;

    for (unsigned n = 1; message == NULL; n++) {
        test_memory_fail_at(n);
        message = weir__dashboard_stats_message();
        assert_true(message != NULL || test_memory_failed());
    }
    test_memory_fail_at(0);
    free_message(message);
}

TEST(recent, replaces_and_drops_messages)
{
    weir__dashboard_recent recent = {.max = 3};

    for (uint64_t i = 1; i <= 5; i++) {
        weir_ws_message *message = weir__dashboard_notice_message("text");

        weir__dashboard_recent_add(&recent, i, message);
        free_message(message);
    }
    assert_int_equal(recent.count, 3);
    assert_int_equal(recent.numbers[0], 3);
    weir__dashboard_recent_add(&recent, 4, recent.messages[0]);
    assert_int_equal(recent.count, 3);
    assert_ptr_equal(recent.messages[1], recent.messages[0]);
    weir__dashboard_recent_deinit(&recent);
}
