/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_sim_run: the beginning and the end of a world.
 */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/executor.h>
#include <weir/log.h>
#include <weir/pool.h>

#include "base/options.h"
#include "sim/isolated.h"
#include "sim/network.h"

#define PREEMPT_RATE 0.05

weir_sim *weir__sim;

/* A run that failed leaves threads behind that will never continue. */
static bool is_spoiled;

/* ---- options ---- */

static void set_default(int64_t *value, int64_t standard)
{
    if (*value == 0)
        *value = standard;
}

static int read_options(weir_sim_options *options, const weir_sim_options *given)
{
    weir_sim_network *network = &options->network;

    memset(options, 0, sizeof(*options));
    if (given != NULL)
        memcpy(options, given, given->size < sizeof(*options) ? given->size : sizeof(*options));
    for (unsigned i = 0; i < WEIR_SIM_FAULT_COUNT; i++)
        if (!(options->rates[i] <= 1000))
            return -EINVAL;
    if (options->rates[WEIR_SIM_FAULT_PREEMPT] == 0)
        options->rates[WEIR_SIM_FAULT_PREEMPT] = PREEMPT_RATE;
    set_default(&options->max_slow_ns, weir_ms(50));
    set_default(&options->max_outage_ns, weir_seconds(5));
    set_default(&options->max_time_ns, weir_seconds(86400));
    set_default(&network->latency_ns, weir_us(100));
    set_default(&network->jitter_ns, weir_us(400));
    set_default(&network->bandwidth, 125000000);
    if (network->socket_buffer == 0)
        network->socket_buffer = (size_t)64 * 1024;
    if (network->max_segment == 0)
        network->max_segment = (size_t)16 * 1024;
    if (network->max_datagram == 0)
        network->max_datagram = 65507;
    if (network->backlog == 0)
        network->backlog = 4096;
    if (network->ports == 0)
        network->ports = 28232;
    if (options->max_steps == 0)
        options->max_steps = 50000000;
    if (options->max_descriptors == 0)
        options->max_descriptors = 4096;
    if (options->trace_length == 0)
        options->trace_length = 200;
    return 0;
}

/* False if the caller's options are older than that member. */
static bool is_isolated(const weir_sim_options *options)
{
    return options != NULL && options->size > offsetof(weir_sim_options, isolated) &&
           options->isolated;
}

/* ---- checks ---- */

struct check {
    weir__list link;
    weir_sim_check_fn *fn;
    void *arg;
};

int weir_sim_check(weir_sim *sim, weir_sim_check_fn *fn, void *arg)
{
    struct check *check = calloc(1, sizeof(*check));

    if (check == NULL)
        return -ENOMEM;
    check->fn = fn;
    check->arg = arg;
    weir__list_append(&sim->checks, &check->link);
    return 0;
}

void weir__sim_run_checks(bool at_end)
{
    weir_list_foreach (link, &weir__sim->checks) {
        struct check *check = WEIR_CONTAINER_OF(link, struct check, link);

        check->fn(weir__sim, at_end, check->arg);
    }
}

static void check_descriptors(weir_sim *sim)
{
    for (size_t i = 0; i < sim->descriptor_size; i++)
        if (sim->descriptors[i] != NULL)
            weir_sim_fail(sim, "process %s has left a descriptor open (%s)",
                          sim->descriptors[i]->process->name,
                          sim->descriptors[i]->file->type->name);
}

static uint64_t pool_bytes_in_use(void)
{
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    return stats.in_use_bytes + stats.in_transit_bytes;
}

static void check_end(weir_sim *sim)
{
    const char *name;

    if (sim->failure != NULL)
        return;
    sim->seams->reap_global();
    name = weir__sim_free_ended();
    if (name != NULL)
        weir_sim_fail(sim, "nobody has joined the thread %s", name);
    check_descriptors(sim);
    if (sim->live_blocks > 0)
        weir_sim_fail(sim, "%lld blocks of memory are left", (long long)sim->live_blocks);
    if (pool_bytes_in_use() > sim->pool_bytes)
        weir_sim_fail(sim, "%llu bytes of buffers are left",
                      (unsigned long long)(pool_bytes_in_use() - sim->pool_bytes));
    weir__sim_run_checks(true);
}

/* ---- the log ---- */

static void on_log(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    (void)user_data;
    (void)level;
    (void)subsystem;
    (void)object;
    if (weir__sim != NULL && weir__sim->current != NULL)
        weir__sim_trace_text("log", message);
}

/* ---- the world ---- */

static void init_lists(weir_sim *sim)
{
    weir__list *lists[] = {&sim->fibers,          &sim->futexes, &sim->joiners,   &sim->ended,
                           &sim->process_joiners, &sim->hosts,   &sim->processes, &sim->links,
                           &sim->outages,         &sim->checks};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        weir__list_init(lists[i]);
    weir__list_init(&sim->root.wait_link);
}

static void program_main(void *arg)
{
    weir_sim *sim = arg;
    int err;

    sim->fails_allocations = true;
    err = sim->program(sim, sim->program_arg);
    weir_sim_calm(sim, true);
    if (err < 0)
        weir_sim_fail(sim, "the program failed: %s", weir_error_text(err));
    weir__sim_processes_join();
    sim->seams->end();
}

