/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP: datagram sockets for internet addresses.
 */
#include <weir/udp.h>

#include "transport/datagrams.h"

static const weir__transport udp = {
    .name = "udp",
    .size = sizeof(weir__datagrams),
    .connectionless = true,
    .has_disconnect = true,
    .suits = weir__endpoint_suits,
    .attach = weir__endpoint_attach,
    .detach = weir__endpoint_detach,
    .is_active = weir__datagrams_is_active,
    .bind = weir__datagrams_bind,
    .connect = weir__datagrams_connect,
    .disconnect = weir__datagrams_disconnect,
    .close = weir__datagrams_close,
    .read_start = weir__datagrams_read_start,
    .read_stop = weir__datagrams_read_stop,
    .admit = weir__datagrams_admit,
    .flush = weir__datagrams_flush,
    .due = weir__datagrams_due,
    .local_address = weir__endpoint_local_address,
    .remote_address = weir__endpoint_remote_address,
    .set_socket_option = weir__endpoint_set_socket_option,
    .get_socket_option = weir__endpoint_get_socket_option,
    .configure = weir__datagrams_configure,
    .destroy = weir__datagrams_destroy,
};

int weir_udp_create(const weir_channel_options *options, weir_channel **ret_channel)
{
    return weir__datagrams_create(&udp, options, ret_channel);
}
