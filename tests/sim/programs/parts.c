/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/programs/parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "sim/network.h"
#include "sim/world.h"

#define STARTS_MAX 200
#define DRAIN_NS weir_seconds(40)
#define END_NS weir_seconds(2) /* after that it ends in peace */

bool sim_has_boss(void)
{
    return weir__sim->options.seed / 8 % 2 == 0; /* lower bits decide other things */
}

static int serve(const char *address, int threads,
                 int (*init_child)(weir_channel *channel, void *user_data), void *user_data,
                 const weir_channel_options *child_options)
{
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    int err = 0;

    if (sim_has_boss())
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "boss", .threads = 1), &boss);
    if (err == 0)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "work", .threads = threads), &workers);
    if (err == 0)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers,
                                                    .address = address, .init_child = init_child,
                                                    .user_data = user_data,
                                                    .child_options = child_options),
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

int sim_serve(const char *address, int threads,
              int (*init_child)(weir_channel *channel, void *user_data), void *user_data)
{
    return serve(address, threads, init_child, user_data, NULL);
}

int sim_serve_stubbornly(const char *address, int threads,
                         int (*init_child)(weir_channel *channel, void *user_data), void *user_data,
                         const weir_channel_options *child_options)
{
    int err = -1;

    for (int i = 0; i < STARTS_MAX && err < 0; i++) {
        if (i > 0)
            weir_sim_sleep(weir_ms(1));
        err = serve(address, threads, init_child, user_data, child_options);
        if (weir_sim_is_dying())
            return 0;
        if (err < 0 && sim_excuse(err) < 0)
            return err;
    }
    return err;
}

static bool has_listener(const weir_sim_host *host)
{
    weir_list_foreach (link, &host->sockets) {
        if (WEIR_CONTAINER_OF(link, weir__sim_socket, bound_link)->is_listening)
            return true;
    }
    return false;
}

void sim_await_listener(weir_sim_host *host, weir_sim_process *process)
{
    while (!has_listener(host) && weir_sim_is_alive(process))
        weir_sim_sleep(weir_ms(1));
}

static weir_sim_process *latest(weir_sim_process *process)
{
    while (process->successor != NULL)
        process = process->successor;
    return process;
}

/* A process that was killed starts again, and a server that had to start again may have taken the
 * signal before. */
int sim_stop(weir_sim_process *process)
{
    for (;;) {
        weir_sim_process *now = latest(process);

        if (now->has_ended && now->restart.slot == 0)
            return weir_sim_join(process);
        weir_sim_signal(process, SIGTERM);
        for (int64_t ns = weir_ms(1);
             ns < DRAIN_NS && latest(process) == now && !(now->has_ended && now->restart.slot == 0);
             ns *= 2) {
            weir_sim_sleep(ns);
            if (ns > END_NS) /* a host that stands still misses deadlines */
                weir_sim_calm(weir__sim, true);
        }
    }
}

unsigned sim_faults(uint32_t kinds)
{
    unsigned count = 0;

    for (size_t i = 0; i < weir__sim->fault_count; i++)
        count += kinds >> weir__sim->faults[i].kind & 1;
    return count;
}

int sim_excuse(int err)
{
    return err < 0 && (weir_sim_is_dying() || sim_faults(SIM_SCARCITY) > 0) ? 0 : err;
}

int sim_write_bytes(weir_ctx *ctx, uint64_t stream, uint64_t position, size_t length)
{
    weir_buf *buf;
    uint8_t *bytes;
    int err = weir_buf_create(length, 0, &buf);

    if (err < 0)
        return err;
    bytes = weir_buf_space(buf);
    for (size_t i = 0; i < length; i++)
        bytes[i] = sim_byte(stream, position + i);
    weir_buf_advance(buf, length);
    weir_write(ctx, weir_buf_msg(buf), NULL);
    return 0;
}

size_t sim_check_bytes(weir_msg *msg, uint64_t stream, uint64_t position, const char *reader)
{
    const weir_buf *buf = weir_buf_of(msg);
    const uint8_t *bytes = weir_buf_bytes(buf);
    size_t length = weir_buf_readable(buf);

    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != sim_byte(stream, position + i)) {
            weir_sim_fail(weir__sim, "%s: a wrong byte at %llu of stream %llu", reader,
                          (unsigned long long)(position + i), (unsigned long long)stream);
            break;
        }
    }
    return length;
}

void sim_end_group(weir_group *group)
{
    if (group == NULL)
        return;
    (void)weir_group_shutdown(group, 0, weir_seconds(10));
    if (weir_group_await_termination(group, END_NS) == -ETIMEDOUT)
        weir_sim_calm(weir__sim, true);
    weir_group_release(group); /* joins its threads */
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

int sim_create_hosts(weir_sim *sim, weir_sim_host **ret_hosts, unsigned count)
{
    int err = 0;

    for (unsigned i = 0; i < count && err == 0; i++) {
        char name[16], address[24];

        (void)snprintf(name, sizeof(name), "host%u", i + 1);
        (void)snprintf(address, sizeof(address), "10.0.0.%u", i + 1);
        err = weir_sim_host_create(sim, name, address, &ret_hosts[i]);
    }
    return err;
}
