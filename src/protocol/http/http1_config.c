/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/http1_config.h"

#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#include "base/options.h"
#include "os/mutex.h"

#define START_LINE_DEFAULT 8192
#define HEADER_BYTES_DEFAULT 32768
#define HEADER_FIELDS_DEFAULT 100
#define CHUNK_DEFAULT (INT64_C(1) << 30)
#define MIN_RATE_DEFAULT 1024
#define HEAD_BYTES_MAX (1 << 24)

static int check(const weir_http1_options *options)
{
    return weir__options_check("http1", NULL,
                               WEIR__OPTION(options, max_start_line, 0, HEAD_BYTES_MAX),
                               WEIR__OPTION(options, max_header_bytes, 0, HEAD_BYTES_MAX),
                               WEIR__OPTION(options, max_header_fields, 0, UINT16_MAX),
                               WEIR__OPTION_FROM(options, max_chunk, 0),
                               WEIR__OPTION_FROM(options, head_timeout_ns, WEIR_OFF),
                               WEIR__OPTION_FROM(options, idle_timeout_ns, WEIR_OFF),
                               WEIR__OPTION(options, min_rate, WEIR_OFF, UINT32_MAX),
                               WEIR__OPTION_FROM(options, max_requests, 0));
}

static int64_t or_default(int64_t value, int64_t usual, int64_t off)
{
    if (value == WEIR_OFF)
        return off;
    return value != 0 ? value : usual;
}

static int fill(weir__http1_config *config, const weir_http1_options *given)
{
    weir_http1_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = check(&options);
    if (err < 0)
        return err;
    memset(config, 0, sizeof(*config)); /* also the padding: configs are compared */
    config->limits.max_start_line =
        (uint32_t)or_default(options.max_start_line, START_LINE_DEFAULT, 0);
    config->limits.max_header_bytes =
        (uint32_t)or_default(options.max_header_bytes, HEADER_BYTES_DEFAULT, 0);
    config->limits.max_header_fields =
        (uint32_t)or_default(options.max_header_fields, HEADER_FIELDS_DEFAULT, 0);
    config->max_chunk = or_default(options.max_chunk, CHUNK_DEFAULT, 0);
    config->min_rate = (uint32_t)or_default(options.min_rate, MIN_RATE_DEFAULT, 0);
    config->max_requests = or_default(options.max_requests, INT64_MAX, 0);
    config->head_timeout_ns = or_default(options.head_timeout_ns, weir_seconds(15), WEIR_NEVER);
    config->keeps_half_closed = options.keep_half_closed;
    config->idle_timeout_ns = or_default(options.idle_timeout_ns, weir_seconds(60), WEIR_NEVER);
    return 0;
}

/* ---- sharing ---- */

struct shared {
    weir__http1_config config; /* first */
    struct shared *next;
    size_t connections;
};

static weir__mutex lock = WEIR__MUTEX_INIT;
static struct shared *configs; /* under the lock; one or two, as a rule */

/* Under the lock. */
static struct shared *find_or_add(const weir__http1_config *config)
{
    struct shared *shared = configs;

    while (shared != NULL && memcmp(&shared->config, config, sizeof(*config)) != 0)
        shared = shared->next;
    if (shared != NULL)
        return shared;
    shared = weir_memory_alloc(sizeof(*shared));
    if (shared == NULL)
        return NULL;
    memcpy(&shared->config, config, sizeof(*config));
    shared->connections = 0;
    shared->next = configs;
    configs = shared;
    return shared;
}

int weir__http1_config_get(const weir_http1_options *options, const weir__http1_config **ret_config)
{
    weir__http1_config config;
    struct shared *shared;
    int err = fill(&config, options);

    if (err < 0)
        return err;
    weir__mutex_lock(&lock);
    shared = find_or_add(&config);
    if (shared != NULL)
        shared->connections++;
    weir__mutex_unlock(&lock);
    if (shared == NULL)
        return -ENOMEM;
    *ret_config = &shared->config;
    return 0;
}

void weir__http1_config_release(const weir__http1_config *config)
{
    struct shared **link = &configs, *unused = NULL;

    if (config == NULL)
        return;
    weir__mutex_lock(&lock);
    while (&(*link)->config != config)
        link = &(*link)->next;
    if (--(*link)->connections == 0) {
        unused = *link;
        *link = unused->next;
    }
    weir__mutex_unlock(&lock);
    weir_memory_free(unused);
}
