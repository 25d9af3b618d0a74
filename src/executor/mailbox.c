/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One word holds the newest mail, the flags that were set after it, and BUSY. Mails form a stack,
 * as in base/queue.h.
 *
 *      0                       empty
 *      BUSY                    taken: the runner has the rest
 *      BUSY, mail or flags     the task is under way, or the runner will look again
 *
 *      post     CAS: the mail gets the word's flags and mail; the word gets the mail, without flags
 *      set      or
 *      take     exchange for BUSY, by the runner
 *      end      CAS of BUSY for 0, by the runner; if that fails the task is queued again
 *
 * The token. The thread that changes the word from 0 gets the token: it queues the task, the task
 * runs the mailbox, and the end returns the token. So there is one token at most, and with it one
 * task and one runner: `task` and `rest` belong to the token. A thread that finds the
 * word not 0 does nothing more: the runner takes its mail later, because the end fails while the
 * word is not just BUSY. weir__mailbox_hold takes the token without a task.
 *
 * The owner. The token has a reference to the owner. The thread that queues the task has a
 * reference besides: the task may run, and release the token's, before the executor was woken.
 *
 * Memory order. A change of the word is a release, and continues the release sequence of those
 * before it; the take is an acquire. So the runner sees what was written before each mail was
 * posted and each flag was set. The end is a release and the change from 0 an acquire, so that a
 * runner on another thread sees what the one before it wrote. The task is queued, and the thread
 * woken, as any other: executor.c.
 *
 * The rest. After BATCH steps the runner lets the executor look at its budget, so that I/O and
 * timers have their turn. Its task then comes before all others of the queue: a thread may have
 * posted a mail, then submitted a task, and the mail comes first.
 *
 * The next round. What was posted during the run comes after the tasks that were ready at the take:
 * they were submitted before it was posted. The executor has a mark at the last of them. So a
 * mailbox that is never empty does not keep other tasks of its executor from running. The mark is
 * for one mailbox, until its run ends: it is removed then, because its task may be freed. The
 * batches of a run come directly after each other, so no other mailbox runs in between, and what
 * runs in between is no task.
 *
 * The end of the executor. Its thread takes no task any more, but still runs what is left. It runs
 * the mailbox until it is empty, because the rest would go to the global executor, beside it.
 */
#include "executor/mailbox.h"

#include <assert.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/queue.h"
#include "executor/executor.h"

#define BUSY (UINT64_C(1) << 18)
#define HELD BUSY /* in `rest`: nobody runs the mailbox until it is resumed */
#define BATCH 16  /* steps; a turn looks at the time after some tasks only */
#define RETRY_NS weir_ms(1)

_Static_assert(BUSY == WEIR__MAILBOX_FLAGS + UINT64_C(1), "BUSY is not a flag of owners");
_Static_assert(BUSY <= WEIR__QUEUE_COUNT_MAX, "BUSY does not overlap the address of a mail");

static void on_task(void *arg, int status);

static uint32_t flags_of(uint64_t word)
{
    return (uint32_t)word & WEIR__MAILBOX_FLAGS;
}

/* True if another thread is the one to run the mailbox. */
static bool is_elsewhere(const weir__mailbox *box, const weir_executor *executor)
{
    uint32_t end = box->type->insists ? WEIR_EXECUTOR_TERMINATED : WEIR_EXECUTOR_SHUTDOWN;

    return executor != NULL && !weir__in_executor(executor) && weir__executor_state(executor) < end;
}

/* True if the executor takes no more tasks, and this thread still runs those that are left. */
static bool is_last_thread(const weir_executor *executor)
{
    return executor != NULL && weir__executor_is_consumer(executor) &&
           weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN;
}

/* ---- running: with the token ---- */

static uint64_t rest_of(const weir__mailbox *box)
{
    return atomic_load_explicit(&box->rest, memory_order_relaxed);
}

/* Relaxed: the token orders it. A thread without the token only asks whether something is there,
 * and what it asks for was posted before it asked. */
static void set_rest(weir__mailbox *box, const weir_queue_node *node, uint64_t bits)
{
    atomic_store_explicit(&box->rest, weir__queue_pack(node, bits), memory_order_relaxed);
}

