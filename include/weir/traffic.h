/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/traffic.h - rate limits in bytes per second, for one channel or for many that share a limit,
 * on any loops.
 *
 *      err = weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.write_rate = 10 << 20), &traffic);
 *      ...
 *      err = weir_traffic_shaping_add(pipeline, traffic);      in each channel
 *
 * Writes wait in order until the rate allows them, and count against the channel's water marks
 * meanwhile. A message is sent as a whole: write large data as chunks (weir/chunks.h). A close or
 * half closure waits for earlier writes.
 *
 * Reads are passed on at once; the channel then pauses reading until they are within the rate. The
 * channel's receive_max bounds how much arrives at once. Auto-read is not changed.
 */
#ifndef WEIR_TRAFFIC_H
#define WEIR_TRAFFIC_H

#include <weir/base.h>
#include <weir/handler.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- limits ----------------------------------------------------------------------------------- */

typedef struct weir_traffic weir_traffic;

/* Zero means default. Build with WEIR_TRAFFIC_OPTIONS(.read_rate = ..., ...). */
typedef struct weir_traffic_options {
    size_t size;
    int64_t read_rate;    /* bytes per second; default unlimited */
    int64_t write_rate;   /* the same */
    int64_t burst_ns;     /* unused capacity of this time may be used at once; default 100 ms;
                             WEIR_OFF = no bursts */
    int64_t max_delay_ns; /* a message waits no longer than this for earlier ones; default 15 s */
} weir_traffic_options;

#define WEIR_TRAFFIC_OPTIONS(...) WEIR_OPTIONS(weir_traffic_options, __VA_ARGS__)

typedef struct weir_traffic_stats {
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint64_t reads_paused;   /* the number of times a channel paused reading */
    uint64_t writes_delayed; /* the number of messages that had to wait */
    uint64_t bytes_waiting;  /* bytes of the messages that wait now */
    uint64_t reserved[8];
} weir_traffic_stats;

/*
 * Creates a limit.
 * Thread: any.  Gives: ret_traffic.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_traffic_create(const weir_traffic_options *options,
                                               weir_traffic **ret_traffic);

/*
 * Retains a limit.
 * Thread: any.
 */
WEIR_API weir_traffic *weir_traffic_retain(weir_traffic *traffic);

/*
 * Releases a limit. NULL is ignored.
 * Thread: any.  Takes: traffic.
 */
WEIR_API void weir_traffic_release(weir_traffic *traffic);

/*
 * Changes the rates, 0 = unlimited. The first waiting message of each channel keeps its time.
 * Thread: any.  Fails: -EINVAL (a negative rate).
 */
WEIR_API int weir_traffic_set_rates(weir_traffic *traffic, int64_t read_rate, int64_t write_rate);

/*
 * Reads the counters. Each value is exact; they are not read at one instant.
 * Thread: any.
 */
WEIR_API void weir_traffic_read_stats(const weir_traffic *traffic, weir_traffic_stats *ret_stats);

/* --- traffic shaping -------------------------------------------------------------------------- */

/*
 * Adds the handler at the tail. A channel may have several, for example one of its own and one that
 * is shared.
 * Thread: any.  Keeps: traffic.  Fails: -EINVAL (NULL), and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_traffic_shaping_add(weir_pipeline *pipeline, weir_traffic *traffic);

#ifdef __cplusplus
}
#endif

#endif
