/* SPDX-License-Identifier: Apache-2.0 */
#include "support/transport/offload_stress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/error.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "channel/border.h"
#include "channel/offload_blocking.h"
#include "os/random.h"
#include "support/timeout.h"

#define BLOCKERS 4
#define GENERATIONS 12 /* of tables; a table blocks for good, and there is room for 64 */
#define CONNECTIONS_MAX 64
#define BURST 32

/* What is wrong; the first one counts. */
static _Atomic(const char *) wrong;

static void note_wrong(const char *text)
{
    const char *none = NULL;

    (void)atomic_compare_exchange_strong(&wrong, &none, text);
}

static _Atomic int64_t contexts, promises, changes, remote_contexts;

/* ---- handlers ---- */

/* The numbers that pass in one direction, from any one on. */
struct numbers {
    uint32_t next;
    bool has_begun;
};

static uint32_t number_of(weir_msg *msg)
{
    uint32_t number = UINT32_MAX;

    memcpy(&number, weir_buf_bytes(weir_buf_of(msg)), sizeof(number));
    return number;
}

static void check_number(struct numbers *numbers, weir_msg *msg, const char *text)
{
    uint32_t number = number_of(msg);

    if (numbers->has_begun ? number != numbers->next : false)
        note_wrong(text);
    numbers->has_begun = true;
    numbers->next = number + 1;
}

/* The state of a handler. `depth` and `thread` are not atomic: TSan sees two threads in it. */
struct station {
    struct numbers in, out;
    weir_timer timer;
    weir_group *aside;
    unsigned depth;
    weir_executor *where;
};

static void enter(weir_ctx *ctx)
{
    struct station *self = weir_ctx_state(ctx);

    if (self->depth++ == 0)
        self->where = weir_executor_current();
    else if (self->where != weir_executor_current())
        note_wrong("two threads are in a handler");
}

static void leave(weir_ctx *ctx)
{
    ((struct station *)weir_ctx_state(ctx))->depth--;
}

static int init(void *state, const void *options)
{
    struct station *self = state;

    self->aside = (weir_group *)(uintptr_t)options;
    contexts++;
    return 0;
}

static void deinit(void *state)
{
    (void)state;
    contexts--;
}

static void on_added(weir_ctx *ctx)
{
    if (weir__ctx_is_remote(ctx))
        remote_contexts++;
}

static void on_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    enter(ctx);
    leave(ctx);
}

static void release_there(void *arg, int status)
{
    (void)status;
    weir_ctx_release(arg);
}

static void *work(void *arg)
{
    return arg;
}

static void on_done(weir_ctx *ctx, int err, void *result, void *arg)
{
    (void)err;
    (void)result;
    (void)arg;
    if (ctx == NULL)
        return;
    enter(ctx);
    leave(ctx);
}

/* Now and then: a timer, a reference that another thread releases, offloaded work. */
static void use_ctx(weir_ctx *ctx, uint32_t number)
{
    struct station *self = weir_ctx_state(ctx);
    uint32_t hash = number * 2654435761u >> 24;

    if (hash % 16 == 0)
        (void)weir_ctx_timer_start(ctx, &self->timer, 1000 * (int64_t)hash, on_timer);
    if (hash % 32 == 1 && weir_group_execute(self->aside, release_there, weir_ctx_retain(ctx)) < 0)
        weir_ctx_release(ctx);
    if (hash % 64 == 2)
        (void)!weir_ctx_offload(ctx, self->aside, work, on_done, NULL);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct station *self = weir_ctx_state(ctx);

    enter(ctx);
    check_number(&self->in, msg, "a handler has read another number than the next");
    use_ctx(ctx, number_of(msg));
    weir_fire_read(ctx, msg);
    leave(ctx);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct station *self = weir_ctx_state(ctx);

    enter(ctx);
    check_number(&self->out, msg, "a handler has written another number than the next");
    weir_write(ctx, msg, done);
    leave(ctx);
}

/* The echo. */
static void on_written(weir_promise *promise, void *user_data)
{
    (void)promise;
    (void)user_data;
    promises--;
}

static weir_promise *make_promise(weir_ctx *ctx)
{
    weir_promise *promise = NULL;

    if (weir_promise_create(weir_ctx_executor(ctx), &promise) < 0 ||
        weir_promise_add_listener(promise, on_written, NULL) < 0)
        abort();
    promises++;
    return promise;
}

