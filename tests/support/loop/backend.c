/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of backends.
 */
#include "support/loop/backend.h"

#include <errno.h>
#include <stdio.h>

#ifdef WEIR_WITH_URING
#include "loop/uring.h"
#define URING &weir__io_uring

/* Tests have few events, and use the ring all the same. */
__attribute__((constructor)) static void use_the_ring(void)
{
    weir__uring_lend_min = 0;
    weir__uring_fresh_reads = 0;
}
#else
#define URING NULL
#endif

const struct backend backends[BACKEND_KINDS] = {
    [BACKEND_EPOLL] = {.name = BACKEND_NAME_EPOLL, .type = &weir__io_epoll, .io = WEIR_IO_EPOLL},
    [BACKEND_URING] = {.name = BACKEND_NAME_URING, .type = URING, .io = WEIR_IO_URING},
    [BACKEND_POLL] = {.name = BACKEND_NAME_POLL, .type = &weir__io_poll, .io = WEIR_IO_POLL},
    [BACKEND_BLOCKING] = {.name = BACKEND_NAME_BLOCKING,
                          .type = &weir__io_poll,
                          .io = WEIR_IO_BLOCKING},
};

int backend_create(const struct backend *backend, weir__io **ret_io, char *reason, size_t size)
{
    const weir__io_options options = {.name = backend->name};

    if (backend->type == NULL) {
        (void)snprintf(reason, size, "built without io_uring (liburing is missing)");
        return -ENOTSUP;
    }
    return weir__io_create(backend->type, &options, ret_io, reason, size);
}
