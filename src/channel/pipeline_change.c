/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of a pipeline: at once on the loop and before the first registration, otherwise as a
 * posted call. `init` runs in the caller either way.
 */
#include "channel/pipeline_change.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "channel/border.h"
#include "channel/channel.h"
#include "channel/mailbox.h"
#include "channel/offload_blocking.h"
#include "executor/group.h"

/* ---- posted changes ---- */

/* A change on its way to the loop, followed by its anchor. */
struct change {
    weir_ctx *ctx; /* NULL = only remove the anchor */
    weir__position position;
    char anchor[];
};

static struct change *change_create(weir_ctx *ctx, const weir__position *position)
{
    size_t size = position->anchor != NULL ? strlen(position->anchor) + 1 : 0;
    struct change *change = weir__alloc(sizeof(*change) + size);

    if (change == NULL)
        return NULL;
    change->ctx = ctx;
    change->position = *position;
    if (position->group != NULL)
        weir_group_retain(position->group);
    if (size > 0) {
        memcpy(change->anchor, position->anchor, size);
        change->position.anchor = change->anchor;
    }
    return change;
}

static void change_free(struct change *change)
{
    weir_group_release(change->position.group);
    weir__free(change);
}

static void complete(weir_promise *done, int err)
{
    if (done == NULL)
        return;
    if (err < 0)
        (void)weir_promise_fail(done, err, NULL);
    else
        (void)weir_promise_succeed(done, NULL);
}

/* A handler behind the border is removed there: the promise waits for that. */
static int remove_named(weir_pipeline *pipeline, const char *name, weir_promise *done)
{
    weir_ctx *ctx = weir_pipeline_find(pipeline, name);
    weir__resident *resident;

    if (ctx == NULL) {
        complete(done, -ENOENT);
        return -ENOENT;
    }
    resident = weir__border_find(weir__channel_border(ctx->channel), ctx);
    if (resident != NULL && resident->was_added) {
        resident->left = done != NULL ? weir_promise_retain(done) : NULL;
        done = NULL;
    }
    weir__pipeline_remove(ctx);
    complete(done, 0);
    return 0;
}

static int apply(weir_pipeline *pipeline, weir_ctx *ctx, const weir__position *position,
                 weir_promise *done)
{
    int err;

    if (ctx == NULL)
        return remove_named(pipeline, position->anchor, done);
    err = weir__pipeline_insert(pipeline, ctx, position);
    if (err < 0)
        weir__ctx_destroy(ctx);
    complete(done, err);
    return err;
}

static void finish(weir__call *call, int err)
{
    struct change *change = call->arg;

    if (err < 0 && err != -ENOMEM && call->done == NULL)
        weir__warn_limited("pipeline", change->position.anchor,
                           "a change posted by another thread failed: %s", weir_error_text(err));
    change_free(change);
}

static void discard(weir_ctx *ctx, weir_promise *done, int err)
{
    if (ctx != NULL)
        weir__ctx_destroy(ctx);
    complete(done, err);
}

static void run_change(weir_channel *channel, weir__call *call)
{
    struct change *change = call->arg;

    finish(call, apply(&channel->pipeline, change->ctx, &change->position, call->done));
}

static void fail_change(weir_channel *channel, weir__call *call, int err)
{
    struct change *change = call->arg;

    (void)channel;
    discard(change->ctx, call->done, err);
    finish(call, err);
}

static const weir__operation change_operation = {.run = run_change, .fail = fail_change};

static int post(weir_channel *channel, weir_ctx *ctx, const weir__position *position,
                weir_promise *done)
{
    struct change *change = change_create(ctx, position);

    if (change != NULL)
        return weir__channel_call(channel, &change_operation, done, change, 0);
    discard(ctx, done, -ENOMEM);
    return -ENOMEM;
}

static int apply_or_post(weir_pipeline *pipeline, weir_ctx *ctx, const weir__position *position,
                         weir_promise *done)
{
    weir_channel *channel = pipeline->head_tail.channel;

    if (!weir__channel_in_loop(channel))
        return post(channel, ctx, position, done);
    return apply(pipeline, ctx, position, done);
}

/* ---- public ---- */

static size_t name_size(const weir_handler *handler, const weir_place *place)
{
    if (place->name != NULL)
        return strlen(place->name) + 1;
    return (handler->name != NULL ? strlen(handler->name) : 0) + WEIR__NAME_NUMBER;
}

/* True if the table's name is not in use. Only the loop knows. */
static bool is_table_name_free(weir_pipeline *pipeline, const weir_handler *handler)
{
    return weir__channel_in_loop(pipeline->head_tail.channel) && handler->name != NULL &&
           weir_pipeline_find(pipeline, handler->name) == NULL;
}

