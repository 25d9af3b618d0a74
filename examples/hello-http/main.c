/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server that says hello, until SIGINT or SIGTERM.
 *     hello-http [--port 8080] [--io auto|epoll|uring|poll|blocking] [--threads N]
 *          [--boss-threads N] [--adaptive] [--tls] [--cert FILE] [--key FILE]
 */
#include "support/http.h"

/* doc:begin hello */
static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_text(exchange, 200, "Hello, World!\n");
}

static void greet(weir_http_exchange *exchange, void *user_data)
{
    weir_span name = weir_http_exchange_parameter(exchange, "name");

    (void)user_data;
    weir_http_respond_bytes(exchange, 200, "text/plain; charset=utf-8", name.data, name.length);
}

static const weir_http_route routes[] = {WEIR_HTTP_ROUTE("GET", "/", hello),
                                         WEIR_HTTP_ROUTE("GET", "/hello/{name}", greet),
                                         WEIR_HTTP_ROUTES_END};

int main(int argc, char **argv)
{
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8080);
    weir_http_server *server = NULL;
    int err = http_start(&settings, WEIR_HTTP_SERVER_OPTIONS(.routes = routes), &server);

    if (!err)
        err = weir_http_server_run(server); /* until SIGINT or SIGTERM; then drains */
    weir_http_server_release(server);
    return err != 0;
}
/* doc:end */
