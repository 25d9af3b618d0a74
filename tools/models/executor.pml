/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor's queue, sleep, suspension and end, as src/base/queue.h, src/executor/executor.c and
 * src/executor/lifecycle.c do them, under their names.
 *
 *      producer                       submits from other threads: tasks, lazy tasks, timers
 *      suspend, shutdown, add_hook    are called from other threads, too
 *      thread_main                    the executor's thread, and the next one after a suspension
 *      clock                          time passes, whenever it likes
 *      memory                         lets others see the thread's relaxed stores, later
 *      quiescence                     looks round when nothing moves any more
 *
 * A step is one access to one shared word. Where d_step or atomic makes more into one step, that is
 * one atomic operation in C, or the rest of it concerns this process only, or the properties only.
 *
 * Nothing goes on for ever: what is repeated uses up a task, a call or a tick of the clock. So each
 * run ends in quiescence, and what has to happen some day has happened by then. That no run goes
 * round in a cycle is checked, too.
 *
 * Properties, besides that nobody waits for the lock for ever:
 *   P1  a task that was accepted is called exactly once, one that was refused never
 *   P2  the tasks of one producer are called in the order submitted, and a task that the thread
 *       submits to itself after all that were there
 *   P3  the thread does not sleep past the time of an accepted task, unless somebody is about to
 *       wake it; a lazy task has no time, unless it found the queue closed
 *   P4  after a shutdown the executor ends, and says so once; after a suspend it does not stay
 *       SUSPENDING (handles, which would keep it there, come and go on its thread: none is here)
 *   P5  at most one thread has the executor
 *   P6  the queue of an executor without a thread is closed, and takes nothing
 *   P7  a submission is refused only by a queue that is closed for good, or if no thread starts
 *   P8  a hook that was added is run
 *   P9  nobody makes a wake-up call for a thread that looks for work, does I/O or runs tasks
 */

/* ---- how much there is of everything: tools/models/run chooses ---- */

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef TASKS_EACH
#define TASKS_EACH 1 /* 2 at most */
#endif
#ifndef FOLLOW_UPS
#define FOLLOW_UPS 0 /* 1: a task may submit one more, on the executor's thread */
#endif
#ifndef LAZY
#define LAZY 0 /* 1: each task may be lazy */
#endif
#ifndef TIMERS
#define TIMERS 0 /* 1: each task may be a timer */
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
#define IDLES 0 /* times that it suspends itself when idle, as the global executor does */
#endif
#ifndef START_FAILURES
#define START_FAILURES 0 /* threads that cannot be started */
#endif
#ifndef BEGIN_FAILURES
#define BEGIN_FAILURES 0 /* threads whose kind cannot begin */
#endif
#ifndef LOOKS
#define LOOKS 0 /* times that it looks for work before it sleeps, as an event loop may */
#endif
#ifndef IO
#define IO 0 /* 1: it does I/O when it has waited, as an event loop does */
#endif
#ifndef MANUAL_CLOCK
#define MANUAL_CLOCK 0 /* 1: the kernel ends no sleep; who moves the clock does */
#endif
#ifndef RELAXED
#define RELAXED 0 /* 1: relaxed stores may be seen late */
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
#define OVER 4 /* a shutdown's time is up, or the executor has idled enough */
#define NEVER 5
#define LAZILY NEVER
#define is_timer(task) (when[task] > NOW && when[task] < LAZILY)

/* What became of a task. */
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

/* The thread's own, and the next thread's. */
chan ready = [LAST_TASK] of { byte }; /* turn.ready */
bool filed[LAST_TASK + 1];            /* the timer store ... */
byte timers;                          /* ... and how many are in it */

#if RELAXED
bool unseen_awake, unseen_reset; /* AWAKE on its way to next_wakeup, false to token */
#endif

/* What may still go wrong, or happen by itself. */
byte start_failures = START_FAILURES;
byte begin_failures = BEGIN_FAILURES;
byte idles = IDLES;

/* What only the properties look at. */
byte outcome[LAST_TASK + 1];
byte ahead;   /* of the follow-up: the newest task in the queue then */
byte owners;  /* who has the executor */
byte wakers;  /* who has changed what the thread looks at, and may have to wake it */
byte reports; /* of its end */
bool asleep;
bool at_work; /* from when it is awake again until it publishes the next deadline */

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

/* weir__executor_wake, with the look before it. Whoever comes here has counted itself a waker. */
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
 * post, and post_to_closed: the wake_at of a task that finds the queue closed is NOW, and so is the
 * time of a lazy one.
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

/* weir__queue_take and weir__queue_close: what is in the queue goes to `ready`, oldest first. */
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
        :: is_timer(task) -> filed[task] = true; timers++ /* on_file */
        :: else -> call(task)
        fi;
        call_timers(now)
    };
    post_here()
}

/* The budget may be used up after any task. */
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

/* weir__executor_deadline, now that there are no tasks: 0, or until when to sleep. */
inline find_deadline()
{
    deadline = (turn_state == SHUTTING_DOWN || (idles > 0 && timers == 0) -> OVER : NEVER);
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

/* The kind's `look`: the word stays AWAKE. It takes a wake-up that came late, as each wait does. */
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

/* Publishes the deadline, a release before which the older stores are seen; looks again; sleeps. */
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
    :: d_step { !finds(MANUAL_CLOCK && now >= deadline) -> asleep = true }
    fi;
end_asleep: /* plain_wait */
    d_step { token || (!MANUAL_CLOCK && now >= deadline) -> asleep = false };
    reset_token();
awake:
    token = token && !IO; /* an event loop that does not sleep looks, and takes it */
    atomic { mark_awake(); at_work = true };
found:
    deadline = 0
}

inline wait_for_work()
{
    if
    :: has_tasks -> token = token && !IO /* an event loop only looks, and takes it */
    :: d_step { !has_tasks -> find_deadline() };
       if
       :: deadline > 0 -> look(); sleep()
       :: else
       fi
    fi
}

/* The kind's `dispatch`: what it calls may submit a task, too. */
inline dispatch()
{
    if
    :: IO -> post_here()
    :: else
    fi
}

/* ---- life ---- */

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

/* If it succeeds, the thread ends, and others are free to start the next one. */
inline try_suspend()
{
    if
    :: has_tasks || timers > 0
    :: else ->
       if
       :: locked(state == turn_state && head == EMPTY, lock = true; head = CLOSE_MARK);
          d_step {
              state = SUSPENDED;
              idles = idles - (turn_state == STARTED -> 1 : 0);
              owners--; lock = false /* let_go */
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

    locked(true, enter()); /* begin: whoever started us is through now */
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
          d_step { call_timers(NEVER) };
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
        assert(has_no_thread || state == TERMINATED || (state == STARTED && idles == 0)); /* P4 */
        assert(asleep == (state == STARTED) && owners == (state == STARTED));             /* P5 */
        assert(state == STARTED || head == CLOSED);            /* P6 */
        assert(state != TERMINATED || hooks == 0)              /* P8 */
    }
}
