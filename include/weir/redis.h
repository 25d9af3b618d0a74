/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/redis.h - a Redis client: pipelined commands, replies in order.
 *
 *      static int init(weir_channel *channel, void *user_data)
 *      {
 *          return weir_redis_add(weir_channel_pipeline(channel), NULL);
 *      }
 *      ...
 *      options = WEIR_CLIENT_OPTIONS(.group = group, .address = "127.0.0.1:6379", .init = init);
 *      err = weir_client_connect_sync(options, &channel);
 *      ...
 *      err = weir_redis_call(channel, &reply, "SET", "key", "value", NULL);
 *      ...
 *      err = weir_promise_sync(reply, weir_seconds(1));
 *
 * The client consists of two handlers: the codec (weir/resp.h), and one that matches replies to
 * commands. Any thread may send the next command without waiting for a reply. When the connection
 * ends, all pending promises fail with WEIR_ECLOSED; reconnecting is up to the caller, or to a
 * weir_client_pool.
 *
 * The client understands RESP2 and RESP3; it sends RESP2, until a command HELLO 3 has succeeded. A
 * reply over the codec's limits, and malformed bytes, close the connection. Commands to which the
 * server does not send exactly one reply (MONITOR, CLIENT REPLY) are not supported.
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
 * Receives a value that is not a reply: a PUSH, or in RESP2 an ARRAY of a subscription. A published
 * message is ("message", channel, text), or ("pmessage", pattern, channel, text) for a pattern.
 * Called on the channel's loop; `push` is borrowed for the call.
 */
typedef void weir_redis_push_fn(weir_channel *channel, weir_resp *push, void *user_data);

/* Zero means default. Build with WEIR_REDIS_OPTIONS(.push = on_push, ...). */
typedef struct weir_redis_options {
    size_t size;
    weir_redis_push_fn *push;       /* default: pushes are ignored */
    void *user_data;                /* of `push`; lent until the channel is closed */
    const weir_resp_options *codec; /* limits of replies, copied; other members are ignored.
                                       Defaults: 512 MiB of text, 1048576 elements, a depth of 32,
                                       and the memory that these need */
} weir_redis_options;

#define WEIR_REDIS_OPTIONS(...) WEIR_OPTIONS(weir_redis_options, __VA_ARGS__)

/*
 * Adds the handlers "resp" and "redis" at the tail. NULL options = defaults.
 * Thread: any.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_redis_add(weir_pipeline *pipeline,
                                          const weir_redis_options *options);

/*
 * Sends a command: its name and its arguments, arbitrary bytes. The promise's value is the reply, a
 * weir_resp that the promise owns. An error reply fails the promise with WEIR_EREPLY and the
 * server's text. The promise can be cancelled until the command is sent. `ret_reply` may be NULL.
 * The reply to a subscription is its last confirmation.
 *
 * Commands sent while replies are being delivered are sent together.
 * Thread: any.  Gives: reply.  Fails: -EINVAL (no arguments), -ENOMEM, WEIR_EBOUNDS (too long).
 */
WEIR_API WEIR_MUST_USE int weir_redis_command(weir_channel *channel, const weir_span *arguments,
                                              size_t count, weir_promise **ret_reply);

/*
 * Sends a command of NUL-terminated texts; NULL ends the arguments. The out-parameter comes before
 * them.
 * Thread: any.  Gives: reply.  Fails: as weir_redis_command, -E2BIG (more than 64 arguments).
 */
WEIR_API WEIR_MUST_USE int weir_redis_call(weir_channel *channel, weir_promise **ret_reply,
                                           const char *name, ...) __attribute__((sentinel));

#ifdef __cplusplus
}
#endif

#endif
