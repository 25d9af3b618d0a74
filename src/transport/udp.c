/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP: datagram sockets for internet addresses, and their multicast groups.
 */
#include <weir/transport.h>

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include <weir/error.h>

#include "base/memory.h"
#include "channel/mailbox.h"
#include "os/system.h"
#include "transport/datagrams.h"
#include "transport/socket.h"

static const weir__transport udp =
    WEIR__DATAGRAMS("udp", WEIR__STATS_UDP, AF_UNSPEC, weir__datagrams_connect);

int weir_udp_create(const weir_channel_options *options, weir_channel **ret_channel)
{
    return weir__datagrams_create(&udp, options, ret_channel);
}

/* ---- multicast ---- */

/* A request to join or leave. */
struct membership {
    bool joins;
    weir_address group;
    weir_address source; /* length 0 = any */
    char interface[IF_NAMESIZE];
};

static int read_membership(struct membership *membership, const weir_address *group,
                           const char *interface, const weir_address *source)
{
    int family = group != NULL ? weir_address_family(group) : AF_UNSPEC;

    if ((family != AF_INET && family != AF_INET6) ||
        (source != NULL && weir_address_family(source) != family))
        return -EINVAL;
    if (interface != NULL && strlen(interface) >= sizeof(membership->interface))
        return -ENAMETOOLONG;
    membership->group = *group;
    if (source != NULL)
        membership->source = *source;
    if (interface != NULL)
        memcpy(membership->interface, interface, strlen(interface));
    return 0;
}

/* 0 = chosen by the kernel. */
static int interface_of(const struct membership *membership, uint32_t *ret_index)
{
    int index = 0;

    if (membership->interface[0] != '\0')
        index = weir__sys.if_nametoindex(membership->interface);
    if (index < 0)
        return -errno;
    *ret_index = (uint32_t)index;
    return 0;
}

/* The calls of RFC 3678 are the same for both families. */
static int change_membership(int descriptor, const struct membership *membership)
{
    struct group_source_req request = {.gsr_interface = 0}; /* zeroes the padding, too */
    struct group_req of_any = {.gr_interface = 0};
    bool joins = membership->joins;
    uint32_t index = 0;
    int level = weir_address_family(&membership->group) == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    int err = interface_of(membership, &index);

    if (err < 0)
        return err;
    if (membership->source.length == 0) {
        of_any.gr_interface = index;
        of_any.gr_group = membership->group.storage;
        return weir__socket_set(descriptor, level, joins ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP,
                                &of_any, sizeof(of_any));
    }
    request.gsr_interface = index;
    request.gsr_group = membership->group.storage;
    request.gsr_source = membership->source.storage;
    return weir__socket_set(descriptor, level,
                            joins ? MCAST_JOIN_SOURCE_GROUP : MCAST_LEAVE_SOURCE_GROUP, &request,
                            sizeof(request));
}

static int check(const weir_channel *channel)
{
    if (channel->transport != &udp)
        return -ENOTSUP;
    if (weir__channel_phase(channel) != WEIR__OPEN)
        return WEIR_ECLOSED;
    return weir__endpoint_of(channel)->handle.descriptor >= 0 ? 0 : -ENOTCONN;
}

static void do_change(weir_channel *channel, const struct membership *membership,
                      weir_promise *done)
{
    int err = check(channel);

    if (err == 0 && done != NULL && !weir_promise_set_uncancellable(done))
        return;
    if (err == 0)
        err = change_membership(weir__endpoint_of(channel)->handle.descriptor, membership);
    weir__channel_report(channel, done, err, NULL);
}

static void run_change(weir_channel *channel, weir__call *call)
{
    do_change(channel, call->arg, call->done);
    weir__free(call->arg);
}

/* Without a promise the want of memory aborts the channel. */
static void fail_change(weir_channel *channel, weir__call *call, int err)
{
    if (err == -ENOMEM)
        weir__channel_fail_posted(channel, call->done, err);
    else
        weir__call_fail(channel, call->done, err);
    weir__free(call->arg);
}

static const weir__operation change_operation = {.run = run_change, .fail = fail_change};

/* From another thread: in order with earlier operations, such as a bind. */
static void post(weir_channel *channel, const struct membership *membership, weir_promise *done)
{
    struct membership *copy = weir__alloc(sizeof(*copy));

    if (copy == NULL) {
        weir__channel_fail_posted(channel, done, -ENOMEM);
        return;
    }
    *copy = *membership;
    (void)weir__channel_call(channel, &change_operation, done, copy, 0);
}

static void change(weir_channel *channel, const struct membership *membership, int err,
                   weir_promise *done)
{
    if (!weir__channel_may_begin(channel, done))
        return;
    if (err < 0)
        weir__channel_fail_posted(channel, done, err);
    else if (weir__channel_may_act(channel))
        do_change(channel, membership, done);
    else
        post(channel, membership, done);
}

void weir_udp_join(weir_channel *channel, const weir_address *group, const char *interface,
                   const weir_address *source, weir_promise *done)
{
    struct membership membership = {.joins = true};
    int err = read_membership(&membership, group, interface, source);

    change(channel, &membership, err, done);
}

void weir_udp_leave(weir_channel *channel, const weir_address *group, const char *interface,
                    const weir_address *source, weir_promise *done)
{
    struct membership membership = {.joins = false};
    int err = read_membership(&membership, group, interface, source);

    change(channel, &membership, err, done);
}
