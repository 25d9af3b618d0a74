/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping a server under load: every request that reached a handler is answered, and the answer
 * arrives. Clients count whole responses, handlers count calls; after the stop they are equal.
 */
#include <weir/http_server.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/clock.h>

#include "support/executor/call_counter.h"
#include "support/loop/host.h"
#include "support/protocol/http/http_call.h"

#define CLIENTS 6
#define DEPTH 8 /* requests that a client sends at once, if it pipelines */
#define BODY "0123456789"

static struct call_counter handled;

static void respond_there(void *arg, int status)
{
    (void)status;
    (void)weir_http_respond_text(arg, 200, BODY);
    weir_http_exchange_release(arg);
}

static void on_request(weir_http_exchange *exchange, void *group)
{
    call_counter_add(&handled);
    if (group == NULL)
        (void)weir_http_respond_text(exchange, 200, BODY);
    else if (weir_group_execute(group, respond_there, weir_http_exchange_retain(exchange)) < 0)
        weir_http_exchange_release(exchange);
}

struct client {
    weir_address address;
    const char *path;
    int depth;
    unsigned received;  /* responses */
    bool is_incomplete; /* the connection ended in the middle of one */
};

/* The number of whole responses in a text, and where the last one ends. All have the same body. */
static unsigned count_responses(const char *text, const char **ret_end)
{
    unsigned count = 0;
    const char *at;

    for (*ret_end = text; (at = strstr(*ret_end, "\r\n\r\n" BODY)) != NULL; count++)
        *ret_end = at + strlen("\r\n\r\n" BODY);
    return count;
}

/* Sends `depth` requests, and receives the responses, until the connection ends. */
static void *run_client(void *arg)
{
    struct client *client = arg;
    int peer = socket(weir_address_family(&client->address), SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {.tv_sec = 10};
    char requests[DEPTH * 128] = "", text[16384];
    size_t have = 0;
    ssize_t count = 1;

    (void)setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    for (int i = 0; i < client->depth; i++) {
        strcat(requests, "GET ");
        strcat(requests, client->path);
        strcat(requests, " HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    if (connect(peer, weir_address_sockaddr(&client->address), client->address.length) < 0)
        count = 0;
    while (count > 0) {
        int missing = client->depth;

        (void)send(peer, requests, strlen(requests), MSG_NOSIGNAL);
        while (missing > 0) { /* also after a failed send: responses may be on their way */
            const char *end;
            unsigned whole;

            count = recv(peer, text + have, sizeof(text) - 1 - have, 0);
            if (count < 0 && errno == EINTR)
                continue;
            if (count <= 0)
                break;
            have += (size_t)count;
            text[have] = '\0';
            whole = count_responses(text, &end);
            client->received += whole;
            missing -= (int)whole;
            have -= (size_t)(end - text);
            memmove(text, end, have + 1);
        }
    }
    client->is_incomplete = have > 0;
    close(peer);
    return NULL;
}

static void drain(struct host *host, int depth, bool is_elsewhere)
{
    weir_group *group = NULL;
    weir_http_route routes[] = {{"GET", "/", on_request}, {0}};
    struct client clients[CLIENTS];
    pthread_t threads[CLIENTS];
    weir_http_server *server = NULL;
    unsigned received = 0;

    handled = (struct call_counter){0};
    if (is_elsewhere)
        assert_int_equal(
            weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &group), 0);
    routes[0].user_data = group;
    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .workers = host->group),
                               &server),
        0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.path = "/", .depth = depth};
        assert_int_equal(
            weir_channel_local_address(weir_server_listener(weir_http_server_server(server), 0),
                                       &clients[i].address),
            0);
        assert_int_equal(pthread_create(&threads[i], NULL, run_client, &clients[i]), 0);
    }
    assert_true(call_counter_await(&handled, 1000));
    assert_int_equal(weir_http_server_stop(server, weir_seconds(10)), 0);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        received += clients[i].received;
        assert_false(clients[i].is_incomplete);
    }
    assert_int_equal(received, handled.calls);
    weir_http_server_release(server);
    weir_group_release(group);
}

TEST_EACH_HOST(drain, answers_requests_under_load)
{
    drain(host, 1, false);
}

TEST_EACH_HOST(drain, answers_pipelined_requests_under_load)
{
    drain(host, DEPTH, false);
}

TEST_EACH_HOST(drain, answers_from_another_thread_under_load)
{
    drain(host, DEPTH, true);
}
