/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connection attempts that succeed, are refused, time out or are cancelled, against a server that
 * runs out of descriptors and memory. When faults have stopped, everyone can connect.
 */
#include <signal.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define ATTEMPTS 30
#define RECOVERY_NS weir_seconds(60)

static void close_at_once(weir_ctx *ctx)
{
    weir_close(ctx, NULL);
}

static const weir_handler closer = {.name = "closer", .active = close_at_once};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &closer);
}

static int no_handlers(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

static int serve_once(void)
{
    weir_group *workers = NULL;
    weir_server *server = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "work", .threads = 2), &workers);

    if (err == 0)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.workers = workers, .address = "0.0.0.0:8007",
                                                    .init_child = init_child),
                                &server);
    if (err == 0)
        err = weir_server_run(server);
    weir_server_release(server);
    weir_group_release(workers);
    return err;
}

/* Without descriptors or memory it cannot start, and tries again. */
static int server_main(void *arg)
{
    (void)arg;
    while (serve_once() < 0)
        weir_sim_sleep(weir_ms(20));
    return 0;
}

/* ---- the client ---- */

static const char *draw_address(weir_sim *sim)
{
    static const char *const addresses[] = {
        "10.0.0.1:8007",
        "10.0.0.1:8007",
        "10.0.0.1:9" /* refused */,
        "10.0.0.9:8007" /* nobody */,
    };

    return addresses[weir_sim_random(sim, 4)];
}

/* Waits until the server has closed the connection: it was accepted, not only established. */
static int finish(weir_channel *channel, bool is_impatient)
{
    weir_promise *closed = weir_channel_closed(channel);
    int err = closed != NULL && !is_impatient ? weir_promise_sync(closed, weir_seconds(5)) : 0;

    weir_channel_close(channel, NULL);
    return err;
}

static int attempt(weir_group *group, const char *address, bool may_cancel)
{
    weir_sim *sim = weir_sim_current();
    weir_promise *connecting = NULL;
    int err = weir_client_connect(
        WEIR_CLIENT_OPTIONS(.group = group, .address = address, .init = no_handlers,
                            .options = WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_ms(300))),
        &connecting);

    if (err < 0)
        return err;
    if (may_cancel && weir_sim_random(sim, 3) == 0) {
        weir_sim_sleep((int64_t)weir_sim_random(sim, weir_ms(2)));
        (void)weir_promise_cancel(connecting);
    }
    err = weir_promise_sync(connecting, WEIR_NEVER);
    if (err == 0)
        err = finish(weir_promise_value(connecting), may_cancel);
    weir_promise_release(connecting);
    return err;
}

static int create_group(weir_group **ret_group)
{
    int err;

    while ((err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1),
                                    ret_group)) < 0 &&
           err != -EINVAL)
        weir_sim_sleep(weir_ms(1));
    return err;
}

static int client_main(void *arg)
{
    weir_sim *sim = weir_sim_current();
    weir_group *group = NULL;
    int64_t deadline_ns;
    int err = create_group(&group);

    (void)arg;
    for (unsigned i = 0; i < ATTEMPTS && err == 0; i++)
        (void)attempt(group, draw_address(sim), true);
    weir_sim_calm(sim, true);
    deadline_ns = weir_sim_now(sim) + RECOVERY_NS;
    while (err == 0 && attempt(group, "10.0.0.1:8007", false) < 0)
        if (weir_sim_now(sim) > deadline_ns) {
            weir_sim_fail(sim, "nobody can connect a minute after the last fault");
            break;
        }
    sim_end_group(group);
    return err;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *server_host, *client_host;
    weir_sim_process *server, *client;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &server_host);

    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &client_host);
    if (err == 0)
        err = weir_sim_start(server_host, "server", server_main, arg, &server);
    if (err < 0)
        return err;
    weir_sim_sleep(weir_ms(5));
    err = weir_sim_start(client_host, "client", client_main, arg, &client);
    if (err == 0)
        err = weir_sim_join(client);
    weir_sim_signal(server, SIGTERM);
    return err < 0 ? err : weir_sim_join(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed,
                   SIM_KIND(ALLOC) | SIM_KIND(DESCRIPTORS) | SIM_KIND(SLOW) | SIM_KIND(PREEMPT) |
                       SIM_KIND(INTERRUPTED),
                   options);
}

SIM_PROGRAM(connect, "connects that fail, time out and are cancelled", configure, run)
