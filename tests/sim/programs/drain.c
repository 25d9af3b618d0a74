/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server is stopped by SIGTERM under load: every request that it has read is answered, none
 * twice, and it ends within its deadline. Its clients ask a second server for the rest.
 */
#include <signal.h>
#include <string.h>

#include "sim/programs/load.h"
#include "sim/programs/program.h"

#define DRAIN_NS weir_seconds(10)
#define GRACE_NS weir_seconds(2) /* of threads that are late */

enum model {
    BOSS_AND_WORKERS,
    ONE_GROUP,
    MANY_ACCEPTORS,
    OWN_LOOP,
    MODELS,
};

struct drain {
    struct load load;
    struct load_server servers[2];
    enum model model;
    unsigned threads;
    bool aborts; /* a second signal follows */
};

static struct drain world;

/* ---- the servers ---- */

static int serve(struct drain *drain, weir_server_options *options)
{
    weir_server *server = NULL;
    int err;

    (void)drain;
    do {
        err = weir_server_start(options, &server);
    } while (load_retries(err));
    if (err == 0)
        err = weir_server_run(server);
    weir_server_release(server);
    return err;
}

static int serve_on_groups(struct drain *drain, weir_server_options *options)
{
    int err = load_group("work", (int)drain->threads, &options->workers);

    if (err == 0 && drain->model == BOSS_AND_WORKERS)
        err = load_group("boss", 1, &options->boss);
    if (drain->model == MANY_ACCEPTORS)
        options->acceptors = (int)drain->threads;
    if (err == 0)
        err = serve(drain, options);
    weir_group_release(options->workers);
    weir_group_release(options->boss);
    return err;
}

static int serve_on_loop(struct drain *drain, weir_server_options *options)
{
    int err;

    do {
        err = weir_loop_create(NULL, &options->loop);
    } while (load_retries(err));
    if (err == 0)
        err = serve(drain, options);
    weir_executor_release(options->loop);
    return err;
}

static int server_main(void *arg)
{
    struct load_server *self = arg;
    struct drain *drain = &world;
    weir_server_options options =
        *WEIR_SERVER_OPTIONS(.address = "0.0.0.0:8007", .init_child = load_init_child,
                             .user_data = self, .drain_timeout_ns = DRAIN_NS,
                             .child_options =
                                 WEIR_CHANNEL_OPTIONS(.drain_waits =
                                                          drain->load.drain == LOAD_WAITS));
    weir_group **offload = &drain->load.offload[self->number];
    int err = load_group("offload", 1, offload);

    while (err == 0) {
        options.boss = options.workers = NULL;
        options.loop = NULL;
        err = drain->model == OWN_LOOP ? serve_on_loop(drain, &options)
                                       : serve_on_groups(drain, &options);
        if (!load_retries(err))
            break;
        err = 0; /* a server that cannot be run for lack of memory is stopped */
    }
    sim_end_group(*offload);
    *offload = NULL;
    return err;
}

/* ---- checks ---- */

static bool can_break(const weir_sim_options *options)
{
    return options->rates[WEIR_SIM_FAULT_RESET] > 0 ||
           options->rates[WEIR_SIM_FAULT_PARTITION] > 0 ||
           options->rates[WEIR_SIM_FAULT_HOST_STOP] > 0 ||
           options->rates[WEIR_SIM_FAULT_NO_BUFFERS] > 0 ||
           options->rates[WEIR_SIM_FAULT_ALLOC] > 0 ||
           options->rates[WEIR_SIM_FAULT_DESCRIPTORS] > 0;
}

static weir_sim_options current_options;

/* Nothing is answered twice; and of a connection that nothing has broken, everything that was read
 * was answered. */
static void check(weir_sim *sim, bool at_end, void *arg)
{
    const struct load *load = arg;
    bool breaks = can_break(&current_options) || world.aborts;

    if (!at_end)
        return;
    for (unsigned i = 0; i < load->clients; i++)
        for (unsigned j = 0; j < load->requests; j++) {
            unsigned id = i * LOAD_REQUESTS_MAX + j, received = 0;
            const struct load_request *request = &load->seen[id];

            for (unsigned k = 0; k < 2; k++) {
                received += request->received[k];
                if (request->reads[k] > request->sent[k] ||
                    request->answers[k] > request->reads[k] ||
                    request->received[k] > request->answers[k])
                    weir_sim_fail(sim,
                                  "request %u at server %u: sent %u, read %u, answered %u, "
                                  "received %u times",
                                  id, k, request->sent[k], request->reads[k], request->answers[k],
                                  request->received[k]);
                if (!breaks && request->received[k] != request->reads[k])
                    weir_sim_fail(sim,
                                  "request %u was read by server %u: answered %u, received "
                                  "%u times",
                                  id, k, request->answers[k], request->received[k]);
            }
            if (received != 1)
                weir_sim_fail(sim, "request %u has %u answers", id, received);
        }
    if (!breaks && load->timeouts > 0)
        weir_sim_fail(sim, "%u connections hung", load->timeouts);
}

