/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue, sleep, suspension and end of an executor, as in src/base/queue.h, src/executor/executor.c
 * and src/executor/lifecycle.c, under the same names.
 *
 *      producer                       other threads submit tasks, lazy tasks and timers
 *      suspend, shutdown, add_hook    called by other threads
 *      thread_main                    the executor's thread, and the next one after a suspension
 *      clock                          time passes, at any step
 *      memory                         makes the thread's relaxed stores visible, later
 *      quiescence                     checks the state when nothing moves any more
 *
 * A step is one access to one shared word. If d_step or atomic combines several accesses, they are
 * one atomic operation in C, or all but one concern only this process or the properties.
 *
 * Every repetition uses up a task, a call or a tick of the clock. So each run ends in quiescence,
 * and everything that has to happen eventually has happened by then. The absence of cycles is
 * checked, too.
 *
 * Properties, besides that the lock is always released:
 *   P1  an accepted task is called exactly once, a rejected task never
 *   P2  the tasks of one producer are called in the order submitted, and a task that the thread
 *       submits itself is called after all that were queued
 *   P3  the thread does not sleep past the time of an accepted task, unless a producer is about to
 *       wake it; a lazy task has no time, unless it found the queue closed
 *   P4  after a shutdown the executor ends and reports it once; after a suspend it does not stay
 *       SUSPENDING, nor sleep in that state, even if members join or timers start
 *   P5  at most one thread runs the executor
 *   P6  the queue of an executor without a thread is closed and accepts nothing
 *   P7  a submission is rejected only if the queue is closed for good, or if no thread starts
 *   P8  a hook that was added is run
 *   P9  no wakeup call is made for a thread that polls, does I/O or runs tasks
 */

/* ---- sizes, set by tools/models/run ---- */

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef TASKS_EACH
#define TASKS_EACH 1 /* 2 at most */
#endif
#ifndef FOLLOW_UPS
#define FOLLOW_UPS 0 /* 1: a task may submit another, on the executor's thread */
#endif
#ifndef LAZY
#define LAZY 0 /* 1: each task may be lazy */
#endif
#ifndef TIMERS
#define TIMERS 0 /* 1: each task may be a timer */
#endif
#ifndef MEMBERS
#define MEMBERS 0 /* 1: each task may be a registration, which adds a member for good */
#endif
#ifndef SUSPENDS
#define SUSPENDS 0
#endif
#ifndef SHUTDOWNS
#define SHUTDOWNS 0
#endif
#ifndef HOOKS
#define HOOKS 0
#endif
#ifndef IDLES
#define IDLES 0 /* how often it suspends itself when idle, like the global executor */
#endif
#ifndef START_FAILURES
#define START_FAILURES 0 /* threads that cannot be started */
#endif
#ifndef BEGIN_FAILURES
#define BEGIN_FAILURES 0 /* threads whose `begin` fails */
#endif
#ifndef LOOKS
#define LOOKS 0 /* how often it busy-polls before it sleeps, like an event loop */
#endif
#ifndef IO
#define IO 0 /* 1: does I/O after waiting, like an event loop */
#endif
#ifndef MANUAL_CLOCK
#define MANUAL_CLOCK 0 /* 1: a sleep ends when the clock is set, not by the kernel */
#endif
#ifndef RELAXED
#define RELAXED 0 /* 1: relaxed stores may become visible late */
#endif

/* ---- values ---- */

/* The queue's head: one of these, or the newest task. */
#define EMPTY 0
#define CLOSED 1
#define FIRST_TASK 2
#define FOLLOW_UP (FIRST_TASK + PRODUCERS * TASKS_EACH)
#define LAST_TASK FOLLOW_UP

#define NOT_STARTED 1
#define SUSPENDING 2
#define SUSPENDED 3
#define STARTED 4
#define SHUTTING_DOWN 5
#define SHUTDOWN 6
#define TERMINATED 7

