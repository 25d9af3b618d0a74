/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP proxy: relays what it accepts to another server (support/relay.c). Netty's HexDumpProxy,
 * without the dump.
 *     proxy --to 127.0.0.1:8007 [--port 8443] [--io auto|epoll|uring|poll] [--threads N]
 *           [--boss-threads N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#include "support/relay.h"
#include "support/settings.h"

int main(int argc, char **argv)
{
    char *target = settings_take(&argc, argv, "--to");
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 8443);
    weir_group *boss = NULL, *workers = NULL;
    weir_channel *server = NULL;
    int err;

    if (target == NULL) {
        fprintf(stderr, "proxy: where to? --to ADDRESS:PORT\n");
        return 2;
    }
    err = settings_make_groups(&settings, &boss, &workers);
    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings.address,
                                .acceptors = settings.boss_threads, .init_child = relay_init,
                                .user_data = target, .child_options = RELAY_OPTIONS),
            &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "proxy: %s\n", weir_error_text(err));
    weir_channel_release(server);
    weir_group_release(workers);
    weir_group_release(boss);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
