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

#define RUNS 2      /* at least, */
#define RUNS_MAX 20 /* and until each kind of change has happened */
#define MESSAGES 2500

/* Adds to the counts. */
static void run(struct host *host, uint64_t seed, uint64_t *moved, uint64_t *added)
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
    *moved += result.moved;
    *added += result.added;
    end_group(loops);
    end_group(aside);
    offload_stress_check_end(&result);
    if (result.wrong != NULL)
        fail_msg("%s (seed %llu)", result.wrong, (unsigned long long)seed);
}

TEST_EACH_LOOP(offload_blocking, keeps_the_order_while_channels_close_and_move)
{
    uint64_t moved = 0, added = 0;

    log_capture_start(); /* moves, and changes of pipelines that fail */
    for (uint64_t i = 0; i < RUNS || (i < RUNS_MAX && (moved == 0 || added == 0)); i++)
        run(host, weir__random_process_seed() + i, &moved, &added);
    assert_true(moved > 0);
    assert_true(added > 0);
}
