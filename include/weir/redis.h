/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/redis.h - a client of Redis: commands go out at once, replies come back in their order.
 *
 *      static int init(weir_channel *channel, void *user_data)
 *      {
 *          return weir_redis_add(weir_channel_pipeline(channel), NULL);
 *      }
 *      ...
 *      weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = group, .address = "127.0.0.1:6379",
 *                                                   .init = init), &channel);
 *      weir_redis_call(channel, &reply, "SET", "key", "value", NULL);
 *      err = weir_promise_sync(reply, weir_seconds(1));
 *
 * The client is two handlers of a channel: the codec (weir/resp.h) and one that knows whose
 * turn it is. Nobody waits for a reply before the next command is sent, from whatever thread. When
 * the connection ends every promise that is pending fails with WEIR_ECLOSED; connecting again is
 * the user's, or that of a weir_client_pool.
 *
 * It speaks RESP2 until a command HELLO 3 has succeeded, and understands both. A reply beyond the
 * codec's limits, and bytes that are no RESP, end the connection. What makes a server answer more
 * or less than once for each command (MONITOR, CLIENT REPLY) is not for this client.
 */
#ifndef WEIR_REDIS_H
#define WEIR_REDIS_H

#include <weir/channel.h>
#include <weir/options.h>
#include <weir/resp.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Something has come that is no reply: a PUSH, or an ARRAY where RESP2 has no other. A message of a
 * channel that was subscribed to is ("message", channel, text), by a pattern ("pmessage", pattern,
 * channel, text). Runs on the channel's loop; `push` is lent for the call.
 */
typedef void weir_redis_push_fn(weir_channel *channel, weir_resp *push, void *user_data);

/* Zero means default. Build with WEIR_REDIS_OPTIONS(.push = on_push, ...). */
typedef struct weir_redis_options {
    size_t size;
    weir_redis_push_fn *push;       /* default: nobody hears it */
    void *user_data;                /* its; lent until the channel is closed */
    const weir_resp_options *codec; /* copied: its limits; the rest does not matter. Defaults: 512
                                       MiB of text, 1048576 elements, a depth of 32, and the memory
                                       that those need */
} weir_redis_options;

#define WEIR_REDIS_OPTIONS(...) WEIR_OPTIONS(weir_redis_options, __VA_ARGS__)

/*
 * Adds the client at the end of a pipeline, as "resp" and "redis"; NULL = all default.
 * Thread: any.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_redis_add(weir_pipeline *pipeline, const weir_redis_options *options);

/*
 * Sends a command: its name and what it is about, any bytes. The promise's value is the reply, a
 * weir_resp that it keeps. An error reply fails it with WEIR_EREPLY and the server's sentence; it
 * fails with WEIR_ECLOSED if the connection ends before. Cancelling helps until it is sent. NULL as
 * `ret_reply`: nobody waits. The reply to a subscription is the last confirmation of it.
 *
 * Commands that are made while a reply is being heard are sent together.
 * Thread: any.  Gives: reply.  Fails: -EINVAL (no arguments), -ENOMEM, WEIR_EBOUNDS (too long).
 */
WEIR_API int weir_redis_command(weir_channel *channel, const weir_span *arguments, size_t count,
                                weir_promise **ret_reply);

/*
 * The same, of texts, up to a NULL.
 * Thread: any.  Gives: reply.  Fails: as weir_redis_command, -E2BIG (more than 64 arguments).
 */
WEIR_API int weir_redis_call(weir_channel *channel, weir_promise **ret_reply, const char *name, ...)
    __attribute__((sentinel));

#ifdef __cplusplus
}
#endif

#endif
