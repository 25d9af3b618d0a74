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
    {"executor.queue_latency_ns", "Time that a task waits for its call; sampled."},
    {"executor.run_time_ns", "Run time of tasks; batches of short ones are averaged."},
    {"executor.tasks_run", "Tasks and timers called."},
    {"executor.timers", "Timers that run."},
    {"executor.utilisation_permille", "Share of the last one to three seconds spent awake."},
    {"executor.wakeups", "Wake-ups by other threads."},
    {"handler.blocked_ns", "Time for which the handler has blocked event loops."},
    {"handler.blocks", "Times that the handler has blocked an event loop."},
    {"handler.is_offloaded", "1 if the handler was moved to another group because it blocked."},
    {"handler.longest_ns", "Longest time for which the handler has blocked an event loop."},
    {"handler.moved", "Contexts of the handler that were moved to another group."},
    {"http.bytes_received", "Bytes received by HTTP servers, without TLS."},
    {"http.bytes_sent", "Bytes written by HTTP servers, without TLS."},
    {"http.connections", "Connections of HTTP servers."},
    {"http.connections_open", "Open connections of HTTP servers, without upgraded ones."},
    {"http.request_ns", "Time from the head of a request to the end of its response."},
    {"http.requests", "Requests received by HTTP servers."},
    {"http.requests_refused", "Requests that were malformed, too long or late."},
    {"http.responses", "Responses begun by HTTP servers, without status 100."},
    {"http.upgrades", "Connections of HTTP servers that were handed over to another protocol."},
    {"log.dropped", "Log lines that were dropped because the log did not accept them."},
    {"loop.events", "Events delivered by the I/O backend."},
    {"loop.handles", "Open descriptors of the loop."},
    {"loop.io_ns", "Time spent on I/O events."},
    {"loop.rebuilds", "Times that a failed backend was rebuilt."},
    {"loop.receives", "System calls that receive."},
    {"loop.sends", "System calls that send."},
    {"loop.turn_ns", "Time of turns, without the wait; every 64th, and those that blocked."},
    {"loop.turns", "Turns of the event loop."},
    {"loop.waits", "System calls that wait for events."},
    {"pool.cache.cached_bytes", "Free blocks in the cache of a thread."},
    {"pool.cache.mapped_bytes", "Memory held by the cache of a thread."},
    {"pool.cache.out_bytes", "Blocks of a thread's cache that are in use."},
    {"pool.failures", "Failed allocations of buffers."},
    {"pool.huge_bytes", "Buffers that are too large for a cache."},
    {"pool.limit_bytes", "Limit of the memory of buffers; 0: none."},
    {"pool.mapped_bytes", "Memory of buffers."},
    {"pool.peak_bytes", "Largest memory of buffers so far."},
    {"process.cpu_ns", "CPU time of the process, user and system."},
    {"process.max_fds", "Limit of open file descriptors; 0: none."},
    {"process.open_fds", "Open file descriptors."},
    {"process.resident_memory_bytes", "Resident memory of the process."},
    {"process.start_time_ns", "Start of the process since 1970."},
    {"process.threads", "Threads of the process."},
    {"process.virtual_memory_bytes", "Virtual memory of the process."},
    {"tls.handshakes", "TLS handshakes that succeeded."},
    {"tls.handshakes_failed", "TLS handshakes that failed."},
    {"tls.handshakes_resumed", "TLS handshakes that resumed a session."},
    {"watchdog.blocked_now", "Event loops that are blocked now."},
    {"watchdog.blocked_ns", "Time for which event loops were blocked."},
    {"watchdog.blocks", "Times that an event loop was blocked."},
    {"watchdog.is_running", "1 while the watchdog runs."},
    {"watchdog.longest_ns", "Longest time for which an event loop was blocked."},
    {"watchdog.not_logged", "Blocks that were not logged because of the rate limit."},
    {"watchdog.without_signal", "Blocks without a backtrace because the signal was not answered."},
    {"websocket.bytes_received", "Bytes of messages received by WebSockets."},
    {"websocket.bytes_sent", "Bytes of messages sent by WebSockets."},
    {"websocket.connections", "WebSockets opened."},
    {"websocket.connections_open", "Open WebSockets."},
    {"websocket.messages_received", "Messages received by WebSockets."},
    {"websocket.messages_sent", "Messages sent by WebSockets."},
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
