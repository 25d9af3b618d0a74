/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/datagram.h - a message with addresses: what datagram channels (UDP, Unix sockets) read, and
 * what they write.
 *
 *      static void on_read(weir_ctx *ctx, weir_msg *msg)       an echo server
 *      {
 *          weir_datagram_make_reply(weir_datagram_of(msg));
 *          weir_write(ctx, msg, NULL);
 *      }
 *
 * What is read has a sender, and a buffer of its bytes, of which there may be none. What is written
 * has a recipient, unless the channel is connected: there a plain buffer or composite will do, and
 * is one datagram each.
 *
 * A datagram with a segment size is sent as several, each of so many bytes but for the last: by one
 * system call, and in one piece as far as the system and its devices can (GSO).
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
 * What a message's type is if it is a datagram: weir_datagram_of asks.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_datagram_type;

/*
 * Makes a datagram of a buffer's or a composite's readable bytes, or of descriptors for a Unix
 * socket; NULL content: of nothing. NULL recipient: the peer that the channel is connected to.
 * Thread: any.  Takes: content.  Gives: datagram.  Fails: -ENOMEM, -EINVAL (none of those).
 */
WEIR_API int weir_datagram_create(weir_msg *content, const weir_address *recipient,
                                  weir_datagram **ret_datagram);

/*
 * The datagram that a message is, or NULL if it is something else.
 * Thread: any.
 */
static inline weir_datagram *weir_datagram_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_datagram_type) ? (weir_datagram *)(void *)msg
                                                                : NULL;
}

/*
 * The datagram as the message that it is.
 * Thread: any.
 */
static inline weir_msg *weir_datagram_msg(weir_datagram *datagram)
{
    return (weir_msg *)(void *)datagram; /* it begins with one */
}

/*
 * Takes one more reference.
 * Thread: any.
 */
static inline weir_datagram *weir_datagram_retain(weir_datagram *datagram)
{
    weir_msg_retain(weir_datagram_msg(datagram));
    return datagram;
}

/*
 * Gives a reference back; NULL is fine.
 * Thread: any.  Takes: datagram.
 */
static inline void weir_datagram_release(weir_datagram *datagram)
{
    if (datagram != NULL)
        weir_msg_release(weir_datagram_msg(datagram));
}

/*
 * Its bytes, borrowed: a buffer if it was received, or weir_descriptors if such have come;
 * otherwise what it was made of. NULL if there is nothing, or it was taken.
 * Thread: its holder's.
 */
WEIR_API weir_msg *weir_datagram_content(const weir_datagram *datagram);

/*
 * The same as a buffer; NULL if it is none.
 * Thread: its holder's.
 */
static inline weir_buf *weir_datagram_buf(const weir_datagram *datagram)
{
    return weir_buf_of(weir_datagram_content(datagram));
}

/*
 * Takes the bytes out: they are the caller's.
 * Thread: its holder's.  Gives: content.
 */
WEIR_API weir_msg *weir_datagram_take_content(weir_datagram *datagram);

/*
 * Who has sent it, and whom it is for: of a received one the address that the channel is bound to,
 * or with packet_info of weir_channel_options that which it was really sent to. An address of
 * length 0 is none. Borrowed.
 * Thread: its holder's.
 */
WEIR_API const weir_address *weir_datagram_sender(const weir_datagram *datagram);
WEIR_API const weir_address *weir_datagram_recipient(const weir_datagram *datagram);

/*
 * Changes whom it is for; NULL: the peer that the channel is connected to.
 * Thread: its holder's.
 */
WEIR_API void weir_datagram_set_recipient(weir_datagram *datagram, const weir_address *recipient);

/*
 * Says which of this host's addresses it is sent from, for UDP channels that are bound to any; the
 * port is the channel's. NULL, or any address: the system chooses, by where it goes.
 * Thread: its holder's.
 */
WEIR_API void weir_datagram_set_sender(weir_datagram *datagram, const weir_address *sender);

/*
 * Addresses it to who has sent it: a reply. If it is known at which address of this host it has
 * come, by packet_info of weir_channel_options, the reply is sent from there.
 * Thread: its holder's.
 */
WEIR_API void weir_datagram_make_reply(weir_datagram *datagram);

/*
 * Of how many bytes the datagrams are that it is sent as; 0: it is one.
 * Thread: its holder's.
 */
WEIR_API uint16_t weir_datagram_segment_size(const weir_datagram *datagram);
WEIR_API void weir_datagram_set_segment_size(weir_datagram *datagram, uint16_t size);

#ifdef __cplusplus
}
#endif

#endif
