/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/proxy_protocol.h - the PROXY protocol of HAProxy: a proxy prefixes each connection with a
 * header that names the original client and destination. Version 1 is a line of text, version 2 is
 * binary and carries TLVs.
 *
 * On a server behind a proxy:
 *
 *      err = weir_proxy_receiver_add(pipeline, NULL);      as the first handler
 *      ...
 *      weir_proxy_source(channel, &address);               in later handlers: the real client
 *
 * In a proxy:
 *
 *      err = weir_proxy_header_create(
 *          WEIR_PROXY_HEADER_OPTIONS(.source = &client, .destination = &here), &header);
 *      err = weir_proxy_sender_add(pipeline, header);
 *
 * A server that clients can reach without the proxy must not trust the header: put a
 * weir_ip_filter in front that accepts the proxies only (weir/connection_limits.h).
 */
#ifndef WEIR_PROXY_PROTOCOL_H
#define WEIR_PROXY_PROTOCOL_H

#include <weir/address.h>
#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/handler.h>
#include <weir/msg.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- headers ---------------------------------------------------------------------------------- */

/* A header is an immutable message: any thread may use it and retain it. */
typedef struct weir_proxy_header weir_proxy_header;

/* The TLV types of the specification. Other types are allowed. */
enum weir_proxy_tlv_type {
    WEIR_PROXY_ALPN = 0x01,      /* the negotiated protocol */
    WEIR_PROXY_AUTHORITY = 0x02, /* the host name that the client requested */
    WEIR_PROXY_CRC32C = 0x03,    /* verified when read; see weir_proxy_header_options.checksum */
    WEIR_PROXY_NOOP = 0x04,      /* padding */
    WEIR_PROXY_UNIQUE_ID = 0x05, /* of the connection, up to 128 bytes */
    WEIR_PROXY_SSL = 0x20,       /* 1 byte of flags, 4 bytes of verify result, then these TLVs: */
    WEIR_PROXY_SSL_VERSION = 0x21,
    WEIR_PROXY_SSL_CN = 0x22,
    WEIR_PROXY_SSL_CIPHER = 0x23,
    WEIR_PROXY_SSL_SIG_ALG = 0x24,
    WEIR_PROXY_SSL_KEY_ALG = 0x25,
    WEIR_PROXY_NETNS = 0x30, /* the network namespace of the addresses */
};

#define WEIR_PROXY_SSL_TLVS 5 /* offset of the nested TLVs in WEIR_PROXY_SSL */

typedef struct weir_proxy_tlv {
    uint8_t type;
    weir_span value;
} weir_proxy_tlv;

/* Zero means default. Build with WEIR_PROXY_HEADER_OPTIONS(.source = &address, ...). */
typedef struct weir_proxy_header_options {
    size_t size;
    int version;      /* 1 or 2; default 2 */
    bool is_local;    /* LOCAL: the proxy's own connection, as for health checks; no addresses */
    bool is_datagram; /* the proxied protocol is a datagram protocol */
    const weir_address *source;      /* both addresses have one family: IPv4, IPv6 or Unix; */
    const weir_address *destination; /* NULL for both = unknown */
    const weir_proxy_tlv *tlvs;      /* version 2 with addresses only; copied */
    size_t tlv_count;
    bool checksum; /* version 2 with addresses only: send a CRC-32C */
} weir_proxy_header_options;

#define WEIR_PROXY_HEADER_OPTIONS(...) WEIR_OPTIONS(weir_proxy_header_options, __VA_ARGS__)

/*
 * Type tag of headers; see weir_proxy_header_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_proxy_header_type;

/*
 * Creates a header.
 * Thread: any.  Lends until it returns: options.  Gives: header.  Fails: -EINVAL (mismatched
 * addresses, or an option that version 1 does not support), -EMSGSIZE (above 65535 bytes), -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_proxy_header_create(const weir_proxy_header_options *options,
                                                    weir_proxy_header **ret_header);

/*
 * Casts a message to a header. NULL if it is something else.
 * Thread: any.
 */
