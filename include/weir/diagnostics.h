/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/diagnostics.h - handlers that observe a pipeline and pass everything on unchanged.
 *
 *      weir_logging_add    logs events and operations, with hex dumps
 *      weir_counters_add   counts messages, bytes, errors and channels
 *      weir_timing_add     measures the time that later handlers take
 *      weir_pcap_add       captures traffic to a file for Wireshark
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

/* --- logging ---------------------------------------------------------------------------------- */

/*
 *      err = weir_logging_add(pipeline, WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_INFO));
 *
 *      weir INFO  logging [7 127.0.0.1:8007 - 127.0.0.1:51234]: READ: 5 B
 *      weir INFO  logging [7 127.0.0.1:8007 - 127.0.0.1:51234]: 00000000  68 65 6c 6c 6f ...
 *
 * Logs every event and operation except read requests, with addresses and errors; buffers and
 * composites with their bytes, other messages with type and size. A level that the log drops
 * (weir_log_set_level) costs one comparison per event.
 */

#define WEIR_LOGGING_NAME_SIZE 32 /* of a name with its NUL */

/* Zero means default. Build with WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_INFO, ...). */
typedef struct weir_logging_options {
    size_t size;
    enum weir_log_level level; /* of all lines; default WEIR_LOG_TRACE */
    int dump;                  /* WEIR_OFF = log the length of messages but not their bytes */
    size_t dump_max;           /* maximum bytes to dump per message; default 4096 */
    const char *name;          /* the subsystem in the log; default "logging" */
} weir_logging_options;

#define WEIR_LOGGING_OPTIONS(...) WEIR_OPTIONS(weir_logging_options, __VA_ARGS__)

/*
 * Adds the handler at the tail.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (level or dump out of range),
 * -ENAMETOOLONG, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_logging_add(weir_pipeline *pipeline,
                                            const weir_logging_options *options);

/* --- counters --------------------------------------------------------------------------------- */

/*
 *      err = weir_counters_create(WEIR_COUNTERS_OPTIONS(.name = "front"), &counters);
 *      err = weir_counters_add(pipeline, counters);      in each connection
 *      weir_counters_read_stats(counters, &stats);
 *
 * Handlers that share one weir_counters add up: use one for a whole server, or one per channel.
 * With a name, the counters are metrics, too (weir/metric.h): "front.bytes_read", ... The position
 * in the pipeline decides what is counted: bytes near the head, messages behind a decoder. Each
 * loop batches its counts and publishes them at read_complete and flush.
 */

typedef struct weir_counters weir_counters;

/* Zero means default. Build with WEIR_COUNTERS_OPTIONS(.name = ...). */
typedef struct weir_counters_options {
    size_t size;
    const char *name; /* prefix of the metrics; default: no metrics */
} weir_counters_options;

#define WEIR_COUNTERS_OPTIONS(...) WEIR_OPTIONS(weir_counters_options, __VA_ARGS__)

typedef struct weir_counters_stats {
    int64_t bytes_read; /* of messages that have a size, and of file ranges */
    int64_t messages_read;
    int64_t reads; /* read_complete events */
    int64_t bytes_written;
    int64_t messages_written;
    int64_t flushes;
    int64_t errors;
    int64_t channels; /* that became active */
    int64_t open;     /* channels that are active now */
} weir_counters_stats;

/*
 * Creates counters.
 * Thread: any.  Lends until it returns: options.  Gives: counters.  Fails: -EINVAL, -ENOMEM, and as
 * weir_metric_create.
 */
WEIR_API WEIR_MUST_USE int weir_counters_create(const weir_counters_options *options,
                                                weir_counters **ret_counters);

/*
 * Retains and releases counters. Releasing NULL is ignored.
 * Thread: any.  Takes, by the second: counters.
 */
WEIR_API weir_counters *weir_counters_retain(weir_counters *counters);
WEIR_API void weir_counters_release(weir_counters *counters);

/*
 * Reads the counters. Each value is exact; they are not read at one instant.
 * Thread: any.
 */
WEIR_API void weir_counters_read_stats(const weir_counters *counters,
                                       weir_counters_stats *ret_stats);

/*
 * Adds the handler at the tail.
 * Thread: any.  Keeps: counters.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_counters_add(weir_pipeline *pipeline, weir_counters *counters);

/* --- timing ----------------------------------------------------------------------------------- */

/*
 *      err = weir_timing_create(WEIR_TIMING_OPTIONS(.name = "app"), &timing);
 *      err = weir_timing_add(pipeline, timing);          before the handlers to be measured
 *      weir_histogram_read(weir_timing_histogram(timing, WEIR_TIMING_READ), &summary);
 *
 * Records how long later handlers keep the loop busy with each kind of event, in nanoseconds. A
 * handler on another executor counts only with the time to post the event. If there are two timing
 * handlers, the times of the first include those of the second. With a name, the histograms are
 * metrics, too (weir/metric.h): "app.read", ... Each event costs two clock readings.
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
    const char *name;  /* prefix of the metrics; default: no metrics */
    weir_clock *clock; /* must outlive the timing; default: the clock of the handler's executor */
} weir_timing_options;

