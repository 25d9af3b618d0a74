/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers on other executors, channels that move between loops under load, and tasks, timers,
 * schedules, cancellations and promises from several executors, with slow threads. The bytes of an
 * echo pass three handlers on two executors in order while the channel moves, and while the border
 * between the two moves; every callback runs on its executor; tasks of one submitter run in order;
 * each runs or is cancelled exactly once; no timer fires early; listeners run in the order in which
 * they were added.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define CONNECTIONS 3
#define TOTAL 1500
#define MOVES 6
#define LOOPS 2 /* of each of the two groups */
#define SUBMITTERS 3
#define TASKS 12
#define PROMISES 6
#define LISTENERS 3

/* Faults that break a connection or lose a task. */
#define BREAKING (SIM_SCARCITY | SIM_KIND(RESET))

static bool is_rough;

/* ---- the server: three handlers, all but the first on another executor ---- */

static struct {
    weir_group *loops[2]; /* the channels move between them */
    weir_group *others;   /* of handlers behind the border, and of tasks */
    unsigned moves;
    unsigned moving;
} server;

struct place {
    uint64_t in, out; /* bytes that have passed */
    bool is_active, is_inactive;
};

/* The global executor replaces one that has ended. */
static bool is_right(const weir_executor *executor)
{
    return weir_in_executor(executor) || (weir_in_executor(weir_executor_global()) &&
                                          weir_executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN);
}

static void check_executor(weir_ctx *ctx, const char *event)
{
    if (!is_right(weir_ctx_executor(ctx)))
        weir_sim_fail(weir_sim_current(), "%s of %s runs on the wrong executor", event,
                      weir_ctx_name(ctx));
}

static void place_active(weir_ctx *ctx)
{
    struct place *self = weir_ctx_state(ctx);

    check_executor(ctx, "active");
    if (self->is_active)
        weir_sim_fail(weir_sim_current(), "%s: active twice", weir_ctx_name(ctx));
    self->is_active = true;
    weir_fire_active(ctx);
}

static void place_inactive(weir_ctx *ctx)
{
    struct place *self = weir_ctx_state(ctx);

    check_executor(ctx, "inactive");
    if (!self->is_active || self->is_inactive)
        weir_sim_fail(weir_sim_current(), "%s: inactive too often", weir_ctx_name(ctx));
    self->is_inactive = true;
    weir_fire_inactive(ctx);
}

/* A message for which there was no memory is lost, and the channel closes; what follows it may
 * still pass handlers, but does not reach the peer. */
static uint64_t check_place(weir_ctx *ctx, weir_msg *msg, uint64_t position)
{
    return sim_faults(SIM_SCARCITY) > 0 ? 0 : sim_check_bytes(msg, 7, position, weir_ctx_name(ctx));
}

/* Now and then the border moves in front of "before", which is running. */
static void move_border(weir_ctx *ctx)
{
    static const weir_handler marker = {.name = "marker"};
    weir_pipeline *pipeline = weir_ctx_pipeline(ctx);

    if (strcmp(weir_ctx_name(ctx), "before") != 0 || !sim_once_in(20) ||
        !weir_in_executor(weir_channel_executor(weir_ctx_channel(ctx))) ||
        weir_pipeline_find_handler(pipeline, &marker) != NULL)
        return;
    (void)!weir_pipeline_add(pipeline, WEIR_PLACE(.before = "before", .group = server.others),
                             &marker, NULL);
}

static void place_read(weir_ctx *ctx, weir_msg *msg)
{
    struct place *self = weir_ctx_state(ctx);

    check_executor(ctx, "read");
    move_border(ctx);
    if (!self->is_active || self->is_inactive)
        weir_sim_fail(weir_sim_current(), "%s: read while not active", weir_ctx_name(ctx));
    self->in += check_place(ctx, msg, self->in);
    weir_fire_read(ctx, msg);
}

static void place_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct place *self = weir_ctx_state(ctx);

    check_executor(ctx, "write");
    self->out += check_place(ctx, msg, self->out);
    weir_write(ctx, msg, done);
}

static void place_read_complete(weir_ctx *ctx)
{
    check_executor(ctx, "read_complete");
    weir_fire_read_complete(ctx);
}

static void place_flush(weir_ctx *ctx)
{
    check_executor(ctx, "flush");
    weir_flush(ctx);
}

static void place_registered(weir_ctx *ctx)
{
    check_executor(ctx, "registered");
    weir_fire_registered(ctx);
}

