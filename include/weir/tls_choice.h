/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls_choice.h - a client has said which server it wants; somebody decides what it gets.
 *
 *      static void choose(weir_tls_choice *choice, void *user_data)
 *      {
 *          look_up(user_data, weir_tls_choice_server_name(choice), choice);   calls back some time
 *      }
 *
 * The handshake waits meanwhile, and its time limit holds. A connection that ends before may still
 * be decided upon: that has no effect. A decision made on another thread that there is no memory to
 * pass on is lost: then the time limit ends the handshake.
 */
#ifndef WEIR_TLS_CHOICE_H
#define WEIR_TLS_CHOICE_H

#include <weir/tls_context.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The name that the client asks for, in lower case and without a dot at its end; "" if it has none.
 * Thread: any, before it is decided.
 */
WEIR_API const char *weir_tls_choice_server_name(const weir_tls_choice *choice);

/*
 * The protocols that the client offers, by commas; "" if none.
 * Thread: any, before it is decided.
 */
WEIR_API const char *weir_tls_choice_alpn(const weir_tls_choice *choice);

/*
 * The client gets this context, of a server; NULL = the one that was asked.
 * Thread: any.  Takes: choice.  Keeps: context.
 */
WEIR_API void weir_tls_choice_accept(weir_tls_choice *choice, weir_tls_context *context);

/*
 * The client is refused: it hears "unrecognized name", our own handlers hear `reason`.
 * Thread: any.  Takes: choice.
 */
WEIR_API void weir_tls_choice_refuse(weir_tls_choice *choice, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
