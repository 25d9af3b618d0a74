/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as text, with their origin: an alert of the peer, its certificate, a protocol that is not
 * TLS, or an error that we detected (and may have sent an alert for).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <weir/memory.h>

#include "tls/openssl/internal.h"

/* Other protocols that are often sent to a TLS port. */
static const struct {
    const char *begin;
    const char *text;
} others[] = {
    {"GET ", "an HTTP request"},      {"HEAD ", "an HTTP request"},
    {"POST ", "an HTTP request"},     {"PUT ", "an HTTP request"},
    {"PATCH", "an HTTP request"},     {"DELET", "an HTTP request"},
    {"OPTIO", "an HTTP request"},     {"TRACE", "an HTTP request"},
    {"CONNE", "an HTTP request"},     {"PRI *", "an HTTP/2 preface"},
    {"HTTP/", "an HTTP response"},    {"SSH-", "SSH"},
    {"PROXY", "a PROXY header"},      {"\r\n\r\n", "a PROXY header"},
    {"220 ", "a plaintext greeting"}, {"+OK ", "a plaintext greeting"},
    {"* OK", "a plaintext greeting"},
};

static bool is_no_memory(unsigned long error)
{
    return ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
}

/* The same reason number means something else in each library of OpenSSL. */
static bool is_ssl_error(unsigned long error, int reason)
{
    return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == reason;
}

/* OpenSSL 3.2 and later add one behind the error of a record, which says what has happened. */
static bool says_nothing(unsigned long error)
{
#ifdef SSL_R_RECORD_LAYER_FAILURE
    return is_ssl_error(error, SSL_R_RECORD_LAYER_FAILURE);
#else
    return error == 0;
#endif
}

/*
 * The first of several errors is the cause, but a lack of memory is it at any position. With
 * `may_be_stale` there may be earlier ones of other code on this thread: then the last is taken.
 */
static unsigned long take_error(bool may_be_stale)
{
    unsigned long error, cause = 0;

    while ((error = ERR_get_error()) != 0) {
        if (cause == 0 || is_no_memory(error))
            cause = error;
        else if (may_be_stale && !is_no_memory(cause) && !says_nothing(error))
            cause = error;
    }
    return cause;
}

static const char *error_text(unsigned long error)
{
    const char *text = ERR_reason_error_string(error);

    return text != NULL ? text : "unknown OpenSSL error";
}

int weir__openssl_error_take(char ret_text[WEIR__TLS_REASON_SIZE])
{
    unsigned long error = take_error(false);
    bool no_memory = error == 0 || is_no_memory(error); /* an empty queue: no memory for an entry */

    (void)snprintf(ret_text, WEIR__TLS_REASON_SIZE, "%s",
                   no_memory ? "out of memory" : error_text(error));
    return no_memory ? -ENOMEM : WEIR_ETLS;
}

bool weir__openssl_error_is_end_of_pem(void)
{
    unsigned long error = ERR_peek_last_error();

    if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    return true;
}

bool weir__openssl_error_is_out_of_memory(void)
{
    unsigned long first = ERR_peek_error();

    /* OpenSSL 3.2 and later: the decoder has no memory for a string, and no other cause to name. */
    if (ERR_GET_LIB(first) == ERR_LIB_ASN1 && ERR_GET_REASON(first) == ERR_R_ASN1_LIB)
        return true;
    return is_no_memory(first) || is_no_memory(ERR_peek_last_error());
}

/* ---- sessions ---- */

int weir__openssl_session_fail(weir__openssl_session *session, int err, const char *format, ...)
{
    char text[WEIR__TLS_REASON_SIZE];
    va_list arguments;
    size_t size;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size = strlen(text) + 1;
    weir_memory_free(session->reason_text);
    session->reason_text = weir_memory_alloc(size);
    if (session->reason_text != NULL)
        memcpy(session->reason_text, text, size);
    session->reason = session->reason_text != NULL ? session->reason_text : weir_error_text(err);
    session->failed = err;
    return err;
}

/* A record is a type, 20 to 23, a version, 3.x, and a length. */
static bool looks_like_tls(const weir__openssl_session *session)
{
    return (session->first_length < 1 || (session->first[0] >= 20 && session->first[0] <= 23)) &&
           (session->first_length < 2 || session->first[1] == 3);
}

static const char *protocol_text(const weir__openssl_session *session)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        size_t length = strlen(others[i].begin);

        if (session->first_length >= length && memcmp(session->first, others[i].begin, length) == 0)
            return others[i].text;
    }
    return "unknown bytes";
}

