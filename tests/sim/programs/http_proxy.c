/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP reverse proxy between impatient clients and an origin that closes idle connections,
 * aborts responses and dies. The proxy is examples/reverse-proxy.
 *
 * The content of a message is a function of the request's number, so each byte shows whose it is. A
 * call ends exactly once: with the right response to the last byte, with an error of a server, or
 * with an error. The origin takes no truncated content for a whole one, and sees no POST twice.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http_client.h>
#include <weir/http_server.h>

#include "reverse-proxy/forward.h"
#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define ORIGIN "http://10.0.0.1:80"
#define PROXY "http://10.0.0.2:80"
#define CLIENTS 2
#define REQUESTS 5 /* of a client */
#define REQUESTS_MAX 64
#define PIECE_MAX 3000
#define TRIES 100

/* ---- requests ---- */

struct request {
    unsigned number;
    bool is_post, is_streamed, is_chunked, reads_on_demand;
    size_t up, down; /* bytes of content */
    int64_t cancel_ns;

    size_t sent, received; /* by the client */
    bool has_head, is_final;
    int status;
    unsigned ended;
    unsigned seen, completed; /* by the origin */
};

static struct {
    struct request requests[REQUESTS_MAX + 1];
    unsigned count;
    int64_t origin_idle_ns, proxy_idle_ns;
    unsigned succeeded;
} world;

static unsigned draw(unsigned limit)
{
    return (unsigned)weir_sim_random(weir_sim_current(), limit);
}

static uint8_t byte_at(unsigned number, size_t position, bool is_response)
{
    return (uint8_t)(number * 37 + position * 7 + (position >> 8) + (is_response ? 100 : 0));
}

static weir_msg *create_piece(unsigned number, size_t from, size_t length, bool is_response)
{
    weir_buf *buf;
    uint8_t bytes[PIECE_MAX];

    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_at(number, from + i, is_response);
    return weir_buf_create_from(bytes, length, &buf) == 0 ? weir_buf_msg(buf) : NULL;
}

/* A buffer or a composite. Takes the message, and returns its length. */
static size_t check_piece(unsigned number, size_t from, weir_msg *msg, bool is_response)
{
    weir_buf *buf = weir_buf_of(msg);
    size_t length = 0;

    if (buf == NULL) {
        weir_sim_fail(weir_sim_current(), "content that is not a buffer");
    } else {
        const uint8_t *bytes = weir_buf_bytes(buf);

        length = weir_buf_readable(buf);
        for (size_t i = 0; i < length; i++)
            if (bytes[i] != byte_at(number, from + i, is_response)) {
                weir_sim_fail(weir_sim_current(), "request %u: a wrong byte at %zu of the %s",
                              number, from + i, is_response ? "response" : "request");
                break;
            }
    }
    weir_msg_release(msg);
    return length;
}

static size_t draw_size(void)
{
    static const unsigned limits[] = {1, 100, 100, 3000, 10000, 80000};

    return draw(limits[draw(6)]);
}

/* ---- the origin ---- */

struct answer {
    weir_http_exchange *exchange;
    struct request *request;
    size_t received, sent;
    size_t stop_at; /* aborts there */
    bool has_begun, is_over;
};

static void end_answer(struct answer *answer)
{
    weir_http_exchange *exchange = answer->exchange;

    if (answer->is_over)
        return;
    answer->is_over = true;
    weir_http_exchange_on_lost(exchange, NULL, NULL);
    weir_http_exchange_on_writable(exchange, NULL, NULL);
    free(answer);
    weir_http_exchange_release(exchange);
}

static void on_lost(weir_http_exchange *exchange, void *user_data)
{
    (void)exchange;
    end_answer(user_data);
}

static void send_answer(weir_http_exchange *exchange, void *user_data)
{
    struct answer *answer = user_data;
    const struct request *request = answer->request;

    while (answer->sent < request->down && weir_http_exchange_is_writable(exchange)) {
        size_t length = 1 + draw(PIECE_MAX);
        weir_msg *piece;

        if (answer->sent >= answer->stop_at) {
            weir_http_exchange_abort(exchange);
            end_answer(answer);
            return;
        }
        length = length < request->down - answer->sent ? length : request->down - answer->sent;
        piece = create_piece(request->number, answer->sent, length, true);
        if (piece == NULL || weir_http_exchange_write(exchange, piece, NULL) < 0) {
            weir_http_exchange_abort(exchange);
            end_answer(answer);
            return;
        }
        answer->sent += length;
    }
    if (answer->sent < request->down) {
        weir_http_exchange_on_writable(exchange, send_answer, answer);
    } else {
        if (weir_http_exchange_end(exchange, NULL) < 0)
            weir_http_exchange_abort(exchange);
        end_answer(answer);
    }
}

