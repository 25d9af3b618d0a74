/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of an HTTP server fails with the errors that it can return, and each allocation
 * in turn, while clients - plain sockets, whose calls do not fail - are served.
 *
 * Whatever fails: each request is answered, refused or reset, never left waiting; a client never
 * receives a stream that is not HTTP, or the content of another request; one that is not served
 * completely is so because of the fault; the next client is served again; neither memory nor a
 * descriptor is left.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/embedded.h>
#include <weir/http_files.h>
#include <weir/http_server.h>
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

#define CLIENTS 2
#define REQUESTS 7     /* over sockets; the last one but one is for a file */
#define ECHO_SIZE 4000 /* bytes of each of three chunks */
#define WHOLE_SIZE 20000
#define TEXT_SIZE 8000
#define FILE_SIZE 40000 /* sent by the kernel */
#define ANSWERS_MAX 131072
#define SLICE_MS 50
#define PLACES 30 /* calls of one kind to fail, at the most, or a little more */

/* ---- the server ---- */

static char text[TEXT_SIZE + 1];

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond_text(exchange, 200, "hello\n");
}

static void send_text(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond_text(exchange, 200, text);
}

static void count_whole(weir_http_exchange *exchange, void *user_data)
{
    char number[32];

    (void)user_data;
    (void)snprintf(number, sizeof(number), "%zu\n",
                   weir_buf_readable(weir_http_exchange_content(exchange)));
    (void)weir_http_respond_text(exchange, 200, number);
}

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    (void)user_data;
    if (msg != NULL) {
        (void)weir_http_exchange_write(exchange, msg, NULL);
        weir_http_exchange_read(exchange);
    } else {
        if (err == 0)
            (void)weir_http_exchange_end(exchange, NULL);
        weir_http_exchange_release(exchange);
    }
}

static void echo(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    if (weir_http_exchange_begin(exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH) != 0)
        return;
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), on_content, NULL);
    weir_http_exchange_read(exchange);
}

static void answer_late(void *arg, int err)
{
    weir_http_exchange *exchange = arg;

    if (err == 0)
        (void)weir_http_respond_text(exchange, 200, "late\n");
    weir_http_exchange_release(exchange);
}

static void late(weir_http_exchange *exchange, void *user_data)
{
    weir_executor *loop = weir_channel_executor(weir_http_exchange_channel(exchange));

    (void)user_data;
    (void)weir_http_exchange_retain(exchange);
    if (weir_execute(loop, answer_late, exchange) != 0)
        weir_http_exchange_release(exchange);
}

static weir_http_route routes[] = {
    {.method = "GET", .path = "/files/{path*}", .handler = weir_http_files},
    {.method = "GET", .path = "/hello", .handler = hello},
    {.method = "GET", .path = "/text", .handler = send_text},
    {.method = "GET", .path = "/late/{id}", .handler = late},
    {.method = "POST", .path = "/whole", .handler = count_whole},
    {.method = "POST", .path = "/echo", .handler = echo, .streaming = true},
    {0}};

static int start(weir_group *group, weir_http_server **ret_server)
{
    return weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes, .workers = group,
                                 .request_ids = true,
                                 .compression = WEIR_HTTP_COMPRESSION_OPTIONS(.level = 1),
                                 .security = WEIR_HTTP_SECURITY_OPTIONS()),
        ret_server);
}

/* ---- a client ---- */

enum outcome {
    SERVED,
    TURNED_AWAY,
    LEFT_WAITING,
    GARBLED, /* not HTTP, or not the right content */
};

static char requests[ANSWERS_MAX];
static size_t requests_length;

/* All requests of a client; it sends them at once. That for a file is answered by another thread.
 */
static void write_requests(bool has_file)
{
    FILE *file = fmemopen(requests, sizeof(requests), "w");

    assert_non_null(file);
    (void)fputs("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", file);
    (void)fprintf(file, "POST /whole HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%0*d",
                  WHOLE_SIZE, WHOLE_SIZE, 0);
    (void)fputs("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", file);
    for (int i = 0; i < 3; i++)
        (void)fprintf(file, "%x\r\n%0*d\r\n", ECHO_SIZE, ECHO_SIZE, 0);
    (void)fputs("0\r\n\r\nGET /text HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"
                "GET /late/1 HTTP/1.1\r\nHost: a\r\n\r\n",
                file);
    if (has_file)
        (void)fputs("GET /files/large HTTP/1.1\r\nHost: a\r\n\r\n", file);
    (void)fputs("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", file);
    requests_length = (size_t)ftell(file);
    assert_int_equal(fclose(file), 0);
    memset(text, 'x', TEXT_SIZE);
}

/* Removes a head; its status, the length of the content or -1 if it is chunked, 0 if it is cut off,
 * -1 if it is not HTTP. */
