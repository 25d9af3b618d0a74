/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border of a pipeline.
 *
 * Memory. Events without contents, and questions and answers of the two sides, are flags of the
 * mailboxes; changes are mails that are part of a resident. So only an event with contents can
 * fail, and the addition of a handler, before anything has changed.
 *
 * Flags. Those that are set between two mails run in the order of `far_order`, each once: so the
 * last read_complete follows the last message. Of `active` and `inactive`, and of `registered` and
 * `unregistered`, an end and the beginning after it cancel each other (weir__mailbox_toggle): what
 * is left is the first beginning, or a beginning and its end, or the last end.
 *
 * The gate is a handler that holds back messages (demand.h). What it holds stays behind the border:
 * contexts that cross later are linked behind the gate, so it passes everything on before.
 */
#include "channel/border.h"

#include <errno.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "channel/channel.h"
#include "channel/demand.h"
#include "channel/event_mail.h"
#include "channel/offload_blocking.h"
#include "channel/pipeline.h"
#include "executor/group.h"

#define RETRY_NS weir_ms(10) /* doubles each time */
#define RETRIES_MAX 8        /* then it stays the same */

/* Flags besides those of events, which have the values of slots with contents. */
enum {
    AUTO_READ = WEIR__READ, /* REQUEST_READ while auto-read is on */
    HOLD = WEIR__EVENT,     /* the executor holds back outbound events; or the answer */
    RELEASE = WEIR__ERROR,  /* all contexts have crossed, or none: the opposite */
    END = WEIR__BIND,       /* no handler is left; or the answer */
};

static const uint32_t flag_order[] = {
    RELEASE,
    WEIR__REGISTERED,
    WEIR__ACTIVE,
    WEIR__READ_COMPLETE,
    WEIR__WRITABILITY,
    WEIR__DRAINING,
    AUTO_READ,
    WEIR__REQUEST_READ,
    WEIR__FLUSH,
    WEIR__INACTIVE,
    WEIR__UNREGISTERED,
    HOLD,
    END,
};

_Static_assert(WEIR__UNREGISTERED == WEIR__REGISTERED << 1, "the end follows its beginning");
_Static_assert(WEIR__INACTIVE == WEIR__ACTIVE << 1, "the end follows its beginning");

static weir__side *side_of(weir_ctx *ctx)
{
    return WEIR_CONTAINER_OF(ctx, weir__side, ctx);
}

static weir__border *border_at(weir__mailbox *box)
{
    return WEIR_CONTAINER_OF(box, weir__side, box)->border;
}

/* ---- events that reach the border ---- */

static weir__mail_fn deliver_far, deliver_near;

static void send_flag(weir__side *side, uint32_t slot)
{
    weir__border *border = side->border;

    if (slot == WEIR__REQUEST_READ && weir_channel_auto_read(border->channel))
        slot = AUTO_READ;
    if (side == &border->far && border->is_holding)
        border->held_flags |= slot;
    else if (slot == WEIR__REGISTERED || slot == WEIR__ACTIVE)
        weir__mailbox_toggle(&side->box, slot, slot << 1);
    else
        weir__mailbox_set(&side->box, slot);
}

static void send_mail(weir__side *side, const weir__event *event)
{
    weir__border *border = side->border;
    weir__event_mail *mail = weir__event_mail_create(
        border->channel, event, side == &border->far ? deliver_near : deliver_far);

    if (mail == NULL)
        return;
    if (side == &border->near || !border->is_holding || event->slot < WEIR__BIND) {
        weir__mailbox_post(&side->box, &mail->mail);
        return;
    }
    mail->mail.before = border->held_flags;
    border->held_flags = 0;
    weir__chain_append(&border->held, &mail->mail.node);
}

static void lose(weir_channel *channel, const weir__event *event)
{
    weir_msg_release(event->msg);
    if (event->done != NULL)
        weir__channel_fail_posted(channel, event->done, WEIR_ECLOSED);
}

/* The tail of the pipeline is on the loop: from the executor it gets what it does something with.
 */
static bool is_of_use(const weir__side *side, uint32_t slot)
{
    if (side == &side->border->near)
        return true;
    return side == &side->border->far &&
           (slot >= WEIR__BIND || slot == WEIR__READ || slot == WEIR__ERROR);
}

