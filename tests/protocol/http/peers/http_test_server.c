/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http-test-server [OPTIONS]: what real clients and attackers talk to. Prints `listening on
 * ADDRESS:PORT` for the plain port and, with --tls, for another one; drains on SIGTERM.
 *
 *      --io NAME  --threads N         of its group
 *      --tls                          self-signed, or --cert FILE and --key FILE
 *      --files FOLDER                 serves it below /files/
 *      --log FILE                     a line for each request: X-Front-Id, method, target
 *      --head-ms --idle-ms --min-rate --max-content     shortened timeouts and limits
 *      --send-buffer BYTES            of the kernel, for each connection
 *      --proxy-protocol
 *      --probe                        starts and ends
 *
 *      /hello                  a text
 *      /echo                   sends the content back as it arrives
 *      /sum                    the length and the CRC-32 of the content, as it arrives
 *      /whole                  the same, of content that was collected
 *      /big/{size}?chunked=1   `size` bytes of a pattern
 *      /text                   100 KiB that can be compressed
 *      /slow?ms=N              an answer after N ms
 *      /trailers               a response with a trailer
 *      /stats                  requests, refusals, bytes of the pool
 *      /form                   the number of parts of a multipart body
 *      /metrics                weir_metrics_route
 *      /ws                     a WebSocket that sends messages back
 *      /status/{status}        a text with that status
 */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <weir/error.h>
#include <weir/http_body.h>
#include <weir/http_files.h>
#include <weir/http_metrics.h>
#include <weir/http_server.h>
#include <weir/pool.h>
#include <weir/timer.h>
#include <weir/websocket.h>
#ifdef WEIR_TEST_TLS
#include <weir/tls.h>
#endif

#define PATTERN_SIZE 1000003
#define PIECE_MAX 65536
#define NO_LIMIT (1ull << 40)
#define TEXT_SIZE (100 * 1024)

static unsigned char pattern[PATTERN_SIZE];
static char text_body[TEXT_SIZE + 1];
static _Atomic uint64_t requests, refusals;
static FILE *request_log;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

/* The linear congruential generator that the drivers know: peers.py. */
static void fill_pattern(void)
{
    uint64_t state = 17;

    for (size_t i = 0; i < PATTERN_SIZE; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        pattern[i] = (unsigned char)(state >> 56);
    }
    for (size_t i = 0; i < TEXT_SIZE; i++)
        text_body[i] = "the quick brown fox jumps over the lazy dog\n"[i % 44];
}

/* ---- every request, before it is routed ---- */

struct observer {
    char front_id[64]; /* of the current request; "" = none */
};

static void observe_request(struct observer *observer, const weir_http_request *request)
{
    weir_span id = weir_http_headers_get_named(weir_http_request_headers(request), "X-Front-Id");
    weir_span method = weir_http_request_method_text(request);
    weir_span target = weir_http_request_target(request);

    atomic_fetch_add(&requests, 1);
    (void)snprintf(observer->front_id, sizeof(observer->front_id), "%.*s", (int)id.length,
                   id.length > 0 ? (const char *)id.data : "");
    if (request_log == NULL)
        return;
    (void)pthread_mutex_lock(&log_lock);
    (void)fprintf(request_log, "%s %.*s %.*s\n", id.length > 0 ? observer->front_id : "-",
                  (int)method.length, (const char *)method.data, (int)target.length,
                  (const char *)target.data);
    (void)fflush(request_log);
    (void)pthread_mutex_unlock(&log_lock);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    if (weir_http_request_of(msg) != NULL)
        observe_request(weir_ctx_state(ctx), weir_http_request_of(msg));
    weir_fire_read(ctx, msg);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    const struct observer *observer = weir_ctx_state(ctx);
    weir_http_response *response = weir_http_response_of(msg);

    if (response != NULL && observer->front_id[0] != '\0')
        (void)weir_http_headers_add_named(
            weir_http_response_headers(response), weir_span_of("X-Back-Id", 9),
            weir_span_of(observer->front_id, strlen(observer->front_id)));
    weir_write(ctx, msg, done);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    if (weir_http_refusal_of(event) != NULL)
        atomic_fetch_add(&refusals, 1);
    weir_fire_event(ctx, event);
}

