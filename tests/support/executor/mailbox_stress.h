/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stress test of mailboxes: four threads post mails to several owners, set and toggle flags and
 * hold mailboxes, while the owners move from executor to executor, and executors are suspended and
 * shut down. Each mail must run exactly once, in the order of its producer and of the flags between
 * them; no two runs of an owner may overlap; a run sees what was written before the mail was
 * posted, and what the run before it wrote: TSan reports it if not. The last reference to an owner
 * may be released by any thread. tests/executor runs small ones, tests/soak large ones.
 */
#ifndef WEIR_TEST_MAILBOX_STRESS_H
#define WEIR_TEST_MAILBOX_STRESS_H

#include <stdatomic.h>
#include <stdint.h>

struct mailbox_stress {
    uint64_t seed;
    uint32_t steps; /* of all producers */

    /* Results. */
    _Atomic uint32_t mails;
    _Atomic uint32_t flags;
    _Atomic uint32_t failed; /* of both: those that ran with an error */
    _Atomic uint32_t moves;
    _Atomic uint32_t holds;
};

/* Returns the first error, or NULL. Only one may run at a time. */
const char *mailbox_stress_run(struct mailbox_stress *stress);

#endif
