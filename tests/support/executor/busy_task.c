/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Round and round.
 */
#include "support/executor/busy_task.h"

void treadmill_task(void *arg, int status)
{
    struct treadmill *treadmill = arg;
    bool stop = atomic_load(&treadmill->stop);
    int err = stop ? 0 : weir_execute(treadmill->executor, treadmill_task, treadmill);

    if (stop || err < 0) {
        treadmill->refusal = err;
        tally_task(&treadmill->stopped, status);
    }
}
