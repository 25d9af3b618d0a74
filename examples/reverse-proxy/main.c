/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP reverse proxy: keeps connections to its upstreams, tells them about the client (Forwarded,
 * X-Forwarded-For), and avoids upstreams that fail.
 *     reverse-proxy --upstream ADDRESS:PORT [--upstream ...] [--port 8080]
 *                   [--balance least|round] [--check-interval MS] [--check-path /] [--fall N]
 *                   [--rise N] [--timeout MS] [--keep-alive N] [--proxy-protocol] [--trust NETWORK
 * ...]
 *                   [--tls] [--cert FILE] [--key FILE] [--io auto|epoll|uring|poll]
 *                   [--threads N] [--boss-threads N]
 *
 * weir_http_forward forwards, forward.c repeats at other upstreams, support/upstream.c chooses,
 * health.c checks. Any number of connections to an upstream may be in use; --keep-alive is the
 * number of idle ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http_client.h>
#include <weir/http_server.h>
#include <weir/http_uri.h>

#include "forward.h"
#include "health.h"
#include "support/settings.h"
#include "support/tls.h"

struct options {
    int timeout_ms;
    int keep_alive; /* idle connections to each upstream, per loop */
    bool proxy_protocol;
    const char *trusted[UPSTREAMS_MAX]; /* networks of proxies in front; NULL-terminated */
};

/* ---- options ---- */

/* "127.0.0.1:8080" or "http://127.0.0.1:8080/": false if it is neither. */
static bool make_origin(const char *text, char *origin, size_t size)
{
    weir_http_uri uri;
    int length = snprintf(origin, size, strstr(text, "://") != NULL ? "%s" : "http://%s", text);

    if (length < 0 || (size_t)length >= size ||
        weir_http_uri_parse(weir_span_of_text(origin), &uri) < 0)
        return false;
    if (uri.path.length > 1 || uri.query.data != NULL || uri.fragment.data != NULL ||
        uri.userinfo.data != NULL || uri.host.length == 0 || strncmp(origin, "http://", 7) != 0)
        return false;
    origin[(size_t)length - uri.path.length] = '\0';
    return true;
}

static void take_upstreams(int *argc, char **argv, struct upstreams *upstreams)
{
    static char origins[UPSTREAMS_MAX][256];
    const char *address;

    while ((address = settings_take(argc, argv, "--upstream")) != NULL) {
        if (upstreams->count == UPSTREAMS_MAX)
            settings_refuse(argv[0], "--upstream", "more than 64 of them");
        if (!make_origin(address, origins[upstreams->count], sizeof(origins[0]))) {
            fprintf(stderr,
                    "%s: \"%s\" is not an upstream: expected 127.0.0.1:8080, [::1]:8080, "
                    "name:8080 or http://name:8080\n",
                    argv[0], address);
            exit(2);
        }
        (void)upstreams_add(upstreams, origins[upstreams->count]);
    }
}

static struct options take_options(int *argc, char **argv, struct forwarder *forwarder,
                                   struct health *health)
{
    static const char *const policies[] = {"least", "round", NULL};
    struct options options;

    take_upstreams(argc, argv, &forwarder->upstreams);
    forwarder->upstreams.balance = (enum balance)settings_take_word(
        argc, argv, "--balance", policies, BALANCE_LEAST_CONNECTIONS);
    health->interval_ns = weir_ms(settings_take_number(argc, argv, "--check-interval", 2000));
    health->path = settings_take(argc, argv, "--check-path");
    health->fall = settings_take_number(argc, argv, "--fall", 3);
    health->rise = settings_take_number(argc, argv, "--rise", 2);
    options.timeout_ms = settings_take_number(argc, argv, "--timeout", 60000);
    options.keep_alive = settings_take_number(argc, argv, "--keep-alive", 256);
    memset(options.trusted, 0, sizeof(options.trusted));
    for (size_t i = 0; i + 1 < UPSTREAMS_MAX; i++)
        options.trusted[i] = settings_take(argc, argv, "--trust");
    options.proxy_protocol = settings_take_switch(argc, argv, "--proxy-protocol");
    if (health->path == NULL)
        health->path = "/";
    health->upstreams = &forwarder->upstreams;
    forwarder->fall = health->fall;
    return options;
}

