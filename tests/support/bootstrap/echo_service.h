/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server, and counters of its connections.
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
    weir_executor *loops[ECHO_SERVICE_CHILDREN_MAX]; /* of the connections, in any order */
    _Atomic int init_err;                            /* the result of the initializer */
    bool drains_itself; /* its handler has `draining`, which does not close */
    struct call_counter drained;
};

/* Starts it. Defaults: any port of the loopback interface, echo_service_init, and a close timeout
 * of 200 ms, so that a peer that stays open does not delay the end. user_data is the service. */
weir_server *echo_service_start(struct echo_service *service, const weir_server_options *options);

/* The same, where it may fail. */
int echo_service_try(struct echo_service *service, const weir_server_options *options,
                     weir_server **ret_server);

/* The initializer of its connections. */
int echo_service_init(weir_channel *channel, void *service);

/* Stops and releases the server. */
void echo_service_stop(weir_server *server);

#endif
