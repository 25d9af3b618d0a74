/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mailbox, as in src/executor/mailbox.c, under the same names: its word, its token, its task and
 * the references to its owner. The queues of the executors are executor.pml's: here an executor
 * takes the task or refuses it.
 *
 *      producer       posts a mail, sets a flag, posts another mail
 *      toggler        toggles two flags that cancel each other
 *      holder         holds the mailbox and resumes it
 *      executor       runs the task; two of them, which may end, and the global one
 *      quiescence     checks the state when nothing moves any more
 *
 * A step is one access to one shared word; what belongs to the token is not shared. A loop around a
 * CAS is one step, because only the CAS that succeeds has an effect.
 *
 * Properties:
 *   P1  each mail and each flag runs exactly once; nothing is left
 *   P2  what one producer posts and sets runs in this order; of two flags that cancel each other
 *       the last one counts
 *   P3  there is one token: one task is queued, one thread runs the mailbox
 *   P4  the owner is in memory as long as the mailbox is used, and is freed in the end
 *   P5  a mailbox that is empty is not the token's
 *   P6  the mailbox runs on its owner's executor, unless that has ended or cannot be started
 *   P7  what the last thread of an executor has begun does not go on beside it
 */

/* ---- sizes, set by tools/models/run ---- */

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef MOVES
#define MOVES 0 /* 1: the first mail of the first producer moves the owner to the other executor;
                   2: a call on the executor's thread, beside the mailbox, does */
#endif
#ifndef FOLLOW_UPS
#define FOLLOW_UPS 0 /* 1: the first mail of the first producer posts another */
#endif
#ifndef TOGGLERS
#define TOGGLERS 0
#endif
#ifndef HOLDERS
#define HOLDERS 0
#endif
#ifndef ENDS
#define ENDS 0 /* executors that end */
#endif
#ifndef START_FAILURES
#define START_FAILURES 0 /* tasks that an executor refuses because its thread does not start */
#endif
#ifndef GLOBAL_FAILURES
#define GLOBAL_FAILURES 0 /* the same for the global executor */
#endif
#ifndef INSISTS
#define INSISTS 0
#endif
#ifndef BATCH
#define BATCH 1
#endif

/* ---- values ---- */

#define FIRST 1 /* an executor, and the one the owner may move to */
#define SECOND 2
#define GLOBAL 3
#define NO_EXECUTOR 4 /* other threads */

#define RUNNING 0
#define SHUTDOWN 1
#define TERMINATED 2

#define MAIL(producer) (2 * (producer) + 1) /* the first of two */
#define FOLLOW_UP (2 * PRODUCERS + 1)
#define LAST_MAIL FOLLOW_UP
#define FLAG(producer) (1 << (producer))
#define BLOCK (1 << 6)
#define UNBLOCK (1 << 7)

/* ---- the mailbox and its owner ---- */

/* The word: one access reads or changes all of it. */
bool busy;
byte newest;
byte flags;
byte next[LAST_MAIL + 1];
byte before[LAST_MAIL + 1];
#define is_empty (!busy)

/* The token's. */
byte rest;
byte rest_flags;
byte task_at; /* the executor that has the task */
bool is_retry;

byte refs = PRODUCERS + TOGGLERS + HOLDERS;
byte runs_on = FIRST;
byte state[4];
byte start_failures = START_FAILURES;
byte global_failures = GLOBAL_FAILURES;
byte ends = ENDS;

/* Used only by the properties. */
byte ran[LAST_MAIL + 1];
bool posted[LAST_MAIL + 1];
bool flag_ran[PRODUCERS];
bool is_blocked;
byte runners;
byte last; /* the executor whose last thread has run the mailbox, which has not been empty since */
#define has_ended(executor) (state[executor] >= (INSISTS -> TERMINATED : SHUTDOWN))

inline in_memory()
{
    assert(refs > 0) /* P4 */
}

inline retain()
{
    atomic { assert(refs > 0) /* P4 */; refs++ }
}

inline release()
{
    atomic { assert(refs > 0) /* P4 */; refs-- }
}

/* ---- queueing the task ---- */

#define END (INSISTS -> TERMINATED : SHUTDOWN)
#define is_elsewhere (runs_on != me && state[runs_on] < END)
#define is_last_thread (runs_on == me && state[me] >= SHUTDOWN)

/* weir__executor_post: after the push it wakes the thread of the executor, which is in memory as
 * long as the owner. */
