/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mailboxes with many producers, while their owners move and their executors end.
 */
#include "os/random.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/executor/mailbox_stress.h"
#include "support/test.h"

#define ROUNDS 12
#define STEPS 4000

TEST(mailbox_stress, runs_everything_once_and_in_order)
{
    uint64_t seed = weir__random_process_seed();

    log_capture_start(); /* of executors that end */
    for (int round = 0; round < ROUNDS; round++) {
        struct mailbox_stress stress = {.seed = seed + (uint64_t)round, .steps = STEPS};
        const char *fault = mailbox_stress_run(&stress);

        if (fault != NULL)
            fail_msg("seed %llu: %s", (unsigned long long)stress.seed, fault);
        assert_true(stress.mails > 0 && stress.flags > 0 && stress.moves > 0 && stress.holds > 0);
    }
    global_executor_stop();
}
