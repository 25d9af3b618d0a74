/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's side of io_uring: rings, their queues, io_uring_enter. Operations: uring_op.c.
 *
 * A ring is a descriptor of the world. The two queues are memory of this file, to which the struct
 * io_uring of the loop points. What a kernel may do otherwise, this one does if the seed says so:
 * it submits a part of the queue or nothing, has small queues that overflow, ends multishot
 * operations early, knows fewer flags. Time passes in a wait only.
 */
#include "sim/uring.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_MAX 64             /* as in backend.c */
#define INTERRUPT_NS weir_us(5) /* until a thread is interrupted, at most */

weir__sim_kernel weir__sim_kernel_of_world;

static weir__uring_calls before; /* outside the world */

static const weir__sim_file_type uring_type;

/* ---- the completion queue ---- */

struct overflow {
    weir__list link;
    uint64_t user_data;
    int result;
    unsigned flags;
};

bool weir__sim_uring_has_room(const weir__sim_uring *ring)
{
    return ring->cq_tail - ring->cq_head < ring->cq_entries && weir__list_is_empty(&ring->overflow);
}

static void put(weir__sim_uring *ring, uint64_t user_data, int result, unsigned flags)
{
    struct io_uring_cqe *completion = &ring->cqes[ring->cq_tail & ring->cq_mask];

    completion->user_data = user_data;
    completion->res = result;
    completion->flags = flags;
    __atomic_store_n(&ring->cq_tail, ring->cq_tail + 1, __ATOMIC_RELEASE);
}

void weir__sim_uring_post(weir__sim_uring *ring, uint64_t user_data, int result, unsigned flags)
{
    struct overflow *rest;

    weir__sim_trace("complete", ring->file.number, (uint64_t)(int64_t)result);
    if (weir__sim_uring_has_room(ring)) {
        put(ring, user_data, result, flags);
    } else if (weir__sim_fault(WEIR_SIM_FAULT_NO_BUFFERS)) {
        ring->has_dropped = true;
    } else {
        rest = calloc(1, sizeof(*rest));
        if (rest == NULL)
            abort();
        rest->user_data = user_data;
        rest->result = result;
        rest->flags = flags;
        weir__list_append(&ring->overflow, &rest->link);
        ring->sq_flags |= IORING_SQ_CQ_OVERFLOW;
        weir__sim_trace("overflow", ring->file.number, 0);
    }
    weir__sim_file_changed(&ring->file);
}

static void flush_overflow(weir__sim_uring *ring)
{
    while (!weir__list_is_empty(&ring->overflow) &&
           ring->cq_tail - ring->cq_head < ring->cq_entries) {
        struct overflow *first =
            WEIR_CONTAINER_OF(weir__list_pop(&ring->overflow), struct overflow, link);

        put(ring, first->user_data, first->result, first->flags);
        free(first);
    }
    if (weir__list_is_empty(&ring->overflow))
        ring->sq_flags &= ~(unsigned)IORING_SQ_CQ_OVERFLOW;
}

/* ---- the time of work ---- */

static void on_interrupt(weir__sim_event *event)
{
    weir__sim_uring_run_work(WEIR_CONTAINER_OF(event, weir__sim_uring, interrupt));
}

void weir__sim_uring_notify(weir__sim_uring *ring)
{
    if ((ring->flags & IORING_SETUP_TASKRUN_FLAG) != 0)
        ring->sq_flags |= IORING_SQ_TASKRUN;
    if (ring->waiter != NULL)
        weir__sim_wake_fiber(ring->waiter);
    else if (!weir__sim_uring_defers(ring) && ring->interrupt.slot == 0)
        weir__sim_event_add(&ring->interrupt,
                            weir__sim->now_ns + 1 + weir__sim_duration(INTERRUPT_NS), on_interrupt);
    weir__sim_file_changed(&ring->file);
}

/* ---- a ring ---- */

static weir__sim_uring *ring_of(int descriptor)
{
    weir__sim_file *file = weir__sim_file_of(descriptor);

    return file != NULL && file->type == &uring_type ? (weir__sim_uring *)(void *)file : NULL;
}

static void free_ring(weir__sim_uring *ring)
{
    weir__list *link;

    while ((link = weir__list_pop(&ring->overflow)) != NULL)
        free(WEIR_CONTAINER_OF(link, struct overflow, link));
    free(ring->sqes);
    free(ring->cqes);
    free(ring);
}

