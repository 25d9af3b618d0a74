/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads commands, one a line, sends them to a Redis server without waiting, and prints the replies
 * as they arrive: a pipelining redis-cli.
 *     redis-client [--redis 127.0.0.1:6379] [--io auto|epoll|uring|poll|blocking]
 *     redis-client --tls [--host 127.0.0.1] [--port 6379] [--ca FILE] [--insecure] [--io ...]
 *
 * After SUBSCRIBE or PSUBSCRIBE it listens until the server closes or it is interrupted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <weir/weir.h>

#include "support/settings.h"

#define WORDS_MAX 64

/* ---- printing, on the channel's loop ---- */

static void print_value(const weir_resp *value, int depth)
{
    weir_span text = weir_resp_text(value);

    switch (weir_resp_kind(value)) {
    case WEIR_RESP_NULL:
        puts("(nil)");
        break;
    case WEIR_RESP_INTEGER:
        printf("(integer) %lld\n", (long long)weir_resp_integer(value));
        break;
    case WEIR_RESP_BOOLEAN:
        puts(weir_resp_integer(value) ? "(true)" : "(false)");
        break;
    case WEIR_RESP_DOUBLE:
        printf("(double) %.17g\n", weir_resp_double(value));
        break;
    case WEIR_RESP_BULK:
        printf("\"%.*s\"\n", (int)text.length, (const char *)text.data);
        break;
    default:
        if (weir_resp_buf(value) != NULL)
            printf("%.*s\n", (int)text.length, (const char *)text.data);
        else if (weir_resp_count(value) == 0)
            puts("(empty)");
        for (size_t i = 0; i < weir_resp_count(value); i++) {
            printf("%*s%zu) ", i > 0 ? depth * 3 : 0, "", i + 1);
            print_value(weir_resp_at(value, i), depth + 1);
        }
    }
}

/* doc:begin reply */
static void on_reply(weir_promise *reply, void *user_data)
{
    int err = weir_promise_result(reply);

    (void)user_data;
    if (err)
        printf("(error) %s\n", weir_promise_detail(reply)); /* the server's text, or ours */
    else
        print_value(weir_promise_value(reply), 0);
    fflush(stdout);
}

static void on_push(weir_channel *channel, weir_resp *push, void *user_data)
{
    (void)channel;
    (void)user_data;
    print_value(push, 0);
    fflush(stdout);
}

static int init(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_redis_add(weir_channel_pipeline(channel), WEIR_REDIS_OPTIONS(.push = on_push));
}
/* doc:end */

/* ---- commands ---- */

static size_t split(char *line, weir_span *words)
{
    size_t count = 0;
    char *rest = NULL;

    for (char *word = strtok_r(line, " \t\r\n", &rest); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " \t\r\n", &rest))
        words[count++] = weir_span_of_text(word);
    return count;
}

static bool subscribes(weir_span word)
{
    return (word.length == 9 && strncasecmp((const char *)word.data, "subscribe", 9) == 0) ||
           (word.length == 10 && strncasecmp((const char *)word.data, "psubscribe", 10) == 0);
}

static int nothing(void *arg, int status, void **ret_value)
{
    (void)arg;
    (void)ret_value;
    return status;
}

/* The last reply is the last to come. Printing it is a matter of the loop: when that has done
 * something else for us, it has done that. */
static void await_last(weir_channel *channel, weir_promise *last)
{
    weir_promise *printed;

    (void)weir_promise_await(last, WEIR_NEVER);
    if (weir_submit(weir_channel_executor(channel), nothing, NULL, &printed) < 0)
        return;
    (void)weir_promise_await(printed, WEIR_NEVER);
    weir_promise_release(printed);
}

/* Sends all lines. */
static int talk(weir_channel *channel)
{
    weir_span words[WORDS_MAX];
    weir_promise *last = NULL;
    bool listens = false;
    char *line = NULL;
    size_t size = 0, count;
    int err = 0;

    while (!err && getline(&line, &size, stdin) >= 0) {
        count = split(line, words);
        if (count == 0)
            continue;
        listens = listens || subscribes(words[0]);
        weir_promise_release(last);
        last = NULL;
        err = weir_redis_command(channel, words, count, &last);
        if (!err)
            err = weir_promise_add_listener(last, on_reply, NULL);
    }
    free(line);
    if (!err && last != NULL)
        await_last(channel, last);
    weir_promise_release(last);
    return !err && listens ? weir_channel_await_closed(channel, WEIR_NEVER) : err;
}

int main(int argc, char **argv)
{
    const char *redis = settings_take(&argc, argv, "--redis");
    struct settings settings = settings_read_tls(argc, argv, "127.0.0.1", 6379);
    weir_group *group = NULL;
    weir_channel *channel = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = settings.io), &group);

    if (redis != NULL)
        (void)snprintf(settings.address, sizeof(settings.address), "%s", redis);
    if (!err)
        err = connect_to(&settings, group, init, NULL, &channel);
    if (!err)
        err = talk(channel);
    if (err)
        fprintf(stderr, "redis-client: %s: %s\n", settings.address, weir_error_text(err));
    weir_channel_release(channel);
    weir_group_release(group); /* joins its thread, which prints the last replies */
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
