/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving handlers that block.
 *
 *      weir__handler_offload           any thread: adds the table to the list, posts a walk to each
 *                                      loop
 *      on_walk                         each loop: moves the contexts of its channels, some in each
 *                                      task; the last loop logs the number of channels
 *
 * A handler that is still in use on the loop moves later: pipeline.c.
 */
#include "channel/offload_blocking.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "channel/border.h"
#include "channel/channel.h"
#include "executor/group.h"
#include "executor/running_loops.h"
#include "os/virtual_os.h"

#define HANDLERS_MAX 64
#define BATCH 128 /* channels that a task looks at before others get their turn */

/* A handler that blocks. */
struct blocking {
    const weir_handler *handler;
    _Atomic uint64_t blocks;
    _Atomic uint64_t moved;        /* contexts */
    _Atomic uint32_t rounds;       /* that have not ended */
    atomic_bool is_logged;         /* that it runs on other groups */
    atomic_bool is_failure_logged; /* that it cannot be moved */
};

/* One call of weir__handler_offload. */
struct round {
    struct blocking *blocking;
    _Atomic uint32_t walks; /* that have not ended, and the caller */
    _Atomic uint32_t channels;
    char group[16]; /* the name of one */
};

/* A walk over the channels of a loop. The cursor stands in its list of members. */
struct walk {
    weir_task task;
    weir__member cursor;
    weir_executor *loop; /* a weak reference */
    struct blocking *blocking;
    struct round *round;
    bool has_begun;
};

/* Of the process; none is ever removed. */
static struct blocking handlers[HANDLERS_MAX];
static _Atomic unsigned handler_count;
static weir__mutex lock = WEIR__MUTEX_INIT; /* of threads that add one */

static void forget_all(void)
{
    memset(handlers, 0, sizeof(handlers));
    atomic_store_explicit(&handler_count, 0, memory_order_relaxed);
}

/* ---- the list ---- */

static bool stays(const weir_handler *handler)
{
    return handler->stays_on_loop || handler->blocked != NULL;
}

static struct blocking *find(const weir_handler *handler)
{
    /* Acquire: the content of the elements. */
    unsigned count = atomic_load_explicit(&handler_count, memory_order_acquire);

    for (unsigned i = 0; i < count; i++)
        if (handlers[i].handler == handler)
            return &handlers[i];
    return NULL;
}

/* NULL if there is no room. */
static struct blocking *find_or_add(const weir_handler *handler)
{
    struct blocking *blocking;
    unsigned count;

    weir__mutex_lock(&lock);
    blocking = find(handler);
    count = atomic_load_explicit(&handler_count, memory_order_relaxed);
    if (blocking == NULL && count < HANDLERS_MAX) {
        if (weir__os_is_virtual())
            weir__virtual_os_at_end(forget_all);
        blocking = &handlers[count];
        blocking->handler = handler;
        atomic_store_explicit(&handler_count, count + 1, memory_order_release);
    }
    weir__mutex_unlock(&lock);
    return blocking;
}

bool weir__handler_offload_read(const weir_handler *handler, uint64_t *ret_moved)
{
    const struct blocking *blocking = find(handler);

    *ret_moved =
        blocking != NULL ? atomic_load_explicit(&blocking->moved, memory_order_relaxed) : 0;
    return blocking != NULL;
}

/* ---- the log ---- */

static const char *name_of(const struct blocking *blocking)
{
    return blocking->handler->name != NULL ? blocking->handler->name : "handler";
}

static uint64_t blocks_of(const struct blocking *blocking)
{
    return atomic_load_explicit(&blocking->blocks, memory_order_relaxed);
}

static bool is_first(atomic_bool *is_done)
{
    return !atomic_exchange_explicit(is_done, true, memory_order_relaxed);
}

static void log_round(const struct round *round)
{
    struct blocking *blocking = round->blocking;
    uint32_t channels = atomic_load_explicit(&round->channels, memory_order_relaxed);

    if (channels > 0 && is_first(&blocking->is_logged))
        weir__warn("watchdog", NULL,
                   "handler \"%s\" blocked %" PRIu64 " times: moved to group \"%s\" on %" PRIu32
                   " channels",
                   name_of(blocking), blocks_of(blocking), round->group, channels);
}

