/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong, in words, and by whom: the peer (an alert of its), its certificate, what it
 * speaks, or what we found out and may have told it (an alert of ours).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include <weir/memory.h>

#include "tls/openssl/session.h"

/* What is not TLS is often one of these. */
static const struct {
    const char *begin;
    const char *words;
} others[] = {
    {"GET ", "an HTTP request"},     {"HEAD ", "an HTTP request"},
    {"POST ", "an HTTP request"},    {"PUT ", "an HTTP request"},
    {"PATCH", "an HTTP request"},    {"DELET", "an HTTP request"},
    {"OPTIO", "an HTTP request"},    {"TRACE", "an HTTP request"},
    {"CONNE", "an HTTP request"},    {"PRI *", "an HTTP/2 preface"},
    {"HTTP/", "an HTTP response"},   {"SSH-", "SSH"},
    {"PROXY", "a PROXY header"},     {"\r\n\r\n", "a PROXY header"},
    {"220 ", "a greeting in clear"}, {"+OK ", "a greeting in clear"},
    {"* OK", "a greeting in clear"},
};

static bool is_no_memory(unsigned long error)
{
    return ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
}

/* Numbers of reasons mean something else in each library. */
static bool is_of_tls(unsigned long error, int reason)
{
    return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == reason;
}

/* Of several errors the first is the cause; a lack of memory is it wherever it stands. */
static unsigned long take_error(void)
{
    unsigned long error, cause = 0;

    while ((error = ERR_get_error()) != 0)
        if (cause == 0 || is_no_memory(error))
            cause = error;
    return cause;
}

static const char *error_words(unsigned long error)
{
    const char *words = ERR_reason_error_string(error);

    return words != NULL ? words : "an error that OpenSSL has no words for";
}

int weir__openssl_error(char ret_words[WEIR__TLS_REASON_SIZE])
{
    unsigned long error = take_error();
    bool no_memory = error == 0 || is_no_memory(error); /* what says nothing had no memory */

    (void)snprintf(ret_words, WEIR__TLS_REASON_SIZE, "%s",
                   no_memory ? "there is no memory" : error_words(error));
    return no_memory ? -ENOMEM : WEIR_ETLS;
}

/* ---- of a session ---- */

int weir__openssl_session_fail(weir__openssl_session *session, int err, const char *format, ...)
{
    char words[WEIR__TLS_REASON_SIZE];
    va_list arguments;
    size_t size;

    va_start(arguments, format);
    (void)vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    size = strlen(words) + 1;
    weir_memory_free(session->words);
    session->words = weir_memory_alloc(size);
    if (session->words != NULL)
        memcpy(session->words, words, size);
    session->session.reason = session->words != NULL ? session->words : weir_error_text(err);
    session->failed = err;
    return err;
}

/* A record is a type, 20 to 23, a version, 3.x, and a length. */
static bool looks_like_tls(const weir__openssl_session *session)
{
    return (session->first_length < 1 || (session->first[0] >= 20 && session->first[0] <= 23)) &&
           (session->first_length < 2 || session->first[1] == 3);
}

static const char *other_words(const weir__openssl_session *session)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        size_t length = strlen(others[i].begin);

        if (session->first_length >= length && memcmp(session->first, others[i].begin, length) == 0)
            return others[i].words;
    }
    return "something else";
}

/* What our own callback has found in a client's hello, OpenSSL has no words for. */
static const char *hello_words(const weir__openssl_session *session)
{
    if (session->choice == WEIR__OPENSSL_CHOICE_REFUSED)
        return "nobody here has the name that the client asks for";
    return session->alert_sent == SSL_AD_ILLEGAL_PARAMETER
               ? "the client's second hello asks for something else"
               : "the client's hello makes no sense";
}

/* OpenSSL 3 has no words for some of TLS 1.3's, and an identifier for one. */
static const char *alert_words(int alert)
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

static int fail_by_ourselves(weir__openssl_session *session, unsigned long error)
{
    const char *words =
        is_of_tls(error, SSL_R_CALLBACK_FAILED) ? hello_words(session) : error_words(error);
    int alert = session->alert_sent;

    if (is_of_tls(error, SSL_R_CERTIFICATE_VERIFY_FAILED)) /* there was no memory for more */
        return weir__openssl_session_fail(session, WEIR_EUNTRUSTED,
                                          "the peer's certificate was refused");
    if (is_of_tls(error, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE))
        return weir__openssl_session_fail(session, WEIR_EUNTRUSTED,
                                          "the peer has not shown a certificate");
    if (alert == WEIR__OPENSSL_NO_ALERT)
        return weir__openssl_session_fail(session, WEIR_ETLS, "we refused: %s", words);
    if (strcmp(words, alert_words(alert)) == 0)
        return weir__openssl_session_fail(session, WEIR_ETLS, "we refused: %s (alert %d)", words,
                                          alert);
    return weir__openssl_session_fail(session, WEIR_ETLS, "we refused: %s (alert %d: %s)", words,
                                      alert, alert_words(alert));
}

/* OpenSSL tells so what it has heard. */
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

int weir__openssl_session_error(weir__openssl_session *session)
{
    unsigned long error = take_error();
    int alert;

    if (session->io_err < 0)
        return weir__openssl_session_fail(session, session->io_err, "%s",
                                          weir_error_text(session->io_err));
    if (is_out_of_memory(session, error))
        return weir__openssl_session_fail(session, -ENOMEM, "there is no memory");
    if (is_alert(error, &alert))
        return weir__openssl_session_fail(session, WEIR_ETLSREFUSED,
                                          "the peer refused: %s (alert %d)", alert_words(alert),
                                          alert);
    if (session->refusal != NULL)
        return weir__openssl_session_fail(session, WEIR_EUNTRUSTED, "%s", session->refusal);
    if (!looks_like_tls(session))
        return weir__openssl_session_fail(session, WEIR_ENOTTLS, "this is not TLS: %s has come",
                                          other_words(session));
    return fail_by_ourselves(session, error);
}

void weir__openssl_on_info(const SSL *ssl, int where, int value)
{
    if ((where & SSL_CB_WRITE_ALERT) == SSL_CB_WRITE_ALERT && (value >> 8) == SSL3_AL_FATAL)
        weir__openssl_session_of(ssl)->alert_sent = (int16_t)(value & 0xff);
}
