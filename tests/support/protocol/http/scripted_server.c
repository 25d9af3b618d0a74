/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/scripted_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/error.h>
#include <weir/pipeline.h>

#include "support/test.h"

#define MAX_REQUEST (4 << 20)

struct session {
    struct scripted_server *server;
    weir_channel *channel;
    char *bytes;
    size_t length;
    struct session *next;
};

static int init(void *state, const void *options)
{
    struct session *session = state;

    session->server = *(struct scripted_server *const *)options;
    session->bytes = malloc(MAX_REQUEST + 1);
    return session->bytes != NULL ? 0 : -ENOMEM;
}

static void deinit(void *state)
{
    struct session *session = state;

    free(session->bytes);
}

/* ---- requests ---- */

/* The length of the first request; 0 if it is not complete. */
static size_t request_length(struct session *session, bool at_head)
{
    const char *end, *field;
    size_t head;

    session->bytes[session->length] = '\0';
    end = strstr(session->bytes, "\r\n\r\n");
    if (end == NULL)
        return 0;
    head = (size_t)(end + 4 - session->bytes);
    if (at_head)
        return head;
    field = strcasestr(session->bytes, "\r\ncontent-length:");
    if (field != NULL && field < end) {
        head += strtoul(field + 17, NULL, 10);
        return session->length >= head ? head : 0;
    }
    field = strcasestr(session->bytes, "\r\ntransfer-encoding: chunked");
    if (field == NULL || field > end)
        return head;
    end = memmem(session->bytes + head - 2, session->length - head + 2, "\r\n0\r\n", 5);
    end = end != NULL ? strstr(end + 3, "\r\n\r\n") : NULL; /* behind trailers */
    return end != NULL ? (size_t)(end + 4 - session->bytes) : 0;
}

static void send_reply(weir_ctx *ctx, const struct scripted_reply *reply)
{
    size_t length = reply->length > 0 ? reply->length : strlen(reply->text);
    weir_buf *buf;

    for (size_t i = 0; length > 0 && i <= reply->repeats; i++) {
        if (weir_buf_create_from(reply->text, length, &buf) < 0) {
            weir_channel_abort(weir_ctx_channel(ctx), NULL);
            return;
        }
        weir_write(ctx, weir_buf_msg(buf), NULL);
    }
    weir_flush(ctx);
}

static void close_all(struct scripted_server *server)
{
    struct session *next;

    for (struct session *session = server->first; session != NULL; session = next) {
        next = session->next;
        weir_channel_close(session->channel, NULL);
    }
}

static void act(weir_ctx *ctx, struct scripted_server *server)
{
    const struct scripted_reply *reply = &server->replies[server->next++];

    if (server->replies[server->next].text == NULL)
        server->next = 0;
    send_reply(ctx, reply);
    if (reply->action == SCRIPTED_CLOSE)
        weir_close(ctx, NULL);
    if (reply->action == SCRIPTED_RESET) {
        (void)weir_channel_set_options(weir_ctx_channel(ctx),
                                       WEIR_CHANNEL_OPTIONS(.reset_on_close = true));
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
    }
    if (reply->action == SCRIPTED_CLOSE_ALL)
        close_all(server);
}

/* ---- events ---- */

static void on_active(weir_ctx *ctx)
{
    struct session *session = weir_ctx_state(ctx);
    struct scripted_server *server = session->server;

    session->channel = weir_ctx_channel(ctx);
    session->next = server->first;
    server->first = session;
    atomic_fetch_add(&server->connections, 1);
    if (server->replies[server->next].at_once)
        act(ctx, server);
}

static void on_removed(weir_ctx *ctx)
{
    struct session *session = weir_ctx_state(ctx);

    for (struct session **link = (struct session **)&session->server->first; *link != NULL;
         link = &(*link)->next)
        if (*link == session) {
            *link = session->next;
            break;
        }
}

static void note(struct scripted_server *server, const char *bytes, size_t length)
{
    server->last_length = length;
    if (length >= sizeof(server->last))
        length = sizeof(server->last) - 1;
    memcpy(server->last, bytes, length);
    server->last[length] = '\0';
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct session *session = weir_ctx_state(ctx);
    struct scripted_server *server = session->server;
    weir_buf *buf = weir_buf_of(msg);
    size_t length = weir_buf_readable(buf);

    if (session->length + length > MAX_REQUEST)
        length = MAX_REQUEST - session->length;
    memcpy(session->bytes + session->length, weir_buf_bytes(buf), length);
    session->length += length;
    weir_msg_release(msg);
    while (!weir_ctx_is_removed(ctx) &&
           (length = request_length(session, server->replies[server->next].at_head)) > 0) {
        note(server, session->bytes, length);
        session->length -= length;
        memmove(session->bytes, session->bytes + length, session->length);
        atomic_fetch_add(&server->requests, 1);
        act(ctx, server);
    }
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_close(ctx, NULL);
}

static const weir_handler handler = {
    .name = "scripted",
    .state_size = sizeof(struct session),
    .init = init,
    .deinit = deinit,
    .active = on_active,
    .removed = on_removed,
    .read = on_read,
    .error = on_error,
};

static int init_child(weir_channel *channel, void *user_data)
{
    struct scripted_server *server = user_data;
    int err = server->init != NULL ? server->init(channel, user_data) : 0;

    return err < 0 ? err
                   : weir_pipeline_add_last(weir_channel_pipeline(channel), &handler, &server);
}

void scripted_server_open_with(struct scripted_server *server, struct host *host,
                               const struct scripted_reply *replies, weir_init_fn *init_fn)
{
    weir_address address;

    memset(server, 0, sizeof(*server));
    server->host = host;
    server->replies = replies;
    server->init = init_fn;
    assert_int_equal(
        weir_server_start(
            WEIR_SERVER_OPTIONS(.workers = host->group, .address = "127.0.0.1:0",
                                .init_child = init_child, .user_data = server,
                                .child_options =
                                    WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(200))),
            &server->server),
        0);
    assert_int_equal(weir_channel_local_address(weir_server_listener(server->server, 0), &address),
                     0);
    (void)weir_address_format(&address, server->address, sizeof(server->address));
}

void scripted_server_open(struct scripted_server *server, struct host *host,
                          const struct scripted_reply *replies)
{
    scripted_server_open_with(server, host, replies, NULL);
}

void scripted_server_close(struct scripted_server *server)
{
    weir_server_close(server->server);
    host_end(server->host); /* its connections use this struct */
    weir_server_release(server->server);
}

char *scripted_server_url(const struct scripted_server *server, const char *scheme,
                          const char *path, char url[256])
{
    (void)snprintf(url, 256, "%s://%s%s", scheme, server->address, path);
    return url;
}