static int take_head(const char **at, long *ret_length)
{
    const char *end = strstr(*at, "\r\n\r\n"), *field;
    int status = 0;

    if (end == NULL)
        return strncmp(*at, "HTTP/1.1 ", strlen(*at) < 9 ? strlen(*at) : 9) == 0 ? 0 : -1;
    if (sscanf(*at, "HTTP/1.1 %d ", &status) != 1)
        return -1;
    field = strcasestr(*at, "\r\ncontent-length: ");
    *ret_length = field != NULL && field < end ? strtol(field + 18, NULL, 10) : -1;
    field = strcasestr(*at, "\r\ntransfer-encoding: chunked");
    if (*ret_length < 0 && (field == NULL || field > end))
        return -1;
    *at = end + 4;
    return status;
}

/* Removes content; its length, -1 if it is cut off, -2 if it is not HTTP. */
static long take_content(const char **at, const char *end, long length)
{
    long size, sum = 0;
    char *line;

    if (length >= 0) {
        if (end - *at < length)
            return -1;
        *at += length;
        return length;
    }
    do {
        if (memchr(*at, '\n', (size_t)(end - *at)) == NULL)
            return -1;
        size = strtol(*at, &line, 16);
        if (line == *at || strncmp(line, "\r\n", 2) != 0)
            return -2;
        *at = line + 2;
        if (end - *at < size + 2)
            return -1;
        if (strncmp(*at + size, "\r\n", 2) != 0)
            return -2;
        *at += size + 2;
        sum += size;
    } while (size > 0);
    return sum;
}

/* Looks at everything that a client has received. */
static enum outcome judge(const char *answers, size_t length)
{
    const long lengths[REQUESTS] = {6, 6, 3L * ECHO_SIZE, -1, 5, FILE_SIZE, 6}; /* -1: compressed */
    const char *at = answers, *end = answers + length;
    bool all_good = true;
    long size;
    int status, count = 0;

    for (; at < end; count++) {
        if (count == REQUESTS)
            return GARBLED;
        status = take_head(&at, &size);
        if (status <= 0)
            return status == 0 ? TURNED_AWAY : GARBLED;
        if (status != 200 && status != 500 && status != 503)
            return GARBLED;
        size = take_content(&at, end, size);
        if (size < 0)
            return size == -1 ? TURNED_AWAY : GARBLED;
        if (status == 200 && lengths[count] >= 0 && size != lengths[count])
            return GARBLED;
        all_good = all_good && status == 200;
    }
    return count == REQUESTS && all_good ? SERVED : TURNED_AWAY;
}

/* Waits; meanwhile somebody else allocates, because the test's allocator refuses pages for as long
 * as nobody does. */
static bool await_client(struct pollfd *ready)
{
    int slices = (int)(TEST_TIMEOUT_NS / weir_ms(SLICE_MS));

    while (poll(ready, 1, SLICE_MS) == 0) {
        weir__free(weir__alloc(1));
        if (--slices == 0)
            return false;
    }
    return true;
}

/* Sends and receives as far as that goes; false at the end of the connection. */
static bool talk(int client, size_t *sent, char *answers, size_t *received)
{
    ssize_t length;

    if (*sent < requests_length) {
        length = send(client, requests + *sent, requests_length - *sent, MSG_NOSIGNAL);
        *sent = length < 0 && errno != EAGAIN && errno != EINTR
                    ? requests_length /* what was answered may still be read */
                    : *sent + (length > 0 ? (size_t)length : 0);
    }
    length = recv(client, answers + *received, ANSWERS_MAX - 1 - *received, 0);
    *received += length > 0 ? (size_t)length : 0;
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

static enum outcome visit(const struct address *address, char *answers)
{
    int client = socket_new(AF_INET, SOCK_STREAM);
    struct pollfd ready = {.fd = client};
    size_t sent = 0, received = 0;
    int err = connect(client, (const struct sockaddr *)&address->storage, address->length);
    bool is_waiting = false;

    assert_true(err == 0 || errno == EINPROGRESS);
    do {
        ready.events = sent < requests_length ? POLLIN | POLLOUT : POLLIN;
        is_waiting = !await_client(&ready);
    } while (!is_waiting && talk(client, &sent, answers, &received));
    answers[received] = '\0';
    assert_int_equal(close(client), 0);
    return is_waiting ? LEFT_WAITING : judge(answers, received);
}

/* ---- a run ---- */

/* Without descriptors a listener rejects waiting clients, possibly still now. */
static bool serves_again(const struct address *address, char *answers)
{
    enum outcome outcome = TURNED_AWAY;

    for (int i = 0; outcome == TURNED_AWAY && i < 100; i++)
        outcome = visit(address, answers);
    return outcome == SERVED;
}

static void serve(struct sweep *sweep, const struct address *address)
{
    static char answers[ANSWERS_MAX];
    enum outcome outcome;
    char message[200];

    for (int i = 0; i < CLIENTS; i++) {
        outcome = visit(address, answers);
        if (outcome == LEFT_WAITING)
            sweep_fail(sweep, "a client is left waiting");
        if (outcome == TURNED_AWAY && !sweep_has_failed(sweep))
            sweep_fail(sweep, "a client is turned away for no reason");
        if (outcome == GARBLED) {
            (void)snprintf(message, sizeof(message), "a client got: %.100s", answers);
            sweep_fail(sweep, message);
        }
    }
    sweep_stop_faults(sweep);
    if (!serves_again(address, answers))
        sweep_fail(sweep, "the server is not as it was");
}

static int find_address(const weir_http_server *server, struct address *ret_address)
{
    weir_address address;
    int err = weir_channel_local_address(weir_server_listener(weir_http_server_server(server), 0),
                                         &address);

    if (err == 0) {
        ret_address->length = address.length;
        memcpy(&ret_address->storage, &address.storage, sizeof(address.storage));
    }
    return err;
}

/* Returns the error that kept it from beginning. */
static int run(struct sweep *sweep)
{
    size_t descriptors = descriptors_open(), blocks = test_memory_live();
    weir_http_files_root *root = NULL;
    weir_http_server *server = NULL;
    weir_group *group = NULL, *opening = NULL;
    struct address address;
    int err;

    log_capture_start();
    err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, PLAIN), &opening);
    if (err == 0)
        err = weir_http_files_root_create(
            WEIR_HTTP_FILES_OPTIONS(.root = sweep->arg, .group = opening), &root);
    routes[0].user_data = root;
    if (err == 0)
        err = weir_group_create(
            WEIR_GROUP_OPTIONS(.threads = 1, .name = "server", .io = sweep->backend->io), &group);
    if (err == 0)
        err = start(group, &server);
    if (err == 0)
        err = find_address(server, &address);
    if (err == 0)
        serve(sweep, &address);
    sweep_stop_faults(sweep);
    weir_http_server_release(server);
    if (group != NULL)
        end_group(group);
    weir_http_files_root_release(root);
    if (opening != NULL)
        end_group(opening);
    global_executor_stop();
    weir_locals_remove_all();
    if (!test_memory_await(blocks))
        sweep_fail(sweep, "memory is left");
    if (!descriptors_await(descriptors))
        sweep_fail(sweep, "descriptors are left");
    return err;
}

