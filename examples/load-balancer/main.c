/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP load balancer: TLS to its clients, plain TCP to its upstreams, which receive the client's
 * address by the PROXY protocol.
 *     load-balancer --upstream ADDRESS:PORT [--upstream ...] [--port 8443]
 *                   [--balance least|round] [--proxy none|v1|v2] [--connect-timeout MS]
 *                   [--check-interval MS] [--fall N] [--rise N]
 *                   [--tls] [--cert FILE] [--key FILE] [--io auto|epoll|uring|poll]
 *                   [--threads N] [--boss-threads N]
 *
 * upstream.c chooses, balancer.c connects, support/relay.c relays, health.c checks. On SIGTERM it
 * stops accepting and exits when its clients have closed, or after ten seconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "announce.h"
#include "balancer.h"
#include "health.h"
#include "support/settings.h"
#include "support/tls.h"

/* ---- options ---- */

static void take_upstreams(int *argc, char **argv, struct upstreams *upstreams)
{
    const char *address;

    while ((address = settings_take(argc, argv, "--upstream")) != NULL)
        if (!upstreams_add(upstreams, address))
            settings_refuse(argv[0], "--upstream", "more than 64 of them");
}

static void take_options(int *argc, char **argv, struct balancer *balancer, struct health *health)
{
    static const char *const policies[] = {"least", "round", NULL};
    static const char *const versions[] = {"none", "v1", "v2", NULL};

    take_upstreams(argc, argv, &balancer->upstreams);
    balancer->upstreams.balance = (enum balance)settings_take_word(
        argc, argv, "--balance", policies, BALANCE_LEAST_CONNECTIONS);
    balancer->proxy_version = settings_take_word(argc, argv, "--proxy", versions, ANNOUNCE_V2);
    balancer->connect_timeout_ns =
        weir_ms(settings_take_number(argc, argv, "--connect-timeout", 2000));
    health->upstreams = &balancer->upstreams;
    health->proxy_version = balancer->proxy_version;
    health->timeout_ns = balancer->connect_timeout_ns;
    health->interval_ns = weir_ms(settings_take_number(argc, argv, "--check-interval", 2000));
    health->fall = settings_take_number(argc, argv, "--fall", 3);
    health->rise = settings_take_number(argc, argv, "--rise", 2);
}

/* ---- serving ---- */

static int start_checks(struct health *health, enum weir_io io, weir_group **ret_group)
{
    int err =
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "health",
                                             .io = io == WEIR_IO_BLOCKING ? WEIR_IO_AUTO : io),
                          ret_group);

    if (err)
        return err;
    health->loop = weir_group_at(*ret_group, 0);
    return health_start(health);
}

static int serve_clients(const struct settings *settings, struct balancer *balancer,
                         weir_group *boss, weir_group *workers)
{
    weir_server *server = NULL;
    int err = weir_server_start(
        WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings->address,
                            .acceptors = settings->boss_threads, .init_child = balancer_init,
                            .user_data = balancer,
                            .child_options = RELAY_OPTIONS_WITH(.drain_waits = true)),
        &server);

    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    weir_server_release(server);
    return err;
}

int main(int argc, char **argv)
{
    static struct balancer balancer;
    static struct health health;
    struct settings settings;
    weir_group *boss = NULL, *workers = NULL, *checkers = NULL;
    int err;

    take_options(&argc, argv, &balancer, &health);
    settings = settings_read_tls(argc, argv, "0.0.0.0", 8443);
    if (balancer.upstreams.count == 0) {
        fprintf(stderr, "load-balancer: missing --upstream ADDRESS:PORT\n");
        return 2;
    }
    weir_log_set_level(WEIR_LOG_INFO); /* logs upstreams that go up and down */
    err = settings_make_groups(&settings, &boss, &workers);
    if (!err)
        err = tls_make_server(&settings, &balancer.tls);
    if (!err)
        err = start_checks(&health, settings.io, &checkers);
    if (!err)
        err = serve_clients(&settings, &balancer, boss, workers);
    if (err)
        fprintf(stderr, "load-balancer: %s\n", weir_error_text(err));
    weir_group_release(checkers);
    weir_group_release(workers);
    weir_group_release(boss);
    tls_release(balancer.tls);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
