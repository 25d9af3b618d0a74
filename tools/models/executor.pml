/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor's queue, sleep, suspension and end, as src/base/queue.h, src/executor/executor.c and
 * src/executor/life.c do them, under their names.
 *
 *      producer      submits from another thread: tasks, lazy tasks, timers
 *      suspend, shutdown, add_hook, clock
 *      thread_main   the executor's thread, and the next one after a suspension
 *      memory        shows the thread's relaxed stores to the others, as late as it likes
 *      quiescence    looks round when nothing moves any more
 *
 * A step is one access to a shared word. What a d_step or an atomic makes one is one atomic
 * operation in C, or concerns nobody but this process, or only the properties. Nothing goes on for
 * ever: all that is repeated uses up a task, a call or a tick of the clock. So every run ends in
 * quiescence, and what has to happen some day has happened by then.
 *
 * Properties, besides that nobody is left waiting for the lock:
 *   P1  a task that was accepted is called exactly once, one that was refused never
 *   P2  the tasks of one producer are called in the order submitted
 *   P3  the thread does not sleep past the time of an accepted task unless somebody is about to
 *       wake it; lazy tasks have no time
 *   P4  after a shutdown the executor ends, and says so once; after a suspend it comes to rest
 *   P5  at most one thread has the executor
 *   P6  the queue of an executor without a thread is closed and takes nothing
 *   P7  a submission is refused only if the executor has closed for good or cannot be started
 *   P8  a hook that was added runs exactly once, one that was refused never
 */

/* ---- how much of everything: tools/models/run says ---- */

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef TASKS_EACH
#define TASKS_EACH 1 /* 2 at most */
#endif
#ifndef FOLLOW_UPS
#define FOLLOW_UPS 0 /* tasks submitted by a task, on the executor's thread; 1 at most */
#endif
#ifndef LAZY
#define LAZY 0 /* 1: any task may be lazy */
#endif
#ifndef TIMERS
#define TIMERS 0 /* 1: any task may be a timer */
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
#define IDLES 0 /* 1: suspends itself when it has idled enough, as the global executor does */
#endif
#ifndef START_FAILURES
#define START_FAILURES 0
#endif

/* ---- values ---- */

/* The queue's head: one of these, or the newest task. */
#define EMPTY 0
#define CLOSED 1
#define FIRST_TASK 2
#define FOLLOW_UP (FIRST_TASK + PRODUCERS * TASKS_EACH)
#define TASKS_END (FOLLOW_UP + FOLLOW_UPS)

#define NOT_STARTED 1
#define SUSPENDING 2
#define SUSPENDED 3
#define STARTED 4
#define SHUTTING_DOWN 5
#define SHUTDOWN 6
#define TERMINATED 7

/* Times. next_wakeup is AWAKE or a deadline; the `when` of a task is NOW, a deadline or LAZILY. */
#define AWAKE 0
#define NOW 1
#define SOON 2
#define LATER 3
#define OVER 4 /* a shutdown's time is up, an idle executor has idled enough */
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
byte next[TASKS_END];
byte next_wakeup = AWAKE;
bool token;
bool lock;
byte hooks;
bool hooks_done;

chan ready = [TASKS_END] of { byte }; /* turn.ready, the thread's own */
bool filed[TASKS_END];                /* the timer store, the thread's own */
byte when[TASKS_END];
byte now = NOW;

/* Relaxed stores that need not be seen yet: AWAKE to next_wakeup, false to token. */
bool unseen_awake;
bool unseen_reset;

/* What only the properties look at. */
byte outcome[TASKS_END];
byte hooks_added;
byte owners;  /* threads that have the executor */
byte reports; /* of its end */
byte posting; /* producers with a task in the queue who may still have to wake the thread */
bool asleep;

byte start_failures = START_FAILURES;

inline lock_life()
{
    atomic { !lock -> lock = true }
}

inline unlock_life()
{
    lock = false
}

inline enter()
{
    assert(owners == 0); /* P5 */
    owners++
}

/* ---- submitting ---- */

inline wake(until)
{
    if
    :: until < next_wakeup ->
        d_step { taken = next_wakeup; next_wakeup = AWAKE };
        if
        :: taken != AWAKE -> token = true /* plain_wake */
        :: else
        fi;
        taken = 0
    :: else
    fi
}

inline start_thread(task)
{
    if
    :: start_failures > 0 -> start_failures--; outcome[task] = REFUSED
    :: run thread_main();
       next_wakeup = AWAKE;
       state = STARTED;
       head = EMPTY /* weir__queue_open */
    fi
}

/* weir__executor_open */
inline open(task)
{
    lock_life();
    if
    :: state == NOT_STARTED || state == SUSPENDED -> start_thread(task)
    :: state >= SHUTDOWN -> assert(head == CLOSED); outcome[task] = REFUSED /* P7 */
    :: else
    fi;
    unlock_life()
}

