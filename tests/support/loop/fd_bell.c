/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An eventfd that counts rings, polled by the loop under one number and rung under another.
 */
#include "support/loop/fd_bell.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/executor/run_on_thread.h"
#include "support/test.h"

static struct bell *bell_of(weir__io_handle *handle)
{
    return WEIR_CONTAINER_OF(handle, struct bell, handle);
}

static void on_polled(weir__io_handle *handle, unsigned events)
{
    struct bell *bell = bell_of(handle);
    uint64_t ring;

    if ((events & POLLIN) == 0 || read(handle->descriptor, &ring, sizeof(ring)) < 0)
        return;
    if (bell->on_ring != NULL)
        bell->on_ring(bell);
    call_counter_add(&bell->rung);
}

static void on_failed(weir__io_handle *handle, int err)
{
    call_counter_task(&bell_of(handle)->failed, err);
    bell_drop(bell_of(handle));
}

static void on_detached(weir__io_handle *handle)
{
    struct bell *bell = bell_of(handle);

    weir__member_leave(&bell->member);
    call_counter_add(&bell->down);
}

static const weir__io_owner owner = {
    .polled = on_polled,
    .failed = on_failed,
    .detached = on_detached,
};

static void on_shut_down(weir__member *member)
{
    struct bell *bell = WEIR_CONTAINER_OF(member, struct bell, member);

    call_counter_add(&bell->shut_down);
    if (!bell->stubborn)
        bell_drop(bell);
}

static void on_abort(weir__member *member)
{
    struct bell *bell = WEIR_CONTAINER_OF(member, struct bell, member);

    call_counter_add(&bell->aborted);
    bell_drop(bell);
}

static const weir__member_type member_type = {.shut_down = on_shut_down, .abort = on_abort};

static void attach(void *arg)
{
    struct bell *bell = arg;

    if (weir__io_attach(weir__loop_io(bell->loop), &bell->handle) < 0)
        return;
    weir__member_join(&bell->member, bell->loop);
    weir__io_poll_start(&bell->handle, POLLIN);
}

void bell_hang(struct bell *bell, weir_executor *loop)
{
    int descriptor = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);

    assert_true(descriptor >= 0);
    *bell = (struct bell){
        .loop = loop,
        .rope = dup(descriptor),
        .on_ring = bell->on_ring,
        .user_data = bell->user_data,
        .stubborn = bell->stubborn,
        .member = {.type = &member_type},
    };
    weir__io_handle_init(&bell->handle, descriptor, &owner);
    if (weir_in_executor(loop))
        attach(bell);
    else
        run_on_executor(loop, attach, bell);
    assert_true(weir__io_is_attached(&bell->handle));
}

void bell_ring(struct bell *bell)
{
    (void)eventfd_write(bell->rope, 1);
}

void bell_drop(struct bell *bell)
{
    if (weir__io_is_attached(&bell->handle) || bell->handle.state == WEIR__IO_FAILED)
        weir__io_close(&bell->handle);
}

static void drop(void *arg)
{
    bell_drop(arg);
}

void bell_forget(struct bell *bell)
{
    assert_true(call_counter_await(&bell->down, 1));
    (void)close(bell->rope);
}

void bell_take_down(struct bell *bell)
{
    run_on_executor(bell->loop, drop, bell);
    bell_forget(bell);
}
