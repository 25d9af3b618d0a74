/* SPDX-License-Identifier: Apache-2.0 */
#include "forward.h"

#include <stdlib.h>

#include <weir/error.h>
#include <weir/flow_control.h>
#include <weir/http_forward.h>

/* The upstreams that an exchange has tried. */
struct attempt {
    struct forwarder *forwarder;
    struct upstream *upstream; /* NULL = none is in use */
    uint64_t tried;
};

static const char *choose(struct attempt *attempt)
{
    attempt->upstream = upstreams_choose(&attempt->forwarder->upstreams, &attempt->tried);
    if (attempt->upstream == NULL)
        return NULL;
    atomic_fetch_add(&attempt->upstream->connections, 1);
    return attempt->upstream->address;
}

/* A failure of the upstream, or of the client or the proxy. */
static void leave(struct attempt *attempt, int err, const char *detail)
{
    struct upstream *upstream = attempt->upstream;

    attempt->upstream = NULL;
    if (upstream == NULL)
        return;
    atomic_fetch_sub(&upstream->connections, 1);
    if (err == 0 || err == WEIR_ECANCELED || err == WEIR_EFULL || err == WEIR_EREJECTED)
        return;
    upstream_note(upstream, attempt->forwarder->fall, detail);
    weir_log_write(WEIR_LOG_WARN, "reverse-proxy", upstream->address, "%s", detail);
}

/* doc:begin events */
static const char *on_next(weir_http_exchange *exchange, int err, const char *detail,
                           void *user_data)
{
    struct attempt *attempt = user_data;

    (void)exchange;
    leave(attempt, err, detail);
    return choose(attempt);
}

static void on_response(weir_http_exchange *exchange, int status, weir_http_headers *headers,
                        void *user_data)
{
    struct attempt *attempt = user_data;

    (void)exchange;
    (void)status;
    (void)headers;
    upstream_note(attempt->upstream, 1, NULL);
}

static void on_end(weir_http_exchange *exchange, int err, const char *detail, void *user_data)
{
    (void)exchange;
    leave(user_data, err, detail);
    free(user_data);
}

static const weir_http_forward_events events = {
    .response = on_response, .next = on_next, .end = on_end};

void forward(weir_http_exchange *exchange, void *user_data)
{
    struct forwarder *forwarder = user_data;
    struct attempt *attempt = calloc(1, sizeof(*attempt));

    if (attempt == NULL)
        return; /* 500 */
    attempt->forwarder = forwarder;
    if (weir_http_forward(exchange, forwarder->client, choose(attempt),
                          WEIR_HTTP_FORWARD_OPTIONS(.events = &events, .user_data = attempt)) < 0)
        on_end(exchange, WEIR_ECANCELED, "", attempt);
}
/* doc:end */

/* Head and content of a response often come in one read from the upstream: they are sent together.
 */
int forward_init_connection(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_flush_consolidation_add(weir_channel_pipeline(channel), NULL);
}