static void begin_answer(struct answer *answer)
{
    weir_http_exchange *exchange = answer->exchange;
    weir_http_headers *headers = weir_http_exchange_headers(exchange);
    bool is_chunked = draw(2) == 0;
    char text[16];
    int err;

    (void)snprintf(text, sizeof(text), "%u", answer->request->number);
    err = weir_http_headers_add_named(headers, weir_span_of_text("X-Id"), weir_span_of_text(text));
    if (err == 0 && draw(6) == 0)
        err = weir_http_headers_add_text(headers, WEIR_HTTP_CONNECTION, "close");
    if (err == 0)
        err = weir_http_exchange_begin(
            exchange, 200, is_chunked ? WEIR_HTTP_UNKNOWN_LENGTH : (int64_t)answer->request->down);
    if (err < 0) {
        (void)weir_http_respond_error(exchange, 503, NULL);
        end_answer(answer);
    } else {
        send_answer(exchange, answer);
    }
}

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct answer *answer = user_data;
    struct request *request = answer->request;

    if (msg != NULL) {
        answer->received += check_piece(request->number, answer->received, msg, false);
        weir_http_exchange_read(exchange);
    } else if (err < 0) {
        end_answer(answer);
    } else {
        if (answer->received != request->up)
            weir_sim_fail(weir_sim_current(), "request %u arrived with %zu of %zu bytes",
                          request->number, answer->received, request->up);
        request->completed++;
        begin_answer(answer);
    }
}

static struct request *request_of(const weir_http_exchange *exchange)
{
    const weir_http_headers *headers =
        weir_http_request_headers(weir_http_exchange_request(exchange));
    weir_span id = weir_http_headers_get_named(headers, "X-Id");
    weir_span path = weir_http_request_path(weir_http_exchange_request(exchange));
    unsigned number = 0;

    for (size_t i = 0; i < id.length; i++)
        number = number * 10 + (unsigned)(id.data[i] - '0');
    if (number == 0 || number > world.count || path.length != id.length + 1 ||
        memcmp(path.data + 1, id.data, id.length) != 0) {
        weir_sim_fail(weir_sim_current(), "the origin got a request that was never sent");
        return NULL;
    }
    return &world.requests[number];
}

static void serve_request(weir_http_exchange *exchange, void *user_data)
{
    struct request *request = request_of(exchange);
    struct answer *answer = calloc(1, sizeof(*answer));

    (void)user_data;
    if (request == NULL || answer == NULL) {
        free(answer);
        return;
    }
    weir_sim_note(weir_sim_current(), "request %u at the origin", request->number);
    if (++request->seen > 1 && request->is_post)
        weir_sim_fail(weir_sim_current(), "POST %u reached the origin twice", request->number);
    answer->exchange = weir_http_exchange_retain(exchange);
    answer->request = request;
    answer->stop_at = draw(20) == 0 && !request->is_final ? draw(50000) : SIZE_MAX;
    weir_http_exchange_on_lost(exchange, on_lost, answer);
    if (weir_http_request_content_length(weir_http_exchange_request(exchange)) == 0) {
        on_content(exchange, NULL, 0, answer);
    } else {
        weir_http_exchange_on_content(exchange, on_content, answer);
        weir_http_exchange_read(exchange);
    }
}

static int serve_origin(void)
{
    static const weir_http_route routes[] = {
        {.method = "*", .path = "/{path*}", .handler = serve_request, .streaming = true},
        {.method = NULL}};
    weir_http_server *server = NULL;
    int err = weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.address = "0.0.0.0:80", .routes = routes, .threads = 1,
                                 .init_connection = sim_init_watch,
                                 .http1 =
                                     WEIR_HTTP1_OPTIONS(.idle_timeout_ns = world.origin_idle_ns)),
        &server);

    if (err == 0)
        err = weir_http_server_run(server);
    weir_http_server_release(server);
    return err;
}

/* Starting may fail while faults happen. */
static int repeat(int (*serve)(void))
{
    int err = 0;

    for (int tries = 0; tries < TRIES; tries++) {
        err = serve();
        if (err == 0 || weir_sim_is_dying())
            return err;
        weir_sim_sleep(weir_ms(20));
    }
    return err;
}

static int origin_main(void *arg)
{
    (void)arg;
    return repeat(serve_origin);
}

/* ---- the proxy ---- */

