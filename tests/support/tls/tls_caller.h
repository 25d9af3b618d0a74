/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS client: it sends a text after the handshake, and closes when it has received as many bytes.
 *
 *     struct tls_call call = {.tls = client, .text = "hello"};
 *     tls_call_run(group, server, &call);
 *     assert_string_equal(call.received, "hello");
 */
#ifndef WEIR_TEST_TLS_CALLER_H
#define WEIR_TEST_TLS_CALLER_H

#include <weir/channel.h>
#include <weir/group.h>
#include <weir/handler.h>
#include <weir/server.h>
#include <weir/tls_context.h>

struct tls_call {
    weir_tls_context *tls;
    const char *server_name; /* NULL = "localhost" */
    const char *text;
    bool starts_plainly; /* sends "STARTTLS", and starts TLS after the answer */
    char received[1024];
    char subject[256]; /* the server's */
    int result;        /* of the handshake */
    char alpn[64];     /* negotiated by it */
    char detail[256];
};

/* Connects, and waits until it has closed. */
void tls_call_run(weir_group *group, const weir_server *server, struct tls_call *call);

/* Writes and flushes a text: for any handler. */
void tls_send_text(weir_ctx *ctx, const char *text);

#endif
