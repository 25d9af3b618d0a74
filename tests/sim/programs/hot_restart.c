/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server is replaced by new processes under load, by SIGUSR2. Some successors die or never become
 * ready: then the server continues. No connection is refused, and none is broken but those of a
 * process that was killed. At the end the service is stopped, possibly during a restart: nothing is
 * left.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include <weir/restart.h>

#include "sim/programs/load.h"
#include "sim/programs/program.h"

#define RESTARTS_MAX 3
#define DRAIN_NS weir_seconds(20)
#define READY_TIMEOUT_NS weir_seconds(60) /* of weir_server_restart */

/* What a successor does. */
enum fate {
    SERVES,
    EXITS_AT_ONCE,
    EXITS_WHEN_READY,
    DIES, /* at some time in its probation */
    NEVER_READY,
    OUTLIVES, /* the process that started it dies before it has ended */
    FATES,
};

struct restarts {
    struct load load;
    struct load_server servers[LOAD_SERVERS_MAX];
    enum fate fates[RESTARTS_MAX];
    enum fate fate;   /* of the next successor */
    unsigned started; /* processes */
    unsigned threads;
    bool has_boss;
    int acceptors;
    bool is_local; /* the clients are on the same host; half of them use a Unix socket */
    int64_t probation_ns;
    unsigned killed;
    bool is_ready;    /* the first process */
    bool is_lost;     /* a server has ended for lack of memory */
    bool is_replaced; /* it has left the file of the Unix socket to others */
};

static struct restarts world;
static weir_sim_options current_options;

/* ---- the server ---- */

/* A successor that cannot start exits: the sockets that it was given are closed by then. */
static int serve(struct restarts *self, enum fate fate, weir_server_options *options)
{
    weir_server *server = NULL;
    int err;

    do {
        err = weir_server_start(options, &server);
        if (err < 0 && self->is_ready)
            return 5;
    } while (load_retries(err));
    self->is_ready = true;
    if (err == 0 && fate == EXITS_WHEN_READY) {
        weir_sim_sleep((int64_t)weir_sim_random(self->load.sim, weir_ms(30)));
        err = weir_server_stop(server, 0, DRAIN_NS);
    }
    if (err == 0 && fate != EXITS_WHEN_READY)
        err = weir_server_run(server);
    weir_server_release(server);
    return err == -ENOMEM ? 6 : err; /* and is stopped */
}

static int server_main(void *arg)
{
    static char name[] = "server", *argv[] = {name, NULL};
    static const char *const more[] = {"unix:/run/server.sock", NULL};
    struct restarts *self = arg;
    unsigned number = self->started < LOAD_SERVERS_MAX ? self->started : LOAD_SERVERS_MAX - 1;
    enum fate fate = self->started++ > 0 ? self->fate : SERVES;
    weir_server_options options =
        *WEIR_SERVER_OPTIONS(.address = "0.0.0.0:8007", .addresses = self->is_local ? more : NULL,
                             .acceptors = self->acceptors, .init_child = load_init_child,
                             .user_data = &self->servers[number], .inherit = true,
                             .restart_argv = argv, .restart_probation_ns = self->probation_ns,
                             .drain_timeout_ns = DRAIN_NS);
    weir_group **offload = &self->load.offload[number];
    int err;

    weir_sim_note(self->load.sim, "server %u, fate %d", number, fate);
    if (fate == EXITS_AT_ONCE)
        return 3;
    if (fate == NEVER_READY) {
        weir_sim_sleep(READY_TIMEOUT_NS + weir_seconds(20));
        return 4;
    }
    err = load_group("offload", 1, offload);
    if (err == 0)
        err = load_group("work", (int)self->threads, &options.workers);
    if (err == 0 && self->has_boss)
        err = load_group("boss", 1, &options.boss);
    if (err == 0)
        err = serve(self, fate, &options);
    weir_group_release(options.workers);
    weir_group_release(options.boss);
    sim_end_group(*offload);
    *offload = NULL;
    return err;
}

/* After the end: the process that has bound the Unix socket has removed its file, unless it was
 * replaced. */
static int probe_main(void *arg)
{
    struct restarts *self = arg;
    weir_group *group = NULL;
    weir_channel *channel = NULL;
    int err;

    weir_sim_calm(self->load.sim, true);
    err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "probe", .threads = 1), &group);
    if (err == 0)
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = group, .address = "unix:/run/server.sock"), &channel);
    sim_end_group(group);
    if (!self->is_lost && err != (self->is_replaced ? -ECONNREFUSED : -ENOENT))
        weir_sim_fail(self->load.sim, "the socket %s replaced: %s",
                      self->is_replaced ? "was" : "was not", weir_error_text(err));
    return 0;
}

/* ---- checks ---- */

