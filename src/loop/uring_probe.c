/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proves that rings work before a loop depends on one.
 *
 * A sandbox may allow io_uring_setup and forbid io_uring_register or io_uring_enter. A loop would
 * notice on its own thread, when it is too late to select another backend. The loop's own ring
 * cannot be tried earlier, because only the thread that enables a ring may submit to it. So the
 * thread that creates the loop sets up a small ring with the same flags, passes one operation
 * through it, and closes it.
 */
#include <errno.h>
#include <string.h>

#include <weir/base.h>

#include "loop/uring.h"
#include "os/clock.h"

#define ROUND_TRIP_NS weir_ms(50)

/* A NOP completes with its submission, unless the kernel has no memory for it now. */
static int make_round_trip(weir__uring *self)
{
    int64_t give_up_ns = weir__monotonic_now() + ROUND_TRIP_NS;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
    int err = sqe != NULL ? 0 : -EBUSY;

    if (err < 0)
        return err;
    io_uring_prep_nop(sqe);
    sqe->user_data = WEIR__URING_CANCEL; /* no handle */
    do {
        err = weir__uring_enter(self, give_up_ns);
    } while (err == 0 && io_uring_cq_ready(&self->ring) == 0 && weir__monotonic_now() < give_up_ns);
    if (err == 0 && io_uring_cq_ready(&self->ring) == 0)
        err = -ETIMEDOUT;
    return err;
}

static int use(weir__uring *self, char *reason, size_t size)
{
    int err = weir__uring_system.enable(&self->ring);

    if (err < 0) {
        weir__uring_explain("io_uring_register", err, reason, size);
        return err;
    }
    err = make_round_trip(self);
    if (err < 0)
        weir__uring_explain("io_uring_enter", err, reason, size);
    return err;
}

int weir__uring_probe(const weir__io_options *options, char *reason, size_t size)
{
    weir__uring probe;
    int err;

    memset(&probe, 0, sizeof(probe));
    probe.io.options = *options;
    err = weir__uring_setup_small(&probe, reason, size);
    if (err < 0)
        return err;
    err = use(&probe, reason, size);
    weir__uring_system.exit(&probe.ring);
    return err;
}