static const weir_handler place_handler = {
    .name = "place",
    .state_size = sizeof(struct place),
    .registered = place_registered,
    .active = place_active,
    .inactive = place_inactive,
    .read = place_read,
    .read_complete = place_read_complete,
    .write = place_write,
    .flush = place_flush,
};

static void echo_read(weir_ctx *ctx, weir_msg *msg)
{
    check_executor(ctx, "read");
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo_handler = {.name = "echo", .read = echo_read};

/* ---- moves ---- */

struct move {
    weir_channel *channel;
    weir_promise *left;
    unsigned count;
};

static weir_task_fn begin_move;

static void end_moves(struct move *move)
{
    server.moving--;
    weir_channel_release(move->channel);
    free(move);
}

static void on_registered(weir_promise *registered, void *user_data)
{
    struct move *move = user_data;

    if (weir_promise_result(registered) == 0)
        server.moves++;
    else if (weir_channel_is_open(move->channel) && sim_faults(BREAKING) == 0)
        weir_sim_fail(weir_sim_current(), "a registration failed: %s",
                      weir_promise_detail(registered));
    if (weir_promise_result(registered) < 0 || ++move->count == MOVES ||
        weir_schedule(weir_group_at(server.others, 0), sim_delay(weir_ms(4)), begin_move, move,
                      NULL) < 0)
        end_moves(move);
}

static void on_left(weir_promise *left, void *user_data)
{
    struct move *move = user_data;
    weir_promise *registered;

    if (weir_promise_result(left) < 0 || !weir_channel_is_open(move->channel)) {
        end_moves(move); /* closed meanwhile */
        return;
    }
    if (weir_promise_create(weir_group_at(server.others, 0), &registered) < 0) {
        weir_channel_abort(move->channel, NULL);
        end_moves(move);
        return;
    }
    if (weir_promise_add_listener(registered, on_registered, move) < 0) {
        weir_channel_abort(move->channel, NULL);
        end_moves(move);
    } else {
        weir_group *loops = server.loops[sim_below(2)];

        weir_channel_register(move->channel, weir_group_at(loops, sim_below(LOOPS)), registered);
    }
    weir_promise_release(registered);
}

static void begin_move(void *arg, int status)
{
    struct move *move = arg;
    weir_promise *left;

    if (status < 0 || weir_promise_create(weir_group_at(server.others, 0), &left) < 0) {
        end_moves(move);
        return;
    }
    if (weir_promise_add_listener(left, on_left, move) < 0)
        end_moves(move);
    else
        weir_channel_deregister(move->channel, left);
    weir_promise_release(left);
}

static void start_moves(weir_channel *channel)
{
    struct move *move = calloc(1, sizeof(*move));

    move->channel = weir_channel_retain(channel);
    server.moving++;
    if (weir_schedule(weir_group_at(server.others, 0), sim_delay(weir_ms(4)), begin_move, move,
                      NULL) < 0)
        end_moves(move);
}

static int init_child(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last_as(pipeline, "before", &place_handler, NULL);

    (void)user_data;
    if (err == 0)
        err = weir_pipeline_add(pipeline, WEIR_PLACE(.name = "remote", .group = server.others),
                                &place_handler, NULL);
    if (err == 0)
        err = weir_pipeline_add_last_as(pipeline, "after", &place_handler, NULL);
    if (err == 0 && sim_once_in(2))
        err = weir_pipeline_add(pipeline, WEIR_PLACE(.group = server.others), &echo_handler, NULL);
    else if (err == 0)
        err = weir_pipeline_add_last(pipeline, &echo_handler, NULL);
    if (err == 0 && is_rough)
        start_moves(channel);
    return err;
}

static int run_server(void)
{
    weir_server *listener = NULL;
    int err =
        weir_group_create(WEIR_GROUP_OPTIONS(.name = "a", .threads = LOOPS), &server.loops[0]);

    if (err == 0)
        err =
            weir_group_create(WEIR_GROUP_OPTIONS(.name = "b", .threads = LOOPS), &server.loops[1]);
    if (err == 0)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "other", .threads = 2,
                                                   .io = is_rough ? WEIR_IO_NONE : WEIR_IO_AUTO),
                                &server.others);
    if (err == 0)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = server.loops[0],
                                                    .address = "0.0.0.0:8007",
                                                    .init_child = init_child),
                                &listener);
    if (err == 0)
        err = weir_server_run(listener);
    weir_server_release(listener);
    sim_end_group(server.loops[1]);
    sim_end_group(server.loops[0]);
    sim_end_group(server.others);
    for (int i = 0; i < 1000 && server.moving > 0; i++)
        weir_sim_sleep(weir_ms(1)); /* listeners of ended executors run on the global one */
    if (server.moving > 0)
        weir_sim_fail(weir_sim_current(), "%u moves have not ended", server.moving);
    return err;
}