/* Times. next_wakeup is AWAKE or a deadline; a task's `when` is NOW, a deadline or LAZILY. */
#define AWAKE 0
#define NOW 1
#define SOON 2
#define LATER 3
#define OVER 4 /* the timeout of a shutdown or the idle time has passed */
#define NEVER 5
#define LAZILY NEVER
#define is_timer(task) (when[task] > NOW && when[task] < LAZILY)

/* The outcome of a task. */
#define ACCEPTED 1
#define REFUSED 2
#define CALLED 3

/* ---- the executor ---- */

byte state = NOT_STARTED;
byte head = CLOSED;
byte next[LAST_TASK + 1];
byte next_wakeup = AWAKE;
bool token;
bool lock;
byte hooks;
bool hooks_done;
byte now = NOW;
byte when[LAST_TASK + 1];

/* Accessed by the thread only, and by its successor. */
chan ready = [LAST_TASK] of { byte }; /* turn.ready */
bool filed[LAST_TASK + 1];            /* the timer store ... */
byte timers;                          /* ... and the number of timers in it */
byte members;

#if RELAXED
bool unseen_awake, unseen_reset; /* stores not yet visible: AWAKE to next_wakeup, false to token */
#endif

/* Failures and spontaneous events that are left. */
byte start_failures = START_FAILURES;
byte begin_failures = BEGIN_FAILURES;
byte idles = IDLES;

/* Used only by the properties. */
byte outcome[LAST_TASK + 1];
byte ahead;   /* of the follow-up: the newest task in the queue at its submission */
byte owners;  /* threads that run the executor */
byte wakers;  /* processes that have changed the queue or state and may have to wake the thread */
byte reports; /* of its end */
bool asleep;
bool at_work; /* from waking up until it publishes the next deadline */

/*
 * A critical section of life.lock. If it writes one word that is also read without the lock, it is
 * one step. If it writes more of them, it holds the lock until the last.
 */
#define locked(guard, action) atomic { !lock && (guard) -> action }

inline enter()
{
    assert(owners == 0); /* P5 */
    owners++
}

/* ---- submitting ---- */

/* weir__executor_wake, with the load before it. The caller has counted itself in `wakers`. */
inline wake(when_ns)
{
    if
    :: when_ns < next_wakeup ->
       d_step {
           taken = next_wakeup; next_wakeup = AWAKE;
           assert(RELAXED || taken == AWAKE || !at_work) /* P9 */
       };
       if
       :: d_step { taken != AWAKE -> taken = 0; token = true; wakers-- } /* plain_wake */
       :: d_step { taken == AWAKE -> taken = 0; wakers-- }
       fi
    :: d_step { when_ns >= next_wakeup -> wakers-- }
    fi
}

#define has_no_thread (state == NOT_STARTED || state == SUSPENDED)

/* weir__executor_open */
inline open()
{
    if
    :: locked(has_no_thread, lock = true; run thread_main()); /* start_thread */
       next_wakeup = AWAKE;
       state = STARTED;
       d_step { head = EMPTY; lock = false } /* weir__queue_open */
    :: locked(has_no_thread && start_failures > 0, start_failures--; outcome[task] = REFUSED)
    :: locked(state >= SHUTDOWN, assert(head == CLOSED) /* P7 */; outcome[task] = REFUSED)
    :: locked(!has_no_thread && state < SHUTDOWN, skip)
    fi
}

/*
 * weir__executor_post: the wake_at of a task that finds the queue closed is NOW, and so is the time
 * of a lazy one.
 */
inline post()
{
    do
    :: d_step { head != CLOSED -> /* weir__queue_push */
           assert(!has_no_thread && state != TERMINATED); /* P6 */
           next[task] = head; head = task;
           outcome[task] = ACCEPTED; wakers++
       };
       wake(wake_at);
       break
    :: d_step { head == CLOSED ->
           wake_at = NOW;
           when[task] = (when[task] == LAZILY -> NOW : when[task])
       };
       open();
       if
       :: outcome[task] == REFUSED -> break
       :: else
       fi
    od
}

