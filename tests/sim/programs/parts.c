/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/programs/parts.h"

int sim_serve(const char *address, int threads,
              int (*init_child)(weir_channel *channel, void *user_data), void *user_data)
{
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "boss", .threads = 1), &boss);

    if (err == 0)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "work", .threads = threads), &workers);
    if (err == 0)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers,
                                                    .address = address, .init_child = init_child,
                                                    .user_data = user_data),
                                &server);
    if (err == 0)
        err = weir_server_run(server);
    if (err < 0 && server != NULL) /* it could not wait for signals, and still listens */
        (void)weir_server_stop(server, 0, weir_seconds(10));
    weir_server_release(server);
    weir_group_release(workers);
    weir_group_release(boss);
    return err;
}

void sim_end_group(weir_group *group)
{
    if (group == NULL)
        return;
    (void)weir_group_shutdown(group, 0, weir_seconds(10));
    (void)weir_group_await_termination(group, weir_seconds(20)); /* others may hold it, too */
    weir_group_release(group);                                   /* joins its threads */
}

/* Rates that are noticed in a short run, and leave most operations alone. */
static const double rates[WEIR_SIM_FAULT_COUNT] = {
    [WEIR_SIM_FAULT_ALLOC] = 0.002,      [WEIR_SIM_FAULT_DESCRIPTORS] = 0.02,
    [WEIR_SIM_FAULT_NO_BUFFERS] = 0.002, [WEIR_SIM_FAULT_INTERRUPTED] = 0.05,
    [WEIR_SIM_FAULT_SHORT_READ] = 0.2,   [WEIR_SIM_FAULT_SHORT_WRITE] = 0.2,
    [WEIR_SIM_FAULT_SLOW] = 0.01,        [WEIR_SIM_FAULT_PREEMPT] = 0.2,
    [WEIR_SIM_FAULT_RESET] = 5,          [WEIR_SIM_FAULT_PARTITION] = 2,
    [WEIR_SIM_FAULT_HOST_STOP] = 2,      [WEIR_SIM_FAULT_DEATH] = 2,
    [WEIR_SIM_FAULT_CLOCK_STEP] = 2,     [WEIR_SIM_FAULT_LOSS] = 0.1,
    [WEIR_SIM_FAULT_DUPLICATE] = 0.05,   [WEIR_SIM_FAULT_REORDER] = 0.1,
    [WEIR_SIM_FAULT_LOOKUP] = 0.05,
};

void sim_draw_rates(uint64_t seed, uint32_t kinds, weir_sim_options *options)
{
    uint64_t bits = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);

    bits ^= bits >> 29;
    bits *= UINT64_C(0xbf58476d1ce4e5b9);
    bits ^= bits >> 32;
    for (unsigned kind = 0; kind < WEIR_SIM_FAULT_COUNT; kind++)
        if ((kinds >> kind & 1) != 0 && (bits >> kind & 1) != 0)
            options->rates[kind] = rates[kind];
}
