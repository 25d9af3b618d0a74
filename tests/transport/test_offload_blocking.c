/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that are found to block at random moments, on connections that close, move and change
 * meanwhile: nothing is lost, doubled or out of order.
 */
#include "support/loop/host.h"
#include "support/transport/offload_stress.h"

#include "os/random.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/transport/loops.h"

#define RUNS 2
#define MESSAGES 2500

static void run(struct host *host, uint64_t seed)
{
    weir_group *aside = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2, .name = "aside"));
    weir_group *loops = make_loops(WEIR_GROUP_OPTIONS(.threads = 2, .io = host->backend->io));
    struct offload_stress_result result;

    offload_stress_run(
        &(struct offload_stress){
            .loops = loops, .aside = aside, .seed = seed, .at_once = 6, .messages = MESSAGES},
        &result);
    if (result.wrong != NULL)
        fail_msg("%s (seed %llu)", result.wrong, (unsigned long long)seed);
    assert_true(result.moved > 0);
    assert_true(result.added > 0);
    end_group(loops);
    end_group(aside);
    offload_stress_check_end(&result);
    if (result.wrong != NULL)
        fail_msg("%s (seed %llu)", result.wrong, (unsigned long long)seed);
}

TEST_EACH_LOOP(offload_blocking, keeps_the_order_while_channels_close_and_move)
{
    log_capture_start(); /* moves, and changes of pipelines that fail */
    for (uint64_t i = 0; i < RUNS; i++)
        run(host, weir__random_process_seed() + i);
}
