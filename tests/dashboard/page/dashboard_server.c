/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dashboard-server THREADS [TOKEN [PORT]]: a server with a dashboard, which a browser visits.
 * Prints the URL; ends at the end of its standard input. An empty token is none.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/clock.h>
#include <weir/dashboard.h>
#include <weir/log.h>
#include <weir/loop.h>
#include <weir/watchdog.h>

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond_text(exchange, 200, "Hello, World!\n");
}

static int serve(weir_http_server *server)
{
    char url[256];

    (void)weir_dashboard_format_url(server, url, sizeof(url));
    (void)printf("%s\n", url);
    (void)fflush(stdout);
    while (getchar() != EOF)
        ;
    return weir_http_server_stop(server, weir_seconds(5));
}

int main(int argc, char **argv)
{
    static const weir_http_route routes[] = {{"GET", "/hello", hello}, {0}};
    const char *token = argc > 2 && argv[2][0] != '\0' ? argv[2] : NULL;
    weir_http_server *server = NULL;
    weir_group *offload = NULL;
    char address[32];
    int err;

    (void)snprintf(address, sizeof(address), "127.0.0.1:%s", argc > 3 ? argv[3] : "0");
    weir_log_set_level(WEIR_LOG_INFO);
    err = weir_watchdog_start(NULL);
    if (err == 0)
        err = weir_group_create(
            WEIR_GROUP_OPTIONS(.threads = 2, .io = WEIR_IO_NONE, .name = "blocking"), &offload);
    if (err == 0)
        err = weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = address, .routes = routes,
                                     .threads = argc > 1 ? atoi(argv[1]) : 4),
            &server);
    if (err == 0)
        err = weir_dashboard_add(
            server, WEIR_DASHBOARD_OPTIONS(.title = "shop", .chat = true, .can_block = true,
                                           .offload = offload, .token = token));
    if (err == 0)
        err = serve(server);
    weir_http_server_release(server);
    weir_watchdog_stop();
    if (offload != NULL) {
        (void)weir_group_shutdown(offload, 0, weir_seconds(5));
        (void)weir_group_await_termination(offload, weir_seconds(5));
    }
    weir_group_release(offload);
    return err == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
