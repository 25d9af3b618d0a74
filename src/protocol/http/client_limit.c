/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits per client. Clients are in shards, each with a lock, a hash table and a list of the
 * clients without unfinished exchanges, the least recent one first: that one is forgotten when the
 * shard is full. A client with unfinished exchanges is never forgotten, so that its count stays
 * right; their number is bounded by that of the connections.
 *
 * The rate is a token bucket in its "virtual scheduling" form: a client has one number, the time at
 * which its bucket would be full again.
 */
#include <weir/http_filters.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <weir/memory.h>
#include <weir/random.h>

#include "base/list.h"
#include "base/options.h"
#include "base/refcount.h"
#include "os/mutex.h"
#include "protocol/http/client_address.h"
#include "protocol/http/filters.h"

#define SHARDS 16
#define MAX_CLIENTS_DEFAULT 65536
#define SECOND_NS INT64_C(1000000000)

/* An address that is limited: IPv4, or the first 64 bits of IPv6. */
struct key {
    uint8_t family; /* 0 = none: not limited */
    uint8_t bytes[8];
};

struct client {
    weir__list idle;     /* first; in the shard's list, while `concurrent` is 0 */
    struct client *next; /* in its slot of the table */
    struct key key;
    int64_t full_at_ns; /* the time at which the bucket is full again */
    int concurrent;
};

struct shard {
    weir__mutex lock;
    weir__list idle; /* the least recent one first */
    struct client **slots;
    size_t count;
};

struct weir_http_client_limit {
    weir__refs refs;
    int64_t period_ns; /* between two requests, on average; 0 = no limit */
    int64_t burst_ns;  /* the size of the bucket */
    int max_concurrent;
    size_t max_per_shard;
    size_t slot_count; /* per shard; a power of two */
    uint64_t seed;
    struct shard shards[SHARDS];
};

/* ---- clients, under the lock of their shard ---- */

static uint64_t hash_of(const weir_http_client_limit *limit, const struct key *key)
{
    return weir_span_hash(weir_span_of(key, sizeof(*key)), limit->seed);
}

static struct shard *shard_of(weir_http_client_limit *limit, uint64_t hash)
{
    return &limit->shards[hash % SHARDS];
}

static struct client **slot_of(const weir_http_client_limit *limit, const struct shard *shard,
                               uint64_t hash)
{
    return &shard->slots[hash / SHARDS & (limit->slot_count - 1)];
}

static struct client **find(const weir_http_client_limit *limit, struct shard *shard,
                            const struct key *key)
{
    struct client **link = slot_of(limit, shard, hash_of(limit, key));

    while (*link != NULL && memcmp(&(*link)->key, key, sizeof(*key)) != 0)
        link = &(*link)->next;
    return link;
}

static void forget_least_recent(const weir_http_client_limit *limit, struct shard *shard)
{
    struct client *client = (struct client *)weir__list_pop(&shard->idle); /* its first member */
    struct client **link;

    if (client == NULL)
        return;
    link = find(limit, shard, &client->key);
    *link = client->next;
    shard->count--;
    weir_memory_free(client);
}

/* NULL without memory. */
static struct client *find_or_add(const weir_http_client_limit *limit, struct shard *shard,
                                  const struct key *key)
{
    struct client **link = find(limit, shard, key), *client = *link;

    if (client != NULL)
        return client;
    if (shard->count >= limit->max_per_shard)
        forget_least_recent(limit, shard);
    client = weir_memory_alloc(sizeof(*client));
    if (client == NULL)
        return NULL;
    *client = (struct client){.key = *key};
    weir__list_init(&client->idle);
    link = find(limit, shard, key); /* the one forgotten may have been in the same slot */
    *link = client;
    shard->count++;
    return client;
}

/* Moves it to where its count says: to the end of the idle ones, or out of them. */
static void touch(struct shard *shard, struct client *client)
{
    weir__list_remove(&client->idle);
    if (client->concurrent == 0)
        weir__list_append(&shard->idle, &client->idle);
}

