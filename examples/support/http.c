/* SPDX-License-Identifier: Apache-2.0 */
#include "support/http.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/tls.h"

/* The server uses it until it is released; the program, which has one server, then ends. */
static weir_tls_context *tls;

static void release_tls(void)
{
    tls_release(tls);
    tls = NULL;
}

int http_start(const struct settings *settings, const weir_http_server_options *options,
               weir_http_server **ret_server)
{
    weir_http_server_options own = *options;
    weir_group *boss = NULL, *workers = NULL;
    int err = settings_make_groups(settings, &boss, &workers);

    if (!err)
        err = tls_make_server(settings, &tls);
    if (!err && tls != NULL)
        atexit(release_tls);
    if (!err) {
        own.boss = boss;
        own.workers = workers;
        own.acceptors = settings->boss_threads;
        own.tls = tls;
        own.add_tls = tls_add;
        if (tls != NULL)
            own.tls_address = settings->address;
        else
            own.address = settings->address;
        err = weir_http_server_start(&own, ret_server);
    }
    weir_group_release(workers); /* the server has references */
    weir_group_release(boss);
    if (err)
        fprintf(stderr, "%s: %s\n", settings->program, weir_error_text(err));
    else
        print_address(weir_http_server_server(*ret_server));
    return err;
}

int serve_http(const struct settings *settings, const weir_http_server_options *options)
{
    weir_http_server *server = NULL;
    int err = http_start(settings, options, &server);

    if (!err) {
        err = weir_http_server_run(server);
        if (err)
            fprintf(stderr, "%s: %s\n", settings->program, weir_error_text(err));
    }
    weir_http_server_release(server);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
