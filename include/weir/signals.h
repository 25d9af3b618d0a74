/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/signals.h - signals as events on a loop, for programs that drain on SIGTERM.
 *
 *      static void on_signal(weir_signals *signals, const weir_signal *signal, void *group)
 *      {
 *          weir_group_shutdown(group, 0, weir_seconds(10));
 *      }
 *
 * A signal reaches the loop only if no thread takes it first, that is, if all have it blocked.
 * weir's own threads have. Creating the signals blocks them in the calling thread, and threads
 * inherit that from who starts them: so create them in main(), before other threads are started.
 * What came before, while blocked, is told first. As ever, a signal that comes several times before
 * it is told is told once (but for the real-time ones), and one that was sent to a single thread is
 * that thread's.
 */
#ifndef WEIR_SIGNALS_H
#define WEIR_SIGNALS_H

#include <weir/executor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_SIGNALS_MAX 16 /* for more, create another */

typedef struct weir_signals weir_signals;

/* A signal that has come, as sigaction(2) describes it. */
typedef struct weir_signal {
    int number;
    int code;       /* SI_USER, SI_KERNEL, CLD_EXITED, ... */
    int64_t pid;    /* who sent it, 0 if the kernel did; for SIGCHLD the child */
    uint32_t uid;   /* whose process that is */
    int32_t status; /* SIGCHLD: exit status or signal */
    int64_t value;  /* what sigqueue(3) gave with it */
    uint64_t reserved[4];
} weir_signal;

/* Called on the loop's thread, once for each. The signal is lent until it returns. */
typedef void weir_signal_fn(weir_signals *signals, const weir_signal *signal, void *user_data);

/*
 * The last word, exactly once, never from inside a call of yours. `err` is 0 if you released the
 * signals, WEIR_ECANCELED if the loop has shut down, otherwise what went wrong.
 */
typedef void weir_signals_closed_fn(weir_signals *signals, int err, void *user_data);

/* Zero means default. Build with WEIR_SIGNALS_OPTIONS(.numbers = {SIGINT, SIGTERM}, ...). */
typedef struct weir_signals_options {
    size_t size;
    int numbers[WEIR_SIGNALS_MAX]; /* the signals, until the first 0 */
    weir_signal_fn *received;
    weir_signals_closed_fn *closed; /* default: nobody is told */
    void *user_data;
} weir_signals_options;

#define WEIR_SIGNALS_OPTIONS(...) \
    (&(const weir_signals_options){.size = sizeof(weir_signals_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_signals_options_init(weir_signals_options *options);

/*
 * Blocks the signals in the calling thread and has the loop tell of them. A signal is told to one
 * weir_signals only. One that cannot be blocked, or is a fault of the thread's own, is no event:
 * SIGKILL, SIGSTOP, SIGSEGV and the like are -EINVAL.
 * Thread: any.  Gives: signals.  Fails: -EINVAL (also: not an event loop, no `.received`, no
 * signals), -EBUSY (another has one of these), -ENOMEM, -EMFILE, WEIR_EREJECTED (the loop has shut
 * down), -EAGAIN (its thread cannot be started).
 */
WEIR_API int weir_signals_create(weir_executor *loop, const weir_signals_options *options,
                                 weir_signals **ret_signals);

/*
 * Ends it; NULL is fine. On the loop's thread `received` is not called again, elsewhere it may be
 * running until `closed`. On the thread that created the signals, those that this had blocked are
 * unblocked, unless others have them by now: one that has come and was not told then does what it
 * would do without weir. On another thread nothing is unblocked.
 * Thread: any.  Takes: signals.
 */
WEIR_API void weir_signals_release(weir_signals *signals);

#ifdef __cplusplus
}
#endif

#endif