active [PRODUCERS] proctype producer()
{
    byte task = FIRST_TASK + _pid * TASKS_EACH, left = TASKS_EACH, wake_at, taken;

    do
    :: atomic { left > 0 ->
           if
           :: wake_at = NOW
           :: LAZY -> wake_at = LAZILY
           :: TIMERS -> wake_at = SOON
           :: TIMERS -> wake_at = LATER
           fi;
           when[task] = wake_at
       };
       post();
       wake_at = 0; task++; left--
    :: else -> break
    od
}

/* ---- the turn ---- */

#define has_tasks (len(ready) > 0 || head > CLOSED)

#define was_called(task) (outcome[task] == CALLED || is_timer(task))

inline call(task)
{
    assert(outcome[task] == ACCEPTED); /* P1 */
    if
    :: task == FOLLOW_UP -> assert(ahead <= CLOSED || was_called(ahead)) /* P2 */
    :: is_timer(task) || (task - FIRST_TASK) % TASKS_EACH == 0
    :: else -> assert(outcome[task - 1] == REFUSED || was_called(task - 1)) /* P2 */
    fi;
    outcome[task] = CALLED
}

inline call_timers(until)
{
    for (task : FIRST_TASK .. LAST_TASK) {
        if
        :: filed[task] && when[task] <= until -> filed[task] = false; timers--; call(task)
        :: else
        fi
    }
    task = 0
}

/* weir__queue_take and weir__queue_close: move the queue to `ready`, oldest first. */
inline take_and_leave(mark)
{
    taken = head; head = mark;
    do
    :: taken > CLOSED -> task = next[taken]; next[taken] = oldest; oldest = taken; taken = task
    :: else -> break
    od;
    do
    :: oldest > CLOSED -> ready!oldest; task = next[oldest]; next[oldest] = 0; oldest = task
    :: else -> break
    od;
    taken = 0; task = 0
}

/* The task that has just run may submit another one. */
inline post_here()
{
    if
    :: FOLLOW_UPS && outcome[FOLLOW_UP] == 0 ->
       if
       :: state >= SHUTDOWN -> outcome[FOLLOW_UP] = REFUSED
       :: d_step { state < SHUTDOWN -> ahead = head };
          if
          :: d_step { head > CLOSED -> take_and_leave(EMPTY) }
          :: head <= CLOSED
          fi;
          d_step { when[FOLLOW_UP] = NOW; outcome[FOLLOW_UP] = ACCEPTED; ready!FOLLOW_UP }
       fi
    :: true
    fi
}

inline run_ready()
{
    d_step {
        ready?task;
        if
        :: is_timer(task) -> filed[task] = true; timers++ /* on_start_task */
        :: else -> call(task)
        fi;
        call_timers(now)
    };
    if
    :: MEMBERS && members == 0 && turn_state < SHUTTING_DOWN -> members++ /* weir__member_join */
    :: true
    fi;
    post_here()
}

/* The budget may be spent after any task. */
inline run_tasks()
{
    do
    :: nempty(ready) ->
       run_ready();
       if
       :: true
       :: break
       fi
    :: d_step { empty(ready) && head > CLOSED -> take_and_leave(EMPTY) }
    :: d_step { empty(ready) && head <= CLOSED -> call_timers(now) }; break
    od
}

/* weir__executor_deadline, without tasks: 0, or the end of the sleep. */
inline find_deadline()
{
    deadline = (turn_state == SHUTTING_DOWN || (idles > 0 && timers + members == 0) -> OVER
                                                                                : NEVER);
    for (task : FIRST_TASK .. LAST_TASK) {
        if
        :: filed[task] && when[task] < deadline -> deadline = when[task]
        :: else
        fi
    }
    task = 0;
    deadline = (deadline > now -> deadline : 0)
}

