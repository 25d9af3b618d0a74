/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Origins: scheme, host and port, each with a pool of connections on one loop. A table of the shard
 * finds them; beyond MAX_ORIGINS the one that was not used for longest is dropped.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/log.h>
#include <weir/memory.h>

#include "protocol/http/http_client.h"

#define MAX_ORIGINS 256
#define SEED 0x6f726967696eull

/* ---- keys ---- */

static bool is_scheme(weir_span scheme, const char *name)
{
    size_t length = strlen(name);

    if (scheme.length != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((scheme.data[i] | 0x20) != name[i])
            return false;
    return true;
}

int weir__http_origin_key_of(const weir_http_uri *uri, weir__http_origin_key *ret_key)
{
    int port = weir_http_uri_port(uri);
    int length;

    if (uri->scheme.data == NULL || uri->host.length == 0 || port == 0)
        return -EINVAL;
    ret_key->is_tls = is_scheme(uri->scheme, "https");
    if (!ret_key->is_tls && !is_scheme(uri->scheme, "http"))
        return -EPROTONOSUPPORT;
    if (port < 0)
        port = ret_key->is_tls ? 443 : 80;
    length = snprintf(ret_key->text, sizeof(ret_key->text),
                      uri->is_ip_literal ? "%s://[%.*s]:%d" : "%s://%.*s:%d",
                      ret_key->is_tls ? "https" : "http", (int)uri->host.length,
                      (const char *)uri->host.data, port);
    if (length < 0 || (size_t)length >= sizeof(ret_key->text) || port > UINT16_MAX)
        return -EINVAL;
    ret_key->length = (size_t)length;
    for (size_t i = 0; i < ret_key->length; i++)
        if (ret_key->text[i] >= 'A' && ret_key->text[i] <= 'Z')
            ret_key->text[i] = (char)(ret_key->text[i] | 0x20);
    ret_key->hash = weir_span_hash(weir_span_of(ret_key->text, ret_key->length), SEED);
    return 0;
}

/* ---- connections ---- */

static uint16_t port_of(const weir__http_origin *origin)
{
    const char *colon = strrchr(origin->address, ':');
    unsigned port = 0;

    for (const char *digit = colon + 1; *digit != '\0'; digit++)
        port = port * 10 + (unsigned)(*digit - '0');
    return (uint16_t)port;
}

static int add_proxy(weir_pipeline *pipeline, const weir__http_origin *origin)
{
    const weir_http_client *client = origin->shard->client;

    if (client->proxy == WEIR__HTTP_PROXY_SOCKS5)
        return weir__http_socks5_add(pipeline, origin->host, port_of(origin),
                                     client->proxy_userinfo != NULL
                                         ? weir_buf_span(client->proxy_userinfo)
                                         : weir_span_of(NULL, 0));
    if (client->proxy == WEIR__HTTP_PROXY_HTTP && origin->is_tls)
        return weir__http_tunnel_add(pipeline, origin->address, client->proxy_authorization);
    return 0;
}

static int init_connection(weir_channel *channel, void *user_data)
{
    weir__http_origin *origin = user_data;
    const weir_http_client_options *options = &origin->shard->client->options;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = add_proxy(pipeline, origin);

    if (err == 0 && origin->is_tls)
        err = options->add_tls(pipeline, options->tls, origin->host);
    if (err == 0)
        err = weir_http1_client_add(pipeline, options->http1);
    if (err == 0 && !options->no_decompression)
        err = weir_http_decompression_add(pipeline, options->decompression);
    if (err == 0 && options->init_connection != NULL)
        err = options->init_connection(channel, options->user_data);
    return err < 0 ? err : weir__http_connection_add(pipeline, origin);
}

static int create_pool(weir__http_origin *origin)
{
    const weir_http_client *client = origin->shard->client;
    const weir_http_client_options *options = &client->options;

    return weir_client_pool_create(
        WEIR_CLIENT_POOL_OPTIONS(
                .client = WEIR_CLIENT_OPTIONS(.loop = origin->shard->loop,
                                              .address = client->proxy != WEIR__HTTP_PROXY_NONE
                                                             ? client->proxy_address
                                                             : origin->address,
                                              .init = init_connection, .user_data = origin,
                                              .options = options->channel_options,
                                              .resolver = options->resolver),
                .max = options->max_connections, .max_idle = options->max_idle,
                .max_waiting = options->max_waiting,
                .acquire_timeout_ns = options->connect_timeout_ns,
                .idle_timeout_ns = options->idle_timeout_ns, .executor = origin->shard->loop),
        &origin->pool);
}

/* ---- lifecycle ---- */

static void free_origin(weir__http_origin *origin)
{
    weir_memory_free(origin->host);
    weir_memory_free(origin->address);
    weir_memory_free(origin->host_field);
    weir_memory_free(origin);
}

weir__http_origin *weir__http_origin_retain(weir__http_origin *origin)
{
    weir__refs_retain(&origin->refs);
    return origin;
}

void weir__http_origin_release(weir__http_origin *origin)
{
    weir_http_client *client;

    if (origin == NULL || !weir__refs_release(&origin->refs))
        return;
    client = origin->shard->client;
    weir_client_pool_release(origin->pool);
    free_origin(origin);
    weir__http_client_release_work(client);
}

static void on_pool_closed(weir_promise *promise, void *user_data)
{
    (void)promise;
    weir__http_origin_release(user_data);
}

static int copy_names(weir__http_origin *origin)
{
    const char *authority = origin->text + (origin->is_tls ? 8 : 7);
    size_t length = strlen(authority);
    const char *colon = strrchr(authority, ':');
    size_t host = (size_t)(colon - authority);
    bool is_default = strcmp(colon, origin->is_tls ? ":443" : ":80") == 0;
    bool has_brackets = authority[0] == '[';

    origin->address = weir__http_client_copy(weir_span_of(authority, length));
    origin->host_field =
        weir__http_client_copy(weir_span_of(authority, is_default ? host : length));
    origin->host =
        weir__http_client_copy(weir_span_of(authority + has_brackets, host - 2 * has_brackets));
    return origin->address != NULL && origin->host_field != NULL && origin->host != NULL ? 0
                                                                                         : -ENOMEM;
}

static int create(weir__http_shard *shard, const weir__http_origin_key *key,
                  weir__http_origin **ret_origin)
{
    weir__http_origin *origin = weir__http_client_alloc(sizeof(*origin) + key->length + 1);
    int err;

    if (origin == NULL)
        return -ENOMEM;
    weir__refs_init(&origin->refs); /* the table's */
    origin->shard = shard;
    origin->is_tls = key->is_tls;
    origin->hash = key->hash;
    origin->length = key->length;
    memcpy(origin->text, key->text, key->length + 1);
    err = copy_names(origin);
    if (err == 0)
        err = create_pool(origin);
    if (err < 0) {
        free_origin(origin);
        return err;
    }
    weir__http_client_retain_work(shard->client);
    weir__http_origin_retain(origin);
    origin->pool_closed = (weir_listener){.fn = on_pool_closed, .user_data = origin};
    weir_promise_listen(weir_client_pool_closed(origin->pool), &origin->pool_closed);
    *ret_origin = origin;
    return 0;
}

/* ---- the table ---- */

static weir__http_origin **bucket_of(weir__http_shard *shard, uint64_t hash)
{
    return &shard->buckets[hash % WEIR__HTTP_ORIGIN_BUCKETS];
}

static void drop(weir__http_origin *origin)
{
    weir__http_origin **link = bucket_of(origin->shard, origin->hash);

    while (*link != origin)
        link = &(*link)->next;
    *link = origin->next;
    weir__list_remove(&origin->used);
    origin->shard->origins--;
    origin->is_listed = false;
    weir_client_pool_close(origin->pool);
    weir__http_origin_release(origin);
}

/* Origins with calls stay, so the limit may be exceeded. */
static void drop_oldest(weir__http_shard *shard)
{
    weir_list_foreach (item, &shard->used) {
        weir__http_origin *origin = WEIR_CONTAINER_OF(item, weir__http_origin, used);

        if (origin->calls > 0)
            continue;
        drop(origin);
        return;
    }
}

static void list(weir__http_origin *origin)
{
    weir__http_origin **bucket = bucket_of(origin->shard, origin->hash);

    if (origin->shard->origins >= MAX_ORIGINS)
        drop_oldest(origin->shard);
    origin->next = *bucket;
    *bucket = origin;
    weir__list_append(&origin->shard->used, &origin->used);
    origin->shard->origins++;
    origin->is_listed = true;
}

static weir__http_origin *find(weir__http_shard *shard, uint64_t hash, weir_span text)
{
    weir__http_origin *origin = *bucket_of(shard, hash);

    while (origin != NULL && (origin->hash != hash || origin->length != text.length ||
                              memcmp(origin->text, text.data, text.length) != 0))
        origin = origin->next;
    if (origin == NULL)
        return NULL;
    weir__list_remove(&origin->used);
    weir__list_append(&shard->used, &origin->used);
    return weir__http_origin_retain(origin);
}

weir__http_origin *weir__http_origin_find(weir__http_shard *shard, weir_span text)
{
    return find(shard, weir_span_hash(text, SEED), text);
}

int weir__http_origin_get(weir__http_shard *shard, const weir__http_origin_key *key,
                          weir__http_origin **ret_origin)
{
    weir__http_origin *origin = find(shard, key->hash, weir_span_of(key->text, key->length));
    int err;

    if (origin == NULL) {
        if (key->is_tls && shard->client->options.add_tls == NULL)
            return -EPROTONOSUPPORT;
        err = create(shard, key, &origin);
        if (err < 0)
            return err;
        list(origin);
        weir__http_origin_retain(origin);
    }
    *ret_origin = origin;
    return 0;
}

void weir__http_origins_close(weir__http_shard *shard)
{
    while (!weir__list_is_empty(&shard->used))
        drop(WEIR_CONTAINER_OF(shard->used.next, weir__http_origin, used));
}
