/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline beside a plain list of names: handlers add, remove and replace each other at random
 * from inside every callback that they have, `init` included, and the border between the loop and
 * another executor is set in front of any of them. test_pipeline.c has the cases one by one.
 *
 * What must hold:
 *   - After each change the pipeline has the names of the list, in its order.
 *   - `added` runs once at the most, `removed` once if `added` has run, `deinit` once.
 *   - A handler gets no event before `added`, and none after it was taken out.
 *   - An event reaches each handler once that was there from its beginning to its end, and none
 *     twice; every message arrives at the end of its way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "channel/border.h"
#include "channel/invoke.h"
#include "os/random.h"
#include "support/channel/test_channel.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/property.h"

enum { ACTORS_MAX = 600, LENGTH_MAX = 12, SPOUT = 0, SINK = 1, SLOTS = 19, TURNS_MAX = 60 };

enum { FIRST, LAST, BEFORE, AFTER, INSTEAD, REMOVAL, OWN_REMOVAL, CHANGES };

/* Every handler that was ever made in a run. */
struct actor {
    bool is_in;  /* the list */
    bool was_in; /* when the event began that is under way */
    unsigned seen;
    unsigned inits, added, removed, deinits;
    int expected; /* of its adding */
};

struct stage {
    struct test_channel tc;
    weir_group *group; /* the far handlers'; NULL = there are none */
    struct gate gate;
    bool changes_far; /* far handlers change the pipeline, too */

    struct actor actors[ACTORS_MAX];
    int count;
    int order[LENGTH_MAX + 8]; /* the list */
    int length;
    bool is_vague; /* a far handler has changed something: the list is not known until all is still
                    */

    weir__random random;
    unsigned budget; /* changes that the callbacks of this step may still make */
    unsigned depth;
    uint32_t flight; /* the slot of the event under way; 0 = none */
    unsigned sent, arrived;
    unsigned visits;
    bool is_started, is_over;
    const char *wrong; /* the first rule that did not hold */
};

static struct stage *stage;
static unsigned violations; /* found at the end of a run */

#define RULE(condition, words)                    \
    do {                                          \
        if (!(condition) && stage->wrong == NULL) \
            stage->wrong = words;                 \
    } while (0)

/* ---- the list ---- */

static int index_of(int id)
{
    for (int i = 0; i < stage->length; i++)
        if (stage->order[i] == id)
            return i;
    return -1;
}

static void list_insert(int at, int id)
{
    memmove(stage->order + at + 1, stage->order + at,
            (size_t)(stage->length - at) * sizeof(stage->order[0]));
    stage->order[at] = id;
    stage->length++;
    stage->actors[id].is_in = true;
}

static void list_remove(int id)
{
    int at = index_of(id);

    stage->actors[id].is_in = false;
    if (at < 0)
        return;
    stage->length--;
    memmove(stage->order + at, stage->order + at + 1,
            (size_t)(stage->length - at) * sizeof(stage->order[0]));
}

/* What the pipeline must say of this change. */
static int list_change(int kind, int id, int anchor)
{
    int at = kind == FIRST ? 0 : kind == LAST ? stage->length : index_of(anchor);

    if (at < 0)
        return -ENOENT;
    if (kind == INSTEAD)
        list_remove(anchor);
    list_insert(kind == AFTER ? at + 1 : at, id);
    return 0;
}

static bool is_on_loop(void)
{
    return weir__channel_in_loop(stage->tc.channel);
}

static bool is_closed(void)
{
    return weir__channel_phase(stage->tc.channel) == WEIR__CLOSED;
}

static void look_at_names(void)
{
    char actual[512], expected[512] = "head <-> ";
    size_t length = strlen(expected);

    if (stage->is_vague || !is_on_loop())
        return;
    for (int i = 0; i < stage->length; i++)
        length += (size_t)snprintf(expected + length, sizeof(expected) - length, "h%d <-> ",
                                   stage->order[i]);
    (void)snprintf(expected + length, sizeof(expected) - length, "tail");
    (void)weir_pipeline_dump(stage->tc.pipeline, actual, sizeof(actual));
    RULE(strcmp(actual, expected) == 0, "the names are those of the list");
}

/* ---- changes ---- */

struct plan {
    int kind;
    int id;
    int anchor;
};

static void maybe_change(weir_ctx *ctx);

static const weir_handler actor;

static uint32_t chance(uint32_t limit)
{
    return (uint32_t)weir__random_below(&stage->random, limit);
}

