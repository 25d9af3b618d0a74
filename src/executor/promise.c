/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PENDING -> UNCANCELLABLE -> COMPLETING or CANCELLING -> DONE; intermediate states may be skipped.
 * The thread that leaves the first two writes the result; DONE publishes it and wakes the waiters.
 *
 * Listeners are a lock-free stack in one word, with three flags in its lowest bits: COMPLETE, the
 * result is written; RUNNING, a thread runs listeners; POSTED, the notification task is queued, or
 * is about to be, and will run them.
 *
 *      complete:      set COMPLETE; with listeners also, on the executor's thread: take them all
 *                     and set RUNNING; on another: set POSTED. Then DONE; run, or queue
 *      add:           push; if COMPLETE is set: set POSTED, too, and unless it was set: queue
 *      notification:  clear POSTED; unless RUNNING is set: set it, take all; DONE; run
 *      run:           call them oldest first; then clear RUNNING, unless there are more and no
 *                     notification will come for them: take all, and again
 *
 * To queue is to queue the notification. Each change of the word, up to "Then", "; then" or
 * "; DONE", is one compare and exchange, so listeners run one at a time and in the order pushed,
 * and none is lost: it is pushed either before COMPLETE, and the completion sees it, or after, and
 * sees COMPLETE. A listener added before the completion runs inside it. A late one is queued before
 * its add returns, ahead of later tasks, unless another thread is about to queue the notification
 * for its own. It may even precede the completing thread's DONE, so the notification stores that as
 * well: the result is complete.
 *
 * A waiter counts itself in `waiters` and then reads the state; a completion stores DONE and then
 * reads `waiters`. All four are sequentially consistent, so one of the two sees the other.
 *
 * `refs` counts strong references in its lower half and weak ones in its upper half. A promise that
 * is not complete when its last strong reference is released is abandoned; weak references only
 * keep the memory. Only a strong reference can be copied, so a holder that releases and sees itself
 * alone is alone; a completion retains too, but then the promise can no longer be abandoned.
 */
#include "executor/promise.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include <weir/error.h>

#include "base/block_cache.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/refcount.h"
#include "executor/executor.h"
#include "os/futex.h"

#define RUNNING ((uintptr_t)1)
#define POSTED ((uintptr_t)2)
#define COMPLETE ((uintptr_t)4)
#define MARKS (RUNNING | POSTED | COMPLETE)
#define STRONG UINT64_C(1)
#define WEAK (UINT64_C(1) << 32)
#define DEPTH_MAX 8
#define ALLOCATED ((void *)1) /* in weir_listener.reserved: freed by the promise */

enum {
    PENDING,
    UNCANCELLABLE,
    COMPLETING,
    CANCELLING,
    DONE,
};

struct weir_promise {
    weir_executor *executor;
    _Atomic uintptr_t listeners;
    _Atomic uint64_t refs; /* not first, where free() writes: is_held reads it */
    _Atomic uint32_t state;
    _Atomic uint32_t waiters;
    int err;
    uint32_t size; /* of the whole block */
    weir_task notification;
    _Atomic bool first_in_use;
    weir_listener first; /* most promises have one listener: no allocation */
    void *value;
    weir_value_free_fn *free_value;
    char *detail;
    weir_promise *value_owner; /* of a cascade's target: retained */
    void (*on_cancel)(weir_promise *promise);
    bool (*guard)(const void *arg);
    const void *guard_arg;
    alignas(max_align_t) char extra[];
};

static _Thread_local unsigned depth __attribute__((tls_model("initial-exec")));

static weir_task_fn on_notification;

/* ---- creation and references ---- */

weir_promise *weir__promise_create_with(weir_executor *executor, size_t extra)
{
    size_t size = sizeof(weir_promise) + extra;
    weir_promise *promise = weir__block_alloc(size);

    if (promise == NULL)
        return NULL;
    memset(promise, 0, size);
    atomic_init(&promise->refs, STRONG);
    promise->size = (uint32_t)size;
    promise->executor = executor != NULL ? executor : weir_executor_global();
    weir__executor_weak_retain(promise->executor);
    weir_task_init(&promise->notification, on_notification, promise);
    return promise;
}

void *weir__promise_extra(weir_promise *promise)
{
    return promise->extra;
}

weir_promise *weir__promise_of_extra(void *extra)
{
    return WEIR_CONTAINER_OF(extra, weir_promise, extra);
}