static void set_mark(const weir__mailbox *box)
{
    if (weir__current != NULL) {
        weir__current->turn.mark.last = weir__executor_last_ready(weir__current);
        weir__current->turn.mark.mailbox = box;
    }
}

/* Removes the mark and returns it. NULL: there is none, or no task was ready. */
static weir_queue_node *take_mark(const weir__mailbox *box)
{
    if (weir__current == NULL || weir__current->turn.mark.mailbox != box)
        return NULL;
    weir__current->turn.mark.mailbox = NULL;
    return weir__current->turn.mark.last;
}

static void take_all(weir__mailbox *box)
{
    uint64_t word;
    weir_queue_node *node, *oldest = NULL, *next;

    set_mark(box); /* before: what is posted from here on comes later */
    word = atomic_exchange_explicit(&box->word, BUSY, memory_order_acquire);
    for (node = weir__queue_node(word); node != NULL; node = next) {
        next = node->next;
        node->next = oldest;
        oldest = node;
    }
    set_rest(box, oldest, flags_of(word));
}

/* Runs one mail, or the flags that were set in front of it. Returns false if nothing is left. */
static bool run_next(weir__mailbox *box, int status)
{
    uint64_t rest = rest_of(box);
    weir_queue_node *node = weir__queue_node(rest);
    weir__mail *mail = node != NULL ? WEIR_CONTAINER_OF(node, weir__mail, node) : NULL;
    uint32_t flags = mail != NULL ? mail->before : flags_of(rest);

    if (flags != 0) {
        if (mail != NULL)
            mail->before = 0;
        else
            set_rest(box, NULL, 0);
        box->type->run(box, flags, status);
    } else if (mail != NULL) {
        set_rest(box, node->next, flags_of(rest));
        mail->fn(box, mail, status);
    }
    return rest != 0;
}

