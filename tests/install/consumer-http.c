/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same with HTTP: it fails unless a server can be started.
 */
#include <stdio.h>

#include <weir/http_server.h>

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_text(exchange, 200, "hello\n");
}

static const weir_http_route routes[] = {{.method = "GET", .path = "/", .handler = hello}, {0}};

int main(void)
{
    weir_http_server *server = NULL;
    int err = weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes, .threads = 1),
        &server);

    if (err < 0) {
        printf("no server: %d\n", err);
        return 1;
    }
    weir_http_server_release(server);
    return 0;
}