inline post_task(executor)
{
    if
    :: d_step { state[executor] == RUNNING ->
           assert(task_at == 0); /* P3 */
           task_at = executor; taken = true
       };
       in_memory()
    :: d_step { executor < GLOBAL && state[executor] == RUNNING && start_failures > 0 ->
           start_failures--; taken = false
       }
    :: d_step { executor == GLOBAL && global_failures > 0 -> global_failures--; taken = false }
    :: d_step { state[executor] >= SHUTDOWN -> taken = false }
    fi
}

inline queue_task()
{
    is_retry = false;
    target = runs_on;
    post_task(target);
    if
    :: !taken -> is_retry = (INSISTS && target != me && state[target] < END); post_task(GLOBAL)
    :: else
    fi
}

inline start()
{
    over = false;
    do
    :: !over ->
       queue_task();
       if
       :: taken || is_retry -> over = taken
       :: else -> excused = true; run_batch()
       fi
    :: over -> break
    od
}

inline queue_again()
{
    retain();
    if
    :: runs_on == me && state[me] < SHUTDOWN -> /* weir__executor_post_first */
       d_step { assert(task_at == 0) /* P3 */; is_retry = false; task_at = me }
    :: else -> start()
    fi;
    release()
}

/* ---- running ---- */

/* The CAS of a post. */
inline put(which)
{
    was_empty = !busy;
    next[which] = newest; before[which] = flags;
    busy = true; newest = which; flags = 0;
    posted[which] = true
}

inline take_all()
{
    d_step {
        assert(busy); /* P5 */
        mail = newest; rest_flags = flags;
        newest = 0; flags = 0; /* and still busy */
        do
        :: mail != 0 -> other = next[mail]; next[mail] = rest; rest = mail; mail = other
        :: else -> break
        od;
        other = 0
    }
}

inline run_flags(which)
{
    for (other : 0 .. PRODUCERS - 1) {
        if
        :: (which & FLAG(other)) != 0 ->
           assert(!flag_ran[other]); /* P1 */
           assert(ran[MAIL(other)] == 1 && ran[MAIL(other) + 1] == 0); /* P2 */
           flag_ran[other] = true
        :: else
        fi
    }
    assert((which & (BLOCK | UNBLOCK)) != (BLOCK | UNBLOCK)); /* P2 */
    if
    :: (which & BLOCK) != 0 -> assert(!is_blocked) /* P2 */; is_blocked = true
    :: (which & UNBLOCK) != 0 -> assert(is_blocked) /* P2 */; is_blocked = false
    :: else
    fi;
    other = 0
}

inline run_mail()
{
    assert(posted[mail] && ran[mail] == 0); /* P1 */
    ran[mail]++;
    if
    :: mail % 2 == 0 -> assert(ran[mail - 1] == 1 && flag_ran[mail / 2 - 1]) /* P2 */
    :: else
    fi;
    if
    :: MOVES == 1 && mail == MAIL(0) && me == runs_on && state[me] < SHUTDOWN -> runs_on = SECOND
    :: else
    fi
}

/* One mail, or the flags in front of it. */
inline run_next()
{
    d_step {
        mail = rest;
        found = (mail != 0 || rest_flags != 0);
        assert(!found || me == runs_on || has_ended(runs_on) || (excused && !INSISTS)); /* P6 */
        assert(!found || last == 0 || me == last || state[last] == TERMINATED); /* P7 */
        if
        :: mail != 0 && before[mail] != 0 -> run_flags(before[mail]); before[mail] = 0; mail = 0
        :: mail == 0 && rest_flags != 0 -> run_flags(rest_flags); rest_flags = 0
        :: mail != 0 && before[mail] == 0 -> rest = next[mail]; next[mail] = 0; run_mail()
        :: else
        fi
    };
    if
    :: FOLLOW_UPS && mail == MAIL(0) ->
       d_step { put(FOLLOW_UP); assert(!was_empty) /* P5 */; was_empty = false; mail = 0 }
    :: else -> mail = 0
    fi
}

/* Returns the token, unless something is left. */
inline end_run()
{
    if
    :: d_step { rest == 0 && rest_flags == 0 && newest == 0 && flags == 0 ->
           busy = false; over = true; last = 0
       };
       release()
    :: d_step { rest != 0 || rest_flags != 0 || newest != 0 || flags != 0 -> over = false }
    fi
}

