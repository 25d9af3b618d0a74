/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bit of everything that a backend does, for tests in which something goes wrong meanwhile. Four
 * parts that know nothing of each other:
 *
 *      echo        clients connect by TCP and by Unix sockets; what they send comes back
 *      datagrams   go from left to right and back
 *      file        a range of a file is sent to the other end of a socket pair
 *      poll        a pipe is written when it is writable, and read when it is readable
 *
 * A part ends complete, every byte as it was, or with the first error that one of its handles was
 * told. Either way it closes its handles, and the workload is over when each has been told that it
 * is detached. A part that does neither is a fault of the library.
 */
#ifndef WEIR_TEST_WORKLOAD_H
#define WEIR_TEST_WORKLOAD_H

#include "loop/io.h"

enum workload_part {
    WORKLOAD_ECHO,
    WORKLOAD_DATAGRAMS,
    WORKLOAD_FILE,
    WORKLOAD_POLL,
    WORKLOAD_PARTS,
};

struct workload;

/* The test's thread. */
struct workload *workload_open(void);

/* The loop's thread. `over` is called there at the end, not from inside. */
void workload_start(struct workload *workload, weir__io *io, void (*over)(void *arg), void *arg);

/* When it is over: the first error of all its parts, 0 = they are complete. */
int workload_error(const struct workload *workload);

/* When it is over: what the library did wrong by itself, NULL = nothing. */
const char *workload_fault(const struct workload *workload);

/* Any thread: where it stands, for the report of a workload that does not end. */
void workload_describe(const struct workload *workload, char *text, size_t size);

void workload_close(struct workload *workload);

#endif
