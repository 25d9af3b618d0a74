/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/embedded.h - a channel without a socket, for testing handlers: what would come from the
 * network is written by the test, what would go out is read by it.
 *
 *      weir_embedded *e;
 *      weir_embedded_create(NULL, &e);
 *      weir_pipeline_add_last(weir_embedded_pipeline(e), &decoder, NULL);
 *      weir_embedded_write_inbound(e, msg);      as if it had been received
 *      msg = weir_embedded_read_inbound(e);      what reached the tail
 *      msg = weir_embedded_read_outbound(e);     what was flushed to the "socket"
 *      weir_embedded_advance(e, weir_ms(10));    timers run as if time had passed
 *      weir_embedded_release(e);
 *
 * It is a channel as any other, on a manual executor of its own with a clock that stands still. All
 * of it runs on the caller's thread, inside the calls; tasks too, before a call returns.
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
    bool not_registered;  /* weir_embedded_register does it */
    bool not_active;      /* weir_channel_connect makes it so */
    bool has_disconnect;  /* disconnect is not the same as close */
    bool peer_stays;      /* when we close, the peer does so only by weir_embedded_end_input */
    int64_t socket_space; /* bytes that the "socket" takes before it is full; default no limit */
    const char *local;    /* its addresses, as weir_address_parse reads them; */
    const char *remote;   /* default "inproc:embedded" */
} weir_embedded_options;

#define WEIR_EMBEDDED_OPTIONS(...) WEIR_OPTIONS(weir_embedded_options, __VA_ARGS__)

/*
 * Creates a channel that is registered and active, unless the options say otherwise.
 * Thread: any, and only that one from then on.  Gives: embedded.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_embedded_create(const weir_embedded_options *options,
                                  weir_embedded **ret_embedded);

/*
 * Aborts the channel if it is open, releases all messages that were not read, and goes; NULL is
 * fine.
 * Thread: its own.  Takes: embedded.
 */
WEIR_API void weir_embedded_release(weir_embedded *embedded);

/*
 * Its channel, pipeline and clock, borrowed.
 * Thread: its own.
 */
WEIR_API weir_channel *weir_embedded_channel(weir_embedded *embedded);
WEIR_API weir_pipeline *weir_embedded_pipeline(weir_embedded *embedded);
WEIR_API weir_clock *weir_embedded_clock(weir_embedded *embedded);

/*
 * Registers a channel that was created as not_registered.
 * Thread: its own.  Fails: with what failed the registration.
 */
WEIR_API int weir_embedded_register(weir_embedded *embedded);

/*
 * As if the message had been received, and read_complete after it; or without. If the channel does
 * not read now, it waits in the "socket" until it does.
 * Thread: its own.  Takes: msg.  Fails: WEIR_ECLOSED, -ENOMEM, and with the first error that
 * reached the tail.
 */
WEIR_API int weir_embedded_write_inbound(weir_embedded *embedded, weir_msg *msg);
WEIR_API int weir_embedded_write_one_inbound(weir_embedded *embedded, weir_msg *msg);

/*
 * weir_channel_write_and_flush, and what came of it: 0 also if it waits for space.
 * Thread: its own.  Takes: msg.  Fails: -ENOMEM, with what failed the write.
 */
WEIR_API int weir_embedded_write_outbound(weir_embedded *embedded, weir_msg *msg);

/*
 * The next message that reached the tail; NULL if there is none.
 * Thread: its own.  Gives: the message.
 */
WEIR_API weir_msg *weir_embedded_read_inbound(weir_embedded *embedded);

/*
 * The next message that was flushed to the socket; NULL if there is none.
 * Thread: its own.  Gives: the message.
 */
WEIR_API weir_msg *weir_embedded_read_outbound(weir_embedded *embedded);

/*
 * As if the peer had closed its side: the end of the stream, after what waits to be read.
 * Thread: its own.
 */
WEIR_API void weir_embedded_end_input(weir_embedded *embedded);

/*
 * The "socket" takes so many bytes more.
 * Thread: its own.
 */
WEIR_API void weir_embedded_make_space(weir_embedded *embedded, int64_t bytes);

/*
 * Lets time pass: timers run in their order, each at its time.
 * Thread: its own.
 */
WEIR_API void weir_embedded_advance(weir_embedded *embedded, int64_t duration_ns);

/*
 * Runs what is due. Every call here does, so this is only for what other threads have posted.
 * Thread: its own.
 */
WEIR_API void weir_embedded_run(weir_embedded *embedded);

/*
 * The first error that reached the tail since the last call; 0 if there was none.
 * Thread: its own.
 */
WEIR_API int weir_embedded_take_error(weir_embedded *embedded);

/*
 * Closes the channel and runs until it is closed; aborts it if the peer or the "socket" keeps it
 * waiting. True if there are messages to be read.
 * Thread: its own.
 */
WEIR_API bool weir_embedded_finish(weir_embedded *embedded);

#ifdef __cplusplus
}
#endif

#endif
