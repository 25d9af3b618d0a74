/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches URLs, one after the other, and writes their content to the standard output or a file.
 *     http-get [-o FILE] [-H "NAME: VALUE"]... [-d DATA] [-X METHOD] [-L] [--proxy URL]
 *              [--timeout SECONDS] [--ca FILE] [--insecure] URL...
 *
 * -L follows redirections; -d sends a POST; --proxy is http://host:port or socks5://host:port,
 * perhaps with user:password@. On a terminal it shows the progress.
 *
 * Exit status: 0 if all responses were successful, 1 if one had a status of 400 or more, 2 for
 * wrong arguments, 3 if there was no whole response or it could not be written.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/http_client.h>
#include <weir/weir.h>

#include "support/settings.h"
#include "support/tls.h"

#define FIELDS_MAX 64

struct options {
    const char *method;
    const char *output;
    const char *data;
    const char *fields[FIELDS_MAX];
    size_t field_count;
    bool follows;
    const char *proxy;
    int timeout;
    struct settings tls;
};

/* A response that is being written; on the loop of the client until `done` completes. */
struct download {
    FILE *file;
    weir_promise *done;
    int status;
    int64_t length; /* -1 if it is not known */
    int64_t received;
    int shown; /* percent, or KiB if the length is not known */
    bool shows;
    bool failed; /* to write */
};

static _Noreturn void usage(FILE *out, int status)
{
    fprintf(out, "usage: http-get [--proxy URL] [--timeout SECONDS] [--ca FILE] [--insecure]\n"
                 "       [-o FILE] [-H \"NAME: VALUE\"]... [-d DATA] [-X METHOD] [-L] URL...\n");
    exit(status);
}

/* ---- options ---- */

/* The value of an option, which is the next argument. */
static const char *value_of(int argc, char **argv, int *i)
{
    if (*i + 1 < argc)
        return argv[++*i];
    fprintf(stderr, "http-get: %s needs a value\n", argv[*i]);
    usage(stderr, 2);
}

static void add_field(struct options *options, const char *text)
{
    if (strchr(text, ':') == NULL || options->field_count == FIELDS_MAX) {
        fprintf(stderr, "http-get: invalid -H \"%s\"\n", text);
        usage(stderr, 2);
    }
    options->fields[options->field_count++] = text;
}

static int read_seconds(const char *text)
{
    char *end;
    long seconds = strtol(text, &end, 10);

    if (*text == '\0' || *end != '\0' || seconds < 1 || seconds > 86400) {
        fprintf(stderr, "http-get: invalid --timeout \"%s\"\n", text);
        usage(stderr, 2);
    }
    return (int)seconds;
}

static void read_option(struct options *options, int argc, char **argv, int *i)
{
    const char *name = argv[*i];

    if (strcmp(name, "--help") == 0)
        usage(stdout, 0);
    else if (strcmp(name, "-L") == 0)
        options->follows = true;
    else if (strcmp(name, "--insecure") == 0)
        options->tls.insecure = true;
    else if (strcmp(name, "-o") == 0)
        options->output = value_of(argc, argv, i);
    else if (strcmp(name, "-H") == 0)
        add_field(options, value_of(argc, argv, i));
    else if (strcmp(name, "-d") == 0)
        options->data = value_of(argc, argv, i);
    else if (strcmp(name, "-X") == 0)
        options->method = value_of(argc, argv, i);
    else if (strcmp(name, "--proxy") == 0)
        options->proxy = value_of(argc, argv, i);
    else if (strcmp(name, "--timeout") == 0)
        options->timeout = read_seconds(value_of(argc, argv, i));
    else if (strcmp(name, "--ca") == 0)
        options->tls.ca = value_of(argc, argv, i);
    else {
        fprintf(stderr, "http-get: unknown option %s\n", name);
        usage(stderr, 2);
    }
}

/* Moves the URLs to the front of argv; returns their number. */
static int read_options(int argc, char **argv, struct options *options)
{
    int count = 0;

    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-')
            read_option(options, argc, argv, &i);
        else
            argv[count++] = argv[i];
    }
    if (options->method == NULL)
        options->method = options->data != NULL ? "POST" : "GET";
    if (count > 0)
        return count;
    fprintf(stderr, "http-get: missing URL\n");
    usage(stderr, 2);
}

/* ---- progress ---- */

static void show_progress(struct download *download)
{
    int now = download->length > 0 ? (int)(download->received * 100 / download->length)
                                   : (int)(download->received >> 10);
    static const char bar[] = "########################################";

    if (!download->shows || now == download->shown)
        return;
    download->shown = now;
    if (download->length > 0)
        fprintf(stderr, "\r[%-40.*s] %3d %%", now * 40 / 100, bar, now);
    else
        fprintf(stderr, "\r%d KiB", now);
}

/* ---- events ---- */

static void on_head(weir_http_call *call, weir_http_response *response, void *user_data)
{
    struct download *download = user_data;

    (void)call;
    download->status = weir_http_response_status(response);
    download->length = weir_http_response_content_length(response);
}