static unsigned uring_poll(weir__sim_file *file)
{
    const weir__sim_uring *ring = (const weir__sim_uring *)(const void *)file;
    bool has_completions = ring->cq_tail != ring->cq_head || !weir__list_is_empty(&ring->work) ||
                           !weir__list_is_empty(&ring->overflow);

    return (has_completions ? POLLIN : 0u) | POLLOUT;
}

static void uring_close(weir__sim_file *file)
{
    weir__sim_uring *ring = (weir__sim_uring *)(void *)file;

    (void)weir__sim_uring_end_all(ring, true);
    weir__sim_event_remove(&ring->interrupt);
    free_ring(ring);
}

static const weir__sim_file_type uring_type = {
    .name = "io_uring",
    .poll = uring_poll,
    .close = uring_close,
};

static unsigned power_of_two(unsigned number)
{
    unsigned power = 1;

    while (power < number)
        power *= 2;
    return power;
}

static weir__sim_uring *create_ring(unsigned entries, const struct io_uring_params *params)
{
    const weir__sim_kernel *kernel = &weir__sim_kernel_of_world;
    weir__sim_uring *ring = calloc(1, sizeof(*ring));
    unsigned completions = params->cq_entries;

    if (ring == NULL)
        return NULL;
    weir__list_init(&ring->overflow);
    weir__list_init(&ring->ops);
    weir__list_init(&ring->work);
    ring->flags = params->flags;
    ring->sq_entries = power_of_two(entries < kernel->submissions ? entries : kernel->submissions);
    if (completions > kernel->completions)
        completions = kernel->completions;
    ring->cq_entries =
        power_of_two(completions > ring->sq_entries ? completions : ring->sq_entries);
    ring->sq_mask = ring->sq_entries - 1;
    ring->cq_mask = ring->cq_entries - 1;
    ring->sqes = malloc(ring->sq_entries * sizeof(*ring->sqes)); /* the loop clears its entries */
    ring->cqes = malloc(ring->cq_entries * sizeof(*ring->cqes));
    if (ring->sqes != NULL && ring->cqes != NULL)
        return ring;
    free_ring(ring);
    return NULL;
}

/* As liburing does after it has mapped the queues. */
static void show(weir__sim_uring *ring, int descriptor, struct io_uring *user)
{
    user->sq.khead = &ring->sq_head;
    user->sq.ktail = &ring->sq_tail;
    user->sq.kflags = &ring->sq_flags;
    user->sq.kdropped = &ring->sq_dropped;
    user->sq.sqes = ring->sqes;
    user->sq.ring_mask = ring->sq_mask;
    user->sq.ring_entries = ring->sq_entries;
    user->cq.khead = &ring->cq_head;
    user->cq.ktail = &ring->cq_tail;
    user->cq.kflags = &ring->cq_flags;
    user->cq.koverflow = &ring->cq_overflow;
    user->cq.cqes = ring->cqes;
    user->cq.ring_mask = ring->cq_mask;
    user->cq.ring_entries = ring->cq_entries;
    user->flags = ring->flags;
    user->ring_fd = user->enter_ring_fd = descriptor;
    ring->user = user;
}

/* ---- the calls ---- */

static int sim_setup(unsigned entries, struct io_uring *user, struct io_uring_params *params)
{
    weir__sim_uring *ring;
    int descriptor;

    if ((params->flags & weir__sim_kernel_of_world.refused) != 0)
        return -EINVAL;
    ring = create_ring(entries, params);
    if (ring == NULL)
        return -ENOMEM;
    descriptor = weir__sim_file_open(&ring->file, &uring_type);
    if (descriptor < 0) {
        free_ring(ring);
        return descriptor;
    }
    ring->process = weir__sim_process();
    show(ring, descriptor, user);
    return 0;
}

static void sim_exit(struct io_uring *user)
{
    (void)weir__sim_file_close(user->ring_fd);
}

static int sim_enable(struct io_uring *user)
{
    weir__sim_uring *ring = ring_of(user->ring_fd);

    if (ring == NULL || ring->is_enabled)
        return ring == NULL ? -EBADF : -EBADFD;
    ring->is_enabled = true;
    ring->submitter = weir__sim->current->number;
    return 0;
}