/* The last of what the adding does before the handler is linked. */
static int actor_init(void *state, const void *options)
{
    const struct plan *plan = options;
    struct actor *self = &stage->actors[plan->id];

    *(int *)state = plan->id;
    self->inits++;
    maybe_change(NULL);
    if (is_on_loop() && !stage->is_vague)
        self->expected = list_change(plan->kind, plan->id, plan->anchor);
    return 0;
}

static void name_of(int id, char *name, size_t size)
{
    (void)snprintf(name, size, "h%d", id);
}

static void add_actor(int kind, int anchor, bool is_far)
{
    int id = stage->count++, err;
    struct plan plan = {.kind = kind, .id = id, .anchor = anchor};
    char name[16], anchor_name[16];
    weir_place place = {.size = sizeof(place), .name = name};

    name_of(id, name, sizeof(name));
    name_of(anchor, anchor_name, sizeof(anchor_name));
    stage->actors[id] = (struct actor){.expected = WEIR_ECLOSED};
    place.group = is_far ? stage->group : NULL;
    place.first = kind == FIRST;
    place.before = kind == BEFORE ? anchor_name : NULL;
    place.after = kind == AFTER ? anchor_name : NULL;
    if (kind == INSTEAD)
        err = weir_pipeline_replace(stage->tc.pipeline, anchor_name, &place, &actor, &plan);
    else
        err = weir_pipeline_add(stage->tc.pipeline, &place, &actor, &plan);
    if (!is_on_loop() || stage->is_vague)
        return;
    RULE(err == stage->actors[id].expected, "adding succeeds if the anchor is in the list");
    RULE(err != WEIR_ECLOSED || is_closed(), "adding to an open channel is not refused");
}

static void remove_actor(int id)
{
    char name[16];
    int expected = index_of(id) >= 0 ? 0 : -ENOENT, err;

    name_of(id, name, sizeof(name));
    if (is_on_loop() && !stage->is_vague)
        list_remove(id);
    err = weir_pipeline_remove(stage->tc.pipeline, name, NULL);
    if (is_on_loop() && !stage->is_vague)
        RULE(err == expected, "removing succeeds if the handler is in the list");
}

/* A handler on the loop is removed when this returns, a remote one later. */
static void remove_itself(weir_ctx *ctx)
{
    int id = *(int *)weir_ctx_state(ctx);

    if (weir__ctx_is_remote(ctx))
        stage->is_vague = true;
    else
        list_remove(id);
    weir_ctx_remove(ctx);
}

/* Mostly one that is in the list; now and then one that is not any more. */
static int choose_anchor(void)
{
    if (chance(8) == 0)
        return (int)chance((uint32_t)stage->count);
    return stage->length > 0 ? stage->order[chance((uint32_t)stage->length)] : SINK;
}

static bool is_fixed(int id)
{
    return id == SPOUT || id == SINK;
}

static void change(weir_ctx *ctx)
{
    int kind = (int)chance(CHANGES), anchor = choose_anchor();
    bool is_far = stage->group != NULL && chance(3) == 0;

    if (stage->count == ACTORS_MAX)
        return;
    if (!is_on_loop())
        stage->is_vague = true;
    if (kind < INSTEAD && stage->length >= LENGTH_MAX)
        kind = REMOVAL;
    if ((kind == OWN_REMOVAL && ctx == NULL) || is_closed())
        kind = REMOVAL;
    if (kind == OWN_REMOVAL && !is_fixed(*(int *)weir_ctx_state(ctx)))
        remove_itself(ctx);
    else if (kind == REMOVAL && !is_fixed(anchor))
        remove_actor(anchor);
    else if (kind < INSTEAD || (kind == INSTEAD && !is_fixed(anchor)))
        add_actor(kind, anchor, is_far);
    look_at_names();
}

/* Changes from inside callbacks. Their number is bounded, and so is how deep they go. */
static void maybe_change(weir_ctx *ctx)
{
    if (stage->depth > 6 || (!is_on_loop() && !stage->changes_far))
        return;
    stage->depth++;
    while (stage->budget > 0 && chance(3) == 0) {
        stage->budget--;
        change(ctx);
    }
    stage->depth--;
}

/* ---- the handler ---- */

static struct actor *actor_of(weir_ctx *ctx)
{
    return &stage->actors[*(int *)weir_ctx_state(ctx)];
}

