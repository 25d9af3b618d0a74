/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/datagram.h - datagrams: messages with addresses, read and written by UDP and Unix datagram
 * channels.
 *
 *      static void on_read(weir_ctx *ctx, weir_msg *msg)       an echo server
 *      {
 *          weir_datagram_make_reply(weir_datagram_of(msg));
 *          weir_write(ctx, msg, NULL);
 *      }
 *
 * A received datagram has a sender and a buffer, which may be empty. A written one has a recipient,
 * unless the channel is connected: there a plain buffer or composite is accepted, and is sent as
 * one datagram.
 *
 * A datagram with a segment size is sent as several datagrams of that size, the last one possibly
 * shorter, by one system call and segmented by the kernel or the device where possible (GSO).
 */
#ifndef WEIR_DATAGRAM_H
#define WEIR_DATAGRAM_H

#include <weir/address.h>
#include <weir/buf.h>
#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_datagram weir_datagram;

/*
 * Type tag of datagrams; see weir_datagram_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_datagram_type;

/*
 * Creates a datagram with the readable bytes of a buffer or composite, or with descriptors for a
 * Unix socket; NULL content = empty. NULL recipient = the peer of a connected channel.
 * Thread: any.  Takes: content.  Gives: datagram.  Fails: -ENOMEM, -EINVAL (none of those).
 */
WEIR_API WEIR_MUST_USE int weir_datagram_create(weir_msg *content, const weir_address *recipient,
                                                weir_datagram **ret_datagram);

/*
 * The message as a datagram; NULL if it has another type.
 * Thread: any.
 */
static inline weir_datagram *weir_datagram_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_datagram_type) ? (weir_datagram *)(void *)msg
                                                                : NULL;
}

/*
 * The datagram as a message.
 * Thread: any.
 */
static inline weir_msg *weir_datagram_msg(weir_datagram *datagram)
{
    return (weir_msg *)(void *)datagram; /* its first member */
}

/*
 * Retains a reference.
 * Thread: any.
 */
static inline weir_datagram *weir_datagram_retain(weir_datagram *datagram)
{
    weir_msg_retain(weir_datagram_msg(datagram));
    return datagram;
}

/*
 * Releases a reference. NULL is ignored.
 * Thread: any.  Takes: datagram.
 */
static inline void weir_datagram_release(weir_datagram *datagram)
{
    if (datagram != NULL)
        weir_msg_release(weir_datagram_msg(datagram));
}

/*
 * The content, borrowed: for a received datagram a buffer, or weir_descriptors if descriptors came
 * with it. NULL if it is empty or was taken.
 * Thread: its holder's.
 */
WEIR_API weir_msg *weir_datagram_content(const weir_datagram *datagram);

/*
 * The content as a buffer; NULL if it is not one.
 * Thread: its holder's.
 */
static inline weir_buf *weir_datagram_buf(const weir_datagram *datagram)
{
    return weir_buf_of(weir_datagram_content(datagram));
}

/*
 * Removes the content from the datagram and returns it.
 * Thread: its holder's.  Gives: content.
 */
WEIR_API WEIR_MUST_USE weir_msg *weir_datagram_take_content(weir_datagram *datagram);

/*
 * The sender and the recipient, borrowed; an address of length 0 if unknown. The recipient of a
 * received datagram is the address that the channel is bound to, or with packet_info of
 * weir_channel_options the actual destination address.
 * Thread: its holder's.
 */
WEIR_API const weir_address *weir_datagram_sender(const weir_datagram *datagram);
WEIR_API const weir_address *weir_datagram_recipient(const weir_datagram *datagram);

/*
 * Sets the recipient; NULL = the peer of a connected channel.
 * Thread: its holder's.
 */
WEIR_API void weir_datagram_set_recipient(weir_datagram *datagram, const weir_address *recipient);

/*
 * Sets the local address to send from, for UDP channels bound to the wildcard address; the port is
 * that of the channel. NULL or a wildcard address lets the system choose.
 * Thread: its holder's.
 */
WEIR_API void weir_datagram_set_sender(weir_datagram *datagram, const weir_address *sender);

/*
 * Turns a received datagram into a reply: the sender becomes the recipient. If packet_info of
 * weir_channel_options is set, the reply is sent from the address at which the datagram arrived.
 * Thread: its holder's.
 */
WEIR_API void weir_datagram_make_reply(weir_datagram *datagram);

/*
 * The segment size in bytes; 0 = sent as one datagram.
 * Thread: its holder's.
 */
WEIR_API uint16_t weir_datagram_segment_size(const weir_datagram *datagram);
WEIR_API void weir_datagram_set_segment_size(weir_datagram *datagram, uint16_t size);

#ifdef __cplusplus
}
#endif

#endif