/* ---- clients ---- */

/* The event loops of the server: so each request stays on its loop. */
static int create_client(const struct options *options, weir_group *workers,
                         weir_http_client **ret_client)
{
    return weir_http_client_create(
        WEIR_HTTP_CLIENT_OPTIONS(.group = workers, .max_connections = WEIR_OFF,
                                 .max_idle = options->keep_alive,
                                 .connect_timeout_ns = weir_ms(options->timeout_ms),
                                 .head_timeout_ns = weir_ms(options->timeout_ms),
                                 .progress_timeout_ns = weir_ms(options->timeout_ms),
                                 .max_redirects = WEIR_OFF, .user_agent = "",
                                 .no_decompression = true),
        ret_client);
}

static int start_checks(struct health *health, int timeout_ms, weir_group *group)
{
    int err = weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.group = group,
                                                               .timeout_ns = weir_ms(timeout_ms),
                                                               .user_agent = "weir-health-check"),
                                      &health->client);

    health->loop = weir_group_at(group, 0);
    return err ? err : health_start(health);
}

/* ---- serving ---- */

static int serve_http(const struct settings *settings, const struct options *options,
                      struct forwarder *forwarder, weir_tls_context *tls, weir_group *boss,
                      weir_group *workers)
{
    const weir_http_route routes[] = {{.method = "*",
                                       .path = "/{path*}",
                                       .handler = forward,
                                       .user_data = forwarder,
                                       .streaming = true,
                                       .encoded_slashes = true}, /* the target is passed on as is */
                                      {.method = NULL}};
    weir_http_server *server = NULL;
    int err = weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.address = tls == NULL ? settings->address : NULL,
                                 .tls_address = tls != NULL ? settings->address : NULL, .tls = tls,
                                 .add_tls = tls != NULL ? tls_add : NULL, .routes = routes,
                                 .boss = boss, .workers = workers,
                                 .acceptors = settings->boss_threads,
                                 .proxy_protocol = options->proxy_protocol,
                                 .trusted_proxies = options->trusted,
                                 .init_connection = forward_init_connection),
        &server);

    if (!err) {
        print_address(weir_http_server_server(server));
        err = weir_http_server_run(server);
    }
    weir_http_server_release(server);
    return err;
}

int main(int argc, char **argv)
{
    static struct forwarder forwarder;
    static struct health health;
    struct options options = take_options(&argc, argv, &forwarder, &health);
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8080);
    weir_group *boss = NULL, *workers = NULL, *checkers = NULL;
    weir_tls_context *tls = NULL;
    int err;

    if (forwarder.upstreams.count == 0) {
        fprintf(stderr, "reverse-proxy: missing --upstream ADDRESS:PORT\n");
        return 2;
    }
    weir_log_set_level(WEIR_LOG_INFO); /* logs upstreams that go up and down */
    err = settings_make_groups(&settings, &boss, &workers);
    if (!err)
        err = tls_make_server(&settings, &tls);
    if (!err)
        err = create_client(&options, workers, &forwarder.client);
    if (!err)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "health"), &checkers);
    if (!err)
        err = start_checks(&health, options.timeout_ms, checkers);
    if (!err)
        err = serve_http(&settings, &options, &forwarder, tls, boss, workers);
    if (err)
        fprintf(stderr, "reverse-proxy: %s\n", weir_error_text(err));
    weir_http_client_release(forwarder.client);
    weir_http_client_release(health.client);
    if (checkers != NULL) {
        (void)weir_group_shutdown(checkers, 0, weir_seconds(5));
        (void)weir_group_await_termination(checkers, weir_seconds(5));
    }
    weir_group_release(checkers);
    weir_group_release(workers);
    weir_group_release(boss);
    tls_release(tls);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