static void actor_deinit(void *state)
{
    struct actor *self = &stage->actors[*(int *)state];

    self->deinits++;
    RULE(self->deinits == 1, "deinit runs once");
    RULE(self->added == self->removed, "deinit comes after removed");
}

static void on_added(weir_ctx *ctx)
{
    struct actor *self = actor_of(ctx);

    stage->visits++;
    self->added++;
    RULE(self->added == 1, "added runs once");
    RULE(self->removed == 0, "added does not come after removed");
    if (stage->is_vague)
        self->is_in = true;
    maybe_change(ctx);
}

/* At the end of the channel they go from tail to head. */
static void on_removed(weir_ctx *ctx)
{
    struct actor *self = actor_of(ctx);
    int id = *(int *)weir_ctx_state(ctx);

    stage->visits++;
    self->removed++;
    RULE(self->removed == 1, "removed runs once");
    RULE(self->added == 1, "removed comes after added");
    if (self->is_in && !stage->is_vague) {
        RULE(is_closed(), "only what was removed is told so");
        RULE(index_of(id) == stage->length - 1, "at the end handlers go from the tail on");
    }
    if (self->is_in)
        list_remove(id);
    maybe_change(ctx);
}

/* An event has come. True if it goes on from here. */
static bool visit(weir_ctx *ctx, uint32_t slot, weir_msg *msg)
{
    struct actor *self = actor_of(ctx);
    int id = *(int *)weir_ctx_state(ctx);
    bool ends = id == (slot < WEIR__BIND ? SINK : SPOUT);

    stage->visits++;
    RULE(self->added == 1 && self->removed == 0, "events come between added and removed");
    RULE(self->is_in || weir__ctx_is_remote(ctx) || stage->is_vague,
         "what was removed gets no events");
    if (slot == stage->flight)
        self->seen++;
    maybe_change(ctx);
    if (!ends)
        return true;
    stage->arrived += msg != NULL;
    weir_msg_release(msg);
    return false;
}

