/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/diagnostics.h - a handler that writes what passes it into the log, and passes it on.
 *
 *      weir_logging_add(pipeline, WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_INFO));
 *
 *      weir INFO  logging [7 127.0.0.1:8007 - 127.0.0.1:51234]: READ: 5 B
 *      weir INFO  logging [7 127.0.0.1:8007 - 127.0.0.1:51234]: 00000000  68 65 6c 6c 6f ...
 * |hello|
 *
 * It shows every event and every operation but requests to read, with addresses, errors, and the
 * bytes of buffers and composites; of other messages their type and size. What the log would drop
 * (weir_log_set_level) costs a look at the level.
 */
#ifndef WEIR_DIAGNOSTICS_H
#define WEIR_DIAGNOSTICS_H

#include <weir/clock.h>
#include <weir/handler.h>
#include <weir/log.h>
#include <weir/metric.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_LOGGING_NAME_SIZE 32 /* of a name, and its 0 */

/* Zero means default. Build with WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_INFO, ...). */
typedef struct weir_logging_options {
    size_t size;
    enum weir_log_level level; /* of all that it writes; default WEIR_LOG_TRACE */
    int dump;                  /* WEIR_OFF = log the length of messages, not their bytes */
    size_t dump_max;           /* dumps so many bytes of each message, default 4096 */
    const char *name;          /* who speaks: the subsystem of the lines; default "logging" */
} weir_logging_options;

#define WEIR_LOGGING_OPTIONS(...) WEIR_OPTIONS(weir_logging_options, __VA_ARGS__)

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the level), -ENAMETOOLONG, and as
 * weir_pipeline_add.
 */
WEIR_API int weir_logging_add(weir_pipeline *pipeline, const weir_logging_options *options);

/* --- counters --------------------------------------------------------------------------------- */

/*
 * A handler that counts what passes it.
 *
 *      weir_counters_create(WEIR_COUNTERS_OPTIONS(.name = "front"), &counters);
 *      weir_counters_add(pipeline, counters);      of each connection
 *      weir_counters_read_stats(counters, &figures);
 *
 * The figures are of all handlers that share them: one for a whole server, or one for each channel.
 * With a name they are also metrics (weir/metric.h): "front.bytes_read", ... Near the head it
 * counts bytes as they come from the socket, behind a decoder messages. What passes is added up on
 * each loop, and to the figures at each read_complete and each flush.
 */

typedef struct weir_counters weir_counters;

/* Zero means default. Build with WEIR_COUNTERS_OPTIONS(.name = ...). */
typedef struct weir_counters_options {
    size_t size;
    const char *name; /* of the metrics, before a dot; default: there are none */
} weir_counters_options;

#define WEIR_COUNTERS_OPTIONS(...) WEIR_OPTIONS(weir_counters_options, __VA_ARGS__)

typedef struct weir_counters_stats {
    int64_t bytes_read; /* of messages that have a size, and of files */
    int64_t messages_read;
    int64_t reads; /* read_complete: how often it was woken for them */
    int64_t bytes_written;
    int64_t messages_written;
    int64_t flushes;
    int64_t errors;
    int64_t channels; /* that have become active */
    int64_t open;     /* of those, not inactive yet */
} weir_counters_stats;

/*
 * Makes counters that are all 0.
 * Thread: any.  Lends until it returns: options.  Gives: counters.  Fails: -EINVAL, -ENOMEM, and as
 * weir_metric_create.
 */
WEIR_API int weir_counters_create(const weir_counters_options *options,
                                  weir_counters **ret_counters);

/*
 * Keeps counters; and gives a reference back, of which NULL is fine.
 * Thread: any.  Takes, by the second: counters.
 */
WEIR_API weir_counters *weir_counters_retain(weir_counters *counters);
WEIR_API void weir_counters_release(weir_counters *counters);

/*
 * What was counted so far, each for itself.
 * Thread: any.
 */
WEIR_API void weir_counters_read_stats(const weir_counters *counters,
                                       weir_counters_stats *ret_stats);

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Keeps: counters.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_counters_add(weir_pipeline *pipeline, weir_counters *counters);

/* --- timing ----------------------------------------------------------------------------------- */

/*
 * A handler that times those behind it: how long they have kept the loop with each
 * kind of event.
 *
 *      weir_timing_create(WEIR_TIMING_OPTIONS(.name = "app"), &timing);
 *      weir_timing_add(pipeline, timing);          in front of the handlers in question
 *      weir_histogram_read(weir_timing_histogram(timing, WEIR_TIMING_READ), &summary);
 *
 * Times are in nanoseconds, and of all handlers that share them. Those of one that is behind a
 * second one contain the second one's. A handler that runs on an executor of its own counts with
 * what it takes to hand it the event. With a name the histograms are also metrics (weir/metric.h):
 * "app.read", ... Each event costs two looks at the clock.
 */

typedef struct weir_timing weir_timing;

enum weir_timing_kind {
    WEIR_TIMING_REGISTERED,
    WEIR_TIMING_UNREGISTERED,
    WEIR_TIMING_ACTIVE,
    WEIR_TIMING_INACTIVE,
    WEIR_TIMING_READ,
    WEIR_TIMING_READ_COMPLETE,
    WEIR_TIMING_EVENT,
    WEIR_TIMING_WRITABILITY,
    WEIR_TIMING_ERROR,
    WEIR_TIMING_DRAINING,
};

