/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options to a SSL_CTX: each part does its own, one after the other, and the first that fails says
 * why. What is made is never changed.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "tls/openssl/session.h"
#include "tls/tls_key_log.h"

#define DEFAULT_LIFETIME_NS weir_seconds(2 * 3600)
#define LIFETIME_MAX_S (7L * 24 * 3600) /* TLS 1.3 knows none that is longer */

/* ---- why they cannot be made ---- */

int weir__openssl_making_fail(weir__openssl_making *making, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(making->reason, WEIR__TLS_REASON_SIZE, format, args);
    va_end(args);
    ERR_clear_error();
    return err;
}

int weir__openssl_making_error(weir__openssl_making *making, const char *what)
{
    char words[WEIR__TLS_REASON_SIZE];
    int err = weir__openssl_error(words);

    return weir__openssl_making_fail(making, err, "%s: %s", what, words);
}

/* "e": no child inherits it that another thread starts meanwhile. */
int weir__openssl_making_open(weir__openssl_making *making, const char *file, const char *text,
                              BIO **ret_bio)
{
    BIO *bio = file != NULL ? BIO_new_file(file, "re") : BIO_new_mem_buf(text, -1);
    unsigned long error = ERR_peek_error();
    int err;

    if (bio != NULL) {
        *ret_bio = bio;
        return 0;
    }
    if (!ERR_SYSTEM_ERROR(error))
        return weir__openssl_making_error(making, file != NULL ? file : "a text");
    err = -ERR_GET_REASON(error);
    return weir__openssl_making_fail(making, err, "%s: %s", file, weir_error_text(err));
}

bool weir__openssl_is_end_of_pem(void)
{
    unsigned long error = ERR_peek_last_error();

    if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    return true;
}

bool weir__openssl_is_out_of_memory(void)
{
    return ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE ||
           ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE;
}

/* ---- what we speak ---- */

/* Of TLS 1.2: who gets hold of our key some day cannot read what was said before, and nothing is
 * decrypted that has not been verified. OpenSSL's own default has others, too. */
#define DEFAULT_CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

#define SECURITY_LEVEL 2 /* OpenSSL's: keys of RSA have 2048 bits at the least, and no SHA-1 */

static int version_of(enum weir_tls_version version, int otherwise)
{
    return version == WEIR_TLS_VERSION_1_2   ? TLS1_2_VERSION
           : version == WEIR_TLS_VERSION_1_3 ? TLS1_3_VERSION
                                             : otherwise;
}

static int use_versions(weir__openssl_making *making)
{
    const weir_tls_context_options *options = making->options;
    SSL_CTX *ctx = making->settings->ctx;

    if (SSL_CTX_set_min_proto_version(ctx, version_of(options->min_version, TLS1_2_VERSION)) != 1 ||
        SSL_CTX_set_max_proto_version(ctx, version_of(options->max_version, TLS1_3_VERSION)) != 1)
        return weir__openssl_making_error(making, "min_version, max_version");
    return 0;
}

/* What cannot be used is a mistake of the options', unless there was no memory. */
static int refuse_choice(weir__openssl_making *making, const char *kind, const char *text)
{
    if (weir__openssl_is_out_of_memory())
        return weir__openssl_making_error(making, text);
    return weir__openssl_making_fail(making, -EINVAL, "no %s of \"%s\" is known", kind, text);
}

static int use_groups(weir__openssl_making *making)
{
    const char *groups = making->options->groups;
    size_t size;

    if (groups == NULL)
        return 0;
    size = strlen(groups) + 1;
    making->settings->groups = weir_memory_alloc(size);
    if (making->settings->groups == NULL)
        return -ENOMEM;
    memcpy(making->settings->groups, groups, size);
    return SSL_CTX_set1_groups_list(making->settings->ctx, making->settings->groups) == 1
               ? 0
               : refuse_choice(making, "group", groups);
}

static int use_ciphers(weir__openssl_making *making)
{
    const weir_tls_context_options *options = making->options;
    const char *ciphers = options->ciphers != NULL ? options->ciphers : DEFAULT_CIPHERS;
    SSL_CTX *ctx = making->settings->ctx;

    if (SSL_CTX_get_security_level(ctx) < SECURITY_LEVEL)
        SSL_CTX_set_security_level(ctx, SECURITY_LEVEL);
    if (SSL_CTX_set_cipher_list(ctx, ciphers) != 1)
        return refuse_choice(making, "cipher", ciphers);
    if (options->cipher_suites != NULL &&
        SSL_CTX_set_ciphersuites(ctx, options->cipher_suites) != 1)
        return refuse_choice(making, "cipher suite", options->cipher_suites);
    (void)SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    return use_groups(making);
}

/* ---- sessions that are taken up again ---- */