WEIR_API const weir_proxy_header *weir_proxy_header_of(const weir_msg *msg);

/*
 * Casts a header to a message.
 * Thread: any.
 */
WEIR_API weir_msg *weir_proxy_header_msg(weir_proxy_header *header);

/*
 * Retains and releases a header. Releasing NULL is ignored.
 * Thread: any.  Takes, by the second: header.
 */
WEIR_API weir_proxy_header *weir_proxy_header_retain(weir_proxy_header *header);
WEIR_API void weir_proxy_header_release(weir_proxy_header *header);

/*
 * The protocol version, 1 or 2; true for the proxy's own connection; true for a datagram protocol.
 * Thread: any.
 */
WEIR_API int weir_proxy_header_version(const weir_proxy_header *header);
WEIR_API bool weir_proxy_header_is_local(const weir_proxy_header *header);
WEIR_API bool weir_proxy_header_is_datagram(const weir_proxy_header *header);

/*
 * The address of the client, and the address it connected to. Borrowed. Their length is 0 if they
 * are unknown.
 * Thread: any.
 */
WEIR_API const weir_address *weir_proxy_header_source(const weir_proxy_header *header);
WEIR_API const weir_address *weir_proxy_header_destination(const weir_proxy_header *header);

/*
 * The encoded TLVs, for weir_proxy_tlv_find. Borrowed.
 * Thread: any.
 */
WEIR_API weir_span weir_proxy_header_tlvs(const weir_proxy_header *header);

/*
 * Finds the first TLV of a type. Also works on the TLVs nested in WEIR_PROXY_SSL. False if there is
 * none.
 * Thread: any.  Lends, as long as the TLVs exist: value.
 */
WEIR_API bool weir_proxy_tlv_find(weir_span tlvs, uint8_t type, weir_span *ret_value);

/*
 * Appends the encoded header to a buffer. Appends nothing if it fails.
 * Thread: the buffer's holder's.  Fails: WEIR_EBOUNDS, -ENOMEM, -EROFS.
 */
WEIR_API WEIR_MUST_USE int weir_proxy_header_write(const weir_proxy_header *header, weir_buf *buf);

/* --- receiver --------------------------------------------------------------------------------- */

/* Zero means default. Build with WEIR_PROXY_RECEIVER_OPTIONS(.max_size = ...). */
typedef struct weir_proxy_receiver_options {
    size_t size;
    size_t max_size; /* of a header, in bytes; default 4096 */
} weir_proxy_receiver_options;

#define WEIR_PROXY_RECEIVER_OPTIONS(...) WEIR_OPTIONS(weir_proxy_receiver_options, __VA_ARGS__)

/*
 * Adds the receiver at the tail. It fires the header as an event (weir_proxy_header_of) before
 * anything is read, then removes itself. A connection that does not begin with a header fires
 * WEIR_EMALFORMED, a header over the limit WEIR_ETOOLONG.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_proxy_receiver_add(weir_pipeline *pipeline,
                                                   const weir_proxy_receiver_options *options);

/*
 * The header that a channel received. Borrowed. NULL if there is none.
 * Thread: any.
 */
WEIR_API const weir_proxy_header *weir_proxy_received_header(weir_channel *channel);

/*
 * The address of the client and the address it connected to: from the received header if it has
 * them, else the remote and local addresses of the channel.
 * Thread: any.  Fails: as weir_channel_remote_address.
 */
WEIR_API int weir_proxy_source(weir_channel *channel, weir_address *ret_address);
WEIR_API int weir_proxy_destination(weir_channel *channel, weir_address *ret_address);

/* --- sender ----------------------------------------------------------------------------------- */

/*
 * Adds the sender at the tail. It sends the header before the first write of a later handler, or
 * when the channel becomes active, before later handlers see that event; then it removes itself. If
 * the header cannot be sent, it fires an error and aborts the channel.
 * Thread: any.  Keeps: header.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_proxy_sender_add(weir_pipeline *pipeline,
                                                 weir_proxy_header *header);

#ifdef __cplusplus
}
#endif

#endif
