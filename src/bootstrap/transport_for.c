/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/transport_for.h"

#include <weir/error.h>
#include <weir/transport.h>

#include "base/log.h"
#include "channel/channel.h"
#include "channel/config.h"
#include "loop/loop.h"

int weir__transport_parse(const char *text, weir_address *ret_address)
{
    int err = weir_address_parse(text, ret_address);

    if (err == -EINVAL)
        weir__error_limited(
            "bootstrap", text,
            "not an address: expected 127.0.0.1:8007, [::1]:8007 or the like; only clients "
            "accept names such as example.org:80");
    else if (err < 0)
        weir__error_limited("bootstrap", text, "not an address: %s", weir_error_text(err));
    return err;
}

typedef int create_fn(const weir_channel_options *options, weir_channel **ret_channel);
typedef int create_server_fn(const weir_channel_options *options,
                             const weir_channel_options *child_options, weir_channel **ret_channel);

struct row {
    int family;
    enum weir_kind kind;
    create_fn *create;
    create_server_fn *create_server; /* NULL = connectionless: the channel itself serves */
};

/* Unix sockets have all kinds: their functions take the kind. */
static const struct row rows[] = {
    {AF_INET, WEIR_KIND_STREAM, weir_tcp_create, weir_tcp_create_server},
    {AF_INET6, WEIR_KIND_STREAM, weir_tcp_create, weir_tcp_create_server},
    {AF_INET, WEIR_KIND_DATAGRAM, weir_udp_create, NULL},
    {AF_INET6, WEIR_KIND_DATAGRAM, weir_udp_create, NULL},
    {WEIR_AF_INPROC, WEIR_KIND_STREAM, weir_inproc_create, weir_inproc_create_server},
};

/* NULL if there is none, which is logged. */
static const struct row *find(enum weir_kind kind, const weir_address *address)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    bool is_known = false;

    for (const struct row *row = rows; row < &rows[sizeof(rows) / sizeof(rows[0])]; row++) {
        if (row->family != weir_address_family(address))
            continue;
        if (row->kind == kind)
            return row;
        is_known = true;
    }
    weir__error_limited("bootstrap", weir_address_format(address, text, sizeof(text)),
                        is_known ? "no transport of this kind for such an address"
                                 : "no transport for such an address");
    return NULL;
}

int weir__transport_create(enum weir_kind kind, const weir_address *remote,
                           const weir_channel_options *options, weir_channel **ret_channel)
{
    const struct row *row;

    if (weir_address_family(remote) == AF_UNIX)
        return weir_unix_create(kind, options, ret_channel);
    row = find(kind, remote);
    return row != NULL ? row->create(options, ret_channel) : -EAFNOSUPPORT;
}

int weir__transport_create_server(enum weir_kind kind, const weir_address *local,
                                  const weir_channel_options *options,
                                  const weir_channel_options *child_options,
                                  weir_channel **ret_channel)
{
    const struct row *row;

    if (weir_address_family(local) == AF_UNIX)
        return kind == WEIR_KIND_DATAGRAM
                   ? weir_unix_create(kind, options, ret_channel)
                   : weir_unix_create_server(kind, options, child_options, ret_channel);
    row = find(kind, local);
    if (row == NULL)
        return -EAFNOSUPPORT;
    if (row->create_server == NULL)
        return row->create(options, ret_channel);
    return row->create_server(options, child_options, ret_channel);
}

static int reject_executor(const weir_executor *executor, const char *transport)
{
    weir__error("bootstrap", weir_executor_name(executor),
                "a %s channel needs an event loop, not this executor", transport);
    return -EINVAL;
}

int weir__transport_check_executor(const weir_channel *channel, const weir_executor *executor)
{
    return channel->transport->suits(channel, executor)
               ? 0
               : reject_executor(executor, channel->transport->name);
}

int weir__transport_check_internet(enum weir_kind kind, const weir_channel_options *options,
                                   const weir_executor *executor)
{
    weir_address any;
    weir__config *config;
    int err = weir_address_parse(":0", &any);

    if (err == 0 && find(kind, &any) == NULL)
        err = -EAFNOSUPPORT;
    if (err == 0)
        err = weir__config_create(options, &config);
    if (err < 0)
        return err;
    weir__config_release(config);
    return weir__loop_io(executor) != NULL
               ? 0
               : reject_executor(executor, kind == WEIR_KIND_DATAGRAM ? "udp" : "tcp");
}

int weir__transport_check_group(const weir_channel *channel, const weir_group *group)
{
    return weir__transport_check_executor(channel, weir_group_at(group, 0));
}

int weir__transport_reason(const weir_channel *channel, int err)
{
    int cause = weir__channel_cause(channel);

    return err == WEIR_ECLOSED && cause < 0 ? cause : err;
}
