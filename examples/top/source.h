/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the metrics come from: a server, asked for them over HTTP.
 */
#ifndef EXAMPLES_TOP_SOURCE_H
#define EXAMPLES_TOP_SOURCE_H

#include <stdbool.h>
#include <weir/http_client.h>

#include "support/settings.h"
#include "top/snapshot.h"

struct source {
    const char *url;
    char authorization[512]; /* "Bearer TOKEN"; "" = none */
    weir_group *group;
    weir_tls_context *tls;
    weir_http_client *client;
    weir_promise *fetching; /* NULL = no request is under way */
    int arrived;            /* a file descriptor that is readable when the response has arrived */
    char error[256];        /* of the last request; "" = none */
};

/* Failures have been reported. `settings` are those of TLS; `token` may be "". */
bool source_open(struct source *source, const char *url, const char *token,
                 const struct settings *settings);

/* Sends a request, unless one is under way. */
void source_request(struct source *source);

/* The response, after `arrived` is readable; NULL with `error`. */
struct snapshot *source_take(struct source *source);

/* Ends everything; does nothing if it is not open. */
void source_close(struct source *source);

#endif
