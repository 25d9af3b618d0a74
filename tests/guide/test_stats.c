/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/17-stats.md shows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "guide/guide_fixture.h"

/* doc:begin print */
static void print_metric(const weir_metric_value *metric, void *to)
{
    if (metric->kind == WEIR_METRIC_HISTOGRAM)
        fprintf(to, "%s count %" PRIu64 ", median %" PRId64 ", 99%% below %" PRId64 "\n",
                metric->name, metric->summary.count, metric->summary.p50, metric->summary.p99);
    else
        fprintf(to, "%s %" PRId64 "\n", metric->name, metric->value);
}

static void print_metrics(FILE *to)
{
    weir_metrics_foreach(print_metric, to); /* on any thread, without blocking others */
}
/* doc:end */

/* doc:begin own */
static weir_metric *answers, *answer_ns; /* created once, at the start of the program */

static int make_metrics(void)
{
    int err = weir_metric_create(WEIR_METRIC_COUNTER, "shop.answers", &answers);

    if (!err)
        err = weir_metric_create(WEIR_METRIC_HISTOGRAM, "shop.answer_ns", &answer_ns);
    return err;
}

static void count_answer(int64_t took_ns)
{
    (void)weir_metric_add(answers, 1);
    (void)weir_metric_record(answer_ns, took_ns);
}
/* doc:end */

TEST(stats, metrics_are_printed)
{
    weir_group *loops = make_loops(1);
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    assert_non_null(to);
    assert_int_equal(make_metrics(), 0);
    count_answer(1000);
    print_metrics(to);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, "shop.answers 1\n"));
    assert_non_null(strstr(text, "shop.answer_ns count 1, median 1000, "));
    assert_non_null(strstr(text, "executor.tasks_run{group=\"weir\",loop=\"weir-1#"));
    assert_non_null(strstr(text, "loop.handles{group=\"weir\",loop=\"weir-1#"));
    free(text);
    weir_metric_release(answer_ns);
    weir_metric_release(answers);
    end_group(loops);
}

/* doc:begin loops */
static void print_loops(weir_group *loops, FILE *to)
{
    for (size_t i = 0; i < weir_group_count(loops); i++) {
        weir_executor *loop = weir_group_at(loops, i);
        weir_executor_stats tasks;
        weir_loop_stats io;

        weir_executor_read_stats(loop, &tasks);
        if (weir_loop_read_stats(loop, &io) < 0)
            continue; /* not an event loop */
        fprintf(to, "%s: busy %.0f %%, %" PRIu64 " descriptors, %.1f system calls a turn, ",
                weir_executor_name(loop), tasks.utilisation * 100, io.handles,
                io.turns > 0 ? (double)(io.waits + io.receives + io.sends) / (double)io.turns : 0);
        fprintf(to, "queue latency p99 %" PRId64 " ns\n", tasks.queue_latency_ns.p99);
    }
}
/* doc:end */

TEST(stats, of_loops)
{
    weir_group *loops = make_loops(1);
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    assert_non_null(to);
    print_loops(loops, to);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, "weir-1: busy 0 %, "));
    free(text);
    end_group(loops);
}

/* doc:begin log */
static void write_log(void *to, enum weir_log_level level, const char *subsystem,
                      const char *object, const char *message)
{
    fprintf(to, "%s %s/%s %s\n", weir_log_level_name(level), subsystem, object, message);
}
/* doc:end */

static int init_child(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

TEST(stats, log_messages)
{
    weir_group *loops = make_loops(1);
    weir_server *server = NULL;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    int err;

    assert_non_null(to);
    weir_log_set(write_log, to);
    err = weir_server_start(
        WEIR_SERVER_OPTIONS(.workers = loops, .address = "9.9.9", .init_child = init_child),
        &server);
    weir_log_set(NULL, NULL);
    assert_int_equal(err, -EINVAL);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, "ERROR bootstrap/9.9.9 "));
    free(text);
    end_group(loops);
}

/* doc:begin channels */
static void print_channels(FILE *to)
{
    weir_channel_stats all, tcp;

    weir_channel_read_stats(&all);
    fprintf(to, "%" PRIu64 " channels, %" PRIu64 " bytes in, %" PRIu64 " out\n", all.active,
            all.bytes_received, all.bytes_sent);
    if (weir_channel_read_stats_of("tcp", &tcp) == 0 && tcp.turned_away > 0)
        fprintf(to, "%" PRIu64 " clients were rejected: no descriptors\n", tcp.turned_away);
    if (all.errors.reset > all.closed / 100)
        fprintf(to, "more than 1 %% of the connections were reset by the peer\n");
}
/* doc:end */

static const weir_handler nothing = {.name = "nothing"};

TEST(stats, of_channels)
{
    weir_embedded *embedded = embed(&nothing, NULL);
    weir_channel_stats before, after;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    assert_non_null(to);
    weir_channel_read_stats(&before);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("12345")), 0);
    weir_channel_read_stats(&after);
    assert_int_equal(after.bytes_received - before.bytes_received, 5);
    print_channels(to);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, "1 channels, "));
    free(text);
    weir_embedded_release(embedded);
}
