/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Since Linux 6.14 the rings of all processes of an ordinary user count as locked memory, 8 MiB by
 * default, those that were closed until the kernel gets to it. Tests that run beside each other
 * wait for it, by asking again: the kernel does not report when there is some.
 */
#ifdef WEIR_WITH_URING

#include <errno.h>

#include "loop/uring.h"
#include "os/thread.h"

#define ATTEMPTS 2000
#define INTERVAL_NS weir_ms(10)

static weir__uring_calls impatient;

static int setup(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
    const struct io_uring_params wanted = *params;
    int err = impatient.setup(entries, ring, params);

    for (int i = 0; i < ATTEMPTS && err == -ENOMEM; i++) {
        weir__thread_sleep(INTERVAL_NS);
        *params = wanted;
        err = impatient.setup(entries, ring, params);
    }
    return err;
}

static int register_buffers(struct io_uring *ring, struct io_uring_buf_reg *buffers, unsigned flags)
{
    int err = impatient.register_buffers(ring, buffers, flags);

    for (int i = 0; i < ATTEMPTS && err == -ENOMEM; i++) {
        weir__thread_sleep(INTERVAL_NS);
        err = impatient.register_buffers(ring, buffers, flags);
    }
    return err;
}

/* Before the constructors that save the functions to restore them, which have no priority. */
__attribute__((constructor(200))) static void wait_for_locked_memory(void)
{
    impatient = weir__uring_system;
    weir__uring_system.setup = setup;
    weir__uring_system.register_buffers = register_buffers;
}

#endif