static int server_main(void *arg)
{
    int err = 0;

    (void)arg;
    for (int i = 0; i < 100; i++) {
        memset(&server, 0, sizeof(server));
        err = run_server();
        if (err == 0 || sim_excuse(err) < 0)
            break;
        weir_sim_sleep(weir_ms(1));
    }
    return err;
}

/* ---- the client ---- */

static struct {
    unsigned left;
    weir_promise *done;
} clients;

struct client {
    weir_timer timer;
    unsigned sent, received;
};

static void send_more(weir_ctx *ctx, weir_timer *timer)
{
    struct client *self = weir_ctx_state(ctx);
    unsigned left = TOTAL - self->sent, piece = 1 + sim_below(120);

    (void)timer;
    piece = piece < left ? piece : left;
    if (piece > 0 && sim_write_bytes(ctx, 7, self->sent, piece) < 0) {
        weir_close(ctx, NULL);
        return;
    }
    self->sent += piece;
    weir_flush(ctx);
    if (self->sent < TOTAL &&
        weir_ctx_timer_start(ctx, &self->timer, sim_delay(weir_ms(2)), send_more) < 0)
        weir_close(ctx, NULL);
}

static void client_active(weir_ctx *ctx)
{
    send_more(ctx, NULL);
}

static void client_read(weir_ctx *ctx, weir_msg *msg)
{
    struct client *self = weir_ctx_state(ctx);

    self->received += (unsigned)sim_check_bytes(msg, 7, self->received, "client");
    weir_msg_release(msg);
    if (self->received == TOTAL)
        weir_close(ctx, NULL);
}

static void client_inactive(weir_ctx *ctx)
{
    const struct client *self = weir_ctx_state(ctx);

    if (self->received < TOTAL && sim_faults(BREAKING) == 0)
        weir_sim_fail(weir_sim_current(), "a client got %u of %u bytes, %u sent", self->received,
                      TOTAL, self->sent);
    if (--clients.left == 0)
        (void)weir_promise_succeed(clients.done, NULL);
}

static void client_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_close(ctx, NULL);
}

static const weir_handler client_handler = {
    .name = "client",
    .state_size = sizeof(struct client),
    .active = client_active,
    .read = client_read,
    .inactive = client_inactive,
    .error = client_error,
};

static int init_client(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &client_handler);
}

static int client_main(void *arg)
{
    weir_group *group = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), &group);

    (void)arg;
    clients.left = 1;
    if (err == 0)
        err = weir_promise_create(NULL, &clients.done);
    for (unsigned i = 0; i < CONNECTIONS && err == 0; i++) {
        weir_channel *channel = NULL;

        clients.left++;
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = group, .init = init_client, .address = "10.0.0.1:8007"),
            &channel);
        if (err < 0)
            clients.left--; /* never active */
        weir_channel_release(channel);
        err = sim_excuse(err);
        if (sim_faults(SIM_KIND(RESET)) > 0)
            err = 0;
    }
    if (--clients.left > 0 && err == 0 && weir_promise_await(clients.done, weir_seconds(100)) < 0 &&
        sim_faults(BREAKING) == 0)
        weir_sim_fail(weir_sim_current(), "%u clients have not ended", clients.left);
    sim_end_group(group);
    weir_promise_release(clients.done);
    return sim_excuse(err);
}

/* ---- tasks ---- */

enum {
    EXECUTE,
    EXECUTE_TASK,
    SUBMIT,
    SCHEDULE,
    SCHEDULE_CANCELLED,
    PERIODIC,
    TASK_KINDS,
};

static struct record {
    unsigned submitter, number, kind;
    weir_executor *executor;
    weir_task task;
    weir_promise *promise;
    int64_t due_ns;
    unsigned runs, cancels;
    bool is_accepted, must_cancel;
} records[SUBMITTERS][TASKS];

static bool tasks_end;                   /* their groups shut down */
static unsigned next_number[SUBMITTERS]; /* of the tasks that keep the order */