void weir__border_pass(weir_ctx *ctx, const weir__event *event)
{
    weir__side *side = side_of(ctx);

    if (!is_of_use(side, event->slot)) {
        lose(side->border->channel, event);
        return;
    }
    if (side == &side->border->near)
        side->border->is_stale = true;
    if ((event->slot & WEIR__EVENT_FLAGS) != 0)
        send_flag(side, event->slot);
    else
        send_mail(side, event);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir__border_pass(ctx, &(const weir__event){.slot = WEIR__READ, .msg = msg});
}

static void on_read_complete(weir_ctx *ctx)
{
    weir__border_pass(ctx, &(const weir__event){.slot = WEIR__READ_COMPLETE});
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir__border_pass(ctx, &(const weir__event){.slot = WEIR__WRITE, .msg = msg, .done = done});
}

static void on_flush(weir_ctx *ctx)
{
    weir__border_pass(ctx, &(const weir__event){.slot = WEIR__FLUSH});
}

/* weir__border_pass gets the other events as they are. */
static const weir_handler side_handler = {
    .name = "border",
    .read = on_read,
    .read_complete = on_read_complete,
    .write = on_write,
    .flush = on_flush,
};

static void gate_read_complete(weir_ctx *ctx)
{
    weir__demand_read_complete(ctx, &weir__demand_buffered);
}

static void gate_event(weir_ctx *ctx, weir_msg *event)
{
    weir__demand_event(ctx, event, &weir__demand_buffered);
}

static void gate_request_read(weir_ctx *ctx)
{
    weir__demand_request_read(ctx, &weir__demand_buffered);
}

static const weir_handler gate_handler = {
    .name = "gate",
    .state_size = sizeof(weir_demand),
    .read = weir__demand_pass,
    .read_complete = gate_read_complete,
    .event = gate_event,
    .inactive = weir__demand_inactive,
    .request_read = gate_request_read,
    .buffers_reads = true,
};

/* ---- events that have crossed ---- */

/* Those of the other side's questions and answers are returned. */
static uint32_t pass_flags(weir_ctx *from, uint32_t flags)
{
    const uint32_t *next = flag_order;
    uint32_t left = flags, flag, asked = 0;

    for (; left != 0; next++) {
        flag = left & *next;
        left &= ~flag;
        if (flag == RELEASE || flag == HOLD || flag == END)
            asked |= flag;
        else if (flag == AUTO_READ && weir_channel_auto_read(from->channel))
            weir__pass(from, &(const weir__event){.slot = WEIR__REQUEST_READ});
        else if (flag != AUTO_READ && flag != 0)
            weir__pass(from, &(const weir__event){.slot = flag});
    }
    return asked;
}

static void pass_mail(weir_ctx *from, weir__mail *mail)
{
    weir_channel *channel = from->channel;
    weir__event_mail opened;
    weir__event event;

    weir__event_mail_open(mail, channel, &opened);
    event = weir__event_mail_event(&opened);
    weir__pass(from, &event);
    weir__event_mail_close(&opened, channel);
}

static void deliver_far(weir__mailbox *box, weir__mail *mail, int status)
{
    (void)status; /* no event may be lost */
    pass_mail(&border_at(box)->far.ctx, mail);
}

/* A handler behind the border does not know that the channel is between two loops. */
static void deliver_near(weir__mailbox *box, weir__mail *mail, int status)
{
    weir__border *border = border_at(box);
    weir_channel *channel = border->channel;
    weir__subject subject;

    (void)status;
    if (weir__event_mail_slot(mail) == WEIR__CLOSE &&
        !weir__channel_is(channel, WEIR__IS_REGISTERED))
        channel->flags |= WEIR__CLOSES_BETWEEN;
    weir__channel_enter(channel, &subject);
    pass_mail(&border->near.ctx, mail);
    weir__channel_leave(&subject);
}

/* ---- changes, on the executor ---- */

static void link_behind(weir_ctx *before, weir_ctx *ctx)
{
    ctx->prev = before;
    ctx->next = before->next;
    ctx->next->prev = ctx;
    before->next = ctx;
}

static void on_added(weir__mailbox *box, weir__mail *mail, int status)
{
    weir__resident *resident = WEIR_CONTAINER_OF(mail, weir__resident, added);
    weir_ctx *ctx = resident->ctx;

    (void)box;
    (void)status;
    link_behind(resident->after != NULL ? resident->after : resident->border->gate, ctx);
    if (ctx->handler->buffers_reads)
        weir__demand_begin(ctx);
    if (ctx->handler->added != NULL)
        ctx->handler->added(ctx);
}

