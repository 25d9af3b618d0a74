/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor of the user on a loop: a handle that is only polled.
 *
 *      from        to          by
 *      -           NEW         weir_fd_watch_create on another thread
 *      -, NEW      ATTACHED    attach
 *      NEW         CLOSED      finish (closed or cancelled before it began; could not be attached)
 *      ATTACHED    LEAVING     leave (closed, the loop shuts down, the backend failed)
 *      LEAVING     CLOSED      on_detached
 *      LEAVING     ATTACHED    on_detached, if the backend was rebuilt: nothing is lost
 *
 * The stage belongs to the loop's thread. Requests of users are bits of one word, `wanted`, which
 * any thread may change. Inside the loop's turn a change is applied at once, otherwise by the
 * watch's task: one task for any number of changes, so that none can fail. `ready` is called only
 * for events wanted at that moment, applied or not.
 *
 * The memory is freed when the users, the loop (until CLOSED) and the task have released it.
 */
#include <weir/watch.h>

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "executor/executor.h"
#include "loop/loop.h"
#include "os/system.h"

#define EVENTS \
    (WEIR_FD_READABLE | WEIR_FD_WRITABLE | WEIR_FD_PRIORITY | WEIR_FD_HANGUP | WEIR_FD_ERROR)

/* Further bits of `wanted`. */
#define CLOSE (1u << 30)  /* no more events, final */
#define QUEUED (1u << 31) /* the task is queued, and will see all changes made until it runs */

enum stage { NEW, ATTACHED, LEAVING, CLOSED };

struct weir_fd_watch {
    /* Written at creation. */
    weir_executor *loop;
    int descriptor;
    weir_fd_watch_options options;
    weir_promise *closed;

    /* Used by the loop's thread. */
    weir__io_handle handle;
    weir__member member;
    enum stage stage;
    uint32_t armed; /* events requested from the backend */
    int err;        /* why it is leaving */

    /* Used by any thread. */
    _Atomic uint32_t wanted;
    weir_task task; /* belongs to the thread that set QUEUED */
    weir__refs refs;
    _Atomic uint32_t users; /* references that keep it from being closed */
};

static weir_fd_watch *watch_of(weir__io_handle *handle)
{
    return WEIR_CONTAINER_OF(handle, weir_fd_watch, handle);
}

static void release(weir_fd_watch *watch)
{
    if (!weir__refs_release(&watch->refs))
        return;
    weir_promise_release(watch->closed);
    weir__executor_weak_release(watch->loop);
    weir__free(watch);
}

/* ---- on the loop ---- */

/*
 * The kernel always reports POLLERR and POLLHUP; naming them makes a watch for them alone possible.
 */
static unsigned to_poll(uint32_t events)
{
    unsigned poll_events = POLLERR | POLLHUP;

    poll_events |= (events & WEIR_FD_READABLE) != 0 ? POLLIN : 0;
    poll_events |= (events & WEIR_FD_WRITABLE) != 0 ? POLLOUT : 0;
    poll_events |= (events & WEIR_FD_PRIORITY) != 0 ? POLLPRI : 0;
    poll_events |= (events & WEIR_FD_HANGUP) != 0 ? POLLRDHUP : 0;
    return poll_events;
}

static uint32_t from_poll(unsigned poll_events)
{
    uint32_t events = 0;

    events |= (poll_events & POLLIN) != 0 ? WEIR_FD_READABLE : 0;
    events |= (poll_events & POLLOUT) != 0 ? WEIR_FD_WRITABLE : 0;
    events |= (poll_events & POLLPRI) != 0 ? WEIR_FD_PRIORITY : 0;
    events |= (poll_events & (POLLHUP | POLLRDHUP)) != 0 ? WEIR_FD_HANGUP : 0;
    events |= (poll_events & POLLERR) != 0 ? WEIR_FD_ERROR : 0;
    return events;
}

/* A failed handle is not armed: on_failed follows. */
static void arm(weir_fd_watch *watch, uint32_t events)
{
    if (events == watch->armed || !weir__io_is_attached(&watch->handle))
        return;
    watch->armed = events;
    if (events != 0)
        weir__io_poll_start(&watch->handle, to_poll(events));
    else
        weir__io_poll_stop(&watch->handle);
}

static const weir__io_owner owner;

static int attach(weir_fd_watch *watch)
{
    int err;

    if (weir__executor_state(watch->loop) >= WEIR_EXECUTOR_SHUTTING_DOWN)
        return WEIR_EREJECTED;
    weir__io_handle_init(&watch->handle, watch->descriptor, &owner);
    err = weir__io_attach(weir__loop_io(watch->loop), &watch->handle);
    if (err < 0)
        return err;
    weir__member_join(&watch->member, watch->loop);
    watch->stage = ATTACHED;
    watch->armed = 0;
    arm(watch, atomic_load_explicit(&watch->wanted, memory_order_relaxed) & EVENTS);
    return 0;
}

static void leave(weir_fd_watch *watch, int err)
{
    if (watch->stage != ATTACHED)
        return;
    watch->stage = LEAVING;
    watch->err = err;
    weir__io_detach(&watch->handle);
}

