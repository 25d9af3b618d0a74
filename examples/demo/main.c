/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server to point a browser, a client or a test suite at, until SIGINT or SIGTERM.
 *     demo [--address 127.0.0.1] [--port 8080] [--tls-port 8443] [--echo-port 8007]
 *          [--client-ca FILE [--mtls-port 8444]] [--cert FILE] [--key FILE] [--files FOLDER]
 *          [--io auto|epoll|uring|poll|blocking] [--threads N] [--boss-threads N] [--token TOKEN]
 *          [--no-watchdog]
 * HTTP on --port and, with TLS, on --tls-port and --mtls-port, which demands client certificates:
 *     GET /hello, POST /echo, GET /files/..., GET /sse, GET /metrics, a WebSocket at /ws, and the
 *     live page at /weir/, which needs --token, or a random one, unless the address is a loopback
 * TCP on --echo-port: everything back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/dashboard.h>
#include <weir/http_files.h>
#include <weir/http_metrics.h>
#include <weir/weir.h>

#include "demo/body_echo.h"
#include "demo/ticks.h"
#include "demo/ws_echo.h"
#include "support/http.h"
#include "support/tls.h"

#define ROUTES_MAX 16

struct demo {
    struct settings settings;
    int tls_port, mtls_port, echo_port;
    const char *client_ca; /* NULL = no port that demands client certificates */
    const char *files;     /* the folder of /files/; default "docs", if there is one */
    const char *token;     /* of the live page; NULL = none, or random */
    bool has_no_watchdog;
    weir_http_route routes[ROUTES_MAX];
    weir_group *boss, *workers;
    weir_group *offload; /* where handlers that block are moved to, on request of a visitor */
    weir_tls_context *tls, *mutual;
    weir_http_files_root *root;     /* NULL = no such folder */
    weir_http_server *http, *https; /* HTTP and HTTPS; with client certificates */
    weir_server *echo;
};

/* ---- TCP ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

static const weir_handler echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
};

static int add_echo(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

/* ---- routes ---- */

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_text(exchange, 200, "Hello, World!\n");
}

static void show_dashboard(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_redirect(exchange, 302, "/weir/");
}

static void have_no_files(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_error(exchange, 404, "The demo was started without --files FOLDER.\n");
}

static int open_files(struct demo *demo)
{
    int err;

    if (demo->files == NULL && access("docs", X_OK) != 0)
        return 0;
    if (demo->files == NULL)
        demo->files = "docs";
    err = weir_http_files_root_create(WEIR_HTTP_FILES_OPTIONS(.root = demo->files, .listing = true),
                                      &demo->root);
    if (err)
        fprintf(stderr, "demo: %s: %s\n", demo->files, weir_error_text(err));
    return err;
}

static void make_routes(struct demo *demo)
{
    const weir_http_route routes[] = {
        WEIR_HTTP_ROUTE("GET", "/", show_dashboard),
        WEIR_HTTP_ROUTE("GET", "/hello", hello),
        WEIR_HTTP_ROUTE("POST", "/echo", echo_body, .streaming = true),
        WEIR_HTTP_ROUTE("GET", "/files/{path*}",
                        demo->root != NULL ? weir_http_files : have_no_files,
                        .user_data = demo->root),
        WEIR_HTTP_ROUTE("GET", "/sse", send_ticks),
        WEIR_HTTP_ROUTE("GET", "/ws", open_ws_echo),
        WEIR_HTTP_ROUTE("GET", "/metrics", weir_metrics_route),
        WEIR_HTTP_ROUTES_END};

    _Static_assert(sizeof(routes) <= sizeof(demo->routes), "ROUTES_MAX");
    memcpy(demo->routes, routes, sizeof(routes));
}

/* ---- starting ---- */