/* The mails of contexts that cross follow each other, that of the last one first. */
static void on_moved(weir__mailbox *box, weir__mail *mail, int status)
{
    weir__resident *resident = WEIR_CONTAINER_OF(mail, weir__resident, added);
    weir__border *border = resident->border;

    (void)box;
    (void)status;
    if (border->last_moved == NULL) {
        weir__demand_flush(border->gate, NULL);
        border->last_moved = resident->ctx;
    }
    link_behind(border->gate, resident->ctx);
}

void weir__border_let_free(weir_ctx *ctx)
{
    weir_channel *channel = ctx->channel;

    /* Release: the loop frees the context after everything that was done with it here. */
    atomic_fetch_or_explicit(&ctx->refs, WEIR__CTX_GONE, memory_order_release);
    weir__channel_defer(channel, WEIR__DEFERRED_SWEEP);
}

/* Nobody finds the context any more, but it finds its neighbours while `removed` runs. */
static void on_removed(weir__mailbox *box, weir__mail *mail, int status)
{
    weir__resident *resident = WEIR_CONTAINER_OF(mail, weir__resident, removed);
    weir_ctx *ctx = resident->ctx;

    (void)box;
    (void)status;
    ctx->prev->next = ctx->next;
    ctx->next->prev = ctx->prev;
    weir__ctx_stop_timers(ctx);
    weir__ctx_set_out(ctx);
    if (ctx->handler->removed != NULL)
        ctx->handler->removed(ctx);
    weir__ctx_clear_pending_bytes(ctx);
    ctx->prev = ctx->next = &resident->border->nowhere.ctx;
    if (!weir__ctx_has_offloads(ctx))
        weir__border_let_free(ctx);
}

/* What was held passes the contexts that have crossed, which its senders stood behind. */
static void release_held(weir__border *border)
{
    weir_ctx *from = border->last_moved != NULL ? border->last_moved->next : border->gate;
    weir__chain held = border->held;
    uint32_t flags = border->held_flags;
    weir_queue_node *node;
    weir__mail *mail;

    border->held = (weir__chain){0};
    border->held_flags = 0;
    border->is_holding = false;
    border->last_moved = NULL;
    while ((node = weir__chain_pop(&held)) != NULL) {
        mail = WEIR_CONTAINER_OF(node, weir__mail, node);
        (void)pass_flags(from, mail->before);
        pass_mail(from, mail);
    }
    (void)pass_flags(from, flags);
}

static void take_over(weir__border *border)
{
    weir__ctx_resume_timers(border->moved_timers, &border->timers);
    weir__ctx_join_pending_bytes(border->moved_bytes, &border->pending_bytes);
    border->moved_timers = NULL;
    border->moved_bytes = NULL;
}

/* RELEASE comes before the next HOLD. */
static void run_far(weir__mailbox *box, uint32_t flags, int status)
{
    weir__border *border = border_at(box);
    uint32_t asked;

    (void)status;
    if ((flags & RELEASE) != 0) {
        take_over(border);
        release_held(border);
    }
    asked = pass_flags(&border->far.ctx, flags & ~(uint32_t)RELEASE);
    if ((asked & HOLD) != 0)
        border->is_holding = true;
    if ((asked & END) != 0) {
        weir__demand_flush(border->gate, NULL);
        weir__demand_of(border->gate)->is_requested = true;
    }
    if (asked != 0)
        weir__mailbox_set(&border->far.box, asked);
}

void weir__border_ask_removal(weir_ctx *ctx)
{
    /* Relaxed: the sweep comes after it. */
    atomic_fetch_or_explicit(&ctx->refs, WEIR__CTX_LEAVES, memory_order_relaxed);
    weir__channel_defer(ctx->channel, WEIR__DEFERRED_SWEEP);
}

/* ---- the state, on the loop ---- */

static void link_near(weir__border *border)
{
    weir_ctx *head_tail = weir__channel_head_tail(border->channel);

    border->state = WEIR__BORDER_STANDS;
    link_behind(head_tail->prev, &border->near.ctx);
}

static void end_if_empty(weir__border *border)
{
    if (border->state != WEIR__BORDER_STANDS || !weir__list_is_empty(&border->residents))
        return;
    border->state = WEIR__BORDER_ENDING;
    border->is_stale = false;
    weir__mailbox_set(&border->near.box, END);
}

void weir__border_ask_quiet(weir__border *border)
{
    border->state = WEIR__BORDER_QUIET;
    weir__mailbox_set(&border->near.box, HOLD);
}