static int init_proxied(weir_channel *channel, void *user_data)
{
    int err = sim_watch(weir_channel_pipeline(channel));

    return err < 0 ? err : forward_init_connection(channel, user_data);
}

static int run_proxy(struct forwarder *forwarder, weir_group *boss, weir_group *workers)
{
    const weir_http_route routes[] = {{.method = "*",
                                       .path = "/{path*}",
                                       .handler = forward,
                                       .user_data = forwarder,
                                       .streaming = true,
                                       .encoded_slashes = true},
                                      {.method = NULL}};
    weir_http_server *server = NULL;
    int err = weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.address = "0.0.0.0:80", .routes = routes, .boss = boss,
                                 .workers = workers, .init_connection = init_proxied,
                                 .http1 =
                                     WEIR_HTTP1_OPTIONS(.idle_timeout_ns = world.proxy_idle_ns)),
        &server);

    if (err == 0)
        err = weir_http_server_run(server);
    weir_http_server_release(server);
    return err;
}

static int serve_proxy(void)
{
    struct forwarder *forwarder = calloc(1, sizeof(*forwarder));
    weir_group *boss = NULL, *workers = NULL;
    int err = forwarder != NULL ? 0 : -ENOMEM;

    if (err == 0 && sim_has_boss())
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "boss", .threads = 1), &boss);
    if (err == 0)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "proxy", .threads = 2), &workers);
    if (err == 0) {
        (void)upstreams_add(&forwarder->upstreams, ORIGIN);
        forwarder->fall = 3;
        err = weir_http_client_create(
            WEIR_HTTP_CLIENT_OPTIONS(.group = workers, .max_connections = 4,
                                     .connect_timeout_ns = weir_seconds(2),
                                     .head_timeout_ns = weir_seconds(2),
                                     .progress_timeout_ns = weir_seconds(2),
                                     .max_redirects = WEIR_OFF, .user_agent = "",
                                     .no_decompression = true, .init_connection = sim_init_watch),
            &forwarder->client);
    }
    if (err == 0)
        err = run_proxy(forwarder, boss, workers);
    if (forwarder != NULL)
        weir_http_client_release(forwarder->client);
    weir_group_release(workers);
    weir_group_release(boss);
    free(forwarder);
    return err;
}

static int proxy_main(void *arg)
{
    (void)arg;
    return repeat(serve_proxy);
}

/* ---- the clients ---- */

struct batch {
    weir_promise *done;
    unsigned left;
};

struct call {
    struct request *request;
    struct batch *batch;
};

static void on_head(weir_http_call *call, weir_http_response *response, void *user_data)
{
    struct request *request = ((struct call *)user_data)->request;
    weir_span id = weir_http_headers_get_named(weir_http_response_headers(response), "X-Id");
    char text[16];

    if (request->has_head)
        weir_sim_fail(weir_sim_current(), "request %u has two heads", request->number);
    request->has_head = true;
    request->status = weir_http_response_status(response);
    (void)snprintf(text, sizeof(text), "%u", request->number);
    if (request->status == 200 &&
        (id.length != strlen(text) || memcmp(id.data, text, id.length) != 0))
        weir_sim_fail(weir_sim_current(), "request %u got the response of %.*s", request->number,
                      (int)id.length, (const char *)id.data);
    if (request->status != 200 && request->status < 500)
        weir_sim_fail(weir_sim_current(), "request %u was answered with %d", request->number,
                      request->status);
    if (request->reads_on_demand)
        weir_http_call_read(call);
}

static void on_response_content(weir_http_call *call, weir_msg *msg, void *user_data)
{
    struct request *request = ((struct call *)user_data)->request;

    if (request->status == 200)
        request->received += check_piece(request->number, request->received, msg, true);
    else
        weir_msg_release(msg);
    if (request->received > request->down)
        weir_sim_fail(weir_sim_current(), "request %u got %zu bytes of %zu", request->number,
                      request->received, request->down);
    if (request->reads_on_demand)
        weir_http_call_read(call);
}

static void on_writable(weir_http_call *call, void *user_data)
{
    struct request *request = ((struct call *)user_data)->request;

    if (request->sent >= request->up)
        return;
    while (request->sent < request->up && weir_http_call_is_writable(call)) {
        size_t length = 1 + draw(PIECE_MAX);
        weir_msg *piece;

        length = length < request->up - request->sent ? length : request->up - request->sent;
        piece = create_piece(request->number, request->sent, length, false);
        if (piece == NULL || weir_http_call_write(call, piece, NULL) < 0) {
            weir_http_call_cancel(call);
            return;
        }
        request->sent += length;
    }
    if (request->sent == request->up && weir_http_call_end(call, NULL) < 0)
        weir_http_call_cancel(call);
}