/* Returns 0 and counts the request, or the seconds to wait. */
static int64_t take(const weir_http_client_limit *limit, struct client *client, int64_t now_ns)
{
    int64_t full_at_ns = client->full_at_ns > now_ns ? client->full_at_ns : now_ns;
    int64_t excess_ns = full_at_ns + limit->period_ns - limit->burst_ns - now_ns;

    if (limit->max_concurrent > 0 && client->concurrent >= limit->max_concurrent)
        return 1;
    if (limit->period_ns > 0 && excess_ns > 0)
        return (excess_ns + SECOND_NS - 1) / SECOND_NS;
    client->full_at_ns = full_at_ns + limit->period_ns;
    if (limit->max_concurrent > 0)
        client->concurrent++;
    return 0;
}

/* A client that cannot be remembered, for want of memory, is not limited. */
static int64_t admit(weir_http_client_limit *limit, const struct key *key, int64_t now_ns,
                     bool *ret_is_counted)
{
    struct shard *shard = shard_of(limit, hash_of(limit, key));
    struct client *client;
    int64_t wait_seconds = 0;

    weir__mutex_lock(&shard->lock);
    client = find_or_add(limit, shard, key);
    if (client != NULL) {
        wait_seconds = take(limit, client, now_ns);
        *ret_is_counted = wait_seconds == 0 && limit->max_concurrent > 0;
        touch(shard, client);
    }
    weir__mutex_unlock(&shard->lock);
    return wait_seconds;
}

static void finish(weir_http_client_limit *limit, const struct key *key)
{
    struct shard *shard = shard_of(limit, hash_of(limit, key));
    struct client *client;

    weir__mutex_lock(&shard->lock);
    client = *find(limit, shard, key); /* never NULL: it is not forgotten while it is counted */
    if (client != NULL) {
        client->concurrent--;
        touch(shard, client);
    }
    weir__mutex_unlock(&shard->lock);
}

/* ---- limits ---- */

static int check_options(const weir_http_client_limit_options *options)
{
    if (options->requests_per_second < 0 || options->burst < 0 || options->max_concurrent < 0 ||
        options->max_clients < 0)
        return weir__options_reject("http", "client_limit", "a limit is negative");
    if (options->requests_per_second == 0 && options->burst > 0)
        return weir__options_reject("http", "client_limit",
                                    ".burst without .requests_per_second has no effect");
    return 0;
}

static void destroy(weir_http_client_limit *limit)
{
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &limit->shards[i];

        while (shard->count > 0 && !weir__list_is_empty(&shard->idle))
            forget_least_recent(limit, shard);
        weir_memory_free(shard->slots);
        weir__mutex_deinit(&shard->lock);
    }
    weir_memory_free(limit);
}

static int init_shard(weir_http_client_limit *limit, struct shard *shard)
{
    size_t size = limit->slot_count * sizeof(shard->slots[0]);

    shard->slots = weir_memory_alloc(size);
    if (shard->slots == NULL)
        return -ENOMEM;
    memset(shard->slots, 0, size);
    return 0;
}

static void set_limits(weir_http_client_limit *limit, const weir_http_client_limit_options *options)
{
    int max_clients = options->max_clients > 0 ? options->max_clients : MAX_CLIENTS_DEFAULT;

    if (options->requests_per_second > 0) {
        int burst = options->burst > 0 ? options->burst : options->requests_per_second;

        limit->period_ns = SECOND_NS / options->requests_per_second;
        limit->burst_ns = burst * limit->period_ns;
    }
    limit->max_concurrent = options->max_concurrent;
    limit->max_per_shard = ((size_t)max_clients + SHARDS - 1) / SHARDS;
    limit->slot_count = 1;
    while (limit->slot_count < limit->max_per_shard)
        limit->slot_count *= 2;
    weir_random_bytes(&limit->seed, sizeof(limit->seed));
}

int weir_http_client_limit_create(const weir_http_client_limit_options *options,
                                  weir_http_client_limit **ret_limit)
{
    weir_http_client_limit_options own;
    weir_http_client_limit *limit;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0)
        err = check_options(&own);
    if (err < 0)
        return err;
    limit = weir_memory_alloc(sizeof(*limit));
    if (limit == NULL)
        return -ENOMEM;
    memset(limit, 0, sizeof(*limit));
    weir__refs_init(&limit->refs);
    set_limits(limit, &own);
    for (size_t i = 0; i < SHARDS; i++) {
        weir__mutex_init(&limit->shards[i].lock);
        weir__list_init(&limit->shards[i].idle);
    }
    for (size_t i = 0; err == 0 && i < SHARDS; i++)
        err = init_shard(limit, &limit->shards[i]);
    if (err < 0) {
        destroy(limit);
        return err;
    }
    *ret_limit = limit;
    return 0;
}