/* weir__executor_post, from another thread */
inline post(task)
{
    do
    :: d_step { head != CLOSED -> /* weir__queue_push */
           assert(state != NOT_STARTED && state != SUSPENDED && state != TERMINATED); /* P6 */
           next[task] = head; head = task;
           outcome[task] = ACCEPTED; posting++
       };
       wake(when[task]);
       posting--;
       break
    :: head == CLOSED ->
       open(task);
       if
       :: outcome[task] == REFUSED -> break
       :: else
       fi
    od
}

active [PRODUCERS] proctype producer()
{
    byte task = FIRST_TASK + _pid * TASKS_EACH, end = FIRST_TASK + (_pid + 1) * TASKS_EACH, taken;

    do
    :: atomic { task < end ->
           if
           :: when[task] = NOW
           :: LAZY -> when[task] = LAZILY
           :: TIMERS -> when[task] = SOON
           :: TIMERS -> when[task] = LATER
           fi
       };
       post(task);
       task++
    :: else -> break
    od
}

/* ---- the turn ---- */

#define has_tasks (nempty(ready) || head > CLOSED)

inline call(task)
{
    assert(outcome[task] == ACCEPTED); /* P1 */
    assert(task == FOLLOW_UP || (task - FIRST_TASK) % TASKS_EACH == 0 || is_timer(task) ||
           is_timer(task - 1) || outcome[task - 1] != ACCEPTED); /* P2 */
    outcome[task] = CALLED
}

/* queue_turn_round: from the newest task on, to the end of `ready`, oldest first */
inline turn_round(newest)
{
    do
    :: newest > CLOSED -> task = next[newest]; next[newest] = oldest; oldest = newest; newest = task
    :: else -> break
    od;
    do
    :: oldest > CLOSED -> ready!oldest; task = next[oldest]; next[oldest] = 0; oldest = task
    :: else -> break
    od;
    newest = 0; task = 0
}

inline take_queue()
{
    d_step { taken = head; head = EMPTY; turn_round(taken) }
}

/* A task that runs may submit another one. */
inline post_here()
{
    if
    :: FOLLOW_UPS > 0 && outcome[FOLLOW_UP] == 0 ->
       if
       :: state >= SHUTDOWN -> outcome[FOLLOW_UP] = REFUSED
       :: else ->
          if
          :: head > CLOSED -> take_queue()
          :: else
          fi;
          d_step { ready!FOLLOW_UP; when[FOLLOW_UP] = NOW; outcome[FOLLOW_UP] = ACCEPTED }
       fi
    :: true
    fi
}

inline run_ready()
{
    atomic {
        ready?task;
        if
        :: is_timer(task) -> filed[task] = true /* on_file */
        :: else -> call(task)
        fi;
        task = 0
    };
    post_here()
}

inline call_timers(until)
{
    d_step {
        task = FIRST_TASK;
        do
        :: task < TASKS_END && filed[task] && when[task] <= until -> filed[task] = false; call(task); task++
        :: task < TASKS_END && !(filed[task] && when[task] <= until) -> task++
        :: else -> break
        od;
        task = 0
    }
}

/* The budget may be used up after any task. */
inline run_tasks()
{
    do
    :: call_timers(now);
       if
       :: nempty(ready) -> run_ready()
       :: empty(ready) && head > CLOSED -> take_queue(); run_ready()
       :: else -> break
       fi
    :: true -> break
    od
}

/* weir__executor_deadline: `deadline` is 0 or when to wake up */
inline find_deadline()
{
    d_step {
        deadline = (turn_state == SHUTTING_DOWN || IDLES -> OVER : NEVER); /* next_step */
        task = FIRST_TASK;
        do
        :: task < TASKS_END && filed[task] && when[task] < deadline -> deadline = when[task]; task++
        :: task < TASKS_END && !(filed[task] && when[task] < deadline) -> task++
        :: else -> break
        od;
        task = 0;
        deadline = (deadline > now -> deadline : 0)
    }
}

inline wait_for_work()
{
    if
    :: has_tasks
    :: else ->
       find_deadline();
       if
       :: deadline == 0
       :: else -> sleep()
       fi;
       deadline = 0
    fi
}

#ifdef NO_SECOND_LOOK
#define SECOND_LOOK(condition) true
#else
#define SECOND_LOOK(condition) (condition)
#endif

inline stores_are_seen()
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

inline sleep()
{
    d_step { stores_are_seen(); next_wakeup = deadline }; /* weir__executor_publish */
    if
    :: SECOND_LOOK(head <= CLOSED) ->
       if
       :: atomic { SECOND_LOOK(state == turn_state) -> asleep = true };
end_asleep:
          atomic { token || deadline <= now -> asleep = false; unseen_reset = true }
       :: else
       fi
    :: else
    fi;
    unseen_awake = true
}

active proctype memory()
{
end:
    do
    :: atomic { unseen_reset -> token = false; unseen_reset = false }
    :: atomic { unseen_awake -> next_wakeup = AWAKE; unseen_awake = false }
    od
}

/* ---- life ---- */

#ifdef NO_CLOSE_MARK
#define CLOSE EMPTY
#else
#define CLOSE CLOSED
#endif

inline has_timers()
{
    skip
}

inline try_suspend()
{
    if
    :: has_tasks
    :: else ->
       d_step { find_deadline_free() }
    fi
}
