/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "support/settings.h"
#include "support/tls.h"

/* doc:begin serve */
static int serve_with(const struct settings *settings, weir_init_fn *init_child, void *user_data)
{
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    int err = settings_make_groups(settings, &boss, &workers);

    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings->address,
                                .acceptors = settings->boss_threads, .init_child = init_child,
                                .user_data = user_data),
            &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "%s: %s\n", settings->program, weir_error_text(err));
    weir_server_release(server); /* NULL is ignored, here and below */
    weir_group_release(workers);
    weir_group_release(boss);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
/* doc:end */

struct serving {
    weir_tls_context *tls; /* NULL = none */
    weir_init_fn *init_child;
};

static int init_with_tls(weir_channel *channel, void *user_data)
{
    const struct serving *serving = user_data;
    int err = tls_add(weir_channel_pipeline(channel), serving->tls);

    return err ? err : serving->init_child(channel, NULL);
}

int serve(const struct settings *settings, weir_init_fn *init_child)
{
    struct serving serving = {.init_child = init_child};
    int result = EXIT_FAILURE;

    if (tls_make_server(settings, &serving.tls) == 0)
        result = serve_with(settings, init_with_tls, &serving);
    tls_release(serving.tls);
    return result;
}

/* doc:begin serve-datagrams */
int serve_datagrams(const struct settings *settings, weir_init_fn *init_server)
{
    weir_group *group = NULL;
    weir_server *server = NULL;
    int err = settings_make_groups(settings, NULL, &group);

    if (!err)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .workers = group,
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
    weir_server_release(server);
    weir_group_release(group);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
/* doc:end */
