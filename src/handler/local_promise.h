/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A promise whose listeners run on the handler's executor.
 */
#ifndef WEIR_HANDLER_LOCAL_PROMISE_H
#define WEIR_HANDLER_LOCAL_PROMISE_H

#include <weir/handler.h>

/*
 * Creates the promise to pass on in place of `done`: `done` itself if it belongs to the handler's
 * executor, else a new one that completes `done`, which may be NULL. Gives: ret_promise. Fails with
 * -ENOMEM.
 */
int weir__local_promise(weir_ctx *ctx, weir_promise *done, weir_promise **ret_promise);

#endif
