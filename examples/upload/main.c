/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives files from a form, by a browser or curl, and saves them in a folder, until SIGINT or
 * SIGTERM.
 *     upload [--folder .] [--port 8080] [--io auto|epoll|uring|poll|blocking] [--threads N]
 *          [--boss-threads N] [--tls] [--cert FILE] [--key FILE]
 *     curl -F file=@photo.jpg -F file=@song.mp3 http://localhost:8080/upload
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/http_body.h>

#include "support/http.h"

#define MAX_CONTENT ((uint64_t)64 << 30)
#define NAME_SIZE 64

static const char page[] = "<!DOCTYPE html>\n"
                           "<meta charset=utf-8>\n"
                           "<title>Upload</title>\n"
                           "<form method=post action=/upload enctype=multipart/form-data>\n"
                           "<p><input type=file name=file multiple>\n"
                           "<p><input name=comment placeholder=Comment>\n"
                           "<p><button>Upload</button>\n"
                           "</form>\n";

static const char *folder = ".";
static weir_group *disk;       /* where saving a file may block */
static _Atomic unsigned saved; /* files so far */

static void show_form(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_bytes(exchange, 200, "text/html; charset=utf-8", page, sizeof(page) - 1);
}

/* A name for the file that cannot lead out of the folder: a number, and what is harmless of the
 * name that the client gave. */
static void make_name(weir_span filename, char name[NAME_SIZE])
{
    size_t length = (size_t)snprintf(name, NAME_SIZE, "%u-", atomic_fetch_add(&saved, 1) + 1);

    for (size_t i = 0; i < filename.length && length < NAME_SIZE - 1; i++)
        if (isalnum(filename.data[i]) || filename.data[i] == '.' || filename.data[i] == '-')
            name[length++] = (char)filename.data[i];
    name[length] = '\0';
}

/* doc:begin save */
/* Saves a file, and appends a line about it to the answer. */
static int save(weir_http_upload *upload, size_t index, weir_buf *answer)
{
    const weir_http_part *part = weir_http_upload_part(upload, index);
    uint64_t length = weir_http_upload_length(upload, index);
    char name[NAME_SIZE], path[4096];
    int err;

    if (part->filename.data == NULL)
        return weir_buf_printf(answer, "%.*s: %" PRIu64 " bytes\n", (int)part->name.length,
                               (const char *)part->name.data, length);
    make_name(part->filename, name);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    err = weir_http_upload_save(upload, index, path);
    return err ? err
               : weir_buf_printf(answer, "%.*s: %" PRIu64 " bytes, saved as %s\n",
                                 (int)part->name.length, (const char *)part->name.data, length,
                                 name);
}

static void on_upload(weir_http_exchange *exchange, weir_http_upload *upload, int err,
                      void *user_data)
{
    weir_buf *answer = NULL;

    (void)user_data;
    if (err)
        return; /* it was answered */
    err = weir_buf_create(0, 0, &answer);
    for (size_t i = 0; !err && i < weir_http_upload_count(upload); i++)
        err = save(upload, i, answer);
    if (err) {
        weir_http_respond_error(exchange, 500, weir_error_text(err));
        weir_buf_release(answer);
    } else {
        weir_http_respond(exchange, 200, weir_buf_msg(answer));
    }
    weir_http_upload_release(upload);
}
/* doc:end */

/* Prints each tenth, of content whose length is known. */
static void on_progress(weir_http_exchange *exchange, uint64_t bytes, int64_t total,
                        void *user_data)
{
    static _Thread_local uint64_t before;

    (void)exchange;
    (void)user_data;
    if (total <= 0)
        return;
    if (bytes * 10 / (uint64_t)total != before * 10 / (uint64_t)total || before > bytes)
        printf("%" PRIu64 " %%\n", bytes * 100 / (uint64_t)total);
    before = bytes;
    (void)fflush(stdout);
}

/* doc:begin receive */
static void receive(weir_http_exchange *exchange, void *user_data)
{
    weir_http_upload_read(
        exchange,
        WEIR_HTTP_UPLOAD_OPTIONS(.folder = folder, .group = disk, .progress = on_progress),
        on_upload, user_data);
}

static const weir_http_route routes[] = {WEIR_HTTP_ROUTE("GET", "/", show_form),
                                         WEIR_HTTP_ROUTE("POST", "/upload", receive,
                                                         .streaming = true, .group = &disk,
                                                         .max_content = MAX_CONTENT),
                                         WEIR_HTTP_ROUTES_END};
/* doc:end */

int main(int argc, char **argv)
{
    const char *given = settings_take(&argc, argv, "--folder");
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8080);
    int status = EXIT_FAILURE;

    if (given != NULL)
        folder = given;
    if (weir_group_create(WEIR_GROUP_OPTIONS(.threads = 4, .name = "disk"), &disk) == 0)
        status = serve_http(&settings, WEIR_HTTP_SERVER_OPTIONS(.routes = routes));
    if (disk != NULL) {
        (void)weir_group_shutdown(disk, 0, weir_seconds(5));
        (void)weir_group_await_termination(disk, weir_seconds(5));
    }
    weir_group_release(disk);
    return status;
}
