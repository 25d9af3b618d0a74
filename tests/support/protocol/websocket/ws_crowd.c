/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/websocket/ws_crowd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/address.h>
#include <weir/timer.h>
#include <weir/websocket.h>

#define HEAD 17         /* bytes of a message: its kind, and the seed of the rest in hexadecimal */
#define MESSAGES_MAX 16 /* of a visit */
#define IN_FLIGHT 4
#define SERVER_CODE 4000
#define PATIENCE_NS (300 * INT64_C(1000000000)) /* none of the timeouts that are not tested */
#define SHORT 200                               /* bytes of the longest message to all */
#define SILENCE_NS (80 * INT64_C(1000000))

/* The first byte of a message. */
enum kind {
    ECHO = 'e',
    TO_ALL = 'b', /* not echoed: sent to all as FROM_ALL */
    FROM_ALL = 'B',
    CLOSE_ME = 'c', /* as the next one, from clients only */
    ABORT_ME = 'a',
};

enum ending {
    CLOSE,       /* after the last echo */
    CLOSE_EARLY, /* behind the last message: the echoes come nonetheless */
    PLAIN_CLOSE, /* weir_close */
    SERVER_CLOSE,
    ABORT,
    SERVER_ABORT,
    SILENCE, /* stops reading, so that the server gives up */
    ENDINGS,
};

/* ---- randomness, and messages made of it ---- */

static uint64_t mix(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Most are short. */
static size_t length_of(uint64_t seed, size_t max)
{
    size_t limit = seed % 10 < 7 ? 100 : seed % 10 < 9 ? 5000 : max;

    return HEAD + (seed >> 8) % (limit < max ? limit : max);
}

/* Some compress well, others do not. */
static void fill(char *bytes, size_t length, char kind, uint64_t seed)
{
    unsigned letters = 1 + (unsigned)(seed >> 4) % 26;

    (void)snprintf(bytes, HEAD + 1, "%c%016" PRIx64, kind, seed);
    for (size_t i = HEAD; i < length; i += 4)
        memset(bytes + i, (int)('a' + mix(seed, i) % letters), i + 4 < length ? 4 : length - i);
}

/* The message has at least HEAD bytes. */
static uint64_t seed_of(weir_span bytes)
{
    char text[HEAD] = "";

    memcpy(text, bytes.data + 1, HEAD - 1);
    return strtoull(text, NULL, 16);
}

static bool is_whole(weir_span bytes, size_t max)
{
    char *expected;
    uint64_t seed;
    bool is_equal;

    if (bytes.length < HEAD)
        return false;
    seed = seed_of(bytes);
    if (bytes.length != length_of(seed, max))
        return false;
    expected = malloc(bytes.length + HEAD + 1);
    if (expected == NULL)
        return false;
    fill(expected, bytes.length, (char)bytes.data[0], seed);
    is_equal = memcmp(expected, bytes.data, bytes.length) == 0;
    free(expected);
    return is_equal;
}

static weir_msg *make_message(char kind, uint64_t seed, size_t max)
{
    size_t length = length_of(seed, max);
    weir_ws_message *message = NULL;
    char *bytes = malloc(length + HEAD + 1);

    if (bytes == NULL)
        abort();
    fill(bytes, length, kind, seed);
    if (weir_ws_message_create_from(seed % 2 == 0 ? WEIR_WS_TEXT : WEIR_WS_BINARY, bytes, length,
                                    &message) < 0)
        abort();
    free(bytes);
    return weir_ws_message_msg(message);
}

/* ---- the server ---- */

static bool can_receive(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_channel_is_writable(channel);
}

static void send_to_all(struct ws_crowd *crowd, weir_span bytes)
{
    uint64_t seed = 0;

    (void)sscanf((const char *)bytes.data + 1, "%16" SCNx64, &seed);
    weir_channel_group_write_and_flush(
        crowd->guests, make_message(FROM_ALL, seed, crowd->max_message), NULL, can_receive, NULL);
}

static void serve_message(weir_ctx *ctx, weir_msg *msg)
{
    struct ws_crowd *crowd = *(struct ws_crowd **)weir_ctx_state(ctx);
    weir_span bytes = weir_ws_message_bytes(weir_ws_message_of(msg));

    switch (bytes.data[0]) {
    case TO_ALL:
        send_to_all(crowd, bytes);
        break;
    case CLOSE_ME:
        (void)weir_ws_close(weir_ctx_channel(ctx), SERVER_CODE, "bye", NULL);
        break;
    case ABORT_ME:
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
        break;
    default:
        weir_write_and_flush(ctx, msg, NULL);
        return;
    }
    weir_msg_release(msg);
}

static void serve_event(weir_ctx *ctx, weir_msg *event)
{
    struct ws_crowd *crowd = *(struct ws_crowd **)weir_ctx_state(ctx);

    if (weir_ws_opened_of(event) != NULL) {
        atomic_fetch_add(&crowd->opened, 1);
        if (weir_channel_group_add(crowd->guests, weir_ctx_channel(ctx)) < 0)
            abort();
    }
    if (weir_ws_closed_of(event) != NULL)
        atomic_fetch_add(&crowd->closed, 1);
    weir_fire_event(ctx, event);
}

static void pause_and_resume(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

static void echo_part(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static int copy_pointer(void *state, const void *options)
{
    memcpy(state, options, sizeof(void *));
    return 0;
}

/* An error, such as a write to a connection that is closing, is not one of the test. */
static void ignore_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_close(ctx, NULL);
}

static const weir_handler host = {.name = "host",
                                  .state_size = sizeof(void *),
                                  .init = copy_pointer,
                                  .read = serve_message,
                                  .event = serve_event,
                                  .writability = pause_and_resume,
                                  .error = ignore_error};

static const weir_handler part_host = {.name = "host of parts",
                                       .state_size = sizeof(void *),
                                       .init = copy_pointer,
                                       .read = echo_part,
                                       .writability = pause_and_resume,
                                       .error = ignore_error};

static int add_host(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &host, &user_data);
}

static int add_part_host(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &part_host, &user_data);
}

