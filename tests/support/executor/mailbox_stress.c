/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run writes is not atomic: the members of an owner that are marked so, and the contents of
 * the mails. The order is exact. A mail knows its number, and whether its producer has set the flag
 * since the mail before it.
 */
#include "support/executor/mailbox_stress.h"

#include <errno.h>
#include <stdlib.h>

#include <weir/error.h>
#include <weir/group.h>

#include "executor/executor.h"
#include "executor/mailbox.h"
#include "os/random.h"
#include "support/executor/plain_group.h"

#define PRODUCERS 4
#define OWNERS 5
#define EXECUTORS 3
#define TEST_TIMEOUT_NS weir_seconds(100)

/* Flags 0 to PRODUCERS - 1 belong to one producer each. */
enum { BLOCK = 1 << 8, UNBLOCK = 1 << 9, AGAIN = 1 << 10, AGAIN_LATER = 1 << 11 };

enum kind { PLAIN, LAST, MOVE, REPOST, SET };

struct mail {
    weir__mail mail;
    unsigned producer;
    uint32_t number;
    bool after_flag;
    enum kind kind;
    weir_executor *target; /* of MOVE */
};

struct owner {
    weir__mailbox box;
    atomic_int refs;
    _Atomic(weir_executor *) executor;

    /* Not atomic: a run's. */
    struct {
        uint32_t number; /* of the last mail */
        bool flag_ran;   /* since that */
        bool is_over;
    } from[PRODUCERS];
    bool is_blocked;
    uint64_t runs;
    weir__mail own;
    unsigned own_left;
};

struct producer {
    weir__thread thread;
    unsigned number;
    uint32_t steps;
    uint32_t sent[OWNERS];
    bool has_flagged[OWNERS];
    bool blocks[OWNERS]; /* the next toggle */
    weir__random random;
};

static struct {
    struct mailbox_stress *stress;
    weir_group *groups[EXECUTORS];
    weir_executor *executors[EXECUTORS];
    struct owner *owners[OWNERS];
    struct producer producers[PRODUCERS];
    _Atomic uint32_t done; /* steps */
    _Atomic uint32_t freed;
    _Atomic(const char *) fault;
} world;

static void check(bool holds, const char *fault)
{
    const char *none = NULL;

    if (!holds)
        (void)atomic_compare_exchange_strong(&world.fault, &none, fault);
}

