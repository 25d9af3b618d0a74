/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http/service.h - what the server of a round serves, as its line says:
 *
 *      serve=hello   13 bytes as text/plain, from memory
 *      serve=file    a file of size=BYTES in bench_folder(), whose name is its size
 *      serve=proxy   whatever the canned server (http/canned.h) on service.upstream answers
 */
#ifndef BENCH_HTTP_SERVICE_H
#define BENCH_HTTP_SERVICE_H

#include <stdio.h>

#include "http/canned.h"
#include "support/folder.h"

#define HTTP_HELLO "Hello, World!"

enum http_serve { SERVE_HELLO, SERVE_FILE, SERVE_PROXY };

struct http_service {
    enum http_serve serve;
    int64_t size;
    char path[32]; /* of the request */
    uint16_t upstream;
};

static struct http_service service;

/* One for all rounds: it dies with the program. */
static inline uint16_t service_upstream(bench_round *round)
{
    static echo_server upstream;

    if (upstream.process == 0) {
        canned_prepare_text(HTTP_HELLO);
        echo_server_start(&upstream, canned_run,
                          bench_cpu(bench_setting(round, "upstream_cpu", 1)));
        echo_server_allow_preemption(&upstream, false);
    }
    return upstream.port;
}

static inline void service_configure(bench_round *round)
{
    static const char *const names[] = {"hello", "file", "proxy", NULL};

    service.serve = (enum http_serve)bench_choice(round, "serve", names);
    service.size = bench_setting(round, "size", sizeof(HTTP_HELLO) - 1);
    snprintf(service.path, sizeof(service.path), "/");
    if (service.serve == SERVE_FILE) {
        bench_folder_write_sized(service.size);
        snprintf(service.path, sizeof(service.path), "/%lld", (long long)service.size);
    }
    service.upstream = service.serve == SERVE_PROXY ? service_upstream(round) : 0;
}

#endif