static void accept_guest(weir_http_exchange *exchange, void *user_data)
{
    (void)weir_ws_accept(exchange,
                         WEIR_WS_OPTIONS(.init = add_host, .user_data = user_data, .deflate = true,
                                         .deflate_level = 1, .ping_interval_ns = PATIENCE_NS,
                                         .close_timeout_ns = PATIENCE_NS));
}

static void accept_part_guest(weir_http_exchange *exchange, void *user_data)
{
    (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_part_host, .user_data = user_data,
                                                   .stream = true, .deflate = true,
                                                   .ping_interval_ns = PATIENCE_NS,
                                                   .close_timeout_ns = PATIENCE_NS));
}

static void accept_briefly(weir_http_exchange *exchange, void *user_data)
{
    (void)weir_ws_accept(exchange,
                         WEIR_WS_OPTIONS(.init = add_host, .user_data = user_data, .deflate = true,
                                         .ping_interval_ns = weir_ms(20)));
}

/* ---- clients ---- */

struct visit {
    struct ws_crowd *crowd;
    _Atomic unsigned refs; /* the promise of the connection, and the handler */
    uint64_t seed;
    enum ending ending;
    bool in_parts; /* the server echoes parts, and does nothing else */
    bool is_over;  /* the end has begun */
    unsigned count, sent, received;
    unsigned opened, closed;
    unsigned code; /* that was sent, and that was received */
    unsigned closed_code;
    bool is_clean;
};

static void complain(struct visit *visit, const char *what)
{
    printf("visit %016" PRIx64 ", ending %d: %s: sent %u received %u of %u, opened %u closed %u, "
           "code %u %s\n",
           visit->seed, (int)visit->ending, what, visit->sent, visit->received, visit->count,
           visit->opened, visit->closed, visit->closed_code, visit->is_clean ? "clean" : "lost");
    atomic_fetch_add(&visit->crowd->wrong, 1);
}

/* Only short ones go to all, or a large crowd would do nothing else. */
static char kind_of(const struct visit *visit, unsigned n)
{
    bool is_short = length_of(mix(visit->seed, n), visit->crowd->max_message) < SHORT;

    return is_short && mix(visit->seed, 100 + n) % 8 == 0 && !visit->in_parts ? TO_ALL : ECHO;
}

static void stop_reading(weir_ctx *ctx);

static void leave(weir_ctx *ctx, struct visit *visit)
{
    struct ws_crowd *crowd = visit->crowd;
    weir_channel *channel = weir_ctx_channel(ctx);

    visit->is_over = true;
    switch (visit->ending) {
    case PLAIN_CLOSE:
        visit->code = WEIR_WS_NORMAL;
        weir_close(ctx, NULL);
        break;
    case SERVER_CLOSE:
    case SERVER_ABORT:
        visit->code = SERVER_CODE;
        weir_write_and_flush(ctx,
                             make_message(visit->ending == SERVER_CLOSE ? CLOSE_ME : ABORT_ME,
                                          visit->seed, crowd->max_message),
                             NULL);
        break;
    case ABORT:
        weir_channel_abort(channel, NULL);
        break;
    case SILENCE:
        stop_reading(ctx);
        break;
    default:
        visit->code = 3000 + (unsigned)(visit->seed % 1000);
        (void)weir_ws_close(channel, visit->code, "good night", NULL);
    }
}

