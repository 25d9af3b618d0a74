/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all backends: lifecycle, the lists of handles, and dispatch.
 *
 * A handle's pending_link is in at most one list:
 *
 *     pending  has bits in `pending` for the next dispatch
 *     parked   PENDING_READ only, deferred until there may be memory
 *     gone     PENDING_DETACHED
 *
 * `detached` is called after a batch, because until then an event of the batch may refer to the
 * handle. For the same reason events need no generation counter: the handle they refer to still
 * exists, and if it is not attached any more they are dropped.
 *
 *     ATTACHED --weir__io_fail--> FAILED
 *     ATTACHED --weir__io_detach--> DETACHING --weir__io_detach_done--> gone
 *     FAILED --weir__io_detach--> DETACHING_FAILED --weir__io_detach_done--> gone
 *     any of these --weir__io_close--> CLOSING --weir__io_detach_done--> gone
 */
#include "loop/io.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include <weir/error.h>

#include "base/memory.h"
#include "base/no_stack_protector.h"
#include "executor/executor.h"
#include "loop/readiness.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/system.h"

#define BROKEN_WAIT_MAX_NS weir_seconds(1)
#define BROKEN_PAUSE_NS weir_ms(1)

/* ---- plain memory, until weir__io_set_memory ---- */

static int plain_alloc(void *arg, size_t size, weir__io_block *ret_block)
{
    void *base = weir__alloc(size);

    (void)arg;
    if (base == NULL)
        return -ENOMEM;
    *ret_block = (weir__io_block){.base = base, .capacity = size};
    return 0;
}

static void plain_free(void *arg, const weir__io_block *block)
{
    (void)arg;
    weir__free(block->base);
}

/* ---- the backend as a whole ---- */

int weir__io_create(const weir__io_type *type, const weir__io_options *options, weir__io **ret_io,
                    char *reason, size_t size)
{
    weir__io *io = weir__zalloc(type->size);
    int err;

    if (io == NULL) {
        snprintf(reason, size, "no memory for the %s backend", type->name);
        return -ENOMEM;
    }
    io->type = type;
    io->options = *options;
    io->memory = (weir__io_memory){.alloc = plain_alloc, .free = plain_free};
    weir__list_init(&io->handles);
    weir__list_init(&io->pending);
    weir__list_init(&io->parked);
    weir__list_init(&io->gone);
    io->retry_at_ns = WEIR_NEVER;
    io->retry_ns = WEIR__IO_RETRY_NS;
    io->wake_descriptor = weir__sys.eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (io->wake_descriptor < 0) {
        err = -errno;
        snprintf(reason, size, "no eventfd to wake the loop: %s%s", weir_error_text(err),
                 err == -EMFILE ? " (raise the limit: ulimit -n)" : "");
        goto free_io;
    }
    err = type->open(io, reason, size);
    if (err < 0)
        goto close_wake_descriptor;
    *ret_io = io;
    return 0;

close_wake_descriptor:
    (void)weir__descriptor_close(io->wake_descriptor);
free_io:
    weir__free(io);
    return err;
}

void weir__io_destroy(weir__io *io)
{
    if (!io->closed)
        io->type->close(io);
    (void)weir__descriptor_close(io->wake_descriptor);
    weir__readiness_free_batch(io);
    weir__free(io);
}

void weir__io_set_memory(weir__io *io, const weir__io_memory *memory)
{
    io->memory = *memory;
}

static int reopen(weir__io *io)
{
    char reason[128];
    int err = io->closed ? io->type->open(io, reason, sizeof(reason)) : 0;

    if (err == 0)
        io->closed = false;
    return err;
}

int weir__io_begin(weir__io *io)
{
    int err = reopen(io);

    if (err == 0 && io->type->begin != NULL)
        err = io->type->begin(io);
    io->broken = err < 0;
    return err;
}

int weir__io_rebuild(weir__io *io)
{
    int err = reopen(io);

    if (err == 0)
        err = io->type->rebuild(io);
    io->broken = err < 0;
    return err;
}

void weir__io_suspend(weir__io *io)
{
    weir__readiness_free_batch(io); /* its memory is this thread's */
    if (!io->closed)                /* closed if it could not begin again */
        io->type->close(io);
    io->closed = true;
    io->broken = true;
}

