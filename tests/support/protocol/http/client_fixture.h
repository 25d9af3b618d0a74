/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client on the loop of a host, and its calls, seen from the test's thread.
 */
#ifndef WEIR_TEST_CLIENT_FIXTURE_H
#define WEIR_TEST_CLIENT_FIXTURE_H

#include <weir/http_client.h>

#include "support/executor/call_counter.h"
#include "support/loop/host.h"

/* The result of a fetch. */
struct fetched {
    int err;
    char detail[1024];
    int status;
    size_t length;
    char content[4096]; /* its beginning, with a NUL */
    char server[64];    /* the field Server */
};

/* `options` without a group. */
weir_http_client *client_open(struct host *host, const weir_http_client_options *options);

/* Closes it, and waits until everything of it is gone. */
void client_close(weir_http_client *client);

struct fetched client_fetch(weir_http_client *client, const weir_http_fetch_options *options);
struct fetched client_get(weir_http_client *client, const char *url);

/* Waits for a promise of weir_http_client_fetch and releases it. */
struct fetched client_await(weir_promise *promise);

weir_http_client_stats client_stats(const weir_http_client *client);

/* A streamed call: what its events have seen. The test looks at it when `ends` or another counter
 * has counted. */
struct streamed {
    struct call_counter heads;
    struct call_counter pieces;
    struct call_counter writables;
    struct call_counter informationals;
    struct call_counter ends;
    int status;
    uint64_t length;
    uint64_t hash; /* of the content: a sum by position */
    int err;
    char detail[1024];
    char trailer[64];  /* the field X-Sum */
    bool reads_itself; /* requests the next piece in each event */
};

extern const weir_http_call_events streamed_events;

#endif
