/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/admission.h"

#include <weir/error.h>
#include <weir/handler.h>
#include <weir/pipeline.h>

#include "base/log.h"
#include "channel/channel.h"

static weir__admission_state *state_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

int weir__admission_init(void *state, const void *options)
{
    weir__admission_state *own = state;

    *own = *(const weir__admission_state *)options;
    own->admission->retain(own->shared);
    return 0;
}

void weir__admission_deinit(void *state)
{
    weir__admission_state *own = state;

    if (own->is_admitted && own->admission->leave != NULL)
        own->admission->leave(own->shared, own->ticket);
    own->admission->release(own->shared);
}

/* ---- connections ---- */

static void log_rejection(const weir__admission *admission, const weir_address *peer)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir__log_note note;

    if (weir__log_admit(admission->rejections, WEIR_LOG_INFO, &note))
        weir__info(admission->connection.name, weir_address_format(peer, text, sizeof(text)),
                   "rejected%s", note.text);
}

/* Checks the peer, and aborts the channel if it is rejected. A peer without an address has length
 * 0. */
static bool admit(weir_ctx *ctx)
{
    weir__admission_state *state = state_of(ctx);
    weir_address peer;

    if (weir_channel_remote_address(weir_ctx_channel(ctx), &peer) < 0)
        peer.length = 0;
    state->is_admitted = state->admission->enter(state->shared, &peer, &state->ticket);
    state->is_rejected = !state->is_admitted;
    if (state->is_admitted)
        return true;
    log_rejection(state->admission, &peer);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
    return false;
}

static void remove_if_done(weir_ctx *ctx)
{
    if (state_of(ctx)->admission->leave == NULL)
        weir_ctx_remove(ctx);
}

void weir__admission_added(weir_ctx *ctx)
{
    if (weir_channel_is_active(weir_ctx_channel(ctx)) && admit(ctx))
        remove_if_done(ctx);
}

void weir__admission_active(weir_ctx *ctx)
{
    weir__admission_state *state = state_of(ctx);

    if (!state->is_admitted && (state->is_rejected || !admit(ctx))) {
        state->active_withheld = true;
        return;
    }
    weir_fire_active(ctx);
    if (!weir_ctx_is_removed(ctx))
        remove_if_done(ctx);
}

/* Handlers that have not seen `active` do not see `inactive` either. */
void weir__admission_inactive(weir_ctx *ctx)
{
    if (!state_of(ctx)->active_withheld)
        weir_fire_inactive(ctx);
}

/* ---- operations that may precede `active` ---- */

static void admit_early(weir_ctx *ctx)
{
    const weir__admission_state *state = state_of(ctx);

    if (!state->is_admitted && !state->is_rejected && weir_channel_is_active(weir_ctx_channel(ctx)))
        (void)admit(ctx);
}

void weir__admission_flush(weir_ctx *ctx)
{
    admit_early(ctx);
    weir_flush(ctx);
}

void weir__admission_close(weir_ctx *ctx, weir_promise *done)
{
    admit_early(ctx);
    weir_close(ctx, done);
}

void weir__admission_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    admit_early(ctx);
    weir_shutdown_output(ctx, done);
}

/* ---- listeners ---- */

void weir__admission_accepted(weir_ctx *ctx, weir_msg *msg)
{
    static weir__log_limit failures;
    weir__log_note note;
    weir__admission_state *state = state_of(ctx);
    weir_channel *connection = weir_channel_of(msg);
    int err = 0;

    if (connection != NULL)
        err = weir_pipeline_add_first(weir_channel_pipeline(connection),
                                      &state->admission->connection, state);
    if (err == 0) {
        weir_fire_read(ctx, msg);
        return;
    }
    if (weir__log_admit(&failures, WEIR_LOG_WARN, &note))
        weir__warn(state->admission->listener.name, "-", "closing a connection: %s%s",
                   weir_error_text(err), note.text);
    weir_channel_abort(connection, NULL);
    weir_msg_release(msg);
}

int weir__admission_add(weir_pipeline *pipeline, const weir__admission *admission, void *shared)
{
    bool accepts = weir_pipeline_channel(pipeline)->transport->accepts;

    return weir_pipeline_add_last(
        pipeline, accepts ? &admission->listener : &admission->connection,
        &(const weir__admission_state){.admission = admission, .shared = shared});
}