void weir__io_wake(weir__io *io)
{
    const uint64_t one = 1;

    while (weir__sys.write(io->wake_descriptor, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

/* ---- waiting ---- */

/*
 * Without a kernel object a loop still sleeps and wakes by the eventfd. If even that fails it
 * sleeps briefly, so as not to spin.
 */
__attribute__((noinline, cold)) static int wait_broken(weir__io *io, int64_t deadline_ns)
{
    struct pollfd wake = {.fd = io->wake_descriptor, .events = POLLIN};
    int64_t left_ns = weir__monotonic_left(deadline_ns);
    struct timespec timeout = weir__timespec(weir__earlier(left_ns, BROKEN_WAIT_MAX_NS));
    uint64_t value;
    int count;

    weir__counter_add(io->stats.waits, 1);
    count = weir__sys.ppoll(&wake, 1, &timeout, NULL);
    if (count > 0)
        io->woken = weir__sys.read(io->wake_descriptor, &value, sizeof(value)) > 0;
    else if (count < 0 && errno != EINTR)
        weir__thread_sleep(weir__earlier(left_ns, BROKEN_PAUSE_NS));
    return 0;
}

int weir__io_wait(weir__io *io, int64_t deadline_ns)
{
    if (weir__io_has_pending(io))
        deadline_ns = 0;
    else if (deadline_ns > io->retry_at_ns)
        deadline_ns = io->retry_at_ns;
    io->woken = false;
    io->interrupted = false;
    return io->broken ? wait_broken(io, deadline_ns) : io->type->wait(io, deadline_ns);
}

/* ---- dispatching ---- */

bool weir__io_check_clock(weir__io *io, int64_t until_ns)
{
    io->work = 0;
    return weir__monotonic_now() >= until_ns;
}

static weir__io_handle *handle_of(weir__list *pending_link)
{
    return WEIR_CONTAINER_OF(pending_link, weir__io_handle, pending_link);
}

static void dispatch_handle(weir__io_handle *handle)
{
    const weir__io_type *type = handle->io->type;
    unsigned pending = handle->pending;

    weir__io_set_current(handle->io, handle);
    handle->pending = 0;
    if ((pending & WEIR__IO_PENDING_FAILED) != 0)
        handle->owner->failed(handle, handle->result);
    if ((pending & WEIR__IO_PENDING_CONNECT) != 0)
        handle->owner->connected(handle, handle->result);
    pending &= WEIR__IO_PENDING_READ | WEIR__IO_PENDING_WRITE;
    if (pending != 0 && weir__io_may_notify(handle))
        (type->dispatch_pending != NULL ? type->dispatch_pending
                                        : weir__readiness_pending)(handle, pending);
}

/* The backoff ends when a parked handle found memory; otherwise the delay doubles. */
static void adapt_retry(weir__io *io, int64_t now_ns, bool found_memory)
{
    if (found_memory)
        io->retry_ns = WEIR__IO_RETRY_NS;
    else if (io->retry_ns < WEIR__IO_RETRY_MAX_NS)
        io->retry_ns *= 2;
    if (io->retry_at_ns != WEIR_NEVER)
        io->retry_at_ns = now_ns + io->retry_ns;
}

/*
 * Retries parked handles in order until one is parked again. Without memory that is the first one,
 * so a retry costs the same however many are parked. The others keep their data in the socket.
 */
static void unpark(weir__io *io, int64_t until_ns)
{
    int64_t now_ns = io->retry_at_ns != WEIR_NEVER ? weir__monotonic_now() : 0;
    unsigned tried = 0;
    bool late = false;
    weir__list *link;

    if (now_ns < io->retry_at_ns)
        return;
    io->retry_at_ns = WEIR_NEVER;
    while (!late && io->retry_at_ns == WEIR_NEVER && (link = weir__list_pop(&io->parked)) != NULL) {
        dispatch_handle(handle_of(link));
        late = weir__io_is_late(io, until_ns);
        tried++;
    }
    adapt_retry(io, now_ns, tried > 1 || io->retry_at_ns == WEIR_NEVER);
    if (io->retry_at_ns == WEIR_NEVER && !weir__list_is_empty(&io->parked))
        io->retry_at_ns = 0; /* out of time: the rest is for the next dispatch */
}

/*
 * Processes the handles that are pending now, until the time is up, but not those that become
 * pending meanwhile: a handle that is unparked here and has more to read goes behind `end`.
 */
static void dispatch_pending(weir__io *io, int64_t until_ns)
{
    weir__list end;
    weir__list *link;
    bool late = false;

    if (weir__list_is_empty(&io->pending) && io->retry_at_ns == WEIR_NEVER)
        return;
    weir__list_append(&io->pending, &end);
    unpark(io, until_ns);
    while (!late && (link = weir__list_pop(&io->pending)) != &end) {
        dispatch_handle(handle_of(link));
        late = weir__io_is_late(io, until_ns);
    }
    weir__list_remove(&end);
}

/*
 * A failure that was not delivered before the detach is delivered now. The owner may close the
 * handle in the callback; then it is in the list of gone handles again. True if it is not.
 */
static bool deliver_failure_first(weir__io_handle *handle)
{
    if ((handle->pending & WEIR__IO_PENDING_FAILED) == 0)
        return true;
    handle->pending = WEIR__IO_PENDING_DETACHED;
    handle->owner->failed(handle, handle->result);
    return weir__list_is_empty(&handle->pending_link);
}

static void deliver_detached(weir__io *io)
{
    weir__list end;
    weir__list *link;

    if (weir__list_is_empty(&io->gone))
        return;
    weir__list_append(&io->gone, &end);
    while ((link = weir__list_pop(&io->gone)) != &end) {
        weir__io_handle *handle = handle_of(link);

        if (!deliver_failure_first(handle))
            continue;
        handle->pending = 0;
        handle->io = NULL;
        weir__list_remove(&handle->link);
        weir__counter_add(io->stats.handles, -1);
        handle->owner->detached(handle);
    }
}

/*
 * If the time is up before the batch is done, the backend continues it in the next call, and no
 * `detached` is called before that. Pending handles never keep the backend from making progress
 * with its batch, however late it is. Pending handles that are left do not keep the loop from
 * waiting for new events, or handles that are always pending would starve the others.
 *
 * Not inlined: the watchdog looks for it in the stack.
 */
WEIR__NO_STACK_PROTECTOR __attribute__((noinline)) bool weir__io_dispatch(weir__io *io,
                                                                          int64_t until_ns)
{
    bool more;

    io->work = 0;
    dispatch_pending(io, until_ns);
    more = !io->broken && io->type->dispatch(io, until_ns);
    weir__io_set_current(io, NULL);
    if (!more)
        deliver_detached(io);
    return more;
}

void weir__io_memory_returned(weir__io *io)
{
    if (!weir__list_is_empty(&io->parked))
        io->retry_at_ns = 0;
}

/* ---- handles ---- */

void weir__io_handle_init(weir__io_handle *handle, int descriptor, const weir__io_owner *owner)
{
    *handle =
        (weir__io_handle){.owner = owner, .descriptor = descriptor, .reads = WEIR__IO_READS_MAX};
    weir__list_init(&handle->link);
    weir__list_init(&handle->pending_link);
}

int weir__io_attach(weir__io *io, weir__io_handle *handle)
{
    int err;

    handle->io = io;
    handle->state = WEIR__IO_ATTACHED;
    handle->wants = 0;
    handle->armed = 0;
    handle->unread = false;
    handle->edge = io->type->edge;
    handle->slot = 0;
    err = io->type->attach != NULL ? io->type->attach(handle) : 0;
    if (err < 0) {
        handle->io = NULL;
        return err;
    }
    weir__list_append(&io->handles, &handle->link);
    weir__counter_add(io->stats.handles, 1);
    return 0;
}

/* Clears what is pending or parked. */
static void begin_leaving(weir__io_handle *handle, uint8_t state)
{
    handle->state = state;
    handle->wants = 0;
    handle->pending = 0;
    weir__list_remove(&handle->pending_link);
}

void weir__io_detach(weir__io_handle *handle)
{
    uint8_t undelivered_failure = handle->pending & WEIR__IO_PENDING_FAILED;

    if (handle->state >= WEIR__IO_DETACHING)
        return;
    begin_leaving(handle, handle->state == WEIR__IO_FAILED ? WEIR__IO_DETACHING_FAILED
                                                           : WEIR__IO_DETACHING);
    handle->pending = undelivered_failure;
    if (handle->io->type->detach(handle))
        weir__io_detach_done(handle);
}

void weir__io_close(weir__io_handle *handle)
{
    bool gone = (handle->pending & WEIR__IO_PENDING_DETACHED) != 0;

    if (handle->state == WEIR__IO_CLOSING)
        return;
    begin_leaving(handle, WEIR__IO_CLOSING);
    if (gone || handle->io->type->detach(handle))
        weir__io_detach_done(handle);
}

void weir__io_set_pending(weir__io_handle *handle, unsigned pending)
{
    weir__io *io = handle->io;
    weir__list *list = pending == WEIR__IO_PENDING_DETACHED ? &io->gone : &io->pending;

    handle->pending |= (uint8_t)pending;
    weir__list_remove(&handle->pending_link);
    weir__list_append(list, &handle->pending_link);
}

void weir__io_detach_done(weir__io_handle *handle)
{
    if (handle->state == WEIR__IO_CLOSING) {
        weir__counter_add(handle->io->stats.closes, 1);
        (void)weir__descriptor_close(handle->descriptor);
        handle->descriptor = -1;
    }
    weir__io_set_pending(handle, WEIR__IO_PENDING_DETACHED);
}

void weir__io_fail(weir__io_handle *handle, int err)
{
    if (handle->state != WEIR__IO_ATTACHED)
        return;
    begin_leaving(handle, WEIR__IO_FAILED);
    handle->result = err;
    weir__io_set_pending(handle, WEIR__IO_PENDING_FAILED);
}

void weir__io_retry_later(weir__io *io)
{
    if (io->retry_at_ns == WEIR_NEVER)
        io->retry_at_ns = weir__monotonic_now() + io->retry_ns;
}

void weir__io_park(weir__io_handle *handle)
{
    weir__io *io = handle->io;
    bool is_pending = handle->pending != 0;

    handle->pending |= WEIR__IO_PENDING_READ;
    if (is_pending)
        return; /* retried with the other pending work */
    weir__list_append(&io->parked, &handle->pending_link);
    weir__io_retry_later(io);
}
