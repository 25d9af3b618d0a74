/* SPDX-License-Identifier: Apache-2.0 */
#include "os/signal_handler.h"

#include <errno.h>
#include <stddef.h>

int weir__signal_handler_install(weir__signal_handler *handler, int number, weir__signal_fn *fn)
{
    struct sigaction action = {.sa_sigaction = fn,
                               .sa_flags = SA_RESTART | SA_ONSTACK | SA_SIGINFO};

    if (sigaction(number, NULL, &handler->before) < 0)
        return -errno;
    if ((handler->before.sa_flags & SA_SIGINFO) != 0 ||
        (handler->before.sa_handler != SIG_DFL && handler->before.sa_handler != SIG_IGN))
        return -EBUSY;
    sigfillset(&action.sa_mask);
    if (sigaction(number, &action, NULL) < 0)
        return -errno;
    handler->number = number;
    handler->fn = fn;
    return 0;
}

bool weir__signal_handler_is_installed(const weir__signal_handler *handler)
{
    struct sigaction action;

    return sigaction(handler->number, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO) != 0 &&
           action.sa_sigaction == handler->fn;
}

/* Ignoring a signal discards the pending ones; the default action may be to end the process. */
void weir__signal_handler_remove(const weir__signal_handler *handler)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    if (!weir__signal_handler_is_installed(handler))
        return;
    (void)sigaction(handler->number, &ignore, NULL);
    (void)sigaction(handler->number, &handler->before, NULL);
}
