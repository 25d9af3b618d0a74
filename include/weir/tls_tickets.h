/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls_tickets.h - the keys of session tickets: with them a client that comes back proves that
 * it was here, and both save the expensive part of the handshake.
 *
 * A server's context has keys of its own unless it is given some. Servers that share their clients
 * share their keys: the first of them makes new tickets, all of them open old ones.
 */
#ifndef WEIR_TLS_TICKETS_H
#define WEIR_TLS_TICKETS_H

#include <weir/tls_context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of one key: 16 name, 32 to sign, 32 to encrypt. */
#define WEIR_TLS_TICKET_KEY_SIZE 80
/* How many are kept at the most. */
#define WEIR_TLS_TICKET_KEYS_MAX 8

/*
 * Makes keys: one that is random, and a new one every `rotation_ns` (0 = 12 hours, WEIR_OFF =
 * never), while the former ones still open what they have made for as long again.
 * Thread: any.  Gives: tickets.  Fails: -ENOMEM, -EINVAL, WEIR_ETLS (no random numbers).
 */
WEIR_API int weir_tls_tickets_create(int64_t rotation_ns, weir_tls_tickets **ret_tickets);

/*
 * Keeps the keys.
 * Thread: any.
 */
WEIR_API weir_tls_tickets *weir_tls_tickets_retain(weir_tls_tickets *tickets);

/*
 * Gives a reference back; NULL is fine. Keys are wiped with the last.
 * Thread: any.  Takes: tickets.
 */
WEIR_API void weir_tls_tickets_release(weir_tls_tickets *tickets);

/*
 * A new random key becomes the first, now; the oldest is forgotten if there are too many.
 * Thread: any.  Fails: WEIR_ETLS (no random numbers).
 */
WEIR_API int weir_tls_tickets_rotate(weir_tls_tickets *tickets);

/*
 * These keys, each of WEIR_TLS_TICKET_KEY_SIZE bytes, in the place of all others. They do not
 * change by themselves any more.
 * Thread: any.  Fails: -EINVAL (none, or more than WEIR_TLS_TICKET_KEYS_MAX).
 */
WEIR_API int weir_tls_tickets_set(weir_tls_tickets *tickets, const uint8_t *keys, size_t count);

#ifdef __cplusplus
}
#endif

#endif
