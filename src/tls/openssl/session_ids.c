/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of TLS 1.2 that a server remembers, for clients that do not support tickets: they bring
 * only the id. A client that supports tickets gets one, and its session has no id. In TLS 1.3 all
 * sessions have tickets.
 *
 * OpenSSL asks the SSL_CTX that a session began with, as for tickets: so each server's has the
 * callbacks, which use the settings of the session.
 */
#include <errno.h>
#include <stdio.h>

#include "tls/openssl/session.h"

#define DEFAULT_CAPACITY 1024
#define KEY_SIZE (2 * SSL_MAX_SSL_SESSION_ID_LENGTH + 1)

static void write_key(const unsigned char *id, size_t length, char ret_key[KEY_SIZE])
{
    ret_key[0] = '\0';
    for (size_t i = 0; i < length && i < SSL_MAX_SSL_SESSION_ID_LENGTH; i++)
        (void)snprintf(ret_key + 2 * i, 3, "%02x", id[i]);
}

/* Returns 1 if the session was taken. */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
    weir__openssl_sessions *sessions = weir__openssl_session_of(ssl)->settings->sessions;
    char key[KEY_SIZE];
    unsigned length;
    const unsigned char *id = SSL_SESSION_get_id(session, &length);

    if (sessions == NULL || length == 0 || SSL_version(ssl) >= TLS1_3_VERSION ||
        SSL_SESSION_is_resumable(session) != 1 || !weir__openssl_age_begin(session))
        return 0;
    write_key(id, length, key);
    return weir__openssl_sessions_add(sessions, key, session);
}

/* A session whose connection has failed OpenSSL marks itself, and ignores it here. */
static SSL_SESSION *on_lookup(SSL *ssl, const unsigned char *id, int length, int *ret_copies)
{
    weir__openssl_sessions *sessions = weir__openssl_session_of(ssl)->settings->sessions;
    SSL_SESSION *session;
    char key[KEY_SIZE];

    *ret_copies = 0; /* the reference is OpenSSL's */
    if (sessions == NULL)
        return NULL;
    write_key(id, (size_t)length, key);
    session = weir__openssl_sessions_take(sessions, key);
    if (session != NULL && weir__openssl_can_resume(ssl, session))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

int weir__openssl_session_ids_prepare(weir__openssl_making *making)
{
    const weir_tls_context_options *options = making->options;
    weir__tls_settings *settings = making->settings;
    size_t capacity = options->session_cache > 0 ? options->session_cache : DEFAULT_CAPACITY;

    SSL_CTX_sess_set_new_cb(settings->ctx, on_new_session);
    SSL_CTX_sess_set_get_cb(settings->ctx, on_lookup);
    if (settings->tickets == NULL || options->no_session_ids)
        return 0;
    settings->sessions = weir__openssl_sessions_create(capacity);
    if (settings->sessions == NULL)
        return -ENOMEM;
    (void)SSL_CTX_set_session_cache_mode(settings->ctx,
                                         SSL_SESS_CACHE_SERVER | SSL_SESS_CACHE_NO_INTERNAL);
    return 0;
}

/* Unless their number changes. The settings are not used yet. */
void weir__openssl_settings_inherit(weir__tls_settings *settings, weir__tls_settings *former)
{
    if (!settings->is_server || settings->sessions == NULL || former->sessions == NULL ||
        weir__openssl_sessions_capacity(settings->sessions) !=
            weir__openssl_sessions_capacity(former->sessions))
        return;
    weir__openssl_sessions_release(settings->sessions);
    settings->sessions = weir__openssl_sessions_retain(former->sessions);
}
