/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: an SSL whose bytes come from the buffers of the call in progress.
 *
 * Records are read one by one (no read-ahead), so bytes behind the handshake, or behind the peer's
 * close_notify, stay in the caller's buffer. OpenSSL's own buffers, 16 KiB each way, are freed
 * whenever they are empty (SSL_MODE_RELEASE_BUFFERS): an idle session has none.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include <weir/memory.h>

#include "base/no_stack_protector.h"
#include "tls/openssl/internal.h"

#define DATA_CREDIT (WEIR__OPENSSL_DATA_CREDIT + 1) /* 1 for the record itself */

weir__openssl_session *weir__openssl_session_of(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

/* ---- OpenSSL itself ---- */

/* Counts what arrives after the handshake. Records are counted first; those with data are credited
 * later. */
static void on_message(int is_written, int version, int type, const void *bytes, size_t length,
                       SSL *ssl, void *arg)
{
    weir__openssl_session *self = arg;

    (void)version;
    (void)bytes;
    (void)length;
    (void)ssl;
    if (is_written != 0 || self == NULL || self->stage == WEIR__OPENSSL_HANDSHAKE)
        return;
    if (type == SSL3_RT_HEADER)
        self->dataless++;
    else if (type == SSL3_RT_HANDSHAKE)
        self->dataless += WEIR__OPENSSL_MESSAGE_COST - 1;
}

/*
 * OpenSSL must not be torn down by exit(), which does not wait for threads that still use it. The
 * memory it holds until then is returned to the system. Threads that end earlier clean up after
 * themselves, by a thread key of OpenSSL's own.
 */
int weir__openssl_start(void)
{
    char reason[WEIR__TLS_REASON_SIZE];

    return OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1 ? 0
                                                               : weir__openssl_error_take(reason);
}

void weir__openssl_session_prepare(weir__openssl_context *context)
{
    SSL_CTX *ctx = context->ctx;

    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_read_ahead(ctx, 0);
    SSL_CTX_set_info_callback(ctx, weir__openssl_error_on_info);
    SSL_CTX_set_msg_callback(ctx, on_message);
    if (context->is_server)
        weir__openssl_client_hello_prepare(context);
    weir__openssl_verify_prepare(context);
}

/* ---- lifecycle ---- */

/*
 * OpenSSL marks a session as not resumable if its connection ends without close_notify, as the
 * first versions of TLS required. That is obsolete: clients just leave. A session that has failed
 * stays marked.
 */
void weir__openssl_session_release(weir__openssl_session *self)
{
    if (self->ssl != NULL && self->stage != WEIR__OPENSSL_HANDSHAKE && self->failed == 0)
        SSL_set_shutdown(self->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* see above */
    SSL_free(self->ssl);
    weir__openssl_context_release(self->context);
    weir_memory_free(self->cache_key);
    weir_memory_free(self->server_name);
    weir_memory_free(self->reason_text);
    weir_memory_free(self->rejection);
    weir_memory_free(self->hello);
    weir_memory_free(self);
}

/* Clearing an empty error queue costs more than finding it empty. */
static void clear_errors(void)
{
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

static int create_ssl(weir__openssl_session *self)
{
    BIO *bio;

    clear_errors();
    self->ssl = SSL_new(self->context->ctx);
    if (self->ssl == NULL)
        return weir__openssl_session_fail_by_queue(self);
    bio = weir__openssl_bio_create(self);
    if (bio == NULL || SSL_set_app_data(self->ssl, self) != 1) {
        BIO_free(bio);
        return -ENOMEM;
    }
    SSL_set_bio(self->ssl, bio, bio);
    SSL_set_msg_callback_arg(self->ssl, self);
    return 0;
}

/* A resumed session is not verified again, so the name it was verified for is part of the key. */
static int set_cache_key(weir__openssl_session *self, const weir__openssl_session_options *options)
{
    const char *name = options->server_name != NULL ? options->server_name : "";
    size_t size = strlen(name) + 1 + strlen(options->cache_key) + 1;

    self->cache_key = weir_memory_alloc(size);
    if (self->cache_key == NULL)
        return -ENOMEM;
    (void)snprintf(self->cache_key, size, "%s\n%s", name, options->cache_key);
    return 0;
}

static int init_client(weir__openssl_session *self, const weir__openssl_session_options *options)
{
    int err = 0;

    SSL_set_connect_state(self->ssl);
    if (options->server_name != NULL)
        err = weir__openssl_verify_set_server_name(self, options->server_name);
    if (err == 0 && options->cache_key != NULL)
        err = set_cache_key(self, options);
    if (err == 0)
        err = weir__openssl_alpn_offer(self);
    if (err == 0)
        weir__openssl_resumption_begin(self);
    return err;
}

int weir__openssl_session_create(weir__openssl_context *context,
                                 const weir__openssl_session_options *options,
                                 weir__openssl_session **ret_session)
{
    weir__openssl_session *self = weir_memory_alloc(sizeof(*self));
    int err;

    if (self == NULL)
        return -ENOMEM;
    *self = (weir__openssl_session){
        .context = weir__openssl_context_retain(context),
        .protocols = options->protocols,
        .alert_sent = WEIR__OPENSSL_NO_ALERT,
        .hello_state =
            options->pause_at_hello ? WEIR__OPENSSL_HELLO_PAUSE : WEIR__OPENSSL_HELLO_PASS,
    };
    err = create_ssl(self);
    if (err == 0 && context->is_server)
        SSL_set_accept_state(self->ssl);
    else if (err == 0)
        err = init_client(self, options);
    if (err == 0)
        *ret_session = self;
    else
        weir__openssl_session_release(self);
    return err;
}

/* ---- calls ---- */

/*
 * SSL_MODE_RELEASE_BUFFERS leaves a write buffer behind when handshake messages have arrived,
 * tickets for example. OpenSSL before 3.0.14 would here free one that holds half a record
 * (CVE-2024-4741), so this is done only between records.
 */
static void release_buffers(weir__openssl_session *self)
{
    if (self->is_between_records && SSL_has_pending(self->ssl) == 0)
        (void)SSL_free_buffers(self->ssl);
}

/* Translates the result of a handshake step that did not succeed. */
static int step_result_of(weir__openssl_session *self, int result)
{
    switch (SSL_get_error(self->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return WEIR__OPENSSL_WANT_READ;
    case SSL_ERROR_WANT_CLIENT_HELLO_CB:
        return WEIR__OPENSSL_WANT_CONTEXT;
    case SSL_ERROR_ZERO_RETURN:
        return WEIR__OPENSSL_CLOSED;
    default:
        return weir__openssl_session_fail_by_queue(self);
    }
}

static int finish_handshake(weir__openssl_session *self)
{
    if (!weir__openssl_verify_has_certificate(self))
        return weir__openssl_session_fail(self, WEIR_EUNTRUSTED, "the peer sent no certificate");
    self->stage = WEIR__OPENSSL_OPEN;
    self->is_between_records = true;
    weir_memory_free(self->server_name);
    weir_memory_free(self->hello);
    self->server_name = NULL;
    self->hello = NULL;
    weir__openssl_resumption_store_renewed(self);
    release_buffers(self);
    return WEIR__OPENSSL_DONE;
}

int weir__openssl_session_handshake(weir__openssl_session *self, weir__openssl_io *io)
{
    int result;

    if (self->failed < 0)
        return self->failed;
    clear_errors(); /* SSL_get_error reads the queue */
    self->io = io;
    result = SSL_do_handshake(self->ssl);
    result = result == 1 ? finish_handshake(self) : step_result_of(self, result);
    if (result == WEIR__OPENSSL_CLOSED)
        result = weir__openssl_session_fail(self, WEIR_ETLSREFUSED,
                                            "the peer closed TLS during the handshake");
    self->io = NULL;
    return result;
}

/*
 * The peer sends too many records without data. OpenSSL has no call that sends an alert: TLS 1.3
 * sends one (unexpected_message) after reading a record of an invalid type. TLS 1.2 would take that
 * for a damaged record; there the connection ends without an alert.
 */
static int reject_flood(weir__openssl_session *self)
{
    uint8_t byte;
    size_t length;

    if (SSL_version(self->ssl) >= TLS1_3_VERSION) {
        self->stage = WEIR__OPENSSL_REJECTING;
        (void)SSL_read_ex(self->ssl, &byte, sizeof(byte), &length);
        ERR_clear_error();
    }
    return weir__openssl_session_fail(self, WEIR_ETLS,
                                      "rejected by us: too many records without data");
}

/*
 * Translates the result of a read that returned no data. The BIO and the info callback know it:
 * SSL_get_error would have to find the error queue empty, which costs more to ensure before each
 * read than all else that a short record costs here.
 */
static int read_result_of(weir__openssl_session *self)
{
    int result = WEIR__OPENSSL_WANT_READ;

    if (self->has_close_notify)
        result = WEIR__OPENSSL_CLOSED;
    else if (!self->is_starved)
        result = weir__openssl_session_fail_by_queue(self);
    self->is_blocked = self->failed == 0 && SSL_in_init(self->ssl) != 0;
    if (result == WEIR__OPENSSL_WANT_READ && self->dataless > WEIR__OPENSSL_DATALESS_MAX)
        return reject_flood(self);
    return result;
}

/* Reads what there is of one record, or of messages without data before it. */
WEIR__NO_STACK_PROTECTOR static inline int open_record(weir__openssl_session *self, weir_buf *plain)
{
    size_t length, room = weir_buf_writable(plain);

    if (SSL_read_ex(self->ssl, weir_buf_space(plain), room, &length) != 1)
        return read_result_of(self);
    (void)weir_buf_advance(plain, length); /* cannot fail: there was room */
    self->is_blocked = false;
    self->is_between_records = true; /* if all of this one was read, as it never reads ahead */
    self->has_rest = length == room && SSL_pending(self->ssl) > 0;
    self->dataless -= self->dataless < DATA_CREDIT ? self->dataless : DATA_CREDIT;
    return WEIR__OPENSSL_DONE;
}

/* True if there is exactly one complete record: the usual case. */
static inline bool is_one_record(const weir__openssl_session *self, const weir_buf *in)
{
    const uint8_t *header = in != NULL ? weir_buf_bytes(in) : NULL;
    size_t length = in != NULL ? weir_buf_readable(in) : 0;

    return self->is_between_records && !self->has_rest && length > SSL3_RT_HEADER_LENGTH &&
           length == (size_t)SSL3_RT_HEADER_LENGTH + (size_t)(header[3] << 8 | header[4]);
}

/* OpenSSL frees its buffer after each record; here it keeps it for all records of the call, and is
 * not called just to find that nothing is left, which costs it nearly as much as a short record. */
static int open_several(weir__openssl_session *self, const weir_buf *in, weir_buf *plain)
{
    int result = WEIR__OPENSSL_DONE;

    SSL_clear_mode(self->ssl, SSL_MODE_RELEASE_BUFFERS);
    while (result == WEIR__OPENSSL_DONE && weir_buf_writable(plain) > 0)
        result = self->has_rest || (in != NULL && weir_buf_readable(in) > 0)
                     ? open_record(self, plain)
                     : WEIR__OPENSSL_WANT_READ;
    SSL_set_mode(self->ssl, SSL_MODE_RELEASE_BUFFERS);
    return result;
}

int weir__openssl_session_open(weir__openssl_session *self, weir__openssl_io *io, weir_buf *plain)
{
    int result;

    assert(self->stage != WEIR__OPENSSL_HANDSHAKE && weir_buf_writable(plain) > 0);
    if (self->failed < 0)
        return self->failed;
    if (self->has_close_notify)
        return WEIR__OPENSSL_CLOSED;
    self->io = io;
    self->is_starved = false;
    if (!is_one_record(self, io->in)) {
        result = open_several(self, io->in, plain);
        release_buffers(self);
    } else {
        result = open_record(self, plain);
        if (result != WEIR__OPENSSL_DONE) /* OpenSSL keeps the buffer of a record without data */
            release_buffers(self);
        else if (!self->has_rest)
            result = WEIR__OPENSSL_WANT_READ;
    }
    self->io = NULL;
    return result;
}

WEIR__NO_STACK_PROTECTOR int weir__openssl_session_seal(weir__openssl_session *self,
                                                        weir__openssl_io *io, const uint8_t *plain,
                                                        size_t length)
{
    size_t taken;
    int err = 0;

    assert(self->stage != WEIR__OPENSSL_HANDSHAKE && length > 0);
    assert(!self->is_blocked); /* OpenSSL would want to read first */
    if (self->failed < 0)
        return self->failed;
    self->io = io;
    if (SSL_write_ex(self->ssl, plain, length, &taken) != 1)
        err = weir__openssl_session_fail_by_queue(self);
    self->io = NULL;
    return err;
}

void weir__openssl_session_close(weir__openssl_session *self, weir__openssl_io *io)
{
    if (self->stage != WEIR__OPENSSL_OPEN || self->failed < 0)
        return;
    self->stage = WEIR__OPENSSL_CLOSE_SENT;
    self->io = io;
    if (SSL_shutdown(self->ssl) < 0)
        ERR_clear_error(); /* the peer still sees the stream end */
    self->io = NULL;
}

/* ---- what was negotiated ---- */

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

/* In lower case, without the final dot: as in a weir__openssl_hello. */
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

void weir__openssl_session_negotiated(const weir__openssl_session *self,
                                      weir__openssl_negotiated *ret_negotiated)
{
    SSL *ssl = self->ssl;
    unsigned char *response;

    ret_negotiated->version = SSL_get_version(ssl);
    ret_negotiated->cipher = SSL_get_cipher_name(ssl);
    read_alpn(ssl, ret_negotiated->alpn, sizeof(ret_negotiated->alpn));
    read_server_name(ssl, ret_negotiated->server_name, sizeof(ret_negotiated->server_name));
    ret_negotiated->is_resumed = SSL_session_reused(ssl) != 0;
    ret_negotiated->is_stapled =
        SSL_is_server(ssl) == 0 && SSL_get_tlsext_status_ocsp_resp(ssl, &response) > 0;
}

int weir__openssl_session_peer_certificate(const weir__openssl_session *self,
                                           weir_tls_certificate **ret_certificate)
{
    X509 *x509 = SSL_get0_peer_certificate(self->ssl);

    if (x509 != NULL)
        return weir__openssl_certificate_create(x509, ret_certificate);
    *ret_certificate = NULL;
    return 0;
}