static int create_ctx(weir_pipeline *pipeline, const weir_place *place, const weir_handler *handler,
                      const void *options, weir_ctx **ret_ctx)
{
    size_t room = name_size(handler, place);
    int err;

    if (room > WEIR__NAME_MAX)
        return -ENAMETOOLONG;
    if (place->name == NULL && is_table_name_free(pipeline, handler))
        room = 0;
    err = weir__ctx_create(pipeline->head_tail.channel, handler, options, room, ret_ctx);
    if (err == 0 && place->name != NULL)
        weir__ctx_set_name(*ret_ctx, place->name);
    return err;
}

static int position_of(const weir_place *place, weir__position *ret_position)
{
    if (place->first + (place->before != NULL) + (place->after != NULL) > 1)
        return -EINVAL;
    *ret_position = (weir__position){.is_exact = place->name != NULL};
    if (place->first) {
        ret_position->kind = WEIR__FIRST;
    } else if (place->before != NULL) {
        ret_position->kind = WEIR__BEFORE;
        ret_position->anchor = place->before;
    } else if (place->after != NULL) {
        ret_position->kind = WEIR__AFTER;
        ret_position->anchor = place->after;
    }
    return 0;
}

static int choose_group(weir_channel *channel, const weir_place *place, const weir_handler *handler,
                        weir__position *position)
{
    position->group = place->group;
    if (place->group == NULL) {
        position->group = weir__channel_offload_group(channel, handler);
        position->is_cure = position->group != NULL;
    }
    return position->group != NULL && weir__group_grows(position->group) ? -ENOTSUP : 0;
}

static int add(weir_pipeline *pipeline, const weir_place *place, weir__position *position,
               const weir_handler *handler, const void *options)
{
    weir_channel *channel = pipeline->head_tail.channel;
    weir_ctx *ctx;
    int err = weir__channel_phase(channel) == WEIR__CLOSED ? WEIR_ECLOSED : 0;

    if (err == 0)
        err = choose_group(channel, place, handler, position);
    if (err == 0)
        err = create_ctx(pipeline, place, handler, options, &ctx);
    if (err == 0)
        return apply_or_post(pipeline, ctx, position, place->done);
    complete(place->done, err);
    return err;
}

int weir_pipeline_add(weir_pipeline *pipeline, const weir_place *place, const weir_handler *handler,
                      const void *options)
{
    weir_place place_read;
    weir__position position;
    int err = weir__options_read(&place_read, sizeof(place_read), place);

    if (err == 0)
        err = handler != NULL ? position_of(&place_read, &position) : -EINVAL;
    return err < 0 ? err : add(pipeline, &place_read, &position, handler, options);
}

int weir_pipeline_add_first(weir_pipeline *pipeline, const weir_handler *handler,
                            const void *options)
{
    return weir_pipeline_add(pipeline, WEIR_PLACE(.first = true), handler, options);
}

int weir_pipeline_add_last(weir_pipeline *pipeline, const weir_handler *handler,
                           const void *options)
{
    return weir_pipeline_add(pipeline, NULL, handler, options);
}

int weir_pipeline_add_before(weir_pipeline *pipeline, const char *before,
                             const weir_handler *handler, const void *options)
{
    if (before == NULL)
        return -EINVAL;
    return weir_pipeline_add(pipeline, WEIR_PLACE(.before = before), handler, options);
}

int weir_pipeline_add_after(weir_pipeline *pipeline, const char *after, const weir_handler *handler,
                            const void *options)
{
    if (after == NULL)
        return -EINVAL;
    return weir_pipeline_add(pipeline, WEIR_PLACE(.after = after), handler, options);
}

int weir_pipeline_add_last_as(weir_pipeline *pipeline, const char *name,
                              const weir_handler *handler, const void *options)
{
    if (name == NULL)
        return -EINVAL;
    return weir_pipeline_add(pipeline, WEIR_PLACE(.name = name), handler, options);
}

int weir_pipeline_replace(weir_pipeline *pipeline, const char *old_name, const weir_place *place,
                          const weir_handler *handler, const void *options)
{
    weir_place place_read;
    int err = weir__options_read(&place_read, sizeof(place_read), place);

    if (err < 0)
        return err;
    if (handler == NULL || old_name == NULL || place_read.first || place_read.before != NULL ||
        place_read.after != NULL)
        return -EINVAL;
    return add(pipeline, &place_read,
               &(weir__position){
                   .kind = WEIR__REPLACE, .anchor = old_name, .is_exact = place_read.name != NULL},
               handler, options);
}

int weir_pipeline_remove(weir_pipeline *pipeline, const char *name, weir_promise *done)
{
    if (name == NULL)
        return -EINVAL;
    return apply_or_post(pipeline, NULL, &(const weir__position){.anchor = name}, done);
}
