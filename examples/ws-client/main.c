/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends each line of the standard input as a WebSocket message, and prints those that arrive, until
 * the input ends or the server closes.
 *     ws-client URL [--protocol NAME] [--deflate] [--ca FILE] [--insecure]
 *               [--io auto|epoll|uring|poll]
 *     ws-client ws://localhost:8080/
 *
 * Exit status: 0 after a closing handshake, 1 if the connection failed or was lost.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/websocket.h>
#include <weir/weir.h>

#include "support/settings.h"
#include "support/tls.h"

static bool is_clean; /* written before the channel is closed */

/* ---- on the channel's loop ---- */

static void on_message(weir_ctx *ctx, weir_msg *msg)
{
    const weir_ws_message *message = weir_ws_message_of(msg);
    weir_span bytes = weir_ws_message_bytes(message);

    (void)ctx;
    if (weir_ws_message_type(message) == WEIR_WS_TEXT)
        printf("%.*s\n", (int)bytes.length, (const char *)bytes.data);
    else
        printf("(%zu bytes)\n", bytes.length);
    fflush(stdout);
    weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_ws_closed *closed = weir_ws_closed_of(event);

    if (closed != NULL) {
        fprintf(stderr, "ws-client: closed: %u %s\n", closed->code, closed->reason);
        is_clean = closed->is_clean;
    }
    weir_fire_event(ctx, event);
}

static const weir_handler print = {
    .name = "print",
    .read = on_message,
    .event = on_event,
};

static int add_print(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &print, NULL);
}

/* ---- sending ---- */

/* Waits for the message to be sent if many are queued. */
static int send_line(weir_channel *channel, const char *line)
{
    weir_promise *sent = NULL;
    int err = 0;

    if (!weir_channel_is_writable(channel))
        err = weir_promise_create(weir_channel_executor(channel), &sent);
    if (err)
        return err;
    weir_ws_send_text(channel, line, sent);
    if (sent != NULL)
        err = weir_promise_sync(sent, WEIR_NEVER);
    weir_promise_release(sent);
    return err;
}

struct input {
    char *text;
    size_t size, length;
    size_t taken; /* the line returned last */
};

static bool enlarge(struct input *input)
{
    char *text = realloc(input->text, input->size * 2);

    if (text == NULL)
        return false;
    input->text = text;
    input->size *= 2;
    return true;
}

/*
 * The next line of the standard input, without its end; NULL if there is none. Not by stdio: since
 * glibc 2.41 exit(3) waits for a thread that is waiting for input there.
 */
static char *next_line(struct input *input)
{
    ssize_t more = 1;
    char *end = NULL;

    input->length -= input->taken;
    memmove(input->text, input->text + input->taken, input->length);
    input->taken = 0;
    while (more > 0 && (end = memchr(input->text, '\n', input->length)) == NULL) {
        if (input->length + 1 == input->size && !enlarge(input))
            return NULL;
        do
            more = read(STDIN_FILENO, input->text + input->length, input->size - input->length - 1);
        while (more < 0 && errno == EINTR);
        input->length += more > 0 ? (size_t)more : 0;
    }
    if (end == NULL && input->length == 0)
        return NULL;
    if (end == NULL)
        end = input->text + input->length++; /* the last line need not have one */
    *end = '\0';
    input->taken = (size_t)(end - input->text) + 1;
    return input->text;
}

/* A thread: reads until the end of the input, which closes. Has a reference to the channel. */
static void *read_input(void *arg)
{
    weir_channel *channel = arg;
    struct input input = {.text = malloc(4096), .size = 4096};
    char *line;

    while (input.text != NULL && (line = next_line(&input)) != NULL &&
           send_line(channel, line) >= 0)
        continue;
    free(input.text);
    weir_ws_close(channel, WEIR_WS_NORMAL, NULL, NULL);
    weir_channel_release(channel);
    return NULL;
}

static int talk(weir_channel *channel)
{
    pthread_t thread;
    int err = -pthread_create(&thread, NULL, read_input, weir_channel_retain(channel));

    if (err < 0) {
        weir_channel_release(channel);
        return err;
    }
    pthread_detach(thread); /* it may wait for input until the program ends */
    err = weir_channel_await_closed(channel, WEIR_NEVER);
    return err ? err : is_clean ? 0 : WEIR_ECLOSED;
}

static int connect_to_url(const weir_ws_client_options *options, weir_channel **ret_channel)
{
    weir_promise *done;
    int err = weir_promise_create(weir_executor_global(), &done);

    if (err)
        return err;
    err = weir_ws_connect(options, done); /* a failure has been logged */
    if (!err) {
        err = weir_promise_sync(done, WEIR_NEVER);
        if (err)
            fprintf(stderr, "ws-client: %s\n", weir_promise_detail(done));
    }
    if (!err)
        *ret_channel = weir_channel_retain(weir_promise_value(done));
    weir_promise_release(done);
    return err;
}

/* Removes the URL from the arguments; NULL if there is none. */
static const char *take_url(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        char *url = argv[i];

        if (strstr(url, "://") != NULL) {
            memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof(*argv));
            --*argc;
            return url;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *url = take_url(&argc, argv);
    const char *protocols[] = {settings_take(&argc, argv, "--protocol"), NULL};
    bool deflate = settings_take_switch(&argc, argv, "--deflate");
    struct settings settings = settings_read_tls(argc, argv, "127.0.0.1", 8080);
    weir_tls_context *tls = NULL;
    weir_group *group = NULL;
    weir_channel *channel = NULL;
    int err;

    if (url == NULL) {
        fprintf(stderr, "ws-client: expected a URL, such as ws://localhost:8080/\n");
        return 2;
    }
    settings.tls = strncmp(url, "wss:", 4) == 0;
    err = tls_make_client(&settings, &tls);
    if (!err)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = settings.io), &group);
    if (!err)
        err = connect_to_url(
            WEIR_WS_CLIENT_OPTIONS(.url = url, .group = group, .tls = tls,
                                   .add_tls = tls != NULL ? tls_add_client : NULL,
                                   .ws = WEIR_WS_OPTIONS(.init = add_print, .protocols = protocols,
                                                         .deflate = deflate)),
            &channel);
    if (!err)
        err = talk(channel);
    weir_channel_release(channel);
    weir_group_release(group);
    tls_release(tls);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
