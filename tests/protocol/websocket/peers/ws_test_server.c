/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ws-test-server [OPTIONS]: what real clients and browsers talk to. Prints `listening on
 * ADDRESS:PORT` for the plain port and, with --cert, for one with TLS; drains on SIGTERM.
 *
 *      --io NAME                of its group
 *      --cert FILE --key FILE   for TLS
 *      --probe                  starts and ends
 *
 *      /echo      with permessage-deflate
 *      /small     the same with the smallest window, each message by itself
 *      /plain     without
 *      /stream    with it, in parts as they arrive
 *      /          an empty page, for browsers
 *
 * Messages are echoed, except the texts "close CODE REASON", which closes, and "ping", which is
 * answered by a ping, and its pong by "pong".
 */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/http_server.h>
#include <weir/websocket.h>
#ifdef WEIR_TEST_TLS
#include <weir/tls.h>
#endif

/* ---- the application ---- */

/* True if it was a command. */
static bool obey(weir_ctx *ctx, weir_span bytes)
{
    char text[256], reason[124] = "";
    weir_ws_message *ping;
    unsigned code;

    if (bytes.length >= sizeof(text))
        return false;
    memcpy(text, bytes.data, bytes.length);
    text[bytes.length] = '\0';
    if (strcmp(text, "ping") == 0 &&
        weir_ws_message_create_from(WEIR_WS_PING, "?", 1, &ping) == 0) {
        weir_write_and_flush(ctx, weir_ws_message_msg(ping), NULL);
        return true;
    }
    if (sscanf(text, "close %u %123[^\n]", &code, reason) < 1)
        return false;
    (void)weir_ws_close(weir_ctx_channel(ctx), code, reason, NULL);
    return true;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_ws_message *message = weir_ws_message_of(msg);
    enum weir_ws_type type = weir_ws_message_type(message);

    if (type == WEIR_WS_PONG)
        weir_ws_write_text(ctx, "pong", NULL);
    if (type == WEIR_WS_PONG || type == WEIR_WS_PING ||
        (type == WEIR_WS_TEXT && obey(ctx, weir_ws_message_bytes(message))))
        weir_msg_release(msg);
    else
        weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo = {.name = "echo", .read = on_read};

static int add_echo(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

/* ---- routes ---- */

static void open_socket(weir_http_exchange *exchange, void *user_data)
{
    static const char *const protocols[] = {"chat", NULL};
    weir_ws_options options = *(const weir_ws_options *)user_data;

    options.init = add_echo;
    options.protocols = protocols;
    options.control_frames = true;
    (void)weir_ws_accept(exchange, &options);
}

static void show_page(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_headers_set_text(weir_http_exchange_headers(exchange), WEIR_HTTP_CONTENT_TYPE,
                                     "text/html");
    (void)weir_http_respond_text(exchange, 200, "<!doctype html><title>test</title>");
}

static weir_ws_options with_deflate = {.size = sizeof(weir_ws_options), .deflate = true};
static weir_ws_options small = {.size = sizeof(weir_ws_options),
                                .deflate = true,
                                .deflate_window_bits = 9,
                                .inflate_window_bits = 9,
                                .no_context_takeover = true,
                                .deflate_min = 1};
static weir_ws_options plain = {.size = sizeof(weir_ws_options)};
static weir_ws_options streamed = {
    .size = sizeof(weir_ws_options), .deflate = true, .stream = true};

static const weir_http_route routes[] = {{"GET", "/echo", open_socket, &with_deflate},
                                         {"GET", "/small", open_socket, &small},
                                         {"GET", "/plain", open_socket, &plain},
                                         {"GET", "/stream", open_socket, &streamed},
                                         {"GET", "/", show_page},
                                         {0}};

/* ---- the program ---- */

static enum weir_io io_named(const char *name)
{
    static const char *const names[] = {[WEIR_IO_AUTO] = "auto",
                                        [WEIR_IO_EPOLL] = "epoll",
                                        [WEIR_IO_URING] = "uring",
                                        [WEIR_IO_POLL] = "poll",
                                        [WEIR_IO_BLOCKING] = "blocking"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i] != NULL && strcmp(names[i], name) == 0)
            return (enum weir_io)i;
    (void)fprintf(stderr, "ws-test-server: unknown --io %s\n", name);
    exit(2);
}

static void print_addresses(weir_server *server)
{
    weir_address address;
    char text[WEIR_ADDRESS_TEXT_SIZE];

    for (size_t i = 0; i < weir_server_listener_count(server); i++)
        if (weir_channel_local_address(weir_server_listener(server, i), &address) == 0)
            printf("listening on %s\n", weir_address_format(&address, text, sizeof(text)));
    (void)fflush(stdout);
}

static void hold_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int serve(const weir_http_server_options *options, bool is_probe)
{
    weir_http_server *server;
    int err;

    hold_signals();
    err = weir_http_server_start(options, &server);
    if (err != 0)
        return err;
    if (!is_probe) {
        print_addresses(weir_http_server_server(server));
        err = weir_http_server_run(server);
    }
    weir_http_server_release(server);
    return err;
}

static int add_tls(weir_http_server_options *options, const char *cert, const char *key)
{
#ifdef WEIR_TEST_TLS
    options->tls_address = "127.0.0.1:0";
    options->add_tls = weir_tls_add;
    return weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = cert, .key_file = key), &options->tls);
#else
    (void)options;
    (void)cert;
    (void)key;
    return -ENOTSUP;
#endif
}

int main(int argc, char **argv)
{
    static const struct option arguments[] = {{"io", required_argument, NULL, 'i'},
                                              {"cert", required_argument, NULL, 'c'},
                                              {"key", required_argument, NULL, 'k'},
                                              {"probe", no_argument, NULL, 'p'},
                                              {0}};
    weir_http_server_options options =
        *WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes, .threads = 1);
    const char *cert = NULL, *key = NULL;
    bool is_probe = false;
    int option, err = 0;

    while ((option = getopt_long(argc, argv, "", arguments, NULL)) != -1) {
        switch (option) {
        case 'i':
            options.io = io_named(optarg);
            break;
        case 'c':
            cert = optarg;
            break;
        case 'k':
            key = optarg;
            break;
        case 'p':
            is_probe = true;
            break;
        default:
            return 2;
        }
    }
    if (cert != NULL)
        err = add_tls(&options, cert, key);
    if (err == 0)
        err = serve(&options, is_probe);
#ifdef WEIR_TEST_TLS
    weir_tls_context_release(options.tls);
#endif
    if (err != 0)
        (void)fprintf(stderr, "ws-test-server: %s\n", weir_error_text(err));
    return err == 0 ? 0 : 1;
}