static bool can_break(void)
{
    const double *rates = current_options.rates;

    return rates[WEIR_SIM_FAULT_RESET] > 0 || rates[WEIR_SIM_FAULT_PARTITION] > 0 ||
           rates[WEIR_SIM_FAULT_HOST_STOP] > 0 || rates[WEIR_SIM_FAULT_NO_BUFFERS] > 0 ||
           rates[WEIR_SIM_FAULT_ALLOC] > 0 || rates[WEIR_SIM_FAULT_DESCRIPTORS] > 0;
}

static void check_request(weir_sim *sim, const struct restarts *self, unsigned id)
{
    const struct load_request *request = &self->load.seen[id];
    unsigned reads = 0, answers = 0, sent = request->sent[0] + request->sent[1];
    unsigned received = request->received[0] + request->received[1];

    for (unsigned i = 0; i < LOAD_SERVERS_MAX; i++) {
        reads += request->reads[i];
        answers += request->answers[i];
    }
    if (received != 1 || answers > reads || reads > sent)
        weir_sim_fail(sim, "request %u: sent %u, read %u, answered %u, received %u times", id, sent,
                      reads, answers, received);
    if (!can_break() && self->killed == 0 && reads != 1)
        weir_sim_fail(sim, "request %u was read %u times", id, reads);
}

static void check(weir_sim *sim, bool at_end, void *arg)
{
    const struct restarts *self = arg;
    const struct load *load = &self->load;

    if (!at_end)
        return;
    for (unsigned i = 0; i < load->clients; i++)
        for (unsigned j = 0; j < load->requests; j++)
            check_request(sim, self, i * LOAD_REQUESTS_MAX + j);
    if (can_break())
        return;
    if (load->refused > 0)
        weir_sim_fail(sim, "%u connections were refused", load->refused);
    if (load->timeouts > 0)
        weir_sim_fail(sim, "%u connections hung", load->timeouts);
    if (load->broken > 0 && self->killed == 0 && load->drain == LOAD_WAITS)
        weir_sim_fail(sim, "%u connections were broken", load->broken);
}

/* ---- restarts ---- */

/* Asks for a restart until there is a successor: one that has just failed may prevent it. */
static weir_sim_process *begin_restart(weir_sim *sim, weir_sim_process *process)
{
    const weir_sim_process *before = weir_sim_child(process);

    for (unsigned i = 0; i < 100 && weir_sim_is_alive(process); i++) {
        weir_sim_signal(process, SIGUSR2);
        for (unsigned j = 0; j < 100; j++) {
            if (weir_sim_child(process) != before)
                return weir_sim_child(process);
            weir_sim_sleep(weir_ms(1));
        }
    }
    if (weir_sim_is_alive(process))
        weir_sim_fail(sim, "there is no successor");
    return NULL;
}

/* A server that ends for lack of memory is started again. */
static int supervise(struct restarts *self, weir_sim_host *host, weir_sim_process **server)
{
    /* A signal may have started another successor after one that failed. */
    while (!weir_sim_is_alive(*server) && weir_sim_child(*server) != NULL)
        *server = weir_sim_child(*server);
    if (weir_sim_is_alive(*server) || !can_break())
        return 0;
    self->is_ready = false;
    self->is_lost = true;
    self->fate = SERVES;
    return weir_sim_start(host, "server", server_main, self, server);
}

/* Waits until the process or its last child has ended. Returns the one that is left. */
static weir_sim_process *await_one(weir_sim_process *process)
{
    while (weir_sim_is_alive(process) && weir_sim_is_alive(weir_sim_child(process)))
        weir_sim_sleep(weir_ms(5));
    if (weir_sim_is_alive(weir_sim_child(process)))
        return weir_sim_child(process);
    return weir_sim_is_alive(process) ? process : NULL;
}

static weir_sim_process *end_restart(weir_sim *sim, struct restarts *self,
                                     weir_sim_process *process, weir_sim_process *child)
{
    weir_sim_process *server;

    if (self->fate == DIES || self->fate == OUTLIVES) {
        weir_sim_sleep((int64_t)weir_sim_random(sim, weir_ms(100)));
        self->killed++;
        weir_sim_kill(self->fate == DIES ? child : process);
    }
    server = await_one(process);
    child = weir_sim_child(process);
    if (server == NULL && !can_break())
        weir_sim_fail(sim, "both processes have ended");
    else if (!can_break() && (server == child) != (self->fate == SERVES || self->fate == OUTLIVES))
        weir_sim_fail(sim, "the wrong process has ended");
    if (server == child)
        self->is_replaced = true;
    return server != NULL ? server : child;
}

/* Stops the service, in some worlds in the middle of a restart. */
static int stop(weir_sim *sim, struct restarts *self, weir_sim_process *process)
{
    weir_sim_process *child;
    int err;

    if (weir_sim_random(sim, 2) == 0) {
        self->fate = SERVES;
        (void)begin_restart(sim, process);
        weir_sim_sleep((int64_t)weir_sim_random(sim, 2 * (uint64_t)self->probation_ns));
    }
    weir_sim_signal(process, SIGTERM);
    err = weir_sim_join(process);
    child = weir_sim_child(process);
    if (err < 0 || child == NULL || !weir_sim_is_alive(child))
        return err < 0 ? err : 0;
    /* It serves if it has taken over before; otherwise it ends, too. */
    weir_sim_sleep(DRAIN_NS);
    if (weir_sim_is_alive(child)) {
        self->is_replaced = true;
        weir_sim_signal(child, SIGTERM);
    }
    return weir_sim_join(child);
}

