/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients: options, references, closing, stats.
 */
#include "protocol/http/http_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/loop.h>
#include <weir/memory.h>
#include <weir/text_codecs.h>

#include "base/options.h"
#include "protocol/http/alpn.h"

#define SUBSYSTEM "http client"
#define IDLE_TIMEOUT_NS weir_seconds(30)
#define CONNECT_TIMEOUT_NS weir_seconds(10)
#define HEAD_TIMEOUT_NS weir_seconds(60)
#define PROGRESS_TIMEOUT_NS weir_seconds(60)
#define MAX_REDIRECTS 10
#define MAX_USERINFO 510

void *weir__http_client_alloc(size_t size)
{
    void *memory = weir_memory_alloc(size);

    if (memory != NULL)
        memset(memory, 0, size);
    return memory;
}

char *weir__http_client_copy(weir_span text)
{
    char *copy = weir_memory_alloc(text.length + 1);

    if (copy != NULL) {
        if (text.length > 0)
            memcpy(copy, text.data, text.length);
        copy[text.length] = '\0';
    }
    return copy;
}

const char *weir__http_redact(const char *url, char buffer[WEIR__HTTP_REDACTED_SIZE])
{
    const char *scheme = strstr(url, "://"), *end = strrchr(url, '@');
    const char *begin = scheme != NULL ? scheme + 3 : url;
    weir_http_uri uri;

    if (weir_http_uri_parse(weir_span_of_text(url), &uri) == 0 && uri.host.data != NULL)
        end =
            uri.userinfo.data != NULL ? (const char *)uri.host.data - uri.is_ip_literal - 1 : NULL;
    if (end == NULL || end < begin)
        (void)snprintf(buffer, WEIR__HTTP_REDACTED_SIZE, "%s", url);
    else
        (void)snprintf(buffer, WEIR__HTTP_REDACTED_SIZE, "%.*s***%s", (int)(begin - url), url, end);
    return buffer;
}

int weir__http_basic_credentials(weir_span userinfo, char **ret_credentials)
{
    static const char prefix[] = "Basic ";
    uint8_t decoded[MAX_USERINFO];
    ssize_t length;
    char *text;
    size_t encoded;

    if (userinfo.length > sizeof(decoded))
        return -EINVAL;
    length = weir_http_percent_decode(userinfo, decoded);
    if (length < 0)
        return -EINVAL;
    text = weir_memory_alloc(sizeof(prefix) + weir_base64_encoded_length((size_t)length, 0));
    if (text == NULL)
        return -ENOMEM;
    memcpy(text, prefix, sizeof(prefix) - 1);
    encoded =
        weir_base64_encode(weir_span_of(decoded, (size_t)length), 0, text + sizeof(prefix) - 1);
    text[sizeof(prefix) - 1 + encoded] = '\0';
    *ret_credentials = text;
    return 0;
}

/* ---- references ---- */

void weir__http_client_retain_memory(weir_http_client *client)
{
    weir__refs_retain(&client->memory);
}

void weir__http_client_release_memory(weir_http_client *client)
{
    if (!weir__refs_release(&client->memory))
        return;
    for (size_t i = 0; i < client->shard_count; i++)
        weir_executor_release(client->shards[i].loop);
    weir_resolver_release(client->options.resolver);
    weir_promise_release(client->closed);
    weir_buf_release(client->proxy_userinfo);
    weir_memory_free(client->proxy_authorization);
    weir_memory_free(client->proxy_address);
    weir_memory_free(client->user_agent);
    weir_memory_free(client->accept_encoding);
    weir_group_release(client->options.group);
    weir_memory_free(client);
}

void weir__http_client_retain_work(weir_http_client *client)
{
    weir__refs_retain(&client->work);
}

void weir__http_client_release_work(weir_http_client *client)
{
    if (!weir__refs_release(&client->work))
        return;
    (void)weir_promise_succeed(client->closed, NULL);
    weir__http_client_release_memory(client);
}

weir_http_client *weir_http_client_retain(weir_http_client *client)
{
    weir__refs_retain(&client->users);
    return client;
}

