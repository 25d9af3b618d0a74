/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/pcap.h - what channels receive and send, in a file that Wireshark opens.
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
#ifndef WEIR_PCAP_H
#define WEIR_PCAP_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#define WEIR_PCAP_OPTIONS(...) \
    (&(const weir_pcap_options){.size = sizeof(weir_pcap_options), __VA_ARGS__})

typedef struct weir_pcap_stats {
    uint64_t packets;  /* in the file, or about to be */
    uint64_t left_out; /* for any reason */
    uint64_t dropped;  /* of these, because the queue was full */
    int error; /* what the system said when it could not be written: nothing more is; or 0 */
} weir_pcap_stats;

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_pcap_options_init(weir_pcap_options *options);

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
WEIR_API void weir_pcap_read(weir_pcap *pcap, weir_pcap_stats *ret_stats);

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Keeps: pcap.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_pcap_add(weir_pipeline *pipeline, weir_pcap *pcap);

#ifdef __cplusplus
}
#endif

#endif