/* If something went over the border meanwhile, a handler or an event, it asks again. */
static void on_end(weir__border *border)
{
    weir_pipeline *pipeline = &border->channel->pipeline;

    border->state = WEIR__BORDER_STANDS;
    if (!border->is_stale) {
        border->state = WEIR__BORDER_NONE;
        weir__pipeline_unlink(&border->near.ctx);
        weir__pipeline_border_ended(pipeline);
    }
    weir__pipeline_advance(pipeline);
}

/* Contexts cross, unless nothing may cross any more. */
static void on_quiet(weir__border *border)
{
    border->state = WEIR__BORDER_STANDS;
    weir__pipeline_cross(&border->channel->pipeline);
    weir__mailbox_set(&border->near.box, RELEASE);
}

static void run_near(weir__mailbox *box, uint32_t flags, int status)
{
    weir__border *border = border_at(box);
    weir__subject subject;
    uint32_t asked;

    (void)status;
    weir__channel_enter(border->channel, &subject);
    asked = pass_flags(&border->near.ctx, flags);
    if ((asked & HOLD) != 0)
        on_quiet(border);
    if ((asked & END) != 0)
        on_end(border);
    end_if_empty(border);
    weir__channel_leave(&subject);
}

static void on_retry(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir__channel_defer(ctx->channel, WEIR__DEFERRED_OFFLOAD);
}

/* Without a loop the registration tries again. */
void weir__border_retry(weir__border *border)
{
    if (weir_timer_is_running(&border->retry))
        return;
    (void)weir_ctx_timer_start(&border->near.ctx, &border->retry, RETRY_NS << border->retries,
                               on_retry);
    if (border->retries < RETRIES_MAX)
        border->retries++;
}

/* ---- residents, on the loop ---- */

static weir__resident *resident_at(const weir__list *link)
{
    return WEIR_CONTAINER_OF((weir__list *)(uintptr_t)link, weir__resident, link);
}

weir__resident *weir__border_find(weir__border *border, const weir_ctx *ctx)
{
    if (border == NULL)
        return NULL;
    for (weir__list *link = border->residents.next; link != &border->residents; link = link->next)
        if (resident_at(link)->ctx == ctx)
            return resident_at(link);
    return NULL;
}

/* An initializer among the residents runs on the loop: it has only its place there. */
bool weir__resident_is_removed(const weir__resident *resident)
{
    return weir__ctx_is_remote(resident->ctx) ? resident->was_removed
                                              : (resident->ctx->mask & WEIR__CTX_REMOVED) != 0;
}

static weir__resident *resident_create(weir__border *border, weir_ctx *ctx, weir__list *next)
{
    weir__resident *resident = weir__zalloc(sizeof(*resident));

    if (resident == NULL)
        return NULL;
    resident->ctx = ctx;
    resident->border = border;
    resident->added.fn = on_added;
    resident->removed.fn = on_removed;
    weir__list_append(next, &resident->link);
    border->is_stale = true;
    return resident;
}

static void make_remote(weir_ctx *ctx)
{
    if (ctx->handler == &weir__initializer)
        return;
    ctx->mask &= ~(uint32_t)WEIR__CTX_CROSSES;
    ctx->mask |= weir__handler_mask(ctx->handler) | WEIR__CTX_REMOTE | WEIR__CTX_ADDED;
}

int weir__border_add(weir__border *border, weir_ctx *ctx, weir__list *next)
{
    if (resident_create(border, ctx, next) == NULL)
        return -ENOMEM;
    make_remote(ctx);
    return 0;
}

void weir__border_announce(weir__resident *resident)
{
    weir__border *border = resident->border;
    const weir__resident *before;

    if (resident->was_added || !weir__ctx_is_remote(resident->ctx))
        return;
    resident->after = NULL;
    for (weir__list *link = resident->link.previous; link != &border->residents;
         link = link->previous) {
        before = resident_at(link);
        if (before->was_added && !before->is_leaving && weir__ctx_is_remote(before->ctx)) {
            resident->after = before->ctx;
            break;
        }
    }
    resident->was_added = true;
    weir__mailbox_post(&border->near.box, &resident->added);
}

void weir__border_remove(weir__resident *resident)
{
    resident->was_removed = true;
    if (!resident->was_added || resident->is_leaving)
        return;
    resident->is_leaving = true;
    weir__mailbox_post(&resident->border->near.box, &resident->removed);
}