static int begin(weir_sim *sim)
{
    weir__sim_fiber *fiber;
    int err = 0;

    sim->seams = weir__seams_get();
    sim->seams->begin();
    init_lists(sim);
    weir__sim_tcp_begin();
    weir__sim_udp_begin();
    weir__sim_unix_begin();
    sim->hash = sim->options.seed;
    sim->now_ns = weir_seconds(1); /* 0 is special in places */
    sim->seams->random_init(&sim->random, sim->options.seed);
    sim->trace = calloc(sim->options.trace_length, sizeof(*sim->trace));
    sim->world_host = weir__sim_host_add("world");
    if (sim->trace == NULL || sim->world_host == NULL)
        return -ENOMEM;
    sim->world_process = weir__sim_process_create(sim->world_host, "world");
    if (sim->world_process == NULL)
        return -ENOMEM;
    sim->root.process = sim->world_process;
    err = weir__sim_faults_init();
    if (err == 0)
        err = weir__sim_fibers_begin();
    if (err < 0)
        return err;
    sim->current = &sim->root;
    fiber = weir__sim_fiber_start(sim->world_process, "program", program_main, sim);
    if (fiber == NULL)
        return -ENOMEM;
    fiber->detached = true;
    weir__sim_faults_begin();
    return weir__sim_memory_begin();
}

static void install(weir_sim *sim)
{
    weir__sim_system_install();
    *sim->seams->virtual_os = &weir__sim_virtual_os;
    *sim->seams->backend = weir__sim_backend;
#ifdef WEIR_WITH_URING
    if (sim->options.uring)
        weir__sim_uring_begin();
#endif
}

static void uninstall(weir_sim *sim)
{
#ifdef WEIR_WITH_URING
    if (sim->options.uring)
        weir__sim_uring_end();
#endif
    *sim->seams->virtual_os = NULL;
    *sim->seams->backend = NULL;
    *sim->seams->system = sim->real;
    weir__sim_memory_end();
}

static void free_world(weir_sim *sim)
{
    weir__list *link;

    while ((link = weir__list_pop(&sim->checks)) != NULL)
        free(WEIR_CONTAINER_OF(link, struct check, link));
    weir__sim_faults_end();
    weir__sim_tcp_end();
    weir__sim_udp_end();
    weir_list_foreach (item, &sim->processes)
        weir__sim_process_free(WEIR_CONTAINER_OF(item, weir_sim_process, link));
    while ((link = weir__list_pop(&sim->links)) != NULL)
        free(WEIR_CONTAINER_OF(link, weir__sim_link, link));
    weir_list_foreach (item, &sim->hosts)
        weir__sim_host_free(WEIR_CONTAINER_OF(item, weir_sim_host, link));
    weir__sim_fibers_end();
    free(sim->descriptors);
    free(sim->events);
    free(sim->runnable);
    free(sim->trace);
    free(sim->faults);
    free(sim->only_faults);
    free(sim->failure);
    free(sim->failure_trace);
}

static void take_result(weir_sim *sim, weir_sim_result *ret_result)
{
    *ret_result = (weir_sim_result){
        .hash = sim->hash,
        .events = sim->event_total,
        .steps = sim->steps,
        .time_ns = sim->now_ns - weir_seconds(1),
        .failure = sim->failure,
        .trace = sim->failure_trace,
        .faults = sim->faults,
        .fault_count = sim->fault_count,
    };
    sim->failure = NULL;
    sim->failure_trace = NULL;
    sim->faults = NULL;
}

int weir_sim_run(const weir_sim_options *options, weir_sim_program_fn *program, void *arg,
                 weir_sim_result *ret_result)
{
    static weir_sim world; /* one at a time */
    int err;

    if (program == NULL || ret_result == NULL)
        return -EINVAL;
    if (weir_executor_current() != NULL)
        return -EDEADLK;
    if (weir__sim != NULL || is_spoiled)
        return -EBUSY;
    if (is_isolated(options))
        return weir__sim_run_isolated(options, program, arg, ret_result);
    memset(&world, 0, sizeof(world));
    err = read_options(&world.options, options);
    if (err == 0 && world.options.uring && weir__seams_get()->uring == NULL)
        err = -ENOTSUP;
    if (err < 0)
        return err;
    world.program = program;
    world.program_arg = arg;
    weir__sim = &world;
    err = begin(&world);
    if (err == 0)
        err = weir_log_add_listener(on_log, NULL);
    if (err == 0) {
        world.pool_bytes = pool_bytes_in_use();
        install(&world);
        weir__sim_run_all();
        world.current = &world.root;
        check_end(&world);
        uninstall(&world);
        (void)weir_log_remove_listener(on_log, NULL);
        take_result(&world, ret_result);
        if (ret_result->failure != NULL) {
            is_spoiled = true;
            err = WEIR_ESIM;
        }
    }
    free_world(&world);
    weir__sim = NULL;
    return err;
}

void weir_sim_result_free(weir_sim_result *result)
{
    free(result->failure);
    free(result->trace);
    free(result->faults);
    *result = (weir_sim_result){0};
}

weir_sim *weir_sim_current(void)
{
    return weir__sim;
}

int64_t weir_sim_now(weir_sim *sim)
{
    return sim->now_ns - weir_seconds(1);
}

void weir_sim_sleep(int64_t duration_ns)
{
    weir__sim_virtual_os.thread_sleep(duration_ns);
}

uint64_t weir_sim_random(weir_sim *sim, uint64_t limit)
{
    return sim->seams->random_below(&sim->random, limit);
}
