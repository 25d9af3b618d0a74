/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/local_promise.h"

int weir__local_promise(weir_ctx *ctx, weir_promise *done, weir_promise **ret_promise)
{
    weir_executor *executor = weir_ctx_executor(ctx);
    weir_promise *promise;
    int err;

    if (done != NULL && weir_promise_executor(done) == executor) {
        *ret_promise = weir_promise_retain(done);
        return 0;
    }
    err = weir_promise_create(executor, &promise);
    if (err == 0 && done != NULL) {
        err = weir_promise_cascade(promise, done);
        if (err < 0)
            weir_promise_release(promise);
    }
    if (err == 0)
        *ret_promise = promise;
    return err;
}
