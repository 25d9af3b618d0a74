/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upgrades: another protocol takes a connection over. The other protocol here answers each piece of
 * bytes with the same piece in brackets.
 */
#include <weir/http_server.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/embedded.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/protocol/http/http_call.h"
#include "support/test.h"

#define UPGRADE HTTP_CALL("GET /x") "Connection: Upgrade\r\nUpgrade: brackets\r\n\r\n"

/* ---- the other protocol ---- */

static _Atomic int events_seen, drains_seen;

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *out = NULL;

    if (weir_buf_create(64, 0, &out) == 0) {
        (void)weir_buf_write_bytes(out, "[", 1);
        (void)weir_buf_write_buf(out, weir_buf_of(msg), weir_buf_readable(weir_buf_of(msg)));
        (void)weir_buf_write_bytes(out, "]", 1);
        weir_write_and_flush(ctx, weir_buf_msg(out), NULL);
    }
    weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    events_seen += event == weir_event_input_closed();
    weir_fire_event(ctx, event);
    if (event == weir_event_input_closed())
        weir_close(ctx, NULL);
}

static void on_draining(weir_ctx *ctx)
{
    drains_seen++;
    weir_close(ctx, NULL);
}

static const weir_handler brackets = {
    .name = "brackets", .read = on_read, .event = on_event, .draining = on_draining};

/* ---- routes ---- */

struct script {
    weir_http_exchange *exchange;
    weir_group *group;
    bool is_later, init_fails, no_field, is_silent;
    _Atomic int result, inits, closed_inits;
    struct call_counter called;
};

static int init(weir_channel *channel, void *user_data)
{
    struct script *script = user_data;
    int err = script->init_fails ? -EIO : 0;

    script->inits++;
    script->closed_inits += !weir_channel_is_active(channel);
    if (err == 0 && !script->is_silent)
        err = weir_pipeline_add_last(weir_channel_pipeline(channel), &brackets, NULL);
    call_counter_add(&script->called);
    return err;
}

static void upgrade(struct script *script, weir_http_exchange *exchange)
{
    if (!script->no_field)
        (void)weir_http_headers_add_text(weir_http_exchange_headers(exchange), WEIR_HTTP_UPGRADE,
                                         "brackets");
    script->result = weir_http_exchange_upgrade(exchange, init, script);
    if (script->result < 0)
        (void)weir_http_respond_text(exchange, 400, "refused");
}

static void upgrade_there(void *arg, int status)
{
    struct script *script = arg;

    (void)status;
    upgrade(script, script->exchange);
    weir_http_exchange_release(script->exchange);
}

static void on_request(weir_http_exchange *exchange, void *user_data)
{
    struct script *script = user_data;

    if (script->group == NULL && !script->is_later) {
        upgrade(script, exchange);
        return;
    }
    script->exchange = weir_http_exchange_retain(exchange);
    if (script->group != NULL)
        assert_int_equal(weir_group_execute(script->group, upgrade_there, script), 0);
}

/* ---- on an embedded channel, with filters ---- */

struct site {
    struct script script;
    weir_embedded *embedded;
    weir_http_access_log *log;
    int64_t space; /* of the socket; 0 = no limit */
    bool keeps_half_closed;
    char path[32];
};

static void open_site(struct site *site, bool is_streaming)
{
    const weir_http_route routes[] = {{"GET", "/x", on_request, &site->script, is_streaming},
                                      {"POST", "/x", on_request, &site->script},
                                      {0}};
    weir_http_router *router;
    weir_pipeline *pipeline;

    strcpy(site->path, "/tmp/weir-upgrade-XXXXXX");
    close(mkstemp(site->path));
    assert_int_equal(
        weir_http_access_log_create(WEIR_HTTP_ACCESS_LOG_OPTIONS(.path = site->path), &site->log),
        0);
    assert_int_equal(weir_http_router_create(routes, &router), 0);
    assert_int_equal(
        weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.socket_space = site->space), &site->embedded),
        0);
    pipeline = weir_embedded_pipeline(site->embedded);
    assert_int_equal(weir_http1_server_add(
                         pipeline, WEIR_HTTP1_OPTIONS(.keep_half_closed = site->keeps_half_closed)),
                     0);
    assert_int_equal(weir_http_access_log_add(pipeline, site->log), 0);
    assert_int_equal(weir_http_request_ids_add(pipeline), 0);
    assert_int_equal(weir_http_security_add(pipeline, NULL), 0);
    assert_int_equal(weir_http_cors_add(pipeline, NULL), 0);
    assert_int_equal(weir_http_compression_add(pipeline, NULL), 0);
    assert_int_equal(weir_http_router_add(pipeline, router, 0), 0);
    weir_http_router_release(router);
}

