/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sessions are resumed, and for how long.
 *
 *      client             caches its sessions by server name
 *      server, TLS 1.3    sends tickets (tickets.c)
 *      server, TLS 1.2    sends a ticket; for clients without tickets it caches the session by id
 *
 * A resumed session is not verified again, and to OpenSSL a session is new with each ticket of TLS
 * 1.3: it could be resumed for ever, whatever became of the certificate (RFC 8446, 4.6.1). So each
 * session carries the time of its full handshake; a server's carries it within the ticket.
 *
 * OpenSSL calls the callbacks of the SSL_CTX that a session began with. So every server's has them,
 * and they use the session's current context.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "tls/openssl/internal.h"

#define CLIENT_CAPACITY 256
#define SERVER_CAPACITY 1024
#define DEFAULT_LIFETIME_NS weir_seconds(2 * 3600)
#define LIFETIME_MAX_S (7L * 24 * 3600) /* the longest that TLS 1.3 allows */
#define ID_KEY_SIZE (2 * SSL_MAX_SSL_SESSION_ID_LENGTH + 1)

/* ---- age ---- */

static int64_t now_s(void)
{
    return weir_time_of_day() / 1000000000;
}

/* False if the session has no stamp. */
static bool read_stamp(SSL_SESSION *session, int64_t *ret_verified_s)
{
    void *data;
    size_t length;

    if (SSL_SESSION_get0_ticket_appdata(session, &data, &length) != 1 ||
        length != sizeof(*ret_verified_s))
        return false;
    memcpy(ret_verified_s, data, sizeof(*ret_verified_s));
    return true;
}

bool weir__openssl_resumption_stamp(SSL_SESSION *session)
{
    int64_t verified_s;

    if (read_stamp(session, &verified_s))
        return true;
    verified_s = now_s();
    return SSL_SESSION_set1_ticket_appdata(session, &verified_s, sizeof(verified_s)) == 1;
}

/* A stamp far in the future is from a clock that was wrong: it makes the session no younger. */
bool weir__openssl_resumption_is_expired(SSL_SESSION *session, int64_t lifetime_s)
{
    int64_t verified_s, age_s;

    if (!read_stamp(session, &verified_s))
        verified_s = weir__openssl_session_time(session);
    age_s = now_s() - verified_s;
    return age_s >= lifetime_s || age_s <= -lifetime_s;
}

/* The lifetime is that of the chosen context. The name must be the one that the session was made
 * for: another may be another server here (RFC 6066, 3). */
bool weir__openssl_resumption_is_allowed(SSL *ssl, SSL_SESSION *session)
{
    const weir__openssl_context *context = weir__openssl_session_of(ssl)->context;
    const char *name = SSL_SESSION_get0_hostname(session);

    return !weir__openssl_resumption_is_expired(session, SSL_CTX_get_timeout(context->ctx)) &&
           weir__openssl_client_hello_has_name(ssl, name != NULL ? name : "");
}

/* ---- client ---- */

/* OpenSSL reports a session once it can be resumed: the peer has been verified by then. */
static int on_client_session(SSL *ssl, SSL_SESSION *session)
{
    weir__openssl_session *self = weir__openssl_session_of(ssl);

    return self->cache_key != NULL && SSL_SESSION_is_resumable(session) == 1 &&
           weir__openssl_resumption_stamp(session) &&
           weir__openssl_session_cache_add(self->context->sessions, self->cache_key, session);
}

/* Without a cached session, or if it cannot be used, the handshake is a full one. */
void weir__openssl_resumption_begin(weir__openssl_session *self)
{
    SSL_SESSION *session;

    if (self->context->sessions == NULL || self->cache_key == NULL)
        return;
    session = weir__openssl_session_cache_take(self->context->sessions, self->cache_key);
    if (session == NULL)
        return;
    (void)SSL_set_session(self->ssl, session);
    SSL_SESSION_free(session);
}

/* OpenSSL does not report a resumed session of TLS 1.2 that got a new ticket. */
void weir__openssl_resumption_store_renewed(weir__openssl_session *self)
{
    SSL_SESSION *session;

    if (self->context->sessions == NULL || self->cache_key == NULL ||
        SSL_session_reused(self->ssl) == 0 || SSL_version(self->ssl) >= TLS1_3_VERSION)
        return;
    session = SSL_get1_session(self->ssl);
    if (session != NULL && on_client_session(self->ssl, session) == 0)
        SSL_SESSION_free(session);
}