static const weir_handler observer_handler = {.name = "observer",
                                              .state_size = sizeof(struct observer),
                                              .read = on_read,
                                              .write = on_write,
                                              .event = on_event};

static int init_connection(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &observer_handler, NULL);
}

/* ---- small answers ---- */

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond_text(exchange, 200, "Hello, World!\n");
}

static void compressible(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond_text(exchange, 200, text_body);
}

static void stats(weir_http_exchange *exchange, void *user_data)
{
    weir_pool_stats pool;
    char text[256];

    (void)user_data;
    weir_pool_read_stats(&pool);
    (void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                   atomic_load(&requests), atomic_load(&refusals), pool.in_use_bytes);
    (void)weir_http_respond_text(exchange, 200, text);
}

static void respond_sum(weir_http_exchange *exchange, uint64_t length, uLong crc)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%" PRIu64 " %08lx\n", length, crc);
    (void)weir_http_respond_text(exchange, 200, text);
}

static void whole(weir_http_exchange *exchange, void *user_data)
{
    weir_span bytes = weir_buf_span(weir_http_exchange_content(exchange));

    (void)user_data;
    respond_sum(exchange, bytes.length, crc32(0, (const Bytef *)bytes.data, (uInt)bytes.length));
}

static void trailers(weir_http_exchange *exchange, void *user_data)
{
    weir_http_end *end;
    weir_buf *buf;

    (void)user_data;
    (void)weir_http_headers_add_text(weir_http_exchange_headers(exchange), WEIR_HTTP_TRAILER,
                                     "X-Checksum");
    if (weir_http_exchange_begin(exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH) != 0)
        return;
    if (weir_buf_create_from("with a trailer\n", 15, &buf) == 0)
        (void)weir_http_exchange_write(exchange, weir_buf_msg(buf), NULL);
    if (weir_http_end_create(&end) == 0) {
        (void)weir_http_headers_add_named(weir_http_end_trailers(end),
                                          weir_span_of("X-Checksum", 10), weir_span_of("abc", 3));
        (void)weir_http_exchange_end(exchange, end);
    }
}

static void answer_late(void *arg, int err)
{
    weir_http_exchange *exchange = arg;

    if (err == 0)
        (void)weir_http_respond_text(exchange, 200, "late\n");
    weir_http_exchange_release(exchange);
}

static void slow(weir_http_exchange *exchange, void *user_data)
{
    weir_span ms = weir_http_exchange_query(exchange, "ms");
    weir_executor *executor = weir_channel_executor(weir_http_exchange_channel(exchange));
    char number[16];

    (void)user_data;
    (void)snprintf(number, sizeof(number), "%.*s", (int)ms.length,
                   ms.length > 0 ? (const char *)ms.data : "");
    (void)weir_http_exchange_retain(exchange);
    if (weir_schedule(executor, weir_ms(atoi(number)), answer_late, exchange, NULL) != 0)
        weir_http_exchange_release(exchange);
}

/* ---- content as it arrives ---- */

static void read_more(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_exchange_read(exchange);
}

/* The trailers of the request, as an end; NULL if there are none. */
static weir_http_end *copy_trailers(const weir_http_exchange *exchange)
{
    const weir_http_headers *from = weir_http_exchange_trailers(exchange);
    weir_http_end *end;

    if (from == NULL || weir_http_end_create(&end) != 0)
        return NULL;
    (void)weir_http_headers_append(weir_http_end_trailers(end), from);
    return end;
}

static void on_echo_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    (void)user_data;
    if (err == 0) /* -EALREADY later; not before status 100 was sent */
        (void)weir_http_exchange_begin(
            exchange, 200, weir_http_request_content_length(weir_http_exchange_request(exchange)));
    if (msg == NULL) {
        if (err == 0)
            (void)weir_http_exchange_end(exchange, copy_trailers(exchange));
        weir_http_exchange_release(exchange);
        return;
    }
    (void)weir_http_exchange_write(exchange, msg, NULL);
    if (weir_http_exchange_is_writable(exchange))
        weir_http_exchange_read(exchange);
    else
        weir_http_exchange_on_writable(exchange, read_more, NULL);
}

static void echo(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), on_echo_content, NULL);
    weir_http_exchange_read(exchange);
}

