/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak offload [MESSAGES] [SEED]: handlers are found to block at random moments, on
 * connections that close, move and change meanwhile (tests/support/transport/offload_stress.h),
 * until this many messages (default 2,000,000) have come back, on each backend in turn.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "os/clock.h"
#include "os/random.h"
#include "support/transport/offload_stress.h"

#define MESSAGES 2000000
#define PER_RUN 50000

static weir_group *create(const weir_group_options *options)
{
    weir_group *group = NULL;

    return weir_group_create(options, &group) == 0 ? group : NULL;
}

static void end(weir_group *group)
{
    (void)weir_group_shutdown(group, 0, weir_seconds(10));
    (void)weir_group_await_termination(group, weir_seconds(20));
    weir_group_release(group);
}

/* Returns false if something is wrong. */
static bool run(enum weir_io io, uint64_t seed, struct offload_stress_result *total)
{
    weir_group *aside = create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 3));
    weir_group *loops = create(WEIR_GROUP_OPTIONS(.io = io, .threads = 3));
    struct offload_stress_result result;

    if (aside == NULL || loops == NULL)
        abort();
    offload_stress_run(
        &(struct offload_stress){
            .loops = loops, .aside = aside, .seed = seed, .at_once = 16, .messages = PER_RUN},
        &result);
    end(loops);
    end(aside);
    offload_stress_check_end(&result);
    total->connections += result.connections;
    total->aborted += result.aborted;
    total->messages += result.messages;
    total->moved += result.moved;
    total->added += result.added;
    total->loop_changes += result.loop_changes;
    if (result.wrong != NULL)
        (void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, result.wrong);
    return result.wrong == NULL;
}

int main(int argc, char **argv)
{
    static const enum weir_io kinds[] = {WEIR_IO_EPOLL, WEIR_IO_URING, WEIR_IO_POLL};
    uint64_t messages = argc > 1 ? strtoull(argv[1], NULL, 10) : MESSAGES;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : weir__random_process_seed();
    struct offload_stress_result total = {0};
    int64_t begin_ns = weir__monotonic_now();

    weir_log_set_level(WEIR_LOG_OFF); /* moves, and changes of pipelines that fail */
    for (unsigned i = 0; total.messages < messages; i++)
        if (!run(kinds[i % 3], seed + i, &total))
            return 1;
    printf("%" PRIu64 " messages on %" PRIu64 " connections in %.0f s: %" PRIu64 " cut, %" PRIu64
           " changes of the loop, %" PRIu64 " contexts moved, %" PRIu64 " added on the group\n",
           total.messages, total.connections, (double)(weir__monotonic_now() - begin_ns) / 1e9,
           total.aborted, total.loop_changes, total.moved, total.added);
    return 0;
}
