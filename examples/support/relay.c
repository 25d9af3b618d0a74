/* SPDX-License-Identifier: Apache-2.0 */
#include "support/relay.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

struct relay {
    relay_connect_fn *connect; /* NULL = this is the back */
    void *user_data;           /* of connect */
    weir_promise *connecting;  /* the front's */
    weir_channel *other;       /* retained; NULL in the front before it is connected */
    weir_composite *early;     /* data read before; NULL = none */
    bool input_ended;
    bool output_ended;
};

static const weir_handler relay;

static int init(void *state, const void *options)
{
    struct relay *self = state;

    *self = *(const struct relay *)options;
    if (self->other != NULL)
        weir_channel_retain(self->other);
    return 0;
}

static void deinit(void *state)
{
    struct relay *self = state;

    weir_promise_release(self->connecting);
    weir_composite_release(self->early);
    weir_channel_release(self->other);
}

/* ---- the front connects ---- */

/* Data read before goes first. */
static void join(struct relay *self, weir_channel *front, weir_channel *back)
{
    self->other = weir_channel_retain(back);
    if (self->early != NULL)
        weir_channel_write_and_flush(back, weir_composite_msg(self->early), NULL);
    self->early = NULL;
    if (self->input_ended)
        weir_channel_shutdown_output(back, NULL);
    weir_channel_set_auto_read(front, true);
    weir_channel_set_auto_read(back, true);
}

/* On the loop of both. */
static void on_connected(weir_promise *connecting, void *user_data)
{
    weir_channel *front = user_data, *back = weir_promise_value(connecting);
    weir_ctx *ctx = weir_pipeline_find_handler(weir_channel_pipeline(front), &relay);

    if (ctx != NULL && back != NULL) {
        join(weir_ctx_state(ctx), front, back);
    } else if (back != NULL) {
        weir_channel_close(back, NULL); /* the client has closed */
    } else {
        if (weir_channel_is_open(front))
            fprintf(stderr, "%s: %s\n", program_invocation_short_name,
                    weir_promise_detail(connecting));
        weir_channel_close(front, NULL);
    }
    weir_channel_release(front);
}

int relay_init_back(weir_channel *channel, void *front)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &relay,
                                  &(const struct relay){.other = front});
}

/* doc:begin connect */
static int connect_to_address(weir_channel *front, weir_init_fn *init_relay, void *address,
                              weir_promise **ret_connecting)
{
    return weir_client_connect(WEIR_CLIENT_OPTIONS(.loop = weir_channel_executor(front),
                                                   .address = address, .init = init_relay,
                                                   .user_data = front, .options = RELAY_OPTIONS),
                               ret_connecting);
}

static void connect_back(weir_ctx *ctx)
{
    struct relay *self = weir_ctx_state(ctx);
    weir_channel *front = weir_ctx_channel(ctx);
    int err;

    if (self->connect == NULL)
        return;
    err = self->connect(front, relay_init_back, self->user_data, &self->connecting);
    if (err == 0) {
        err = weir_promise_add_listener(self->connecting, on_connected, weir_channel_retain(front));
        if (err < 0)
            weir_channel_release(front);
    }
    if (err < 0)
        weir_fire_error(ctx, err, "the target cannot be connected to");
}
/* doc:end */

static void on_added(weir_ctx *ctx)
{
    if (weir_channel_is_active(weir_ctx_channel(ctx)))
        connect_back(ctx);
}

/* Data that was read to find the target. */
static void keep(weir_ctx *ctx, weir_msg *msg)
{
    struct relay *self = weir_ctx_state(ctx);
    int err = self->early == NULL ? weir_composite_create(SIZE_MAX, &self->early) : 0;

    if (err)
        weir_msg_release(msg);
    else
        err = weir_composite_add(self->early, msg);
    if (err)
        weir_fire_error(ctx, err, NULL);
}

/* ---- both relay ---- */

/* doc:begin relay */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct relay *self = weir_ctx_state(ctx);

    if (self->other != NULL)
        weir_channel_write(self->other, msg, NULL);
    else
        keep(ctx, msg);
}

static void on_read_complete(weir_ctx *ctx)
{
    struct relay *self = weir_ctx_state(ctx);

    if (self->other != NULL)
        weir_channel_flush(self->other);
}

/* A full channel pauses reading from the other, and so its peer. */
static void on_writability(weir_ctx *ctx)
{
    weir_channel_set_auto_read(((struct relay *)weir_ctx_state(ctx))->other,
                               weir_ctx_is_writable(ctx));
}
/* doc:end */

/* doc:begin ends */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct relay *self = weir_ctx_state(ctx);

    if (event == weir_event_input_closed()) {
        self->input_ended = true;
        if (self->other != NULL)
            weir_channel_shutdown_output(self->other, NULL);
    } else if (event == weir_event_output_closed()) {
        self->output_ended = true;
    }
    if (self->input_ended && self->output_ended)
        weir_close(ctx, NULL);
    weir_msg_release(event);
}
/* doc:end */

static void on_inactive(weir_ctx *ctx)
{
    struct relay *self = weir_ctx_state(ctx);

    if (self->connecting != NULL)
        (void)weir_promise_cancel(self->connecting); /* ignored if it is complete */
    if (self->other != NULL)
        weir_channel_close(self->other, NULL);
}

/* By a reset, without TLS close_notify. The option of the socket needs no memory. */
static void break_off(weir_channel *channel)
{
    const struct linger none = {.l_onoff = 1};

    (void)weir_channel_set_socket_option(channel, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    weir_channel_abort(channel, NULL);
}

/* A broken connection is not worth a message; but neither what was read from it nor what could not
 * be written to it must look complete. */
static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct relay *self = weir_ctx_state(ctx);

    (void)err;
    (void)detail;
    if (self->other != NULL && !self->input_ended)
        break_off(self->other);
    if (self->output_ended)
        weir_close(ctx, NULL);
    else
        break_off(weir_ctx_channel(ctx));
}

static const weir_handler relay = {
    .name = "relay",
    .state_size = sizeof(struct relay),
    .init = init,
    .deinit = deinit,
    .added = on_added,
    .active = connect_back,
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
    .event = on_event,
    .inactive = on_inactive,
    .error = on_error,
};

int relay_init(weir_channel *channel, void *target)
{
    return relay_init_with(channel, connect_to_address, target);
}

int relay_init_with(weir_channel *channel, relay_connect_fn *connect, void *user_data)
{
    return weir_pipeline_add_last(
        weir_channel_pipeline(channel), &relay,
        &(const struct relay){.connect = connect, .user_data = user_data});
}

weir_channel *relay_other(weir_channel *channel)
{
    weir_ctx *ctx = weir_pipeline_find_handler(weir_channel_pipeline(channel), &relay);

    return ctx != NULL ? ((struct relay *)weir_ctx_state(ctx))->other : NULL;
}