struct sum {
    uint64_t length;
    uLong crc;
};

static void on_sum_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct sum *sum = user_data;
    weir_buf *buf = weir_buf_of(msg);

    if (msg == NULL) {
        if (err == 0)
            respond_sum(exchange, sum->length, sum->crc);
        weir_http_exchange_release(exchange);
        free(sum);
        return;
    }
    if (buf != NULL) {
        sum->crc = crc32(sum->crc, weir_buf_bytes(buf), (uInt)weir_buf_readable(buf));
        sum->length += weir_buf_readable(buf);
    }
    weir_msg_release(msg);
    weir_http_exchange_read(exchange);
}

static void sum_of(weir_http_exchange *exchange, void *user_data)
{
    struct sum *sum = calloc(1, sizeof(*sum));

    (void)user_data;
    if (sum == NULL)
        return;
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), on_sum_content, sum);
    weir_http_exchange_read(exchange);
}

static void on_form(weir_http_exchange *exchange, weir_http_upload *upload, int err,
                    void *user_data)
{
    char number[32];

    (void)user_data;
    if (err != 0)
        return;
    (void)snprintf(number, sizeof(number), "%zu\n", weir_http_upload_count(upload));
    (void)weir_http_respond_text(exchange, 200, number);
    weir_http_upload_release(upload);
}

static void form(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_upload_read(exchange, NULL, on_form, NULL);
}

/* ---- a big download ---- */

struct download {
    uint64_t sent;
    uint64_t size;
};

static void send_more(weir_http_exchange *exchange, void *user_data)
{
    struct download *download = user_data;
    size_t from, count;
    weir_buf *buf;
    int err = 0;

    while (err == 0 && download->sent < download->size &&
           weir_http_exchange_is_writable(exchange)) {
        from = download->sent % PATTERN_SIZE;
        count = PATTERN_SIZE - from < PIECE_MAX ? PATTERN_SIZE - from : PIECE_MAX;
        if (count > download->size - download->sent)
            count = download->size - download->sent;
        err = weir_buf_wrap_static(pattern + from, count, &buf);
        if (err == 0)
            err = weir_http_exchange_write(exchange, weir_buf_msg(buf), NULL);
        download->sent += count;
    }
    if (err == 0 && download->sent < download->size) {
        weir_http_exchange_on_writable(exchange, send_more, download);
        return;
    }
    if (err == 0)
        (void)weir_http_exchange_end(exchange, NULL);
    free(download);
    weir_http_exchange_release(exchange);
}

static void big(weir_http_exchange *exchange, void *user_data)
{
    weir_span size = weir_http_exchange_parameter(exchange, "size");
    struct download *download = calloc(1, sizeof(*download));
    bool chunked = weir_http_exchange_query(exchange, "chunked").data != NULL;
    char number[24];

    (void)user_data;
    if (download == NULL)
        return;
    (void)snprintf(number, sizeof(number), "%.*s", (int)size.length, (const char *)size.data);
    download->size = strtoull(number, NULL, 10);
    if (weir_http_exchange_begin(
            exchange, 200, chunked ? WEIR_HTTP_UNKNOWN_LENGTH : (int64_t)download->size) != 0) {
        free(download);
        return;
    }
    send_more(weir_http_exchange_retain(exchange), download);
}

static void answer_status(weir_http_exchange *exchange, void *user_data)
{
    weir_span status = weir_http_exchange_parameter(exchange, "status");
    char text[8];

    (void)user_data;
    (void)snprintf(text, sizeof(text), "%.*s", (int)status.length, (const char *)status.data);
    (void)weir_http_respond_text(exchange, (int)strtol(text, NULL, 10), "answer");
}

/* ---- WebSockets ---- */

static void send_back(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo_handler = {.name = "ws-echo", .read = send_back};

static int init_websocket(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo_handler, NULL);
}

static void accept_websocket(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = init_websocket));
}

/* ---- routes ---- */