static void receive(struct site *site, const char *text)
{
    weir_buf *in;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &in), 0);
    (void)weir_embedded_write_inbound(site->embedded, weir_buf_msg(in));
}

/* What was sent since the last call. */
static const char *sent(struct site *site)
{
    static char text[4096];
    size_t length = 0;
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(site->embedded)) != NULL) {
        weir_buf *buf = weir_buf_of(msg);

        assert_true(length + weir_buf_readable(buf) < sizeof(text));
        memcpy(text + length, weir_buf_bytes(buf), weir_buf_readable(buf));
        length += weir_buf_readable(buf);
        weir_msg_release(msg);
    }
    text[length] = '\0';
    return text;
}

static void assert_pipeline(struct site *site, const char *expected)
{
    char text[256];

    weir_embedded_run(site->embedded);
    (void)weir_pipeline_dump(weir_embedded_pipeline(site->embedded), text, sizeof(text));
    assert_string_equal(text, expected);
}

static void close_site(struct site *site)
{
    (void)weir_embedded_finish(site->embedded);
    weir_embedded_release(site->embedded);
    weir_http_access_log_release(site->log);
    unlink(site->path);
    assert_true(site->script.inits <= 1);
}

TEST(upgrade, replaces_the_handlers_and_passes_the_rest_on)
{
    struct site site = {0};
    const char *text;

    open_site(&site, false);
    receive(&site, UPGRADE "rest");
    text = sent(&site);
    assert_non_null(strstr(text, "HTTP/1.1 101 Switching Protocols\r\n"));
    assert_non_null(strstr(text, "Connection: Upgrade\r\n"));
    assert_non_null(strstr(text, "Upgrade: brackets\r\n"));
    assert_null(strstr(text, "Content-Length"));
    assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n[rest]");
    assert_pipeline(&site, "head <-> brackets <-> tail");
    receive(&site, "more");
    assert_string_equal(sent(&site), "[more]");
    close_site(&site);
}

/* The other protocol sends nothing itself. */
TEST(upgrade, sends_the_101_although_the_rest_was_there)
{
    struct site site = {.script = {.is_silent = true}};

    open_site(&site, false);
    receive(&site, UPGRADE "rest");
    assert_non_null(strstr(sent(&site), "HTTP/1.1 101 Switching Protocols\r\n"));
    assert_pipeline(&site, "head <-> tail");
    weir_msg_release(weir_embedded_read_inbound(site.embedded));
    close_site(&site);
}

TEST(upgrade, works_without_a_rest_and_from_a_streaming_route)
{
    for (int is_streaming = 0; is_streaming < 2; is_streaming++) {
        struct site site = {0};

        open_site(&site, is_streaming);
        receive(&site, UPGRADE);
        assert_non_null(strstr(sent(&site), " 101 "));
        assert_pipeline(&site, "head <-> brackets <-> tail");
        receive(&site, "a");
        assert_string_equal(sent(&site), "[a]");
        close_site(&site);
    }
}

TEST(upgrade, works_later_and_holds_the_rest_until_then)
{
    struct site site = {.script = {.is_later = true}};

    open_site(&site, false);
    receive(&site, UPGRADE "rest");
    assert_string_equal(sent(&site), "");
    upgrade(&site.script, site.script.exchange);
    assert_string_equal(strstr(sent(&site), "\r\n\r\n"), "\r\n\r\n[rest]");
    assert_pipeline(&site, "head <-> brackets <-> tail");
    weir_http_exchange_release(site.script.exchange);
    close_site(&site);
}

TEST(upgrade, is_in_the_access_log)
{
    struct site site = {0};
    char line[512] = "";
    FILE *file;

    open_site(&site, false);
    receive(&site, UPGRADE "rest");
    (void)sent(&site);
    (void)weir_embedded_finish(site.embedded);
    weir_http_access_log_release(site.log); /* writes what it has */
    file = fopen(site.path, "r");
    assert_non_null(fgets(line, sizeof(line), file));
    assert_non_null(strstr(line, "\"GET /x HTTP/1.1\" 101 0"));
    assert_null(fgets(line, sizeof(line), file));
    fclose(file);
    weir_embedded_release(site.embedded);
    unlink(site.path);
}

