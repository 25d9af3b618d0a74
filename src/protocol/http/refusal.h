/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refusing requests.
 */
#ifndef WEIR_PROTOCOL_HTTP_REFUSAL_H
#define WEIR_PROTOCOL_HTTP_REFUSAL_H

#include <weir/handler.h>
#include <weir/http.h>

/* Fires the event that a request was refused, and logs it. `detail` is a string literal. */
void weir__http_refusal_fire(weir_ctx *ctx, int status, const char *detail);

/*
 * Creates the answer to a refused request, which ends the connection: the status, and `detail` and
 * a newline as text. Fails with -ENOMEM.
 */
int weir__http_refusal_answer(int status, const char *detail, weir_http_response **ret_response,
                              weir_buf **ret_content);

/* Writes that answer with its end towards the head, and flushes. Fails with -ENOMEM. */
int weir__http_refusal_write(weir_ctx *ctx, int status, const char *detail);

#endif