static void run_record(void *arg, int status)
{
    struct record *self = arg;
    weir_sim *sim = weir_sim_current();

    if (status < 0) {
        if (self->cancels++ > 0 || (self->runs > 0 && self->kind != PERIODIC))
            weir_sim_fail(sim, "task %u of %u is cancelled again", self->number, self->submitter);
        return;
    }
    if (!weir_in_executor(self->executor) || weir_executor_current() != self->executor)
        weir_sim_fail(sim, "a task runs on the wrong executor");
    if ((self->runs++ > 0 && self->kind != PERIODIC) || self->cancels > 0 || self->must_cancel)
        weir_sim_fail(sim, "task %u of %u runs again, or was cancelled", self->number,
                      self->submitter);
    if (weir_sim_now(sim) < self->due_ns)
        weir_sim_fail(sim, "a scheduled task runs %lld ns early",
                      (long long)(self->due_ns - weir_sim_now(sim)));
    if (self->kind == EXECUTE || self->kind == EXECUTE_TASK) {
        if (self->number < next_number[self->submitter])
            weir_sim_fail(sim, "task %u of %u was overtaken", self->number, self->submitter);
        next_number[self->submitter] = self->number;
    }
    if (self->kind == PERIODIC && self->runs == 3)
        (void)weir_promise_succeed(self->promise, NULL);
    if (sim_once_in(4))
        weir_sim_sleep(sim_delay(weir_ms(1))); /* a slow task */
}

static int work_record(void *arg, int status, void **ret_value)
{
    run_record(arg, status);
    *ret_value = arg;
    return 0;
}

/* A virtual nanosecond passes with each look at the clock: the delay counts from before it. */
static int submit_record(struct record *self)
{
    int64_t delay_ns = sim_delay(weir_ms(3));

    self->is_accepted = true; /* it may run before this returns */
    if (self->kind >= SCHEDULE)
        self->due_ns = weir_sim_now(weir_sim_current()) + delay_ns;
    switch (self->kind) {
    case EXECUTE:
        return weir_execute(self->executor, run_record, self);
    case EXECUTE_TASK:
        weir_task_init(&self->task, run_record, self);
        return weir_execute_task(self->executor, &self->task);
    case SUBMIT:
        return weir_submit(self->executor, work_record, self, &self->promise);
    case PERIODIC:
        return weir_schedule_at_fixed_rate(self->executor, delay_ns, weir_us(200), run_record, self,
                                           &self->promise);
    default:
        return weir_schedule(self->executor, delay_ns, run_record, self, &self->promise);
    }
}

static void submit_all(void *arg, int status)
{
    struct record *first = arg;

    for (unsigned i = 0; i < TASKS && status == 0; i++) {
        struct record *self = &first[i];
        int err = submit_record(self);

        if (err < 0) {
            self->is_accepted = false;
            if (sim_excuse(err) < 0 && !(err == WEIR_EREJECTED && tasks_end))
                weir_sim_fail(weir_sim_current(), "a task is rejected: %s", weir_error_text(err));
        } else if (self->kind == SCHEDULE_CANCELLED && sim_once_in(2)) {
            self->must_cancel = weir_promise_cancel(self->promise) == 0;
        }
    }
}

static void draw_records(weir_group *plain, weir_group *loops)
{
    memset(records, 0, sizeof(records));
    memset(next_number, 0, sizeof(next_number));
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        weir_group *group = sim_once_in(2) ? plain : loops; /* arguments have no order */
        weir_executor *target = weir_group_at(group, sim_below(2));

        for (unsigned k = 0; k < TASKS; k++)
            records[i][k] = (struct record){
                .submitter = i, .number = k, .kind = sim_below(TASK_KINDS), .executor = target};
    }
}

static void check_records(void)
{
    for (unsigned i = 0; i < SUBMITTERS * TASKS; i++) {
        struct record *self = &records[i / TASKS][i % TASKS];

        weir_promise_release(self->promise);
        if (!self->is_accepted       ? self->runs + self->cancels > 0
            : self->kind == PERIODIC ? self->cancels != 1
                                     : self->runs + self->cancels != 1)
            weir_sim_fail(weir_sim_current(), "task %u of %u (%u): %u runs, %u cancellations",
                          self->number, self->submitter, self->kind, self->runs, self->cancels);
        if (self->must_cancel && self->runs > 0)
            weir_sim_fail(weir_sim_current(), "a cancelled task has run");
    }
}

/* ---- promises ---- */

static struct watched {
    weir_promise *promise;
    weir_executor *executor;
    unsigned added, called;
} watched[PROMISES];

static void on_complete(weir_promise *promise, void *user_data)
{
    struct watched *self = &watched[(uintptr_t)user_data / LISTENERS];

    if (promise != self->promise || !weir_promise_is_done(promise))
        weir_sim_fail(weir_sim_current(), "a listener is called for another promise, or too early");
    if (!is_right(self->executor) && sim_faults(SIM_SCARCITY) == 0) /* its thread cannot start */
        weir_sim_fail(weir_sim_current(), "a listener runs on the wrong executor");
    if (self->called++ != (uintptr_t)user_data % LISTENERS && sim_faults(BREAKING) == 0)
        weir_sim_fail(weir_sim_current(), "a listener was overtaken");
}

