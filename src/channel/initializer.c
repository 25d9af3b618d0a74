/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler behind weir_pipeline_add_initializer: it adds a channel's handlers once and removes
 * itself. While it runs, handlers that are added last are inserted before it, so they take its
 * position, also if others follow it or if it adds initializers itself.
 */
#include "channel/channel.h"
#include "channel/pipeline_change.h"

#include <weir/error.h>

#include "base/log.h"
#include "base/log_limit.h"

struct initializer {
    int (*init)(weir_channel *channel, void *user_data);
    void *user_data;
};

/* The initializer that runs on this thread, or NULL. */
static _Thread_local weir_ctx *running __attribute__((tls_model("initial-exec")));

weir_ctx *weir__initializer_anchor(weir_pipeline *pipeline)
{
    return running != NULL && running->channel == pipeline->head_tail.channel
               ? running
               : &pipeline->head_tail;
}

static int init(void *state, const void *options)
{
    *(struct initializer *)state = *(const struct initializer *)options;
    return 0;
}

static void log_failure(weir_channel *channel, int err)
{
    static weir__log_limit limit;
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];
    weir__log_note note;

    if (weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("channel", weir__channel_log_name(channel, name),
                   "closed: its initializer failed: %s%s", weir_error_text(err), note.text);
}

static void on_added(weir_ctx *ctx)
{
    struct initializer *initializer = weir_ctx_state(ctx);
    weir_ctx *outer = running;
    int err;

    running = ctx;
    err = initializer->init(ctx->channel, initializer->user_data);
    running = outer;
    weir_ctx_remove(ctx);
    if (err == 0)
        return;
    log_failure(ctx->channel, err);
    weir__channel_do_abort(ctx->channel, NULL, err);
}

const weir_handler weir__initializer = {
    .name = "initializer",
    .state_size = sizeof(struct initializer),
    .init = init,
    .added = on_added,
};

int weir_pipeline_add_initializer(weir_pipeline *pipeline,
                                  int (*init_channel)(weir_channel *channel, void *user_data),
                                  void *user_data)
{
    return weir_pipeline_add_last(
        pipeline, &weir__initializer,
        &(const struct initializer){.init = init_channel, .user_data = user_data});
}
