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

#include "support/http.h"

/* doc:begin serve */
static int serve_folder(const struct settings *settings, const char *folder, bool listing)
{
    weir_http_files_root *root = NULL;
    int status = EXIT_FAILURE;
    int err = weir_http_files_root_create(
        WEIR_HTTP_FILES_OPTIONS(.root = folder, .listing = listing), &root);

    if (err)
        fprintf(stderr, "file-server: %s: %s\n", folder, weir_error_text(err));
    else
        status = serve_http(
            settings,
            WEIR_HTTP_SERVER_OPTIONS(.routes = (const weir_http_route[]){
                                         WEIR_HTTP_ROUTE("GET", "/{path*}", weir_http_files,
                                                         .user_data = root),
                                         WEIR_HTTP_ROUTES_END,
                                     }));
    weir_http_files_root_release(root); /* NULL is ignored */
    return status;
}
/* doc:end */

int main(int argc, char **argv)
{
    const char *folder = settings_take(&argc, argv, "--root");
    const char *listing = settings_take(&argc, argv, "--listing");
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8080);

    return serve_folder(&settings, folder != NULL ? folder : ".",
                        listing != NULL && strcmp(listing, "on") == 0);
}