static void on_content(weir_http_call *call, weir_msg *msg, void *user_data)
{
    struct download *download = user_data;
    weir_span bytes = weir_buf_span(weir_buf_of(msg));

    download->received += (int64_t)bytes.length;
    if (fwrite(bytes.data, 1, bytes.length, download->file) < bytes.length) {
        download->failed = true;
        weir_http_call_cancel(call);
    }
    show_progress(download);
    weir_msg_release(msg);
}

static void on_end(weir_http_call *call, int err, const char *detail, void *user_data)
{
    struct download *download = user_data;
    weir_promise *done = download->done;

    (void)call;
    if (err < 0)
        (void)weir_promise_fail(done, err, detail);
    else
        (void)weir_promise_succeed(done, NULL);
    weir_promise_release(done);
}

static const weir_http_call_events events = {.head = on_head, .content = on_content, .end = on_end};

/* ---- fetching ---- */

static int create_request(const struct options *options, const char *url,
                          weir_http_request **ret_request)
{
    weir_http_request *request;
    int err = weir_http_request_create(options->method, url, &request);

    if (err < 0)
        return err;
    for (size_t i = 0; !err && i < options->field_count; i++) {
        const char *text = options->fields[i];
        const char *colon = strchr(text, ':');

        err = weir_http_headers_add_named(weir_http_request_headers(request),
                                          weir_span_of(text, (size_t)(colon - text)),
                                          weir_span_of_text(colon + 1));
    }
    if (err)
        weir_msg_release(weir_http_request_msg(request));
    else
        *ret_request = request;
    return err;
}

static int send_request(weir_http_client *client, const struct options *options, const char *url,
                        struct download *download)
{
    weir_http_request *request;
    weir_buf *content = NULL;
    int err = create_request(options, url, &request);

    if (err)
        return err;
    if (options->data != NULL)
        err = weir_buf_create_from(options->data, strlen(options->data), &content);
    if (err) {
        weir_msg_release(weir_http_request_msg(request));
        return err;
    }
    weir_promise_retain(download->done); /* for on_end */
    err = weir_http_client_send(client, request, content != NULL ? weir_buf_msg(content) : NULL,
                                WEIR_HTTP_CALL_OPTIONS(.events = &events, .user_data = download),
                                NULL);
    if (err)
        weir_promise_release(download->done);
    return err;
}

static int fetch(weir_http_client *client, const struct options *options, const char *url,
                 FILE *file)
{
    struct download download = {
        .file = file, .length = -1, .shown = -1, .shows = isatty(STDERR_FILENO) != 0};
    int err = weir_promise_create(NULL, &download.done);

    if (!err) {
        err = send_request(client, options, url, &download);
        if (err)
            (void)weir_promise_fail(download.done, err, NULL);
        err = weir_promise_sync(download.done, WEIR_NEVER);
    }
    if (download.shows && download.shown >= 0)
        fprintf(stderr, "\n");
    if (download.failed)
        fprintf(stderr, "http-get: cannot write\n");
    else if (err && download.done != NULL)
        fprintf(stderr, "http-get: %s: %s\n", url, weir_promise_detail(download.done));
    else if (download.status >= 400)
        fprintf(stderr, "http-get: %s: %d %s\n", url, download.status,
                weir_http_status_text(download.status));
    weir_promise_release(download.done);
    return err ? 3 : download.status >= 400 ? 1 : 0;
}

static int fetch_all(weir_http_client *client, const struct options *options, char **urls,
                     int count)
{
    FILE *file = options->output != NULL ? fopen(options->output, "wb") : stdout;
    int worst = 0;

    if (file == NULL) {
        perror(options->output);
        return 3;
    }
    for (int i = 0; i < count; i++) {
        int result = fetch(client, options, urls[i], file);

        worst = result > worst ? result : worst;
    }
    if ((file != stdout ? fclose(file) : fflush(file)) != 0) {
        perror("http-get");
        worst = 3;
    }
    return worst;
}

int main(int argc, char **argv)
{
    struct options options = {.tls = {.program = "http-get", .tls = tls_is_available()}};
    weir_http_client *client = NULL;
    weir_tls_context *tls = NULL;
    weir_group *group = NULL;
    int count = read_options(argc, argv, &options);
    int result = 3;

    weir_log_set_level(WEIR_LOG_OFF); /* the program reports errors itself */
    if (weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group) == 0 &&
        tls_make_client(&options.tls, &tls) == 0 &&
        weir_http_client_create(
            WEIR_HTTP_CLIENT_OPTIONS(.group = group, .tls = tls,
                                     .add_tls = tls != NULL ? tls_add_client : NULL,
                                     .proxy = options.proxy,
                                     .timeout_ns = weir_seconds(options.timeout),
                                     .max_redirects = options.follows ? 10 : WEIR_OFF),
            &client) == 0)
        result = fetch_all(client, &options, argv, count);
    if (client == NULL)
        fprintf(stderr, "http-get: invalid --proxy or --ca\n");
    if (client != NULL) {
        weir_http_client_close(client);
        (void)weir_promise_sync(weir_http_client_closed(client), weir_seconds(5));
    }
    weir_http_client_release(client);
    if (group != NULL) {
        (void)weir_group_shutdown(group, 0, weir_seconds(5));
        (void)weir_group_await_termination(group, weir_seconds(5));
    }
    weir_group_release(group);
    tls_release(tls);
    return result;
}
