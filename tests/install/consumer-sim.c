/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same with the simulator: it fails unless a client reaches a server in a world. Programs that
 * contain the C library itself cannot run one.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include <weir/sim.h>
#include <weir/weir.h>

static int no_handlers(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

static int server_main(void *arg)
{
    weir_group *group = NULL;
    weir_server *server = NULL;
    int err = weir_group_create(NULL, &group);

    (void)arg;
    if (err == 0)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.workers = group, .address = "0.0.0.0:80",
                                                    .init_child = no_handlers),
                                &server);
    if (err == 0)
        err = weir_server_run(server);
    weir_server_release(server);
    weir_group_release(group);
    return err;
}

static int client_main(void *arg)
{
    weir_group *group = NULL;
    weir_channel *channel = NULL;
    int err = weir_group_create(NULL, &group);

    (void)arg;
    if (err == 0)
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = group, .address = "10.0.0.1:80"), &channel);
    if (err == 0)
        weir_channel_close(channel, NULL);
    weir_channel_release(channel);
    weir_group_release(group);
    return err;
}

static int program(weir_sim *sim, void *arg)
{
    weir_sim_host *host = NULL, *other = NULL;
    weir_sim_process *server = NULL, *client = NULL;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &host);

    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &other);
    if (err == 0)
        err = weir_sim_start(host, "server", server_main, arg, &server);
    if (err < 0)
        return err;
    weir_sim_sleep(weir_ms(10));
    err = weir_sim_start(other, "client", client_main, arg, &client);
    if (err == 0)
        err = weir_sim_join(client);
    weir_sim_signal(server, SIGTERM);
    return err < 0 ? err : weir_sim_join(server);
}

int main(void)
{
    weir_sim_result result = {0};
    int err = weir_sim_run(WEIR_SIM_OPTIONS(.seed = 7), program, NULL, &result);

    if (err == -ENOTSUP) {
        printf("no simulation: %s\n", weir_error_text(err));
        return 0;
    }
    if (err < 0)
        printf("no simulation: %s: %s\n%s", weir_error_text(err),
               result.failure != NULL ? result.failure : "-",
               result.trace != NULL ? result.trace : "");
    weir_sim_result_free(&result);
    return err < 0;
}
