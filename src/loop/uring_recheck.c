/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doubts: whether a short read has emptied a Unix socket. It ends at a passed descriptor, too, and
 * then no edge will tell of what is behind it.
 *
 * recvmsg(2) says so of one read, at the price of a tenth of it. Where a turn reads from several
 * sockets it is cheaper to receive by recv(2), which does not, and to ask for all of them at once
 * whether something is left, before the loop waits. While the kernel has something for us already
 * the loop has another turn first, and may put that off: most of what has come since then is told
 * by that, and would only be read twice. But not for long, for the loop may never sleep. That turn
 * does not wait: what the kernel has may come to nothing, if it was read meanwhile.
 */
#include <poll.h>

#include "loop/uring.h"
#include "os/system.h"

#define CROWD_MIN 4  /* completions of a turn: with fewer to share it the question costs more */
#define TURNS_MAX 32 /* that it may be put off */

bool weir__uring_recheck(weir__io_handle *handle)
{
    weir__uring *self = weir__uring_of(handle->io);
    struct weir__uring_rechecks *doubts = &self->doubts;

    if ((handle->manner & WEIR__URING_RECHECK) != 0)
        return true;
    if (self->crowd < CROWD_MIN || doubts->count == WEIR__URING_RECHECKS_MAX)
        return false;
    doubts->handles[doubts->count++] = handle;
    handle->manner |= WEIR__URING_RECHECK;
    return true;
}

void weir__uring_cancel_recheck(weir__io_handle *handle)
{
    struct weir__uring_rechecks *doubts = &weir__uring_of(handle->io)->doubts;
    unsigned i = 0;

    if ((handle->manner & WEIR__URING_RECHECK) == 0)
        return;
    while (doubts->handles[i] != handle)
        i++;
    doubts->handles[i] = doubts->handles[--doubts->count];
    handle->manner &= (uint8_t)~WEIR__URING_RECHECK;
}

static void settle(weir__io_handle *handle, bool has_more)
{
    handle->manner &= (uint8_t)~WEIR__URING_RECHECK;
    if (!has_more || !weir__io_is_attached(handle))
        return;
    if ((handle->wants & WEIR__IO_RECEIVE) == 0)
        handle->unread = true;
    else if ((handle->due & WEIR__IO_PENDING_READ) == 0)
        weir__io_set_pending(handle, WEIR__IO_PENDING_READ);
}

/* If the system does not say, there may be more of each. */
static void ask(struct weir__uring_rechecks *doubts)
{
    struct pollfd entries[WEIR__URING_RECHECKS_MAX];
    unsigned count = doubts->count;
    bool is_unknown;

    for (unsigned i = 0; i < count; i++)
        entries[i] = (struct pollfd){.fd = doubts->handles[i]->descriptor, .events = POLLIN};
    is_unknown = weir__sys.ppoll(entries, count, &(struct timespec){0}, NULL) < 0;
    for (unsigned i = 0; i < count; i++)
        settle(doubts->handles[i], is_unknown || (entries[i].revents & POLLIN) != 0);
    doubts->count = 0;
    doubts->turns = 0;
}

void weir__uring_run_rechecks(weir__uring *self, bool may_put_off)
{
    struct weir__uring_rechecks *doubts = &self->doubts;

    if (doubts->count == 0)
        return;
    if (may_put_off && weir__uring_kernel_has_some(self) && ++doubts->turns < TURNS_MAX)
        return;
    ask(doubts);
}
