/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak tls [MIB [SEED [BACKEND]]]: echoes MIB (default 1024) over TLS, in equal parts on
 * each backend, or on one, over 50 connections, with writes of random sizes, readers that pause,
 * and marks of 32 and 64 KiB. Compares every byte; the memory that the server holds for a
 * connection must be bounded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/tls.h>

#include "os/clock.h"
#include "support/executor/group.h"
#include "support/loop/backend.h"
#include "support/tls/pki.h"
#include "support/transport/echo.h"

#define CONNECTIONS 50
#define LOW_MARK (32 << 10)
#define HIGH_MARK (64 << 10)
#define RECEIVE_MAX (64 << 10)
#define RECORD_MAX (16 << 10) /* what comes with the end of a record that has begun before */
#define BESIDES 4096          /* what messages and records have besides their bytes */

static weir_tls_context *server, *client;

static int add_tls(weir_pipeline *pipeline, bool is_server, void *arg)
{
    (void)arg;
    return is_server
               ? weir_tls_add(pipeline, server)
               : weir_tls_add_with(pipeline, client, WEIR_TLS_OPTIONS(.server_name = "localhost"));
}

static bool open_contexts(void)
{
    const struct pki *certificates = pki();

    return weir_tls_server_create(
               WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = certificates->server.certificate,
                                        .key_pem = certificates->server.key),
               &server) == 0 &&
           weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = certificates->ca), &client) ==
               0;
}

static bool run(struct echo *echo, weir_group *group, size_t share)
{
    return echo_open(echo, group, group) == 0 && echo_exchange(echo, share) && echo_close(echo) &&
           echo->wrong == 0 && echo->errors == 0 &&
           echo->most_pending <= HIGH_MARK + RECEIVE_MAX + RECORD_MAX + BESIDES;
}

static bool soak(const struct backend *backend, size_t share, uint64_t seed)
{
    static struct echo echo;
    int64_t begin_ns = weir__monotonic_now();
    weir_group *group;
    bool good;

    if (backend->type == NULL ||
        weir_group_create(WEIR_GROUP_OPTIONS(.io = backend->io, .threads = 2), &group) < 0) {
        printf("%-10s cannot be had here\n", backend->name);
        return true;
    }
    echo = (struct echo){.connections = CONNECTIONS,
                         .low_mark = LOW_MARK,
                         .high_mark = HIGH_MARK,
                         .receive_max = RECEIVE_MAX,
                         .pauses = true,
                         .seed = seed,
                         .prepare = add_tls};
    good = run(&echo, group, share);
    printf("%-10s %6.1f MiB in %5.1f s, at most %" PRId64 " bytes held for one: %s\n",
           backend->name, (double)echo.received / (1 << 20),
           (double)(weir__monotonic_now() - begin_ns) / 1e9, echo.most_pending,
           good ? "ok" : "FAILED");
    (void)fflush(stdout);
    if (good)
        end_group(group);
    return good;
}

int main(int argc, char **argv)
{
    const char *only = argc > 3 ? argv[3] : NULL;
    size_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1024) << 20;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)weir__monotonic_now();
    size_t share = bytes / CONNECTIONS / (only != NULL ? 1 : BACKEND_KINDS);
    bool was_meant = false;

    printf("seed %" PRIu64 "\n", seed);
    if (!open_contexts())
        return 1;
    for (int i = 0; i < BACKEND_KINDS; i++) {
        if (only != NULL && strcmp(backends[i].name, only) != 0)
            continue;
        was_meant = true;
        if (!soak(&backends[i], share, seed))
            return 1;
    }
    if (!was_meant)
        printf("there is no backend %s\n", only);
    weir_tls_context_release(server);
    weir_tls_context_release(client);
    return was_meant ? 0 : 2;
}