static struct demo read_options(int argc, char **argv)
{
    const char *address = settings_take(&argc, argv, "--address");
    struct demo demo = {
        .tls_port = settings_take_port(&argc, argv, "--tls-port", 8443),
        .mtls_port = settings_take_port(&argc, argv, "--mtls-port", 8444),
        .echo_port = settings_take_port(&argc, argv, "--echo-port", 8007),
        .client_ca = settings_take(&argc, argv, "--client-ca"),
        .files = settings_take(&argc, argv, "--files"),
        .token = settings_take(&argc, argv, "--token"),
        .has_no_watchdog = settings_take_switch(&argc, argv, "--no-watchdog"),
    };
    const char *cert = settings_take(&argc, argv, "--cert");
    const char *key = settings_take(&argc, argv, "--key");

    demo.settings = settings_read(argc, argv, address != NULL ? address : "127.0.0.1", 8080);
    demo.settings.tls = tls_is_available();
    demo.settings.cert = cert;
    demo.settings.key = key;
    return demo;
}

static int make_contexts(struct demo *demo)
{
    struct settings mutual = demo->settings;
    int err = tls_make_server(&demo->settings, &demo->tls);

    mutual.ca = demo->client_ca;
    if (!err && demo->client_ca != NULL)
        err = tls_make_server(&mutual, &demo->mutual);
    return err;
}

static int start_http(struct demo *demo)
{
    char tls_address[WEIR_ADDRESS_TEXT_SIZE];

    settings_format_address(&demo->settings, demo->tls_port, tls_address);
    return weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.address = demo->settings.address,
                                 .tls_address = demo->tls != NULL ? tls_address : NULL,
                                 .tls = demo->tls, .add_tls = tls_add, .routes = demo->routes,
                                 .boss = demo->boss, .workers = demo->workers,
                                 .acceptors = demo->settings.boss_threads),
        &demo->http);
}

static int start_mutual(struct demo *demo)
{
    char address[WEIR_ADDRESS_TEXT_SIZE];

    settings_format_address(&demo->settings, demo->mtls_port, address);
    return weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.tls_address = address, .tls = demo->mutual, .add_tls = tls_add,
                                 .routes = demo->routes, .boss = demo->boss,
                                 .workers = demo->workers,
                                 .acceptors = demo->settings.boss_threads),
        &demo->https);
}

static int start_echo(struct demo *demo)
{
    char address[WEIR_ADDRESS_TEXT_SIZE];

    settings_format_address(&demo->settings, demo->echo_port, address);
    return weir_server_start(
        WEIR_SERVER_OPTIONS(.boss = demo->boss, .workers = demo->workers, .address = address,
                            .acceptors = demo->settings.boss_threads, .init_child = add_echo),
        &demo->echo);
}

static int add_dashboard(const struct demo *demo, weir_http_server *server)
{
    return weir_dashboard_add(server,
                              WEIR_DASHBOARD_OPTIONS(.token = demo->token, .chat = true,
                                                     .can_block = true, .offload = demo->offload));
}

/* The servers share their loops. The one that runs closes its listeners first, and then drains all
 * connections: the others must not accept any more by then. */
static void close_others(weir_promise *closed, void *user_data)
{
    struct demo *demo = user_data;

    (void)closed;
    weir_server_close(demo->echo);
    if (demo->https != NULL)
        weir_server_close(weir_http_server_server(demo->https));
}

static int start(struct demo *demo)
{
    weir_promise *closed;
    int err = make_contexts(demo);

    weir_loops_begin_timing(); /* so that quiet loops have turn times in /metrics, too */
    if (!err && !demo->has_no_watchdog)
        err = weir_watchdog_start(NULL);
    if (!err)
        err = open_files(demo);
    if (!err)
        err = settings_make_groups(&demo->settings, &demo->boss, &demo->workers);
    if (!err)
        err = weir_group_create(
            WEIR_GROUP_OPTIONS(.name = "offload", .io = WEIR_IO_NONE, .threads = 2),
            &demo->offload);
    make_routes(demo);
    if (!err)
        err = start_http(demo);
    if (!err)
        err = add_dashboard(demo, demo->http);
    if (!err)
        err = start_echo(demo);
    if (!err && demo->mutual != NULL)
        err = start_mutual(demo);
    if (!err && demo->mutual != NULL)
        err = add_dashboard(demo, demo->https);
    if (err)
        return err;
    closed = weir_channel_closed(weir_server_listener(weir_http_server_server(demo->http), 0));
    return closed != NULL ? weir_promise_add_listener(closed, close_others, demo) : -ENOMEM;
}

