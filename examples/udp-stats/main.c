/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A metrics server like statsd. Programs send lines, one or more per datagram:
 *
 *      hits:1|c        a counter: the values are added up
 *      load:0.7|g      a gauge: the last value holds
 *
 * Prints changed metrics every second, and all of them at the end, on SIGINT or SIGTERM.
 *     udp-stats [--port 8125] [--io auto|epoll|uring|poll]
 */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#include "support/settings.h"

#define METRICS_MAX 256
#define NAME_SIZE 64

struct metric {
    char name[NAME_SIZE];
    double value;
    bool has_changed;
};

/* The handler's state, used on one loop: no locks. */
struct stats {
    weir_timer timer;
    struct metric metrics[METRICS_MAX];
    size_t count;
    unsigned long refused; /* lines */
};

/* ---- metrics ---- */

static struct metric *find(struct stats *stats, const char *name)
{
    for (size_t i = 0; i < stats->count; i++)
        if (strcmp(stats->metrics[i].name, name) == 0)
            return &stats->metrics[i];
    if (stats->count == METRICS_MAX)
        return NULL;
    (void)snprintf(stats->metrics[stats->count].name, NAME_SIZE, "%s", name);
    return &stats->metrics[stats->count++];
}

static void take_line(struct stats *stats, const char *line)
{
    char name[NAME_SIZE], kind;
    double value;
    struct metric *metric = NULL;

    if (sscanf(line, "%63[^:]:%lf|%c", name, &value, &kind) == 3 && (kind == 'c' || kind == 'g'))
        metric = find(stats, name);
    if (metric == NULL) {
        stats->refused++;
        return;
    }
    metric->value = kind == 'c' ? metric->value + value : value;
    metric->has_changed = true;
}

static void print(struct stats *stats, bool everything)
{
    for (size_t i = 0; i < stats->count; i++) {
        struct metric *metric = &stats->metrics[i];

        if (everything || metric->has_changed)
            printf("%s %g\n", metric->name, metric->value);
        metric->has_changed = false;
    }
    (void)fflush(stdout);
}

/* ---- the handler ---- */

static void on_second(weir_ctx *ctx, weir_timer *timer)
{
    print(weir_ctx_state(ctx), false);
    (void)weir_ctx_timer_start(ctx, timer, weir_seconds(1), on_second);
}

static void on_active(weir_ctx *ctx)
{
    struct stats *stats = weir_ctx_state(ctx);

    (void)weir_ctx_timer_start(ctx, &stats->timer, weir_seconds(1), on_second);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    const weir_buf *buf = weir_datagram_buf(weir_datagram_of(msg));
    char text[2049], *line = text, *end; /* the longest datagram that comes by default, and a 0 */
    size_t length = weir_buf_readable(buf) < sizeof(text) ? weir_buf_readable(buf) : 0;

    memcpy(text, weir_buf_bytes(buf), length);
    text[length] = '\0';
    weir_msg_release(msg);
    for (; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        if (*end == '\n')
            *end++ = '\0';
        take_line(weir_ctx_state(ctx), line);
    }
}

static void on_inactive(weir_ctx *ctx)
{
    struct stats *stats = weir_ctx_state(ctx);

    printf("total:\n");
    print(stats, true);
    printf("%lu lines refused\n", stats->refused);
}

static const weir_handler stats_handler = {
    .name = "udp-stats",
    .state_size = sizeof(struct stats),
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
};

static int init_server(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &stats_handler, NULL);
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 8125);

    settings.threads = 1; /* one table for all */
    return serve_datagrams(&settings, init_server);
}
