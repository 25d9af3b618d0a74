/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An eventfd in semaphore mode: the loop polls one descriptor, triggers write to a duplicate.
 */
#include "support/loop/fd_event.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/executor/run_on_thread.h"
#include "support/test.h"

static struct fd_event *event_of(weir__io_handle *handle)
{
    return WEIR_CONTAINER_OF(handle, struct fd_event, handle);
}

static void on_polled(weir__io_handle *handle, unsigned events)
{
    struct fd_event *event = event_of(handle);
    uint64_t count;

    if ((events & POLLIN) == 0 || read(handle->descriptor, &count, sizeof(count)) < 0)
        return;
    if (event->on_event != NULL)
        event->on_event(event);
    call_counter_add(&event->triggered);
}

static void on_failed(weir__io_handle *handle, int err)
{
    call_counter_task(&event_of(handle)->failed, err);
    fd_event_detach(event_of(handle));
}

static void on_detached(weir__io_handle *handle)
{
    struct fd_event *event = event_of(handle);

    weir__member_leave(&event->member, event->loop);
    call_counter_add(&event->closed);
}

static const weir__io_owner owner = {
    .polled = on_polled,
    .failed = on_failed,
    .detached = on_detached,
};

static void on_shut_down(weir__member *member)
{
    struct fd_event *event = WEIR_CONTAINER_OF(member, struct fd_event, member);

    call_counter_add(&event->shut_down);
    if (!event->waits_for_abort)
        fd_event_detach(event);
}

static void on_abort(weir__member *member)
{
    struct fd_event *event = WEIR_CONTAINER_OF(member, struct fd_event, member);

    call_counter_add(&event->aborted);
    fd_event_detach(event);
}

static const weir__member_type member_type = {.shut_down = on_shut_down, .abort = on_abort};

static void attach(void *arg)
{
    struct fd_event *event = arg;

    if (weir__io_attach(weir__loop_io(event->loop), &event->handle) < 0)
        return;
    event->was_attached = true;
    weir__member_join(&event->member, event->loop);
    weir__io_poll_start(&event->handle, POLLIN);
}

void fd_event_open(struct fd_event *event, weir_executor *loop)
{
    int descriptor = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);

    assert_true(descriptor >= 0);
    *event = (struct fd_event){
        .loop = loop,
        .descriptor = dup(descriptor),
        .on_event = event->on_event,
        .user_data = event->user_data,
        .waits_for_abort = event->waits_for_abort,
        .member = {.type = &member_type},
    };
    weir__io_handle_init(&event->handle, descriptor, &owner);
    if (weir_in_executor(loop))
        attach(event);
    else
        run_on_executor(loop, attach, event);
    assert_true(event->was_attached);
}

void fd_event_trigger(struct fd_event *event)
{
    (void)eventfd_write(event->descriptor, 1);
}

void fd_event_detach(struct fd_event *event)
{
    if (weir__io_is_attached(&event->handle) || event->handle.state == WEIR__IO_FAILED)
        weir__io_close(&event->handle);
}

static void detach_task(void *arg)
{
    fd_event_detach(arg);
}

void fd_event_free(struct fd_event *event)
{
    assert_true(call_counter_await(&event->closed, 1));
    (void)close(event->descriptor);
}

void fd_event_close(struct fd_event *event)
{
    run_on_executor(event->loop, detach_task, event);
    fd_event_free(event);
}