static void on_echo_read(weir_ctx *ctx, weir_msg *msg)
{
    struct station *self = weir_ctx_state(ctx);
    weir_promise *done = number_of(msg) % 8 == 0 ? make_promise(ctx) : NULL;

    enter(ctx);
    check_number(&self->in, msg, "the echo has read another number than the next");
    use_ctx(ctx, number_of(msg));
    weir_write(ctx, msg, done);
    weir_promise_release(done);
    leave(ctx);
}

static void on_echo_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
    weir_fire_read_complete(ctx);
}

static void on_echo_event(weir_ctx *ctx, weir_msg *event)
{
    if (event == weir_event_input_closed())
        weir_close(ctx, NULL);
    weir_fire_event(ctx, event);
}

/* Makes a message of every number. */
struct splitter {
    uint8_t part[sizeof(uint32_t)];
    size_t length;
};

static void on_bytes(weir_ctx *ctx, weir_msg *msg)
{
    struct splitter *self = weir_ctx_state(ctx);
    weir_buf *in = weir_buf_of(msg), *out;
    uint8_t byte;

    while (weir_buf_readable(in) > 0 && !weir_ctx_is_removed(ctx)) {
        byte = *(const uint8_t *)weir_buf_bytes(in);
        (void)weir_buf_skip(in, 1);
        self->part[self->length++] = byte;
        if (self->length < sizeof(self->part))
            continue;
        self->length = 0;
        if (weir_buf_create_from(self->part, sizeof(self->part), &out) < 0)
            abort();
        weir_fire_read(ctx, weir_buf_msg(out));
    }
    weir_msg_release(msg);
}

static const weir_handler splitter = {.name = "split",
                                      .state_size = sizeof(struct splitter),
                                      .read = on_bytes,
                                      .stays_on_loop = true};
static const weir_handler passer = {.name = "passer",
                                    .state_size = sizeof(struct station),
                                    .init = init,
                                    .deinit = deinit,
                                    .read = on_read,
                                    .write = on_write};

/* The tables of one generation; the last one is the echo. */
static weir_handler blockers[GENERATIONS][BLOCKERS];
static unsigned generation;

static weir_handler *next_generation(void)
{
    weir_handler *tables = blockers[generation % GENERATIONS];

    if (generation++ >= GENERATIONS)
        return tables;
    for (unsigned i = 0; i < BLOCKERS; i++) {
        tables[i] = passer;
        tables[i].name = "blocker";
        tables[i].added = on_added;
    }
    tables[BLOCKERS - 1].read = on_echo_read;
    tables[BLOCKERS - 1].write = NULL;
    tables[BLOCKERS - 1].read_complete = on_echo_read_complete;
    tables[BLOCKERS - 1].event = on_echo_event;
    return tables;
}

/* ---- connections ---- */

struct connection {
    weir_channel *channel; /* NULL: closed */
    int peer;
    uint32_t sent, received, quota;
    size_t part;
    uint8_t bytes[sizeof(uint32_t)];
    bool is_cut;    /* by force: not everything comes back */
    bool is_ending; /* the peer has ended its stream */
    bool is_paused; /* auto-read is off */
    _Atomic bool *is_moving;
};

struct run {
    const struct offload_stress *stress;
    struct offload_stress_result *result;
    weir__random random;
    weir_handler *tables;
    struct connection connections[CONNECTIONS_MAX];
};

static uint64_t below(struct run *run, uint64_t limit)
{
    return weir__random_below(&run->random, limit);
}

static weir_channel_options options_of(struct run *run, bool is_cured)
{
    return (weir_channel_options){.size = sizeof(weir_channel_options),
                                  .half_closure = true,
                                  .offload_when_blocking = is_cured ? run->stress->aside : NULL};
}

static void add(struct run *run, struct connection *connection, const char *name,
                const weir_handler *handler)
{
    if (weir_pipeline_add_last_as(weir_channel_pipeline(connection->channel), name, handler,
                                  run->stress->aside) < 0)
        abort();
}

static void open_connection(struct run *run, struct connection *connection)
{
    weir_channel_options options;
    int pair[2];

    *connection = (struct connection){.quota = 20 + (uint32_t)below(run, 400)};
    options = options_of(run, below(run, 4) == 0);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
        weir_adopt(pair[0], &options, &connection->channel) < 0)
        abort();
    connection->peer = pair[1];
    connection->is_moving = calloc(1, sizeof(*connection->is_moving));
    add(run, connection, "split", &splitter);
    add(run, connection, "b0", &run->tables[0]);
    add(run, connection, "p0", &passer);
    add(run, connection, "b1", &run->tables[1]);
    add(run, connection, "b2", &run->tables[2]);
    add(run, connection, "p1", &passer);
    add(run, connection, "b3", &run->tables[3]);
    weir_group_register(run->stress->loops, connection->channel, NULL);
    run->result->connections++;
}