/* A more precise text than that of the error. */
static const char *explain(int err)
{
    switch (err) {
    case WEIR_ECANCELED:
        return "the loop has shut down";
    case -EEXIST:
        return "the loop already watches this descriptor: dup(2) it to watch it twice";
    default:
        return weir_error_text(err);
    }
}

static void report(weir_fd_watch *watch, int err)
{
    const weir_fd_watch_options *options = &watch->options;

    if (err < 0 && err != WEIR_ECANCELED)
        weir__warn_limited("fd_watch", weir_executor_name(watch->loop),
                           "descriptor %d is no longer watched: %s", watch->descriptor,
                           explain(err));
    if (options->closed != NULL)
        options->closed(watch, err, options->user_data);
    if (err < 0)
        (void)weir_promise_fail(watch->closed, err, explain(err));
    else
        (void)weir_promise_succeed(watch->closed, NULL);
}

/* Never called from inside a call of the user. */
static void finish(weir_fd_watch *watch, int err)
{
    uint32_t wanted = atomic_fetch_or_explicit(&watch->wanted, CLOSE, memory_order_acq_rel);

    watch->stage = CLOSED;
    if ((wanted & CLOSE) != 0)
        err = 0; /* closed by the user first */
    else if (err == WEIR_EREJECTED)
        err =
            WEIR_ECANCELED; /* the loop shut down before or after it began: the same to the user */
    if (watch->options.close_descriptor)
        (void)weir__sys.close(watch->descriptor);
    report(watch, err);
    release(watch);
}

/*
 * A change may not be applied yet. Acquire, as in on_task: the thread that made the change may have
 * prepared data for the callback.
 */
static void on_polled(weir__io_handle *handle, unsigned poll_events)
{
    weir_fd_watch *watch = watch_of(handle);
    uint32_t wanted = atomic_load_explicit(&watch->wanted, memory_order_acquire);
    uint32_t events = from_poll(poll_events);

    if ((wanted & CLOSE) != 0 || (wanted & EVENTS) == 0)
        return;
    events &= wanted | WEIR_FD_HANGUP | WEIR_FD_ERROR;
    if (events != 0)
        watch->options.ready(watch, events, watch->options.user_data);
}

static void on_failed(weir__io_handle *handle, int err)
{
    leave(watch_of(handle), err);
}

static void on_detached(weir__io_handle *handle)
{
    weir_fd_watch *watch = watch_of(handle);
    int err = watch->err;

    weir__member_leave(&watch->member, watch->loop);
    if (err == WEIR_EREBUILT &&
        (atomic_load_explicit(&watch->wanted, memory_order_relaxed) & CLOSE) == 0)
        err = attach(watch);
    if (watch->stage != ATTACHED)
        finish(watch, err);
}

static const weir__io_owner owner = {
    .polled = on_polled,
    .failed = on_failed,
    .detached = on_detached,
};

static void on_shut_down(weir__member *member)
{
    leave(WEIR_CONTAINER_OF(member, weir_fd_watch, member), WEIR_ECANCELED);
}

static const weir__member_type member_type = {.shut_down = on_shut_down};

/* ---- changes from any thread ---- */

static void apply(weir_fd_watch *watch, uint32_t wanted)
{
    int err = 0;

    if (watch->stage == NEW) {
        if ((wanted & CLOSE) == 0)
            err = attach(watch);
        if (watch->stage == NEW)
            finish(watch, err);
    } else if (watch->stage == ATTACHED && (wanted & CLOSE) != 0)
        leave(watch, 0);
    else if (watch->stage == ATTACHED)
        arm(watch, wanted & EVENTS);
}

/*
 * QUEUED is cleared before the changes are applied, so that a later change queues the task again.
 * Acquire: see on_polled. Release, because it is in the middle of the chain of changes.
 */
static void on_task(void *arg, int status)
{
    weir_fd_watch *watch = arg;
    uint32_t wanted = atomic_fetch_and_explicit(&watch->wanted, ~QUEUED, memory_order_acq_rel);

    if (status == 0)
        apply(watch, wanted);
    else if (watch->stage == NEW) /* otherwise on_shut_down is called */
        finish(watch, WEIR_ECANCELED);
    release(watch);
}

static int queue(weir_fd_watch *watch)
{
    int err;

    weir__refs_retain(&watch->refs);
    err = weir__executor_post(watch->loop, &watch->task, WEIR__NOW);
    if (err < 0)
        release(watch);
    return err;
}

/*
 * Sets some bits of `wanted` and clears others, unless the watch is closed. The owner of a manual
 * loop queues the task too when it is outside a turn: that wakes the main loop that waits for it.
 */