/* ---- running ---- */

/* An address of a server, as a client on this machine writes it. */
static const char *client_address(const struct demo *demo, weir_server *server, int index,
                                  char buffer[WEIR_ADDRESS_TEXT_SIZE])
{
    const char *host = demo->settings.host;
    weir_address address;
    weir_channel *listener;
    size_t i = 0;

    while ((listener = weir_server_listener(server, i)) != NULL &&
           weir_server_address_index(listener) != index)
        i++;
    if (listener == NULL || weir_channel_local_address(listener, &address))
        return "?";
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        (void)snprintf(buffer, WEIR_ADDRESS_TEXT_SIZE, "localhost:%d", weir_address_port(&address));
    else
        weir_address_format(&address, buffer, WEIR_ADDRESS_TEXT_SIZE);
    return buffer;
}

/* Of a path, up to its last "/": examples are in one folder. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? (int)(slash - path) + 1 : 0;
}

/* The live page of a server, with the token if there is one. */
static void print_page(const weir_http_server *server)
{
    char url[256];

    if (weir_dashboard_format_url(server, url, sizeof(url)) > 0)
        printf("  %s  live page\n", url);
}

static void print_guide(const struct demo *demo)
{
    char buffer[WEIR_ADDRESS_TEXT_SIZE], other[WEIR_ADDRESS_TEXT_SIZE];
    weir_server *server = weir_http_server_server(demo->http);
    const char *http = client_address(demo, server, 0, buffer);

    printf("\n");
    print_page(demo->http);
    printf("  %.*stop http://%s  the same in a terminal\n", folder_length(demo->settings.program),
           demo->settings.program, http);
    printf("  curl http://%s/hello\n", http);
    printf("  curl --data-binary @FILE http://%s/echo\n", http);
    printf("  curl --no-buffer http://%s/sse\n", http);
    printf("  curl http://%s/metrics\n", http);
    if (demo->root != NULL)
        printf("  curl http://%s/files/  %s\n", http, demo->files);
    printf("  ws://%s/ws  WebSocket echo\n", http);
    if (demo->tls != NULL)
        printf("  curl --insecure https://%s/hello  the same with TLS\n",
               client_address(demo, server, 1, other));
    if (demo->https != NULL) {
        printf("  curl --insecure --cert CERT --key KEY https://%s/hello\n",
               client_address(demo, weir_http_server_server(demo->https), 0, other));
        print_page(demo->https);
    }
    printf("  TCP echo on %s\n\n", client_address(demo, demo->echo, 0, other));
    printf("Ctrl-C stops it.\n");
    fflush(stdout);
}

static void print_addresses(const struct demo *demo)
{
    print_address(weir_http_server_server(demo->http));
    print_address(demo->echo);
    if (demo->https != NULL)
        print_address(weir_http_server_server(demo->https));
    print_guide(demo);
}

static void stop(struct demo *demo)
{
    weir_watchdog_stop();
    weir_loops_end_timing();
    weir_http_server_release(demo->https); /* NULL is ignored, here and below */
    weir_http_server_release(demo->http);
    weir_server_release(demo->echo);
    weir_group_release(demo->workers);
    weir_group_release(demo->boss);
    weir_group_release(demo->offload);
    weir_http_files_root_release(demo->root);
    tls_release(demo->mutual);
    tls_release(demo->tls);
}

int main(int argc, char **argv)
{
    struct demo demo = read_options(argc, argv);
    int err = start(&demo);

    if (!err) {
        print_addresses(&demo);
        err = weir_http_server_run(demo.http);
    }
    if (err)
        fprintf(stderr, "demo: %s\n", weir_error_text(err));
    stop(&demo);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
