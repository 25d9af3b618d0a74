/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP servers: a weir_server whose connections have the codec, the filters and the routes.
 */
#include "protocol/http/http_server.h"

#include <errno.h>
#include <string.h>

#include <weir/chunks.h>
#include <weir/clock.h>
#include <weir/error.h>
#include <weir/memory.h>
#include <weir/proxy_protocol.h>

#include "base/log.h"
#include "base/options.h"
#include "protocol/http/client_address.h"
#include "protocol/http/filters.h"
#include "protocol/http/forwarded.h"
#include "protocol/http/plain_refusal.h"
#include "protocol/http/server_routes.h"

#define RELEASE_TIMEOUT_NS weir_seconds(10)

struct weir_http_server {
    weir__http_server_config config;
    weir_server *server;
    weir_group *group; /* its own; NULL = the caller's, or a loop */
    weir__http_server_routes routes;
    weir__http_trust *trust; /* these: NULL = none */
    weir_http_client_limit *client_limit;
    weir__http_security *security[2]; /* without and with TLS */
    weir__http_cors *cors;
    weir__http_compression *compression;
    bool is_stopped;
};

/* ---- connections ---- */

/* TLS, and what turns files into bytes for it. */
static int add_tls(const weir_http_server_options *options, weir_pipeline *pipeline)
{
    int err = weir__http_plain_refusal_add(pipeline);

    if (err == 0)
        err = options->add_tls(pipeline, options->tls);
    if (err == 0)
        err = weir_chunked_writing_add(pipeline);
    return err == 0 ? weir_file_reading_add(pipeline) : err;
}

static int add_filters(const weir_http_server *server, weir_pipeline *pipeline, bool is_tls)
{
    const weir_http_server_options *options = &server->config.options;
    int err = 0;

    if (err == 0 && options->access_log != NULL)
        err = weir_http_access_log_add(pipeline, options->access_log);
    if (err == 0 && options->request_ids)
        err = weir_http_request_ids_add(pipeline);
    if (err == 0 && server->client_limit != NULL)
        err = weir_http_client_limit_add(pipeline, server->client_limit);
    if (err == 0 && server->security[is_tls] != NULL)
        err = weir__http_security_add(pipeline, server->security[is_tls]);
    if (err == 0 && server->cors != NULL)
        err = weir__http_cors_add(pipeline, server->cors);
    if (err == 0 && server->compression != NULL)
        err = weir__http_compression_add(pipeline, server->compression);
    return err;
}

bool weir__http_server_is_tls(const weir_http_server *server, weir_channel *channel)
{
    return weir_server_address_index(channel) >= (int)server->config.plain_count;
}

static int init_connection(weir_channel *channel, void *user_data)
{
    const weir_http_server *server = user_data;
    const weir_http_server_options *options = &server->config.options;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    bool is_tls = weir__http_server_is_tls(server, channel);
    int err = 0;

    if (options->proxy_protocol)
        err = weir_proxy_receiver_add(pipeline, NULL);
    if (err == 0 && server->trust != NULL)
        err = weir__http_trust_set(channel, server->trust);
    if (err == 0 && is_tls)
        err = weir__http_set_encrypted(channel);
    if (err == 0 && is_tls)
        err = add_tls(options, pipeline);
    if (err == 0)
        err = weir_http1_server_add(pipeline, &server->config.http1);
    if (err == 0)
        err = add_filters(server, pipeline, is_tls);
    if (err == 0 && options->init_connection != NULL)
        err = options->init_connection(channel, options->user_data);
    return err == 0
               ? weir_http_router_add(pipeline, weir__http_server_routes_current(&server->routes),
                                      options->max_content)
               : err;
}

/* ---- starting ---- */

static int create_security(weir_http_server *server, const weir_http_security_options *given)
{
    weir_http_security_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = weir__http_security_create(&options, &server->security[false]);
    options.is_tls = true;
    return err == 0 ? weir__http_security_create(&options, &server->security[true]) : err;
}