static void complete(void *arg, int status)
{
    struct watched *self = arg;

    (void)status;
    if (sim_once_in(4))
        (void)weir_promise_cancel(self->promise);
    else if (sim_once_in(4))
        (void)weir_promise_fail(self->promise, -EIO, NULL);
    else
        (void)weir_promise_succeed(self->promise, self);
}

/* Some listeners are added after the completion. */
static void watch_promises(weir_group *plain, weir_group *loops)
{
    memset(watched, 0, sizeof(watched));
    for (unsigned i = 0; i < PROMISES; i++) {
        struct watched *self = &watched[i];
        weir_group *group = sim_once_in(2) ? plain : loops;

        self->executor = weir_group_at(group, sim_below(2));
        if (weir_promise_create(self->executor, &self->promise) < 0)
            continue;
        for (unsigned k = 0; k < LISTENERS; k++) {
            if (weir_promise_add_listener(self->promise, on_complete,
                                          (void *)(uintptr_t)(i * LISTENERS + k)) == 0)
                self->added++;
            if (k == 1 && weir_execute(weir_group_at(plain, sim_below(2)), complete, self) < 0)
                complete(self, 0);
        }
    }
}

static void check_promises(void)
{
    for (unsigned i = 0; i < PROMISES; i++) {
        struct watched *self = &watched[i];

        if (self->promise != NULL && self->called != self->added)
            weir_sim_fail(weir_sim_current(), "promise %u: %u of %u listeners were called", i,
                          self->called, self->added);
        weir_promise_release(self->promise);
    }
}

static int tasks_main(void *arg)
{
    weir_group *plain = NULL, *loops = NULL;
    int err = weir_group_create(
        WEIR_GROUP_OPTIONS(.name = "plain", .threads = 2, .io = WEIR_IO_NONE), &plain);

    (void)arg;
    tasks_end = false;
    if (err == 0)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "loop", .threads = 2), &loops);
    if (err == 0) {
        draw_records(plain, loops);
        for (unsigned i = 0; i < SUBMITTERS; i++)
            if (weir_execute(weir_group_at(i % 2 == 0 ? plain : loops, i % 2), submit_all,
                             records[i]) < 0)
                submit_all(records[i], 0);
        watch_promises(plain, loops);
        for (unsigned i = 0; i < SUBMITTERS * TASKS; i++) { /* cancels from here */
            struct record *self = &records[i / TASKS][i % TASKS];

            if (self->kind == SCHEDULE_CANCELLED && self->promise != NULL && !self->must_cancel)
                self->must_cancel = weir_promise_cancel(self->promise) == 0;
        }
        weir_sim_sleep(sim_delay(weir_ms(is_rough ? 8 : 20)));
    }
    tasks_end = true;
    sim_end_group(loops);
    sim_end_group(plain);
    if (err == 0) {
        weir_sim_sleep(weir_ms(20)); /* listeners of ended executors run on the global one */
        check_records();
        check_promises();
    }
    return sim_excuse(err);
}

/* ---- the world ---- */

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *server_host, *client_host;
    weir_sim_process *server_process, *client, *tasks;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &server_host);

    memset(&clients, 0, sizeof(clients));
    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &client_host);
    if (err == 0)
        err = weir_sim_start(server_host, "server", server_main, arg, &server_process);
    if (err == 0)
        err = weir_sim_start(client_host, "tasks", tasks_main, arg, &tasks);
    if (err < 0)
        return err;
    sim_await_listener(server_host, server_process);
    err = weir_sim_start(client_host, "client", client_main, arg, &client);
    if (err == 0)
        err = weir_sim_join(client);
    if (err == 0)
        err = weir_sim_join(tasks);
    return err < 0 ? err : sim_stop(server_process);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    uint32_t kinds = SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                     SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED) | SIM_KIND(CLOCK_STEP);

    is_rough = seed % 4 != 0;
    if (seed % 4 > 1)
        kinds |= SIM_SCARCITY | SIM_KIND(RESET);
    options->network.socket_buffer = is_rough ? 512 : 0;
    options->max_slow_ns = weir_ms(5);
    sim_draw_rates(seed, kinds, options);
}

SIM_PROGRAM(executors, "remote handlers, moves, tasks and promises", configure, run)
