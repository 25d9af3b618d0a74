/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <weir/error.h>
#include <weir/pipeline.h>

#include "base/options.h"
#include "tls/first_bytes.h"
#include "tls/tls_hello.h"
#include "tls/tls_reason.h"

struct hello_handler {
    weir__first_bytes base; /* first */
    weir__tls_hello_scan scan;
    weir_tls_hello_fn *on_hello;
    void *user_data;
};

static int init(void *state, const void *options)
{
    const weir_tls_hello_options *given = options;
    struct hello_handler *self = state;

    self->on_hello = given->on_hello;
    self->user_data = given->user_data;
    return weir__first_bytes_init(&self->base, given->timeout_ns);
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct hello_handler *self = weir_ctx_state(ctx);
    weir_span bytes = {weir_buf_bytes(in), weir_buf_readable(in)};
    const char *why = NULL;
    weir_tls_hello hello;
    size_t need;
    int result;

    (void)ret_msg;
    if (self->base.has_failed)
        return weir__first_bytes_fail(ctx, in, 0, NULL);
    result = weir__tls_hello_scan_read(&self->scan, bytes, &hello, &need, &why);
    if (result == 0)
        return weir_decoder_need(ctx, need);
    if (result > 0) {
        result = self->on_hello(ctx, &hello, self->user_data);
        why = "the hello was rejected";
    }
    return result < 0 ? weir__first_bytes_fail(ctx, in, result, why) : weir__first_bytes_pass(ctx);
}

static const weir_decoder hello_decoder = {
    .handler = {.name = "tls-hello",
                .stays_on_loop = true,
                WEIR__FIRST_BYTES_SLOTS(struct hello_handler),
                .init = init},
    .decode = decode,
    .decode_last = weir__first_bytes_end,
    .is_urgent = weir__first_bytes_is_urgent,
};

int weir_tls_hello_add(weir_pipeline *pipeline, const weir_tls_hello_options *options)
{
    weir_tls_hello_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0 && own.on_hello == NULL)
        err = weir__options_reject("tls-hello", NULL, "no on_hello function");
    if (err == 0)
        err = weir_pipeline_add_last(pipeline, &hello_decoder.handler, &own);
    return err < 0 ? weir__tls_fail_add(err) : 0;
}
