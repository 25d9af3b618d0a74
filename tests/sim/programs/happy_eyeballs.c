/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to a name with several addresses, of both families: some answer, some refuse, some
 * are black holes, some are slow, for a while or for ever. Of each race exactly one connection
 * wins, all others are closed, and every race ends by its timeouts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define HOSTS 4
#define RACES 6
#define PORT 5000
#define ATTEMPT_NS weir_seconds(2)
#define GRACE_NS weir_ms(40) /* for the lookup, retries and the network */

#define BREAKING                                                                  \
    (SIM_SCARCITY | SIM_KIND(RESET) | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP) | \
     SIM_KIND(LOOKUP) | SIM_KIND(SLOW))

enum {
    ANSWERS,
    REFUSES,    /* no listener */
    BLACK_HOLE, /* nothing comes back */
    IS_SLOW,    /* its answers take longer than the delay between attempts */
    KINDS,
};

static const char *const texts[HOSTS] = {"fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2"};

static struct {
    unsigned kinds[HOSTS];
    unsigned hosts; /* in use */
    bool by_name;   /* one host with two addresses, "dual" */
    bool has_good;  /* one answers */
    weir_address addresses[HOSTS];
    weir_group *group;
    int64_t delay_ns; /* between attempts */
} all;

static bool is_rough;

/* ---- servers: answer a byte with the next one ---- */

static void on_request(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler server_handler = {.name = "server", .read = on_request};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &server_handler);
}

static int server_main(void *arg)
{
    char address[64];

    (void)snprintf(address, sizeof(address), strchr(arg, ':') != NULL ? "[%s]:%d" : "%s:%d",
                   (const char *)arg, PORT);
    return sim_serve_stubbornly(address, 1, init_child, NULL, NULL);
}

/* ---- races ---- */

struct race {
    unsigned number;
    unsigned attempts; /* channels that were made */
    unsigned open;     /* of them, those that are not closed */
    unsigned active;   /* channels that became active */
    bool is_over, is_cancelled, has_echo;
};

struct attempt {
    weir_timer patience; /* with the echo: a reset may have been lost */
    struct race *race;
};

static void attempt_deinit(void *state)
{
    struct attempt *self = state;

    if (self->race != NULL)
        self->race->open--;
}

static void on_patience(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void attempt_active(weir_ctx *ctx)
{
    struct attempt *self = weir_ctx_state(ctx);
    weir_buf *buf;

    if (++self->race->active > 1)
        weir_sim_fail(weir_sim_current(), "race %u: two connections are active",
                      self->race->number);
    if (weir_ctx_timer_start(ctx, &self->patience, weir_seconds(100), on_patience) < 0 ||
        weir_buf_create(1, 0, &buf) < 0) {
        weir_close(ctx, NULL);
        return;
    }
    (void)weir_buf_write_bytes(buf, "x", 1);
    weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static void attempt_read(weir_ctx *ctx, weir_msg *msg)
{
    struct attempt *self = weir_ctx_state(ctx);

    weir_msg_release(msg);
    self->race->has_echo = true;
    weir_close(ctx, NULL);
}

static void attempt_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_close(ctx, NULL);
}

static const weir_handler attempt_handler = {
    .name = "attempt",
    .state_size = sizeof(struct attempt),
    .deinit = attempt_deinit,
    .active = attempt_active,
    .read = attempt_read,
    .error = attempt_error,
};

static int init_attempt(weir_channel *channel, void *user_data)
{
    struct race *race = user_data;
    struct attempt *attempt;
    int err = sim_add(channel, &attempt_handler);

    if (err < 0)
        return err;
    attempt = weir_ctx_state(weir_pipeline_find(weir_channel_pipeline(channel), "attempt"));
    attempt->race = race;
    race->attempts++;
    race->open++;
    if (race->is_over)
        weir_sim_fail(weir_sim_current(), "race %u: an attempt after its end", race->number);
    return 0;
}

/* Completes by then: the last attempt begins when all before it were given their delay, or have
 * failed. */
static int64_t longest_ns(void)
{
    unsigned count = all.by_name ? 2 : all.hosts;

    return GRACE_NS +
           (all.delay_ns > 0 ? all.delay_ns * (count - 1) + ATTEMPT_NS : ATTEMPT_NS * count);
}

static int begin_race(struct race *race, weir_promise **ret_connecting)
{
    weir_client_options options = {
        .size = sizeof(options),
        .group = all.group,
        .init = init_attempt,
        .user_data = race,
        .attempt_delay_ns = all.delay_ns,
        .options = WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = ATTEMPT_NS),
    };

    if (all.by_name) {
        options.address = "dual:5000";
    } else {
        options.addresses = all.addresses;
        options.address_count = all.hosts;
    }
    return weir_client_connect(&options, ret_connecting);
}

