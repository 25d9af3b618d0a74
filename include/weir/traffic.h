/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/traffic.h - how many bytes per second may be read and written: by one channel, or by many
 * that share it, on whatever loops.
 *
 *      weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.write_rate = 10 << 20), &traffic);
 *      ...
 *      weir_traffic_shaping_add(pipeline, traffic);      in each channel (weir/traffic.h)
 *
 * The rate holds on average, and smoothly: a message that goes out is paid for before the next one
 * goes. What was not used in the last `burst_ns` may be used at once.
 */
#ifndef WEIR_TRAFFIC_H
#define WEIR_TRAFFIC_H

#include <weir/base.h>
#include <weir/handler.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_traffic weir_traffic;

/* Zero means default. Build with WEIR_TRAFFIC_OPTIONS(.read_rate = ..., ...). */
typedef struct weir_traffic_options {
    size_t size;
    int64_t read_rate;    /* bytes per second; default no limit */
    int64_t write_rate;   /* the same */
    int64_t burst_ns;     /* default 100 ms; WEIR_OFF = nothing is saved up */
    int64_t max_delay_ns; /* a message waits no longer for those before it; what is not paid by then
                             is forgiven; default 15 s */
} weir_traffic_options;

#define WEIR_TRAFFIC_OPTIONS(...) WEIR_OPTIONS(weir_traffic_options, __VA_ARGS__)

/* What has passed so far, and waits now. */
typedef struct weir_traffic_stats {
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint64_t reads_paused;   /* how often a channel did not read for a while */
    uint64_t writes_delayed; /* how many messages had to wait */
    uint64_t bytes_waiting;  /* of these, now */
    uint64_t reserved[8];
} weir_traffic_stats;

/*
 * Creates a limit.
 * Thread: any.  Gives: ret_traffic.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API int weir_traffic_create(const weir_traffic_options *options, weir_traffic **ret_traffic);

/*
 * Takes one more reference.
 * Thread: any.
 */
WEIR_API weir_traffic *weir_traffic_retain(weir_traffic *traffic);

/*
 * Gives a reference back; NULL is fine.
 * Thread: any.  Takes: traffic.
 */
WEIR_API void weir_traffic_release(weir_traffic *traffic);

/*
 * Changes the rates, 0 = no limit. What waits already waits until the time that it was given.
 * Thread: any.  Fails: -EINVAL (negative).
 */
WEIR_API int weir_traffic_set_rates(weir_traffic *traffic, int64_t read_rate, int64_t write_rate);

/*
 * The figures as of now, each exact by itself.
 * Thread: any.
 */
WEIR_API void weir_traffic_read_stats(const weir_traffic *traffic, weir_traffic_stats *ret_stats);

/* --- traffic shaping -------------------------------------------------------------------------- */

/*
 * A handler that keeps a channel within a limit (weir/traffic.h).
 *
 * Writing: messages wait, in their order, until they may go out; they count against the channel's
 * marks. A message goes as a whole: what is large is better written as weir/chunks.h, by handlers
 * behind. A close, and a half closure, waits for what was written before it.
 *
 * Reading: what has come is passed on; then the channel does not read until that is paid for. How
 * much comes at once is the channel's receive_max. Auto-read is left as it is.
 *
 * A channel may have several such handlers: one for itself, say, and one that all share.
 */

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Keeps: traffic.  Fails: -EINVAL (NULL), and as weir_pipeline_add.
 */
WEIR_API int weir_traffic_shaping_add(weir_pipeline *pipeline, weir_traffic *traffic);

#ifdef __cplusplus
}
#endif

#endif
