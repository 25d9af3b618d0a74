/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of connections against a server that dies, starts again, and is cut off. Users acquire,
 * send a request, and return, close or forget nothing: every acquisition completes, no channel is
 * acquired twice at a time, the limits hold, waiting users are served in order, and at the end
 * nothing is left.
 */
#include <errno.h>
#include <string.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define USERS 10
#define ROUNDS 3
#define MAX_CHANNELS 4
#define TIMEOUT_NS weir_seconds(2)

/* Faults after which an acquisition may fail. */
#define BREAKING                                                              \
    (SIM_SCARCITY | SIM_KIND(RESET) | SIM_KIND(DEATH) | SIM_KIND(PARTITION) | \
     SIM_KIND(HOST_STOP) | SIM_KIND(SLOW))

static bool is_rough;

/* ---- the server: answers each byte with the next one ---- */

static void on_request(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg), *answer;

    for (size_t i = 0; i < weir_buf_readable(buf); i++) {
        const uint8_t byte = (uint8_t)(weir_buf_bytes(buf)[i] + 1);

        if (weir_buf_create(1, 0, &answer) < 0) {
            weir_close(ctx, NULL);
            break;
        }
        (void)weir_buf_write_bytes(answer, &byte, 1);
        weir_write_and_flush(ctx, weir_buf_msg(answer), NULL);
    }
    weir_msg_release(msg);
}

static const weir_handler server_handler = {.name = "server", .read = on_request};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &server_handler);
}

static int server_main(void *arg)
{
    (void)arg;
    return sim_serve_stubbornly("0.0.0.0:7000", 1, init_child, NULL, NULL);
}

/* ---- the client's connections ---- */

static struct {
    weir_client_pool *pool;
    weir_group *group;
    weir_promise *done;
    unsigned max;
    unsigned open;     /* channels */
    unsigned left;     /* users */
    unsigned asked;    /* acquisitions begun */
    unsigned served;   /* the latest successful acquisition, plus 1 */
    bool closes_early; /* the pool, before all users are done */
} all;

struct user;

struct connection {
    weir_timer patience; /* with the server's answer */
    struct user *user;   /* that has it; NULL: none */
    bool is_open;
};

struct user {
    unsigned number, rounds, ticket;
    weir_promise *acquiring;
    weir_channel *channel;
    int64_t asked_ns;
    uint8_t request;
    bool is_cancelled, has_answer;
};

static struct user users[USERS];

static void finish_use(struct user *user);

static struct connection *connection_of(weir_channel *channel)
{
    weir_ctx *ctx = weir_pipeline_find(weir_channel_pipeline(channel), "connection");

    return ctx != NULL ? weir_ctx_state(ctx) : NULL;
}

static void connection_active(weir_ctx *ctx)
{
    struct connection *self = weir_ctx_state(ctx);

    self->is_open = true;
    if (++all.open > all.max && sim_faults(SIM_KIND(SLOW) | SIM_KIND(HOST_STOP)) == 0)
        weir_sim_fail(weir_sim_current(), "%u channels are open, %u are allowed", all.open,
                      all.max);
    weir_fire_active(ctx);
}

/* A channel that closes makes room for another at once. */
static void leave_pool(struct connection *self)
{
    all.open -= self->is_open;
    self->is_open = false;
}

static void connection_close(weir_ctx *ctx, weir_promise *done)
{
    leave_pool(weir_ctx_state(ctx));
    weir_close(ctx, done);
}

static void connection_inactive(weir_ctx *ctx)
{
    struct connection *self = weir_ctx_state(ctx);

    leave_pool(self);
    if (self->user != NULL)
        finish_use(self->user);
    weir_fire_inactive(ctx);
}

static void connection_read(weir_ctx *ctx, weir_msg *msg)
{
    struct connection *self = weir_ctx_state(ctx);
    struct user *user = self->user;
    const weir_buf *buf = weir_buf_of(msg);
    size_t length = weir_buf_readable(buf);
    uint8_t byte = length > 0 ? weir_buf_bytes(buf)[0] : 0;

    weir_msg_release(msg);
    if (user == NULL || length != 1 || byte != (uint8_t)(user->request + 1) || user->has_answer) {
        weir_sim_fail(weir_sim_current(), "an answer to %s", user == NULL ? "nobody" : "another");
        return;
    }
    user->has_answer = true;
    finish_use(user);
}

static void connection_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_close(ctx, NULL);
}

static const weir_handler connection_handler = {
    .name = "connection",
    .state_size = sizeof(struct connection),
    .active = connection_active,
    .inactive = connection_inactive,
    .close = connection_close,
    .read = connection_read,
    .error = connection_error,
};

static int init_connection(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &connection_handler);
}

/* ---- users: their steps run on the first loop, the use of a channel on the channel's ---- */

static weir_task_fn ask;

static weir_executor *home(void)
{
    return weir_group_at(all.group, 0);
}

static void leave(void)
{
    if (--all.left == 0)
        (void)weir_promise_succeed(all.done, NULL);
}

