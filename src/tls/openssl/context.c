/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options to SSL_CTX: each part applies its own, one after the other; the first that fails sets the
 * reason.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "tls/openssl/internal.h"

/* ---- failures ---- */

int weir__openssl_builder_fail(weir__openssl_builder *builder, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(builder->reason, WEIR__TLS_REASON_SIZE, format, args);
    va_end(args);
    ERR_clear_error();
    return err;
}

int weir__openssl_builder_error(weir__openssl_builder *builder, const char *what)
{
    char text[WEIR__TLS_REASON_SIZE];
    int err = weir__openssl_error_take(text);

    return weir__openssl_builder_fail(builder, err, "%s: %s", what, text);
}

/* "e": close-on-exec, for children that other threads start meanwhile. */
int weir__openssl_builder_open(weir__openssl_builder *builder, const char *file, const char *text,
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
        return weir__openssl_builder_error(builder, file != NULL ? file : "a text");
    err = -ERR_GET_REASON(error);
    return weir__openssl_builder_fail(builder, err, "%s: %s", file, weir_error_text(err));
}

/* ---- versions and ciphers ---- */

/* TLS 1.2: only ciphers with forward secrecy and authenticated encryption. OpenSSL's default has
 * others, too. */
#define DEFAULT_CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

#define SECURITY_LEVEL 2 /* OpenSSL's: RSA keys of at least 2048 bits, and no SHA-1 */

static int version_of(enum weir_tls_version version, int otherwise)
{
    return version == WEIR_TLS_VERSION_1_2   ? TLS1_2_VERSION
           : version == WEIR_TLS_VERSION_1_3 ? TLS1_3_VERSION
                                             : otherwise;
}

static int use_versions(weir__openssl_builder *builder)
{
    const weir_tls_context_options *options = builder->options;
    SSL_CTX *ctx = builder->context->ctx;

    if (SSL_CTX_set_min_proto_version(ctx, version_of(options->min_version, TLS1_2_VERSION)) != 1 ||
        SSL_CTX_set_max_proto_version(ctx, version_of(options->max_version, TLS1_3_VERSION)) != 1)
        return weir__openssl_builder_error(builder, "min_version, max_version");
    return 0;
}

/* An error of the options, unless there was no memory. */
static int reject_list(weir__openssl_builder *builder, const char *kind, const char *text)
{
    if (weir__openssl_error_is_out_of_memory())
        return weir__openssl_builder_error(builder, text);
    return weir__openssl_builder_fail(builder, -EINVAL, "no known %s in \"%s\"", kind, text);
}

static int use_groups(weir__openssl_builder *builder)
{
    const char *groups = builder->options->groups;
    size_t size;

    if (groups == NULL)
        return 0;
    size = strlen(groups) + 1;
    builder->context->groups = weir_memory_alloc(size);
    if (builder->context->groups == NULL)
        return -ENOMEM;
    memcpy(builder->context->groups, groups, size);
    return SSL_CTX_set1_groups_list(builder->context->ctx, builder->context->groups) == 1
               ? 0
               : reject_list(builder, "group", groups);
}

static int use_ciphers(weir__openssl_builder *builder)
{
    const weir_tls_context_options *options = builder->options;
    const char *ciphers = options->ciphers != NULL ? options->ciphers : DEFAULT_CIPHERS;
    SSL_CTX *ctx = builder->context->ctx;

    if (SSL_CTX_get_security_level(ctx) < SECURITY_LEVEL)
        SSL_CTX_set_security_level(ctx, SECURITY_LEVEL);
    if (SSL_CTX_set_cipher_list(ctx, ciphers) != 1)
        return reject_list(builder, "cipher", ciphers);
    if (options->cipher_suites != NULL &&
        SSL_CTX_set_ciphersuites(ctx, options->cipher_suites) != 1)
        return reject_list(builder, "cipher suite", options->cipher_suites);
    (void)SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    return use_groups(builder);
}

/* ---- lifecycle ---- */

static int (*const parts[])(weir__openssl_builder *builder) = {
    use_versions,
    use_ciphers,
    weir__openssl_credentials_prepare,
    weir__openssl_trust_prepare,
    weir__openssl_alpn_prepare,
    weir__openssl_ocsp_prepare,
    weir__openssl_resumption_prepare,
    weir__openssl_key_log_prepare,
};

static int build(weir__openssl_builder *builder)
{
    weir__openssl_context *context = builder->context;
    int err = 0;

    ERR_clear_error();
    context->ctx = SSL_CTX_new(context->is_server ? TLS_server_method() : TLS_client_method());
    if (context->ctx == NULL)
        return weir__openssl_builder_error(builder, "OpenSSL");
    for (size_t i = 0; err == 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
        err = parts[i](builder);
    if (err == 0)
        weir__openssl_session_prepare(context);
    return err;
}

static enum weir_tls_verify verify_of(const weir_tls_context_options *options, bool is_server)
{
    if (options->verify != WEIR_TLS_VERIFY_DEFAULT)
        return options->verify;
    return is_server ? WEIR_TLS_VERIFY_NONE : WEIR_TLS_VERIFY_REQUIRED;
}

int weir__openssl_context_create(const weir_tls_context_options *options, bool is_server,
                                 char ret_reason[WEIR__TLS_REASON_SIZE],
                                 weir__openssl_context **ret_settings)
{
    weir__openssl_builder builder = {.options = options, .reason = ret_reason};
    weir__openssl_context *context;
    int err = weir__openssl_start();

    (void)snprintf(ret_reason, WEIR__TLS_REASON_SIZE, "%s",
                   weir_error_text(err < 0 ? err : -ENOMEM));
    if (err < 0)
        return err;
    context = weir_memory_alloc(sizeof(*context));
    if (context == NULL)
        return -ENOMEM;
    *context = (weir__openssl_context){
        .is_server = is_server,
        .verify = verify_of(options, is_server),
        .key_log = -1,
    };
    weir__refs_init(&context->refs);
    builder.context = context;
    err = build(&builder);
    if (err < 0)
        weir__openssl_context_release(context);
    else
        *ret_settings = context;
    return err;
}

weir__openssl_context *weir__openssl_context_retain(weir__openssl_context *context)
{
    weir__refs_retain(&context->refs);
    return context;
}

void weir__openssl_context_release(weir__openssl_context *context)
{
    if (context == NULL || !weir__refs_release(&context->refs))
        return;
    SSL_CTX_free(context->ctx);
    weir__openssl_session_cache_release(context->sessions);
    EVP_CIPHER_free(context->ticket_cipher);
    weir_tls_tickets_release(context->tickets);
    if (context->key_log >= 0)
        weir__openssl_key_log_close(context->key_log);
    OPENSSL_free(context->staple);
    weir_memory_free(context->alpn);
    weir_memory_free(context->pins);
    weir_memory_free(context->groups);
    weir_memory_free(context);
}

weir_tls_certificate *weir__openssl_context_certificate(weir__openssl_context *context)
{
    X509 *x509 = SSL_CTX_get0_certificate(context->ctx);
    weir_tls_certificate *certificate;

    if (x509 == NULL || weir__openssl_certificate_create(x509, &certificate) < 0)
        return NULL;
    return certificate;
}

bool weir__openssl_context_verifies_names(const weir__openssl_context *context)
{
    return !context->is_server && context->verify != WEIR_TLS_VERIFY_NONE &&
           context->verify != WEIR_TLS_VERIFY_PINS;
}
