/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/embedded.h - a channel without a socket, for testing handlers: the test writes what would be
 * received, and reads what would be sent.
 *
 *      weir_embedded *e;
 *      weir_embedded_create(NULL, &e);
 *      weir_pipeline_add_last(weir_embedded_pipeline(e), &decoder, NULL);
 *      weir_embedded_write_inbound(e, msg);      as if received
 *      msg = weir_embedded_read_inbound(e);      what reached the tail
 *      msg = weir_embedded_read_outbound(e);     what was flushed to the "socket"
 *      weir_embedded_advance(e, weir_ms(10));    runs timers as if time had passed
 *      weir_embedded_release(e);
 *
 * The channel has its own manual executor and manual clock. Everything, tasks included, runs on the
 * caller's thread before the call returns.
 */
#ifndef WEIR_EMBEDDED_H
#define WEIR_EMBEDDED_H

#include <weir/channel.h>
#include <weir/clock.h>
#include <weir/options.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_embedded weir_embedded;

/* Zero means default. Build with WEIR_EMBEDDED_OPTIONS(...). */
typedef struct weir_embedded_options {
    size_t size;
    const weir_channel_options *channel;
    bool register_later;  /* by weir_embedded_register */
    bool connect_later;   /* by weir_channel_connect; inactive until then */
    bool has_disconnect;  /* disconnect differs from close */
    bool peer_stays;      /* after a close, the peer closes only by weir_embedded_end_input */
    int64_t socket_space; /* bytes until the "socket" is full; default no limit */
    const char *local;    /* addresses, as weir_address_parse reads them; */
    const char *remote;   /* default "inproc:embedded" */
} weir_embedded_options;

#define WEIR_EMBEDDED_OPTIONS(...) WEIR_OPTIONS(weir_embedded_options, __VA_ARGS__)

/*
 * Creates a channel that is registered and active, unless the options say otherwise.
 * Thread: any, and only that one from then on.  Gives: embedded.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_embedded_create(const weir_embedded_options *options,
                                                weir_embedded **ret_embedded);

/*
 * Aborts the channel if it is open, releases all unread messages, and frees the rest. NULL is
 * ignored.
 * Thread: its own.  Takes: embedded.
 */
WEIR_API void weir_embedded_release(weir_embedded *embedded);

/*
 * The channel, pipeline and clock; borrowed.
 * Thread: its own.
 */
WEIR_API weir_channel *weir_embedded_channel(weir_embedded *embedded);
WEIR_API weir_pipeline *weir_embedded_pipeline(weir_embedded *embedded);
WEIR_API weir_clock *weir_embedded_clock(weir_embedded *embedded);

/*
 * Registers a channel created with .register_later.
 * Thread: its own.  Fails: with the error of the registration.
 */
WEIR_API int weir_embedded_register(weir_embedded *embedded);

/*
 * Receives a message, with and without read_complete after it. What is flushed meanwhile is in the
 * "socket" when the call returns. If the channel is not reading, the message waits in the "socket"
 * until it does.
 * Thread: its own.  Takes: msg.  Fails: WEIR_ECLOSED, -ENOMEM, and as weir_embedded_take_error,
 * which does not return the same error again.
 */
WEIR_API int weir_embedded_write_inbound(weir_embedded *embedded, weir_msg *msg);
WEIR_API int weir_embedded_write_one_inbound(weir_embedded *embedded, weir_msg *msg);

/*
 * Calls weir_channel_write_and_flush, and returns the result; 0 if the message waits for space.
 * Thread: its own.  Takes: msg.  Fails: -ENOMEM, with the error of the write.
 */
WEIR_API int weir_embedded_write_outbound(weir_embedded *embedded, weir_msg *msg);

/*
 * The next message that reached the tail, or NULL.
 * Thread: its own.  Gives: the message.
 */
WEIR_API weir_msg *weir_embedded_read_inbound(weir_embedded *embedded);

/*
 * The next message that was flushed to the "socket", or NULL.
 * Thread: its own.  Gives: the message.
 */
WEIR_API weir_msg *weir_embedded_read_outbound(weir_embedded *embedded);

/*
 * Closes the peer's side: the stream ends after the messages that wait to be read.
 * Thread: its own.
 */
WEIR_API void weir_embedded_end_input(weir_embedded *embedded);

/*
 * Adds space for `bytes` to the "socket".
 * Thread: its own.
 */
WEIR_API void weir_embedded_make_space(weir_embedded *embedded, int64_t bytes);

/*
 * Advances the clock. Timers run in order, each at its own time.
 * Thread: its own.
 */
WEIR_API void weir_embedded_advance(weir_embedded *embedded, int64_t duration_ns);

/*
 * Runs pending tasks. Every other call does so, too: this is for tasks posted by other threads.
 * Thread: its own.
 */
WEIR_API void weir_embedded_run(weir_embedded *embedded);

/*
 * The first error that reached the tail and was not returned yet, by this function or by
 * weir_embedded_write_inbound and weir_embedded_write_one_inbound; or 0.
 * Thread: its own.
 */
WEIR_API int weir_embedded_take_error(weir_embedded *embedded);

/*
 * Closes the channel and runs until it is closed; aborts it if it waits for the peer or for space.
 * Returns true if there are messages to read.
 * Thread: its own.
 */
WEIR_API bool weir_embedded_finish(weir_embedded *embedded);

#ifdef __cplusplus
}
#endif

#endif