static weir_http_route routes[] = {
    {.method = "GET", .path = "/hello", .handler = hello},
    {.method = "POST", .path = "/hello", .handler = hello},
    {.method = "POST",
     .path = "/echo",
     .handler = echo,
     .streaming = true,
     .max_content = NO_LIMIT},
    {.method = "PUT", .path = "/echo", .handler = echo, .streaming = true, .max_content = NO_LIMIT},
    {.method = "POST",
     .path = "/sum",
     .handler = sum_of,
     .streaming = true,
     .max_content = NO_LIMIT},
    {.method = "PUT",
     .path = "/sum",
     .handler = sum_of,
     .streaming = true,
     .max_content = NO_LIMIT},
    {.method = "POST", .path = "/whole", .handler = whole},
    {.method = "POST",
     .path = "/form",
     .handler = form,
     .streaming = true,
     .max_content = NO_LIMIT},
    {.method = "GET", .path = "/big/{size}", .handler = big},
    {.method = "GET", .path = "/text", .handler = compressible},
    {.method = "GET", .path = "/slow", .handler = slow},
    {.method = "GET", .path = "/trailers", .handler = trailers},
    {.method = "GET", .path = "/stats", .handler = stats},
    {.method = "GET", .path = "/metrics", .handler = weir_metrics_route},
    {.method = "GET", .path = "/ws", .handler = accept_websocket},
    {.method = "*", .path = "/status/{status}", .handler = answer_status},
    {.method = "*", .path = "/any/{rest*}", .handler = hello},
    {.method = "GET", .path = "/files/{path*}", .handler = weir_http_files},
    {0}};

#define FILES_ROUTE (sizeof(routes) / sizeof(routes[0]) - 2)

/* ---- the program ---- */

struct settings {
    enum weir_io io;
    int threads;
    const char *cert, *key, *files, *log;
    int head_ms, idle_ms, min_rate, send_buffer;
    long long max_content;
    bool tls, proxy_protocol, probe;
};

enum {
    IO = 256,
    THREADS,
    TLS,
    CERT,
    KEY,
    FILES,
    LOG,
    HEAD_MS,
    IDLE_MS,
    MIN_RATE,
    MAX_CONTENT,
    PROXY,
    PROBE,
    SEND_BUFFER
};

static const struct option arguments[] = {{"io", required_argument, NULL, IO},
                                          {"threads", required_argument, NULL, THREADS},
                                          {"tls", no_argument, NULL, TLS},
                                          {"cert", required_argument, NULL, CERT},
                                          {"key", required_argument, NULL, KEY},
                                          {"files", required_argument, NULL, FILES},
                                          {"log", required_argument, NULL, LOG},
                                          {"head-ms", required_argument, NULL, HEAD_MS},
                                          {"idle-ms", required_argument, NULL, IDLE_MS},
                                          {"min-rate", required_argument, NULL, MIN_RATE},
                                          {"max-content", required_argument, NULL, MAX_CONTENT},
                                          {"proxy-protocol", no_argument, NULL, PROXY},
                                          {"probe", no_argument, NULL, PROBE},
                                          {"send-buffer", required_argument, NULL, SEND_BUFFER},
                                          {0}};

static enum weir_io io_named(const char *name)
{
    static const struct {
        const char *name;
        enum weir_io io;
    } ios[] = {{"auto", WEIR_IO_AUTO},
               {"epoll", WEIR_IO_EPOLL},
               {"uring", WEIR_IO_URING},
               {"poll", WEIR_IO_POLL},
               {"blocking", WEIR_IO_BLOCKING}};

    for (size_t i = 0; i < sizeof(ios) / sizeof(ios[0]); i++)
        if (strcmp(ios[i].name, name) == 0)
            return ios[i].io;
    (void)fprintf(stderr, "http-test-server: unknown --io %s\n", name);
    exit(2);
}

static struct settings read_settings(int argc, char **argv)
{
    struct settings settings = {.threads = 1};
    int option;

