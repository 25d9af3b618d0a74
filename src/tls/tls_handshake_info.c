/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a handshake: one block of memory, with its texts at the end.
 */
#include <weir/tls.h>

#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "tls/tls.h"

struct weir_tls_handshake {
    weir_msg msg; /* first */
    int result;
    bool is_resumed;
    bool is_stapled;
    weir_tls_certificate *peer; /* a reference, or NULL */
    const char *detail;
    const char *version;
    const char *cipher;
    const char *alpn;
    const char *server_name;
    char texts[];
};

static void destroy(weir_msg *msg)
{
    weir_tls_handshake *handshake = (weir_tls_handshake *)(void *)msg;

    weir_tls_certificate_release(handshake->peer);
    weir_memory_free(handshake);
}

static const weir_msg_type handshake_type = {.name = "tls-handshake", .destroy = destroy};

/* Used if there is no memory for another. Static, never freed. */
static weir_tls_handshake without_memory = {
    .msg = {.type = &handshake_type, .refs = WEIR_MSG_STATIC},
    .result = -ENOMEM,
    .detail = "out of memory",
    .version = "",
    .cipher = "",
    .alpn = "",
    .server_name = "",
};

/* Copies a text to *end, and advances that. */
static const char *append(char **end, const char *text)
{
    size_t size = strlen(text) + 1;
    char *begin = *end;

    memcpy(begin, text, size);
    *end += size;
    return begin;
}

weir_msg *weir__tls_handshake_create(int err, const char *detail,
                                     const weir__openssl_negotiated *negotiated,
                                     weir_tls_certificate *peer)
{
    static const weir__openssl_negotiated none = {.version = "", .cipher = ""};
    const weir__openssl_negotiated *known = negotiated != NULL ? negotiated : &none;
    weir_tls_handshake *handshake = weir_memory_alloc(
        sizeof(*handshake) + strlen(detail) + strlen(known->version) + strlen(known->cipher) +
        strlen(known->alpn) + strlen(known->server_name) + 5);
    char *end;

    if (handshake == NULL)
        return weir_msg_retain(&without_memory.msg);
    end = handshake->texts;
    weir_msg_init(&handshake->msg, &handshake_type);
    handshake->result = err;
    handshake->is_resumed = known->is_resumed;
    handshake->is_stapled = known->is_stapled;
    handshake->peer = peer != NULL ? weir_tls_certificate_retain(peer) : NULL;
    handshake->detail = append(&end, detail);
    handshake->version = append(&end, known->version);
    handshake->cipher = append(&end, known->cipher);
    handshake->alpn = append(&end, known->alpn);
    handshake->server_name = append(&end, known->server_name);
    return &handshake->msg;
}

const weir_tls_handshake *weir_tls_handshake_of(const weir_msg *event)
{
    return weir_msg_is(event, &handshake_type) ? (const weir_tls_handshake *)(const void *)event
                                               : NULL;
}

int weir_tls_handshake_result(const weir_tls_handshake *handshake)
{
    return handshake->result;
}

const char *weir_tls_handshake_detail(const weir_tls_handshake *handshake)
{
    return handshake->detail;
}

const char *weir_tls_handshake_version(const weir_tls_handshake *handshake)
{
    return handshake->version;
}

const char *weir_tls_handshake_cipher(const weir_tls_handshake *handshake)
{
    return handshake->cipher;
}

const char *weir_tls_handshake_alpn(const weir_tls_handshake *handshake)
{
    return handshake->alpn;
}

const char *weir_tls_handshake_server_name(const weir_tls_handshake *handshake)
{
    return handshake->server_name;
}

bool weir_tls_handshake_is_resumed(const weir_tls_handshake *handshake)
{
    return handshake->is_resumed;
}

bool weir_tls_handshake_is_stapled(const weir_tls_handshake *handshake)
{
    return handshake->is_stapled;
}

weir_tls_certificate *weir_tls_handshake_peer(const weir_tls_handshake *handshake)
{
    return handshake->peer;
}
