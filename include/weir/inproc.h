/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/inproc.h - channels inside the process: messages go from one pipeline to the other as they
 * are, without a socket and without a copy. Addresses are names: "inproc:name". They run on every
 * kind of executor, event loop or not.
 */
#ifndef WEIR_INPROC_H
#define WEIR_INPROC_H

#include <weir/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A channel to be registered and connected.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_inproc_create(const weir_channel_options *options, weir_channel **ret_channel);

/*
 * A channel to be registered and bound to a name.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_inproc_create_server(const weir_channel_options *options,
                                       const weir_channel_options *child_options,
                                       weir_channel **ret_channel);

#ifdef __cplusplus
}
#endif

#endif