/* Without memory for the task the user gives up. */
static void next_round(struct user *user)
{
    if (user->rounds++ == ROUNDS ||
        weir_schedule(home(), sim_delay(weir_ms(is_rough ? 300 : 3)), ask, user, NULL) < 0)
        leave();
}

static void on_returned(weir_promise *done, void *user_data)
{
    int err = weir_promise_result(done);

    (void)user_data;
    if (err < 0 && err != WEIR_ECLOSED && sim_faults(BREAKING) == 0)
        weir_sim_fail(weir_sim_current(), "a return failed: %s", weir_error_text(err));
}

static void give_back(weir_channel *channel)
{
    weir_promise *done = NULL;

    if (weir_promise_create(home(), &done) == 0 &&
        weir_promise_add_listener(done, on_returned, NULL) < 0)
        (void)weir_promise_cancel(done);
    weir_client_pool_return(all.pool, channel, done);
    weir_promise_release(done);
}

static void end_use(void *arg, int status)
{
    struct user *user = arg;
    weir_channel *channel = user->channel;

    (void)status;
    user->channel = NULL;
    if (sim_once_in(5))
        weir_channel_close(channel, NULL);
    else
        give_back(channel);
    weir_channel_release(channel);
    next_round(user);
}

/* On the channel's loop. */
static void finish_use(struct user *user)
{
    struct connection *connection = connection_of(user->channel);

    if (connection != NULL) {
        connection->user = NULL;
        (void)weir_timer_stop(&connection->patience);
    }
    if (weir_schedule(home(), sim_delay(weir_ms(is_rough ? 50 : 2)), end_use, user, NULL) < 0)
        end_use(user, 0);
}

