/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals on a loop: watches a signalfd(2).
 *
 * Each signal belongs to at most one weir_signals (`taken`), because the kernel gives it to the
 * first reader. The claim ends with the release or with the loop. From then on this weir_signals
 * does not read, so that another can be created at once, even if this descriptor is still open.
 */
#include <weir/watch.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>

#include <weir/error.h>

#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "loop/signals.h"
#include "os/system.h"
#include "os/thread.h"
#include "os/virtual_os.h"

#define READS_MAX 16 /* per turn: there may be many queued real-time signals */

struct weir_signals {
    weir_signals_options options;
    weir_fd_watch *watch; /* used by the user's thread */
    pid_t creator;
    weir__signal_set blocked;         /* in the creator's mask, by weir_signals_create */
    _Atomic weir__signal_set claimed; /* 0 = released */
    weir__refs refs;                  /* of the user and of the watch */
};

/* ---- claims ---- */

static _Atomic weir__signal_set *taken(void)
{
    static _Atomic weir__signal_set of_process;

    return weir__process_static(&of_process, sizeof(of_process));
}

/* All accesses are relaxed: only the signal numbers matter. */
int weir__signals_claim(weir__signal_set set)
{
    weir__signal_set before = atomic_load_explicit(taken(), memory_order_relaxed);

    do {
        if ((before & set) != 0)
            return -EBUSY;
    } while (!atomic_compare_exchange_weak_explicit(taken(), &before, before | set,
                                                    memory_order_relaxed, memory_order_relaxed));
    return 0;
}

void weir__signals_unclaim(weir__signal_set set)
{
    atomic_fetch_and_explicit(taken(), ~set, memory_order_relaxed);
}

void weir__signals_unblock(weir__signal_set set)
{
    weir__signal_set_unblock(set & ~atomic_load_explicit(taken(), memory_order_relaxed));
}

/* The first call ends the claim. */
static void end_claim(weir_signals *signals)
{
    weir__signals_unclaim(atomic_exchange_explicit(&signals->claimed, 0, memory_order_relaxed));
}

static bool has_claim(const weir_signals *signals)
{
    return atomic_load_explicit(&signals->claimed, memory_order_relaxed) != 0;
}

/* The mask of another thread cannot be changed, and a new claimant needs them blocked. */
static void unblock(const weir_signals *signals)
{
    if (signals->creator == weir__thread_id())
        weir__signals_unblock(signals->blocked);
}

static void release(weir_signals *signals)
{
    if (weir__refs_release(&signals->refs))
        weir__free(signals);
}

/* ---- on the loop ---- */

static void notify(weir_signals *signals, const struct signalfd_siginfo *info)
{
    const weir_signal signal = {
        .number = (int)info->ssi_signo,
        .code = info->ssi_code,
        .pid = info->ssi_pid,
        .uid = info->ssi_uid,
        .status = info->ssi_status,
        .value = (int64_t)info->ssi_ptr,
    };

    signals->options.received(signals, &signal, signals->options.user_data);
}

/* Reads one at a time, so that unwanted ones stay in the kernel. */
static void on_ready(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    struct signalfd_siginfo info;
    weir_signals *signals = user_data;

    (void)events;
    for (int i = 0; i < READS_MAX && has_claim(signals); i++) {
        if (weir__sys.read(weir_fd_watch_descriptor(watch), &info, sizeof(info)) != sizeof(info))
            return;
        notify(signals, &info);
    }
}

static void on_closed(weir_fd_watch *watch, int err, void *user_data)
{
    weir_signals *signals = user_data;

    (void)watch;
    end_claim(signals);
    if (signals->options.closed != NULL)
        signals->options.closed(signals, err, signals->options.user_data);
    release(signals);
}

/* ---- creation and release ---- */

static int read_set(const weir_signals_options *options, weir__signal_set *ret_set)
{
    weir__signal_set set = 0;
    int err = 0;

    for (int i = 0; i < WEIR_SIGNALS_MAX && options->numbers[i] != 0; i++) {
        err = weir__signal_set_add(&set, options->numbers[i]);
        if (err < 0)
            return weir__options_reject("signals", NULL, "signal %d cannot be received",
                                        options->numbers[i]);
    }
    if (set == 0 || options->received == NULL)
        return weir__options_reject("signals", NULL, "%s",
                                    set == 0 ? ".numbers is empty" : ".received is NULL");
    *ret_set = set;
    return 0;
}

/*
 * `received` may release the signals at once: so no event is watched for before `watch` is set, and
 * the signals are not accessed afterwards.
 */
static int watch_signals(weir_executor *loop, weir__signal_set set, weir_signals *signals)
{
    weir_fd_watch *watch;
    sigset_t expanded;
    int err, descriptor;

    weir__signal_set_expand(set, &expanded);
    descriptor = weir__sys.signalfd(-1, &expanded, SFD_NONBLOCK | SFD_CLOEXEC);
    if (descriptor < 0)
        return -errno;
    err =
        weir_fd_watch_create(loop, descriptor,
                             WEIR_FD_WATCH_OPTIONS(.ready = on_ready, .closed = on_closed,
                                                   .user_data = signals, .close_descriptor = true),
                             &watch);
    if (err < 0)
        return err;
    signals->watch = watch;
    (void)weir_fd_watch_set_events(watch, WEIR_FD_READABLE); /* fails if the loop has shut down */
    return 0;
}

/* The signals are blocked before the descriptor exists, so that none is lost in between. */
static int start(weir_executor *loop, weir__signal_set set, weir_signals *signals)
{
    int err = weir__signals_claim(set);

    if (err < 0)
        return err;
    atomic_init(&signals->claimed, set);
    signals->creator = weir__thread_id();
    signals->blocked = weir__signal_set_block(set);
    weir__refs_retain(&signals->refs); /* of the watch */
    err = watch_signals(loop, set, signals);
    if (err < 0) {
        end_claim(signals);
        unblock(signals);
    }
    return err;
}

int weir_signals_create(weir_executor *loop, const weir_signals_options *options,
                        weir_signals **ret_signals)
{
    weir_signals_options given;
    weir_signals *signals;
    weir__signal_set set = 0;
    int err = weir__options_read(&given, sizeof(given), options);

    if (err == 0)
        err = read_set(&given, &set);
    if (err < 0)
        return err;
    signals = weir__zalloc(sizeof(*signals));
    if (signals == NULL)
        return -ENOMEM;
    signals->options = given;
    weir__refs_init(&signals->refs);
    err = start(loop, set, signals);
    if (err < 0)
        weir__free(signals);
    else
        *ret_signals = signals;
    return err;
}

void weir_signals_release(weir_signals *signals)
{
    if (signals == NULL)
        return;
    end_claim(signals);
    unblock(signals);
    weir_fd_watch_release(signals->watch);
    release(signals);
}