/* OpenSSL has no text for errors of our own hello callback. */
static const char *hello_text(const weir__openssl_session *session)
{
    if (session->hello_state == WEIR__OPENSSL_HELLO_REJECTED)
        return "unknown server name";
    return session->alert_sent == SSL_AD_ILLEGAL_PARAMETER
               ? "the client's second hello differs from its first"
               : "malformed client hello";
}

/* OpenSSL 3 has no text for some alerts of TLS 1.3, and an identifier for one. */
static const char *alert_text(int alert)
{
    switch (alert) {
    case SSL_AD_UNEXPECTED_MESSAGE:
        return "unexpected message";
    case SSL_AD_MISSING_EXTENSION:
        return "missing extension";
    case SSL_AD_CERTIFICATE_REQUIRED:
        return "certificate required";
    case SSL_AD_NO_APPLICATION_PROTOCOL:
        return "no application protocol";
    default:
        return SSL_alert_desc_string_long(alert);
    }
}

static int fail_by_us(weir__openssl_session *session, unsigned long error)
{
    const char *text =
        is_ssl_error(error, SSL_R_CALLBACK_FAILED) ? hello_text(session) : error_text(error);
    int alert = session->alert_sent;

    if (is_ssl_error(error, SSL_R_CERTIFICATE_VERIFY_FAILED)) /* there was no memory for more */
        return weir__openssl_session_fail(session, WEIR_EUNTRUSTED,
                                          "the peer's certificate is not trusted");
    if (is_ssl_error(error, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE))
        return weir__openssl_session_fail(session, WEIR_EUNTRUSTED, "the peer sent no certificate");
    if (alert == WEIR__OPENSSL_NO_ALERT)
        return weir__openssl_session_fail(session, WEIR_ETLS, "rejected by us: %s", text);
    if (strcmp(text, alert_text(alert)) == 0)
        return weir__openssl_session_fail(session, WEIR_ETLS, "rejected by us: %s (alert %d)", text,
                                          alert);
    return weir__openssl_session_fail(session, WEIR_ETLS, "rejected by us: %s (alert %d: %s)", text,
                                      alert, alert_text(alert));
}

/* OpenSSL reports a received alert as an error with this offset. */
static bool is_alert(unsigned long error, int *ret_alert)
{
    int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;

    *ret_alert = alert;
    return ERR_GET_LIB(error) == ERR_LIB_SSL && alert >= 0 && alert <= UINT8_MAX;
}

static bool is_out_of_memory(const weir__openssl_session *session, unsigned long error)
{
    return error == 0 || is_no_memory(error) ||
           (session->ssl != NULL && SSL_get_verify_result(session->ssl) == X509_V_ERR_OUT_OF_MEM);
}

int weir__openssl_session_fail_by_queue(weir__openssl_session *session)
{
    unsigned long error = take_error(session->stage != WEIR__OPENSSL_HANDSHAKE);
    int alert;

    if (session->io_err < 0)
        return weir__openssl_session_fail(session, session->io_err, "%s",
                                          weir_error_text(session->io_err));
    if (is_out_of_memory(session, error))
        return weir__openssl_session_fail(session, -ENOMEM, "out of memory");
    if (is_alert(error, &alert))
        return weir__openssl_session_fail(session, WEIR_ETLSREFUSED,
                                          "rejected by the peer: %s (alert %d)", alert_text(alert),
                                          alert);
    if (session->rejection != NULL)
        return weir__openssl_session_fail(session, WEIR_EUNTRUSTED, "%s", session->rejection);
    if (!looks_like_tls(session))
        return weir__openssl_session_fail(session, WEIR_ENOTTLS, "not TLS: received %s",
                                          protocol_text(session));
    return fail_by_us(session, error);
}

/* TLS 1.3 ignores the level of an alert. */
static bool is_close_notify(const SSL *ssl, int level, int alert)
{
    return alert == SSL_AD_CLOSE_NOTIFY &&
           (level == SSL3_AL_WARNING || SSL_version(ssl) >= TLS1_3_VERSION);
}

void weir__openssl_error_on_info(const SSL *ssl, int where, int value)
{
    weir__openssl_session *session;
    int level = value >> 8, alert = value & 0xff;

    if ((where & SSL_CB_ALERT) == 0)
        return;
    session = weir__openssl_session_of(ssl);
    if ((where & SSL_CB_WRITE) != 0 && level == SSL3_AL_FATAL)
        session->alert_sent = (int16_t)alert;
    if ((where & SSL_CB_READ) != 0 && session->stage != WEIR__OPENSSL_HANDSHAKE &&
        is_close_notify(ssl, level, alert))
        session->has_close_notify = true;
}