void weir_http_client_release(weir_http_client *client)
{
    if (client == NULL || !weir__refs_release(&client->users))
        return;
    weir_http_client_close(client);
    weir__http_client_release_memory(client);
}

/* ---- options ---- */

static int64_t default_to(int64_t value, int64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static int check(const weir_http_client_options *options)
{
    if ((options->tls != NULL) != (options->add_tls != NULL))
        return weir__options_reject(SUBSYSTEM, NULL, ".tls and .add_tls are for each other");
    if (options->group != NULL && options->loop != NULL)
        return weir__options_reject(SUBSYSTEM, NULL, ".group and .loop are mutually exclusive");
    return weir__options_check(
        SUBSYSTEM, NULL, WEIR__OPTION_FROM(options, max_connections, WEIR_OFF),
        WEIR__OPTION_FROM(options, max_idle, 0), WEIR__OPTION_FROM(options, max_waiting, WEIR_OFF),
        WEIR__OPTION_FROM(options, idle_timeout_ns, WEIR_OFF),
        WEIR__OPTION_FROM(options, connect_timeout_ns, WEIR_OFF),
        WEIR__OPTION_FROM(options, head_timeout_ns, WEIR_OFF),
        WEIR__OPTION_FROM(options, progress_timeout_ns, WEIR_OFF),
        WEIR__OPTION_FROM(options, timeout_ns, WEIR_OFF),
        WEIR__OPTION_FROM(options, max_redirects, WEIR_OFF));
}

static int add_tls(weir_pipeline *pipeline, const void *options_)
{
    const weir_http_client_options *options = options_;

    return options->add_tls(pipeline, options->tls, "localhost");
}

static int copy_options(weir_http_client *client, const weir_http_client_options *options)
{
    weir_http_client_options *own = &client->options;
    int err = weir__options_read(&client->http1, sizeof(client->http1), options->http1);

    if (err == 0)
        err = weir__options_read(&client->decompression, sizeof(client->decompression),
                                 options->decompression);
    if (err == 0)
        err =
            weir__options_read(&client->channel, sizeof(client->channel), options->channel_options);
    if (err < 0)
        return err;
    *own = *options;
    own->group = NULL; /* these two are set when they are retained */
    own->resolver = NULL;
    own->http1 = &client->http1;
    own->decompression = &client->decompression;
    own->channel_options = &client->channel;
    own->idle_timeout_ns = default_to(own->idle_timeout_ns, IDLE_TIMEOUT_NS);
    own->connect_timeout_ns = default_to(own->connect_timeout_ns, CONNECT_TIMEOUT_NS);
    own->head_timeout_ns = default_to(own->head_timeout_ns, HEAD_TIMEOUT_NS);
    own->progress_timeout_ns = default_to(own->progress_timeout_ns, PROGRESS_TIMEOUT_NS);
    own->timeout_ns = default_to(own->timeout_ns, WEIR_OFF);
    own->max_redirects = (int)default_to(own->max_redirects, MAX_REDIRECTS);
    if (client->channel.connect_timeout_ns == 0)
        client->channel.connect_timeout_ns = own->connect_timeout_ns;
    client->channel.alpn = WEIR__HTTP_CLIENT_ALPN;
    return own->tls != NULL ? weir__http_alpn_check(client->channel.alpn, add_tls, own) : 0;
}

static int copy_texts(weir_http_client *client, const weir_http_client_options *options)
{
    char agent[64];

    (void)snprintf(agent, sizeof(agent), "weir/%s", weir_version());
    client->user_agent = weir__http_client_copy(
        weir_span_of_text(options->user_agent != NULL ? options->user_agent : agent));
    if (client->user_agent == NULL)
        return -ENOMEM;
    if (options->no_decompression)
        return 0;
    client->accept_encoding = weir__http_client_copy(weir_span_of_text("gzip, deflate"
#ifdef WEIR_HAVE_BROTLI
                                                                       ", br"
#endif
#ifdef WEIR_HAVE_ZSTD
                                                                       ", zstd"
#endif
                                                                       ));
    return client->accept_encoding != NULL ? 0 : -ENOMEM;
}

static bool is_text(weir_span span, const char *text)
{
    return span.data != NULL && weir_span_equal(span, weir_span_of_text(text));
}

static int read_userinfo(weir_http_client *client, weir_span userinfo)
{
    uint8_t decoded[MAX_USERINFO];
    ssize_t length;
    int err;

    if (userinfo.data == NULL)
        return 0;
    err = weir__http_basic_credentials(userinfo, &client->proxy_authorization);
    if (err < 0)
        return err;
    length = weir_http_percent_decode(userinfo, decoded);
    return length < 0 ? -EINVAL
                      : weir_buf_create_from(decoded, (size_t)length, &client->proxy_userinfo);
}

static int reject_proxy(const char *text, const char *reason)
{
    char buffer[WEIR__HTTP_REDACTED_SIZE];

    return weir__options_reject(SUBSYSTEM, NULL, ".proxy \"%s\": %s",
                                weir__http_redact(text, buffer), reason);
}

static int read_proxy(weir_http_client *client, const char *text)
{
    weir_http_uri uri;
    weir_buf *address;
    int port, err;

    if (text == NULL)
        return 0;
    if (weir_http_uri_parse(weir_span_of_text(text), &uri) < 0 || uri.host.length == 0)
        return reject_proxy(text, "expected a URL such as http://host:3128");
    if (is_text(uri.scheme, "http"))
        client->proxy = WEIR__HTTP_PROXY_HTTP;
    else if (is_text(uri.scheme, "socks5") || is_text(uri.scheme, "socks5h"))
        client->proxy = WEIR__HTTP_PROXY_SOCKS5;
    else
        return reject_proxy(text, "expected http or socks5");
    port = uri.port >= 0 ? uri.port : client->proxy == WEIR__HTTP_PROXY_HTTP ? 3128 : 1080;
    err = weir_buf_create(uri.host.length + 16, 0, &address);
    if (err < 0)
        return err;
    err = weir_buf_printf(address, uri.is_ip_literal ? "[%.*s]:%d" : "%.*s:%d",
                          (int)uri.host.length, (const char *)uri.host.data, port);
    if (err >= 0) {
        client->proxy_address = weir__http_client_copy(weir_buf_span(address));
        err = client->proxy_address != NULL ? read_userinfo(client, uri.userinfo) : -ENOMEM;
    }
    weir_buf_release(address);
    if (err == -EINVAL)
        return reject_proxy(text, "malformed user or password");
    return err;
}

/* ---- closing ---- */

static void close_shard(weir__http_shard *shard)
{
    shard->is_closed = true;
    while (!weir__list_is_empty(&shard->calls))
        weir__http_call_fail(WEIR_CONTAINER_OF(shard->calls.next, weir_http_call, link),
                             WEIR_ECLOSED, "the client was closed");
    weir__http_origins_close(shard);
    weir__http_client_release_work(shard->client);
}

static void on_terminated(weir_promise *promise, void *user_data)
{
    (void)promise;
    close_shard(user_data);
}

/* What is left of a loop that has ended may still use the shard until it has terminated. */
static void on_closing(weir__http_shard *shard, uint32_t flags, int status)
{
    (void)flags;
    if (status == 0) {
        close_shard(shard);
        return;
    }
    shard->terminated = (weir_listener){.fn = on_terminated, .user_data = shard};
    weir_promise_listen(weir_executor_termination(shard->loop), &shard->terminated);
}

/* It insists: another thread must not close a shard whose loop may still begin. */
WEIR__MAILBOX_TYPE_WITH(shard_type, SUBSYSTEM, weir__http_shard, box, owner->loop,
                        weir__http_client_retain_memory(owner->client),
                        weir__http_client_release_memory(owner->client), on_closing,
                        .insists = true);

/* ---- creation ---- */

/* NULL if the options have a loop. */
static int find_group(const weir_http_client_options *options, weir_group **ret_group)
{
    enum weir_io io;

    if (options->group == NULL && options->loop == NULL)
        return weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "http"), ret_group);
    if (options->loop != NULL)
        io = weir_loop_io(options->loop);
    else
        io = weir_group_count(options->group) > 0 ? weir_loop_io(weir_group_at(options->group, 0))
                                                  : WEIR_IO_BLOCKING;
    if (io == WEIR_IO_NONE || io == WEIR_IO_BLOCKING)
        return -ENOTSUP;
    *ret_group = options->loop == NULL ? weir_group_retain(options->group) : NULL;
    return 0;
}

