/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/timeouts.h>

#include <assert.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/pipeline.h>

#include "base/options.h"
#include "channel/last_sent.h"
#include "handler/idle_watch.h"

/* ---- events: static, with a permanent reference ---- */

struct weir_idle_event {
    weir_msg msg; /* first */
    enum weir_idle_kind kind;
    bool first;
};

static void never(weir_msg *msg)
{
    (void)msg;
    assert(!"a static event was freed");
}

static const weir_msg_type event_type = {.name = "idle", .destroy = never};

#define EVENT(kind_, first_) \
    [first_] = {             \
        .msg = {.type = &event_type, .refs = WEIR_MSG_STATIC}, .kind = (kind_), .first = (first_)}
#define EVENTS(kind) [kind] = {EVENT(kind, false), EVENT(kind, true)}

static weir_idle_event events[WEIR__IDLE_KINDS][2] = {
    EVENTS(WEIR_IDLE_READER), EVENTS(WEIR_IDLE_WRITER), EVENTS(WEIR_IDLE_BOTH)};

const weir_idle_event *weir_idle_event_of(const weir_msg *event)
{
    return weir_msg_is(event, &event_type) ? (const weir_idle_event *)(const void *)event : NULL;
}

enum weir_idle_kind weir_idle_event_kind(const weir_idle_event *event)
{
    return event->kind;
}

bool weir_idle_event_is_first(const weir_idle_event *event)
{
    return event->first;
}

/* ---- the handler ---- */

static void on_idle(weir_ctx *ctx, enum weir_idle_kind kind, bool first)
{
    weir_fire_event(ctx, weir_msg_retain(&events[kind][first].msg));
}

static int init(void *state, const void *options)
{
    weir__idle_watch_init(state, options, on_idle);
    return 0;
}

static const weir_handler idle = {
    .name = "idle",
    .state_size = sizeof(weir__idle_watch),
    .init = init,
    WEIR__IDLE_WATCH_SLOTS,
};

int weir_idle_add(weir_pipeline *pipeline, const weir_idle_options *options)
{
    weir_idle_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0)
        err = weir__options_check("idle", NULL, WEIR__OPTION_FROM(&own, reader_ns, WEIR_OFF),
                                  WEIR__OPTION_FROM(&own, writer_ns, WEIR_OFF),
                                  WEIR__OPTION_FROM(&own, both_ns, WEIR_OFF));
    if (err == 0 && weir__idle_watch_needs_last_sent(&own))
        err = weir__last_sent_watch(weir_pipeline_channel(pipeline));
    return err < 0 ? err : weir_pipeline_add_last(pipeline, &idle, &own);
}
