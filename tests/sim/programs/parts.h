/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that simulated programs share. */
#ifndef SIM_PARTS_H
#define SIM_PARTS_H

#include <weir/sim.h>
#include <weir/weir.h>

/*
 * Serves until SIGTERM, then drains: the main function of most server processes. `threads` workers
 * and one boss.
 */
int sim_serve(const char *address, int threads,
              int (*init_child)(weir_channel *channel, void *user_data), void *user_data);

/* Shuts a group down at once, waits for it and releases it. NULL is ignored. */
void sim_end_group(weir_group *group);

/* Rates that the seed draws: half of the seeds have each kind of fault that the mask allows. */
void sim_draw_rates(uint64_t seed, uint32_t kinds, weir_sim_options *options);

#define SIM_KIND(kind) (UINT32_C(1) << WEIR_SIM_FAULT_##kind)

#endif
