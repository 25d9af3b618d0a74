/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that simulated programs share. */
#ifndef SIM_PARTS_H
#define SIM_PARTS_H

#include <weir/sim.h>
#include <weir/weir.h>

/* In half of the worlds servers have a boss; in the others every worker accepts. */
bool sim_has_boss(void);

/*
 * Serves until SIGTERM, then drains: the main function of most server processes. `threads` workers.
 */
int sim_serve(const char *address, int threads,
              int (*init_child)(weir_channel *channel, void *user_data), void *user_data);

/* Shuts a group down at once, waits for it and releases it. NULL is ignored. */
void sim_end_group(weir_group *group);

/* Rates that the seed draws: half of the seeds have each kind of fault that the mask allows. */
void sim_draw_rates(uint64_t seed, uint32_t kinds, weir_sim_options *options);

/*
 * Like sim_serve, but starts again when an injected fault (no memory, no descriptor) has made it
 * fail. Succeeds if the process was killed.
 */
int sim_serve_stubbornly(const char *address, int threads,
                         int (*init_child)(weir_channel *channel, void *user_data), void *user_data,
                         const weir_channel_options *child_options);

/* Waits until a process of the host listens, or the process has ended. */
void sim_await_listener(weir_sim_host *host, weir_sim_process *process);

/* Sends SIGTERM until the process has ended. Returns its result. */
int sim_stop(weir_sim_process *process);

/* The number of faults of these kinds that have happened in this world. */
unsigned sim_faults(uint32_t kinds);

/* Faults after which an operation of a process may fail that would succeed otherwise. */
#define SIM_SCARCITY (SIM_KIND(ALLOC) | SIM_KIND(DESCRIPTORS) | SIM_KIND(NO_BUFFERS))

/* Returns 0 instead of an error that scarcity or the death of the process explains. */
int sim_excuse(int err);

/* Byte `position` of stream `stream`. */
static inline uint8_t sim_byte(uint64_t stream, uint64_t position)
{
    return (uint8_t)((position + stream * 31) * 131 + (position >> 8) + stream);
}

/* Writes the next `length` bytes of a stream, without a flush. Fails with -ENOMEM. */
int sim_write_bytes(weir_ctx *ctx, uint64_t stream, uint64_t position, size_t length);

/* Fails the run unless these are the next bytes of the stream. Returns their number. */
size_t sim_check_bytes(weir_msg *msg, uint64_t stream, uint64_t position, const char *reader);

/*
 * Adds a handler that checks what is true of every stream (tests/sim/programs/watch.c), and the
 * same with a handler of the program behind it. For channels over TCP; the first of both ends.
 */
int sim_watch(weir_pipeline *pipeline);
int sim_add(weir_channel *channel, const weir_handler *handler);

/* The first as an init function of servers and clients. */
int sim_init_watch(weir_channel *channel, void *user_data);

/* Before each world. */
void sim_watch_reset(void);

/* A number below `limit`; a delay of at most `max_ns`; true once in `limit` times. */
#define sim_below(limit) ((unsigned)weir_sim_random(weir_sim_current(), (limit)))
#define sim_delay(max_ns) ((int64_t)weir_sim_random(weir_sim_current(), (uint64_t)(max_ns)))
#define sim_once_in(limit) (sim_below(limit) == 0)

#define SIM_KIND(kind) (UINT32_C(1) << WEIR_SIM_FAULT_##kind)

/* All kinds that concern programs with TCP connections to addresses. */
#define SIM_TCP_KINDS                                                                         \
    (SIM_KIND(ALLOC) | SIM_KIND(DESCRIPTORS) | SIM_KIND(NO_BUFFERS) | SIM_KIND(INTERRUPTED) | \
     SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) | SIM_KIND(PREEMPT) |      \
     SIM_KIND(RESET) | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP) | SIM_KIND(DEATH) |          \
     SIM_KIND(CLOCK_STEP))

/* Creates the hosts "host1", "host2", ... with the addresses 10.0.0.1, 10.0.0.2, ... */
int sim_create_hosts(weir_sim *sim, weir_sim_host **ret_hosts, unsigned count);

#endif
