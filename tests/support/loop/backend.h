/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends that every test of the suite runs on.
 */
#ifndef WEIR_TEST_BACKEND_H
#define WEIR_TEST_BACKEND_H

#include <weir/group.h>

#include "loop/io.h"

enum backend_id {
    BACKEND_EPOLL,
    BACKEND_URING,      /* poll-first */
    BACKEND_URING_RING, /* receives by a buffer ring */
    BACKEND_POLL,
    BACKEND_COUNT, /* of event loops */

    BACKEND_BLOCKING = BACKEND_COUNT, /* a thread per channel, which polls */
    BACKEND_KINDS,
};

struct backend {
    const char *name;
    const weir__io_type *type; /* NULL = not built */
    enum weir_io io;           /* a group's option for it */
    bool ring_receive;
};

extern const struct backend backends[BACKEND_KINDS];

/* As weir__io_create: an error leaves a sentence in `reason`, also if the backend is not built. */
int backend_create(const struct backend *backend, weir__io **ret_io, char *reason, size_t size);

#endif