/* ---- what happens to them ---- */

/* A change of the loop. */
struct move {
    weir_channel *channel;
    weir_group *loops;
    _Atomic bool *is_moving;
};

static void on_registered(weir_promise *promise, void *user_data)
{
    struct move *move = user_data;

    (void)promise;
    weir_channel_release(move->channel);
    *move->is_moving = false;
    free(move);
}

static void on_deregistered(weir_promise *promise, void *user_data)
{
    struct move *move = user_data;
    weir_promise *done = NULL;

    if (weir_promise_result(promise) < 0) { /* it is closed */
        on_registered(promise, move);
        return;
    }
    changes++;
    if (weir_promise_create(NULL, &done) < 0 ||
        weir_promise_add_listener(done, on_registered, move) < 0)
        abort();
    weir_group_register(move->loops, move->channel, done);
    weir_promise_release(done);
}

static void change_loop(struct run *run, struct connection *connection)
{
    weir_promise *done = NULL;
    struct move *move;

    if (*connection->is_moving)
        return;
    move = malloc(sizeof(*move));
    *move = (struct move){weir_channel_retain(connection->channel), run->stress->loops,
                          connection->is_moving};
    *connection->is_moving = true;
    if (weir_promise_create(NULL, &done) < 0 ||
        weir_promise_add_listener(done, on_deregistered, move) < 0)
        abort();
    weir_channel_deregister(connection->channel, done);
    weir_promise_release(done);
}

static void set_option(struct run *run, struct connection *connection)
{
    weir_channel_options options = options_of(run, below(run, 8) != 0);

    (void)weir_channel_set_options(connection->channel, &options);
}

static void change_pipeline(struct run *run, struct connection *connection)
{
    static const char *const places[] = {"b0", "p0", "b1", "b2"};
    weir_pipeline *pipeline = weir_channel_pipeline(connection->channel);
    bool blocks = below(run, 2) == 0;

    if (below(run, 2) == 0)
        (void)weir_pipeline_remove(pipeline, "x", NULL);
    else
        (void)!weir_pipeline_add(
            pipeline,
            WEIR_PLACE(.name = "x", .after = places[below(run, 4)],
                       .group = below(run, 4) == 0 ? run->stress->aside : NULL),
            blocks ? &run->tables[below(run, BLOCKERS - 1)] : &passer, run->stress->aside);
}

static void toggle_reading(struct connection *connection)
{
    connection->is_paused = !connection->is_paused;
    weir_channel_set_auto_read(connection->channel, !connection->is_paused);
}

static void cut(struct run *run, struct connection *connection)
{
    connection->is_cut = true;
    run->result->aborted++;
    if (below(run, 2) == 0)
        weir_channel_abort(connection->channel, NULL);
    else
        (void)shutdown(connection->peer, SHUT_RDWR);
}

static void disturb(struct run *run, struct connection *connection)
{
    switch (below(run, 24)) {
    case 0:
    case 1:
        change_loop(run, connection);
        break;
    case 2:
    case 3:
        set_option(run, connection);
        break;
    case 4:
        weir__handler_offload(&run->tables[below(run, BLOCKERS)], 4);
        break;
    case 5:
    case 6:
        change_pipeline(run, connection);
        break;
    case 7:
        toggle_reading(connection);
        break;
    case 8:
        weir_channel_request_read(connection->channel);
        break;
    case 9:
        if (below(run, 16) == 0)
            cut(run, connection);
        break;
    default:
        break;
    }
}

/* ---- the peer ---- */

static bool send_some(struct run *run, struct connection *connection)
{
    uint32_t numbers[BURST], count = 1 + (uint32_t)below(run, BURST);
    ssize_t length;

    if (connection->sent == connection->quota || connection->is_cut)
        return false;
    if (count > connection->quota - connection->sent)
        count = connection->quota - connection->sent;
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = connection->sent + i;
    length = send(connection->peer, numbers, count * sizeof(numbers[0]), MSG_NOSIGNAL);
    if (length <= 0)
        return false;
    /* A part of a number: the rest must follow. */
    while (length % (ssize_t)sizeof(numbers[0]) != 0) {
        ssize_t more = send(connection->peer, (const char *)numbers + length, 1, MSG_NOSIGNAL);

        if (more < 0 && errno != EAGAIN && errno != EINTR)
            break;
        length += more > 0 ? more : 0;
    }
    connection->sent += (uint32_t)((size_t)length / sizeof(numbers[0]));
    return true;
}

