/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bit of everything that a backend does, for tests in which something fails meanwhile. Four
 * independent parts:
 *
 *      echo        clients connect by TCP and by Unix sockets; the data is sent back
 *      datagrams   are sent in both directions
 *      file        a range of a file is sent to the other end of a socket pair
 *      poll        a pipe is written when writable, and read when readable
 *
 * A part ends complete, with every byte correct, or with the first error of one of its handles.
 * Either way it closes its handles, and the workload ends when all are detached. Anything else is a
 * bug of the library.
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

/* The loop's thread. `over` is called there at the end, not from inside this call. */
void workload_start(struct workload *workload, weir__io *io, void (*over)(void *arg), void *arg);

/* After the end: the first error of all parts; 0 = complete. */
int workload_error(const struct workload *workload);

/* After the end: a bug of the library, or NULL. */
const char *workload_fault(const struct workload *workload);

/* Any thread: describes the progress, for the report of a workload that does not end. */
void workload_describe(const struct workload *workload, char *text, size_t size);

void workload_close(struct workload *workload);

#endif
