/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/proxy_protocol.h - what a proxy says of a connection that it has made for somebody else:
 * whose it is, and where it was meant to go. The PROXY protocol of HAProxy, version 1 (a line of
 * text) and 2 (binary, with further tlvs); weir/proxy_protocol.h sends and receives them.
 *
 * A header is a message that nobody changes: it may be kept, and used on any thread.
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

typedef struct weir_proxy_header weir_proxy_header;

/* The types of further tlvs. Others may be used, too. */
enum weir_proxy_tlv_type {
    WEIR_PROXY_ALPN = 0x01,      /* the protocol that was agreed on */
    WEIR_PROXY_AUTHORITY = 0x02, /* the host name that the client has asked for */
    WEIR_PROXY_CRC32C = 0x03,    /* checked when a header is read, made when one is written */
    WEIR_PROXY_NOOP = 0x04,      /* nothing: fills space */
    WEIR_PROXY_UNIQUE_ID = 0x05, /* of the connection, up to 128 bytes */
    WEIR_PROXY_SSL = 0x20,       /* 1 byte of flags, 4 of the verification's result, then tlvs: */
    WEIR_PROXY_SSL_VERSION = 0x21,
    WEIR_PROXY_SSL_CN = 0x22,
    WEIR_PROXY_SSL_CIPHER = 0x23,
    WEIR_PROXY_SSL_SIG_ALG = 0x24,
    WEIR_PROXY_SSL_KEY_ALG = 0x25,
    WEIR_PROXY_NETNS = 0x30, /* of the network that the addresses are in */
};

#define WEIR_PROXY_SSL_TLVS 5 /* where those of WEIR_PROXY_SSL begin in it */

typedef struct weir_proxy_tlv {
    uint8_t type;
    weir_span value;
} weir_proxy_tlv;

/* Zero means default. Build with WEIR_PROXY_HEADER_OPTIONS(.source = &address, ...). */
typedef struct weir_proxy_header_options {
    size_t size;
    int version;   /* 1 or 2, default 2 */
    bool is_local; /* the proxy's own connection, such as a health check: there are no addresses */
    bool is_datagram;           /* what was proxied is no stream */
    const weir_address *source; /* both internet addresses of one family, or of Unix sockets; */
    const weir_address *destination; /* or neither: it is not known */
    const weir_proxy_tlv *tlvs;      /* version 2 with addresses only; copied */
    size_t tlv_count;
    bool checksum; /* version 2 with addresses: sends a CRC-32C */
} weir_proxy_header_options;

#define WEIR_PROXY_HEADER_OPTIONS(...) WEIR_OPTIONS(weir_proxy_header_options, __VA_ARGS__)

/*
 * What a message's type is if it is a header: weir_proxy_header_of asks.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_proxy_header_type;

/*
 * Makes a header.
 * Thread: any.  Lends until it returns: options.  Gives: header.  Fails: -EINVAL (addresses that do
 * not go together; what version 1 has not), -EMSGSIZE (65535 bytes and more), -ENOMEM.
 */
WEIR_API int weir_proxy_header_create(const weir_proxy_header_options *options,
                                      weir_proxy_header **ret_header);

/*
 * The header that a message is, or NULL if it is something else.
 * Thread: any.
 */
WEIR_API const weir_proxy_header *weir_proxy_header_of(const weir_msg *msg);

/*
 * The header as the message that it is.
 * Thread: any.
 */
WEIR_API weir_msg *weir_proxy_header_msg(weir_proxy_header *header);

/*
 * Keeps a header; and gives a reference back, of which NULL is fine.
 * Thread: any.  Takes, by the second: header.
 */
WEIR_API weir_proxy_header *weir_proxy_header_retain(weir_proxy_header *header);
WEIR_API void weir_proxy_header_release(weir_proxy_header *header);

/*
 * 1 or 2; whether the connection is the proxy's own; whether is_datagram were proxied.
 * Thread: any.
 */
