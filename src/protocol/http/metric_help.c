/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The families of the library, in alphabetical order, and their help texts. A family that is
 * missing here is exported as a user's: without the prefix "weir_".
 */
#include "protocol/http/metric_samples.h"

#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *family;
    const char *help;
} rows[] = {
    {"build_info", "Always 1; the label has the version of weir."},
    {"channels.accepted", "Connections accepted by listeners."},
    {"channels.accepts_failed", "Failed calls of accept."},
    {"channels.active", "Channels that are connected or bound now, without listeners."},
    {"channels.bytes_received", "Bytes received by channels."},
    {"channels.bytes_sent", "Bytes sent by channels."},
    {"channels.closed", "Channels closed, without listeners."},
    {"channels.connected", "Connections made by clients."},
    {"channels.connects_failed", "Connections that clients could not make."},
    {"channels.created", "Channels created, without listeners."},
    {"channels.errors",
     "Errors of connect, accept, bind, receive, send and registration by cause."},
    {"channels.listeners", "Open listeners."},
    {"channels.listeners_active", "Listeners that are bound now."},
    {"channels.messages_received", "Messages received: reads of streams, or datagrams."},
    {"channels.messages_sent", "Messages sent."},
    {"channels.open", "Open channels, without listeners."},
    {"channels.turned_away", "Connections closed at once because of a lack of descriptors."},
    {"channels.unwritable", "Times that unsent bytes exceeded the high water mark of a channel."},
    {"channels.writes_failed", "Messages that could not be sent."},
    {"executor.pending", "Tasks that wait for the executor."},
    {"executor.queue_latency_ns", "Time from the submission of a task to its call; every 64th."},
    {"executor.run_time_ns", "Run time of tasks; batches of short ones are averaged."},
    {"executor.tasks_run", "Tasks and timers called."},
    {"executor.utilisation_permille", "Share of the last one to three seconds spent awake."},
    {"executor.wakeups", "Wake-ups by other threads."},
    {"loop.events", "Events delivered by the I/O backend."},
    {"loop.handles", "Open descriptors of the loop."},
    {"loop.io_ns", "Time spent on I/O events."},
    {"loop.rebuilds", "Times that a failed backend was rebuilt."},
    {"loop.waits", "System calls that wait for events."},
    {"pool.cache.cached_bytes", "Free blocks in the cache of a thread."},
    {"pool.cache.mapped_bytes", "Memory held by the cache of a thread."},
    {"pool.cache.out_bytes", "Blocks of a thread's cache that are in use."},
    {"pool.failures", "Failed allocations of buffers."},
    {"pool.huge_bytes", "Buffers that are too large for a cache."},
    {"pool.limit_bytes", "Limit of the memory of buffers; 0: none."},
    {"pool.mapped_bytes", "Memory of buffers."},
    {"pool.peak_bytes", "Largest memory of buffers so far."},
};

static int compare(const void *key, const void *row)
{
    const weir_span *family = key;
    const char *name = ((const struct row *)row)->family;

    return weir_span_compare(*family, weir_span_of_text(name));
}

const char *weir__metric_help(weir_span family)
{
    const struct row *row =
        bsearch(&family, rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]), compare);

    return row != NULL ? row->help : NULL;
}
