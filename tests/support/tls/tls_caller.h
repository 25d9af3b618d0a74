/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that calls a TLS server: it says something when the handshake is over, and closes when
 * it has heard as much.
 *
 *     struct call call = {.tls = client, .text = "hello"};
 *     call_make(group, server, &call);
 *     assert_string_equal(call.heard, "hello");
 */
#ifndef WEIR_TEST_TLS_CALLER_H
#define WEIR_TEST_TLS_CALLER_H

#include <weir/channel.h>
#include <weir/group.h>
#include <weir/handler.h>
#include <weir/server.h>
#include <weir/tls_context.h>

struct call {
    weir_tls_context *tls;
    const char *server_name; /* NULL = "localhost" */
    const char *text;
    bool starts_plainly; /* says "STARTTLS", and begins with the answer */
    char heard[256];
    char subject[256]; /* the server's */
    int result;        /* of the handshake */
    char detail[256];
};

/* Connects, and waits until it has closed. */
void call_make(weir_group *group, const weir_server *server, struct call *call);

/* Writes and flushes a text: for any handler. */
void call_say(weir_ctx *ctx, const char *text);

#endif
