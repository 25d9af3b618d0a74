/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions about faults.
 *
 * The n-th decision about a kind depends on the seed, the kind and n alone, not on what was decided
 * about others. So a run can be repeated with some of its faults left out (weir_sim_reduce), and
 * the others still happen at the same decisions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/network.h"
#include "sim/world.h"

#define TICK_NS weir_ms(10) /* between decisions about faults per second */

static const char *const names[WEIR_SIM_FAULT_COUNT] = {
    [WEIR_SIM_FAULT_ALLOC] = "alloc",
    [WEIR_SIM_FAULT_DESCRIPTORS] = "descriptors",
    [WEIR_SIM_FAULT_NO_BUFFERS] = "no-buffers",
    [WEIR_SIM_FAULT_INTERRUPTED] = "interrupted",
    [WEIR_SIM_FAULT_SHORT_READ] = "short-read",
    [WEIR_SIM_FAULT_SHORT_WRITE] = "short-write",
    [WEIR_SIM_FAULT_SLOW] = "slow",
    [WEIR_SIM_FAULT_PREEMPT] = "preempt",
    [WEIR_SIM_FAULT_RESET] = "reset",
    [WEIR_SIM_FAULT_PARTITION] = "partition",
    [WEIR_SIM_FAULT_HOST_STOP] = "host-stop",
    [WEIR_SIM_FAULT_DEATH] = "death",
    [WEIR_SIM_FAULT_CLOCK_STEP] = "clock-step",
    [WEIR_SIM_FAULT_LOSS] = "loss",
    [WEIR_SIM_FAULT_DUPLICATE] = "duplicate",
    [WEIR_SIM_FAULT_REORDER] = "reorder",
    [WEIR_SIM_FAULT_LOOKUP] = "lookup",
};

const char *weir_sim_fault_name(enum weir_sim_fault kind)
{
    return (unsigned)kind < WEIR_SIM_FAULT_COUNT ? names[kind] : NULL;
}

uint64_t weir__sim_below(uint64_t limit)
{
    return weir__sim->seams->random_below(&weir__sim->random, limit);
}

int64_t weir__sim_duration(int64_t max_ns)
{
    return max_ns > 0 ? (int64_t)weir__sim_below((uint64_t)max_ns + 1) : 0;
}