static void count(_Atomic uint32_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- owners ---- */

static struct owner *owner_of(const weir__mailbox *box)
{
    return WEIR_CONTAINER_OF((weir__mailbox *)(uintptr_t)box, struct owner, box);
}

static weir_executor *executor_of(const weir__mailbox *box)
{
    return atomic_load_explicit(&owner_of(box)->executor, memory_order_acquire);
}

static void retain(weir__mailbox *box)
{
    check(atomic_fetch_add_explicit(&owner_of(box)->refs, 1, memory_order_relaxed) > 0,
          "an owner was retained after its end");
}

static void release(weir__mailbox *box)
{
    struct owner *owner = owner_of(box);

    if (atomic_fetch_sub_explicit(&owner->refs, 1, memory_order_acq_rel) > 1)
        return;
    check(weir__mailbox_is_empty(box), "an owner was freed with mails");
    check(!owner->is_blocked, "a toggle was lost");
    for (unsigned i = 0; i < PRODUCERS; i++)
        check(owner->from[i].is_over, "an owner was freed before its last mail");
    free(owner);
    atomic_fetch_add(&world.freed, 1); /* the executors may be released from here on */
}

/* Each call of a mailbox begins with this: only runs write the owner. */
static void begin_run(struct owner *owner, int status)
{
    const weir_executor *executor = executor_of(&owner->box);
    bool is_inside = weir__in_executor(executor);

    owner->runs++;
    if (status < 0)
        count(&world.stress->failed);
    if (status == 0)
        check(is_inside, "a mailbox ran on another executor");
    else if (!is_inside && owner->box.type->insists)
        check(weir__executor_state(executor) == WEIR_EXECUTOR_TERMINATED,
              "a mailbox that insists ran beside its executor");
    else if (!is_inside)
        check(weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN,
              "a mailbox ran instead of its executor");
}

static void run_flags(weir__mailbox *box, uint32_t flags, int status)
{
    struct owner *owner = owner_of(box);

    begin_run(owner, status);
    count(&world.stress->flags);
    for (unsigned i = 0; i < PRODUCERS; i++)
        if (flags & 1u << i)
            owner->from[i].flag_ran = true;
    check((flags & (BLOCK | UNBLOCK)) != (BLOCK | UNBLOCK), "opposite flags were set together");
    if (flags & BLOCK) {
        check(!owner->is_blocked, "BLOCK ran twice");
        owner->is_blocked = true;
    }
    if (flags & UNBLOCK) {
        check(owner->is_blocked, "UNBLOCK ran twice");
        owner->is_blocked = false;
    }
    if (flags & AGAIN)
        weir__mailbox_set(box, AGAIN_LATER);
}

static const weir__mailbox_type type = {
    .name = "stress",
    .executor = executor_of,
    .retain = retain,
    .release = release,
    .run = run_flags,
    .tail_flags = AGAIN_LATER,
};

static const weir__mailbox_type insisting_type = {
    .name = "stress",
    .executor = executor_of,
    .retain = retain,
    .release = release,
    .run = run_flags,
    .tail_flags = AGAIN_LATER,
    .insists = true,
};

/* The mail that is part of its owner. */
static void on_own_mail(weir__mailbox *box, weir__mail *mail, int status)
{
    struct owner *owner = owner_of(box);

    begin_run(owner, status);
    if (--owner->own_left > 0)
        weir__mailbox_post(box, mail);
}

static void on_mail(weir__mailbox *box, weir__mail *arg, int status)
{
    struct mail *mail = WEIR_CONTAINER_OF(arg, struct mail, mail);
    struct owner *owner = owner_of(box);

    begin_run(owner, status);
    count(&world.stress->mails);
    check(mail->number == owner->from[mail->producer].number + 1, "a mail is out of order");
    check(mail->after_flag == owner->from[mail->producer].flag_ran, "a flag is out of order");
    owner->from[mail->producer].number = mail->number;
    owner->from[mail->producer].flag_ran = false;
    owner->from[mail->producer].is_over = mail->kind == LAST;
    if (mail->kind == MOVE) {
        count(&world.stress->moves);
        atomic_store_explicit(&owner->executor, mail->target, memory_order_release);
    }
    if (mail->kind == SET)
        weir__mailbox_set(box, AGAIN);
    if (mail->kind == REPOST && owner->own_left == 0) {
        owner->own_left = 20;
        owner->own.fn = on_own_mail;
        weir__mailbox_post(box, &owner->own);
    }
    free(mail);
}

/* ---- producers ---- */

static void post(struct producer *producer, unsigned to, enum kind kind)
{
    struct mail *mail = malloc(sizeof(*mail));

    if (mail == NULL)
        abort(); /* other threads use what would be freed */
    *mail = (struct mail){
        .mail.fn = on_mail,
        .producer = producer->number,
        .number = ++producer->sent[to],
        .after_flag = producer->has_flagged[to],
        .kind = kind,
        .target = world.executors[weir__random_below(&producer->random, EXECUTORS)],
    };
    producer->has_flagged[to] = false;
    weir__mailbox_post(&world.owners[to]->box, &mail->mail);
}

/* Only one producer toggles: then the order of the two flags is known. */
static void toggle(struct producer *producer, unsigned to)
{
    bool blocks = producer->blocks[to];

    producer->blocks[to] = !blocks;
    weir__mailbox_toggle(&world.owners[to]->box, blocks ? BLOCK : UNBLOCK,
                         blocks ? UNBLOCK : BLOCK);
}

static void hold(struct owner *owner)
{
    if (!weir__mailbox_hold(&owner->box))
        return;
    owner->runs++; /* as a run */
    count(&world.stress->holds);
    weir__mailbox_resume(&owner->box);
}

static void do_step(struct producer *producer)
{
    unsigned to = (unsigned)weir__random_below(&producer->random, OWNERS);
    uint64_t choice = weir__random_below(&producer->random, 64);

    if (choice < 12) {
        producer->has_flagged[to] = true;
        weir__mailbox_set(&world.owners[to]->box, 1u << producer->number);
    } else if (choice < 20 && producer->number == 0) {
        toggle(producer, to);
    } else if (choice < 22) {
        hold(world.owners[to]);
    } else if (choice < 24) {
        weir__thread_yield(); /* the mailboxes may become empty */
    } else {
        post(producer, to, choice == 24 ? MOVE : choice < 27 ? REPOST : choice < 30 ? SET : PLAIN);
    }
}

static void produce(void *arg)
{
    struct producer *producer = arg;

    for (uint32_t step = 0; step < producer->steps; step++) {
        do_step(producer);
        count(&world.done);
    }
    for (unsigned to = 0; to < OWNERS; to++) {
        if (producer->number == 0 && !producer->blocks[to])
            toggle(producer, to);
        post(producer, to, LAST);
        release(&world.owners[to]->box);
    }
}

/* ---- this thread suspends executors, and shuts down all but one ---- */

static const char *begin(struct mailbox_stress *stress)
{
    world.stress = stress;
    atomic_store(&world.done, 0);
    atomic_store(&world.freed, 0);
    atomic_store(&world.fault, NULL);
    for (unsigned i = 0; i < EXECUTORS; i++) {
        if (plain_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &world.groups[i]) < 0)
            return "a group cannot be created";
        world.executors[i] = weir_group_at(world.groups[i], 0);
    }
    for (unsigned i = 0; i < OWNERS; i++) {
        world.owners[i] = calloc(1, sizeof(*world.owners[i]));
        if (world.owners[i] == NULL)
            return "there is no memory";
        atomic_init(&world.owners[i]->refs, PRODUCERS);
        atomic_init(&world.owners[i]->executor, world.executors[i % EXECUTORS]);
        weir__mailbox_init(&world.owners[i]->box, i % 2 == 0 ? &type : &insisting_type);
    }
    for (unsigned i = 0; i < PRODUCERS; i++) {
        struct producer *producer = &world.producers[i];

        *producer = (struct producer){.number = i, .steps = stress->steps / PRODUCERS};
        for (unsigned to = 0; to < OWNERS; to++)
            producer->blocks[to] = true;
        weir__random_init(&producer->random, stress->seed * PRODUCERS + i);
        if (weir__thread_start("producer", produce, producer, &producer->thread) < 0)
            abort(); /* the others use what would be freed */
    }
    return NULL;
}

