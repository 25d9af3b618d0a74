/* SPDX-License-Identifier: Apache-2.0 */
#include "balancer.h"

#include <errno.h>
#include <stdlib.h>

#include "announce.h"
#include "support/tls.h"

/* ---- connecting, until an upstream answers ---- */

/* One client. Runs on the client's loop. */
struct search {
    struct balancer *balancer;
    weir_channel *front; /* retained */
    weir_init_fn *init;  /* adds the relay to a connection */
    weir_promise
        *connected; /* retained; the relay waits for it, and cancels it if the client goes */
    struct upstream *upstream;
    uint64_t tried;
    weir_listener listener;
};

static void end_search(struct search *self)
{
    weir_promise_release(self->connected);
    weir_channel_release(self->front);
    free(self);
}

static void release_channel(void *channel)
{
    weir_channel_release(channel);
}

static int init_back(weir_channel *back, void *user_data)
{
    const struct search *self = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(back);
    int err = upstream_count(self->upstream, pipeline);

    if (!err)
        err = announce(pipeline, self->balancer->proxy_version, self->front);
    return err ? err : self->init(back, self->front);
}

static int connect_upstream(struct search *self, weir_promise **ret_connecting)
{
    const weir_channel_options *options =
        RELAY_OPTIONS_WITH(.drain_waits = true,
                           .connect_timeout_ns = self->balancer->connect_timeout_ns);

    return weir_client_connect(WEIR_CLIENT_OPTIONS(.loop = weir_channel_executor(self->front),
                                                   .address = self->upstream->address,
                                                   .init = init_back, .user_data = self,
                                                   .options = options),
                               ret_connecting);
}

static void on_connected(weir_promise *connecting, void *user_data);

/* doc:begin search */
static void try_next(struct search *self)
{
    weir_promise *connecting;
    int err = -ECONNREFUSED;

    while ((self->upstream = upstreams_choose(&self->balancer->upstreams, &self->tried)) != NULL) {
        err = connect_upstream(self, &connecting);
        if (err == 0) {
            self->listener = (weir_listener){.fn = on_connected, .user_data = self};
            weir_promise_listen(connecting, &self->listener);
            return;
        }
    }
    (void)weir_promise_fail(self->connected, err, "no upstream answers");
    end_search(self);
}

static void on_connected(weir_promise *connecting, void *user_data)
{
    struct search *self = user_data;
    weir_channel *back = weir_promise_value(connecting);

    if (back == NULL && !weir_promise_is_done(self->connected)) {
        weir_log_write(WEIR_LOG_INFO, "upstream", self->upstream->address, "did not answer: %s",
                       weir_promise_detail(connecting));
        try_next(self);
    } else {
        if (back != NULL && weir_promise_succeed_with(self->connected, weir_channel_retain(back),
                                                      release_channel) < 0)
            weir_channel_close(back, NULL); /* the client has closed meanwhile */
        end_search(self);
    }
    weir_promise_release(connecting);
}
/* doc:end */

static int connect_any(weir_channel *front, weir_init_fn *init, void *user_data,
                       weir_promise **ret_connecting)
{
    struct search *self = calloc(1, sizeof(*self));
    int err;

    if (self == NULL)
        return -ENOMEM;
    err = weir_promise_create(weir_channel_executor(front), &self->connected);
    if (err) {
        free(self);
        return err;
    }
    self->balancer = user_data;
    self->front = weir_channel_retain(front);
    self->init = init;
    *ret_connecting = weir_promise_retain(self->connected);
    try_next(self);
    return 0;
}

/* ---- clients ---- */

/* Added after TLS: connects to an upstream only after a successful handshake. */
struct secured {
    struct balancer *balancer;
};

static int init_secured(void *state, const void *options)
{
    *(struct secured *)state = *(const struct secured *)options;
    return 0;
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const struct secured *self = weir_ctx_state(ctx);
    bool is_open = tls_is_open(event);

    if (is_open && relay_init_with(weir_ctx_channel(ctx), connect_any, self->balancer) < 0)
        weir_close(ctx, NULL);
    weir_fire_event(ctx, event);
    if (is_open)
        weir_ctx_remove(ctx);
}

static const weir_handler secured = {
    .name = "secured",
    .state_size = sizeof(struct secured),
    .init = init_secured,
    .event = on_event,
};

int balancer_init(weir_channel *front, void *user_data)
{
    struct balancer *balancer = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(front);
    int err;

    if (balancer->tls == NULL)
        return relay_init_with(front, connect_any, balancer);
    err = tls_add(pipeline, balancer->tls);
    return err ? err
               : weir_pipeline_add_last(pipeline, &secured,
                                        &(const struct secured){.balancer = balancer});
}