void weir__promise_set_on_cancel(weir_promise *promise, void (*on_cancel)(weir_promise *promise))
{
    promise->on_cancel = on_cancel;
}

void weir__promise_set_guard(weir_promise *promise, bool (*guard)(const void *arg), const void *arg)
{
    promise->guard = guard;
    promise->guard_arg = arg;
}

int weir_promise_create(weir_executor *executor, weir_promise **ret_promise)
{
    weir_promise *promise = weir__promise_create_with(executor, 0);

    if (promise == NULL)
        return -ENOMEM;
    *ret_promise = promise;
    return 0;
}

int weir_promise_create_completed(weir_executor *executor, int err, void *value,
                                  weir_promise **ret_promise)
{
    weir_promise *promise;

    if (err > 0)
        return -EINVAL;
    promise = weir__promise_create_with(executor, 0);
    if (promise == NULL)
        return -ENOMEM;
    promise->err = err;
    promise->value = err == 0 ? value : NULL;
    atomic_init(&promise->state, DONE);
    atomic_init(&promise->listeners, COMPLETE);
    *ret_promise = promise;
    return 0;
}

/* For assertions: there is a strong reference. */
static bool is_held(const weir_promise *promise)
{
    return (uint32_t)atomic_load_explicit(&promise->refs, memory_order_relaxed) > 0;
}

/* Relaxed: passing the pointer to the new owner orders the rest. */
static void add_strong(weir_promise *promise)
{
    atomic_fetch_add_explicit(&promise->refs, STRONG, memory_order_relaxed);
}

weir_promise *weir_promise_retain(weir_promise *promise)
{
    WEIR__ASSERT_HELD(is_held(promise), "weir_promise_retain: the promise has no references left");
    add_strong(promise);
    return promise;
}

/* A store: "new" in src/base/refcount.h. */
void weir__promise_retain_new(weir_promise *promise)
{
    assert(atomic_load_explicit(&promise->refs, memory_order_relaxed) == STRONG);
    atomic_store_explicit(&promise->refs, 2 * STRONG, memory_order_relaxed);
}

static void destroy(weir_promise *promise)
{
    if (promise->free_value != NULL)
        promise->free_value(promise->value);
    if (promise->value_owner != NULL)
        weir_promise_release(promise->value_owner);
    weir__executor_weak_release(promise->executor);
    if (promise->detail != NULL)
        weir__free(promise->detail);
#ifndef NDEBUG
    atomic_store_explicit(&promise->refs, 0, memory_order_relaxed); /* for the assertions */
#endif
    weir__block_free(promise, promise->size);
}

static bool is_open(const weir_promise *promise)
{
    return atomic_load_explicit(&promise->state, memory_order_relaxed) <= UNCANCELLABLE;
}

/* Acquire-release: the destruction comes after every other use. Without a read-modify-write if it
 * is the only reference: "release" in src/base/refcount.h. */
void weir_promise_release(weir_promise *promise)
{
    uint64_t refs;

    if (promise == NULL)
        return;
    WEIR__ASSERT_HELD(is_held(promise),
                      "weir_promise_release: the promise was released more often than retained");
    refs = atomic_load_explicit(&promise->refs, memory_order_acquire);
    do {
        if ((uint32_t)refs == STRONG && is_open(promise)) {
            (void)weir__promise_complete(promise, WEIR_EABANDONED, NULL);
            refs = atomic_load_explicit(&promise->refs, memory_order_acquire);
        }
    } while (refs != STRONG &&
             !atomic_compare_exchange_weak_explicit(&promise->refs, &refs, refs - STRONG,
                                                    memory_order_acq_rel, memory_order_acquire));
    if (refs == STRONG)
        destroy(promise);
}

static weir_promise *weak_retain(weir_promise *promise)
{
    atomic_fetch_add_explicit(&promise->refs, WEAK, memory_order_relaxed);
    return promise;
}

static void weak_release(weir_promise *promise)
{
    if (atomic_fetch_sub_explicit(&promise->refs, WEAK, memory_order_acq_rel) == WEAK)
        destroy(promise);
}

/* ---- notification ---- */

static void call_listener(weir_promise *promise, weir_listener *listener)
{
    weir_listener_fn *fn = listener->fn;
    void *user_data = listener->user_data;

    if (listener->reserved == ALLOCATED)
        weir__free(listener);
    fn(promise, user_data);
}