static int sim_register_buffers(struct io_uring *user, struct io_uring_buf_reg *buffers,
                                unsigned flags)
{
    weir__sim_uring *ring = ring_of(user->ring_fd);

    (void)flags;
    if (ring == NULL || ring->buffers != NULL)
        return ring == NULL ? -EBADF : -EEXIST;
    ring->buffers = (const struct io_uring_buf_ring *)(uintptr_t)buffers->ring_addr;
    ring->buffer_count = buffers->ring_entries;
    return 0;
}

static int sim_limit_workers(struct io_uring *user, unsigned *workers)
{
    (void)user;
    (void)workers; /* there are none */
    return 0;
}

static int sim_cancel_sync(struct io_uring *user, struct io_uring_sync_cancel_reg *what)
{
    weir__sim_uring *ring = ring_of(user->ring_fd);

    (void)what; /* all */
    if (ring == NULL)
        return -EBADF;
    return weir__sim_uring_end_all(ring, false) > 0 ? 0 : -ENOENT;
}

static int sim_uname(struct utsname *ret_kernel)
{
    memset(ret_kernel, 0, sizeof(*ret_kernel));
    (void)snprintf(ret_kernel->release, sizeof(ret_kernel->release), "6.1.0");
    return 0;
}

static int sim_disabled(void)
{
    return 0;
}

/* ---- io_uring_enter ---- */

/* Of a call for which there is no memory. EBADR: completions are lost, the ring is of no use. */
static int no_memory(const weir__sim_uring *ring)
{
    if (weir__sim_below(4) == 0)
        return -EBADR;
    return weir__list_is_empty(&ring->overflow) ? -EAGAIN : -EBUSY;
}

/* Submits `count` entries, or fewer: returns their number, or an error if there are none. */
static int submit(weir__sim_uring *ring, unsigned count)
{
    unsigned submitted = ring->sq_tail - ring->sq_head;

    if (count < submitted)
        submitted = count;
    if (submitted == 0)
        return 0;
    if (weir__sim_fault(WEIR_SIM_FAULT_NO_BUFFERS))
        return no_memory(ring);
    if (submitted > 1 && weir__sim_fault(WEIR_SIM_FAULT_SHORT_WRITE))
        submitted = 1 + (unsigned)weir__sim_below(submitted - 1);
    for (unsigned i = 0; i < submitted; i++) {
        const struct io_uring_sqe sqe = ring->sqes[ring->sq_head & ring->sq_mask];

        __atomic_store_n(&ring->sq_head, ring->sq_head + 1, __ATOMIC_RELEASE);
        weir__sim_uring_issue(ring, &sqe);
    }
    return (int)submitted;
}

static int64_t deadline_of(const void *argument)
{
    const struct io_uring_getevents_arg *given = argument;
    const struct __kernel_timespec *timeout =
        (const struct __kernel_timespec *)(uintptr_t)given->ts;

    return timeout == NULL
               ? WEIR_NEVER
               : weir__sim->now_ns + weir_seconds(timeout->tv_sec) + (int64_t)timeout->tv_nsec;
}

static int get_events(weir__sim_uring *ring, unsigned wait, int64_t deadline_ns)
{
    for (;;) {
        weir__sim_uring_run_work(ring);
        flush_overflow(ring);
        if (ring->cq_tail - ring->cq_head >= wait || !weir__list_is_empty(&ring->overflow))
            return 0;
        if (!weir__list_is_empty(&ring->work))
            continue;
        if (ring->has_dropped)
            return -EBADR;
        if (deadline_ns <= weir__sim->now_ns)
            return -ETIME;
        if (weir__sim_fault(WEIR_SIM_FAULT_INTERRUPTED))
            return -EINTR;
        ring->busy = 0;
        ring->waiter = weir__sim->current;
        weir__sim_wait("I/O", ring, deadline_ns);
        ring->waiter = NULL;
    }
}

/* ---- a check: something undelivered means that nothing is received ---- */

/* Events with data that a loop has taken from its ring and not delivered. */
static unsigned undelivered(const weir__io_handle *handle)
{
    const weir__uring_event *last = handle->undelivered, *event = last;
    unsigned count = 0;

    if (last == NULL)
        return 0;
    do {
        count += event->op == WEIR__URING_RECEIVE;
        event = event->next;
    } while (event != last);
    return count;
}