static void init_shard(weir_http_client *client, weir__http_shard *shard, weir_executor *loop)
{
    shard->client = client;
    shard->loop = weir_executor_retain(loop);
    weir__mailbox_init(&shard->box, &shard_type);
    weir__list_init(&shard->used);
    weir__list_init(&shard->calls);
}

static int create(const weir_http_client_options *options, weir_group *group,
                  weir_http_client **ret_client)
{
    size_t count = group != NULL ? weir_group_count(group) : 1;
    weir_http_client *client =
        weir__http_client_alloc(sizeof(*client) + count * sizeof(client->shards[0]));
    int err;

    if (client == NULL)
        return -ENOMEM;
    weir__refs_init(&client->users);
    weir__refs_init(&client->work);
    weir__refs_init(&client->memory);
    err = copy_options(client, options);
    if (err == 0)
        err = copy_texts(client, options);
    if (err == 0)
        err = read_proxy(client, options->proxy);
    if (err == 0)
        err = weir_promise_create(NULL, &client->closed);
    if (err < 0) {
        weir__http_client_release_memory(client);
        return err;
    }
    client->options.group = group != NULL ? weir_group_retain(group) : NULL;
    if (options->resolver != NULL)
        client->options.resolver = weir_resolver_retain(options->resolver);
    for (size_t i = 0; i < count; i++) {
        init_shard(client, &client->shards[i],
                   group != NULL ? weir_group_at(group, i) : options->loop);
        if (i > 0)
            weir__http_client_retain_work(client);
    }
    client->shard_count = count;
    weir__http_client_retain_memory(client); /* of the work */
    *ret_client = client;
    return 0;
}