/* Zero means default. Build with WEIR_TIMING_OPTIONS(.name = ...). */
typedef struct weir_timing_options {
    size_t size;
    const char *name;  /* of the metrics, before a dot; default: there are none */
    weir_clock *clock; /* default the clock of the handler's executor; lent as long as it is used */
} weir_timing_options;

#define WEIR_TIMING_OPTIONS(...) WEIR_OPTIONS(weir_timing_options, __VA_ARGS__)

/*
 * Makes histograms that are all empty.
 * Thread: any.  Lends until it returns: options.  Gives: timing.  Fails: -EINVAL, -ENOMEM, and as
 * weir_metric_create.
 */
WEIR_API int weir_timing_create(const weir_timing_options *options, weir_timing **ret_timing);

/*
 * Keeps it; and gives a reference back, of which NULL is fine.
 * Thread: any.  Takes, by the second: timing.
 */
WEIR_API weir_timing *weir_timing_retain(weir_timing *timing);
WEIR_API void weir_timing_release(weir_timing *timing);

/*
 * How long events of a kind have taken, borrowed; NULL if there is no such kind.
 * Thread: any.
 */
WEIR_API const weir_histogram *weir_timing_histogram(const weir_timing *timing,
                                                     enum weir_timing_kind kind);

/*
 * Adds the handler at the end of a pipeline: those that are added later are behind it.
 * Thread: any.  Keeps: timing.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_timing_add(weir_pipeline *pipeline, weir_timing *timing);

/* --- pcap ------------------------------------------------------------------------------------- */

/*
 * What channels receive and send, in a file that Wireshark opens.
 *
 *      weir_pcap_create(WEIR_PCAP_OPTIONS(.path = "/tmp/echo.pcap"), &pcap);
 *      weir_pcap_add(pipeline, pcap);      the first handler: bytes as they are on the wire;
 *                                          behind a TLS handler: what was encrypted
 *
 * The packets are made up: IP and TCP with the channel's addresses, a handshake when it becomes
 * active, sequence numbers that count its bytes, and an end. What is written counts when it is
 * written, not when it is sent. File ranges are missing, but their bytes are counted.
 *
 * Datagrams are packets of IP and UDP with the addresses that each has; where one says nothing, it
 * is the channel's: 0.0.0.0 or :: if that is bound to any. One with a segment size is as many
 * packets as are sent.
 *
 * A channel without IP addresses, such as a Unix socket, has 127.0.0.1 here and 127.0.0.2 there,
 * and its number as both ports; a datagram of it that is too long for a packet is several. Other
 * messages are not seen.
 *
 * A file may be shared by any number of channels. It is written by a thread of its own, in pieces
 * of 128 KiB and when a channel ends. Packets wait for it in a queue; while that is full, because a
 * disk is slow or the reader of a pipe has stopped, packets are left out and counted, and the file
 * goes on with the next one that fits: what is in it is always whole.
 */

typedef struct weir_pcap weir_pcap;

/* Zero means default. Build with WEIR_PCAP_OPTIONS(.path = ...). */
typedef struct weir_pcap_options {
    size_t size;
    const char *path;   /* must be there; a file is emptied, a pipe is written to */
    uint64_t max_bytes; /* it gets no longer than this: what comes later is left out; default: as
                           long as it needs */
    size_t queue_bytes; /* memory of packets that wait for the file, 256 KiB at the least; default
                           16 MiB */
} weir_pcap_options;

#define WEIR_PCAP_OPTIONS(...) WEIR_OPTIONS(weir_pcap_options, __VA_ARGS__)

typedef struct weir_pcap_stats {
    uint64_t packets; /* in the file, or about to be */
    uint64_t skipped; /* for any reason */
    uint64_t dropped; /* of these, because the queue was full */
    int error;        /* what the system said when it could not be written: nothing more is; or 0 */
} weir_pcap_stats;

/*
 * Makes the file, and starts its thread.
 * Thread: any that may block.  Lends until it returns: options.  Gives: pcap.  Fails: -EINVAL,
 * -ENOMEM, -EAGAIN (no thread), and what the system says to open it.
 */
WEIR_API int weir_pcap_create(const weir_pcap_options *options, weir_pcap **ret_pcap);

/*
 * Keeps a file; and gives a reference back, of which NULL is fine: the last one, which may be a
 * channel's, closes it. A thread that may wait then waits until everything is written, unless the
 * file takes nothing for five seconds; on a loop the file is finished behind its back. The end of
 * the process waits three seconds for files that are not finished.
 * Thread: any.  Takes, by the second: pcap.
 */
WEIR_API weir_pcap *weir_pcap_retain(weir_pcap *pcap);
WEIR_API void weir_pcap_release(weir_pcap *pcap);

/*
 * Waits until all packets so far are in the file.
 * Thread: any that may block.  Fails: as it did the first time, from then on.
 */
WEIR_API int weir_pcap_flush(weir_pcap *pcap);

/*
 * What it has seen.
 * Thread: any.
 */
WEIR_API void weir_pcap_read_stats(weir_pcap *pcap, weir_pcap_stats *ret_stats);

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Keeps: pcap.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_pcap_add(weir_pipeline *pipeline, weir_pcap *pcap);

#ifdef __cplusplus
}
#endif

#endif