/* A uniform number from 0 to 1 for a decision: the finalizer of splitmix64. */
static double draw(enum weir_sim_fault kind, uint64_t number)
{
    uint64_t z = weir__sim->options.seed + (number * WEIR_SIM_FAULT_COUNT + (uint64_t)kind + 1) *
                                               UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

static int compare(const void *left, const void *right)
{
    const weir_sim_fault_event *a = left, *b = right;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

int weir__sim_faults_init(void)
{
    const weir_sim_options *options = &weir__sim->options;
    size_t size = options->only_fault_count * sizeof(*options->only_faults);

    if (options->only_faults == NULL)
        return 0;
    weir__sim->only_faults = malloc(size + 1);
    if (weir__sim->only_faults == NULL)
        return -ENOMEM;
    memcpy(weir__sim->only_faults, options->only_faults, size);
    qsort(weir__sim->only_faults, options->only_fault_count, sizeof(*options->only_faults),
          compare);
    return 0;
}

static bool is_allowed(enum weir_sim_fault kind, uint64_t number)
{
    const weir_sim_fault_event key = {.kind = kind, .number = number};

    return weir__sim->only_faults == NULL ||
           bsearch(&key, weir__sim->only_faults, weir__sim->options.only_fault_count, sizeof(key),
                   compare) != NULL;
}

static void record(enum weir_sim_fault kind, uint64_t number)
{
    weir_sim *sim = weir__sim;

    if (sim->fault_count == sim->fault_size) {
        size_t size = sim->fault_size > 0 ? sim->fault_size * 2 : 64;
        weir_sim_fault_event *faults = realloc(sim->faults, size * sizeof(*faults));

        if (faults == NULL)
            return;
        sim->faults = faults;
        sim->fault_size = size;
    }
    sim->faults[sim->fault_count++] =
        (weir_sim_fault_event){.kind = kind, .number = number, .time_ns = weir_sim_now(sim)};
}

static bool decide(enum weir_sim_fault kind, double rate)
{
    uint64_t number;

    if (rate <= 0 || weir__sim->calm)
        return false;
    number = weir__sim->decisions[kind]++;
    if (draw(kind, number) >= rate || !is_allowed(kind, number))
        return false;
    record(kind, number);
    if (kind != WEIR_SIM_FAULT_PREEMPT)
        weir__sim_trace(names[kind], number, 0);
    return true;
}

bool weir__sim_fault(enum weir_sim_fault kind)
{
    return decide(kind, weir__sim->options.rates[kind]);
}

/* ---- faults that happen by themselves ---- */

/* One of all hosts but that of the world; NULL if there is none. */
static weir_sim_host *draw_host(void)
{
    unsigned count = weir__sim->next_host - 1;
    uint64_t chosen = count > 0 ? weir__sim_below(count) : 0;

    weir_list_foreach (link, &weir__sim->hosts) {
        weir_sim_host *host = WEIR_CONTAINER_OF(link, weir_sim_host, link);

        if (host != weir__sim->world_host && chosen-- == 0)
            return host;
    }
    return NULL;
}

struct outage {
    weir__sim_event end;
    weir_sim_host *a, *b; /* b == NULL: a is stopped */
    weir__list link;
};

static void end_outage(struct outage *outage)
{
    weir__sim_event_remove(&outage->end);
    weir__list_remove(&outage->link);
    if (outage->b != NULL)
        weir_sim_partition(outage->a, outage->b, false);
    else
        weir_sim_host_continue(outage->a);
    free(outage);
}

static void on_outage_end(weir__sim_event *event)
{
    end_outage(WEIR_CONTAINER_OF(event, struct outage, end));
}

static void begin_outage(weir_sim_host *a, weir_sim_host *b)
{
    struct outage *outage = calloc(1, sizeof(*outage));

    if (outage == NULL)
        return;
    outage->a = a;
    outage->b = b;
    weir__list_append(&weir__sim->outages, &outage->link);
    if (b != NULL)
        weir_sim_partition(a, b, true);
    else
        weir_sim_host_stop(a);
    weir__sim_event_add(
        &outage->end, weir__sim->now_ns + 1 + weir__sim_duration(weir__sim->options.max_outage_ns),
        on_outage_end);
}

static bool decide_per_second(enum weir_sim_fault kind)
{
    return decide(kind, weir__sim->options.rates[kind] * (double)TICK_NS / 1e9);
}

static void on_tick(weir__sim_event *event)
{
    weir_sim_host *a, *b;

    if (decide_per_second(WEIR_SIM_FAULT_RESET))
        weir__sim_tcp_reset_one();
    if (decide_per_second(WEIR_SIM_FAULT_PARTITION) && (a = draw_host()) != NULL &&
        (b = draw_host()) != NULL && a != b)
        begin_outage(a, b);
    if (decide_per_second(WEIR_SIM_FAULT_HOST_STOP) && (a = draw_host()) != NULL)
        begin_outage(a, NULL);
    if (decide_per_second(WEIR_SIM_FAULT_DEATH))
        weir__sim_processes_die();
    if (decide_per_second(WEIR_SIM_FAULT_CLOCK_STEP) && (a = draw_host()) != NULL)
        weir_sim_step_clock(a, weir__sim_duration(weir_seconds(172800)) - weir_seconds(86400));
    if (!weir__sim->calm)
        weir__sim_event_add(event, weir__sim->now_ns + TICK_NS, on_tick);
}

/* Only if there is a rate: a world that is idle for an hour costs nothing. */
static bool has_rates_per_second(void)
{
    const double *rates = weir__sim->options.rates;

    return rates[WEIR_SIM_FAULT_RESET] > 0 || rates[WEIR_SIM_FAULT_PARTITION] > 0 ||
           rates[WEIR_SIM_FAULT_HOST_STOP] > 0 || rates[WEIR_SIM_FAULT_DEATH] > 0 ||
           rates[WEIR_SIM_FAULT_CLOCK_STEP] > 0;
}

void weir__sim_faults_begin(void)
{
    if (has_rates_per_second())
        weir__sim_event_add(&weir__sim->fault_tick, weir__sim->now_ns + TICK_NS, on_tick);
}

void weir__sim_faults_end(void)
{
    weir__sim_event_remove(&weir__sim->fault_tick);
    weir_list_foreach (link, &weir__sim->outages)
        end_outage(WEIR_CONTAINER_OF(link, struct outage, link));
}

void weir_sim_calm(weir_sim *sim, bool calm)
{
    if (sim->calm == calm)
        return;
    sim->calm = calm;
    weir__sim_trace("calm", calm, 0);
    if (calm)
        weir__sim_faults_end();
    else
        weir__sim_faults_begin();
}