int weir_http_client_create(const weir_http_client_options *given, weir_http_client **ret_client)
{
    weir_http_client_options options;
    weir_group *group = NULL;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = check(&options);
    if (err == 0)
        err = find_group(&options, &group);
    if (err == 0)
        err = create(&options, group, ret_client);
    weir_group_release(group);
    return err;
}

void weir_http_client_close(weir_http_client *client)
{
    size_t count = client->shard_count;

    /* Sequentially consistent by default: only the first caller continues. */
    if (atomic_exchange(&client->is_closing, true))
        return;
    weir__http_client_retain_memory(client);
    for (size_t i = 0; i < count; i++)
        weir__mailbox_set(&client->shards[i].box, 1);
    weir__http_client_release_memory(client);
}

weir_promise *weir_http_client_closed(weir_http_client *client)
{
    return client->closed;
}

/* ---- stats ---- */

static uint64_t sum(const weir_http_client *client, enum weir__http_client_counter counter)
{
    uint64_t total = 0;

    for (size_t i = 0; i < client->shard_count; i++)
        total += atomic_load_explicit(&client->shards[i].counters[counter], memory_order_relaxed);
    return total;
}

void weir_http_client_read_stats(const weir_http_client *client, weir_http_client_stats *ret_stats)
{
    uint64_t busy = sum(client, WEIR__HTTP_BUSY);
    uint64_t closed = sum(client, WEIR__HTTP_CLOSED);
    uint64_t open = sum(client, WEIR__HTTP_OPENED) - closed;

    *ret_stats = (weir_http_client_stats){
        .connections = open,
        .idle = open > busy ? open - busy : 0,
        .calls = sum(client, WEIR__HTTP_CALLS),
        .connected = sum(client, WEIR__HTTP_CONNECTED),
        .succeeded = sum(client, WEIR__HTTP_SUCCEEDED),
        .failed = sum(client, WEIR__HTTP_FAILED),
        .reused = sum(client, WEIR__HTTP_REUSED),
        .retried = sum(client, WEIR__HTTP_RETRIED),
        .redirected = sum(client, WEIR__HTTP_REDIRECTED),
    };
}