static void interfere(weir__random *random, uint32_t steps)
{
    const int64_t timeouts_ns[] = {0, weir_ms(2), TEST_TIMEOUT_NS};
    unsigned next = 0;

    while (next < EXECUTORS - 1) {
        uint32_t at = (uint32_t)weir__random_below(random, steps);

        while (atomic_load_explicit(&world.done, memory_order_relaxed) < at) {
            (void)weir_executor_suspend(world.executors[weir__random_below(random, EXECUTORS)]);
            weir__thread_yield();
        }
        (void)weir_group_shutdown(world.groups[next++], 0,
                                  timeouts_ns[weir__random_below(random, 3)]);
    }
}

/* A thread may be late for a deadline; but it comes. */
static const char *end(void)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    uint32_t state;
    int err;

    while (atomic_load(&world.freed) < OWNERS) {
        if (weir__monotonic_now() > end_ns)
            return "an owner is not freed";
        weir__thread_yield();
    }
    for (unsigned i = 0; i < EXECUTORS; i++) {
        (void)weir_group_shutdown(world.groups[i], 0, TEST_TIMEOUT_NS);
        err = weir_group_await_termination(world.groups[i], TEST_TIMEOUT_NS);
        if (err < 0 && err != -ETIMEDOUT)
            return "a group has not ended well";
        do {
            weir__thread_yield();
            state = weir__executor_state(world.executors[i]);
        } while (state != WEIR_EXECUTOR_TERMINATED && weir__monotonic_now() < end_ns);
        if (state != WEIR_EXECUTOR_TERMINATED || weir_executor_pending(world.executors[i]) > 0)
            return "an executor has not ended, or has tasks";
        weir__executor_join(world.executors[i]);
        weir_group_release(world.groups[i]);
    }
    return atomic_load(&world.fault);
}

const char *mailbox_stress_run(struct mailbox_stress *stress)
{
    const char *fault = begin(stress);
    weir__random random;

    if (fault != NULL)
        return fault;
    weir__random_init(&random, ~stress->seed);
    interfere(&random, stress->steps);
    for (unsigned i = 0; i < PRODUCERS; i++)
        weir__thread_join(&world.producers[i].thread);
    return end();
}