/* ---- server, by id ---- */

static void write_id_key(const unsigned char *id, size_t length, char ret_key[ID_KEY_SIZE])
{
    ret_key[0] = '\0';
    for (size_t i = 0; i < length && i < SSL_MAX_SSL_SESSION_ID_LENGTH; i++)
        (void)snprintf(ret_key + 2 * i, 3, "%02x", id[i]);
}

/* Returns 1 if the session was taken. One that has a ticket has no id. */
static int on_server_session(SSL *ssl, SSL_SESSION *session)
{
    weir__openssl_session_cache *sessions = weir__openssl_session_of(ssl)->context->sessions;
    char key[ID_KEY_SIZE];
    unsigned length;
    const unsigned char *id = SSL_SESSION_get_id(session, &length);

    if (sessions == NULL || length == 0 || SSL_version(ssl) >= TLS1_3_VERSION ||
        SSL_SESSION_is_resumable(session) != 1 || !weir__openssl_resumption_stamp(session))
        return 0;
    write_id_key(id, length, key);
    return weir__openssl_session_cache_add(sessions, key, session);
}

/* OpenSSL itself marks and ignores a session whose connection has failed. */
static SSL_SESSION *on_lookup(SSL *ssl, const unsigned char *id, int length, int *ret_copies)
{
    weir__openssl_session_cache *sessions = weir__openssl_session_of(ssl)->context->sessions;
    SSL_SESSION *session;
    char key[ID_KEY_SIZE];

    *ret_copies = 0; /* the reference is OpenSSL's */
    if (sessions == NULL)
        return NULL;
    write_id_key(id, (size_t)length, key);
    session = weir__openssl_session_cache_take(sessions, key);
    if (session != NULL && weir__openssl_resumption_is_allowed(ssl, session))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* Unless the capacity changes. */
void weir__openssl_context_inherit(weir__openssl_context *context, weir__openssl_context *former)
{
    if (!context->is_server || context->sessions == NULL || former->sessions == NULL ||
        weir__openssl_session_cache_capacity(context->sessions) !=
            weir__openssl_session_cache_capacity(former->sessions))
        return;
    weir__openssl_session_cache_release(context->sessions);
    context->sessions = weir__openssl_session_cache_retain(former->sessions);
}

/* ---- contexts ---- */

static long lifetime_s(const weir_tls_context_options *options)
{
    int64_t ns =
        options->session_lifetime_ns > 0 ? options->session_lifetime_ns : DEFAULT_LIFETIME_NS;
    int64_t seconds = (ns + weir_seconds(1) - 1) / weir_seconds(1);

    return seconds < LIFETIME_MAX_S ? (long)seconds : LIFETIME_MAX_S;
}

static int create_cache(weir__openssl_builder *builder, size_t default_capacity, long mode)
{
    size_t capacity = builder->options->session_cache;
    weir__openssl_context *context = builder->context;

    context->sessions =
        weir__openssl_session_cache_create(capacity > 0 ? capacity : default_capacity);
    if (context->sessions == NULL)
        return -ENOMEM;
    (void)SSL_CTX_set_session_cache_mode(context->ctx, mode | SSL_SESS_CACHE_NO_INTERNAL);
    return 0;
}

/* A server without ticket keys resumes nothing. */
int weir__openssl_resumption_prepare(weir__openssl_builder *builder)
{
    const weir_tls_context_options *options = builder->options;
    bool is_server = builder->context->is_server;
    bool is_off = options->resumption == WEIR_OFF || (is_server && options->tickets == NULL);
    SSL_CTX *ctx = builder->context->ctx;
    int err;

    (void)SSL_CTX_set_timeout(ctx, lifetime_s(options));
    if (is_off) {
        (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        (void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
        (void)SSL_CTX_set_num_tickets(ctx, 0);
    }
    if (!is_server) {
        if (is_off)
            return 0;
        SSL_CTX_sess_set_new_cb(ctx, on_client_session);
        return create_cache(builder, CLIENT_CAPACITY, SSL_SESS_CACHE_CLIENT);
    }
    err = weir__openssl_tickets_prepare(builder);
    if (err < 0)
        return err;
    SSL_CTX_sess_set_new_cb(ctx, on_server_session);
    SSL_CTX_sess_set_get_cb(ctx, on_lookup);
    if (is_off || options->session_ids == WEIR_OFF)
        return 0;
    return create_cache(builder, SERVER_CAPACITY, SSL_SESS_CACHE_SERVER);
}
