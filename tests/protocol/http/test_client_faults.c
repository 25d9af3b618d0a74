/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of an HTTP client fails with the errors that it can return, and each allocation
 * in turn, while it fetches from a server of plain sockets, whose calls do not fail.
 *
 * Whatever fails: each call ends, with the whole response or an error; a part of a response is
 * never a success; a call fails only because of the fault; a POST is not sent twice; the next call
 * succeeds; neither memory nor a descriptor is left.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/http_client.h>
#include <weir/pool.h>
#include <weir/thread.h>

#include "base/memory.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/fault_sweep.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/test.h"

#define POST_SIZE 20000
#define BIG_SIZE 12000
#define REQUEST_MAX 32768
#define SLICE_MS 50
#define PLACES 30 /* calls of one kind to fail, at the most, or a little more */

/* ---- the server: one connection at a time ---- */

struct origin {
    int listener;
    struct address address;
    pthread_t thread;
    int posts; /* seen by the thread */
    char big[BIG_SIZE + 1];
};

static bool send_all(int client, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(client, text, length, MSG_NOSIGNAL);

        if (sent < 0)
            return false;
        text += sent;
        length -= (size_t)sent;
    }
    return true;
}

static bool send_text(int client, const char *text)
{
    return send_all(client, text, strlen(text));
}

/* Answers a request. False if the connection ends with it. */
static bool answer(struct origin *origin, int client, const char *request)
{
    bool is_sent = true;
    char size[16];

    if (strncmp(request, "GET /redirect ", 14) == 0)
        return send_text(client, "HTTP/1.1 302 Found\r\nLocation: /hello\r\n"
                                 "Content-Length: 3\r\n\r\nsee");
    if (strncmp(request, "GET /chunked ", 13) == 0) {
        (void)snprintf(size, sizeof(size), "%x\r\n", BIG_SIZE / 3);
        is_sent = send_text(client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; is_sent && i < 3; i++)
            is_sent = send_text(client, size) && send_all(client, origin->big, BIG_SIZE / 3) &&
                      send_text(client, "\r\n");
        return is_sent && send_text(client, "0\r\n\r\n");
    }
    if (strncmp(request, "GET /until-close ", 17) == 0) {
        (void)(send_text(client, "HTTP/1.1 200 OK\r\n\r\n") &&
               send_all(client, origin->big, BIG_SIZE));
        return false;
    }
    if (strncmp(request, "POST ", 5) == 0) {
        origin->posts++;
        return send_text(client, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n20000\n");
    }
    return send_text(client, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n");
}

/* Receives a request with its content. False at the end of the connection. */
static bool receive_request(int client, char *request, size_t *length)
{
    const char *end = NULL, *field;
    size_t whole = 0;
    ssize_t received;

    *length = 0;
    while (end == NULL || *length < whole) {
        received = recv(client, request + *length, REQUEST_MAX - 1 - *length, 0);
        if (received <= 0)
            return false;
        *length += (size_t)received;
        request[*length] = '\0';
        end = strstr(request, "\r\n\r\n");
        field = strcasestr(request, "\r\ncontent-length: ");
        if (end != NULL)
            whole = (size_t)(end + 4 - request) +
                    (field != NULL && field < end ? strtoul(field + 18, NULL, 10) : 0);
    }
    return true;
}

static void *serve(void *arg)
{
    static char request[REQUEST_MAX];
    struct origin *origin = arg;
    const int on = 1;
    size_t length;
    int client;

    while ((client = accept(origin->listener, NULL, NULL)) >= 0) {
        (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        while (receive_request(client, request, &length) && answer(origin, client, request))
            continue;
        (void)close(client);
    }
    return NULL;
}

static void open_origin(struct origin *origin)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

    origin->posts = 0;
    memset(origin->big, 'x', BIG_SIZE);
    origin->address.length = sizeof(any);
    origin->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(origin->listener >= 0);
    assert_int_equal(bind(origin->listener, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(listen(origin->listener, 64), 0);
    assert_int_equal(getsockname(origin->listener, (struct sockaddr *)&origin->address.storage,
                                 &origin->address.length),
                     0);
    assert_int_equal(pthread_create(&origin->thread, NULL, serve, origin), 0);
}

/* After the client: its connections are closed. */
static void close_origin(struct origin *origin)
{
    assert_int_equal(shutdown(origin->listener, SHUT_RDWR), 0);
    assert_int_equal(pthread_join(origin->thread, NULL), 0);
    assert_int_equal(close(origin->listener), 0);
}

/* ---- the client ---- */

struct request {
    const char *method;
    const char *path;
    size_t length; /* of the right response */
};

static const struct request requests[] = {
    {"GET", "/hello", 6},         {"POST", "/length", 6}, {"GET", "/chunked", BIG_SIZE},
    {"GET", "/redirect", 6},      {"GET", "/hello", 6},   {"GET", "/until-close", BIG_SIZE},
    {"POST", "/length-again", 6},
};

enum outcome {
    FETCHED,
    FAILED,
    LEFT_WAITING,
    WRONG,
};

/* Waits; meanwhile somebody else allocates, because the test's allocator refuses pages for as long
 * as nobody does. */
static bool await_response(weir_promise *fetching)
{
    int slices = (int)(TEST_TIMEOUT_NS / 2 / weir_ms(SLICE_MS));

    while (weir_promise_await(fetching, weir_ms(SLICE_MS)) != 0) {
        weir__free(weir__alloc(1));
        if (--slices == 0)
            return false;
    }
    return true;
}

static enum outcome judge(const weir_promise *fetching, const struct request *request)
{
    const weir_http_full *full = weir_promise_value(fetching);

    if (weir_promise_result(fetching) < 0)
        return FAILED;
    if (weir_http_response_status(weir_http_full_response(full)) != 200 ||
        weir_buf_readable(weir_http_full_content(full)) != request->length)
        return WRONG;
    return FETCHED;
}

static enum outcome fetch(weir_http_client *client, const struct origin *origin,
                          const struct request *request, weir_buf *content)
{
    const struct sockaddr_in *address = (const struct sockaddr_in *)&origin->address.storage;
    weir_promise *fetching = NULL;
    enum outcome outcome = LEFT_WAITING;
    char url[64];

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", ntohs(address->sin_port),
                   request->path);
    if (weir_http_client_fetch(
            client,
            WEIR_HTTP_FETCH_OPTIONS(.method = request->method, .url = url,
                                    .content = strcmp(request->method, "POST") == 0
                                                   ? weir_buf_msg(content)
                                                   : NULL),
            &fetching) < 0)
        return FAILED;
    if (await_response(fetching))
        outcome = judge(fetching, request);
    weir_promise_release(fetching);
    return outcome;
}

/* ---- a run ---- */

static void fetch_all(struct sweep *sweep, weir_http_client *client, const struct origin *origin,
                      weir_buf *content)
{
    char message[100];

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        enum outcome outcome = fetch(client, origin, &requests[i], content);

        (void)snprintf(message, sizeof(message), "%s: %s", requests[i].path,
                       outcome == LEFT_WAITING ? "the call does not end"
                       : outcome == WRONG      ? "another response"
                                               : "fails for no reason");
        if (outcome == LEFT_WAITING || outcome == WRONG ||
            (outcome == FAILED && !sweep_has_failed(sweep)))
            sweep_fail(sweep, message);
    }
    sweep_stop_faults(sweep);
    if (fetch(client, origin, &requests[0], content) != FETCHED)
        sweep_fail(sweep, "the client is not as it was");
}

/* No call has a timeout: what hangs is found by the test. */
static int create_client(weir_group *group, weir_http_client **ret_client)
{
    return weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.group = group, .max_connections = 1,
                                                            .connect_timeout_ns = WEIR_OFF,
                                                            .head_timeout_ns = WEIR_OFF,
                                                            .progress_timeout_ns = WEIR_OFF),
                                   ret_client);
}

