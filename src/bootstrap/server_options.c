/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server is asked for: checked, with its defaults, and with the options of its channels.
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

static int check_initialisers(const weir_server_options *options)
{
    if (options->kind == WEIR_KIND_DATAGRAM && options->init_child != NULL)
        return weir__options_reject("server", NULL,
                                    "datagrams have no connections: init_child is of no use");
    if (options->kind == WEIR_KIND_DATAGRAM && options->init_server == NULL)
        return weir__options_reject("server", NULL, "there is no init_server");
    if (options->kind != WEIR_KIND_DATAGRAM && options->init_child == NULL)
        return weir__options_reject("server", NULL, "there is no init_child");
    return 0;
}

static int check(const weir_server_options *options)
{
    int err;

    if (options->boss == NULL)
        return weir__options_reject("server", NULL, "there is no group, neither boss nor workers");
    if (weir__server_addresses(options) == 0 && options->adopt_count == 0)
        return weir__options_reject("server", NULL, "there is no address");
    err = weir__options_check("server", NULL, WEIR__OPTION(options, acceptors, 0, ACCEPTORS_MAX),
                              WEIR__OPTION_FROM(options, backlog, 0),
                              WEIR__OPTION_FROM(options, restart_probation_ns, WEIR_OFF));
    return err < 0 ? err : check_initialisers(options);
}

/* ---- reading ---- */

/* Only where nothing was handed over there is something to bind. */
static int inherit(weir__server_order *order)
{
    size_t count;
    int err = weir__inherited_fds_find(&order->inherited, &count);

    if (err < 0 || count == 0)
        return err;
    order->options.address = NULL;
    order->options.addresses = NULL;
    order->options.adopt = order->inherited;
    order->options.adopt_count = count;
    return 0;
}

static int read_channel_options(weir__server_order *order)
{
    weir_server_options *options = &order->options;
    int err = weir__options_read(&order->listener, sizeof(order->listener), options->options);

    if (err == 0)
        err = weir__options_read(&order->child, sizeof(order->child), options->child_options);
    if (options->acceptors > 1)
        order->listener.reuse_port = true;
    if (options->backlog > 0)
        order->listener.backlog = options->backlog;
    if (options->inherit || options->restart_argv != NULL)
        order->child.drain_waits = true;
    options->options = &order->listener;
    options->child_options = &order->child;
    return err;
}

int weir__server_order_read(weir__server_order *order, const weir_server_options *given)
{
    weir_server_options *options = &order->options;
    int err = weir__options_read(options, sizeof(*options), given);

    order->inherited = NULL;
    if (err < 0)
        return err;
    if (options->adopt_count > 0 && options->adopt == NULL)
        return weir__options_reject("server", NULL, "there is nothing to adopt");
    if (options->adopt_count > 0 && options->inherit)
        err = weir__options_reject("server", NULL, "it can adopt or inherit, and not both");
    if (options->boss == NULL)
        options->boss = options->workers;
    if (options->workers == NULL)
        options->workers = options->boss;
    if (err == 0 && options->inherit)
        err = inherit(order);
    if (err == 0)
        err = check(options);
    if (err == 0)
        err = read_channel_options(order);
    if (err < 0) {
        weir__inherited_fds_close(options, 0);
        weir__server_order_deinit(order);
    }
    return err;
}

void weir__server_order_deinit(weir__server_order *order)
{
    weir__free(order->inherited);
}