static void end_call(struct call *call)
{
    struct batch *batch = call->batch;

    free(call);
    if (--batch->left == 0)
        (void)weir_promise_succeed(batch->done, NULL);
}

static void on_end(weir_http_call *call, int err, const char *detail, void *user_data)
{
    struct request *request = ((struct call *)user_data)->request;
    weir_sim *sim = weir_sim_current();

    (void)call;
    weir_sim_note(sim, "request %u ends: %d %d %s", request->number, err, request->status,
                  err < 0 && detail != NULL ? detail : "");
    if (++request->ended > 1)
        weir_sim_fail(sim, "request %u ended twice", request->number);
    if (err == 0 && !request->has_head)
        weir_sim_fail(sim, "request %u succeeded without a response", request->number);
    if (err == 0 && request->status == 200) {
        if (request->received != request->down)
            weir_sim_fail(sim, "the response to %u ended after %zu of %zu bytes", request->number,
                          request->received, request->down);
        if (request->completed == 0)
            weir_sim_fail(sim, "request %u was answered before it arrived", request->number);
        world.succeeded++;
    }
    end_call(user_data);
}

static const weir_http_call_events events = {
    .head = on_head, .content = on_response_content, .writable = on_writable, .end = on_end};

static struct request *draw_request(bool is_final)
{
    struct request *request = &world.requests[++world.count];

    *request = (struct request){
        .number = world.count, .is_final = is_final, .down = draw_size(), .cancel_ns = -1};
    if (is_final)
        return request;
    request->is_post = draw(2) == 0;
    request->up = request->is_post ? draw_size() : 0;
    request->is_streamed = request->up > 0 && (draw(2) == 0 || request->up > PIECE_MAX);
    request->is_chunked = draw(2) == 0;
    request->reads_on_demand = draw(2) == 0;
    request->cancel_ns = draw(12) == 0 ? (int64_t)draw((unsigned)weir_ms(3)) : -1;
    return request;
}

static int create_request(const struct request *request, weir_http_request **ret_request)
{
    char url[64], id[16];
    int err;

    (void)snprintf(url, sizeof(url), PROXY "/%u", request->number);
    (void)snprintf(id, sizeof(id), "%u", request->number);
    err = weir_http_request_create(request->is_post ? "POST" : "GET", url, ret_request);
    if (err < 0)
        return err;
    err = weir_http_headers_add_named(weir_http_request_headers(*ret_request),
                                      weir_span_of_text("X-Id"), weir_span_of_text(id));
    if (err == 0 && request->is_streamed)
        err = weir_http_request_set_content_length(
            *ret_request, request->is_chunked ? WEIR_HTTP_UNKNOWN_LENGTH : (int64_t)request->up);
    if (err < 0)
        weir_msg_release(weir_http_request_msg(*ret_request));
    return err;
}

static int send_request(weir_http_client *client, struct batch *batch, struct request *request)
{
    weir_http_request *head = NULL;
    weir_http_call *sent = NULL;
    weir_msg *content = NULL;
    struct call *call = calloc(1, sizeof(*call));
    int err = call != NULL ? create_request(request, &head) : -ENOMEM;

    if (err == 0 && request->up > 0 && !request->is_streamed) {
        content = create_piece(request->number, 0, request->up, false);
        if (content == NULL) {
            weir_msg_release(weir_http_request_msg(head));
            err = -ENOMEM;
        }
    }
    if (err < 0) {
        free(call);
        return err;
    }
    *call = (struct call){.request = request, .batch = batch};
    batch->left++;
    err = weir_http_client_send(client, head, content,
                                WEIR_HTTP_CALL_OPTIONS(.events = &events, .user_data = call,
                                                       .stream_content = request->is_streamed,
                                                       .read_on_demand = request->reads_on_demand,
                                                       .timeout_ns = weir_seconds(5)),
                                &sent);
    if (err < 0) {
        batch->left--;
        free(call);
        return err;
    }
    if (request->cancel_ns >= 0) {
        weir_sim_sleep(request->cancel_ns);
        weir_http_call_cancel(sent);
    }
    weir_http_call_release(sent);
    return 0;
}

/* Some requests at the same time. */
static int send_batch(weir_http_client *client, unsigned count, bool is_final)
{
    struct batch batch = {.left = 1}; /* until all are sent */
    int err = weir_promise_create(NULL, &batch.done);

    if (err < 0)
        return err;
    while (count-- > 0 && world.count < REQUESTS_MAX)
        (void)send_request(client, &batch, draw_request(is_final));
    if (--batch.left > 0)
        err = weir_promise_sync(batch.done, WEIR_NEVER);
    weir_promise_release(batch.done);
    return err;
}