static void make_folder(char *folder, char *ret_path, size_t size)
{
    FILE *file;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(ret_path, size, "%s/large", folder);
    file = fopen(ret_path, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%0*d", FILE_SIZE, 0) == FILE_SIZE);
    assert_int_equal(fclose(file), 0);
}

static void sweep_all(const struct backend *backend, void (*sweep_it)(struct sweep *sweep))
{
    char folder[] = "/tmp/weir-faults-XXXXXX", path[64];
    struct sweep sweep = {.backend = backend,
                          .scenario = run,
                          .arg = folder,
                          .places = PLACES,
                          .stride = SWEEP_STRIDE,
                          .takes_turns = true,
                          .ring_fails_once = true};

    write_requests(true);
    make_folder(folder, path, sizeof(path));
    sweep_it(&sweep);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST_EACH_LOOP(server_faults, survives_each_call_that_fails)
{
    sweep_all(host->backend, sweep_calls);
}

TEST(server_faults, survives_each_call_that_fails_on_threads_of_their_own)
{
    sweep_all(&backends[BACKEND_BLOCKING], sweep_calls);
}

TEST_EACH_LOOP(server_faults, survives_each_allocation_that_fails)
{
    sweep_all(host->backend, sweep_allocations);
}

TEST(server_faults, survives_each_allocation_that_fails_on_threads_of_their_own)
{
    sweep_all(&backends[BACKEND_BLOCKING], sweep_allocations);
}

/* ---- without sockets ---- */

/* Receives the requests in pieces. */
static void feed(weir_embedded *embedded, size_t piece)
{
    size_t length;
    weir_buf *buf;

    for (size_t at = 0; at < requests_length; at += length) {
        length = requests_length - at < piece ? requests_length - at : piece;
        if (weir_buf_create_from(requests + at, length, &buf) == 0)
            (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
    }
}

static uint64_t pool_bytes(void)
{
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    return stats.in_use_bytes;
}

TEST(server_faults, frees_everything_whichever_allocation_fails)
{
    const size_t pieces[] = {2000, 7000, ANSWERS_MAX};
    weir_http_router *router;
    weir_embedded *embedded;
    uint64_t before;
    bool has_failed;

    write_requests(false);
    log_capture_start();
    assert_int_equal(weir_http_router_create(routes, &router), 0);
    before = pool_bytes();
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        has_failed = true;
        for (unsigned n = 1; has_failed; n++) {
            assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
            assert_int_equal(weir_http1_server_add(weir_embedded_pipeline(embedded), NULL), 0);
            assert_int_equal(weir_http_router_add(weir_embedded_pipeline(embedded), router, 0), 0);
            test_memory_fail_at(n);
            feed(embedded, pieces[i]);
            has_failed = test_memory_failed();
            test_memory_fail_at(0);
            weir_embedded_release(embedded);
            if (pool_bytes() != before)
                fail_msg("pieces of %zu, allocation %u: memory is left", pieces[i], n);
        }
    }
    weir_http_router_release(router);
}