/* The filters that connections share. */
static int create_filters(weir_http_server *server)
{
    const weir_http_server_options *options = &server->config.options;
    int err = 0;

    if (options->trusted_proxies != NULL)
        err = weir__http_trust_create(options->trusted_proxies, options->trusted_field,
                                      &server->trust);
    if (err == 0 && options->client_limits != NULL)
        err = weir_http_client_limit_create(options->client_limits, &server->client_limit);
    if (err == 0 && options->security != NULL)
        err = create_security(server, options->security);
    if (err == 0 && options->cors != NULL)
        err = weir__http_cors_create(options->cors, &server->cors);
    if (err == 0 && options->compression != NULL)
        err = weir__http_compression_create(options->compression, &server->compression);
    return err;
}

static int create_parts(weir_http_server *server)
{
    const weir_http_server_options *options = &server->config.options;
    int err = weir__http_server_routes_init(&server->routes, options->routes, options->router);

    if (err == 0)
        err = create_filters(server);
    if (err == 0 && options->workers == NULL && options->loop == NULL)
        err = weir_group_create(
            WEIR_GROUP_OPTIONS(.threads = options->threads, .io = options->io, .name = "http"),
            &server->group);
    if (err == 0 && options->access_log != NULL)
        (void)weir_http_access_log_retain(options->access_log);
    else
        server->config.options.access_log = NULL;
    return err;
}

static void free_server(weir_http_server *server)
{
    weir_server_release(server->server);
    weir_group_release(server->group);
    weir_http_access_log_release(server->config.options.access_log);
    weir__http_trust_release(server->trust);
    weir_http_client_limit_release(server->client_limit);
    weir__http_security_release(server->security[false]);
    weir__http_security_release(server->security[true]);
    weir__http_cors_release(server->cors);
    weir__http_compression_release(server->compression);
    weir__http_server_routes_deinit(&server->routes);
    weir__http_server_config_deinit(&server->config);
    weir_memory_free(server);
}

static int start(weir_http_server *server)
{
    const weir_http_server_options *options = &server->config.options;

    return weir_server_start(
        WEIR_SERVER_OPTIONS(.boss = options->boss,
                            .workers = server->group != NULL ? server->group : options->workers,
                            .loop = options->loop, .addresses = server->config.addresses,
                            .acceptors = options->acceptors, .init_child = init_connection,
                            .user_data = server, .child_options = &server->config.child,
                            .inherit = options->inherit, .restart_argv = options->restart_argv,
                            .drain_timeout_ns = options->drain_timeout_ns),
        &server->server);
}

int weir_http_server_start(const weir_http_server_options *options, weir_http_server **ret_server)
{
    weir_http_server *server = weir_memory_alloc(sizeof(*server));
    int err;

    if (server == NULL)
        return -ENOMEM;
    memset(server, 0, sizeof(*server));
    err = weir__http_server_config_init(&server->config, options);
    if (err < 0) {
        weir_memory_free(server);
        return err;
    }
    err = create_parts(server);
    if (err == 0)
        err = start(server);
    if (err < 0 && server->group != NULL) { /* its loops may still close listeners */
        (void)weir_group_shutdown(server->group, 0, RELEASE_TIMEOUT_NS);
        (void)weir_group_await_termination(server->group, RELEASE_TIMEOUT_NS);
    }
    if (err < 0)
        free_server(server);
    else
        *ret_server = server;
    return err;
}

/* ---- running and stopping ---- */

int weir_http_server_run(weir_http_server *server)
{
    int err = weir_server_run(server->server);

    server->is_stopped = err == 0;
    return err;
}

int weir_http_server_stop(weir_http_server *server, int64_t timeout_ns)
{
    int err = weir_server_stop(server->server, 0, timeout_ns);

    server->is_stopped = err == 0;
    return err;
}

void weir_http_server_release(weir_http_server *server)
{
    if (server == NULL)
        return;
    if (!server->is_stopped)
        (void)weir_http_server_stop(server, RELEASE_TIMEOUT_NS);
    if (!server->is_stopped) {
        /* A handler blocks its loop. When it returns, the loop may still use the server. */
        weir__error("http", "server", "not freed: a loop has not ended");
        return;
    }
    free_server(server);
}

int weir_http_server_add_routes(weir_http_server *server, const weir_http_route *routes,
                                void (*released)(void *arg), void *arg)
{
    return weir__http_server_routes_add(&server->routes, routes, released, arg);
}

void *weir__http_server_find_added(weir_http_server *server, void (*released)(void *arg))
{
    return weir__http_server_routes_find(&server->routes, released);
}

weir_server *weir_http_server_server(const weir_http_server *server)
{
    return server->server;
}
