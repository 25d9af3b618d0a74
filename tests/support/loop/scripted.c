/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of a scripted backend is an array. */
#include "support/loop/scripted.h"

#include <stdio.h>

#include "loop/readiness.h"

static int refusal;

void scripted_refuse(int err)
{
    refusal = err;
}

struct scripted *scripted_of(weir__io *io)
{
    return WEIR_CONTAINER_OF(io, struct scripted, io);
}

void scripted_event(weir__io_handle *handle, unsigned events)
{
    struct scripted *self = scripted_of(handle->io);

    if (self->count < SCRIPTED_EVENTS_MAX)
        self->batch[self->count++] = (struct scripted_event){handle, events};
}

static int scripted_open(weir__io *io, char *reason, size_t size)
{
    (void)io;
    if (refusal < 0)
        (void)snprintf(reason, size, "the script says no");
    return refusal;
}

static void scripted_close(weir__io *io)
{
    (void)io;
}

static int scripted_wait(weir__io *io, int64_t deadline_ns)
{
    struct scripted *self = scripted_of(io);

    self->deadline_ns = deadline_ns;
    return (int)(self->count - self->cursor);
}

static bool scripted_dispatch(weir__io *io, int64_t until_ns)
{
    struct scripted *self = scripted_of(io);
    unsigned left = self->max_events;

    (void)until_ns;
    self->dispatches++;
    while (self->cursor < self->count && (self->max_events == 0 || left-- > 0)) {
        struct scripted_event event = self->batch[self->cursor++];

        if (weir__io_is_attached(event.handle))
            weir__readiness_deliver(event.handle, event.events);
    }
    if (self->cursor < self->count)
        return true;
    self->cursor = self->count = 0;
    return false;
}

static int scripted_rebuild(weir__io *io)
{
    struct scripted *self = scripted_of(io);

    self->cursor = self->count = 0;
    return self->rebuild_error;
}

static bool scripted_detach(weir__io_handle *handle)
{
    return !scripted_of(handle->io)->defers_detach;
}

static void scripted_arm(weir__io_handle *handle)
{
    handle->armed = (uint16_t)weir__readiness_wanted(handle);
    scripted_of(handle->io)->arms++;
}

#define SCRIPTED_TYPE(...)                                                                 \
    {                                                                                      \
        .size = sizeof(struct scripted), .open = scripted_open, .close = scripted_close,   \
        .wait = scripted_wait, .dispatch = scripted_dispatch, .rebuild = scripted_rebuild, \
        .detach = scripted_detach, .arm = scripted_arm, WEIR__READINESS_SLOTS, __VA_ARGS__ \
    }

static const weir__io_type level = SCRIPTED_TYPE(.name = "scripted");
static const weir__io_type edge = SCRIPTED_TYPE(.name = "scripted-edge", .edge = true);

const struct backend scripted_level = {.name = "scripted", .type = &level};
const struct backend scripted_edge = {.name = "scripted-edge", .type = &edge};
