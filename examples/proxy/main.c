/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP proxy: relays each connection to another server (support/relay.c). Netty's HexDumpProxy
 * without the dump. With --tls it uses TLS to its clients and plain TCP to the server. proxy --to
 * 127.0.0.1:8007 [--port 8443] [--io auto|epoll|uring|poll] [--threads N]
 *           [--boss-threads N] [--tls] [--cert FILE] [--key FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#include "support/relay.h"
#include "support/settings.h"
#include "support/tls.h"

struct proxy {
    weir_tls_context *tls; /* NULL = none */
    char *target;
};

static int init_child(weir_channel *channel, void *user_data)
{
    const struct proxy *proxy = user_data;
    int err = tls_add(weir_channel_pipeline(channel), proxy->tls);

    return err ? err : relay_init(channel, proxy->target);
}

int main(int argc, char **argv)
{
    struct proxy proxy = {.target = settings_take(&argc, argv, "--to")};
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8443);
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    int err;

    if (proxy.target == NULL) {
        fprintf(stderr, "proxy: missing --to ADDRESS:PORT\n");
        return 2;
    }
    err = settings_make_groups(&settings, &boss, &workers);
    if (!err)
        err = tls_make_server(&settings, &proxy.tls);
    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings.address,
                                .acceptors = settings.boss_threads, .init_child = init_child,
                                .user_data = &proxy, .child_options = RELAY_OPTIONS),
            &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "proxy: %s\n", weir_error_text(err));
    weir_server_release(server);
    weir_group_release(workers);
    weir_group_release(boss);
    tls_release(proxy.tls);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