#define WEIR_TIMING_OPTIONS(...) WEIR_OPTIONS(weir_timing_options, __VA_ARGS__)

/*
 * Creates a set of empty histograms.
 * Thread: any.  Lends until it returns: options.  Gives: timing.  Fails: -EINVAL, -ENOMEM, and as
 * weir_metric_create.
 */
WEIR_API WEIR_MUST_USE int weir_timing_create(const weir_timing_options *options,
                                              weir_timing **ret_timing);

/*
 * Retains and releases a timing. Releasing NULL is ignored.
 * Thread: any.  Takes, by the second: timing.
 */
WEIR_API weir_timing *weir_timing_retain(weir_timing *timing);
WEIR_API void weir_timing_release(weir_timing *timing);

/*
 * The histogram of one kind of event. Borrowed. NULL if there is no such kind.
 * Thread: any.
 */
WEIR_API const weir_histogram *weir_timing_histogram(const weir_timing *timing,
                                                     enum weir_timing_kind kind);

/*
 * Adds the handler at the tail.
 * Thread: any.  Keeps: timing.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_timing_add(weir_pipeline *pipeline, weir_timing *timing);

/* --- pcap ------------------------------------------------------------------------------------- */

/*
 *      err = weir_pcap_create(WEIR_PCAP_OPTIONS(.path = "/tmp/echo.pcap"), &pcap);
 *      err = weir_pcap_add(pipeline, pcap);      as the first handler: bytes as on the wire;
 *                                                behind a TLS handler: plain text
 *
 * The packets are synthetic. A stream channel is a TCP connection with the channel's addresses, a
 * handshake, sequence numbers that count its bytes, and an end. Writes are captured when they are
 * written, not when they are sent. The bytes of file ranges are counted but not captured.
 *
 * Datagrams are UDP packets with their own addresses; a missing address is the channel's, 0.0.0.0
 * or :: if that is bound to any. A datagram with a segment size is one packet per segment.
 *
 * A channel without IP addresses, such as a Unix socket, appears as 127.0.0.1 (local) and 127.0.0.2
 * (remote) with the channel id as both ports; datagrams that exceed a packet are split. Messages
 * other than bytes and datagrams are not captured.
 *
 * Any number of channels may share a file. A background thread writes it, in blocks of 128 KiB and
 * whenever a channel ends. If the file is too slow and the queue fills up, packets are dropped and
 * counted; the file stays well-formed.
 */

typedef struct weir_pcap weir_pcap;

/* Zero means default. Build with WEIR_PCAP_OPTIONS(.path = ...). */
typedef struct weir_pcap_options {
    size_t size;
    const char *path;   /* required; a file is truncated, a pipe is written to */
    uint64_t max_bytes; /* maximum size of the file; later packets are skipped; default unlimited */
    size_t queue_bytes; /* memory for queued packets, at least 256 KiB; default 16 MiB */
} weir_pcap_options;

#define WEIR_PCAP_OPTIONS(...) WEIR_OPTIONS(weir_pcap_options, __VA_ARGS__)

typedef struct weir_pcap_stats {
    uint64_t packets; /* written or queued */
    uint64_t skipped; /* not written, for any reason */
    uint64_t dropped; /* of these, because the queue was full */
    int error;        /* -errno of the first failed write, after which nothing is written; or 0 */
} weir_pcap_stats;

/*
 * Creates the file and starts its thread.
 * Thread: any that may block.  Lends until it returns: options.  Gives: pcap.  Fails: -EINVAL,
 * -ENOMEM, -EAGAIN (no thread), and as open(2).
 */
WEIR_API WEIR_MUST_USE int weir_pcap_create(const weir_pcap_options *options, weir_pcap **ret_pcap);

/*
 * Retains and releases a capture. Releasing NULL is ignored. The last release, which may be a
 * channel's, closes the file. On a thread that may block it waits until everything is written,
 * unless the file accepts nothing for five seconds. On a loop it does not wait: the file is
 * completed in the background. The end of the process waits up to three seconds for such files.
 * Thread: any.  Takes, by the second: pcap.
 */
WEIR_API weir_pcap *weir_pcap_retain(weir_pcap *pcap);
WEIR_API void weir_pcap_release(weir_pcap *pcap);

/*
 * Waits until all packets so far are in the file.
 * Thread: any that may block.  Fails: with the error of the first failed write.
 */
WEIR_API int weir_pcap_flush(weir_pcap *pcap);

/*
 * Reads the counters.
 * Thread: any.
 */
WEIR_API void weir_pcap_read_stats(weir_pcap *pcap, weir_pcap_stats *ret_stats);

/*
 * Adds the handler at the tail.
 * Thread: any.  Keeps: pcap.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_pcap_add(weir_pipeline *pipeline, weir_pcap *pcap);

#ifdef __cplusplus
}
#endif

#endif