static bool is_gone(const weir__resident *resident)
{
    weir_ctx *ctx = resident->ctx;

    if (!weir__ctx_is_remote(ctx))
        return (ctx->mask & WEIR__CTX_REMOVED) != 0 && !weir__ctx_has_offloads(ctx);
    /* Acquire: after everything that the executor did with the context. */
    return (atomic_load_explicit(&ctx->refs, memory_order_acquire) & WEIR__CTX_GONE) != 0;
}

static void resident_free(weir__resident *resident)
{
    weir_promise *left = resident->left;

    weir__list_remove(&resident->link);
    weir__ctx_destroy(resident->ctx);
    weir__free(resident);
    if (left != NULL)
        (void)weir_promise_succeed(left, NULL);
    weir_promise_release(left);
}

/* A promise's listener may change the pipeline: then the walk begins again. */
static weir__resident *find_gone(weir__border *border)
{
    for (weir__list *link = border->residents.next; link != &border->residents; link = link->next)
        if (is_gone(resident_at(link)))
            return resident_at(link);
    return NULL;
}

static bool wants_removal(const weir_ctx *ctx)
{
    return (atomic_load_explicit(&ctx->refs, memory_order_relaxed) & WEIR__CTX_LEAVES) != 0;
}

void weir__border_sweep(weir__border *border)
{
    weir__resident *resident;

    if (border == NULL)
        return;
    for (weir__list *link = border->residents.next; link != &border->residents; link = link->next)
        if (wants_removal(resident_at(link)->ctx))
            weir__border_remove(resident_at(link));
    while ((resident = find_gone(border)) != NULL)
        resident_free(resident);
    end_if_empty(border);
}

/* ---- crossing, on the loop ---- */

/* Makes the residents of contexts of the ring; without memory, of none. */
static int make_residents(weir__border *border, weir_ctx *added, weir_ctx *first, weir__list *made)
{
    const weir_ctx *head_tail = weir__channel_head_tail(border->channel);
    bool is_complete = added == NULL || resident_create(border, added, made) != NULL;
    weir__list *link;

    for (weir_ctx *ctx = first; is_complete && ctx != NULL; ctx = ctx->next) {
        if (ctx == head_tail || ctx == &border->near.ctx)
            break;
        if ((ctx->mask & WEIR__CTX_REMOVED) == 0)
            is_complete = resident_create(border, ctx, made) != NULL;
    }
    if (is_complete)
        return 0;
    while ((link = weir__list_pop(made)) != NULL)
        weir__free(resident_at(link));
    return -ENOMEM;
}

/* The context was on the loop: what it has there goes with it. */
static void move(weir__border *border, weir__resident *resident)
{
    weir_ctx *ctx = resident->ctx;

    weir__ctx_take_timers(ctx, border->executor, &border->moved_timers);
    weir__ctx_take_pending_bytes(ctx, &border->moved_bytes);
    make_remote(ctx);
    weir__handler_count_crossing(ctx->handler);
    resident->was_added = true;
    resident->added.fn = on_moved;
    weir__mailbox_post(&border->near.box, &resident->added);
}

static bool runs_on_loop(const weir_ctx *ctx)
{
    return (ctx->mask & (WEIR__CTX_ADDED | WEIR__CTX_REMOTE)) == WEIR__CTX_ADDED &&
           ctx->handler != &weir__initializer;
}

/* Those that were on the loop cross first, so that `added` of the others finds them. */
static void announce_all(weir__border *border, const weir__list *end)
{
    bool has_moved = false;

    for (const weir__list *link = end->previous; link != &border->residents; link = link->previous)
        if (runs_on_loop(resident_at(link)->ctx)) {
            move(border, resident_at(link));
            has_moved = true;
        }
    for (const weir__list *link = border->residents.next; link != end; link = link->next) {
        if (!resident_at(link)->was_added)
            make_remote(resident_at(link)->ctx);
        if (!weir__channel_state_is_at(border->channel, WEIR__REGISTRATION, WEIR__NEW))
            weir__border_announce(resident_at(link));
    }
    if (has_moved)
        weir__mailbox_set(&border->near.box, RELEASE);
}

int weir__border_cross(weir__border *border, weir_ctx *added, weir_ctx *first)
{
    weir__list made, *link, *end = border->residents.next;
    int err;

    weir__list_init(&made);
    err = make_residents(border, added, first, &made);
    if (err < 0)
        return err;
    if (!weir__border_stands(border))
        link_near(border);
    while ((link = weir__list_pop(&made)) != NULL) {
        weir__list_append(end, link);
        if (resident_at(link)->ctx != added)
            weir__pipeline_unlink(resident_at(link)->ctx);
    }
    announce_all(border, end);
    border->retries = 0;
    return 0;
}

