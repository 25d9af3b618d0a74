/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/kind.h"

#include <weir/error.h>
#include <weir/inproc.h>
#include <weir/tcp.h>

#include "base/log.h"
#include "channel/channel.h"

void weir__kind_complain(const char *bootstrap, const char *reason)
{
    weir__error(bootstrap, "-", "options make no sense: %s", reason);
}

int weir__kind_parse(const char *text, weir_address *ret_address)
{
    int err = weir_address_parse(text, ret_address);

    if (err == -EINVAL)
        weir__error("bootstrap", text,
                    "is no address, as 127.0.0.1:8007 and [::1]:8007 are; host "
                    "names are not looked up");
    else if (err < 0)
        weir__error("bootstrap", text, "is no address: %s", weir_error_text(err));
    return err;
}

static int refuse(const weir_address *address)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];

    weir__error("bootstrap", weir_address_format(address, text, sizeof(text)),
                weir_address_family(address) == AF_UNIX ? "Unix sockets are not supported yet"
                                                        : "no transport knows such an address");
    return -EAFNOSUPPORT;
}

int weir__kind_create(const weir_address *remote, const weir_channel_options *options,
                      weir_channel **ret_channel)
{
    switch (weir_address_family(remote)) {
    case AF_INET:
    case AF_INET6:
        return weir_tcp_create(options, ret_channel);
    case WEIR_AF_INPROC:
        return weir_inproc_create(options, ret_channel);
    default:
        return refuse(remote);
    }
}

int weir__kind_create_server(const weir_address *local, const weir_channel_options *options,
                             const weir_channel_options *child_options, weir_channel **ret_channel)
{
    switch (weir_address_family(local)) {
    case AF_INET:
    case AF_INET6:
        return weir_tcp_create_server(options, child_options, ret_channel);
    case WEIR_AF_INPROC:
        return weir_inproc_create_server(options, child_options, ret_channel);
    default:
        return refuse(local);
    }
}

int weir__kind_check_group(const weir_channel *channel, const weir_group *group)
{
    const weir_executor *executor = weir_group_at(group, 0);

    if (channel->transport->suits(channel, executor))
        return 0;
    weir__error("bootstrap", weir_executor_name(executor), "is no executor for a %s channel",
                channel->transport->name);
    return -EINVAL;
}

int weir__kind_reason(const weir_channel *channel, int err)
{
    int cause = channel->outbound.cause;

    return err == WEIR_ECLOSED && cause < 0 ? cause : err;
}