/* One that ends must do so before its probation does. */
static void draw_fate(struct restarts *self, weir_sim *sim, enum fate *ret_fate)
{
    enum fate fate = weir_sim_random(sim, 2) == 0 ? (enum fate)weir_sim_random(sim, FATES) : SERVES;

    if (fate == DIES || fate == EXITS_WHEN_READY || fate == OUTLIVES) {
        if (can_break())
            fate = SERVES;
        else
            self->probation_ns = weir_seconds(1);
    }
    *ret_fate = fate;
}

static void draw(struct restarts *self, weir_sim *sim)
{
    struct load *load = &self->load;

    memset(self, 0, sizeof(*self));
    load->sim = sim;
    load->clients = 2 + (unsigned)weir_sim_random(sim, 7);
    load->requests = 4 + (unsigned)weir_sim_random(sim, LOAD_REQUESTS_MAX - 3);
    load->window = 1 + (unsigned)weir_sim_random(sim, 3);
    load->per_connection = weir_sim_random(sim, 4) > 0 ? 1 + (unsigned)weir_sim_random(sim, 4) : 0;
    load->max_answer = 1 + weir_sim_random(sim, 3000);
    load->max_pause_ns = weir_ms(1 + (int64_t)weir_sim_random(sim, 40));
    load->timeout_ns = weir_seconds(30);
    load->drain = weir_sim_random(sim, 3) > 0 ? LOAD_WAITS : LOAD_FINISHES;
    load->max_work_ns = weir_sim_random(sim, 2) == 0 ? weir_ms(10) : 0;
    load->addresses[0] = "10.0.0.1:8007";
    self->is_local = weir_sim_random(sim, 2) == 0;
    if (self->is_local)
        load->addresses[1] = "unix:/run/server.sock";
    load->stays = true;
    self->threads = 1 + (unsigned)weir_sim_random(sim, 3);
    self->has_boss = weir_sim_random(sim, 2) == 0;
    self->acceptors =
        !self->has_boss && !self->is_local && weir_sim_random(sim, 2) == 0 ? (int)self->threads : 0;
    self->probation_ns = weir_ms(5 + (int64_t)weir_sim_random(sim, 100));
    for (unsigned i = 0; i < LOAD_SERVERS_MAX; i++)
        self->servers[i] = (struct load_server){.load = load, .number = i};
    for (unsigned i = 0; i < RESTARTS_MAX; i++)
        draw_fate(self, sim, &self->fates[i]);
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *hosts[2];
    weir_sim_process *server, *client;
    struct restarts *self = &world;
    unsigned restarts = 1 + (unsigned)weir_sim_random(sim, RESTARTS_MAX);
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &hosts[0]);

    (void)arg;
    draw(self, sim);
    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &hosts[1]);
    if (err == 0)
        err = weir_sim_start(hosts[0], "server", server_main, self, &server);
    while (!self->is_ready)
        weir_sim_sleep(weir_ms(1));
    if (err == 0)
        err = weir_sim_start(hosts[self->is_local ? 0 : 1], "client", load_clients_main,
                             &self->load, &client);
    if (err == 0)
        err = weir_sim_check(sim, check, self);
    for (unsigned i = 0; i < restarts && err == 0; i++) {
        weir_sim_process *child;

        weir_sim_sleep((int64_t)weir_sim_random(sim, weir_ms(60)));
        self->fate = self->fates[i];
        child = begin_restart(sim, server);
        if (child != NULL)
            server = end_restart(sim, self, server, child);
        err = supervise(self, hosts[0], &server);
    }
    while (err == 0 && weir_sim_is_alive(client)) {
        weir_sim_sleep(weir_ms(10));
        err = supervise(self, hosts[0], &server);
    }
    if (err == 0)
        err = stop(sim, self, server);
    if (err == 0 && self->is_local)
        err = weir_sim_start(hosts[0], "probe", probe_main, self, &client);
    return err < 0 || !self->is_local ? err : weir_sim_join(client);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    uint32_t kinds = SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                     SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED);

    if (seed % 4 == 0)
        kinds |= SIM_KIND(RESET) | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP) |
                 SIM_KIND(CLOCK_STEP) | SIM_KIND(NO_BUFFERS) | SIM_KIND(ALLOC) |
                 SIM_KIND(DESCRIPTORS);
    sim_draw_rates(seed / 2, kinds, options);
    options->max_outage_ns = weir_ms(300);
    options->max_time_ns = weir_seconds(1000);
    current_options = *options;
}

SIM_PROGRAM(hot_restart, "a server that is replaced under load", configure, run)
