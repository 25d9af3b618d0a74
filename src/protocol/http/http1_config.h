/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of the codec, with their defaults.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP1_CONFIG_H
#define WEIR_PROTOCOL_HTTP_HTTP1_CONFIG_H

#include <weir/http1.h>

#include "protocol/http/http1_head.h"

typedef struct weir__http1_config {
    weir__http1_limits limits;
    uint32_t min_rate; /* bytes per second; 0 = none */
    int64_t max_chunk; /* the others: INT64_MAX or WEIR_NEVER = none */
    int64_t max_requests;
    int64_t head_timeout_ns;
    int64_t idle_timeout_ns;
} weir__http1_config;

/* Fails with -EINVAL. */
int weir__http1_config_init(weir__http1_config *config, const weir_http1_options *options);

#endif