static void talk(weir_ctx *ctx, struct visit *visit)
{
    while (visit->sent < visit->count && visit->sent < visit->received + IN_FLIGHT) {
        char kind = kind_of(visit, visit->sent);
        weir_ws_message *ping;

        if (mix(visit->seed, 200 + visit->sent) % 4 == 0 &&
            weir_ws_message_create_from(WEIR_WS_PING, "?", 1, &ping) == 0)
            weir_write(ctx, weir_ws_message_msg(ping), NULL);
        visit->received += kind == TO_ALL && visit->received == visit->sent;
        weir_write_and_flush(
            ctx, make_message(kind, mix(visit->seed, visit->sent), visit->crowd->max_message),
            NULL);
        visit->sent++;
    }
    if (visit->sent == visit->count && !visit->is_over &&
        (visit->received == visit->count || visit->ending == CLOSE_EARLY))
        leave(ctx, visit);
}

/* Skips the messages that are not echoed. */
static void await_next(struct visit *visit)
{
    while (visit->received < visit->sent && kind_of(visit, visit->received) == TO_ALL)
        visit->received++;
}

static void hear(weir_ctx *ctx, weir_msg *msg)
{
    struct visit *visit = *(struct visit **)weir_ctx_state(ctx);
    weir_span bytes = weir_ws_message_bytes(weir_ws_message_of(msg));

    atomic_fetch_add(&visit->crowd->messages, 1);
    atomic_fetch_add(&visit->crowd->bytes, bytes.length);
    if (!is_whole(bytes, visit->crowd->max_message)) {
        complain(visit, "a message differs");
    } else if (bytes.data[0] == ECHO) {
        await_next(visit);
        if (seed_of(bytes) != mix(visit->seed, visit->received++))
            complain(visit, "another message");
        await_next(visit);
    }
    weir_msg_release(msg);
    talk(ctx, visit);
}

static void notice(weir_ctx *ctx, weir_msg *event)
{
    struct visit *visit = *(struct visit **)weir_ctx_state(ctx);
    const weir_ws_closed *closed = weir_ws_closed_of(event);

    if (weir_ws_opened_of(event) != NULL) {
        visit->opened++;
        talk(ctx, visit);
    }
    if (closed != NULL) {
        visit->closed++;
        visit->closed_code = closed->code;
        visit->is_clean = closed->is_clean;
    }
    weir_fire_event(ctx, event);
}

static void release_visit(struct visit *visit);

static void forget_visit(void *state)
{
    release_visit(*(struct visit **)state);
}

static const weir_handler guest = {.name = "guest",
                                   .state_size = sizeof(void *),
                                   .init = copy_pointer,
                                   .deinit = forget_visit,
                                   .read = hear,
                                   .event = notice,
                                   .error = ignore_error};

static void give_up(void *arg, int status)
{
    weir_channel *channel = arg;

    (void)status;
    weir_channel_abort(channel, NULL);
    weir_channel_release(channel);
}

static void stop_reading(weir_ctx *ctx)
{
    weir_channel *channel = weir_ctx_channel(ctx);

    weir_ctx_set_auto_read(ctx, false);
    if (weir_schedule(weir_channel_executor(channel), SILENCE_NS, give_up,
                      weir_channel_retain(channel), NULL) < 0)
        give_up(channel, 0);
}

static int add_guest(weir_channel *channel, void *user_data)
{
    struct visit *visit = user_data;

    atomic_fetch_add(&visit->refs, 1);
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &guest, &user_data);
}

/* ---- visits ---- */

static void check_end(struct visit *visit)
{
    bool is_reset = visit->ending == ABORT || visit->ending == SERVER_ABORT;

    if (visit->opened != 1 || visit->closed != 1)
        complain(visit, "events");
    if (visit->ending == SILENCE) /* to a server without patience: it may end at any time */
        return;
    if (visit->is_clean == is_reset)
        complain(visit, "its end");
    await_next(visit);
    if (visit->received != visit->count)
        complain(visit, "messages are missing");
    if (visit->closed_code != (is_reset ? WEIR_WS_LOST : visit->code))
        complain(visit, "the code");
}

static void begin_visit(struct ws_crowd *crowd);