/* ---- borders ---- */

static weir_executor *far_executor(const weir__mailbox *box)
{
    return border_at((weir__mailbox *)(uintptr_t)box)->executor;
}

static weir_executor *near_executor(const weir__mailbox *box)
{
    return weir__channel_executor(border_at((weir__mailbox *)(uintptr_t)box)->channel);
}

static void retain_owner(weir__mailbox *box)
{
    weir_channel_retain(border_at(box)->channel);
}

static void release_owner(weir__mailbox *box)
{
    weir_channel_release(border_at(box)->channel);
}

/* Handlers run on their own executor or not at all. */
static const weir__mailbox_type to_far = {
    .name = "border",
    .executor = far_executor,
    .retain = retain_owner,
    .release = release_owner,
    .run = run_far,
    .insists = true,
};

static const weir__mailbox_type to_near = {
    .name = "border",
    .executor = near_executor,
    .retain = retain_owner,
    .release = release_owner,
    .run = run_near,
    .insists = true,
};

static void init_side(weir__side *side, weir__border *border, const weir__mailbox_type *type)
{
    side->ctx = (weir_ctx){.channel = border->channel,
                           .handler = &side_handler,
                           .mask = WEIR__SLOTS | WEIR__CTX_BORDER};
    atomic_init(&side->ctx.refs, 1);
    side->border = border;
    weir__mailbox_init(&side->box, type);
}

static weir__border *border_create(weir_channel *channel, weir_group *group)
{
    weir__border *border = weir__zalloc(sizeof(*border));

    if (border == NULL)
        return NULL;
    if (weir__ctx_create(channel, &gate_handler, NULL, 0, &border->gate) < 0) {
        weir__free(border);
        return NULL;
    }
    border->channel = channel;
    border->group = weir_group_retain(group);
    border->executor = weir_group_next(group);
    weir__list_init(&border->residents);
    init_side(&border->near, border, &to_far);
    init_side(&border->far, border, &to_near);
    init_side(&border->nowhere, border, &to_near);
    border->far.ctx.mask |= WEIR__CTX_REMOTE;
    border->far.ctx.prev = border->far.ctx.next = &border->far.ctx;
    border->gate->mask |= weir__handler_mask(&gate_handler) | WEIR__CTX_REMOTE;
    /* A message may have been requested before. */
    weir__demand_of(border->gate)->is_requested = true;
    link_behind(&border->far.ctx, border->gate);
    return border;
}

void weir__borders_destroy(weir__border *borders)
{
    weir__border *next;
    weir__list *link;

    for (; borders != NULL; borders = next) {
        next = borders->next;
        while ((link = weir__list_pop(&borders->residents)) != NULL)
            resident_free(resident_at(link));
        weir__ctx_destroy(borders->gate);
        weir_group_release(borders->group);
        weir__free(borders);
    }
}

static int refuse(const weir_ctx *ctx, const weir__border *border, const weir_group *group)
{
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];

    weir__warn_limited("pipeline", weir__channel_log_name(ctx->channel, name),
                       "handler \"%s\" cannot run on group \"%s\": other handlers of the pipeline "
                       "run on group \"%s\"",
                       weir_ctx_name(ctx), weir__group_name(group),
                       weir__group_name(border->group));
    return -EINVAL;
}

int weir__border_get(const weir_ctx *ctx, weir_group *group, weir__border **ret_border)
{
    weir__channel_extra *extra = weir__channel_extra_get(ctx->channel);
    weir__border *border = weir__channel_border(ctx->channel);

    if (extra == NULL)
        return -ENOMEM;
    if (border != NULL && border->group != group && border->state != WEIR__BORDER_NONE)
        return refuse(ctx, border, group);
    border = extra->borders;
    while (border != NULL && border->group != group)
        border = border->next;
    if (border == NULL) {
        border = border_create(ctx->channel, group);
        if (border == NULL)
            return -ENOMEM;
        border->next = extra->borders;
        extra->borders = border;
    }
    atomic_store_explicit(&extra->border, border, memory_order_release);
    *ret_border = border;
    return 0;
}

/* Acquire: pairs with weir__border_get. */
weir__border *weir__channel_border(const weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    return extra != NULL ? atomic_load_explicit(&extra->border, memory_order_acquire) : NULL;
}
