/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server on libevent's evhttp. Files are opened for each request and sent by sendfile.
 */
#include "echo/competitor.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/service.h"

static void server_configure(bench_round *round)
{
    service_configure(round);
    bench_require(service.serve != SERVE_PROXY, "a proxy of evhttp");
}

static void reply(struct evhttp_request *request, struct evbuffer *content)
{
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
    evhttp_send_reply(request, HTTP_OK, "OK", content);
    evbuffer_free(content);
}

static void on_hello(struct evhttp_request *request, void *arg)
{
    struct evbuffer *content = evbuffer_new();

    (void)arg;
    evbuffer_add_reference(content, HTTP_HELLO, sizeof(HTTP_HELLO) - 1, NULL, NULL);
    reply(request, content);
}

static void on_file(struct evhttp_request *request, void *arg)
{
    struct evbuffer *content = evbuffer_new();
    char path[256];
    struct stat about;
    int file;

    (void)arg;
    snprintf(path, sizeof(path), "%s%s", bench_folder(), evhttp_request_get_uri(request));
    file = open(path, O_RDONLY | O_CLOEXEC);
    bench_require(file >= 0 && fstat(file, &about) == 0, path);
    evbuffer_add_file(content, file, 0, about.st_size);
    reply(request, content);
}

static void server_run(int cpu)
{
    int listener = echo_server_listen();
    struct event_base *base;
    struct evhttp *server;

    bench_pin(cpu);
    base = event_base_new();
    server = base != NULL ? evhttp_new(base) : NULL;
    bench_require(server != NULL, "evhttp_new");
    evhttp_set_gencb(server, service.serve == SERVE_FILE ? on_file : on_hello, NULL);
    bench_require(evhttp_accept_socket(server, listener) == 0, "evhttp_accept_socket");
    echo_server_announce(listener);
    event_base_dispatch(base);
}

#include "http/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {HTTP_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