static void release_visit(struct visit *visit)
{
    struct ws_crowd *crowd = visit->crowd;

    if (atomic_fetch_sub(&visit->refs, 1) > 1)
        return;
    check_end(visit);
    free(visit);
    begin_visit(crowd);
}

static void on_connected(weir_promise *connecting, void *user_data)
{
    struct visit *visit = user_data;

    if (weir_promise_result(connecting) < 0)
        complain(visit, weir_promise_detail(connecting));
    release_visit(visit);
}

static int connect_visit(struct visit *visit, weir_promise *connecting)
{
    const char *path = visit->in_parts ? "parts" : visit->ending == SILENCE ? "brief" : "all";
    const weir_ws_options *options =
        WEIR_WS_OPTIONS(.init = add_guest, .user_data = visit, .deflate = visit->seed >> 20 & 1,
                        .deflate_window_bits = 9 + (int)((visit->seed >> 24) % 7),
                        .inflate_window_bits = 9 + (int)((visit->seed >> 28) % 7),
                        .no_context_takeover = visit->seed >> 32 & 1, .deflate_level = 1,
                        .ping_interval_ns = PATIENCE_NS, .close_timeout_ns = PATIENCE_NS);
    char url[128];

    (void)snprintf(url, sizeof(url), "ws://%s/%s", visit->crowd->address, path);
    return weir_ws_connect(WEIR_WS_CLIENT_OPTIONS(.url = url, .group = visit->crowd->group,
                                                  .ws = options, .connect_timeout_ns = PATIENCE_NS),
                           connecting);
}

/* The next one, or the end of the last. */
static void begin_visit(struct ws_crowd *crowd)
{
    unsigned number = atomic_fetch_add(&crowd->begun, 1);
    struct visit *visit;
    weir_promise *connecting;

    if (number >= crowd->visits) {
        if (atomic_fetch_sub(&crowd->left, 1) == 1)
            weir_promise_succeed(crowd->finished, NULL);
        return;
    }
    visit = calloc(1, sizeof(*visit));
    if (visit == NULL || weir_promise_create(weir_group_next(crowd->group), &connecting) < 0)
        abort();
    visit->crowd = crowd;
    atomic_store(&visit->refs, 1);
    visit->seed = mix(crowd->seed, number);
    visit->ending = (enum ending)(mix(visit->seed, 1000) % ENDINGS);
    visit->in_parts = visit->ending <= PLAIN_CLOSE && mix(visit->seed, 1001) % 4 == 0;
    visit->count = (unsigned)(mix(visit->seed, 1002) % (MESSAGES_MAX + 1));
    if (connect_visit(visit, connecting) < 0 ||
        weir_promise_add_listener(connecting, on_connected, visit) < 0)
        abort();
    weir_promise_release(connecting);
}

static bool has_ended(struct ws_crowd *crowd, weir_http_server *server)
{
    unsigned opened, closed;

    if (weir_promise_sync(crowd->finished, WEIR_NEVER) < 0 ||
        weir_http_server_stop(server, weir_seconds(30)) < 0)
        return false;
    opened = atomic_load(&crowd->opened);
    closed = atomic_load(&crowd->closed);
    if (opened != closed)
        printf("the server: %u opened, %u closed\n", opened, closed);
    return opened == closed && atomic_load(&crowd->wrong) == 0;
}

bool ws_crowd_run(struct ws_crowd *crowd)
{
    const weir_http_route routes[] = {{"GET", "/all", accept_guest, crowd},
                                      {"GET", "/parts", accept_part_guest, crowd},
                                      {"GET", "/brief", accept_briefly, crowd},
                                      {0}};
    weir_http_server *server;
    weir_address address;
    bool has_passed;

    if (weir_channel_group_create(NULL, &crowd->guests) < 0 ||
        weir_promise_create(weir_group_next(crowd->group), &crowd->finished) < 0 ||
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.workers = crowd->group, .routes = routes,
                                     .address = "127.0.0.1:0",
                                     .http1 = WEIR_HTTP1_OPTIONS(.head_timeout_ns = PATIENCE_NS)),
            &server) < 0)
        abort();
    weir_channel_local_address(weir_server_listener(weir_http_server_server(server), 0), &address);
    weir_address_format(&address, crowd->address, sizeof(crowd->address));
    atomic_store(&crowd->left, crowd->clients);
    for (unsigned i = 0; i < crowd->clients; i++)
        begin_visit(crowd);
    has_passed = has_ended(crowd, server);
    weir_http_server_release(server);
    weir_promise_release(crowd->finished);
    weir_channel_group_release(crowd->guests);
    return has_passed;
}
