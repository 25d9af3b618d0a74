/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/30-http-files.md shows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/http_files.h>
#include <weir/http_server.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"

/* doc:begin files */
static int serve(const char *folder, const char *address, weir_http_files_root **ret_root,
                 weir_http_server **ret_server)
{
    int err = weir_http_files_root_create(WEIR_HTTP_FILES_OPTIONS(.root = folder), ret_root);

    if (!err) {
        const weir_http_route routes[] = {
            WEIR_HTTP_ROUTE("GET", "/static/{path*}", weir_http_files, .user_data = *ret_root),
            WEIR_HTTP_ROUTES_END};

        err = weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = address, .routes = routes),
                                     ret_server);
    }
    return err;
}
/* doc:end */

TEST(guide_http_files, a_file_and_a_part_of_it)
{
    char folder[] = "/tmp/weir-guide-XXXXXX", path[64], response[4096] = "";
    weir_http_files_root *root = NULL;
    weir_http_server *server = NULL;
    size_t length;
    FILE *file;
    int peer;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/hello.txt", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("Hello, World!\n", file);
    fclose(file);
    assert_int_equal(serve(folder, "127.0.0.1:0", &root, &server), 0);

    peer = raw_client_connect(weir_http_server_server(server));
    raw_client_send(peer, "GET /static/hello.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=7-11\r\n"
                          "Connection: close\r\n\r\n");
    length = raw_client_receive_all(peer, response, sizeof(response));
    raw_client_close(peer);
    assert_non_null(strstr(response, "HTTP/1.1 206 Partial Content\r\n"));
    assert_non_null(strstr(response, "Content-Range: bytes 7-11/14\r\n"));
    assert_string_equal(response + length - 5, "World");

    weir_http_server_release(server);
    weir_http_files_root_release(root);
    unlink(path);
    rmdir(folder);
}
