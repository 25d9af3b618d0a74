/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether a short read has emptied a Unix socket. A read also ends at a passed descriptor,
 * and then no edge reports the data behind it.
 *
 * recvmsg(2) reports this for one read, at 10 % of its cost. If a turn reads from several sockets
 * it is cheaper to use recv(2), which does not, and to poll all of them at once before the loop
 * waits. If the kernel already has completions, the loop has another turn first, and the check may
 * be deferred: most of the new data will be reported by those completions, and would be read twice.
 * It is not deferred for long, because the loop may never sleep. The next turn does not wait: the
 * completions may turn out to be for data that was read meanwhile.
 */
#include <poll.h>

#include "loop/uring.h"
#include "os/system.h"

#define COMPLETIONS_MIN 4  /* completions in a turn; with fewer, recvmsg is cheaper */
#define DEFER_TURNS_MAX 32 /* for which the check may be deferred */

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

/* If the poll fails, there may be data in each. */
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