static void close_client(struct sweep *sweep, weir_http_client *client)
{
    if (client == NULL)
        return;
    weir_http_client_close(client);
    if (weir_promise_await(weir_http_client_closed(client), TEST_TIMEOUT_NS) != 0)
        sweep_fail(sweep, "the client does not close");
    weir_http_client_release(client);
}

/* Returns the error that kept it from beginning. */
static int run(struct sweep *sweep)
{
    static struct origin origin;
    size_t descriptors = descriptors_open(), blocks = test_memory_live();
    weir_http_client *client = NULL;
    weir_group *group = NULL;
    weir_buf *content = NULL;
    int err;

    log_capture_start();
    open_origin(&origin);
    err = weir_group_create(
        WEIR_GROUP_OPTIONS(.threads = 1, .name = "client", .io = sweep->backend->io), &group);
    if (err == 0)
        err = create_client(group, &client);
    if (err == 0)
        err = weir_buf_create(POST_SIZE, 0, &content);
    if (err == 0) {
        memset(weir_buf_space(content), 'y', POST_SIZE);
        err = weir_buf_advance(content, POST_SIZE);
    }
    if (err == 0)
        fetch_all(sweep, client, &origin, content);
    sweep_stop_faults(sweep);
    weir_buf_release(content);
    close_client(sweep, client);
    if (group != NULL)
        end_group(group);
    close_origin(&origin);
    global_executor_stop();
    weir_locals_remove_all();
    if (origin.posts > 2)
        sweep_fail(sweep, "a POST was sent twice");
    if (!test_memory_await(blocks))
        sweep_fail(sweep, "memory is left");
    if (!descriptors_await(descriptors))
        sweep_fail(sweep, "descriptors are left");
    return err;
}

static void sweep_all(const struct backend *backend, void (*sweep_it)(struct sweep *sweep))
{
    struct sweep sweep = {.backend = backend,
                          .scenario = run,
                          .places = PLACES,
                          .stride = SWEEP_STRIDE,
                          .takes_turns = true,
                          .ring_fails_once = true};

    sweep_it(&sweep);
}

TEST_EACH_LOOP(client_faults, survives_each_call_that_fails)
{
    sweep_all(host->backend, sweep_calls);
}

TEST_EACH_LOOP(client_faults, survives_each_allocation_that_fails)
{
    sweep_all(host->backend, sweep_allocations);
}