static void check_winner(struct race *race, weir_channel *channel)
{
    weir_address address;
    unsigned kind = KINDS;

    if (weir_channel_remote_address(channel, &address) < 0)
        return; /* closed already */
    for (unsigned i = 0; i < HOSTS; i++)
        if (weir_address_equal(&address, &all.addresses[i]))
            kind = all.kinds[i];
    if (kind != ANSWERS && kind != IS_SLOW)
        weir_sim_fail(weir_sim_current(), "race %u: connected to an address of kind %u",
                      race->number, kind);
}

static void check_result(struct race *race, weir_promise *connecting, int64_t began_ns)
{
    weir_sim *sim = weir_sim_current();
    int64_t duration_ns = weir_sim_now(sim) - began_ns;
    int err = weir_promise_result(connecting);

    if (duration_ns > longest_ns() && sim_faults(SIM_KIND(SLOW) | SIM_KIND(HOST_STOP)) == 0)
        weir_sim_fail(sim, "race %u took %lld ms", race->number, (long long)duration_ns / 1000000);
    if (err == 0)
        check_winner(race, weir_promise_value(connecting));
    else if (err == WEIR_ECANCELED && !race->is_cancelled)
        weir_sim_fail(sim, "race %u was cancelled by nobody", race->number);
    else if (err != WEIR_ECANCELED && all.has_good && sim_faults(BREAKING) == 0)
        weir_sim_fail(sim, "race %u: %s", race->number, weir_promise_detail(connecting));
}

static int run_race(struct race *race)
{
    weir_sim *sim = weir_sim_current();
    weir_promise *connecting = NULL;
    int64_t began_ns = weir_sim_now(sim);
    int err = begin_race(race, &connecting);

    if (err < 0)
        return err;
    if (is_rough && sim_once_in(4)) {
        weir_sim_sleep(sim_delay(weir_ms(700)));
        race->is_cancelled = true;
        (void)weir_promise_cancel(connecting);
    }
    if (weir_promise_await(connecting, weir_seconds(60)) < 0)
        weir_sim_fail(sim, "race %u does not end", race->number);
    check_result(race, connecting, began_ns);
    weir_promise_release(connecting);
    return 0;
}

/* All attempts close: the losers at the end of the race, the winner after its echo. */
static void await_closed(struct race *race)
{
    for (int64_t waited_ns = 0; race->open > 0; waited_ns += weir_ms(20)) {
        if (waited_ns > weir_seconds(5))
            weir_sim_calm(weir_sim_current(), true);
        if (waited_ns > weir_seconds(130)) {
            weir_sim_fail(weir_sim_current(), "race %u: %u attempts are still open", race->number,
                          race->open);
            return;
        }
        weir_sim_sleep(weir_ms(20));
    }
    race->is_over = true;
    if (race->active == 1 && !race->has_echo && sim_faults(BREAKING) == 0)
        weir_sim_fail(weir_sim_current(), "race %u: no echo", race->number);
}

static int client_main(void *arg)
{
    static struct race races[RACES];
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 2), &all.group);

    (void)arg;
    memset(races, 0, sizeof(races));
    for (unsigned i = 0; i < RACES && err == 0; i++) {
        races[i].number = i;
        all.delay_ns = (const int64_t[]){0, weir_ms(10), weir_ms(100), WEIR_OFF}[sim_below(4)];
        if (all.delay_ns == 0)
            all.delay_ns = weir_ms(250);
        err = sim_excuse(run_race(&races[i]));
        await_closed(&races[i]);
    }
    sim_end_group(all.group);
    return sim_excuse(err);
}

