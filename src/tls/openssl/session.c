/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session on OpenSSL: a SSL whose bytes come from the buffers of the call that is being made.
 *
 * Records are read one by one (no read-ahead), so what is behind the handshake, or behind the end
 * of TLS, stays where it was. OpenSSL's buffers, 16 KiB each way, are given back whenever they are
 * empty (SSL_MODE_RELEASE_BUFFERS): an idle session has none.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include <weir/memory.h>

#include "base/no_stack_protector.h"
#include "tls/openssl/session.h"

static weir__openssl_session *session_of(weir__tls_session *session)
{
    return (weir__openssl_session *)(void *)session; /* it begins with one */
}

weir__openssl_session *weir__openssl_session_of(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

/* ---- OpenSSL itself ---- */

/* Counts what comes after the handshake. Records are counted first; data is taken off later. */
static void on_message(int is_written, int version, int type, const void *bytes, size_t length,
                       SSL *ssl, void *arg)
{
    weir__openssl_session *self = weir__openssl_session_of(ssl);

    (void)version;
    (void)bytes;
    (void)length;
    (void)arg;
    if (is_written != 0 || self == NULL || !self->is_over)
        return;
    if (type == SSL3_RT_HEADER)
        self->useless++;
    else if (type == SSL3_RT_HANDSHAKE)
        self->useless += WEIR__OPENSSL_MESSAGE_COST - 1;
}

/*
 * Not to be torn down by exit: threads may still be at work then, which it does not wait for. The
 * memory that it keeps until then the system takes back. Threads that end before tidy up after
 * themselves, by a thread key of OpenSSL's own.
 */
int weir__openssl_start(void)
{
    char words[WEIR__TLS_REASON_SIZE];

    return OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1 ? 0 : weir__openssl_error(words);
}

void weir__openssl_prepare(weir__tls_settings *settings)
{
    SSL_CTX *ctx = settings->ctx;

    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_read_ahead(ctx, 0);
    SSL_CTX_set_info_callback(ctx, weir__openssl_on_info);
    SSL_CTX_set_msg_callback(ctx, on_message);
    if (settings->is_server)
        weir__openssl_choice_prepare(settings);
    weir__openssl_verify_prepare(settings);
}

/* ---- life ---- */

/*
 * To OpenSSL a session whose connection goes without the end of TLS is bad, and must not be taken
 * up again, as the first versions of TLS had it. Nobody cares any more: clients just leave. One
 * that has failed stays bad.
 */
static void session_release(weir__tls_session *session)
{
    weir__openssl_session *self = session_of(session);

    if (self->ssl != NULL && self->is_over && self->failed == 0)
        SSL_set_shutdown(self->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* see above */
    SSL_free(self->ssl);
    weir__openssl_settings_release(self->settings);
    weir_memory_free(self->cache_key);
    weir_memory_free(self->wanted);
    weir_memory_free(self->words);
    weir_memory_free(self->refusal);
    weir_memory_free(self->wish);
    weir_memory_free(self);
}

static int make_ssl(weir__openssl_session *self)
{
    BIO *bio;

    ERR_clear_error();
    self->ssl = SSL_new(self->settings->ctx);
    if (self->ssl == NULL)
        return weir__openssl_session_error(self);
    bio = weir__openssl_bio_create(self);
    if (bio == NULL || SSL_set_app_data(self->ssl, self) != 1) {
        BIO_free(bio);
        return -ENOMEM;
    }
    SSL_set_bio(self->ssl, bio, bio);
    return 0;
}

static int become_server(weir__openssl_session *self, const weir__tls_peer *peer)
{
    SSL_set_accept_state(self->ssl);
    self->choice = peer->asks ? WEIR__OPENSSL_CHOICE_ASKS : WEIR__OPENSSL_CHOICE_NONE;
    return 0;
}

/* What is taken up again is not verified again: so whom it was verified for belongs to the key. */
static int set_cache_key(weir__openssl_session *self, const weir__tls_peer *peer)
{
    const char *name = peer->server_name != NULL ? peer->server_name : "";
    size_t size = strlen(name) + 1 + strlen(peer->cache_key) + 1;

    self->cache_key = weir_memory_alloc(size);
    if (self->cache_key == NULL)
        return -ENOMEM;
    (void)snprintf(self->cache_key, size, "%s\n%s", name, peer->cache_key);
    return 0;
}

static int become_client(weir__openssl_session *self, const weir__tls_peer *peer)
{
    int err = 0;

    SSL_set_connect_state(self->ssl);
    if (peer->server_name != NULL)
        err = weir__openssl_verify_server(self, peer->server_name);
    if (err == 0 && peer->cache_key != NULL)
        err = set_cache_key(self, peer);
    if (err == 0)
        weir__openssl_sessions_resume(self);
    return err;
}

static int session_create(weir__tls_settings *settings, const weir__tls_peer *peer,
                          weir__tls_session **ret_session)
{
    weir__openssl_session *self = weir_memory_alloc(sizeof(*self));
    int err;

    if (self == NULL)
        return -ENOMEM;
    *self = (weir__openssl_session){
        .session.engine = &weir__tls_openssl,
        .settings = weir__openssl_settings_retain(settings),
        .alert_sent = WEIR__OPENSSL_NO_ALERT,
    };
    err = make_ssl(self);
    if (err == 0)
        err = settings->is_server ? become_server(self, peer) : become_client(self, peer);
    if (err == 0)
        *ret_session = &self->session;
    else
        session_release(&self->session);
    return err;
}

/* ---- calls ---- */

/* From here until `leave`, OpenSSL reads and writes these. To clear an empty queue takes longer
 * than to see that it is. */
static void enter(weir__openssl_session *self, weir__tls_io *io)
{
    self->io = io;
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

static int leave(weir__openssl_session *self, int result)
{
    self->io = NULL;
    return result;
}

/*
 * SSL_MODE_RELEASE_BUFFERS leaves a buffer to write behind when messages of the handshake have
 * come, tickets say. OpenSSL before 3.0.14 would free one here that has half a record in it
 * (CVE-2024-4741), so this is for the time between records.
 */
static void release_buffers(weir__openssl_session *self)
{
    if (self->is_between && SSL_has_pending(self->ssl) == 0)
        (void)SSL_free_buffers(self->ssl);
}

/* What a call of OpenSSL's that did not succeed means. */
static int judge(weir__openssl_session *self, int result)
{
    switch (SSL_get_error(self->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return WEIR__TLS_MORE;
    case SSL_ERROR_WANT_CLIENT_HELLO_CB:
        return WEIR__TLS_CHOOSE;
    case SSL_ERROR_ZERO_RETURN:
        return WEIR__TLS_ENDED;
    default:
        return weir__openssl_session_error(self);
    }
}

static int finish(weir__openssl_session *self)
{
    if (!weir__openssl_verify_has_peer(self))
        return weir__openssl_session_fail(self, WEIR_EUNTRUSTED,
                                          "the peer has not shown a certificate");
    self->is_over = self->is_between = true;
    weir_memory_free(self->wanted);
    weir_memory_free(self->wish);
    self->wanted = NULL;
    self->wish = NULL;
    weir__openssl_sessions_keep_renewed(self);
    release_buffers(self);
    return WEIR__TLS_DONE;
}

static int handshake(weir__tls_session *session, weir__tls_io *io)
{
    weir__openssl_session *self = session_of(session);
    int result;

    if (self->failed < 0)
        return self->failed;
    enter(self, io);
    result = SSL_do_handshake(self->ssl);
    if (result == 1)
        return leave(self, finish(self));
    result = judge(self, result);
    if (result == WEIR__TLS_ENDED)
        result = weir__openssl_session_fail(self, WEIR_ETLSREFUSED,
                                            "the peer has ended TLS before it had begun");
    return leave(self, result);
}

/* Whether there is nothing that a call of OpenSSL's could make something of. */
static bool is_dry(const weir__openssl_session *self, const weir_buf *in)
{
    return (in == NULL || weir_buf_readable(in) == 0) && SSL_pending(self->ssl) == 0 &&
           (SSL_get_shutdown(self->ssl) & SSL_RECEIVED_SHUTDOWN) == 0;
}

/*
 * The peer sends records that carry no data, and too many of them. OpenSSL has no call that sends
 * an alert: TLS 1.3 gets one (unexpected_message) by a record of an invalid type. TLS 1.2 would
 * take that for a damaged record; there the connection ends without an alert.
 */
static int refuse_flood(weir__openssl_session *self)
{
    uint8_t nothing;
    size_t length;

    if (SSL_version(self->ssl) >= TLS1_3_VERSION) {
        self->is_refusing = true;
        (void)SSL_read_ex(self->ssl, &nothing, sizeof(nothing), &length);
        ERR_clear_error();
    }
    return weir__openssl_session_fail(self, WEIR_ETLS, "we refused: too many records without data");
}

static void count_data(weir__openssl_session *self)
{
    const uint32_t credit = WEIR__OPENSSL_DATA_CREDIT + 1; /* 1 for the record itself */

    self->useless -= self->useless < credit ? self->useless : credit;
}

/* What a read of OpenSSL's that brought no data means. */
static int judge_open(weir__openssl_session *self, int result)
{
    result = judge(self, result);
    self->session.is_blocked = self->failed == 0 && SSL_in_init(self->ssl) != 0;
    if (result == WEIR__TLS_MORE && self->useless > WEIR__OPENSSL_USELESS_MAX)
        return refuse_flood(self);
    return result;
}

/*
 * As much as fits, and is there. What ended it is told by the next call if some bytes were. OpenSSL
 * is not asked to find out that nothing is left: this costs it nearly as much as a short record.
 */
WEIR__NO_STACK_PROTECTOR static int open_records(weir__openssl_session *self, weir_buf *plain)
{
    bool has_some = false;
    size_t length;
    int result;

    while (weir_buf_writable(plain) > 0 && !is_dry(self, self->io->in)) {
        result = SSL_read_ex(self->ssl, weir_buf_space(plain), weir_buf_writable(plain), &length);
        if (result != 1) {
            result = judge_open(self, result);
            return has_some ? WEIR__TLS_DONE : result;
        }
        self->session.is_blocked = false;
        count_data(self);
        (void)weir_buf_advance(plain, length); /* cannot fail: there was room */
        self->is_between = true; /* if nothing of this one is left, as it never reads ahead */
        has_some = true;
    }
    return has_some ? WEIR__TLS_DONE : WEIR__TLS_MORE;
}

/* Whether exactly one record is there, from its beginning to its end: the usual case. */
static bool is_one_record(const weir__openssl_session *self, const weir_buf *in)
{
    const uint8_t *header = in != NULL ? weir_buf_bytes(in) : NULL;
    size_t length = in != NULL ? weir_buf_readable(in) : 0;

    return self->is_between && length > SSL3_RT_HEADER_LENGTH &&
           length == (size_t)SSL3_RT_HEADER_LENGTH + (size_t)(header[3] << 8 | header[4]);
}

/* One buffer for all records of the call, and none that stays. */
static int open_several(weir__openssl_session *self, weir_buf *plain)
{
    int result;

    SSL_clear_mode(self->ssl, SSL_MODE_RELEASE_BUFFERS);
    result = open_records(self, plain);
    SSL_set_mode(self->ssl, SSL_MODE_RELEASE_BUFFERS);
    release_buffers(self);
    return result;
}

/* OpenSSL releases the buffer itself, unless it was no record of plain bytes. */
static int open_one(weir__openssl_session *self, weir_buf *plain)
{
    int result = open_records(self, plain);

    if (result != WEIR__TLS_DONE)
        release_buffers(self);
    return result;
}

static int open_some(weir__tls_session *session, weir__tls_io *io, weir_buf *plain)
{
    weir__openssl_session *self = session_of(session);

    assert(self->is_over && weir_buf_writable(plain) > 0);
    if (self->failed < 0)
        return self->failed;
    if (is_dry(self, io->in))
        return WEIR__TLS_MORE;
    enter(self, io);
    return leave(self, (is_one_record(self, io->in) ? open_one : open_several)(self, plain));
}

static bool is_amid_record(const weir__tls_session *session)
{
    return SSL_has_pending(((const weir__openssl_session *)(const void *)session)->ssl) == 1;
}

WEIR__NO_STACK_PROTECTOR static int seal(weir__tls_session *session, weir__tls_io *io,
                                         const uint8_t *plain, size_t length)
{
    weir__openssl_session *self = session_of(session);
    size_t taken;
    int result;

    assert(self->is_over && length > 0);
    assert(!session->is_blocked); /* OpenSSL would want to read first */
    if (self->failed < 0)
        return self->failed;
    enter(self, io);
    result = SSL_write_ex(self->ssl, plain, length, &taken);
    return leave(self, result == 1 ? 0 : weir__openssl_session_error(self));
}

static void end(weir__tls_session *session, weir__tls_io *io)
{
    weir__openssl_session *self = session_of(session);

    if (!self->is_over || self->is_ended || self->failed < 0)
        return;
    self->is_ended = true;
    enter(self, io);
    (void)SSL_shutdown(self->ssl); /* if it cannot be told, the peer sees the stream end */
    (void)leave(self, 0);
}

/* ---- what was agreed upon ---- */

static void read_alpn(const SSL *ssl, char *ret_alpn, size_t size)
{
    const unsigned char *protocol;
    unsigned length;

    SSL_get0_alpn_selected(ssl, &protocol, &length);
    assert(length < size);
    (void)size;
    if (length > 0)
        memcpy(ret_alpn, protocol, length);
    ret_alpn[length] = '\0';
}

/* In lower case, without the dot at its end: as who chooses by it hears it. */
static void read_server_name(const SSL *ssl, char *ret_name, size_t size)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    size_t length;

    (void)snprintf(ret_name, size, "%s", name != NULL ? name : "");
    length = strlen(ret_name);
    if (length > 1 && ret_name[length - 1] == '.')
        ret_name[length - 1] = '\0';
    for (char *c = ret_name; *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
}

static void facts(weir__tls_session *session, weir__tls_facts *ret_facts)
{
    SSL *ssl = session_of(session)->ssl;
    unsigned char *response;

    ret_facts->version = SSL_get_version(ssl);
    ret_facts->cipher = SSL_get_cipher_name(ssl);
    read_alpn(ssl, ret_facts->alpn, sizeof(ret_facts->alpn));
    read_server_name(ssl, ret_facts->server_name, sizeof(ret_facts->server_name));
    ret_facts->is_resumed = SSL_session_reused(ssl) != 0;
    ret_facts->is_stapled =
        SSL_is_server(ssl) == 0 && SSL_get_tlsext_status_ocsp_resp(ssl, &response) > 0;
}

static int peer_certificate(weir__tls_session *session, weir_tls_certificate **ret_certificate)
{
    X509 *x509 = SSL_get0_peer_certificate(session_of(session)->ssl);

    if (x509 != NULL)
        return weir__openssl_certificate_create(x509, ret_certificate);
    *ret_certificate = NULL;
    return 0;
}

static bool settings_verify_names(const weir__tls_settings *settings)
{
    return !settings->is_server && settings->verify != WEIR_TLS_VERIFY_NONE &&
           settings->verify != WEIR_TLS_VERIFY_PINS;
}

const weir__tls_engine weir__tls_openssl = {
    .name = "OpenSSL",
    .random = weir__openssl_random,
    .settings_create = weir__openssl_settings_create,
    .settings_retain = weir__openssl_settings_retain,
    .settings_release = weir__openssl_settings_release,
    .settings_inherit = weir__openssl_settings_inherit,
    .settings_certificate = weir__openssl_settings_certificate,
    .settings_verify_names = settings_verify_names,
    .session_create = session_create,
    .session_release = session_release,
    .handshake = handshake,
    .wish = weir__openssl_wish,
    .choose = weir__openssl_choose,
    .open = open_some,
    .is_amid_record = is_amid_record,
    .seal = seal,
    .end = end,
    .facts = facts,
    .peer_certificate = peer_certificate,
    .certificate_parse = weir__openssl_certificate_parse,
};