    while ((option = getopt_long(argc, argv, "", arguments, NULL)) != -1) {
        switch (option) {
        case IO:
            settings.io = io_named(optarg);
            break;
        case THREADS:
            settings.threads = atoi(optarg);
            break;
        case TLS:
            settings.tls = true;
            break;
        case CERT:
            settings.cert = optarg;
            break;
        case KEY:
            settings.key = optarg;
            break;
        case FILES:
            settings.files = optarg;
            break;
        case LOG:
            settings.log = optarg;
            break;
        case HEAD_MS:
            settings.head_ms = atoi(optarg);
            break;
        case IDLE_MS:
            settings.idle_ms = atoi(optarg);
            break;
        case MIN_RATE:
            settings.min_rate = atoi(optarg);
            break;
        case MAX_CONTENT:
            settings.max_content = atoll(optarg);
            break;
        case PROXY:
            settings.proxy_protocol = true;
            break;
        case SEND_BUFFER:
            settings.send_buffer = atoi(optarg);
            break;
        case PROBE:
            settings.probe = true;
            break;
        default:
            exit(2);
        }
    }
    return settings;
}

static void print_addresses(weir_server *server)
{
    weir_address address;
    char text[WEIR_ADDRESS_TEXT_SIZE];

    for (size_t i = 0; i < weir_server_listener_count(server); i++)
        if (weir_channel_local_address(weir_server_listener(server, i), &address) == 0)
            printf("listening on %s\n", weir_address_format(&address, text, sizeof(text)));
    (void)fflush(stdout);
}

static void hold_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int serve(const struct settings *settings, weir_http_server_options *options)
{
    const weir_http1_options http1 = {.size = sizeof(http1),
                                      .head_timeout_ns = weir_ms(settings->head_ms),
                                      .idle_timeout_ns = weir_ms(settings->idle_ms),
                                      .min_rate = settings->min_rate,
                                      .keep_half_closed = true}; /* as those of peers.py */
    weir_http_server *server;
    int err;

    options->address = "127.0.0.1:0";
    options->routes = routes;
    options->http1 = &http1;
    options->io = settings->io;
    options->threads = settings->threads;
    options->max_content = (uint64_t)settings->max_content;
    options->proxy_protocol = settings->proxy_protocol;
    options->compression = WEIR_HTTP_COMPRESSION_OPTIONS(.level = 1);
    options->child_options = WEIR_CHANNEL_OPTIONS(.send_buffer = settings->send_buffer);
    options->init_connection = init_connection;
    hold_signals();
    err = weir_http_server_start(options, &server);
    if (err != 0)
        return err;
    if (!settings->probe) {
        print_addresses(weir_http_server_server(server));
        err = weir_http_server_run(server);
    }
    weir_http_server_release(server);
    return err;
}

#ifdef WEIR_TEST_TLS
static int serve_tls(const struct settings *settings, weir_http_server_options *options)
{
    const weir_tls_context_options *of_files =
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = settings->cert, .key_file = settings->key);
    int err = weir_tls_server_create(
        settings->cert != NULL ? of_files
                               : WEIR_TLS_CONTEXT_OPTIONS(.self_signed_for = "localhost,127.0.0.1"),
        &options->tls);

    if (err != 0)
        return err;
    options->tls_address = "127.0.0.1:0";
    options->add_tls = weir_tls_add;
    err = serve(settings, options);
    weir_tls_context_release(options->tls);
    return err;
}
#else
static int serve_tls(const struct settings *settings, weir_http_server_options *options)
{
    (void)settings;
    (void)options;
    return -ENOTSUP;
}
#endif

static int open_files(const char *folder, weir_http_files_root **ret_root)
{
    int err = 0;

    *ret_root = NULL;
    if (folder != NULL)
        err = weir_http_files_root_create(WEIR_HTTP_FILES_OPTIONS(.root = folder), ret_root);
    routes[FILES_ROUTE].user_data = *ret_root;
    if (*ret_root == NULL)
        routes[FILES_ROUTE] = (weir_http_route){0};
    return err;
}

int main(int argc, char **argv)
{
    struct settings settings = read_settings(argc, argv);
    weir_http_server_options options = *WEIR_HTTP_SERVER_OPTIONS();
    weir_http_files_root *root;
    int err;

    fill_pattern();
    if (settings.log != NULL && (request_log = fopen(settings.log, "w")) == NULL)
        return 1;
    err = open_files(settings.files, &root);
    if (err == 0)
        err = settings.tls ? serve_tls(&settings, &options) : serve(&settings, &options);
    weir_http_files_root_release(root);
    if (request_log != NULL)
        (void)fclose(request_log);
    if (err != 0)
        (void)fprintf(stderr, "http-test-server: %s\n", weir_error_text(err));
    return err != 0;
}