/*
 * Called when the loop has submitted all that it had. So what is undelivered was received before,
 * into buffers of the ring, or of the one before a rebuild: all of them, and once more those that
 * were returned meanwhile.
 */
static void check_undelivered(const weir__sim_uring *ring)
{
    const weir__uring *loop = WEIR_CONTAINER_OF(ring->user, weir__uring, ring);
    const weir__list *handles = &loop->io.handles;

    if (handles->next == NULL || loop->needs_rearm)
        return; /* a probe; or it tries again */
    for (const weir__list *link = handles->next; link != handles; link = link->next) {
        const weir__io_handle *handle =
            WEIR_CONTAINER_OF((weir__list *)(uintptr_t)link, weir__io_handle, link);
        unsigned count = undelivered(handle);

        if (count > 0 && weir__sim_uring_receives(ring, handle))
            weir_sim_fail(weir__sim, "descriptor %d is received from, but %u events wait",
                          handle->descriptor, count);
        if (count > 2 * weir__sim_kernel_of_world.most_buffers)
            weir_sim_fail(weir__sim, "%u events of descriptor %d wait, of %u buffers", count,
                          handle->descriptor, weir__sim_kernel_of_world.most_buffers);
    }
}

static int sim_enter(unsigned descriptor, unsigned count, unsigned wait, unsigned flags,
                     sigset_t *argument, size_t size)
{
    weir__sim_uring *ring = ring_of((int)descriptor);
    int submitted, err;

    (void)size;
    if (ring == NULL || !ring->is_enabled)
        return ring == NULL ? -EBADF : -EBADFD;
    if ((ring->flags & IORING_SETUP_SINGLE_ISSUER) != 0 &&
        ring->submitter != weir__sim->current->number)
        return -EEXIST;
    weir__sim_trace("enter", ring->file.number, count);
    weir__sim_preempt();
    if (++ring->busy == BUSY_MAX) {
        ring->busy = 0;
        weir__sim_yield();
    }
    if (!weir__sim_uring_defers(ring))
        weir__sim_uring_run_work(ring);
    submitted = submit(ring, count);
    if (submitted != (int)count)
        return submitted;
    if (count < ring->sq_entries) /* else it may only make room, for a cancellation */
        check_undelivered(ring);
    if ((flags & IORING_ENTER_GETEVENTS) == 0)
        return submitted;
    err = get_events(ring, wait, deadline_of(argument));
    if (submitted > 0)
        return submitted;
    if (err == -EBADR)
        ring->has_dropped = false; /* the loop knows now */
    return err;
}

/* ---- the world ---- */

static void draw_kernel(void)
{
    static const unsigned refused[] = {
        0,
        0,
        0,
        IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_DEFER_TASKRUN,
        IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN,
    };
    static const unsigned submissions[] = {256, 256, 256, 32, 2};
    static const unsigned completions[] = {4096, 4096, 64, 8, 2};
    static const unsigned receives[] = {1, 2, 32, 32};

    weir__sim_kernel_of_world = (weir__sim_kernel){
        .refused = refused[weir__sim_below(sizeof(refused) / sizeof(refused[0]))],
        .submissions = submissions[weir__sim_below(sizeof(submissions) / sizeof(submissions[0]))],
        .completions = completions[weir__sim_below(sizeof(completions) / sizeof(completions[0]))],
        .receives = receives[weir__sim_below(sizeof(receives) / sizeof(receives[0]))],
        .end_takes_buffer = weir__sim_below(2) == 0,
        .reports_wakes = weir__sim_below(2) == 0,
    };
    weir__sim_trace("io_uring", weir__sim_kernel_of_world.submissions,
                    weir__sim_kernel_of_world.completions);
}

void weir__sim_uring_begin(void)
{
    weir__uring_calls *calls = weir__sim->seams->uring_calls;

    before = *calls;
    *calls = (weir__uring_calls){
        .setup = sim_setup,
        .exit = sim_exit,
        .enable = sim_enable,
        .enter = sim_enter,
        .register_buffers = sim_register_buffers,
        .limit_workers = sim_limit_workers,
        .cancel_sync = sim_cancel_sync,
        .uname = sim_uname,
        .disabled = sim_disabled,
    };
    draw_kernel();
}

void weir__sim_uring_end(void)
{
    *weir__sim->seams->uring_calls = before;
}
