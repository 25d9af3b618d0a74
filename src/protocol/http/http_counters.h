/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of HTTP and WebSocket, which are metrics.
 *
 * Each thread counts in a shard of its own, without locked instructions; a reader adds up all
 * shards. When a thread ends, its counts are added to the shared shard, which has many writers. It
 * is also used by threads without memory for their own.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP_COUNTERS_H
#define WEIR_PROTOCOL_HTTP_HTTP_COUNTERS_H

#include <stdatomic.h>

#include <weir/buf.h>

#include "base/histogram.h"
#include "base/list.h"

#define WEIR__HTTP_METHODS 10
#define WEIR__HTTP_STATUS_CLASSES 5

/* Those that are subtracted come before those that they are subtracted from: see sum_of. */
enum weir__http_counter {
    WEIR__HTTP_CONNECTIONS_CLOSED,
    WEIR__HTTP_CONNECTIONS,
    WEIR__HTTP_REQUESTS, /* one for each enum weir_http_method */
    WEIR__HTTP_RESPONSES = WEIR__HTTP_REQUESTS + WEIR__HTTP_METHODS, /* 1xx to 5xx */
    WEIR__HTTP_REFUSED = WEIR__HTTP_RESPONSES + WEIR__HTTP_STATUS_CLASSES,
    WEIR__HTTP_UPGRADES,
    WEIR__HTTP_BYTES_RECEIVED,
    WEIR__HTTP_BYTES_SENT,
    /* Of WebSockets: of a server, then of a client. */
    WEIR__WS_CONNECTIONS_CLOSED,
    WEIR__WS_CONNECTIONS = WEIR__WS_CONNECTIONS_CLOSED + 2,
    WEIR__WS_MESSAGES_RECEIVED = WEIR__WS_CONNECTIONS + 2,
    WEIR__WS_BYTES_RECEIVED = WEIR__WS_MESSAGES_RECEIVED + 2,
    WEIR__WS_MESSAGES_SENT = WEIR__WS_BYTES_RECEIVED + 2,
    WEIR__WS_BYTES_SENT = WEIR__WS_MESSAGES_SENT + 2,
    WEIR__HTTP_COUNTER_COUNT = WEIR__WS_BYTES_SENT + 2,
};

typedef struct weir__http_counts {
    _Atomic uint64_t counters[WEIR__HTTP_COUNTER_COUNT];
    weir_histogram request_time;
    weir__list link;
} weir__http_counts;

/* NULL until the thread counts something; never the shared one. */
extern _Thread_local weir__http_counts *weir__http_counts_own
    __attribute__((tls_model("initial-exec")));

/* Cold: as those below, of a thread without counts of its own, which it creates. */
void weir__http_count_first(unsigned counter, uint64_t n);
void weir__http_record_first(int64_t duration_ns, uint64_t count);

/* Adds to a counter that only this thread writes. Release: see sum_of. */
static inline void weir__http_counts_add(weir__http_counts *own, unsigned counter, uint64_t n)
{
    _Atomic uint64_t *at = &own->counters[counter];

    atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + n,
                          memory_order_release);
}

/* Any thread: adds to a counter. */
static inline void weir__http_count(unsigned counter, uint64_t n)
{
    weir__http_counts *own = weir__http_counts_own;

    if (__builtin_expect(own != NULL, 1))
        weir__http_counts_add(own, counter, n);
    else
        weir__http_count_first(counter, n);
}

/* Any thread: records the duration of `count` requests. */
static inline void weir__http_record_requests(int64_t duration_ns, uint64_t count)
{
    weir__http_counts *own = weir__http_counts_own;

    if (__builtin_expect(own != NULL, 1))
        weir__histogram_record_many(&own->request_time, duration_ns, count);
    else
        weir__http_record_first(duration_ns, count);
}

/* The bytes of a message. Most are buffers: without an indirect call. */
static inline uint64_t weir__http_bytes_of(weir_msg *msg)
{
    const weir_buf *buf = weir_buf_of(msg);

    return buf != NULL ? weir_buf_readable(buf) : weir_msg_size(msg);
}

/* Any thread: counts a response by the first digit of its status. */
static inline void weir__http_count_response(int status)
{
    if (status >= 200 && status < 300) /* most: without a division */
        weir__http_count(WEIR__HTTP_RESPONSES + 1, 1);
    else if (status >= 100 && status < 600)
        weir__http_count(WEIR__HTTP_RESPONSES + (unsigned)status / 100 - 1, 1);
}

#endif