#ifdef NO_SECOND_LOOK
#define finds(what) false
#else
#define finds(what) (what)
#endif

#if RELAXED
#define reset_token() unseen_reset = true
#define mark_awake() unseen_awake = true

inline show_stores()
{
    if
    :: unseen_reset -> token = false; unseen_reset = false
    :: else
    fi;
    if
    :: unseen_awake -> next_wakeup = AWAKE; unseen_awake = false
    :: else
    fi
}

active proctype memory()
{
end:
    do
    :: d_step { unseen_reset -> token = false; unseen_reset = false }
    :: d_step { unseen_awake -> next_wakeup = AWAKE; unseen_awake = false }
    od
}
#else
#define reset_token() token = false
#define mark_awake() next_wakeup = AWAKE
#define show_stores() skip
#endif

/* The type's `busy_poll`: the word stays AWAKE. Consumes a late wakeup, like each wait. */
inline look()
{
    byte looks = LOOKS;

    do
    :: looks > 0 && head > CLOSED -> goto found
    :: looks > 0 && state != turn_state -> goto found
    :: looks > 0 && head <= CLOSED && state == turn_state -> looks--; token = false
    :: looks == 0 -> break
    od
}

/* Publishes the deadline, which makes older stores visible; checks again; sleeps. */
inline sleep()
{
    d_step { show_stores(); next_wakeup = deadline; at_work = false };
    if
    :: finds(head > CLOSED) -> goto awake
    :: else
    fi;
    if
    :: finds(state != turn_state) -> goto awake
    :: else
    fi;
    if
    :: finds(MANUAL_CLOCK && now >= deadline) -> goto awake /* clock_has_passed */
    :: d_step { !finds(MANUAL_CLOCK && now >= deadline) ->
           asleep = true;
           assert(turn_state != SUSPENDING) /* P4 */
       }
    fi;
end_asleep: /* plain_wait */
    d_step { token || (!MANUAL_CLOCK && now >= deadline) -> asleep = false };
    reset_token();
awake:
    token = token && !IO; /* an event loop that does not sleep polls, and consumes it */
    atomic { mark_awake(); at_work = true };
found:
    deadline = 0
}

inline wait_for_work()
{
    if
    :: has_tasks -> token = token && !IO /* an event loop only polls, and consumes it */
    :: d_step { !has_tasks -> find_deadline() };
       if
       :: deadline > 0 -> look(); sleep()
       :: else
       fi
    fi
}

/* The type's `dispatch`: its callbacks may submit a task, too. */
inline dispatch()
{
    if
    :: IO -> post_here()
    :: else
    fi
}

/* ---- lifecycle ---- */

#ifdef NO_CLOSE_MARK
#define CLOSE_MARK EMPTY
#else
#define CLOSE_MARK CLOSED
#endif

inline run_hooks()
{
    do
    :: locked(hooks > 0, hooks--)
    :: locked(hooks == 0, hooks_done = true; break)
    od
}

/* If it succeeds, the thread ends, and another may be started. */
inline try_suspend()
{
    if
    :: timers + members > 0 ->
       if
       :: locked(state == SUSPENDING && turn_state == SUSPENDING, /* stay_started */
                 state = STARTED; turn_state = STARTED)
       :: locked(state != SUSPENDING || turn_state != SUSPENDING, skip)
       fi
    :: timers + members == 0 && has_tasks
    :: else ->
       if
       :: locked(state == turn_state && head == EMPTY, lock = true; head = CLOSE_MARK);
          d_step {
              state = SUSPENDED;
              idles = idles - (turn_state == STARTED -> 1 : 0);
              owners--; lock = false /* detach */
          };
          goto ended
       :: locked(state != turn_state || head != EMPTY, skip)
       fi
    fi
}

inline finish()
{
    run_hooks();
    locked(true, lock = true; state = SHUTDOWN);
    d_step { take_and_leave(CLOSE_MARK); lock = false };
    do /* weir__executor_drain */
    :: nempty(ready) -> run_ready()
    :: d_step { empty(ready) -> call_timers(NEVER) }; break
    od
}

