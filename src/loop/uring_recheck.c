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

#define COMPLETIONS_MIN \
    4 /* completions of a turn: with fewer to share it the question costs more */
#define DEFER_TURNS_MAX 32 /* that it may be put off */

bool weir__uring_recheck(weir__io_handle *handle)
{
    weir__uring *self = weir__uring_of(handle->io);
    struct weir__uring_rechecks *rechecks = &self->rechecks;

    if ((handle->uring_flags & WEIR__URING_RECHECK) != 0)
        return true;
    if (self->turn_completions < COMPLETIONS_MIN || rechecks->count == WEIR__URING_RECHECKS_MAX)
        return false;
    rechecks->handles[rechecks->count++] = handle;
    handle->uring_flags |= WEIR__URING_RECHECK;
    return true;
}

void weir__uring_cancel_recheck(weir__io_handle *handle)
{
    struct weir__uring_rechecks *rechecks = &weir__uring_of(handle->io)->rechecks;
    unsigned i = 0;

    if ((handle->uring_flags & WEIR__URING_RECHECK) == 0)
        return;
    while (rechecks->handles[i] != handle)
        i++;
    rechecks->handles[i] = rechecks->handles[--rechecks->count];
    handle->uring_flags &= (uint8_t)~WEIR__URING_RECHECK;
}

static void finish_recheck(weir__io_handle *handle, bool has_more)
{
    handle->uring_flags &= (uint8_t)~WEIR__URING_RECHECK;
    if (!has_more || !weir__io_is_attached(handle))
        return;
    if ((handle->wants & WEIR__IO_RECEIVE) == 0)
        handle->unread = true;
    else if ((handle->pending & WEIR__IO_PENDING_READ) == 0)
        weir__io_set_pending(handle, WEIR__IO_PENDING_READ);
}

/* If the system does not say, there may be more of each. */
static void poll_sockets(struct weir__uring_rechecks *rechecks)
{
    struct pollfd entries[WEIR__URING_RECHECKS_MAX];
    unsigned count = rechecks->count;
    bool is_unknown;

    for (unsigned i = 0; i < count; i++)
        entries[i] = (struct pollfd){.fd = rechecks->handles[i]->descriptor, .events = POLLIN};
    is_unknown = weir__sys.ppoll(entries, count, &(struct timespec){0}, NULL) < 0;
    for (unsigned i = 0; i < count; i++)
        finish_recheck(rechecks->handles[i], is_unknown || (entries[i].revents & POLLIN) != 0);
    rechecks->count = 0;
    rechecks->turns = 0;
}

void weir__uring_run_rechecks(weir__uring *self, bool may_defer)
{
    struct weir__uring_rechecks *rechecks = &self->rechecks;

    if (rechecks->count == 0)
        return;
    if (may_defer && weir__uring_kernel_has_completions(self) &&
        ++rechecks->turns < DEFER_TURNS_MAX)
        return;
    poll_sockets(rechecks);
}
