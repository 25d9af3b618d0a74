/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool whose server closes connections that are idle: what is acquired is open, and nothing leaks
 * when memory or descriptors run out.
 */
#include <signal.h>
#include <string.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define USERS 3
#define ROUNDS 15

/* ---- the server: sends everything back, and closes after a while ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
    if (weir_sim_random(weir_sim_current(), 3) == 0)
        weir_close(ctx, NULL);
}

static const weir_handler echo_and_close = {.name = "echo-and-close", .read = on_read};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &echo_and_close);
}

static int server_main(void *arg)
{
    (void)arg;
    while (sim_serve("0.0.0.0:8007", 1, init_child, NULL) < 0)
        weir_sim_sleep(weir_ms(20));
    return 0;
}

/* ---- the users of the pool ---- */

static int init_client(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

/* On the loop of the channel. */
static void on_acquired(weir_channel *channel, void *user_data)
{
    (void)user_data;
    if (!weir_channel_is_active(channel))
        weir_sim_fail(weir_sim_current(), "the pool hands out a closed connection");
}

static void use(weir_client_pool *pool, weir_channel *channel)
{
    weir_sim *sim = weir_sim_current();
    weir_buf *buf;

    if (weir_buf_create(4, 0, &buf) == 0) {
        (void)weir_buf_write_bytes(buf, "ping", 4);
        weir_channel_write_and_flush(channel, weir_buf_msg(buf), NULL);
    }
    if (weir_sim_random(sim, 2) == 0)
        weir_sim_sleep((int64_t)weir_sim_random(sim, weir_ms(2)));
    weir_client_pool_return(pool, channel, NULL);
}

static void acquire_and_use(weir_client_pool *pool)
{
    weir_sim *sim = weir_sim_current();
    weir_promise *acquiring;

    if (weir_client_pool_acquire(pool, NULL, &acquiring) < 0)
        return;
    if (weir_sim_random(sim, 8) == 0) {
        weir_sim_sleep((int64_t)weir_sim_random(sim, weir_ms(1)));
        if (weir_promise_cancel(acquiring) == 0) {
            weir_promise_release(acquiring);
            return;
        }
    }
    if (weir_promise_sync(acquiring, WEIR_NEVER) == 0)
        use(pool, weir_promise_value(acquiring));
    weir_promise_release(acquiring);
}

static int user_main(void *arg)
{
    weir_sim *sim = weir_sim_current();

    for (unsigned i = 0; i < ROUNDS; i++) {
        acquire_and_use(arg);
        weir_sim_sleep((int64_t)weir_sim_random(sim, weir_ms(3)));
    }
    return 0;
}

static int with_pool(weir_sim_host *host, weir_group *group)
{
    weir_sim_process *users[USERS] = {NULL};
    weir_client_pool *pool = NULL;
    int err;

    err = weir_client_pool_create(
        WEIR_CLIENT_POOL_OPTIONS(.client =
                                     WEIR_CLIENT_OPTIONS(.group = group, .address = "10.0.0.1:8007",
                                                         .init = init_client),
                                 .max = 2, .idle_timeout_ns = weir_ms(20), .acquired = on_acquired,
                                 .acquire_timeout_ns = weir_seconds(2)),
        &pool);
    if (err < 0)
        return 0; /* without memory */
    for (unsigned i = 0; i < USERS && err == 0; i++)
        err = weir_sim_start(host, "user", user_main, pool, &users[i]);
    for (unsigned i = 0; i < USERS && users[i] != NULL; i++)
        (void)weir_sim_join(users[i]);
    weir_client_pool_release(pool);
    return err;
}

static int client_main(void *arg)
{
    weir_group *group = NULL;
    int err = 0;

    if (weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 2), &group) == 0)
        err = with_pool(arg, group);
    sim_end_group(group);
    return err;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *server_host, *client_host;
    weir_sim_process *server, *client;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &server_host);

    (void)arg;
    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &client_host);
    if (err == 0)
        err = weir_sim_start(server_host, "server", server_main, NULL, &server);
    if (err < 0)
        return err;
    weir_sim_sleep(weir_ms(5));
    err = weir_sim_start(client_host, "client", client_main, client_host, &client);
    if (err == 0)
        err = weir_sim_join(client);
    weir_sim_calm(sim, true);
    weir_sim_signal(server, SIGTERM);
    return err < 0 ? err : weir_sim_join(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed,
                   SIM_KIND(ALLOC) | SIM_KIND(DESCRIPTORS) | SIM_KIND(SLOW) | SIM_KIND(PREEMPT) |
                       SIM_KIND(RESET),
                   options);
}

SIM_PROGRAM(acquire, "a pool against a server that closes connections", configure, run)