static void log_new(struct blocking *blocking, const weir_group *group)
{
    if (atomic_load_explicit(&blocking->rounds, memory_order_relaxed) == 0 &&
        is_first(&blocking->is_logged))
        weir__warn("watchdog", NULL,
                   "handler \"%s\" blocked %" PRIu64 " times: runs on group \"%s\" in new channels",
                   name_of(blocking), blocks_of(blocking), weir__group_name(group));
}

static void log_failure(struct blocking *blocking, const weir_group *group, int err)
{
    const char *reason = err == -EALREADY ? "it runs the channel's loop" : weir_error_text(err);

    if (is_first(&blocking->is_failure_logged))
        weir__warn("watchdog", NULL,
                   "handler \"%s\" blocked %" PRIu64
                   " times, but cannot be moved to group \"%s\": %s",
                   name_of(blocking), blocks_of(blocking), weir__group_name(group), reason);
}

static void log_full(const weir_handler *handler)
{
    static atomic_bool is_logged;

    if (is_first(&is_logged))
        weir__warn("watchdog", NULL,
                   "handler \"%s\" blocks and stays on its loops: %d others were moved before",
                   handler->name != NULL ? handler->name : "handler", HANDLERS_MAX);
}

/* ---- handlers that are added ---- */

static bool is_shut_down(const weir_group *group)
{
    return weir__executor_state(weir_group_at(group, 0)) >= WEIR_EXECUTOR_SHUTTING_DOWN;
}

weir_group *weir__channel_offload_group(weir_channel *channel, const weir_handler *handler)
{
    struct blocking *blocking = stays(handler) ? NULL : find(handler);
    weir_channel_options options;

    if (blocking == NULL)
        return NULL;
    weir__config_read(weir__channel_config(channel), &options);
    if (options.offload_when_blocking == NULL)
        return NULL;
    if (is_shut_down(options.offload_when_blocking)) {
        log_failure(blocking, options.offload_when_blocking, WEIR_EREJECTED);
        return NULL;
    }
    log_new(blocking, options.offload_when_blocking);
    return options.offload_when_blocking;
}

/* ---- handlers on the loop ---- */

void weir__handler_count_crossing(const weir_handler *handler)
{
    struct blocking *blocking = find(handler);

    if (blocking != NULL)
        atomic_fetch_add_explicit(&blocking->moved, 1, memory_order_relaxed);
}

static bool is_on_loop(const weir_ctx *ctx)
{
    return (ctx->mask & (WEIR__CTX_ADDED | WEIR__CTX_REMOVED)) == WEIR__CTX_ADDED;
}

/* The first handler on the loop that blocks; `only` if that is not NULL. */
static weir_ctx *find_blocking(weir_channel *channel, const struct blocking *only,
                               struct blocking **ret_blocking)
{
    weir_ctx *head_tail = weir__channel_head_tail(channel), *ctx;
    struct blocking *blocking;

    for (ctx = head_tail->next; ctx != head_tail; ctx = ctx->next) {
        blocking = is_on_loop(ctx) && !stays(ctx->handler) ? find(ctx->handler) : NULL;
        if (blocking != NULL && (only == NULL || only == blocking)) {
            *ret_blocking = blocking;
            return ctx;
        }
    }
    return NULL;
}

/* The border is to be set in front of the first handler that blocks. False if there is none. A
 * channel without a loop tries again when it is registered, one that is closing need not. */
static bool offload(weir_channel *channel, const struct blocking *only)
{
    weir_group *group = weir__channel_options(channel)->offload_when_blocking;
    struct blocking *blocking;
    weir_ctx *ctx;
    int err;

    if (group == NULL || weir__channel_phase(channel) != WEIR__OPEN ||
        !weir__channel_state_is_at(channel, WEIR__REGISTRATION, WEIR__IS_REGISTERED))
        return false;
    ctx = find_blocking(channel, only, &blocking);
    if (ctx == NULL)
        return false;
    err = weir__pipeline_offload(ctx, group);
    if (err < 0 && err != -ENOMEM)
        log_failure(blocking, group, err);
    return err == 0;
}

void weir__channel_check_offload(weir_channel *channel)
{
    const weir__border *border = weir__channel_border(channel);

    if ((border != NULL && border->state != WEIR__BORDER_NONE) ||
        (weir__channel_options(channel)->offload_when_blocking != NULL &&
         atomic_load_explicit(&handler_count, memory_order_relaxed) > 0))
        weir__channel_defer(channel, WEIR__DEFERRED_OFFLOAD);
}

