/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bootstrap/echo_service.h"

#include <weir/error.h>
#include <weir/pipeline.h>

#include "support/executor/group.h"
#include "support/test.h"

struct state {
    struct echo_service *service;
};

static struct echo_service *service_of(weir_ctx *ctx)
{
    return ((struct state *)weir_ctx_state(ctx))->service;
}

static int init(void *state, const void *options)
{
    *(struct state *)state = *(const struct state *)options;
    return 0;
}

static void on_active(weir_ctx *ctx)
{
    struct echo_service *service = service_of(ctx);
    uint32_t number = atomic_fetch_add(&service->placed, 1);

    if (number < ECHO_SERVICE_CHILDREN_MAX)
        service->loops[number] = weir_ctx_executor(ctx);
    call_counter_add(&service->opened);
    weir_fire_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    call_counter_add(&service_of(ctx)->closed);
    weir_fire_inactive(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_draining(weir_ctx *ctx)
{
    call_counter_add(&service_of(ctx)->drained);
}

static const weir_handler echo = {
    .name = "echo",
    .state_size = sizeof(struct state),
    .init = init,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
};

static const weir_handler stubborn = {
    .name = "stubborn",
    .state_size = sizeof(struct state),
    .init = init,
    .draining = on_draining,
};

int echo_service_init(weir_channel *channel, void *arg)
{
    struct echo_service *service = arg;
    const struct state options = {service};
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &echo, &options);

    if (err == 0 && service->drains_itself)
        err = weir_pipeline_add_last(pipeline, &stubborn, &options);
    return err < 0 ? err : service->init_err;
}

int echo_service_try(struct echo_service *service, const weir_server_options *given,
                     weir_server **ret_server)
{
    const weir_channel_options *child_options =
        WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(200));
    weir_server_options options = *given;

    options.user_data = service;
    if (options.init_child == NULL)
        options.init_child = echo_service_init;
    if (options.child_options == NULL)
        options.child_options = child_options;
    if (options.address == NULL && options.addresses == NULL)
        options.address = "127.0.0.1:0";
    return weir_server_start(&options, ret_server);
}

weir_server *echo_service_start(struct echo_service *service, const weir_server_options *options)
{
    weir_server *server = NULL;

    assert_int_equal(echo_service_try(service, options, &server), 0);
    return server;
}

void echo_service_stop(weir_server *server)
{
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
}