static int create_client(weir_http_client **ret_client, weir_group **ret_group)
{
    int err = -ENOMEM;

    for (int tries = 0; tries < TRIES && err < 0; tries++) {
        if (tries > 0)
            weir_sim_sleep(weir_ms(10));
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), ret_group);
        if (err < 0)
            continue;
        err = weir_http_client_create(
            WEIR_HTTP_CLIENT_OPTIONS(.group = *ret_group, .max_connections = 2, .user_agent = "sim",
                                     .init_connection = sim_init_watch),
            ret_client);
        if (err < 0)
            sim_end_group(*ret_group);
    }
    return err;
}

static int client_main(void *arg)
{
    weir_http_client *client = NULL;
    weir_group *group = NULL;
    bool is_final = arg != NULL;
    int err = create_client(&client, &group);

    if (err < 0)
        return err;
    if (is_final) {
        unsigned before = world.succeeded;

        for (int tries = 0; tries < 5 && world.succeeded == before; tries++) {
            if (tries > 0)
                weir_sim_sleep(weir_seconds(1));
            (void)send_batch(client, 1, true);
        }
        if (world.succeeded == before)
            weir_sim_fail(weir_sim_current(), "nothing works after all faults have ended");
    }
    for (unsigned left = is_final ? 0 : REQUESTS; left > 0;) {
        unsigned count = 1 + draw(3);

        count = count < left ? count : left;
        left -= count;
        (void)send_batch(client, count, false);
        if (draw(2) == 0)
            weir_sim_sleep((int64_t)draw((unsigned)weir_ms(25)));
    }
    weir_http_client_release(client);
    sim_end_group(group);
    return 0;
}

/* ---- the world ---- */

static void check_end(weir_sim *sim, bool at_end, void *arg)
{
    (void)arg;
    for (unsigned i = 1; at_end && i <= world.count; i++)
        if (world.requests[i].has_head && world.requests[i].ended == 0)
            weir_sim_fail(sim, "request %u never ended", i);
}

static int start_all(weir_sim *sim, weir_sim_process **servers, weir_sim_process **clients,
                     weir_sim_host **ret_host)
{
    weir_sim_host *hosts[CLIENTS + 2] = {0};
    int err = sim_create_hosts(sim, hosts, CLIENTS + 2);
    if (err == 0)
        err = weir_sim_start(hosts[0], "origin", origin_main, NULL, &servers[0]);
    if (err == 0)
        err = weir_sim_start(hosts[1], "proxy", proxy_main, NULL, &servers[1]);
    for (unsigned i = 0; i < 2 && err == 0; i++)
        weir_sim_restart(servers[i], weir_ms(10) + (int64_t)draw((unsigned)weir_ms(40)));
    weir_sim_sleep(weir_ms(2));
    for (unsigned i = 0; i < CLIENTS && err == 0; i++)
        err = weir_sim_start(hosts[i + 2], "client", client_main, NULL, &clients[i]);
    *ret_host = hosts[2];
    return err;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_process *servers[2], *clients[CLIENTS], *final;
    weir_sim_host *host;
    int err;

    (void)arg;
    memset(&world, 0, sizeof(world));
    world.origin_idle_ns = weir_ms(4) + (int64_t)draw((unsigned)weir_ms(16));
    world.proxy_idle_ns = weir_ms(4) + (int64_t)draw((unsigned)weir_ms(16));
    err = weir_sim_check(sim, check_end, NULL);
    if (err == 0)
        err = start_all(sim, servers, clients, &host);
    for (unsigned kills = draw(3); kills > 0 && err == 0; kills--) {
        weir_sim_sleep((int64_t)draw((unsigned)weir_ms(30)));
        weir_sim_kill(servers[draw(2)]);
    }
    for (unsigned i = 0; i < CLIENTS && err == 0; i++)
        err = weir_sim_join(clients[i]);
    weir_sim_calm(sim, true);
    if (err == 0)
        err = weir_sim_start(host, "final", client_main, &world, &final);
    if (err == 0)
        err = weir_sim_join(final);
    for (unsigned i = 2; i-- > 0 && err == 0;) {
        weir_sim_signal(servers[i], SIGTERM);
        err = weir_sim_join(servers[i]);
    }
    return err;
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed, SIM_TCP_KINDS, options);
    options->max_outage_ns = weir_ms(500);
}

SIM_PROGRAM(http_proxy, "an HTTP reverse proxy with keep-alive", configure, run)
