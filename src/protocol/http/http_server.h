/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of weir_http_server: validated options, and what its connections share.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP_SERVER_H
#define WEIR_PROTOCOL_HTTP_HTTP_SERVER_H

#include <weir/http_server.h>

/* Copies of the options, which the connections read. Immutable once the server has started. */
typedef struct weir__http_server_config {
    weir_http_server_options options; /* as given; the pointers below replace some of it */
    weir_channel_options child;
    weir_http1_options http1;
    const char **addresses; /* all of them, those with TLS last; NULL-terminated */
    size_t plain_count;     /* addresses without TLS */
} weir__http_server_config;

/* Copies the options. Fails with -EINVAL, which is logged, or -ENOMEM. */
int weir__http_server_config_init(weir__http_server_config *config,
                                  const weir_http_server_options *given);
void weir__http_server_config_deinit(weir__http_server_config *config);

/* True if a listener, or a connection that it has accepted, is one with TLS. */
bool weir__http_server_is_tls(const weir_http_server *server, weir_channel *channel);

/* The argument of weir_http_server_add_routes with this function; NULL if there was none. */
void *weir__http_server_find_added(weir_http_server *server, void (*released)(void *arg));

#endif
