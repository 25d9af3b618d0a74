/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the files of a folder over HTTP, or HTTPS, until SIGINT or SIGTERM.
 *     file-server [--root FOLDER] [--listing on] [--port 8080]
 *                 [--io auto|epoll|uring|poll|blocking] [--threads N] [--boss-threads N]
 *                 [--tls] [--cert FILE] [--key FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/http_files.h>
#include <weir/weir.h>

#include "support/settings.h"
#include "support/tls.h"

/* doc:begin root */
static int open_root(const char *folder, const char *listing, weir_http_files_root **ret_root)
{
    return weir_http_files_root_create(
        WEIR_HTTP_FILES_OPTIONS(.root = folder != NULL ? folder : ".",
                                .listing = listing != NULL && strcmp(listing, "on") == 0),
        ret_root);
}
/* doc:end */

int main(int argc, char **argv)
{
    const char *folder = settings_take(&argc, argv, "--root");
    const char *listing = settings_take(&argc, argv, "--listing");
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8080);
    weir_group *boss = NULL, *workers = NULL;
    weir_tls_context *tls = NULL;
    weir_http_files_root *root = NULL;
    weir_http_server *server = NULL;
    int err = settings_make_groups(&settings, &boss, &workers);

    if (!err)
        err = tls_make_server(&settings, &tls);
    if (!err)
        err = open_root(folder, listing, &root);
    if (!err) {
        const weir_http_route routes[] = {
            {"GET", "/{path*}", weir_http_files, .user_data = root},
            {0},
        };

        err = weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = tls == NULL ? settings.address : NULL,
                                     .tls_address = tls != NULL ? settings.address : NULL,
                                     .tls = tls, .add_tls = tls_add, .routes = routes, .boss = boss,
                                     .workers = workers, .acceptors = settings.boss_threads),
            &server);
    }
    if (!err) {
        print_address(weir_http_server_server(server));
        err = weir_http_server_run(server);
    }
    if (err)
        fprintf(stderr, "file-server: %s\n", weir_error_text(err));
    weir_http_server_release(server); /* NULL is ignored, here and below */
    weir_http_files_root_release(root);
    weir_group_release(workers);
    weir_group_release(boss);
    tls_release(tls);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