static void run_listener_list(weir_promise *promise, uintptr_t newest)
{
    weir_queue_node *node = (weir_queue_node *)(newest & ~MARKS), *oldest = NULL, *next;

    for (; node != NULL; node = next) {
        next = node->next;
        node->next = oldest;
        oldest = node;
    }
    for (node = oldest; node != NULL; node = next) {
        next = node->next;
        call_listener(promise, WEIR_CONTAINER_OF(node, weir_listener, node));
    }
}

/* Clears RUNNING and returns 0, or takes and returns listeners for which no notification is queued.
 */
static uintptr_t stop_running(weir_promise *promise)
{
    uintptr_t head = atomic_load_explicit(&promise->listeners, memory_order_relaxed), next;
    bool more;

    do {
        more = (head & ~MARKS) != 0 && (head & POSTED) == 0;
        next = more ? head & MARKS : head & ~RUNNING;
    } while (!atomic_compare_exchange_weak_explicit(&promise->listeners, &head, next,
                                                    memory_order_acq_rel, memory_order_relaxed));
    return more ? head : 0;
}

/* The caller has set RUNNING and taken the listeners. */
static void run_listeners(weir_promise *promise, uintptr_t newest)
{
    depth++;
    do {
        run_listener_list(promise, newest);
        newest = stop_running(promise);
    } while (newest != 0);
    depth--;
}

static void set_done(weir_promise *promise)
{
    atomic_store_explicit(&promise->state, DONE, memory_order_seq_cst);
}

