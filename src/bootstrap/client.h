/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of weir_client_connect.
 */
#ifndef WEIR_BOOTSTRAP_CLIENT_H
#define WEIR_BOOTSTRAP_CLIENT_H

#include <weir/client.h>

/* Tells names from addresses. Fails with -EINVAL, logged, if the text is neither. */
int weir__client_check_address(const weir_client_options *options, bool *ret_is_name);

/* Connects to the first address that answers, on this loop. The options were validated; their group
 * and loop are ignored. */
int weir__client_race(const weir_client_options *options, weir_executor *loop,
                      weir_promise **ret_connecting);

/* Resolves the name, then does the above (client_by_name.c). */
int weir__client_connect_by_name(const weir_client_options *options, weir_executor *loop,
                                 weir_promise **ret_connecting);

/*
 * Copies validated options with their addresses, channel options and list of attributes
 * (client_options.c). Takes no references; weir__free frees the copy. Fails with -EINVAL, -ENOMEM.
 */
int weir__client_options_copy(const weir_client_options *options, weir_client_options **ret_copy);

/* Retain and release the group or loop, and the resolver. */
void weir__client_options_retain(const weir_client_options *options);
void weir__client_options_release(const weir_client_options *options);

/* Validates options and fills in defaults. Fails with -EINVAL, logged. */
int weir__client_options_read(const weir_client_options *given, weir_client_options *ret_options);

#endif