static int change(weir_fd_watch *watch, uint32_t set, uint32_t clear)
{
    bool here = weir__executor_is_consumer(watch->loop);
    uint32_t before = atomic_load_explicit(&watch->wanted, memory_order_relaxed), after;

    if (!here)
        set |= QUEUED;
    do {
        if ((before & CLOSE) != 0)
            return WEIR_ECANCELED;
        after = (before & ~clear) | set;
    } while (!atomic_compare_exchange_weak_explicit(&watch->wanted, &before, after,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if ((before & QUEUED) != 0)
        return 0;
    if (here)
        apply(watch, after);
    else
        (void)queue(watch); /* a loop that takes no tasks has shut down, and closes its watches */
    return 0;
}

int weir_fd_watch_set_events(weir_fd_watch *watch, uint32_t events)
{
    if ((events & ~EVENTS) != 0)
        return -EINVAL;
    return change(watch, events, EVENTS);
}

void weir_fd_watch_close(weir_fd_watch *watch)
{
    (void)change(watch, CLOSE, 0);
}

weir_promise *weir_fd_watch_closed(weir_fd_watch *watch)
{
    return watch->closed;
}

int weir_fd_watch_descriptor(const weir_fd_watch *watch)
{
    return watch->descriptor;
}

weir_fd_watch *weir_fd_watch_retain(weir_fd_watch *watch)
{
    atomic_fetch_add_explicit(&watch->users, 1, memory_order_relaxed);
    weir__refs_retain(&watch->refs);
    return watch;
}

void weir_fd_watch_release(weir_fd_watch *watch)
{
    if (watch == NULL)
        return;
    /* Release: use of the watch happens before its end. Acquire: for the thread that ends it. */
    if (atomic_fetch_sub_explicit(&watch->users, 1, memory_order_acq_rel) == 1)
        weir_fd_watch_close(watch);
    release(watch);
}

/* ---- creation ---- */

/* Only epoll refuses files that are always ready; other backends would report them forever. */
static int probe_with_epoll(int descriptor)
{
    struct epoll_event nothing = {0};
    int epoll = weir__sys.epoll_create1(EPOLL_CLOEXEC), err = 0;

    if (epoll < 0)
        return -errno;
    if (epoll == descriptor)
        err = -EBADF; /* it got the number of a closed descriptor */
    else if (weir__sys.epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &nothing) < 0)
        err = -errno;
    (void)weir__sys.close(epoll);
    return err;
}

static int check(weir_executor *loop, int descriptor, const weir_fd_watch_options *options)
{
    int err;

    if (loop == NULL || weir__loop_io(loop) == NULL)
        return weir__options_reject("fd_watch", NULL, "the executor is not an event loop");
    if (options->ready == NULL)
        return weir__options_reject("fd_watch", weir_executor_name(loop), ".ready is NULL");
    if ((options->events & ~EVENTS) != 0)
        return weir__options_reject("fd_watch", weir_executor_name(loop), "unknown .events %#x",
                                    (unsigned)options->events);
    if (weir__executor_state(loop) >= WEIR_EXECUTOR_SHUTTING_DOWN)
        return WEIR_EREJECTED;
    err = probe_with_epoll(descriptor);
    if (err == -EPERM)
        weir__info("fd_watch", weir_executor_name(loop),
                   "descriptor %d cannot be watched: this kind of file is always ready",
                   descriptor);
    return err;
}

static int create(weir_executor *loop, int descriptor, const weir_fd_watch_options *options,
                  weir_fd_watch **ret_watch)
{
    weir_fd_watch *watch = weir__zalloc(sizeof(*watch));
    int err;

    if (watch == NULL)
        return -ENOMEM;
    err = weir_promise_create(loop, &watch->closed);
    if (err < 0) {
        weir__free(watch);
        return err;
    }
    weir__executor_weak_retain(loop);
    watch->loop = loop;
    watch->options = *options;
    watch->descriptor = descriptor;
    watch->member.type = &member_type;
    atomic_init(&watch->wanted, options->events);
    weir_task_init(&watch->task, on_task, watch);
    weir__refs_init(&watch->refs);
    atomic_init(&watch->users, 1);
    *ret_watch = watch;
    return 0;
}

static int watch_descriptor(weir_executor *loop, int descriptor,
                            const weir_fd_watch_options *options, weir_fd_watch **ret_watch)
{
    weir_fd_watch *watch;
    int err = create(loop, descriptor, options, &watch);

    if (err < 0)
        return err;
    weir__refs_retain(&watch->refs); /* the loop's, unless it refuses the watch */
    if (weir__executor_is_consumer(loop)) {
        err = attach(watch);
    } else {
        atomic_fetch_or_explicit(&watch->wanted, QUEUED, memory_order_relaxed);
        err = queue(watch);
    }
    if (err < 0)
        release(watch);
    if (err == 0 && ret_watch != NULL)
        *ret_watch = watch;
    else
        release(watch); /* without releasing a user: only a close ends it */
    return err;
}

int weir_fd_watch_create(weir_executor *loop, int descriptor, const weir_fd_watch_options *options,
                         weir_fd_watch **ret_watch)
{
    weir_fd_watch_options given;
    int err = weir__options_read(&given, sizeof(given), options);

    if (err < 0)
        return err;
    err = check(loop, descriptor, &given);
    if (err == 0)
        err = watch_descriptor(loop, descriptor, &given, ret_watch);
    if (err < 0 && given.close_descriptor)
        (void)weir__sys.close(descriptor);
    return err;
}