weir_http_client_limit *weir_http_client_limit_retain(weir_http_client_limit *limit)
{
    weir__refs_retain(&limit->refs);
    return limit;
}

void weir_http_client_limit_release(weir_http_client_limit *limit)
{
    if (limit != NULL && weir__refs_release(&limit->refs))
        destroy(limit);
}

/* ---- the handler ---- */

struct state {
    weir_http_client_limit *limit;
    struct key key;
    bool has_key;
    bool is_counted; /* as an unfinished exchange */
    weir__http_local_reply reply;
};

static int init(void *state, const void *options)
{
    ((struct state *)state)->limit =
        weir_http_client_limit_retain(*(weir_http_client_limit *const *)options);
    return 0;
}

static void uncount(struct state *state)
{
    if (state->is_counted)
        finish(state->limit, &state->key);
    state->is_counted = false;
}

static void deinit(void *state)
{
    uncount(state);
    weir_http_client_limit_release(((struct state *)state)->limit);
}

/* IPv4 addresses also come mapped to IPv6 ones, on dual-stack listeners. */
static struct key key_of(weir_channel *channel, const weir_http_request *request)
{
    struct key key = {0};
    weir_address address;

    if (weir__http_client_address(channel, request, &address) < 0)
        return key;
    if (weir_address_family(&address) == AF_INET) {
        const struct sockaddr_in *ipv4 = (const void *)weir_address_sockaddr(&address);

        key.family = AF_INET;
        memcpy(key.bytes, &ipv4->sin_addr, 4);
    } else if (weir_address_family(&address) == AF_INET6) {
        const struct sockaddr_in6 *ipv6 = (const void *)weir_address_sockaddr(&address);
        bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(&ipv6->sin6_addr);

        key.family = is_ipv4 ? AF_INET : AF_INET6;
        memcpy(key.bytes, ipv6->sin6_addr.s6_addr + (is_ipv4 ? 12 : 0), is_ipv4 ? 4 : 8);
    }
    return key;
}

static void refuse(weir_ctx *ctx, struct state *state, weir_http_request *request,
                   int64_t wait_seconds)
{
    weir_http_response *response = NULL;
    char text[24];
    int err = weir__http_local_reply_create(request, 429, &response);

    (void)snprintf(text, sizeof(text), "%lld", (long long)wait_seconds);
    if (err == 0)
        err = weir_http_headers_add_text(weir_http_response_headers(response),
                                         WEIR_HTTP_RETRY_AFTER, text);
    if (err < 0 && response != NULL) {
        weir_msg_release(weir_http_response_msg(response));
        response = NULL;
    }
    weir__http_local_reply_send(ctx, &state->reply, response, request);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct state *state = weir_ctx_state(ctx);
    weir_http_request *request = weir_http_request_of(msg);
    int64_t wait_seconds = 0;

    if (weir__http_local_reply_discards(&state->reply, msg))
        return;
    if (request != NULL) {
        uncount(state);
        if (!state->has_key)
            state->key = key_of(weir_ctx_channel(ctx), request);
        state->has_key = !weir__http_is_from_proxy(weir_ctx_channel(ctx));
        if (state->key.family != 0)
            wait_seconds = admit(state->limit, &state->key, weir_ctx_now(ctx), &state->is_counted);
        if (wait_seconds > 0) {
            refuse(ctx, state, request, wait_seconds);
            return;
        }
    }
    weir_fire_read(ctx, msg);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir__http_local_reply_read_complete(ctx, &((struct state *)weir_ctx_state(ctx))->reply);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    if (weir_http_end_of(msg) != NULL)
        uncount(weir_ctx_state(ctx));
    weir_write(ctx, msg, done);
}

static void on_inactive(weir_ctx *ctx)
{
    uncount(weir_ctx_state(ctx));
    weir_fire_inactive(ctx);
}

const weir_handler weir__http_client_limit_handler = {
    .name = "http-client-limit",
    .state_size = sizeof(struct state),
    .init = init,
    .deinit = deinit,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .write = on_write,
};

int weir_http_client_limit_add(weir_pipeline *pipeline, weir_http_client_limit *limit)
{
    return weir_pipeline_add_last(pipeline, &weir__http_client_limit_handler, &limit);
}
