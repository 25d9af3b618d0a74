/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At most two bytes decide: TLS begins with a handshake record (22) of version 3.x.
 */
#include <weir/tls.h>

#include <errno.h>

#include "base/options.h"
#include "tls/first_bytes.h"
#include "tls/tls_context.h"
#include "tls/tls_reason.h"

#define RECORD_HANDSHAKE 22
#define RECORD_MAJOR 3

struct detector {
    weir__first_bytes base; /* first */
    weir_tls_context *context;
    weir_tls_options tls; /* points to nothing but the group, which is retained */
    weir_tls_detect_fn *init;
    void *user_data;
};

/* Options that only make sense for a handler that is added by itself must not be set. */
static bool are_valid(const weir_tls_options *tls)
{
    return tls->server_name == NULL && !tls->start_tls && tls->handshake == NULL &&
           tls->place == NULL;
}

static int init(void *state, const void *options)
{
    const weir_tls_detect_options *given = options;
    struct detector *detector = state;
    int err = weir__options_read(&detector->tls, sizeof(detector->tls), given->tls);

    if (err == 0 && !are_valid(&detector->tls))
        err = weir__options_reject("tls-detect", NULL,
                                   "tls.server_name, .start_tls, .handshake and .place must not "
                                   "be set");
    if (err == 0)
        err = weir__first_bytes_init(&detector->base, given->timeout_ns);
    if (err < 0)
        return err;
    detector->context = weir_tls_context_retain(given->context);
    detector->init = given->init;
    detector->user_data = given->user_data;
    if (detector->tls.offload != NULL)
        weir_group_retain(detector->tls.offload);
    return 0;
}

static void deinit(void *state)
{
    struct detector *detector = state;

    weir_group_release(detector->tls.offload);
    weir_tls_context_release(detector->context);
}

static int add_handlers(weir_ctx *ctx, bool is_tls)
{
    struct detector *detector = weir_ctx_state(ctx);
    weir_tls_options tls = detector->tls;
    int err = 0;

    tls.place = WEIR_PLACE(.after = weir_ctx_name(ctx));
    if (is_tls)
        err = weir_tls_add_with(weir_ctx_pipeline(ctx), detector->context, &tls);
    return err < 0 ? err : detector->init(weir_ctx_channel(ctx), is_tls, detector->user_data);
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct detector *detector = weir_ctx_state(ctx);
    const uint8_t *bytes = weir_buf_bytes(in);
    bool may_be_tls = bytes[0] == RECORD_HANDSHAKE;
    int err;

    (void)ret_msg;
    if (detector->base.has_failed)
        return weir__first_bytes_fail(ctx, in, 0, NULL);
    if (may_be_tls && weir_buf_readable(in) < 2)
        return weir_decoder_need(ctx, 2);
    err = add_handlers(ctx, may_be_tls && bytes[1] == RECORD_MAJOR);
    if (err < 0)
        return weir__first_bytes_fail(ctx, in, err, "the handlers could not be added");
    return weir__first_bytes_pass(ctx);
}

static const weir_decoder detector_decoder = {
    .handler = {.name = "tls-detect",
                .stays_on_loop = true,
                WEIR__FIRST_BYTES_SLOTS(struct detector),
                .init = init,
                .deinit = deinit},
    .decode = decode,
    .decode_last = weir__first_bytes_end,
    .is_urgent = weir__first_bytes_is_urgent,
};

int weir_tls_detect_add(weir_pipeline *pipeline, const weir_tls_detect_options *options)
{
    weir_tls_detect_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0 && own.init == NULL)
        err = weir__options_reject("tls-detect", NULL, "no init function");
    if (err == 0 && (own.context == NULL || !weir__tls_context_is_server(own.context)))
        err = weir__options_reject("tls-detect", NULL, "no server context");
    if (err == 0)
        err = weir_pipeline_add_last(pipeline, &detector_decoder.handler, &own);
    return err < 0 ? weir__tls_fail_add(err) : 0;
}
