/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Installs a signal handler for a time, unless the program has one.
 */
#ifndef WEIR_OS_SIGNAL_HANDLER_H
#define WEIR_OS_SIGNAL_HANDLER_H

#include <signal.h>
#include <stdbool.h>

/* `context` is a ucontext_t: the registers of the interrupted code. */
typedef void weir__signal_fn(int number, siginfo_t *info, void *context);

typedef struct weir__signal_handler {
    int number;
    weir__signal_fn *fn;
    struct sigaction before;
} weir__signal_handler;

/*
 * Installs fn, which runs with all signals blocked. System calls are restarted, except for those
 * that never are: see signal(7). Fails: -EBUSY (the program handles the signal), -EINVAL.
 */
int weir__signal_handler_install(weir__signal_handler *handler, int number, weir__signal_fn *fn);

/* False if the program has changed the disposition since; then the signal may end the process. */
bool weir__signal_handler_is_installed(const weir__signal_handler *handler);

/* Restores the disposition, unless the program has changed it. None is pending then. */
void weir__signal_handler_remove(const weir__signal_handler *handler);

#endif
