/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promise of a write that a handler wants to hear of.
 */
#ifndef WEIR_HANDLER_LOCAL_PROMISE_H
#define WEIR_HANDLER_LOCAL_PROMISE_H

#include <weir/handler.h>

/*
 * What to pass on in place of `done`: a promise whose listeners run on the handler's executor. It
 * is `done` itself where that suits, otherwise a new one, which completes `done`, if there is one.
 * Gives: ret_promise. Fails with -ENOMEM.
 */
int weir__local_promise(weir_ctx *ctx, weir_promise *done, weir_promise **ret_promise);

#endif