inline run_batch()
{
    d_step { assert(runners == 0) /* P3 */; runners++ };
    atomic { steps = 0; found = true; began_on = runs_on };
    in_memory();
    if
    :: rest == 0 && rest_flags == 0 -> take_all()
    :: else
    fi;
    do
    :: steps < BATCH && found ->
       run_next();
       steps++;
       if
       :: runs_on != began_on -> break
       :: else
       fi
    :: else -> break
    od;
    atomic { runners--; steps = 0; found = false; began_on = 0 };
    end_run()
}

inline on_task()
{
    over = false;
    excused = false;
    in_memory();
    if
    :: is_elsewhere ->
       retain();
       is_retry = false;
       target = runs_on;
       post_task(target);
       if
       :: !taken && INSISTS -> start()
       :: !taken && !INSISTS -> excused = true
       :: else -> over = true
       fi;
       release()
    :: else
    fi;
    do
    :: over -> break
    :: else ->
       run_batch();
       if
       :: !over && !is_last_thread -> queue_again(); over = true
       :: else
       fi
    od;
    atomic { over = false; excused = false; taken = false; target = 0 }
}

proctype executor(byte me)
{
    byte mail, other, steps, began_on, target;
    bool found, over, taken, excused, was_empty;

end:
    do
    :: d_step { task_at == me -> task_at = 0 }; on_task()
    :: MOVES == 2 && me == FIRST && runs_on == me -> runs_on = SECOND
    :: d_step { me < GLOBAL && ends > 0 -> ends--; state[me] = SHUTDOWN }; /* close_and_drain */
       if
       :: d_step { task_at == me -> task_at = 0; last = me }; on_task()
       :: else
       fi;
       state[me] = TERMINATED;
       break
    od
}

/* ---- any thread ---- */

inline start_if_empty()
{
    if
    :: was_empty -> retain(); start()
    :: else
    fi;
    atomic { was_empty = false; over = false; excused = false; taken = false; target = 0 }
}

inline post(which)
{
    in_memory();
    d_step { put(which) };
    start_if_empty()
}

inline set(which)
{
    in_memory();
    d_step { was_empty = !busy; busy = true; flags = flags | which };
    start_if_empty()
}

inline toggle(which, opposite)
{
    in_memory();
    d_step {
        was_empty = !busy;
        if
        :: (flags & opposite) != 0 -> flags = flags & ~(opposite)
        :: else -> busy = true; flags = flags | which
        fi
    };
    start_if_empty()
}

proctype producer(byte number)
{
    byte mail, other, steps, began_on, target, me = NO_EXECUTOR;
    bool found, over, taken, excused, was_empty;

    post(MAIL(number));
    set(FLAG(number));
    post(MAIL(number) + 1);
    release()
}

proctype toggler()
{
    byte mail, other, steps, began_on, target, me = NO_EXECUTOR;
    bool found, over, taken, excused, was_empty;

    toggle(BLOCK, UNBLOCK);
    toggle(UNBLOCK, BLOCK);
    release()
}

proctype holder()
{
    byte mail, other, steps, began_on, target, me = NO_EXECUTOR;
    bool found, over, taken, excused, was_empty;

    if
    :: d_step { is_empty -> busy = true }; /* weir__mailbox_hold */
       retain();
       d_step { assert(runners == 0) /* P3 */; runners++ };
       runners--;
       end_run(); /* weir__mailbox_resume */
       if
       :: !over -> queue_again()
       :: else
       fi
    :: true
    fi;
    atomic { over = false; excused = false; taken = false; target = 0 };
    release()
}

init
{
    byte number;

    atomic {
        run executor(FIRST);
        run executor(SECOND);
        run executor(GLOBAL);
        for (number : 0 .. PRODUCERS - 1) {
            run producer(number)
        }
#if TOGGLERS
        run toggler();
#endif
#if HOLDERS
        run holder();
#endif
        number = 0
    };
    timeout ->
    d_step {
        for (number : 1 .. LAST_MAIL) {
            assert(ran[number] == posted[number]) /* P1 */
        }
        for (number : 0 .. PRODUCERS - 1) {
            assert(flag_ran[number] && posted[MAIL(number) + 1]) /* P1 */
        }
        assert(!busy && newest == 0 && flags == 0); /* P1 */
        assert(rest == 0 && rest_flags == 0 && task_at == 0); /* P1 */
        assert(!is_blocked); /* P2 */
        assert(refs == 0 && runners == 0) /* P4 */
    }
}
