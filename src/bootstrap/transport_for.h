/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport for an address and a kind, and checks that server and client share.
 */
#ifndef WEIR_BOOTSTRAP_TRANSPORT_FOR_H
#define WEIR_BOOTSTRAP_TRANSPORT_FOR_H

#include <errno.h>

#include <weir/channel.h>

/* Parses an address; logs an invalid one. */
int weir__transport_parse(const char *text, weir_address *ret_address);

/* Creates a channel that can connect to, or be bound to, such an address; for datagrams both are
 * the same. Fails with -EAFNOSUPPORT, which is logged, -EINVAL, -ENOMEM. */
int weir__transport_create(enum weir_kind kind, const weir_address *remote,
                           const weir_channel_options *options, weir_channel **ret_channel);
int weir__transport_create_server(enum weir_kind kind, const weir_address *local,
                                  const weir_channel_options *options,
                                  const weir_channel_options *child_options,
                                  weir_channel **ret_channel);

/* Fails with -EINVAL, logged, if the channel cannot run on the executor, or on those of the group.
 */
int weir__transport_check_executor(const weir_channel *channel, const weir_executor *executor);
int weir__transport_check_group(const weir_channel *channel, const weir_group *group);

/* The same checks for a channel to a name, without creating one: the kind, the options, and the
 * executor. Fails with -EAFNOSUPPORT, -EINVAL, -ENOMEM. */
int weir__transport_check_internet(enum weir_kind kind, const weir_channel_options *options,
                                   const weir_executor *executor);

/* The cause of a failed operation: one on a closed channel fails only with WEIR_ECLOSED. On its
 * loop, or before the channel is shared. */
int weir__transport_reason(const weir_channel *channel, int err);

#endif
