/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets that a server adopts: from its options, or passed to the process at its start.
 */
#include <errno.h>
#include <stdio.h>

#include <weir/restart.h>
#include <weir/transport.h>

#include "base/memory.h"
#include "base/options.h"
#include "bootstrap/server.h"
#include "bootstrap/transport_for.h"
#include "channel/channel.h"
#include "os/descriptor.h"

/* The count was read before, so all of them fit. */
static int take(weir_systemd_listener *listeners, int *descriptors, int count)
{
    int taken = weir_systemd_listeners(true, listeners, (size_t)count);

    for (int i = 0; i < taken; i++)
        descriptors[i] = listeners[i].descriptor;
    return taken;
}

int weir__inherited_fds_find(int **ret_descriptors, size_t *ret_count)
{
    int count = weir_systemd_listeners(false, NULL, 0), taken = -ENOMEM;
    weir_systemd_listener *listeners;
    int *descriptors;

    *ret_count = 0;
    if (count <= 0)
        return count;
    listeners = weir__alloc((size_t)count * sizeof(*listeners));
    descriptors = weir__alloc((size_t)count * sizeof(*descriptors));
    if (listeners != NULL && descriptors != NULL)
        taken = take(listeners, descriptors, count);
    weir__free(listeners);
    if (taken < 0) {
        weir__free(descriptors);
        return taken;
    }
    *ret_descriptors = descriptors;
    *ret_count = (size_t)taken;
    return 0;
}

/* Owns the descriptor, even on failure. */
static int adopt(const weir_server_options *options, int descriptor, weir_channel **ret_channel)
{
    int err =
        options->kind == WEIR_KIND_DATAGRAM
            ? weir_adopt(descriptor, options->options, ret_channel)
            : weir_adopt_server(descriptor, options->options, options->child_options, ret_channel);

    if (err < 0)
        (void)weir__descriptor_close(descriptor);
    return err;
}

int weir__inherited_fds_adopt(const weir_server_options *options, int descriptor,
                              weir__listening *listening)
{
    weir_channel *channel;
    int err = adopt(options, descriptor, &channel);

    if (err < 0)
        return err;
    if (options->kind == WEIR_KIND_DATAGRAM && !channel->transport->connectionless) {
        weir_channel_release(channel);
        return weir__options_reject("server", NULL, "the adopted socket is not a datagram socket");
    }
    listening->channel = channel;
    listening->is_adopted = true;
    /* For the log, and to find the listeners that share an address. */
    (void)weir_channel_local_address(listening->channel, &listening->address);
    return 0;
}

void weir__inherited_fds_close(const weir_server_options *options, size_t first)
{
    for (size_t i = first; i < options->adopt_count; i++)
        (void)weir__descriptor_close(options->adopt[i]);
}
