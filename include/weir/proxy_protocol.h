/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/proxy_protocol.h - the PROXY protocol at both ends of a connection.
 *
 * Behind a proxy: the first bytes of each connection say who is really there.
 *
 *      weir_proxy_receiver_add(pipeline, NULL);            the first handler
 *      ...
 *      weir_proxy_source(channel, &address);               in those behind it, from then on
 *
 * As a proxy: the first bytes that are sent say it.
 *
 *      weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(.source = &client, .destination = &here),
 *                               &header);
 *      weir_proxy_sender_add(pipeline, header);
 *
 * Both handlers go when that is done. The receiver sends the header through the pipeline as an
 * event (weir_proxy_header_of) before anything is read; a connection that begins with anything else
 * is an error, WEIR_EMALFORMED. Who can reach such a server directly can say what he likes: let a
 * filter (weir/ip_filter.h) in front of it accept the proxies only.
 */
#ifndef WEIR_PROXY_PROTOCOL_H
#define WEIR_PROXY_PROTOCOL_H

#include <weir/channel.h>
#include <weir/handler.h>
#include <weir/proxy_header.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_PROXY_RECEIVER_OPTIONS(.max_size = ...). */
typedef struct weir_proxy_receiver_options {
    size_t size;
    size_t max_size; /* a longer header is an error, WEIR_ETOOLONG; default 4096 bytes */
} weir_proxy_receiver_options;

#define WEIR_PROXY_RECEIVER_OPTIONS(...) \
    (&(const weir_proxy_receiver_options){.size = sizeof(weir_proxy_receiver_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_proxy_receiver_options_init(weir_proxy_receiver_options *options);

/*
 * Adds the handler that reads a header at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_proxy_receiver_add(weir_pipeline *pipeline,
                                     const weir_proxy_receiver_options *options);

/*
 * Adds the handler that sends this header at the end of a pipeline: in front of the first write
 * that comes from behind it, or when the channel becomes active, before the handlers behind hear of
 * it. If the header cannot be sent, the channel is aborted with an error.
 * Thread: any.  Keeps: header.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_proxy_sender_add(weir_pipeline *pipeline, weir_proxy_header *header);

/*
 * The header that a channel has received, borrowed; NULL if there is none.
 * Thread: any.
 */
WEIR_API const weir_proxy_header *weir_proxy_header_of_channel(weir_channel *channel);

/*
 * Who is at the other end, and which address he has called: by the header that has come, otherwise
 * as the channel's own addresses.
 * Thread: any.  Fails: as weir_channel_remote_address.
 */
WEIR_API int weir_proxy_source(weir_channel *channel, weir_address *ret_address);
WEIR_API int weir_proxy_destination(weir_channel *channel, weir_address *ret_address);

#ifdef __cplusplus
}
#endif

#endif
