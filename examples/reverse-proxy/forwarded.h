/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields that report the client to an upstream: Forwarded (RFC 7239), X-Forwarded-For,
 * X-Forwarded-Proto and Via.
 */
#ifndef EXAMPLES_FORWARDED_H
#define EXAMPLES_FORWARDED_H

#include <weir/http_server.h>

/* Adds the fields to a request that is to be forwarded. */
int forwarded_add(weir_http_request *request, weir_channel *client, bool is_tls);

/* Adds a handler that remembers the address of a PROXY header. */
int forwarded_listen(weir_pipeline *pipeline);

#endif