TEST(upgrade, passes_on_the_end_of_the_input_behind_the_rest)
{
    struct site site = {.script = {.is_later = true}, .keeps_half_closed = true};

    events_seen = 0;
    open_site(&site, false);
    assert_int_equal(weir_channel_set_options(weir_embedded_channel(site.embedded),
                                              WEIR_CHANNEL_OPTIONS(.half_closure = true)),
                     0);
    receive(&site, UPGRADE "rest");
    weir_embedded_end_input(site.embedded);
    assert_int_equal(events_seen, 0);
    upgrade(&site.script, site.script.exchange);
    assert_string_equal(strstr(sent(&site), "\r\n\r\n"), "\r\n\r\n[rest]");
    assert_int_equal(events_seen, 1);
    weir_http_exchange_release(site.script.exchange);
    close_site(&site);
}

TEST(upgrade, refuses_other_requests)
{
    struct site site = {0};

    open_site(&site, false);
    receive(&site, "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_int_equal(site.script.result, -ENOTSUP);
    assert_non_null(strstr(sent(&site), " 400 "));
    receive(&site, HTTP_CALL("POST /x") "Content-Length: 1\r\n\r\na");
    assert_int_equal(site.script.result, -EINVAL);
    site.script.no_field = true;
    receive(&site, UPGRADE);
    assert_int_equal(site.script.result, -EINVAL);
    assert_non_null(strstr(sent(&site), "refused")); /* the connection still serves */
    assert_int_equal(site.script.inits, 0);
    close_site(&site);
}

TEST(upgrade, calls_init_with_a_closed_channel_if_the_connection_is_lost)
{
    struct site site = {.script = {.is_later = true}, .space = 1};

    open_site(&site, false);
    receive(&site, UPGRADE);
    upgrade(&site.script, site.script.exchange);
    assert_int_equal(site.script.result, 0);
    assert_int_equal(site.script.inits, 0);
    weir_channel_abort(weir_embedded_channel(site.embedded), NULL);
    weir_embedded_run(site.embedded);
    assert_int_equal(site.script.inits, 1);
    assert_int_equal(site.script.closed_inits, 1);
    weir_http_exchange_release(site.script.exchange);
    close_site(&site);
}

TEST(upgrade, resets_if_init_fails)
{
    struct site site = {.script = {.init_fails = true}};

    open_site(&site, false);
    receive(&site, UPGRADE "rest");
    weir_embedded_run(site.embedded);
    assert_false(weir_channel_is_open(weir_embedded_channel(site.embedded)));
    close_site(&site);
}

TEST(upgrade, survives_every_failing_allocation)
{
    for (unsigned n = 1;; n++) {
        struct site site = {0};
        bool has_failed;
        weir_buf *in;

        open_site(&site, false);
        assert_int_equal(weir_buf_create_from(UPGRADE "rest", strlen(UPGRADE "rest"), &in), 0);
        test_memory_fail_at(n);
        (void)weir_embedded_write_inbound(site.embedded, weir_buf_msg(in));
        weir_embedded_run(site.embedded);
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        (void)sent(&site);
        close_site(&site);
        if (!has_failed)
            break;
    }
}

/* ---- on sockets ---- */

static weir_http_server *start(struct host *host, struct script *script)
{
    const weir_http_route routes[] = {{"GET", "/x", on_request, script}, {0}};
    weir_http_server *server = NULL;

    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .workers = host->group),
                               &server),
        0);
    return server;
}

TEST_EACH_HOST(upgrade, works_from_another_thread)
{
    struct script script = {0};
    weir_http_server *server;
    char answer[HTTP_CALL_SIZE];
    int peer;

    drains_seen = 0;
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &script.group), 0);
    server = start(host, &script);
    peer = raw_client_connect(weir_http_server_server(server));
    raw_client_send(peer, UPGRADE "a");
    http_call_receive_one(peer, 3, answer);
    assert_contains(answer, "\r\n\r\n[a]");
    assert_true(call_counter_await(&script.called, 1));
    raw_client_send(peer, "b");
    raw_client_receive(peer, "[b]");
    assert_int_equal(weir_http_server_stop(server, weir_seconds(10)), 0);
    assert_int_equal(drains_seen, 1);
    assert_true(http_call_receive(peer, answer));
    close(peer);
    weir_http_server_release(server);
    weir_group_release(script.group);
}
