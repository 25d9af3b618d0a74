/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several hosts on one port: a certificate per name, a protocol chosen by ALPN, and a redirect for
 * clients without TLS. SIGHUP reloads the certificates under load.
 *     tls-hosts [--cert NAME=FILE ...] [--port 8443] [--io auto|epoll|uring|poll] [--threads N]
 *               [--boss-threads N]
 *
 * FILE has certificate and key, in PEM. The first is used without a name or for unknown names.
 * Without any, there is a self-signed one for localhost.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/tls.h>
#include <weir/weir.h>

#include "support/settings.h"

#define HOSTS_MAX 64

/* ---- protocols ---- */

static void on_echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo = {.name = "echo", .read = on_echo};

/* Of HTTP it knows that an empty line ends a request. Takes: line. */
static bool ends_request(weir_msg *line)
{
    bool is_empty = weir_msg_size(line) == 0;

    weir_msg_release(line);
    return is_empty;
}

static void answer(weir_ctx *ctx, const char *head, const char *body)
{
    weir_buf *buf;
    int err = weir_buf_create(256, 4096, &buf);

    if (err) {
        weir_fire_error(ctx, err, NULL);
        return;
    }
    (void)weir_buf_printf(buf, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                          head, strlen(body), body);
    weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
    weir_close(ctx, NULL);
}

static void on_secure_line(weir_ctx *ctx, weir_msg *line)
{
    const weir_tls_handshake *handshake;
    char body[512] = "";
    weir_msg *msg;

    if (!ends_request(line))
        return;
    msg = weir_tls_read_handshake(weir_ctx_pipeline(ctx));
    if (msg != NULL) {
        handshake = weir_tls_handshake_of(msg);
        (void)snprintf(body, sizeof(body), "this is %s by %s\n",
                       weir_tls_handshake_server_name(handshake),
                       weir_tls_handshake_version(handshake));
    }
    weir_msg_release(msg);
    answer(ctx, "200 OK", body);
}

static void on_plain_line(weir_ctx *ctx, weir_msg *line)
{
    if (ends_request(line))
        answer(ctx, "426 Upgrade Required\r\nUpgrade: TLS/1.3", "come back with TLS\n");
}

static const weir_handler secure = {.name = "secure", .read = on_secure_line};
static const weir_handler plain = {.name = "plain", .read = on_plain_line};

static int add_http(weir_pipeline *pipeline, const weir_handler *handler)
{
    int err = weir_lines_add(pipeline, NULL);

    return err ? err : weir_pipeline_add_last(pipeline, handler, NULL);
}

/* ---- protocol selection ---- */

/* doc:begin alpn */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);
    weir_pipeline *pipeline = weir_ctx_pipeline(ctx);
    int err = 0;

    if (handshake != NULL && weir_tls_handshake_result(handshake) == 0) {
        if (strcmp(weir_tls_handshake_alpn(handshake), "echo") == 0)
            err = weir_pipeline_add_last(pipeline, &echo, NULL);
        else
            err = add_http(pipeline, &secure);
    }
    if (err)
        weir_fire_error(ctx, err, NULL); /* which closes the channel */
    weir_fire_event(ctx, event);
}

static const weir_handler by_alpn = {.name = "by-alpn", .event = on_event};
/* doc:end */

/* doc:begin detect */
static int init_detected(weir_channel *channel, bool is_tls, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);

    (void)user_data;
    return is_tls ? weir_pipeline_add_last(pipeline, &by_alpn, NULL) : add_http(pipeline, &plain);
}

static int init_child(weir_channel *channel, void *tls)
{
    return weir_tls_detect_add(weir_channel_pipeline(channel),
                               WEIR_TLS_DETECT_OPTIONS(.context = tls, .init = init_detected));
}
/* doc:end */

/* ---- certificates ---- */

struct hosts {
    weir_tls_context *contexts[HOSTS_MAX]; /* the first knows the names of the others */
    size_t count;
};

/* doc:begin names */
static int add_host(struct hosts *hosts, char *text)
{
    char *file = strchr(text, '=');
    weir_tls_context *tls;
    int err;

    if (file == NULL || hosts->count == HOSTS_MAX) {
        fprintf(stderr, "tls-hosts: --cert NAME=FILE, at most %d times\n", HOSTS_MAX);
        exit(2);
    }
    *file++ = '\0';
    err = weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = file, .alpn = "http/1.1,echo"), &tls);
    if (err)
        return err;
    hosts->contexts[hosts->count++] = tls;
    return weir_tls_context_add_name(hosts->contexts[0], text, tls);
}
/* doc:end */

static int read_hosts(int *argc, char **argv, struct hosts *hosts)
{
    char *text;
    int err = 0;

    while (!err && (text = settings_take(argc, argv, "--cert")) != NULL)
        err = add_host(hosts, text);
    if (err || hosts->count > 0)
        return err;
    err = weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.self_signed_for = "localhost", .alpn = "http/1.1,echo"),
        &hosts->contexts[0]);
    hosts->count = err ? 0 : 1;
    return err;
}

/* doc:begin reload */
static void on_hangup(weir_signals *signals, const weir_signal *signal, void *user_data)
{
    const struct hosts *hosts = user_data;
    size_t failed = 0;

    (void)signals;
    (void)signal;
    for (size_t i = 0; i < hosts->count; i++) {
        if (weir_tls_context_reload(hosts->contexts[i]) == 0)
            continue;
        printf("%s\n", weir_tls_reason()); /* a certificate that cannot be read is not replaced */
        failed++;
    }
    if (failed == 0)
        printf("reloaded\n");
    (void)fflush(stdout);
}
/* doc:end */

static void release_hosts(struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        weir_tls_context_release(hosts->contexts[i]);
}

int main(int argc, char **argv)
{
    struct hosts hosts = {.count = 0};
    int err = read_hosts(&argc, argv, &hosts);
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 8443);
    weir_group *boss = NULL, *workers = NULL, *clerk = NULL;
    weir_signals *signals = NULL;
    weir_server *server = NULL;

    if (err)
        fprintf(stderr, "tls-hosts: --cert NAME=FILE: %s\n", weir_tls_reason());
    if (!err) /* files are read on another thread */
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &clerk);
    if (!err)
        err = weir_signals_create(
            weir_group_next(clerk),
            WEIR_SIGNALS_OPTIONS(.numbers = {SIGHUP}, .received = on_hangup, .user_data = &hosts),
            &signals);
    if (!err)
        err = settings_make_groups(&settings, &boss, &workers);
    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings.address,
                                .acceptors = settings.boss_threads, .init_child = init_child,
                                .user_data = hosts.contexts[0]),
            &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "tls-hosts: %s\n", weir_error_text(err));
    weir_server_release(server);
    weir_group_release(workers);
    weir_group_release(boss);
    weir_signals_release(signals);
    weir_group_release(clerk); /* joins its thread */
    release_hosts(&hosts);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