/* ---- the world ---- */

static void draw(struct drain *drain, weir_sim *sim)
{
    struct load *load = &drain->load;

    memset(drain, 0, sizeof(*drain));
    load->sim = sim;
    load->clients = 3 + (unsigned)weir_sim_random(sim, LOAD_CLIENTS_MAX - 2);
    load->requests = 3 + (unsigned)weir_sim_random(sim, LOAD_REQUESTS_MAX - 2);
    load->window = 1 + (unsigned)weir_sim_random(sim, 6);
    load->per_connection = weir_sim_random(sim, 2) == 0 ? 1 + (unsigned)weir_sim_random(sim, 8) : 0;
    load->max_answer = weir_sim_random(sim, 4) == 0 ? 20000 : 1 + weir_sim_random(sim, 2000);
    load->max_pause_ns = weir_sim_random(sim, 2) == 0 ? weir_ms(5) : 0;
    load->timeout_ns = weir_seconds(30);
    load->drain = (enum load_drain)weir_sim_random(sim, 3);
    load->max_work_ns = load->drain != LOAD_CLOSES && weir_sim_random(sim, 4) > 0 ? weir_ms(20) : 0;
    load->addresses[0] = "10.0.0.1:8007";
    load->addresses[1] = "10.0.0.2:8007";
    drain->model = (enum model)weir_sim_random(sim, MODELS);
    drain->threads = 1 + (unsigned)weir_sim_random(sim, 3);
    drain->aborts = weir_sim_random(sim, 8) == 0;
    for (unsigned i = 0; i < 2; i++)
        drain->servers[i] = (struct load_server){.load = load, .number = i};
}

static int64_t deadline_ns(const struct drain *drain)
{
    const double *rates = current_options.rates;

    if (rates[WEIR_SIM_FAULT_HOST_STOP] > 0)
        return DRAIN_NS + GRACE_NS + 5 * current_options.max_outage_ns;
    return (drain->aborts ? weir_seconds(1) : DRAIN_NS) + GRACE_NS;
}

static int stop_first(weir_sim *sim, struct drain *drain, weir_sim_process *server)
{
    int64_t begin_ns, duration_ns;
    int err;

    weir_sim_sleep((int64_t)weir_sim_random(sim, weir_ms(30)));
    begin_ns = weir_sim_now(sim);
    weir_sim_signal(server, SIGTERM);
    if (drain->aborts) {
        weir_sim_sleep((int64_t)weir_sim_random(sim, weir_ms(20)));
        begin_ns = weir_sim_now(sim);
        weir_sim_signal(server, SIGTERM);
    }
    err = weir_sim_join(server);
    duration_ns = weir_sim_now(sim) - begin_ns;
    if (duration_ns > deadline_ns(drain))
        weir_sim_fail(sim, "the server took %lld ms to end", (long long)(duration_ns / 1000000));
    return err;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *hosts[3];
    weir_sim_process *processes[3];
    struct drain *drain = &world;
    int err = weir_sim_host_create(sim, "first", "10.0.0.1", &hosts[0]);

    (void)arg;
    draw(drain, sim);
    if (err == 0)
        err = weir_sim_host_create(sim, "second", "10.0.0.2", &hosts[1]);
    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.3", &hosts[2]);
    for (unsigned i = 0; i < 2 && err == 0; i++)
        err = weir_sim_start(hosts[i], "server", server_main, &drain->servers[i], &processes[i]);
    weir_sim_sleep(weir_ms(2));
    if (err == 0)
        err = weir_sim_start(hosts[2], "client", load_clients_main, &drain->load, &processes[2]);
    if (err == 0)
        err = weir_sim_check(sim, check, &drain->load);
    if (err == 0)
        err = stop_first(sim, drain, processes[0]);
    if (err == 0)
        err = weir_sim_join(processes[2]);
    weir_sim_signal(processes[1], SIGTERM);
    return err < 0 ? err : weir_sim_join(processes[1]);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    uint32_t kinds = SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                     SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED);

    /* Half of the worlds have faults that break connections. */
    if (seed % 2 == 0)
        kinds |= SIM_KIND(RESET) | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP) |
                 SIM_KIND(CLOCK_STEP) | SIM_KIND(NO_BUFFERS) | SIM_KIND(ALLOC) |
                 SIM_KIND(DESCRIPTORS);
    sim_draw_rates(seed / 2, kinds, options);
    options->max_outage_ns = weir_ms(500);
    options->max_time_ns = weir_seconds(1000);
    if (seed % 8 < 2)
        options->network.socket_buffer = 4096;
    current_options = *options;
}

SIM_PROGRAM(drain, "a server that drains under load", configure, run)
