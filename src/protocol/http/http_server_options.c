/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of HTTP servers: validation and copies.
 */
#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#include "base/options.h"
#include "protocol/http/http_server.h"

/* Copied texts, chained to be freed. */
struct weir__http_server_texts {
    struct weir__http_server_texts *next;
    const char *list[];
};

/* ---- copying texts ---- */

/* Copies a NULL-terminated list and its texts into one block. */
static int copy_list(weir__http_server_config *config, const char *const **list)
{
    struct weir__http_server_texts *copy;
    size_t count = 0, bytes = 0;
    char *text;

    if (*list == NULL)
        return 0;
    for (; (*list)[count] != NULL; count++)
        bytes += strlen((*list)[count]) + 1;
    copy = weir_memory_alloc(sizeof(*copy) + (count + 1) * sizeof(copy->list[0]) + bytes);
    if (copy == NULL)
        return -ENOMEM;
    text = (char *)(copy->list + count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen((*list)[i]) + 1;

        memcpy(text, (*list)[i], size);
        copy->list[i] = text;
        text += size;
    }
    copy->list[count] = NULL;
    copy->next = config->texts;
    config->texts = copy;
    *list = copy->list;
    return 0;
}

static int copy_text(weir__http_server_config *config, const char **text)
{
    const char *const one[] = {*text, NULL};
    const char *const *list = one;
    int err = *text != NULL ? copy_list(config, &list) : 0;

    if (err == 0 && *text != NULL)
        *text = list[0];
    return err;
}

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
    return weir__options_check("http-server", NULL, WEIR__OPTION(options, threads, 0, INT32_MAX));
}

static int read_parts(weir__http_server_config *config)
{
    const weir_http_server_options *options = &config->options;
    int err = weir__options_read(&config->child, sizeof(config->child), options->child_options);

    if (err == 0)
        err = weir__options_read(&config->http1, sizeof(config->http1), options->http1);
    if (err == 0)
        err = weir__options_read(&config->compression, sizeof(config->compression),
                                 options->compression);
    if (err == 0)
        err = weir__options_read(&config->cors, sizeof(config->cors), options->cors);
    if (err == 0)
        err = weir__options_read(&config->security, sizeof(config->security), options->security);
    if (err == 0)
        err = copy_list(config, &config->compression.types);
    if (err == 0)
        err = copy_list(config, &config->cors.origins);
    if (err == 0)
        err = copy_list(config, &config->cors.methods);
    if (err == 0)
        err = copy_list(config, &config->cors.headers);
    if (err == 0)
        err = copy_list(config, &config->cors.exposed_headers);
    if (err == 0)
        err = copy_text(config, &config->security.frame_options);
    if (err == 0)
        err = copy_text(config, &config->security.referrer_policy);
    if (err == 0)
        err = copy_text(config, &config->security.content_security);
    config->child.half_closure = true; /* a client may end its stream and wait for the response */
    return err;
}

int weir__http_server_config_init(weir__http_server_config *config,
                                  const weir_http_server_options *given)
{
    int err = weir__options_read(&config->options, sizeof(config->options), given);

    if (err < 0)
        return err;
    config->texts = NULL;
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
    struct weir__http_server_texts *texts;

    while ((texts = config->texts) != NULL) {
        config->texts = texts->next;
        weir_memory_free(texts);
    }
    weir_memory_free(config->addresses);
}
