/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of keys that others than their owner can get at.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/tls_context.h>

#include "support/executor/log_capture.h"
#include "support/test.h"
#include "support/tls/pki.h"

static void put_file(char path[256], const char *begin, const char *rest, mode_t mode)
{
    FILE *file;

    (void)snprintf(path, 256, "%s/exposed.pem", pki()->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(begin, file) >= 0 && fputs(rest, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* How many warnings there are when a server is made of this. */
static unsigned warnings_of(const weir_tls_context_options *options)
{
    weir_tls_context *context = NULL;

    log_capture_start();
    assert_int_equal(weir_tls_server_create(options, &context), 0);
    weir_tls_context_release(context);
    return log_capture_count(WEIR_LOG_WARN);
}

static unsigned warnings_of_key(const struct pki_leaf *leaf, mode_t mode)
{
    char path[256];

    put_file(path, leaf->key, "", mode);
    return warnings_of(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate,
                                                .key_file = path, .passphrase = PKI_PASSPHRASE));
}

TEST(openssl_credentials, warns_of_a_key_that_everybody_can_read)
{
    assert_int_equal(warnings_of_key(&pki()->server, 0644), 1);
    assert_true(log_capture_last_contains("/exposed.pem: this key is world-readable (mode 0644)"));
    assert_int_equal(warnings_of_key(&pki()->server, 0604), 1);
}

TEST(openssl_credentials, warns_of_a_key_that_everybody_can_change)
{
    assert_int_equal(warnings_of_key(&pki()->server, 0602), 1);
    assert_true(log_capture_last_contains("this key is world-writable (mode 0602)"));
    assert_int_equal(warnings_of_key(&pki()->encrypted, 0666), 1);
    assert_true(log_capture_last_contains("this key is world-writable (mode 0666)"));
}

TEST(openssl_credentials, does_not_warn_of_a_key_that_only_some_can_read)
{
    assert_int_equal(warnings_of_key(&pki()->server, 0600), 0);
    assert_int_equal(warnings_of_key(&pki()->server, 0640), 0);
    assert_int_equal(warnings_of_key(&pki()->server, 0660), 0);
}

TEST(openssl_credentials, does_not_warn_of_a_key_that_is_encrypted)
{
    assert_int_equal(warnings_of_key(&pki()->encrypted, 0644), 0);
}

TEST(openssl_credentials, warns_of_a_key_that_is_with_its_certificate)
{
    char path[256];

    put_file(path, pki()->server.certificate, pki()->server.key, 0644);
    assert_int_equal(warnings_of(WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = path)), 1);
}

TEST(openssl_credentials, does_not_warn_of_a_certificate)
{
    char path[256];

    put_file(path, pki()->server.certificate, "", 0644);
    assert_int_equal(warnings_of(WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = path,
                                                          .key_pem = pki()->server.key)),
                     0);
}

/* Each time that it is read. */
TEST(openssl_credentials, warns_again_by_a_reload)
{
    weir_tls_context *context = NULL;
    char path[256];

    put_file(path, pki()->server.key, "", 0600);
    log_capture_start();
    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_file = path),
                         &context),
                     0);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(weir_tls_context_reload(context), 0);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    weir_tls_context_release(context);
}