/* ---- the world ---- */

static int make_host(weir_sim *sim, unsigned i, weir_sim_host *client,
                     weir_sim_process **ret_server, weir_sim_host **ret_host)
{
    static char names[HOSTS][8] = {"a", "b", "c", "d"};
    static char addresses[HOSTS][16];
    int err;

    (void)snprintf(addresses[i], sizeof(addresses[i]), "%s", texts[i]);
    err = weir_sim_host_create(sim, names[i], addresses[i], ret_host);
    if (err == 0 && all.kinds[i] == BLACK_HOLE)
        weir_sim_partition(*ret_host, client, true);
    if (err == 0 && all.kinds[i] == IS_SLOW)
        err = weir_sim_set_link(*ret_host, client,
                                &(weir_sim_network){.latency_ns = weir_ms(20 + sim_below(400))});
    if (err == 0 && (all.kinds[i] == ANSWERS || all.kinds[i] == IS_SLOW))
        err = weir_sim_start(*ret_host, names[i], server_main, addresses[i], ret_server);
    return err;
}

static int make_dual(weir_sim *sim, weir_sim_process **servers, weir_sim_host **ret_host)
{
    static char addresses[2][16];
    int err = weir_sim_host_create(sim, "dual", "fd00::1 10.0.0.1", ret_host);

    for (unsigned i = 0; i < 2 && err == 0; i++) {
        (void)snprintf(addresses[i], sizeof(addresses[i]), "%s", texts[i]);
        if (all.kinds[i] == ANSWERS)
            err = weir_sim_start(*ret_host, addresses[i], server_main, addresses[i], &servers[i]);
    }
    return err;
}

static void draw(void)
{
    memset(&all, 0, sizeof(all));
    all.by_name = sim_once_in(3);
    all.hosts = all.by_name ? 2 : 1 + sim_below(HOSTS);
    for (unsigned i = 0; i < HOSTS; i++) {
        char text[64];

        all.kinds[i] = i < all.hosts ? sim_below(all.by_name ? 2 : KINDS) : KINDS;
        (void)snprintf(text, sizeof(text), i % 2 == 0 ? "[%s]:%d" : "%s:%d", texts[i], PORT);
        if (weir_address_parse(text, &all.addresses[i]) < 0)
            weir_sim_fail(weir_sim_current(), "%s is not an address", text);
        all.has_good |= all.kinds[i] == ANSWERS || all.kinds[i] == IS_SLOW;
    }
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *client_host, *hosts[HOSTS] = {NULL};
    weir_sim_process *servers[HOSTS] = {NULL}, *client;
    int err = weir_sim_host_create(sim, "client", "fd00::ff 10.0.0.255", &client_host);

    draw();
    if (err == 0 && all.by_name)
        err = make_dual(sim, servers, &hosts[0]);
    for (unsigned i = 0; i < all.hosts && err == 0 && !all.by_name; i++)
        err = make_host(sim, i, client_host, &servers[i], &hosts[i]);
    for (unsigned i = 0; i < HOSTS && err == 0; i++)
        if (servers[i] != NULL)
            sim_await_listener(all.by_name ? hosts[0] : hosts[i], servers[i]);
    if (all.by_name)
        weir_sim_sleep(weir_ms(100)); /* for the second listener */
    if (err == 0)
        err = weir_sim_start(client_host, "client", client_main, arg, &client);
    if (err == 0)
        err = weir_sim_join(client);
    for (unsigned i = 0; i < HOSTS; i++)
        if (servers[i] != NULL && err == 0)
            err = sim_stop(servers[i]);
    return err;
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    uint32_t kinds = SIM_KIND(SHORT_READ) | SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED);

    is_rough = seed % 4 != 0;
    if (is_rough)
        kinds |= SIM_KIND(SLOW) | SIM_KIND(CLOCK_STEP);
    if (seed % 4 > 1) {
        kinds |= SIM_SCARCITY | SIM_KIND(RESET) | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP) |
                 SIM_KIND(LOOKUP);
        options->max_outage_ns = weir_ms(1000);
    }
    sim_draw_rates(seed, kinds, options);
}

SIM_PROGRAM(happy_eyeballs, "connections to several addresses", configure, run)