/* Returns false if nothing has come; at the end, `ret_has_ended`. */
static bool receive_some(struct run *run, struct connection *connection, bool *ret_has_ended)
{
    uint8_t bytes[BURST * sizeof(uint32_t)];
    ssize_t length = recv(connection->peer, bytes, sizeof(bytes), 0);
    uint32_t number;

    *ret_has_ended = length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
    for (ssize_t i = 0; i < length; i++) {
        connection->bytes[connection->part++] = bytes[i];
        if (connection->part < sizeof(number))
            continue;
        connection->part = 0;
        memcpy(&number, connection->bytes, sizeof(number));
        if (number != connection->received)
            note_wrong("the peer has received another number than the next");
        connection->received++;
        run->result->messages++;
    }
    return length > 0;
}

static void close_connection(struct connection *connection)
{
    if (!connection->is_cut && connection->received != connection->quota)
        note_wrong("numbers were lost");
    if (connection->is_paused)
        toggle_reading(connection);
    (void)close(connection->peer);
    if (weir_channel_await_closed(connection->channel, TEST_TIMEOUT_NS) < 0)
        note_wrong("a channel is not closed");
    weir_channel_release(connection->channel);
    connection->channel = NULL;
    while (*connection->is_moving)
        (void)poll(NULL, 0, 1);
    free(connection->is_moving);
}

static bool step(struct run *run, struct connection *connection)
{
    bool has_ended, has_moved;

    disturb(run, connection);
    has_moved = send_some(run, connection);
    if (connection->sent == connection->quota && !connection->is_ending && !connection->is_cut) {
        if (connection->is_paused)
            toggle_reading(connection);
        connection->is_ending = true;
        (void)shutdown(connection->peer, SHUT_WR);
    }
    has_moved |= receive_some(run, connection, &has_ended);
    if (has_ended)
        close_connection(connection);
    return has_moved || has_ended;
}

/* Waits until a peer can receive, or send; the paused ones are resumed. */
static void wait_for_peers(struct run *run)
{
    struct pollfd polls[CONNECTIONS_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < run->stress->at_once; i++) {
        struct connection *connection = &run->connections[i];

        if (connection->channel == NULL)
            continue;
        if (connection->is_paused)
            toggle_reading(connection);
        polls[count++] = (struct pollfd){.fd = connection->peer, .events = POLLIN};
    }
    if (count > 0 && poll(polls, count, (int)(TEST_TIMEOUT_NS / 1000000)) == 0)
        note_wrong("nothing moves");
}

/* Contexts that were moved from their loop. */
static uint64_t count_moved(const struct run *run)
{
    uint64_t sum = 0, moved;

    for (unsigned i = 0; i < BLOCKERS; i++) {
        (void)weir__handler_offload_read(&run->tables[i], &moved);
        sum += moved;
    }
    return sum;
}

void offload_stress_run(const struct offload_stress *stress, struct offload_stress_result *result)
{
    struct run run = {.stress = stress, .result = result};
    bool is_over = false, has_moved;
    uint64_t moved;
    unsigned open;

    *result = (struct offload_stress_result){0};
    wrong = NULL;
    contexts = promises = changes = remote_contexts = 0;
    run.tables = next_generation();
    moved = count_moved(&run);
    weir__random_init(&run.random, stress->seed);
    do {
        has_moved = false;
        open = 0;
        is_over = is_over || result->messages >= stress->messages || wrong != NULL;
        for (unsigned i = 0; i < stress->at_once; i++) {
            struct connection *connection = &run.connections[i];

            if (connection->channel == NULL && !is_over)
                open_connection(&run, connection);
            if (connection->channel == NULL)
                continue;
            has_moved |= step(&run, connection);
            open += connection->channel != NULL;
        }
        if (!has_moved && open > 0)
            wait_for_peers(&run);
    } while (open > 0 && wrong == NULL);
    result->moved = count_moved(&run) - moved;
    result->added = (uint64_t)remote_contexts;
    result->loop_changes = (uint64_t)changes;
    result->wrong = wrong;
}

void offload_stress_check_end(struct offload_stress_result *result)
{
    if (contexts != 0)
        note_wrong("contexts were freed more or less than once");
    if (promises != 0)
        note_wrong("promises were completed more or less than once");
    result->wrong = wrong;
}