/* weir__executor_terminate */
inline terminate()
{
    locked(true, state = TERMINATED; owners--; reports++)
}

proctype thread_main()
{
    byte turn_state = STARTED, deadline, task, taken, oldest;

    locked(true, enter()); /* begin: start_thread has finished */
    if
    :: begin_failures > 0 -> begin_failures--; goto over
    :: true
    fi;
    do
    :: wait_for_work();
       dispatch();
       run_tasks();
       turn_state = state; /* weir__executor_update_state */
       if
       :: turn_state == STARTED && idles > 0 -> try_suspend()
       :: turn_state == STARTED && (idles == 0 || now < OVER)
       :: turn_state == SUSPENDING -> try_suspend()
       :: turn_state == SHUTTING_DOWN -> /* shutdown_is_over, sooner or later */
          d_step { call_timers(NEVER); members = 0 };
          if
          :: now < OVER
          :: goto over
          fi
       fi
    od;
over:
    finish();
    terminate();
ended:
}

#if SHUTDOWNS
active [SHUTDOWNS] proctype shutdown()
{
    byte taken;

    if
    :: locked(state == STARTED || state == SUSPENDING, state = SHUTTING_DOWN; wakers++);
       wake(NOW)
    :: locked(has_no_thread, state = SHUTDOWN; enter()); /* end_without_thread */
       run_hooks();
       terminate()
    :: locked(state >= SHUTTING_DOWN, skip)
    fi
}
#endif

#if SUSPENDS
active [SUSPENDS] proctype suspend()
{
    byte taken;

    if
    :: locked(state == STARTED, state = SUSPENDING; wakers++);
       wake(NOW)
    :: locked(state == NOT_STARTED, state = SUSPENDED)
    :: locked(state != STARTED && state != NOT_STARTED, skip)
    fi
}
#endif

#if HOOKS
active [HOOKS] proctype add_hook()
{
    if
    :: locked(!hooks_done, hooks++)
    :: locked(hooks_done, skip)
    fi
}
#endif

/* ---- time, and the end of it ---- */

inline check_sleep()
{
    for (task : FIRST_TASK .. LAST_TASK) {
        assert(!asleep || token || wakers > 0 || next_wakeup <= now ||
               outcome[task] != ACCEPTED || when[task] > now) /* P3 */
    }
    task = 0
}

#if TIMERS || SHUTDOWNS || IDLES
active proctype clock()
{
    byte task, taken;

    do
    :: d_step { now < OVER ->
           check_sleep();
           now = (TIMERS -> now + 1 : OVER);
           wakers = wakers + MANUAL_CLOCK
       };
#if MANUAL_CLOCK
       if /* on_clock_moved */
       :: next_wakeup != AWAKE && now >= next_wakeup -> wake(NOW)
       :: d_step { next_wakeup == AWAKE || now < next_wakeup -> wakers-- }
       fi
#endif
    :: now == OVER -> break
    od
}
#endif

active proctype quiescence()
{
    byte task;

    timeout ->
    d_step {
        for (task : FIRST_TASK .. LAST_TASK) {
            assert(outcome[task] != ACCEPTED || (asleep && when[task] == LAZILY)) /* P1 */
        }
        assert(SHUTDOWNS == 0 || state == TERMINATED);         /* P4 */
        assert(reports == (state == TERMINATED));              /* P4 */
        assert(has_no_thread || state == TERMINATED || state == STARTED); /* P4 */
        assert(state != STARTED || idles == 0 || members > 0);            /* P4 */
        assert(asleep == (state == STARTED) && owners == (state == STARTED));             /* P5 */
        assert(state == STARTED || head == CLOSED);            /* P6 */
        assert(state != TERMINATED || hooks == 0)              /* P8 */
    }
}
