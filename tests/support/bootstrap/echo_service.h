/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that echoes, and what it has seen of its visitors.
 *
 *     struct echo_service service = {0};
 *     weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
 */
#ifndef WEIR_TEST_ECHO_SERVICE_H
#define WEIR_TEST_ECHO_SERVICE_H

#include <stdatomic.h>

#include <weir/server.h>

#include "support/executor/call_counter.h"

#define ECHO_SERVICE_CHILDREN_MAX 64

struct echo_service {
    struct call_counter opened; /* connections */
    struct call_counter closed;
    _Atomic uint32_t placed;
    weir_executor *loops[ECHO_SERVICE_CHILDREN_MAX]; /* where each of them lives, in any order */
    _Atomic int init_err;                            /* what the initialiser says */
    bool drains_itself; /* its handler has `draining`, and does not close by that */
    struct call_counter drained;
};

/* Starts it; what the options do not say is an address of the loopback interface, any port, and
 * `service` for each connection. The user_data is the service. */
weir_server *echo_service_start(struct echo_service *service, const weir_server_options *options);

/* The same, if that may fail. */
int echo_service_try(struct echo_service *service, const weir_server_options *options,
                     weir_server **ret_server);

/* The initialiser of its connections. */
int echo_service_init(weir_channel *channel, void *service);

/* weir_server_stop, without a quiet period, and the last reference. */
void echo_service_stop(weir_server *server);

#endif
