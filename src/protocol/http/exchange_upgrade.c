/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upgrades: another protocol takes a connection over.
 *
 *      the 101 and its end are written      the filters see them; the codec switches, removes
 *                                           itself, and passes on the bytes behind the request
 *      bytes arrive, or the 101 was sent    the filters and the exchanges are removed, and `init`
 *                                           adds its handlers, before the bytes are passed on
 *
 * A handler of init_connection may run on another executor: then the codec sees the end later than
 * it is written. So the upgrade waits for a sign that it has.
 */
#include <errno.h>

#include <weir/error.h>

#include "base/log.h"
#include "protocol/http/exchange.h"
#include "protocol/http/filters.h"
#include "protocol/http/reset.h"

/* `user_data` is a reference to the context. */
static void on_written(weir_promise *written, void *user_data)
{
    weir_ctx *ctx = user_data;

    if (weir_promise_result(written) < 0)
        weir__http_reset(weir_ctx_channel(ctx)); /* which cancels it */
    else if (!weir_ctx_is_removed(ctx))
        weir__http_upgrade_finish(ctx);
    weir_ctx_release(ctx);
}

int weir__http_upgrade_begin(weir_ctx *ctx, const struct weir__exchange_upgrade *upgrade,
                             weir_promise **ret_written)
{
    struct weir__exchange_connection *connection = weir_ctx_state(ctx);
    int err = weir_promise_create(weir_ctx_executor(ctx), ret_written);

    if (err < 0)
        return err;
    err = weir_promise_add_listener(*ret_written, on_written, ctx);
    if (err < 0) {
        weir_promise_release(*ret_written);
        return err;
    }
    (void)weir_ctx_retain(ctx);
    connection->upgrade = *upgrade;
    return 0;
}

void weir__http_upgrade_finish(weir_ctx *ctx)
{
    struct weir__exchange_connection *connection = weir_ctx_state(ctx);
    struct weir__exchange_upgrade upgrade = connection->upgrade;
    weir_channel *channel = weir_ctx_channel(ctx);
    bool is_draining = connection->is_draining;
    int err;

    if (upgrade.init == NULL)
        return;
    connection->upgrade.init = NULL;
    weir__http_filters_remove(weir_ctx_pipeline(ctx));
    weir_ctx_remove(ctx);
    err = upgrade.init(channel, upgrade.user_data);
    if (err < 0) {
        weir__warn_limited("http", "upgrade", "init failed, the connection is reset: %s",
                           weir_error_text(err));
        weir__http_reset(channel);
    } else if (is_draining) {
        weir_fire_draining(ctx);
    }
}

void weir__http_upgrade_cancel(weir_channel *channel, struct weir__exchange_upgrade *upgrade)
{
    weir_init_fn *init = upgrade->init;

    if (init == NULL)
        return;
    upgrade->init = NULL;
    weir__http_reset(channel); /* if the request was refused, the channel may still be closing */
    (void)init(channel, upgrade->user_data);
}

int weir_http_exchange_upgrade(weir_http_exchange *exchange, weir_init_fn *init, void *user_data)
{
    const weir_http_request *request = exchange->request;

    if (init == NULL || weir_http_request_content_length(request) != 0)
        return -EINVAL;
    if (weir_http_request_version(request) != WEIR_HTTP_1_1)
        return -ENOTSUP;
    return weir__http_exchange_respond_upgrade(
        exchange, &(struct weir__exchange_upgrade){.init = init, .user_data = user_data});
}
