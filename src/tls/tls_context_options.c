/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy is one block: the options, then their texts.
 */
#include "tls/tls_context_options.h"

#include <errno.h>
#include <string.h>

#include <weir/memory.h>
#include <weir/tls_context.h>

#include "base/options.h"
#include "tls/tls_reason.h"
#include "tls/tls_sni_map.h"

#define TEXT(member) offsetof(weir_tls_context_options, member)

static const size_t texts[] = {
    TEXT(certificate_file),
    TEXT(key_file),
    TEXT(certificate_pem),
    TEXT(key_pem),
    TEXT(passphrase),
    TEXT(self_signed_for),
    TEXT(ca_file),
    TEXT(ca_pem),
    TEXT(pins),
    TEXT(ciphers),
    TEXT(cipher_suites),
    TEXT(groups),
    TEXT(alpn),
    TEXT(ocsp_file),
    TEXT(key_log_file),
};

#define TEXT_COUNT (sizeof(texts) / sizeof(texts[0]))

static const char **text_of(weir_tls_context_options *options, size_t index)
{
    return (const char **)(void *)((char *)options + texts[index]);
}

/* ---- checks ---- */

static int check_both(const char *a, const char *a_name, const char *b, const char *b_name)
{
    return a == NULL || b == NULL
               ? 0
               : weir__tls_fail(-EINVAL, "%s and %s are mutually exclusive", a_name, b_name);
}

#define CHECK_BOTH(options, a, b) check_both((options)->a, #a, (options)->b, #b)

static int check_certificate(const weir_tls_context_options *options, bool is_server)
{
    bool has_certificate = options->certificate_file != NULL || options->certificate_pem != NULL;
    bool has_key = options->key_file != NULL || options->key_pem != NULL;

    if (CHECK_BOTH(options, certificate_file, certificate_pem) < 0 ||
        CHECK_BOTH(options, certificate_file, self_signed_for) < 0 ||
        CHECK_BOTH(options, certificate_pem, self_signed_for) < 0 ||
        CHECK_BOTH(options, key_file, key_pem) < 0)
        return -EINVAL;
    if (has_key && !has_certificate)
        return weir__tls_fail(-EINVAL, "a key is given without a certificate");
    if (is_server && !has_certificate && options->self_signed_for == NULL)
        return weir__tls_fail(-EINVAL, "a server needs a certificate: certificate_file, "
                                       "certificate_pem or self_signed_for");
    return 0;
}

static int check_verify(const weir_tls_context_options *options, bool is_server)
{
    if ((unsigned)options->verify > WEIR_TLS_VERIFY_PINS)
        return weir__tls_fail(-EINVAL, "verify: invalid value %d", (int)options->verify);
    if (options->verify == WEIR_TLS_VERIFY_OPTIONAL && !is_server)
        return weir__tls_fail(-EINVAL, "verify: WEIR_TLS_VERIFY_OPTIONAL is for servers only");
    if (options->verify == WEIR_TLS_VERIFY_PINS && options->pins == NULL)
        return weir__tls_fail(-EINVAL, "verify: WEIR_TLS_VERIFY_PINS needs pins");
    return 0;
}

static int check_versions(const weir_tls_context_options *options)
{
    if ((unsigned)options->min_version > WEIR_TLS_VERSION_1_3 ||
        (unsigned)options->max_version > WEIR_TLS_VERSION_1_3)
        return weir__tls_fail(-EINVAL, "min_version, max_version: invalid value");
    if (options->max_version != WEIR_TLS_VERSION_DEFAULT &&
        options->min_version > options->max_version)
        return weir__tls_fail(-EINVAL, "min_version is above max_version");
    return 0;
}

static bool is_switch(int value)
{
    return value == 0 || value == WEIR_ON || value == WEIR_OFF;
}

static int check_sessions(const weir_tls_context_options *options, bool is_server)
{
    if (!is_switch(options->resumption) || !is_switch(options->session_ids))
        return weir__tls_fail(-EINVAL, "resumption, session_ids: expected 0, WEIR_ON or WEIR_OFF");
    if (options->session_lifetime_ns < 0)
        return weir__tls_fail(-EINVAL, "session_lifetime_ns is negative");
    if (options->tickets != NULL && !is_server)
        return weir__tls_fail(-EINVAL, "tickets: for servers only");
    if (options->tickets != NULL && options->resumption == WEIR_OFF)
        return weir__tls_fail(-EINVAL, "tickets and resumption = WEIR_OFF are mutually exclusive");
    return 0;
}

static int check_server_only(const weir_tls_context_options *options, bool is_server)
{
    if (!is_server && options->on_sni != NULL)
        return weir__tls_fail(-EINVAL, "on_sni: for servers only");
    if (!is_server && options->ocsp_file != NULL)
        return weir__tls_fail(-EINVAL, "ocsp_file: for servers only");
    if (!is_server && options->session_ids != 0)
        return weir__tls_fail(-EINVAL, "session_ids: for servers only");
    return 0;
}

int weir__tls_context_options_check(const weir_tls_context_options *options, bool is_server)
{
    int err = check_certificate(options, is_server);

    if (err == 0)
        err = check_verify(options, is_server);
    if (err == 0)
        err = check_versions(options);
    if (err == 0)
        err = check_sessions(options, is_server);
    if (err == 0)
        err = check_server_only(options, is_server);
    return err;
}

/* ---- a copy ---- */

static size_t size_of_texts(weir_tls_context_options *options)
{
    size_t size = 0;

    for (size_t i = 0; i < TEXT_COUNT; i++)
        if (*text_of(options, i) != NULL)
            size += strlen(*text_of(options, i)) + 1;
    return size;
}

weir_tls_context_options *weir__tls_context_options_copy(const weir_tls_context_options *options)
{
    weir_tls_context_options from = *options, *copy;
    char *end;
    size_t size;

    copy = weir_memory_alloc(sizeof(*copy) + size_of_texts(&from));
    if (copy == NULL)
        return NULL;
    *copy = from;
    end = (char *)(copy + 1);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        if (*text_of(copy, i) == NULL)
            continue;
        size = strlen(*text_of(&from, i)) + 1;
        *text_of(copy, i) = memcpy(end, *text_of(&from, i), size);
        end += size;
    }
    if (copy->tickets != NULL)
        weir_tls_tickets_retain(copy->tickets);
    return copy;
}

void weir__tls_context_options_free(weir_tls_context_options *copy)
{
    if (copy == NULL)
        return;
    weir_tls_tickets_release(copy->tickets);
    explicit_bzero(copy, sizeof(*copy) + size_of_texts(copy)); /* a key, a passphrase */
    weir_memory_free(copy);
}
