/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of HTTP servers: validation and copies.
 */
#include <errno.h>

#include <weir/memory.h>

#include "base/options.h"
#include "protocol/http/alpn.h"
#include "protocol/http/http_server.h"

/* ---- addresses ---- */

static size_t count_list(const char *const *list)
{
    size_t count = 0;

    while (list != NULL && list[count] != NULL)
        count++;
    return count;
}

static const char **append(const char **to, const char *first, const char *const *more)
{
    size_t count = count_list(more);

    if (first != NULL)
        *to++ = first;
    for (size_t i = 0; i < count; i++)
        *to++ = more[i];
    *to = NULL;
    return to;
}

/* Only used until the server has started: the texts are not copied. */
static int collect_addresses(weir__http_server_config *config)
{
    const weir_http_server_options *options = &config->options;
    size_t count = count_list(options->addresses) + count_list(options->tls_addresses) + 3;
    const char **end;

    config->addresses = weir_memory_alloc(count * sizeof(*config->addresses));
    if (config->addresses == NULL)
        return -ENOMEM;
    end = append(config->addresses, options->address, options->addresses);
    config->plain_count = (size_t)(end - config->addresses);
    (void)append(end, options->tls_address, options->tls_addresses);
    return 0;
}

/* ---- checks ---- */

static int check(const weir__http_server_config *config)
{
    const weir_http_server_options *options = &config->options;
    bool has_tls = config->addresses[config->plain_count] != NULL;

    if ((options->routes != NULL) == (options->router != NULL))
        return weir__options_reject("http-server", NULL, "one of .routes and .router is required");
    if (config->addresses[0] == NULL && !options->inherit)
        return weir__options_reject("http-server", NULL, ".address or .tls_address is required");
    if (has_tls && (options->tls == NULL || options->add_tls == NULL))
        return weir__options_reject("http-server", NULL,
                                    ".tls_address needs .tls and .add_tls = weir_tls_add");
    if (options->workers != NULL && (options->threads != 0 || options->io != WEIR_IO_AUTO))
        return weir__options_reject("http-server", NULL,
                                    ".workers and .threads or .io are mutually exclusive");
    if (options->loop != NULL && (options->boss != NULL || options->workers != NULL ||
                                  options->threads != 0 || options->io != WEIR_IO_AUTO))
        return weir__options_reject(
            "http-server", NULL,
            ".loop and .boss, .workers, .threads or .io are mutually exclusive");
    return weir__options_check("http-server", NULL, WEIR__OPTION(options, threads, 0, INT32_MAX));
}

static int add_tls(weir_pipeline *pipeline, const void *options_)
{
    const weir_http_server_options *options = options_;

    return options->add_tls(pipeline, options->tls);
}

static int read_parts(weir__http_server_config *config)
{
    const weir_http_server_options *options = &config->options;
    int err = weir__options_read(&config->child, sizeof(config->child), options->child_options);

    if (err == 0)
        err = weir__options_read(&config->http1, sizeof(config->http1), options->http1);
    if (options->offload_when_blocking != NULL)
        config->child.offload_when_blocking = options->offload_when_blocking;
    config->child.half_closure = true; /* the codec decides: `keep_half_closed` */
    config->child.report_hangup = true;
    config->child.alpn = WEIR__HTTP_SERVER_ALPN;
    if (err == 0 && options->tls != NULL && options->add_tls != NULL)
        err = weir__http_alpn_check(config->child.alpn, add_tls, options);
    return err;
}

int weir__http_server_config_init(weir__http_server_config *config,
                                  const weir_http_server_options *given)
{
    int err = weir__options_read(&config->options, sizeof(config->options), given);

    if (err < 0)
        return err;
    err = collect_addresses(config);
    if (err == 0)
        err = check(config);
    if (err == 0)
        err = read_parts(config);
    if (err < 0)
        weir__http_server_config_deinit(config);
    return err;
}

void weir__http_server_config_deinit(weir__http_server_config *config)
{
    weir_memory_free(config->addresses);
}
