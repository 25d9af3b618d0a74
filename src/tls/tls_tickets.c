/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest key is the first. There is no timer: each use checks the age of the keys.
 *
 *      age of a key     0 ................... rotation ................ 2 x rotation
 *                       encrypts, decrypts    decrypts old tickets      is wiped
 */
#include "tls/tls_tickets.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "base/refcount.h"
#include "os/mutex.h"
#include "tls/openssl/openssl.h"
#include "tls/tls_reason.h"

#define DEFAULT_ROTATION_NS weir_seconds(12 * 3600)

struct key {
    weir__tls_ticket_key bytes;
    int64_t created_ns;
};

struct weir_tls_tickets {
    weir__refs refs;
    weir_clock *clock;
    weir__mutex lock;    /* guards: */
    int64_t rotation_ns; /* WEIR_NEVER = no rotation */
    size_t count;        /* at least 1 */
    struct key keys[WEIR_TLS_TICKET_KEYS_MAX];
};

static int64_t now_of(const weir_tls_tickets *tickets)
{
    return tickets->clock->now(tickets->clock);
}

static void wipe_from(weir_tls_tickets *tickets, size_t index)
{
    explicit_bzero(&tickets->keys[index],
                   (WEIR_TLS_TICKET_KEYS_MAX - index) * sizeof(tickets->keys[0]));
    tickets->count = index;
}

/* True if a key is at least `rotations` rotations old. */
static bool is_older(const weir_tls_tickets *tickets, const struct key *key, int64_t rotations,
                     int64_t now_ns)
{
    return tickets->rotation_ns != WEIR_NEVER &&
           (now_ns - key->created_ns) / rotations >= tickets->rotation_ns;
}

static void wipe_expired(weir_tls_tickets *tickets, int64_t now_ns)
{
    size_t count = tickets->count;

    while (count > 0 && is_older(tickets, &tickets->keys[count - 1], 2, now_ns))
        count--;
    wipe_from(tickets, count);
}

/* Holds the lock. On failure nothing changes. */
static int add_key(weir_tls_tickets *tickets, int64_t now_ns)
{
    struct key key = {.created_ns = now_ns};
    int err = weir__openssl_random_bytes((uint8_t *)&key.bytes, sizeof(key.bytes));

    if (err < 0)
        return err;
    if (tickets->count == WEIR_TLS_TICKET_KEYS_MAX)
        wipe_from(tickets, WEIR_TLS_TICKET_KEYS_MAX - 1);
    memmove(&tickets->keys[1], &tickets->keys[0], tickets->count * sizeof(key));
    tickets->keys[0] = key;
    tickets->count++;
    explicit_bzero(&key, sizeof(key));
    return 0;
}

/* ---- lifecycle ---- */

int weir__tls_tickets_create_with(int64_t rotation_ns, weir_clock *clock,
                                  weir_tls_tickets **ret_tickets)
{
    weir_tls_tickets *tickets;
    int err;

    if (rotation_ns < 0 && rotation_ns != WEIR_OFF)
        return weir__tls_fail(-EINVAL, "rotation_ns is negative");
    tickets = weir_memory_alloc(sizeof(*tickets));
    if (tickets == NULL)
        return weir__tls_fail(-ENOMEM, "%s", weir_error_text(-ENOMEM));
    memset(tickets, 0, sizeof(*tickets));
    weir__refs_init(&tickets->refs);
    weir__mutex_init(&tickets->lock);
    tickets->clock = clock;
    tickets->rotation_ns = rotation_ns == 0          ? DEFAULT_ROTATION_NS
                           : rotation_ns == WEIR_OFF ? WEIR_NEVER
                                                     : rotation_ns;
    err = add_key(tickets, now_of(tickets));
    if (err < 0) {
        weir_tls_tickets_release(tickets);
        return weir__tls_fail(err, "no random bytes for a ticket key");
    }
    *ret_tickets = tickets;
    return 0;
}

int weir_tls_tickets_create(int64_t rotation_ns, weir_tls_tickets **ret_tickets)
{
    return weir__tls_tickets_create_with(rotation_ns, weir_clock_monotonic(), ret_tickets);
}

weir_tls_tickets *weir_tls_tickets_retain(weir_tls_tickets *tickets)
{
    weir__refs_retain(&tickets->refs);
    return tickets;
}

void weir_tls_tickets_release(weir_tls_tickets *tickets)
{
    if (tickets == NULL || !weir__refs_release(&tickets->refs))
        return;
    wipe_from(tickets, 0);
    weir__mutex_deinit(&tickets->lock);
    weir_memory_free(tickets);
}

/* ---- replacing keys ---- */

int weir_tls_tickets_rotate(weir_tls_tickets *tickets)
{
    int err;

    weir__mutex_lock(&tickets->lock);
    err = add_key(tickets, now_of(tickets));
    weir__mutex_unlock(&tickets->lock);
    return err < 0 ? weir__tls_fail(err, "no random bytes for a ticket key") : 0;
}

int weir_tls_tickets_set(weir_tls_tickets *tickets, const uint8_t *keys, size_t count)
{
    if (count == 0 || count > WEIR_TLS_TICKET_KEYS_MAX)
        return weir__tls_fail(-EINVAL, "the number of ticket keys must be 1 to %d",
                              WEIR_TLS_TICKET_KEYS_MAX);
    weir__mutex_lock(&tickets->lock);
    wipe_from(tickets, 0);
    tickets->rotation_ns = WEIR_NEVER;
    for (; tickets->count < count; tickets->count++)
        memcpy(&tickets->keys[tickets->count].bytes,
               keys + tickets->count * WEIR_TLS_TICKET_KEY_SIZE, WEIR_TLS_TICKET_KEY_SIZE);
    weir__mutex_unlock(&tickets->lock);
    return 0;
}

/* ---- using keys ---- */

int weir__tls_tickets_first(weir_tls_tickets *tickets, weir__tls_ticket_key *ret_key)
{
    int64_t now_ns;
    int err = 0;

    weir__mutex_lock(&tickets->lock);
    now_ns = now_of(tickets);
    if (is_older(tickets, &tickets->keys[0], 1, now_ns))
        err = add_key(tickets, now_ns);
    if (err == 0) {
        wipe_expired(tickets, now_ns);
        *ret_key = tickets->keys[0].bytes;
    }
    weir__mutex_unlock(&tickets->lock);
    return err;
}

bool weir__tls_tickets_find(weir_tls_tickets *tickets,
                            const uint8_t name[WEIR__TLS_TICKET_NAME_SIZE],
                            weir__tls_ticket_key *ret_key, bool *ret_is_first)
{
    const struct key *key;
    bool found = false;
    int64_t now_ns;

    weir__mutex_lock(&tickets->lock);
    now_ns = now_of(tickets);
    for (size_t i = 0; i < tickets->count && !found; i++) {
        key = &tickets->keys[i];
        found = memcmp(key->bytes.name, name, sizeof(key->bytes.name)) == 0 &&
                !is_older(tickets, key, 2, now_ns);
        if (found) {
            *ret_key = key->bytes;
            *ret_is_first = i == 0 && !is_older(tickets, key, 1, now_ns);
        }
    }
    weir__mutex_unlock(&tickets->lock);
    return found;
}
