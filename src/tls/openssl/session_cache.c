/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that are remembered, to take them up again: a client's by whom they are with, and of
 * these the newest first; a server's by their id (openssl_session_ids.c).
 *
 *      buckets   by the hash of the key, the newest first
 *      by_use    all of them, that which was used least recently first: it goes when there are too
 *                many
 *
 * A ticket of TLS 1.3 is shown once, so that nobody who listens can tell two connections to be of
 * the same client: a server sends several, and a few of them are kept. A session of TLS 1.2 may be
 * used again and again.
 */
#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#include "base/list.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "tls/openssl/session.h"

#define DEFAULT_CAPACITY 256
#define BUCKETS_MAX 65536
#define PER_KEY_MAX 4

struct entry {
    weir__list by_use;
    struct entry *next; /* of its bucket */
    uint64_t hash;
    SSL_SESSION *session; /* kept */
    char key[];
};

struct weir__openssl_sessions {
    weir__refs refs;
    weir__mutex lock; /* guards: */
    weir__list by_use;
    size_t count;
    size_t capacity;
    size_t bucket_count; /* a power of two */
    struct entry *buckets[];
};

/* ---- life ---- */

weir__openssl_sessions *weir__openssl_sessions_create(size_t capacity)
{
    weir__openssl_sessions *sessions;
    size_t bucket_count = 16, size;

    while (bucket_count < capacity && bucket_count < BUCKETS_MAX)
        bucket_count *= 2;
    size = sizeof(*sessions) + bucket_count * sizeof(sessions->buckets[0]);
    sessions = weir_memory_alloc(size);
    if (sessions == NULL)
        return NULL;
    memset(sessions, 0, size);
    weir__refs_init(&sessions->refs);
    weir__mutex_init(&sessions->lock);
    weir__list_init(&sessions->by_use);
    sessions->capacity = capacity;
    sessions->bucket_count = bucket_count;
    return sessions;
}

static uint64_t hash_of(const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
    return hash;
}

static struct entry **bucket_of(weir__openssl_sessions *sessions, uint64_t hash)
{
    return &sessions->buckets[(hash ^ hash >> 32) & (sessions->bucket_count - 1)];
}

/* Takes out what a link of a bucket leads to. Its session is the caller's then. */
static SSL_SESSION *unlink_entry(weir__openssl_sessions *sessions, struct entry **link)
{
    struct entry *entry = *link;
    SSL_SESSION *session = entry->session;

    *link = entry->next;
    weir__list_remove(&entry->by_use);
    sessions->count--;
    weir_memory_free(entry);
    return session;
}

static void drop(weir__openssl_sessions *sessions, struct entry **link)
{
    SSL_SESSION_free(unlink_entry(sessions, link));
}

static void drop_least_used(weir__openssl_sessions *sessions)
{
    struct entry *entry = WEIR_CONTAINER_OF(sessions->by_use.next, struct entry, by_use);
    struct entry **link = bucket_of(sessions, entry->hash);

    while (*link != entry)
        link = &(*link)->next;
    drop(sessions, link);
}

weir__openssl_sessions *weir__openssl_sessions_retain(weir__openssl_sessions *sessions)
{
    weir__refs_retain(&sessions->refs);
    return sessions;
}

void weir__openssl_sessions_release(weir__openssl_sessions *sessions)
{
    if (sessions == NULL || !weir__refs_release(&sessions->refs))
        return;
    while (sessions->count > 0)
        drop_least_used(sessions);
    weir__mutex_deinit(&sessions->lock);
    weir_memory_free(sessions);
}

size_t weir__openssl_sessions_count(weir__openssl_sessions *sessions)
{
    size_t count;

    weir__mutex_lock(&sessions->lock);
    count = sessions->count;
    weir__mutex_unlock(&sessions->lock);
    return count;
}

size_t weir__openssl_sessions_capacity(const weir__openssl_sessions *sessions)
{
    return sessions->capacity; /* never changes */
}

/* ---- one session ---- */

/* The link to the next entry of this key, from a link of its bucket on. */
static struct entry **next_of(struct entry **link, uint64_t hash, const char *key)
{
    while (*link != NULL && ((*link)->hash != hash || strcmp((*link)->key, key) != 0))
        link = &(*link)->next;
    return link;
}

static bool is_used_once(const SSL_SESSION *session)
{
    return SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION;
}

/* By the time of day, as OpenSSL counts: for so long as we want it, and the server. */
static bool is_expired(SSL_SESSION *session)
{
    int64_t age_s = weir__realtime_now() / 1000000000 - SSL_SESSION_get_time(session);
    unsigned long hint_s = SSL_SESSION_get_ticket_lifetime_hint(session);

    return age_s >= SSL_SESSION_get_timeout(session) ||
           weir__openssl_age_exceeds(session, SSL_SESSION_get_timeout(session)) ||
           (hint_s > 0 && age_s > 0 && (uint64_t)age_s >= hint_s);
}