/* The mailbox runs on the global executor if the loop has ended. */
void weir__channel_offload(weir_channel *channel)
{
    if (!weir__channel_in_loop(channel))
        return;
    (void)offload(channel, NULL);
    weir__pipeline_advance(&channel->pipeline);
}

/* ---- walks ---- */

static void round_release(struct round *round)
{
    /* Acquire and release: the last one sees the group's name and the counts of all. */
    if (atomic_fetch_sub_explicit(&round->walks, 1, memory_order_acq_rel) > 1)
        return;
    log_round(round);
    atomic_fetch_sub_explicit(&round->blocking->rounds, 1, memory_order_relaxed);
    weir__free(round);
}

static void walk_destroy(struct walk *walk)
{
    round_release(walk->round);
    weir__list_remove(&walk->cursor.link);
    weir__executor_weak_release(walk->loop);
    weir__free(walk);
}

/* The loop shuts down: the cursor leaves its list, which ends the walk. */
static void on_shut_down(weir__member *member)
{
    weir__list_remove(&member->link);
}

static const weir__member_type cursor_type = {.shut_down = on_shut_down};

static void count_channel(struct walk *walk, weir_channel *channel)
{
    struct round *round = walk->round;

    if (atomic_fetch_add_explicit(&round->channels, 1, memory_order_relaxed) == 0)
        (void)snprintf(round->group, sizeof(round->group), "%s",
                       weir__group_name(weir__channel_options(channel)->offload_when_blocking));
}

/* Returns false at the end of the list. */
static bool step(struct walk *walk)
{
    weir__list *cursor = &walk->cursor.link, *link = cursor->next;
    weir_channel *channel;

    if (link == cursor || link == &walk->loop->members.open)
        return false;
    weir__list_remove(cursor);
    weir__list_append(link->next, cursor);
    channel = weir__channel_of_member(WEIR_CONTAINER_OF(link, weir__member, link));
    if (channel != NULL && offload(channel, walk->blocking)) {
        weir__pipeline_advance(weir_channel_pipeline(channel));
        count_channel(walk, channel);
    }
    return true;
}

static void on_walk(void *arg, int status)
{
    struct walk *walk = arg;

    if (status == 0 && !walk->has_begun) {
        walk->has_begun = true;
        weir__list_append(walk->loop->members.open.next, &walk->cursor.link);
    }
    for (int i = 0; status == 0 && i < BATCH; i++)
        if (!step(walk)) {
            walk_destroy(walk);
            return;
        }
    if (status < 0 || weir__executor_post(walk->loop, &walk->task, WEIR__NOW) < 0)
        walk_destroy(walk);
}

static void start_walk(weir_executor *loop, void *arg)
{
    struct round *round = arg;
    struct walk *walk = weir__zalloc(sizeof(*walk));

    if (walk == NULL)
        return;
    weir_task_init(&walk->task, on_walk, walk);
    weir__list_init(&walk->cursor.link);
    walk->cursor.type = &cursor_type;
    weir__executor_weak_retain(loop);
    walk->loop = loop;
    walk->blocking = round->blocking;
    walk->round = round;
    atomic_fetch_add_explicit(&round->walks, 1, memory_order_relaxed);
    if (weir__executor_post(loop, &walk->task, WEIR__NOW) < 0)
        walk_destroy(walk);
}

void weir__handler_offload(const weir_handler *handler, uint64_t blocks)
{
    struct blocking *blocking;
    struct round *round;

    if (stays(handler))
        return;
    blocking = find_or_add(handler);
    if (blocking == NULL) {
        log_full(handler);
        return;
    }
    round = weir__zalloc(sizeof(*round));
    if (round == NULL)
        return; /* the next block tries again */
    atomic_store_explicit(&blocking->blocks, blocks, memory_order_relaxed);
    atomic_fetch_add_explicit(&blocking->rounds, 1, memory_order_relaxed);
    round->blocking = blocking;
    atomic_init(&round->walks, 1);
    weir__running_loops_foreach(start_walk, round);
    round_release(round);
}

void weir__handler_count_moved(const weir_handler *handler, size_t count)
{
    struct blocking *blocking = count > 0 ? find_or_add(handler) : NULL;

    if (blocking != NULL)
        atomic_fetch_add_explicit(&blocking->moved, count, memory_order_relaxed);
}
