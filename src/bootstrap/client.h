/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a client: to addresses that are known, and to a name.
 */
#ifndef WEIR_BOOTSTRAP_CLIENT_H
#define WEIR_BOOTSTRAP_CLIENT_H

#include <weir/client.h>

/* Whether the address is a name. What is neither that nor an address is refused, and logged. */
int weir__client_check_address(const weir_client_options *options, bool *ret_is_name);

/* Connects to the first of the addresses that answers, on this loop. The options have been read;
 * their group is not looked at, nor is the loop taken from it. */
int weir__client_race(const weir_client_options *options, weir_executor *loop,
                      weir_promise **ret_connecting);

/* Looks the address up, which is a name, and then does the above (client_by_name.c). */
int weir__client_connect_by_name(const weir_client_options *options, weir_executor *loop,
                                 weir_promise **ret_connecting);

/*
 * A copy of options that have been read, with the addresses, the channel's options and the list of
 * attributes (client_options.c); it keeps nothing, and weir__free takes it. Fails with -EINVAL,
 * -ENOMEM.
 */
int weir__client_options_copy(const weir_client_options *options, weir_client_options **ret_copy);

/* Keeps what the options name, and lets go of it: the group or the loop, and the resolver. */
void weir__client_options_retain(const weir_client_options *options);
void weir__client_options_release(const weir_client_options *options);

/* Checks and completes what a caller has given. Fails with -EINVAL; the reason is in the log. */
int weir__client_options_read(const weir_client_options *given, weir_client_options *ret_options);

#endif