/* Makes room for one more of this key. */
static void drop_surplus(weir__openssl_sessions *sessions, uint64_t hash, const char *key,
                         size_t max)
{
    struct entry **link = next_of(bucket_of(sessions, hash), hash, key);
    size_t count = 0;

    while (*link != NULL) {
        if (++count < max)
            link = &(*link)->next;
        else
            drop(sessions, link);
        link = next_of(link, hash, key);
    }
}

bool weir__openssl_sessions_add(weir__openssl_sessions *sessions, const char *key,
                                SSL_SESSION *session)
{
    size_t size = strlen(key) + 1;
    struct entry *entry = weir_memory_alloc(sizeof(*entry) + size);
    struct entry **bucket;

    if (entry == NULL)
        return false; /* the next handshake is a full one */
    memcpy(entry->key, key, size);
    entry->hash = hash_of(key);
    entry->session = session;
    weir__mutex_lock(&sessions->lock);
    drop_surplus(sessions, entry->hash, key, is_used_once(session) ? PER_KEY_MAX : 1);
    if (sessions->count == sessions->capacity)
        drop_least_used(sessions);
    bucket = bucket_of(sessions, entry->hash);
    entry->next = *bucket;
    *bucket = entry;
    weir__list_append(&sessions->by_use, &entry->by_use);
    sessions->count++;
    weir__mutex_unlock(&sessions->lock);
    return true;
}

static SSL_SESSION *use(weir__openssl_sessions *sessions, struct entry **link)
{
    struct entry *entry = *link;

    if (is_used_once(entry->session))
        return unlink_entry(sessions, link);
    weir__list_remove(&entry->by_use);
    weir__list_append(&sessions->by_use, &entry->by_use);
    return SSL_SESSION_up_ref(entry->session) == 1 ? entry->session : NULL;
}

SSL_SESSION *weir__openssl_sessions_take(weir__openssl_sessions *sessions, const char *key)
{
    uint64_t hash = hash_of(key);
    SSL_SESSION *session = NULL;
    struct entry **link;

    weir__mutex_lock(&sessions->lock);
    link = next_of(bucket_of(sessions, hash), hash, key);
    while (*link != NULL && is_expired((*link)->session)) {
        drop(sessions, link);
        link = next_of(link, hash, key);
    }
    if (*link != NULL)
        session = use(sessions, link);
    weir__mutex_unlock(&sessions->lock);
    return session;
}

/* ---- of a SSL_CTX ---- */

/* OpenSSL tells of a session when it can be taken up again: the peer has been believed by then. */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
    weir__openssl_session *self = weir__openssl_session_of(ssl);

    return self->cache_key != NULL && SSL_SESSION_is_resumable(session) == 1 &&
           weir__openssl_age_begin(session) &&
           weir__openssl_sessions_add(self->settings->sessions, self->cache_key, session);
}

int weir__openssl_sessions_prepare(weir__openssl_making *making)
{
    size_t capacity = making->options->session_cache;
    weir__tls_settings *settings = making->settings;

    settings->sessions = weir__openssl_sessions_create(capacity > 0 ? capacity : DEFAULT_CAPACITY);
    if (settings->sessions == NULL)
        return -ENOMEM;
    (void)SSL_CTX_set_session_cache_mode(settings->ctx,
                                         SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(settings->ctx, on_new_session);
    return 0;
}

/* Without one, or if it cannot be used, the handshake is a full one. */
void weir__openssl_sessions_resume(weir__openssl_session *self)
{
    SSL_SESSION *session;

    if (self->settings->sessions == NULL || self->cache_key == NULL)
        return;
    session = weir__openssl_sessions_take(self->settings->sessions, self->cache_key);
    if (session == NULL)
        return;
    (void)SSL_set_session(self->ssl, session);
    SSL_SESSION_free(session);
}

/* Of a session of TLS 1.2 that was taken up, and got a new ticket, OpenSSL does not tell. */
void weir__openssl_sessions_keep_renewed(weir__openssl_session *self)
{
    SSL_SESSION *session;

    if (self->settings->sessions == NULL || self->cache_key == NULL ||
        SSL_session_reused(self->ssl) == 0 || SSL_version(self->ssl) >= TLS1_3_VERSION)
        return;
    session = SSL_get1_session(self->ssl);
    if (session != NULL && on_new_session(self->ssl, session) == 0)
        SSL_SESSION_free(session);
}
