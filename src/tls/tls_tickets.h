/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of session tickets, as tls/openssl/tickets.c uses them.
 */
#ifndef WEIR_TLS_TLS_TICKETS_H
#define WEIR_TLS_TLS_TICKETS_H

#include <weir/clock.h>
#include <weir/tls_context.h>

#define WEIR__TLS_TICKET_NAME_SIZE 16

/* A copy of a key, to be wiped after use. */
typedef struct weir__tls_ticket_key {
    uint8_t name[WEIR__TLS_TICKET_NAME_SIZE];
    uint8_t sign[32];
    uint8_t encrypt[32];
} weir__tls_ticket_key;

_Static_assert(sizeof(weir__tls_ticket_key) == WEIR_TLS_TICKET_KEY_SIZE, "the public format");

/* As weir_tls_tickets_create, with a clock, which must outlive the tickets. */
int weir__tls_tickets_create_with(int64_t rotation_ns, weir_clock *clock,
                                  weir_tls_tickets **ret_tickets);

/* The key that encrypts new tickets; creates one if the first is due for rotation. Fails: WEIR_ETLS
 * (no random bytes). */
int weir__tls_tickets_first(weir_tls_tickets *tickets, weir__tls_ticket_key *ret_key);

/* The key of this name, and whether it is still the first. False if there is none, or it has
 * expired. */
bool weir__tls_tickets_find(weir_tls_tickets *tickets,
                            const uint8_t name[WEIR__TLS_TICKET_NAME_SIZE],
                            weir__tls_ticket_key *ret_key, bool *ret_is_first);

#endif