static void on_patience(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    if (sim_faults(BREAKING) == 0)
        weir_sim_fail(weir_sim_current(), "no answer");
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void use(void *arg, int status)
{
    struct user *user = arg;
    struct connection *connection = connection_of(user->channel);
    weir_buf *buf;

    if (status == 0 && connection != NULL && connection->user != NULL)
        weir_sim_fail(weir_sim_current(), "users %u and %u have the same channel", user->number,
                      connection->user->number);
    if (status < 0 || connection == NULL || !connection->is_open ||
        weir_buf_create(1, 0, &buf) < 0) {
        weir_channel_close(user->channel, NULL); /* closed, or no memory */
        finish_use(user);
        return;
    }
    connection->user = user;
    (void)weir_ctx_timer_start(
        weir_pipeline_find(weir_channel_pipeline(user->channel), "connection"),
        &connection->patience, weir_seconds(1), on_patience);
    user->request = (uint8_t)sim_below(256);
    user->has_answer = false;
    (void)weir_buf_write_bytes(buf, &user->request, 1);
    weir_channel_write_and_flush(user->channel, weir_buf_msg(buf), NULL);
}

static void check_failure(struct user *user, int err)
{
    weir_sim *sim = weir_sim_current();
    int64_t waited_ns = weir_sim_now(sim) - user->asked_ns;

    if (err == -ETIMEDOUT && waited_ns < TIMEOUT_NS && sim_faults(BREAKING) == 0)
        weir_sim_fail(sim, "user %u: a timeout after %lld ns", user->number, (long long)waited_ns);
    if (err == WEIR_ECANCELED ? user->is_cancelled : all.closes_early && err == WEIR_ECLOSED)
        return;
    if (sim_faults(BREAKING) == 0)
        weir_sim_fail(sim, "user %u: %s", user->number, weir_error_text(err));
}

static void on_acquired(weir_promise *acquiring, void *user_data)
{
    struct user *user = user_data;
    weir_sim *sim = weir_sim_current();

    if (!weir_in_executor(home()))
        weir_sim_fail(sim, "a listener runs on the wrong executor");
    user->channel = weir_promise_value(acquiring);
    if (weir_sim_now(sim) - user->asked_ns > TIMEOUT_NS + weir_ms(20) &&
        sim_faults(SIM_KIND(SLOW) | SIM_KIND(HOST_STOP)) == 0)
        weir_sim_fail(sim, "user %u has waited for %lld ns", user->number,
                      (long long)(weir_sim_now(sim) - user->asked_ns));
    if (user->channel == NULL) {
        check_failure(user, weir_promise_result(acquiring));
        weir_promise_release(user->acquiring);
        next_round(user);
        return;
    }
    weir_channel_retain(user->channel);
    weir_promise_release(user->acquiring);
    if (all.max == 1 && user->ticket < all.served)
        weir_sim_fail(sim, "user %u was overtaken", user->number);
    all.served = user->ticket + 1;
    if (weir_execute(weir_channel_executor(user->channel), use, user) < 0) {
        weir_channel_close(user->channel, NULL);
        end_use(user, 0);
    }
}

static void ask(void *arg, int status)
{
    struct user *user = arg;
    int err;

    if (status < 0) {
        leave();
        return;
    }
    user->asked_ns = weir_sim_now(weir_sim_current());
    user->is_cancelled = false;
    user->ticket = all.asked++;
    err = weir_client_pool_acquire(all.pool, home(), &user->acquiring);
    if (err == 0) {
        err = weir_promise_add_listener(user->acquiring, on_acquired, user);
        if (err == 0 && is_rough && sim_once_in(8)) {
            user->is_cancelled = true;
            (void)weir_promise_cancel(user->acquiring);
        } else if (err < 0 && weir_promise_cancel(user->acquiring) < 0 &&
                   weir_promise_value(user->acquiring) != NULL) {
            weir_client_pool_return(all.pool, weir_promise_value(user->acquiring), NULL);
        }
        if (err < 0)
            weir_promise_release(user->acquiring);
    }
    if (err < 0) {
        if (sim_excuse(err) < 0)
            check_failure(user, err);
        next_round(user);
    }
}

/* ---- callbacks of the pool ---- */

static void check_loop(weir_channel *channel, void *user_data)
{
    (void)user_data;
    if (!weir_in_executor(weir_channel_executor(channel)))
        weir_sim_fail(weir_sim_current(), "a callback of the pool runs on the wrong executor");
}

static void check_released(weir_channel *channel, void *user_data)
{
    check_loop(channel, user_data);
    if (connection_of(channel) != NULL && connection_of(channel)->user != NULL)
        weir_sim_fail(weir_sim_current(), "a channel was returned that is in use");
}

static bool is_healthy(weir_channel *channel, void *user_data)
{
    check_released(channel, user_data);
    return !is_rough || !sim_once_in(10);
}

static int create_pool(void)
{
    return weir_client_pool_create(
        WEIR_CLIENT_POOL_OPTIONS(.client = WEIR_CLIENT_OPTIONS(.group = all.group,
                                                               .address = "10.0.0.1:7000",
                                                               .init = init_connection),
                                 .max = (int)all.max, .acquire_timeout_ns = TIMEOUT_NS,
                                 .idle_timeout_ns = is_rough ? weir_ms(20) : 0,
                                 .order =
                                     sim_once_in(2) ? WEIR_CLIENT_POOL_FIFO : WEIR_CLIENT_POOL_LIFO,
                                 .healthy = is_healthy, .created = check_loop,
                                 .acquired = check_released, .released = check_released),
        &all.pool);
}

static void end_pool(void)
{
    weir_client_pool_stats stats;

    weir_client_pool_close(all.pool);
    if (weir_promise_await(weir_client_pool_closed(all.pool), weir_seconds(100)) < 0)
        weir_sim_fail(weir_sim_current(), "the pool does not close");
    weir_client_pool_read_stats(all.pool, &stats);
    if (stats.channels != 0 || stats.waiting != 0 || stats.idle != 0)
        weir_sim_fail(weir_sim_current(), "a closed pool has %llu channels and %llu waiting users",
                      (unsigned long long)stats.channels, (unsigned long long)stats.waiting);
}

static int client_main(void *arg)
{
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 2), &all.group);

    (void)arg;
    if (err == 0)
        err = weir_promise_create(NULL, &all.done);
    if (err == 0)
        err = create_pool();
    all.left = USERS;
    for (unsigned i = 0; i < USERS && err == 0; i++) {
        users[i].number = i;
        if (weir_execute(home(), ask, &users[i]) < 0)
            leave();
    }
    if (err == 0 && all.closes_early) {
        weir_sim_sleep(sim_delay(weir_ms(200)));
        weir_client_pool_close(all.pool);
    }
    if (err == 0 && weir_promise_await(all.done, weir_seconds(100)) < 0)
        weir_sim_fail(weir_sim_current(), "%u users still wait", all.left);
    if (err == 0)
        end_pool();
    weir_client_pool_release(all.pool);
    sim_end_group(all.group);
    if (err == 0 && all.open != 0)
        weir_sim_fail(weir_sim_current(), "%u channels are open at the end", all.open);
    weir_promise_release(all.done);
    return sim_excuse(err);
}

/* ---- the world ---- */

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *server_host, *client_host;
    weir_sim_process *server, *client;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &server_host);

    memset(&all, 0, sizeof(all));
    memset(users, 0, sizeof(users));
    all.max = 1 + sim_below(MAX_CHANNELS);
    all.closes_early = is_rough && sim_once_in(8);
    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &client_host);
    if (err == 0)
        err = weir_sim_start(server_host, "server", server_main, arg, &server);
    if (err < 0)
        return err;
    weir_sim_restart(server, weir_ms(2) + sim_delay(weir_ms(300)));
    sim_await_listener(server_host, server);
    err = weir_sim_start(client_host, "client", client_main, arg, &client);
    if (err == 0)
        err = weir_sim_join(client);
    return err < 0 ? err : sim_stop(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    uint32_t kinds = SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                     SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED);

    is_rough = seed % 4 != 0;
    if (is_rough) {
        kinds |= SIM_KIND(RESET) | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP) | SIM_KIND(DEATH) |
                 SIM_KIND(CLOCK_STEP);
        options->max_outage_ns = weir_ms(1000);
    }
    if (seed % 4 > 1)
        kinds |= SIM_SCARCITY;
    sim_draw_rates(seed, kinds, options);
}

SIM_PROGRAM(client_pool, "a client pool against a flapping server", configure, run)