WEIR_API int weir_proxy_header_version(const weir_proxy_header *header);
WEIR_API bool weir_proxy_header_is_local(const weir_proxy_header *header);
WEIR_API bool weir_proxy_header_is_datagram(const weir_proxy_header *header);

/*
 * Who has connected to the proxy, and to which address; of length 0 if that is not known. Borrowed.
 * Thread: any.
 */
WEIR_API const weir_address *weir_proxy_header_source(const weir_proxy_header *header);
WEIR_API const weir_address *weir_proxy_header_destination(const weir_proxy_header *header);

/*
 * The further tlvs as they were sent, for weir_proxy_tlv_find. Borrowed.
 * Thread: any.
 */
WEIR_API weir_span weir_proxy_header_tlvs(const weir_proxy_header *header);

/*
 * The first tlv of a type; also of those inside WEIR_PROXY_SSL. False if there is none.
 * Thread: any.  Lends, as long as the tlvs are there: value.
 */
WEIR_API bool weir_proxy_tlv_find(weir_span tlvs, uint8_t type, weir_span *ret_value);

/*
 * Appends a header's bytes.
 * Thread: the buffer's holder's.  Fails: WEIR_EBOUNDS, -ENOMEM, -EROFS: then nothing is appended.
 */
WEIR_API int weir_proxy_header_write(const weir_proxy_header *header, weir_buf *buf);

/* --- proxy protocol --------------------------------------------------------------------------- */

/*
 * The PROXY protocol at both ends of a connection.
 *
 * Behind a proxy: the first bytes of each connection say who is really there.
 *
 *      weir_proxy_receiver_add(pipeline, NULL);            the first handler
 *      ...
 *      weir_proxy_source(channel, &address);               in those behind it, from then on
 *
 * As a proxy: the first bytes that are sent say it.
 *
 *      weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(.source = &client, .destination = &here),
 *                               &header);
 *      weir_proxy_sender_add(pipeline, header);
 *
 * Both handlers go when that is done. The receiver sends the header through the pipeline as an
 * event (weir_proxy_header_of) before anything is read; a connection that begins with anything else
 * is an error, WEIR_EMALFORMED. Who can reach such a server directly can say what he likes: let a
 * filter (weir/connection_limits.h) in front of it accept the proxies only.
 */

/* Zero means default. Build with WEIR_PROXY_RECEIVER_OPTIONS(.max_size = ...). */
typedef struct weir_proxy_receiver_options {
    size_t size;
    size_t max_size; /* a longer header is an error, WEIR_ETOOLONG; default 4096 bytes */
} weir_proxy_receiver_options;

#define WEIR_PROXY_RECEIVER_OPTIONS(...) WEIR_OPTIONS(weir_proxy_receiver_options, __VA_ARGS__)

/*
 * Adds the handler that reads a header at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_proxy_receiver_add(weir_pipeline *pipeline,
                                     const weir_proxy_receiver_options *options);

/*
 * Adds the handler that sends this header at the end of a pipeline: in front of the first write
 * that comes from behind it, or when the channel becomes active, before the handlers behind hear of
 * it. If the header cannot be sent, the channel is aborted with an error.
 * Thread: any.  Keeps: header.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_proxy_sender_add(weir_pipeline *pipeline, weir_proxy_header *header);

/*
 * The header that a channel has received, borrowed; NULL if there is none.
 * Thread: any.
 */
WEIR_API const weir_proxy_header *weir_proxy_received_header(weir_channel *channel);

/*
 * Who is at the other end, and which address he has called: by the header that has come, otherwise
 * as the channel's own addresses.
 * Thread: any.  Fails: as weir_channel_remote_address.
 */
WEIR_API int weir_proxy_source(weir_channel *channel, weir_address *ret_address);
WEIR_API int weir_proxy_destination(weir_channel *channel, weir_address *ret_address);

#ifdef __cplusplus
}
#endif

#endif