static long lifetime_s(const weir_tls_context_options *options)
{
    int64_t ns =
        options->session_lifetime_ns > 0 ? options->session_lifetime_ns : DEFAULT_LIFETIME_NS;
    int64_t seconds = (ns + weir_seconds(1) - 1) / weir_seconds(1);

    return seconds < LIFETIME_MAX_S ? (long)seconds : LIFETIME_MAX_S;
}

/* A server without keys of tickets has nothing that it could take up. */
static int use_sessions(weir__openssl_making *making)
{
    const weir_tls_context_options *options = making->options;
    bool is_server = making->settings->is_server;
    SSL_CTX *ctx = making->settings->ctx;

    (void)SSL_CTX_set_timeout(ctx, lifetime_s(options));
    if (options->no_resumption || (is_server && options->tickets == NULL)) {
        (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        (void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
        (void)SSL_CTX_set_num_tickets(ctx, 0);
    }
    if (is_server) {
        int err = weir__openssl_tickets_prepare(making);

        return err < 0 ? err : weir__openssl_session_ids_prepare(making);
    }
    return options->no_resumption ? 0 : weir__openssl_sessions_prepare(making);
}

/* ---- for finding mistakes ---- */

static void on_secret(const SSL *ssl, const char *line)
{
    weir__tls_key_log_write(weir__openssl_session_of(ssl)->settings->key_log, line);
}

static int use_key_log(weir__openssl_making *making)
{
    const char *path = making->options->key_log_file;
    int err;

    if (path == NULL)
        return 0;
    err = weir__tls_key_log_open(path, &making->settings->key_log);
    if (err < 0)
        return weir__openssl_making_fail(making, err, "%s: %s", path, weir_error_text(err));
    SSL_CTX_set_keylog_callback(making->settings->ctx, on_secret);
    return 0;
}

/* ---- all of it ---- */

static int (*const parts[])(weir__openssl_making *making) = {
    use_versions,
    use_ciphers,
    weir__openssl_identity_prepare,
    weir__openssl_trust_prepare,
    weir__openssl_alpn_prepare,
    weir__openssl_staple_prepare,
    use_sessions,
    use_key_log,
};

static int make(weir__openssl_making *making)
{
    weir__tls_settings *settings = making->settings;
    int err = 0;

    ERR_clear_error();
    settings->ctx = SSL_CTX_new(settings->is_server ? TLS_server_method() : TLS_client_method());
    if (settings->ctx == NULL)
        return weir__openssl_making_error(making, "OpenSSL");
    for (size_t i = 0; err == 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
        err = parts[i](making);
    if (err == 0)
        weir__openssl_prepare(settings);
    return err;
}

static enum weir_tls_verify verify_of(const weir_tls_context_options *options, bool is_server)
{
    if (options->verify != WEIR_TLS_VERIFY_DEFAULT)
        return options->verify;
    return is_server ? WEIR_TLS_VERIFY_NONE : WEIR_TLS_VERIFY_REQUIRED;
}

int weir__openssl_settings_create(const weir_tls_context_options *options, bool is_server,
                                  char reason[WEIR__TLS_REASON_SIZE],
                                  weir__tls_settings **ret_settings)
{
    weir__openssl_making making = {.options = options, .reason = reason};
    weir__tls_settings *settings;
    int err = weir__openssl_start();

    (void)snprintf(reason, WEIR__TLS_REASON_SIZE, "%s", weir_error_text(err < 0 ? err : -ENOMEM));
    if (err < 0)
        return err;
    settings = weir_memory_alloc(sizeof(*settings));
    if (settings == NULL)
        return -ENOMEM;
    *settings = (weir__tls_settings){
        .is_server = is_server,
        .verify = verify_of(options, is_server),
        .key_log = -1,
    };
    weir__refs_init(&settings->refs);
    making.settings = settings;
    err = make(&making);
    if (err < 0)
        weir__openssl_settings_release(settings);
    else
        *ret_settings = settings;
    return err;
}

weir__tls_settings *weir__openssl_settings_retain(weir__tls_settings *settings)
{
    weir__refs_retain(&settings->refs);
    return settings;
}

void weir__openssl_settings_release(weir__tls_settings *settings)
{
    if (settings == NULL || !weir__refs_release(&settings->refs))
        return;
    SSL_CTX_free(settings->ctx);
    weir__openssl_sessions_release(settings->sessions);
    EVP_CIPHER_free(settings->ticket_cipher);
    weir_tls_tickets_release(settings->tickets);
    if (settings->key_log >= 0)
        weir__tls_key_log_close(settings->key_log);
    OPENSSL_free(settings->staple);
    weir_memory_free(settings->alpn);
    weir_memory_free(settings->pins);
    weir_memory_free(settings->groups);
    weir_memory_free(settings);
}

weir_tls_certificate *weir__openssl_settings_certificate(weir__tls_settings *settings)
{
    X509 *x509 = SSL_CTX_get0_certificate(settings->ctx);
    weir_tls_certificate *certificate;

    if (x509 == NULL || weir__openssl_certificate_create(x509, &certificate) < 0)
        return NULL;
    return certificate;
}
