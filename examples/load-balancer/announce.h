/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PROXY protocol, by which an upstream learns the client's address.
 */
#ifndef EXAMPLES_ANNOUNCE_H
#define EXAMPLES_ANNOUNCE_H

#include <weir/weir.h>

enum {
    ANNOUNCE_NOTHING, /* the values are the versions of the protocol */
    ANNOUNCE_V1,
    ANNOUNCE_V2,
};

/* Adds the handler that sends a header on a connection to an upstream: for this client, or for the
 * load balancer itself if `client` is NULL. */
int announce(weir_pipeline *pipeline, int version, weir_channel *client);

#endif