#define IN(slot, BIT)                      \
    static void on_##slot(weir_ctx *ctx)   \
    {                                      \
        if (visit(ctx, WEIR__##BIT, NULL)) \
            weir_fire_##slot(ctx);         \
    }

#define IN_MSG(slot, BIT)                               \
    static void on_##slot(weir_ctx *ctx, weir_msg *msg) \
    {                                                   \
        if (visit(ctx, WEIR__##BIT, msg))               \
            weir_fire_##slot(ctx, msg);                 \
    }

#define OUT(slot, BIT)                                       \
    static void on_##slot(weir_ctx *ctx, weir_promise *done) \
    {                                                        \
        if (visit(ctx, WEIR__##BIT, NULL))                   \
            weir_##slot(ctx, done);                          \
    }

#define OUT_PLAIN(slot, BIT)               \
    static void on_##slot(weir_ctx *ctx)   \
    {                                      \
        if (visit(ctx, WEIR__##BIT, NULL)) \
            weir_##slot(ctx);              \
    }

IN(registered, REGISTERED)
IN(unregistered, UNREGISTERED)
IN(active, ACTIVE)
IN(inactive, INACTIVE)
IN(read_complete, READ_COMPLETE)
IN(writability, WRITABILITY)
IN(draining, DRAINING)
IN_MSG(read, READ)
IN_MSG(event, EVENT)
OUT(disconnect, DISCONNECT)
OUT(close, CLOSE)
OUT(deregister, DEREGISTER)
OUT(shutdown_output, SHUTDOWN_OUTPUT)
OUT_PLAIN(request_read, REQUEST_READ)
OUT_PLAIN(flush, FLUSH)

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    if (visit(ctx, WEIR__ERROR, NULL))
        weir_fire_error(ctx, err, detail);
}

static void on_bind(weir_ctx *ctx, const weir_address *local, weir_promise *done)
{
    if (visit(ctx, WEIR__BIND, NULL))
        weir_bind(ctx, local, done);
}

static void on_connect(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                       weir_promise *done)
{
    if (visit(ctx, WEIR__CONNECT, NULL))
        weir_connect(ctx, remote, local, done);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    if (visit(ctx, WEIR__WRITE, msg))
        weir_write(ctx, msg, done);
}

static const weir_handler actor = {
    .name = "actor",
    .state_size = sizeof(int),
    .init = actor_init,
    .deinit = actor_deinit,
    .added = on_added,
    .removed = on_removed,
    .registered = on_registered,
    .unregistered = on_unregistered,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .event = on_event,
    .writability = on_writability,
    .error = on_error,
    .draining = on_draining,
    .bind = on_bind,
    .connect = on_connect,
    .disconnect = on_disconnect,
    .close = on_close,
    .deregister = on_deregister,
    .request_read = on_request_read,
    .write = on_write,
    .flush = on_flush,
    .shutdown_output = on_shutdown_output,
};

/* ---- far handlers ---- */

static void nothing(void *arg)
{
    (void)arg;
}

static void hold(void)
{
    stage->gate = (struct gate){{0}, {0}};
    gate_hold(&stage->gate, weir_group_at(stage->group, 0));
}

/* The names of the pipeline are the list again. */
static void learn_names(void)
{
    char text[512], *rest = text, *word;

    for (int id = 0; id < stage->count; id++)
        stage->actors[id].is_in = false;
    stage->length = 0;
    (void)weir_pipeline_dump(stage->tc.pipeline, text, sizeof(text));
    while ((word = strtok_r(rest, " <->", &rest)) != NULL)
        if (word[0] == 'h' && word[1] != 'e')
            list_insert(stage->length, atoi(word + 1));
    stage->is_vague = false;
}

/* Runs the loop, the far handlers' thread, and so on, until nothing happens any more. */
static void settle(void)
{
    unsigned before;
    int quiet = 0;

    if (stage->group == NULL) {
        tc_run(&stage->tc);
        return;
    }
    for (int turn = 0; turn < TURNS_MAX && quiet < 3; turn++) {
        before = stage->visits;
        gate_open(&stage->gate);
        run_on_executor(weir_group_at(stage->group, 0), nothing, NULL);
        hold();
        quiet = stepper_run(&stage->tc.stepper) == 0 && stage->visits == before ? quiet + 1 : 0;
    }
    if (stage->is_vague)
        learn_names();
}

static void look_when_still(void)
{
    look_at_names();
    RULE(stage->arrived == stage->sent, "every message arrives");
    for (int id = 0; id < stage->count && stage->is_started; id++) {
        const struct actor *self = &stage->actors[id];

        if (self->is_in)
            RULE(self->added == 1 && self->removed == 0 && self->deinits == 0,
                 "what is in the list was added");
        else
            RULE(self->inits == self->deinits && self->added == self->removed,
                 "what is not in the list has gone");
    }
}

/* ---- steps ---- */

enum { STEP_FINISH, STEP_START, STEP_CHANGE, STEP_FIRE, STEP_RUN, STEP_MOVE, STEP_KINDS };

static int kind_of(const struct property_step *step)
{
    uint32_t kind = step->kind;

    return kind == 0   ? STEP_FINISH
           : kind < 4  ? STEP_START
           : kind < 10 ? STEP_CHANGE
           : kind < 16 ? STEP_RUN
           : kind < 19 ? STEP_MOVE
                       : STEP_FIRE;
}

static void start(void)
{
    if (stage->is_started)
        return;
    stage->is_started = true;
    weir_channel_register(stage->tc.channel, stage->tc.stepper.executor, NULL);
    tc_run(&stage->tc);
}

/* Sets the border in front of a handler of the list. */
static void move_to_group(void)
{
    char name[16];
    weir_ctx *ctx;
    int id;

    if (stage->group == NULL || !stage->is_started || stage->length == 0 || is_closed())
        return;
    id = stage->order[chance((uint32_t)stage->length)];
    name_of(id, name, sizeof(name));
    ctx = weir_pipeline_find(stage->tc.pipeline, name);
    if (ctx == NULL || weir__ctx_is_remote(ctx))
        return;
    RULE(weir__pipeline_offload(ctx, stage->group) == 0, "a handler can be moved");
    weir__pipeline_advance(stage->tc.pipeline);
    look_at_names();
}

static bool has_msg(uint32_t slot)
{
    return slot == WEIR__READ || slot == WEIR__EVENT || slot == WEIR__WRITE;
}

static bool is_between(int id)
{
    return index_of(id) > index_of(SPOUT) && index_of(id) < index_of(SINK);
}

static void begin_flight(uint32_t slot)
{
    for (int id = 0; id < stage->count; id++) {
        stage->actors[id].seen = 0;
        stage->actors[id].was_in = is_between(id);
    }
    stage->flight = slot;
}

static void end_flight(void)
{
    stage->flight = 0;
    for (int id = 0; id < stage->count; id++) {
        const struct actor *self = &stage->actors[id];

        RULE(self->seen <= 1, "no handler gets an event twice");
        RULE(self->seen == 1 || !self->was_in || !self->is_in,
             "what was there all the time gets the event");
    }
    RULE(stage->arrived == stage->sent, "every message arrives");
}

/* With far handlers an event is under way for longer, and others with it. */
static void fire(uint32_t slot)
{
    weir_msg *msg = has_msg(slot) ? text_msg("m") : NULL;

    if (!stage->is_started) {
        weir_msg_release(msg);
        return;
    }
    stage->sent += msg != NULL;
    if (stage->group == NULL)
        begin_flight(slot);
    weir__pass(&stage->tc.pipeline->head_tail,
               &(const weir__event){.slot = slot,
                                    .err = slot == WEIR__ERROR ? -EIO : 0,
                                    .detail = slot == WEIR__ERROR ? "x" : NULL,
                                    .msg = msg});
    if (stage->group == NULL)
        end_flight();
}

/* The channel ends, with changes on the way, and everything is gone. */
static void finish(void)
{
    stage->budget = 8;
    if (stage->group != NULL) {
        settle();
        weir_channel_abort(stage->tc.channel, NULL);
        settle();
    }
    tc_close(&stage->tc);
    if (stage->group != NULL) {
        gate_open(&stage->gate);
        end_group(stage->group);
    }
    stage->is_over = true;
    for (int id = 0; id < stage->count; id++) {
        const struct actor *self = &stage->actors[id];

        RULE(self->inits == self->deinits, "deinit runs once for each init");
        RULE(self->added == self->removed, "removed runs once for each added");
        RULE(self->added <= (unsigned)stage->is_started,
             "added runs once the channel is registered");
    }
}

static bool step_all(void *state, const struct property_step *step)
{
    stage = state;
    if (stage->is_over)
        return true;
    weir__random_init(&stage->random, step->numbers[1]);
    stage->budget = step->numbers[2] % 8;
    switch (kind_of(step)) {
    case STEP_FINISH:
        finish();
        break;
    case STEP_START:
        start();
        break;
    case STEP_CHANGE:
        change(NULL);
        break;
    case STEP_RUN:
        settle();
        look_when_still();
        break;
    case STEP_MOVE:
        move_to_group();
        break;
    default:
        fire(1u << (step->numbers[0] % SLOTS));
    }
    return stage->wrong == NULL || property_broken(stage->wrong, __FILE__, __LINE__);
}

static void describe(const struct property_step *step, char *text, size_t size)
{
    static const char *const names[STEP_KINDS] = {"finish", "start", "change",
                                                  "fire",   "run",   "move"};

    (void)snprintf(text, size, "%s slot %u seed %u budget %u", names[kind_of(step)],
                   step->numbers[0] % SLOTS, step->numbers[1], step->numbers[2] % 8);
}

static void begin_near(void *state)
{
    stage = state;
    tc_open_with(&stage->tc, &(const struct wire_options){.silent = true, .can_disconnect = true},
                 NULL);
    weir__random_init(&stage->random, 1);
    add_actor(LAST, 0, false);
    add_actor(LAST, 0, false);
}

static void begin_mixed(void *state)
{
    stage = state;
    stage->group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    hold();
    begin_near(state);
}

static void begin_far(void *state)
{
    begin_mixed(state);
    stage->changes_far = true;
}

static void end(void *state)
{
    stage = state;
    if (!stage->is_over)
        finish();
    violations += stage->wrong != NULL;
}

#define PROPERTY_OF(name_, begin_)                                                       \
    {                                                                                    \
        .name = name_, .state_size = sizeof(struct stage), .kinds = 40, .begin = begin_, \
        .step = step_all, .describe = describe, .end = end,                              \
    }

static void check(const struct property *property, size_t runs, size_t steps)
{
    log_capture_start();
    violations = 0;
    property_check(property, runs, steps);
    assert_int_equal(violations, 0);
}

TEST(pipeline_model, is_a_list_that_every_callback_may_change)
{
    static const struct property near = PROPERTY_OF("pipeline", begin_near);

    check(&near, 1000, 40);
}

TEST(pipeline_model, is_a_list_with_handlers_on_other_executors)
{
    static const struct property mixed = PROPERTY_OF("pipeline of two executors", begin_mixed);

    check(&mixed, 60, 30);
}

TEST(pipeline_model, loses_nothing_if_handlers_on_other_executors_change_it)
{
    static const struct property far = PROPERTY_OF("pipeline changed from elsewhere", begin_far);

    check(&far, 60, 30);
}