/* Returns the token, unless something is left. *ret_word is BUSY if that is the rest. */
static bool end_run(weir__mailbox *box, uint64_t *ret_word)
{
    *ret_word = BUSY;
    if (rest_of(box) != 0 ||
        !atomic_compare_exchange_strong_explicit(&box->word, ret_word, 0, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return false;
    (void)take_mark(box);
    box->type->release(box);
    return true;
}

static bool run_batch(weir__mailbox *box, int status, uint64_t *ret_word)
{
    const weir_executor *executor = box->type->executor(box);
    unsigned steps = 0;

    if (rest_of(box) == 0)
        take_all(box);
    while (steps++ < BATCH && run_next(box, status))
        if (box->type->executor(box) != executor)
            break; /* the status is of this one */
    return end_run(box, ret_word);
}

/* ---- queueing the task: with the token, and another reference to the owner ---- */

static void on_task(void *arg, int status);

/* The only thread that is sure to exist waits. */
static void on_retry(void *arg, int status)
{
    weir__thread_sleep(RETRY_NS);
    on_task(arg, status);
}

/* Returns false if no executor takes the task. */
static bool queue_task(weir__mailbox *box)
{
    weir_executor *executor = box->type->executor(box);

    weir_task_init(&box->task, on_task, box);
    if (executor != NULL && weir__executor_post(executor, &box->task, WEIR__NOW) == 0)
        return true;
    if (box->type->insists && is_elsewhere(box, executor))
        box->task.fn = on_retry;
    return weir__executor_post(weir_executor_global(), &box->task, WEIR__NOW) == 0;
}

/* If no executor takes the task, this thread runs the mailbox, and asks again after each batch. */
static void start(weir__mailbox *box)
{
    bool is_over = false;
    uint64_t word;

    while (!is_over && !queue_task(box)) {
        weir__error_limited(box->type->name, "-", "no executor takes a call from another thread");
        if (box->task.fn == on_retry)
            weir__thread_sleep(RETRY_NS);
        else
            is_over = run_batch(box, WEIR_EREJECTED, &word);
    }
}

/* For the rest, or for what was posted during the run: then the word is not just BUSY. */
static void queue_again(weir__mailbox *box, uint64_t word)
{
    weir_executor *executor = box->type->executor(box);
    bool is_tail = word != BUSY && (word & ~(BUSY | box->type->tail_flags)) == 0;
    bool is_here =
        executor != NULL && executor == weir__current && weir__executor_is_consumer(executor);
    weir_queue_node *mark = is_here && word == BUSY ? NULL : take_mark(box);
    bool is_queued = false;

    box->type->retain(box);
    weir_task_init(&box->task, on_task, box);
    if (is_here)
        is_queued = is_tail ? weir__executor_post_after_turn(executor, &box->task) == 0
                            : weir__executor_post_first(executor, &box->task, mark) == 0;
    if (!is_queued)
        start(box);
    box->type->release(box);
}

/* Runs also if the task is cancelled: this is the executor's thread. */
static void on_task(void *arg, int status)
{
    weir__mailbox *box = arg;
    weir_executor *executor = box->type->executor(box);
    uint64_t word;

    if (is_elsewhere(box, executor)) {
        box->type->retain(box);
        weir_task_init(&box->task, on_task, box);
        status = weir__executor_post(executor, &box->task, WEIR__NOW);
        if (status < 0 && box->type->insists) {
            start(box);
            status = 0;
        }
        box->type->release(box);
        if (status == 0)
            return;
    } else if (executor != NULL && !weir__in_executor(executor)) {
        status = WEIR_EREJECTED;
    }
    while (!run_batch(box, status, &word))
        if (!is_last_thread(box->type->executor(box))) {
            queue_again(box, word);
            return;
        }
}

/* ---- any thread ---- */

void weir__mailbox_init(weir__mailbox *box, const weir__mailbox_type *type)
{
    atomic_init(&box->word, 0);
    box->type = type;
    atomic_init(&box->rest, 0);
}

/* The word was `before` until the caller changed it: if it was 0 the caller has the token. */
static inline void start_if_empty(weir__mailbox *box, uint64_t before)
{
    if (before != 0)
        return;
    box->type->retain(box);
    start(box);
}

void weir__mailbox_post(weir__mailbox *box, weir__mail *mail)
{
    uint64_t word = atomic_load_explicit(&box->word, memory_order_relaxed), posted;

    assert(weir__queue_may_hold(&mail->node));
    posted = weir__queue_pack(&mail->node, BUSY);
    do {
        mail->node.next = weir__queue_node(word);
        mail->before = flags_of(word);
    } while (!atomic_compare_exchange_weak_explicit(&box->word, &word, posted, memory_order_acq_rel,
                                                    memory_order_relaxed));
    start_if_empty(box, word);
}

void weir__mailbox_set(weir__mailbox *box, uint32_t flags)
{
    uint64_t word;

    assert(flags != 0 && (flags & ~WEIR__MAILBOX_FLAGS) == 0);
    word = atomic_fetch_or_explicit(&box->word, flags | BUSY, memory_order_acq_rel);
    start_if_empty(box, word);
}

void weir__mailbox_toggle(weir__mailbox *box, uint32_t flag, uint32_t opposite)
{
    uint64_t word = atomic_load_explicit(&box->word, memory_order_relaxed), toggled;

    do {
        toggled = (word & opposite) != 0 ? word & ~(uint64_t)opposite : word | flag | BUSY;
    } while (!atomic_compare_exchange_weak_explicit(&box->word, &word, toggled,
                                                    memory_order_acq_rel, memory_order_relaxed));
    start_if_empty(box, word);
}

bool weir__mailbox_hold(weir__mailbox *box)
{
    uint64_t word = 0;

    if (!atomic_compare_exchange_strong_explicit(&box->word, &word, BUSY, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return false;
    set_rest(box, NULL, HELD);
    box->type->retain(box);
    return true;
}

void weir__mailbox_resume(weir__mailbox *box)
{
    uint64_t word;

    set_rest(box, weir__queue_node(rest_of(box)), 0);
    if (!end_run(box, &word))
        queue_again(box, word);
}

void weir__mailbox_post_first(weir__mailbox *box, weir__mail *mail)
{
    uint64_t rest = rest_of(box);

    mail->node.next = weir__queue_node(rest);
    mail->before = 0;
    set_rest(box, &mail->node, rest & (HELD | WEIR__MAILBOX_FLAGS));
}

bool weir__mailbox_has_calls(const weir__mailbox *box)
{
    uint64_t word = atomic_load_explicit(&box->word, memory_order_acquire), rest = rest_of(box);

    return word != 0 && (((word & ~BUSY) | rest) & ~(uint64_t)box->type->own_flags) != 0;
}
