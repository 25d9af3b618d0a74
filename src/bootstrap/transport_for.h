/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which channel an address and a kind ask for, and what both bootstraps ask of one that they made.
 */
#ifndef WEIR_BOOTSTRAP_TRANSPORT_FOR_H
#define WEIR_BOOTSTRAP_TRANSPORT_FOR_H

#include <errno.h>

#include <weir/channel.h>

/* Reads an address. What is none is logged. */
int weir__transport_parse(const char *text, weir_address *ret_address);

/* Makes a channel that can connect to, or be bound to, such an address. Fails with -EAFNOSUPPORT,
 * which is logged, -EINVAL, -ENOMEM. Where nothing is accepted both are the same. */
int weir__transport_create(enum weir_kind kind, const weir_address *remote,
                           const weir_channel_options *options, weir_channel **ret_channel);
int weir__transport_create_server(enum weir_kind kind, const weir_address *local,
                                  const weir_channel_options *options,
                                  const weir_channel_options *child_options,
                                  weir_channel **ret_channel);

/* -EINVAL, with its reason in the log, unless the channel can live on the executor; on the group's.
 */
int weir__transport_check_executor(const weir_channel *channel, const weir_executor *executor);
int weir__transport_check_group(const weir_channel *channel, const weir_group *group);

/* What an operation on the channel has really failed with: one on a closed channel only says that
 * it is closed. On its loop, or when nobody else has it. */
int weir__transport_reason(const weir_channel *channel, int err);

#endif
