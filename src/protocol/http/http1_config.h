/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of the codec, with their defaults.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP1_CONFIG_H
#define WEIR_PROTOCOL_HTTP_HTTP1_CONFIG_H

#include <weir/http1.h>

#include "protocol/http/http1_head.h"

/* Constant, and shared by all connections with the same options. */
typedef struct weir__http1_config {
    weir__http1_limits limits;
    uint32_t min_rate; /* bytes per second; 0 = none */
    int64_t max_chunk; /* the others: INT64_MAX or WEIR_NEVER = none */
    int64_t max_requests;
    int64_t head_timeout_ns;
    int64_t idle_timeout_ns;
    bool keeps_half_closed;
} weir__http1_config;

/* Gets the config of these options. Fails with -EINVAL, -ENOMEM. */
int weir__http1_config_get(const weir_http1_options *options,
                           const weir__http1_config **ret_config);

/* Releases it. NULL is ignored. */
void weir__http1_config_release(const weir__http1_config *config);

#endif
