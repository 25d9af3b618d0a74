/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls.h"

#include <stdio.h>

#include <weir/tls.h>

int tls_make_server(const struct settings *settings, weir_tls_context **ret_tls)
{
    bool has_files = settings->cert != NULL || settings->key != NULL;
    weir_tls_certificate *certificate;
    int err;

    if (!settings->tls)
        return 0;
    err = weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = settings->cert, .key_file = settings->key,
                                 .self_signed_for = has_files ? NULL : "localhost,127.0.0.1,::1",
                                 .ca_file = settings->ca,
                                 .verify = settings->ca != NULL ? WEIR_TLS_VERIFY_REQUIRED
                                                                : WEIR_TLS_VERIFY_DEFAULT),
        ret_tls);
    if (err || has_files)
        return err;
    certificate = weir_tls_context_certificate(*ret_tls);
    printf("self-signed certificate: %s\n", weir_tls_certificate_pin(certificate));
    weir_tls_certificate_release(certificate);
    return 0;
}

int tls_make_client(const struct settings *settings, weir_tls_context **ret_tls)
{
    if (!settings->tls)
        return 0;
    return weir_tls_client_create(
        WEIR_TLS_CONTEXT_OPTIONS(.ca_file = settings->ca, .verify = settings->insecure
                                                                        ? WEIR_TLS_VERIFY_NONE
                                                                        : WEIR_TLS_VERIFY_DEFAULT),
        ret_tls);
}

void tls_release(weir_tls_context *tls)
{
    weir_tls_context_release(tls);
}

int tls_add(weir_pipeline *pipeline, weir_tls_context *tls)
{
    return tls != NULL ? weir_tls_add(pipeline, tls) : 0;
}

int tls_add_client(weir_pipeline *pipeline, weir_tls_context *tls, const char *host)
{
    return weir_tls_add_client(pipeline, tls, host);
}

bool tls_is_available(void)
{
    return true;
}

bool tls_is_open(weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);

    return handshake != NULL && weir_tls_handshake_result(handshake) == 0;
}

/* ---- clients ---- */

static void release(void *promise)
{
    weir_promise_release(promise);
}

static const weir_attribute handshake_of = {.name = "handshake", .free = release};

int tls_add_to(weir_channel *channel, weir_tls_context *tls, const char *host)
{
    weir_promise *handshake;
    int err;

    if (tls == NULL)
        return 0;
    err = weir_promise_create(weir_channel_executor(channel), &handshake);
    if (err)
        return err;
    err = weir_attribute_set(channel, &handshake_of, handshake);
    if (err) {
        weir_promise_release(handshake);
        return err;
    }
    return weir_tls_add_with(weir_channel_pipeline(channel), tls,
                             WEIR_TLS_OPTIONS(.server_name = host, .handshake = handshake));
}

int tls_await(const struct settings *settings, weir_channel *channel)
{
    weir_promise *handshake = weir_attribute_get(channel, &handshake_of);
    int err = handshake != NULL ? weir_promise_sync(handshake, WEIR_NEVER) : 0;

    if (err)
        fprintf(stderr, "%s: %s\n", settings->program, weir_promise_detail(handshake));
    return err;
}
