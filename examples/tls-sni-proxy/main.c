/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One port for many TLS servers: relays each connection to the server of the name that the client
 * requests (support/relay.c). The proxy has no certificate and decrypts nothing.
 *     tls-sni-proxy --route NAME=HOST:PORT ... [--default HOST:PORT] [--port 8443]
 *                   [--io auto|epoll|uring|poll] [--threads N] [--boss-threads N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <weir/tls.h>
#include <weir/weir.h>

#include "support/relay.h"
#include "support/settings.h"

#define ROUTES_MAX 64

struct routes {
    struct {
        const char *name;
        char *target;
    } list[ROUTES_MAX];
    size_t count;
    char *otherwise; /* for other names and for none; NULL = refuse */
};

static char *find_target(const struct routes *routes, const char *name)
{
    for (size_t i = 0; i < routes->count; i++)
        if (strcasecmp(routes->list[i].name, name) == 0)
            return routes->list[i].target;
    return routes->otherwise;
}

/* doc:begin hello */
static int on_hello(weir_ctx *ctx, const weir_tls_hello *hello, void *routes)
{
    static const uint8_t unrecognized_name[] = {21, 3, 1, 0, 2, 2, 112}; /* a fatal alert */
    char *target = find_target(routes, hello->server_name);
    weir_buf *alert;

    if (target != NULL)
        return relay_init(weir_ctx_channel(ctx), target);
    fprintf(stderr, "tls-sni-proxy: no route for \"%s\"\n", hello->server_name);
    if (weir_buf_create_from(unrecognized_name, sizeof(unrecognized_name), &alert) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(alert), NULL);
    return WEIR_ENOHOST;
}

static int init_front(weir_channel *channel, void *routes)
{
    return weir_tls_hello_add(weir_channel_pipeline(channel),
                              WEIR_TLS_HELLO_OPTIONS(.on_hello = on_hello, .user_data = routes));
}
/* doc:end */

static bool read_route(struct routes *routes, char *text)
{
    char *target = strchr(text, '=');

    if (target == NULL || target == text || routes->count == ROUTES_MAX)
        return false;
    *target++ = '\0';
    routes->list[routes->count].name = text;
    routes->list[routes->count++].target = target;
    return true;
}

static void read_routes(int *argc, char **argv, struct routes *routes)
{
    char *text;

    routes->otherwise = settings_take(argc, argv, "--default");
    while ((text = settings_take(argc, argv, "--route")) != NULL) {
        if (read_route(routes, text))
            continue;
        fprintf(stderr, "tls-sni-proxy: --route NAME=HOST:PORT, at most %d times\n", ROUTES_MAX);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct routes routes = {.count = 0};
    struct settings settings;
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    int err;

    read_routes(&argc, argv, &routes);
    settings = settings_read(argc, argv, "0.0.0.0", 8443);
    err = settings_make_groups(&settings, &boss, &workers);
    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings.address,
                                .acceptors = settings.boss_threads, .init_child = init_front,
                                .user_data = &routes, .child_options = RELAY_OPTIONS),
            &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "tls-sni-proxy: %s\n", weir_error_text(err));
    weir_server_release(server);
    weir_group_release(workers);
    weir_group_release(boss);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