static void on_notification(void *arg, int status)
{
    weir_promise *promise = arg;
    uintptr_t head = atomic_load_explicit(&promise->listeners, memory_order_relaxed), next;

    (void)status; /* listeners are called even if the task is cancelled */
    do {
        next = (head & RUNNING) != 0 ? head & ~POSTED : (head & MARKS & ~POSTED) | RUNNING;
    } while (!atomic_compare_exchange_weak_explicit(&promise->listeners, &head, next,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if ((head & RUNNING) == 0) {
        if (!weir_promise_is_done(promise))
            set_done(promise);
        run_listeners(promise, head);
    }
    weir_promise_release(promise);
}

/*
 * Queues the notification on the executor, or on the global one if that has ended. The caller has
 * set POSTED, and gives away a reference.
 */
static void queue_notification(weir_promise *promise)
{
    if (weir__executor_post(promise->executor, &promise->notification, WEIR__NOW) == 0)
        return;
    if (weir__executor_post(weir_executor_global(), &promise->notification, WEIR__NOW) == 0)
        return;
    weir__error_limited(
        "promise", "-",
        "no executor accepts the notification; listeners run on the completing thread");
    on_notification(promise, 0);
}

/* The immediate executor runs a posted task at once, one level deeper. */
static bool may_nest(const weir_executor *executor)
{
    return weir__in_executor(executor) && depth + (executor->type->run_inline != NULL) < DEPTH_MAX;
}

/*
 * The caller has begun the completion and written the result, and has a reference that neither a
 * listener nor a waiter releases.
 */
static void publish(weir_promise *promise)
{
    uintptr_t head = atomic_load_explicit(&promise->listeners, memory_order_relaxed), next;
    bool inside = head != 0 && may_nest(promise->executor);

    do {
        next = COMPLETE;
        if (head != 0)
            next |= inside ? RUNNING : head | POSTED;
    } while (!atomic_compare_exchange_weak_explicit(&promise->listeners, &head, next,
                                                    memory_order_acq_rel, memory_order_relaxed));
    set_done(promise);
    if (atomic_load_explicit(&promise->waiters, memory_order_seq_cst) > 0)
        weir__futex_wake(&promise->state, INT32_MAX);
    if ((next & RUNNING) != 0)
        run_listeners(promise, head);
    else if ((next & POSTED) != 0)
        queue_notification(weir_promise_retain(promise));
}

/*
 * Once pushed, the listener may run and release even the caller's reference. A late push therefore
 * has a reference of its own until it returns, besides the notification's: queueing accesses the
 * executor after the task has become visible, and only the promise may keep the executor's memory.
 * An early push accesses nothing afterwards.
 */
static void push_listener(weir_promise *promise, weir_listener *listener)
{
    uintptr_t head = atomic_load_explicit(&promise->listeners, memory_order_relaxed);
    uintptr_t late = 0; /* or POSTED */

    do {
        if (late == 0 && (head & COMPLETE) != 0) {
            weir_promise_retain(promise);
            late = POSTED;
        }
        listener->node.next = (weir_queue_node *)(head & ~MARKS);
    } while (!atomic_compare_exchange_weak_explicit(
        &promise->listeners, &head, (uintptr_t)&listener->node | (head & MARKS) | late,
        memory_order_acq_rel, memory_order_relaxed));
    if (late == 0)
        return;
    if ((head & POSTED) == 0)
        queue_notification(weir_promise_retain(promise));
    weir_promise_release(promise);
}

int weir_promise_add_listener(weir_promise *promise, weir_listener_fn *fn, void *user_data)
{
    weir_listener *listener;

    if (promise == NULL || fn == NULL)
        return -EINVAL;
    listener = &promise->first;
    if (atomic_exchange_explicit(&promise->first_in_use, true, memory_order_relaxed)) {
        listener = weir__alloc(sizeof(*listener));
        if (listener == NULL)
            return -ENOMEM;
    }
    listener->fn = fn;
    listener->user_data = user_data;
    listener->reserved = listener != &promise->first ? ALLOCATED : NULL;
    push_listener(promise, listener);
    return 0;
}

void weir_promise_listen(weir_promise *promise, weir_listener *listener)
{
    listener->reserved = NULL;
    push_listener(promise, listener);
}

/* ---- completion ---- */

/* Claims the right to complete; fails if the state is beyond `last_state`. */
static int begin_completion(weir_promise *promise, uint32_t last_state, int err)
{
    uint32_t state = atomic_load_explicit(&promise->state, memory_order_relaxed);
    uint32_t next = err == WEIR_ECANCELED ? CANCELLING : COMPLETING;

    do {
        if (state >= COMPLETING)
            return WEIR_ECOMPLETED;
        if (state > last_state)
            return -EBUSY;
    } while (!atomic_compare_exchange_weak_explicit(&promise->state, &state, next,
                                                    memory_order_acquire, memory_order_relaxed));
    promise->err = err;
    return 0;
}

/* A listener or a waiter may release the caller's reference. */
static void publish_retained(weir_promise *promise)
{
    weir_promise_retain(promise);
    publish(promise);
    weir_promise_release(promise);
}

int weir__promise_complete(weir_promise *promise, int err, void *value)
{
    int refused = begin_completion(promise, UNCANCELLABLE, err);

    if (refused < 0)
        return refused;
    promise->value = value;
    publish(promise);
    return 0;
}

int weir_promise_succeed_with(weir_promise *promise, void *value, weir_value_free_fn *free_value)
{
    int err = begin_completion(promise, UNCANCELLABLE, 0);

    if (err < 0) {
        if (free_value != NULL)
            free_value(value);
        return err;
    }
    promise->value = value;
    promise->free_value = free_value;
    publish_retained(promise);
    return 0;
}

int weir_promise_succeed(weir_promise *promise, void *value)
{
    return weir_promise_succeed_with(promise, value, NULL);
}

int weir_promise_fail(weir_promise *promise, int err, const char *detail)
{
    int refused;

    if (err >= 0)
        return -EINVAL;
    refused = begin_completion(promise, UNCANCELLABLE, err);
    if (refused < 0)
        return refused;
    if (detail != NULL)
        promise->detail = weir__strdup(detail); /* NULL: the error's own text */
    publish_retained(promise);
    return 0;
}

int weir_promise_cancel(weir_promise *promise)
{
    int err = begin_completion(promise, PENDING, WEIR_ECANCELED);

    if (err < 0)
        return err;
    /* For on_cancel: a listener may release the last reference. There may be none: then the caller
     * is a cascade, with a weak one. */
    add_strong(promise);
    publish(promise);
    if (promise->on_cancel != NULL)
        promise->on_cancel(promise);
    weir_promise_release(promise);
    return 0;
}

bool weir_promise_set_uncancellable(weir_promise *promise)
{
    uint32_t state = PENDING;

    if (atomic_compare_exchange_strong_explicit(&promise->state, &state, UNCANCELLABLE,
                                                memory_order_acq_rel, memory_order_acquire))
        return true;
    return state != CANCELLING && !weir_promise_is_cancelled(promise);
}

/* ---- reading ---- */

bool weir_promise_is_done(const weir_promise *promise)
{
    return atomic_load_explicit(&promise->state, memory_order_acquire) == DONE;
}

bool weir_promise_is_cancelled(const weir_promise *promise)
{
    return weir_promise_is_done(promise) && promise->err == WEIR_ECANCELED;
}

int weir_promise_result(const weir_promise *promise)
{
    return weir_promise_is_done(promise) ? promise->err : -EINPROGRESS;
}

void *weir_promise_value(const weir_promise *promise)
{
    return weir_promise_is_done(promise) ? promise->value : NULL;
}

const char *weir_promise_detail(const weir_promise *promise)
{
    if (!weir_promise_is_done(promise) || promise->err == 0)
        return "";
    if (promise->value_owner != NULL)
        return weir_promise_detail(promise->value_owner);
    return promise->detail != NULL ? promise->detail : weir_error_text(promise->err);
}

weir_executor *weir_promise_executor(const weir_promise *promise)
{
    return promise->executor;
}

/* ---- waiting ---- */

int weir__promise_may_wait(const weir_promise *promise)
{
    if (weir__executor_on_loop())
        return -EDEADLK;
    if (promise == NULL)
        return 0;
    if (promise->guard != NULL)
        return promise->guard(promise->guard_arg) ? -EDEADLK : 0;
    if (promise->executor->type->run_inline != NULL)
        return 0;
    return weir__in_executor(promise->executor) ? -EDEADLK : 0;
}

static int wait_until(weir_promise *promise, int64_t deadline_ns)
{
    uint32_t state;

    while ((state = atomic_load_explicit(&promise->state, memory_order_seq_cst)) != DONE) {
        if (deadline_ns != WEIR_NEVER && weir__monotonic_now() >= deadline_ns)
            return -ETIMEDOUT;
        weir__futex_wait(&promise->state, state, deadline_ns);
    }
    return 0;
}

int weir_promise_await(weir_promise *promise, int64_t timeout_ns)
{
    int err;

    if (weir_promise_is_done(promise))
        return 0;
    err = weir__promise_may_wait(promise);
    if (err < 0)
        return err;
    atomic_fetch_add_explicit(&promise->waiters, 1, memory_order_seq_cst);
    err = wait_until(promise, weir__deadline(weir__monotonic_now(), timeout_ns));
    atomic_fetch_sub_explicit(&promise->waiters, 1, memory_order_relaxed);
    return err;
}

int weir_promise_sync(weir_promise *promise, int64_t timeout_ns)
{
    int err = weir_promise_await(promise, timeout_ns);

    return err < 0 ? err : weir_promise_result(promise);
}

/* ---- cascade ---- */

/* Lives until both promises are complete, because cancelling the target must cancel the source. It
 * holds a strong reference to the target, which it completes, and a weak one to the source.
 */
struct cascade {
    weir_listener on_source;
    weir_listener on_target;
    weir_promise *source;
    weir_promise *target;
    weir__refs refs;
};

static void cascade_release(struct cascade *cascade)
{
    if (weir__refs_release(&cascade->refs))
        weir__free(cascade);
}

/* The value is owned by the source, or by the source's own source; the target retains its owner. */
static void copy_result(weir_promise *source, weir_promise *target)
{
    if (begin_completion(target, UNCANCELLABLE, source->err) < 0)
        return;
    target->value = source->value;
    target->value_owner =
        weir_promise_retain(source->value_owner != NULL ? source->value_owner : source);
    publish(target);
}

static void on_source_done(weir_promise *source, void *user_data)
{
    struct cascade *cascade = user_data;
    weir_promise *target = cascade->target;

    copy_result(source, target);
    cascade_release(cascade);
    weir_promise_release(target);
}

static void on_target_done(weir_promise *target, void *user_data)
{
    struct cascade *cascade = user_data;
    weir_promise *source = cascade->source;

    if (weir_promise_is_cancelled(target))
        (void)weir_promise_cancel(source);
    cascade_release(cascade);
    weak_release(source);
}

int weir_promise_cascade(weir_promise *source, weir_promise *target)
{
    struct cascade *cascade;

    if (source == NULL || target == NULL || source == target)
        return -EINVAL;
    cascade = weir__zalloc(sizeof(*cascade));
    if (cascade == NULL)
        return -ENOMEM;
    weir__refs_init(&cascade->refs);
    weir__refs_retain(&cascade->refs);
    cascade->source = weak_retain(source);
    cascade->target = weir_promise_retain(target);
    cascade->on_source.fn = on_source_done;
    cascade->on_source.user_data = cascade;
    cascade->on_target.fn = on_target_done;
    cascade->on_target.user_data = cascade;
    weir_promise_listen(target, &cascade->on_target);
    weir_promise_listen(source, &cascade->on_source);
    return 0;
}
