/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a server: validation, defaults, and the options of its channels.
 */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "bootstrap/server.h"
#include "bootstrap/transport_for.h"

#define ACCEPTORS_MAX 1024

size_t weir__server_acceptors(const weir_server_options *options)
{
    return options->acceptors > 0 ? (size_t)options->acceptors : 1;
}

size_t weir__server_addresses(const weir_server_options *options)
{
    const char *const *address = options->addresses;
    size_t count = options->address != NULL;

    for (; address != NULL && *address != NULL; address++)
        count++;
    return count;
}

const char *weir__server_address_at(const weir_server_options *options, size_t index)
{
    if (options->address == NULL)
        return options->addresses[index];
    return index == 0 ? options->address : options->addresses[index - 1];
}

/* ---- checks ---- */

static int check_initializers(const weir_server_options *options)
{
    if (options->kind == WEIR_KIND_DATAGRAM && options->init_child != NULL)
        return weir__options_reject("server", NULL,
                                    ".init_child: datagram servers have no connections");
    if (options->kind == WEIR_KIND_DATAGRAM && options->init_server == NULL)
        return weir__options_reject("server", NULL, ".init_server is required for datagrams");
    if (options->kind != WEIR_KIND_DATAGRAM && options->init_child == NULL)
        return weir__options_reject("server", NULL, ".init_child is required");
    return 0;
}

static int check(const weir_server_options *options)
{
    int err;

    if (options->loop != NULL && options->boss != NULL)
        return weir__options_reject("server", NULL,
                                    ".loop and .boss or .workers are mutually exclusive");
    if (options->loop != NULL && options->acceptors > 1)
        return weir__options_reject("server", NULL,
                                    ".loop and .acceptors > 1 are mutually exclusive");
    if (options->loop == NULL && options->boss == NULL)
        return weir__options_reject("server", NULL, ".boss, .workers or .loop is required");
    if (weir__server_addresses(options) == 0 && options->adopt_count == 0)
        return weir__options_reject("server", NULL, ".address is required");
    err = weir__options_check("server", NULL, WEIR__OPTION(options, acceptors, 0, ACCEPTORS_MAX),
                              WEIR__OPTION_FROM(options, backlog, 0),
                              WEIR__OPTION_FROM(options, restart_probation_ns, WEIR_OFF),
                              WEIR__OPTION_FROM(options, drain_timeout_ns, WEIR_OFF));
    return err < 0 ? err : check_initializers(options);
}

/* ---- reading ---- */

/* Inherited sockets replace the addresses. */
static int inherit(weir__server_config *config)
{
    size_t count;
    int err = weir__inherited_fds_find(&config->inherited, &count);

    if (err < 0 || count == 0)
        return err;
    config->options.address = NULL;
    config->options.addresses = NULL;
    config->options.adopt = config->inherited;
    config->options.adopt_count = count;
    return 0;
}

static int read_channel_options(weir__server_config *config)
{
    weir_server_options *options = &config->options;
    int err = weir__options_read(&config->listener, sizeof(config->listener), options->options);

    if (err == 0)
        err = weir__options_read(&config->child, sizeof(config->child), options->child_options);
    if (options->acceptors > 1)
        config->listener.reuse_port = true;
    if (options->backlog > 0)
        config->listener.backlog = options->backlog;
    if (options->inherit || options->restart_argv != NULL)
        config->child.drain_waits = true;
    if (options->offload_when_blocking != NULL) /* datagrams come to the listener */
        (options->kind == WEIR_KIND_DATAGRAM ? &config->listener : &config->child)
            ->offload_when_blocking = options->offload_when_blocking;
    options->options = &config->listener;
    options->child_options = &config->child;
    return err;
}

int weir__server_config_init(weir__server_config *config, const weir_server_options *given)
{
    weir_server_options *options = &config->options;
    int err = weir__options_read(options, sizeof(*options), given);

    config->inherited = NULL;
    if (err < 0)
        return err;
    if (options->adopt_count > 0 && options->adopt == NULL)
        return weir__options_reject("server", NULL, ".adopt_count is %zu, but .adopt is NULL",
                                    options->adopt_count);
    if (options->adopt_count > 0 && options->inherit)
        err = weir__options_reject("server", NULL, ".adopt and .inherit are mutually exclusive");
    if (options->boss == NULL)
        options->boss = options->workers;
    if (options->workers == NULL)
        options->workers = options->boss;
    if (err == 0 && options->inherit)
        err = inherit(config);
    if (err == 0)
        err = check(options);
    if (err == 0)
        err = read_channel_options(config);
    if (err < 0) {
        weir__inherited_fds_close(options, 0);
        weir__server_config_deinit(config);
    }
    return err;
}

void weir__server_config_deinit(weir__server_config *config)
{
    weir__free(config->inherited);
}
