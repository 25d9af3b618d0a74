/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "support/settings.h"

/* doc:begin serve */
int serve(const struct settings *settings, weir_init_fn *init_child)
{
    weir_group *boss = NULL, *workers = NULL;
    weir_channel *server = NULL;
    int err = settings_make_groups(settings, &boss, &workers);

    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings->address,
                                .acceptors = settings->boss_threads, .init_child = init_child),
            &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "%s: %s\n", settings->program, weir_error_text(err));
    weir_channel_release(server); /* NULL is fine, here and below */
    weir_group_release(workers);
    weir_group_release(boss);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
/* doc:end */

/* doc:begin serve-datagrams */
int serve_datagrams(const struct settings *settings, weir_init_fn *init_server)
{
    weir_group *group = NULL;
    weir_channel *server = NULL;
    int err = settings_make_groups(settings, NULL, &group);

    if (!err)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .boss = group,
                                                    .address = settings->address,
                                                    .acceptors = (int)weir_group_count(group),
                                                    .init_server = init_server),
                                &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "%s: %s\n", settings->program, weir_error_text(err));
    weir_channel_release(server);
    weir_group_release(group);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
/* doc:end */
