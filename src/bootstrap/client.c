/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting, to the first of several addresses that answers (RFC 8305): an attempt is made when
 * the one before has failed, or has not answered for a while; the first to succeed wins, and the
 * others are aborted. All attempts live on one loop, so the race needs no locks.
 *
 *      begin -> start_next -> on_attempt -> won -> end
 *                  ^  ^           `-> lost -> start_next, or the promise fails
 *                  `--' on_delay
 *
 * The race is part of the promise's memory. It keeps the promise for each task and attempt that is
 * under way, and gives all channels back when it ends: nothing is left when the promise goes.
 */
#include "bootstrap/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/executor.h>
#include <weir/pipeline.h>

#include "bootstrap/transport_for.h"
#include "channel/attribute.h"
#include "executor/group.h"
#include "executor/promise.h"
#include "resolver/host_name.h"

#define DELAY_NS weir_ms(250)
#define DELAY_MIN_NS weir_ms(10) /* RFC 8305, 8 */

struct attempt {
    struct race *race;
    weir_channel *channel; /* NULL = over */
    weir_address address;
    weir_listener heard;
};

struct race {
    weir_task begin;
    weir_task give_up;
    weir_timer timer; /* until the next attempt */
    weir_executor *loop;
    bool holds; /* the loop is held for attempts that are still to come (executor/leases.h) */
    int64_t delay_ns;
    weir_address local; /* without length: any */
    size_t started;
    size_t under_way;
    int err; /* the last one */
    char detail[480];
    size_t count;
    struct attempt attempts[];
};

static weir_promise *promise_of(struct race *race)
{
    return weir__promise_of_extra(race);
}

/* ---- the race, on its loop ---- */

static void start_next(struct race *race);

static void give_back(struct attempt *attempt)
{
    weir_channel_release(attempt->channel);
    attempt->channel = NULL;
}

static void let_go_of_loop(struct race *race)
{
    if (race->holds)
        weir__executor_unlease(race->loop);
    race->holds = false;
}

/* Nobody waits for those that are left; each of them that is under way says so itself. */
static void end(struct race *race)
{
    (void)weir_timer_stop(&race->timer);
    let_go_of_loop(race);
    for (size_t i = 0; i < race->count; i++) {
        struct attempt *attempt = &race->attempts[i];

        if (attempt->channel == NULL)
            continue;
        if (i < race->started)
            weir_channel_abort(attempt->channel, NULL);
        else
            give_back(attempt);
    }
}

static void release_channel(void *channel)
{
    weir_channel_release(channel);
}

/* The others lose only when the promise is complete: until then each of them might still win. */
static void won(struct attempt *attempt)
{
    struct race *race = attempt->race;
    weir_channel *channel = attempt->channel;

    attempt->channel = NULL;
    if (weir_promise_succeed_with(promise_of(race), weir_channel_retain(channel), release_channel) <
        0)
        weir_channel_abort(channel, NULL); /* it was cancelled meanwhile */
    weir_channel_release(channel);
    end(race);
}

/* One sentence for all of them: "[::1]:80: connection refused, 127.0.0.1:80: ..." */
static void note(struct race *race, const struct attempt *attempt, int err)
{
    size_t length = strlen(race->detail);
    char address[WEIR_ADDRESS_TEXT_SIZE];

    race->err = err;
    (void)snprintf(
        race->detail + length, sizeof(race->detail) - length, "%s%s: %s", length > 0 ? ", " : "",
        weir_address_format(&attempt->address, address, sizeof(address)), weir_error_text(err));
}

static void fail(struct race *race)
{
    (void)weir_promise_fail(promise_of(race), race->err, race->detail);
    let_go_of_loop(race);
}

static void lost(struct attempt *attempt, int err)
{
    struct race *race = attempt->race;

    note(race, attempt, err);
    give_back(attempt);
    if (weir_promise_is_done(promise_of(race)))
        end(race); /* who has cancelled it may find the loop ended, and then nobody else would */
    else if (race->started < race->count)
        start_next(race);
    else if (race->under_way == 0)
        fail(race);
}

static void on_attempt(weir_promise *connected, void *arg)
{
    struct attempt *attempt = arg;
    struct race *race = attempt->race;
    int err = weir__transport_reason(attempt->channel, weir_promise_result(connected));

    race->under_way--;
    if (err == 0)
        won(attempt);
    else
        lost(attempt, err);
    weir_promise_release(promise_of(race)); /* the attempt's */
}

/* On the loop both are done at once; one that cannot be registered cannot be connected. */
static void start(struct attempt *attempt, weir_promise *connected)
{
    struct race *race = attempt->race;

    race->under_way++;
    weir_promise_retain(promise_of(race));
    attempt->heard = (weir_listener){.fn = on_attempt, .user_data = attempt};
    weir_promise_listen(connected, &attempt->heard);
    weir_channel_register(attempt->channel, race->loop, NULL);
    weir_channel_connect(attempt->channel, &attempt->address,
                         race->local.length > 0 ? &race->local : NULL, connected);
}

static void on_delay(weir_timer *timer)
{
    start_next(WEIR_CONTAINER_OF(timer, struct race, timer));
}

/* If the timer cannot be started - the loop shuts down - the next one waits for this one's end. */
static void start_next(struct race *race)
{
    struct attempt *attempt = &race->attempts[race->started++];
    weir_promise *connected;
    int err = weir_promise_create(race->loop, &connected);

    if (race->started < race->count && race->delay_ns != WEIR_NEVER)
        (void)weir_timer_start(race->loop, &race->timer, race->delay_ns, on_delay);
    else
        (void)weir_timer_stop(&race->timer);
    if (err < 0) {
        lost(attempt, err);
        return;
    }
    start(attempt, connected);
    weir_promise_release(connected);
}

/* A task of a loop that shuts down is cancelled; one that needs a new thread may not get it. */
static void refuse(struct race *race, int err)
{
    char detail[128];

    if (err == WEIR_EREJECTED || err == WEIR_ECANCELED) {
        (void)weir_promise_fail(promise_of(race), WEIR_EREJECTED, "the loop has shut down");
        return;
    }
    (void)snprintf(detail, sizeof(detail), "the loop cannot start its thread: %s",
                   weir_error_text(err));
    (void)weir_promise_fail(promise_of(race), err, detail);
}

static void on_begin(void *arg, int status)
{
    struct race *race = arg;
    weir_promise *promise = promise_of(race);

    if (status < 0)
        refuse(race, status);
    if (weir_promise_is_done(promise))
        end(race);
    else
        start_next(race);
    weir_promise_release(promise);
}

static void on_give_up(void *arg, int status)
{
    (void)status; /* in either case on the loop's thread */
    end(arg);
    weir_promise_release(promise_of(arg));
}

/* In whatever thread has cancelled it. */
static void on_cancel(weir_promise *promise)
{
    struct race *race = weir__promise_extra(promise);

    weir_promise_retain(promise);
    weir_task_init(&race->give_up, on_give_up, race);
    if (weir__executor_post(race->loop, &race->give_up, WEIR__NOW) < 0)
        weir_promise_release(promise); /* a loop that has ended has no channels */
}

/* ---- making one ---- */

static int64_t delay_of(const weir_client_options *options)
{
    if (options->attempt_delay_ns == WEIR_OFF)
        return WEIR_NEVER;
    if (options->attempt_delay_ns == 0)
        return DELAY_NS;
    return options->attempt_delay_ns > DELAY_MIN_NS ? options->attempt_delay_ns : DELAY_MIN_NS;
}

/* From `index` on, the next address that is of the family, or that is not; the count if none. */
static size_t find(const weir_client_options *options, size_t index, int family, bool is_of_it)
{
    while (index < options->address_count &&
           (weir_address_family(&options->addresses[index]) == family) != is_of_it)
        index++;
    return index;
}

/* RFC 8305, 4: the families take turns, beginning with the first one's; else the order stays. */
static void copy_in_turns(const weir_client_options *options, struct race *race)
{
    int family = weir_address_family(&options->addresses[0]);
    size_t same = find(options, 0, family, true), other = find(options, 0, family, false);

    for (size_t i = 0; i < race->count; i++) {
        bool takes_same = other == race->count || (same < race->count && i % 2 == 0);
        size_t *index = takes_same ? &same : &other;

        race->attempts[i].address = options->addresses[*index];
        *index = find(options, *index + 1, family, takes_same);
    }
}

static int copy_addresses(const weir_client_options *options, struct race *race)
{
    int err = 0;

    if (options->local_address != NULL)
        err = weir__transport_parse(options->local_address, &race->local);
    if (err < 0)
        return err;
    if (options->address != NULL)
        return weir__transport_parse(options->address, &race->attempts[0].address);
    copy_in_turns(options, race);
    return 0;
}

static int prepare(struct attempt *attempt, const weir_client_options *options,
                   const weir_executor *loop)
{
    int err = weir__transport_create(options->kind, &attempt->address, options->options,
                                     &attempt->channel);

    if (err == 0)
        err = weir__transport_check_executor(attempt->channel, loop);
    if (err == 0)
        err =
            weir__attributes_lend(attempt->channel, options->attributes, options->attribute_count);
    if (err == 0 && options->init != NULL)
        err = weir_pipeline_add_initializer(weir_channel_pipeline(attempt->channel), options->init,
                                            options->user_data);
    return err;
}

/* The channels are made here, so that what is wrong with the options is told at once. */
static int fill(struct race *race, const weir_client_options *options)
{
    int err = copy_addresses(options, race);

    for (size_t i = 0; i < race->count && err == 0; i++) {
        race->attempts[i].race = race;
        err = prepare(&race->attempts[i], options, race->loop);
    }
    return err;
}

int weir__client_race(const weir_client_options *options, weir_executor *loop,
                      weir_promise **ret_connecting)
{
    size_t count = options->address != NULL ? 1 : options->address_count;
    weir_promise *promise;
    struct race *race;
    int err;

    promise = weir__promise_create_with(loop, sizeof(*race) + count * sizeof(*race->attempts));
    if (promise == NULL)
        return -ENOMEM;
    race = weir__promise_extra(promise);
    race->loop = loop;
    race->holds = true;
    race->count = count;
    race->delay_ns = delay_of(options);
    weir__executor_lease(loop);
    err = fill(race, options);
    if (err < 0) {
        end(race);
        weir_promise_release(promise);
        return err;
    }
    weir__promise_set_on_cancel(promise, on_cancel);
    weir_task_init(&race->begin, on_begin, race);
    weir_promise_retain(promise);
    err = weir__executor_post(loop, &race->begin, WEIR__NOW);
    if (err < 0)
        on_begin(race, err);
    *ret_connecting = promise;
    return 0;
}

int weir__client_check_address(const weir_client_options *options, bool *ret_is_name)
{
    weir_address address;
    weir__host host;
    int err = options->address != NULL ? weir_address_parse(options->address, &address) : 0;

    *ret_is_name = err == -EINVAL && weir__host_parse(options->address, &host) == 0;
    return *ret_is_name || err == 0 ? 0 : weir__transport_parse(options->address, &address);
}

/* What is wrong with the options is told at once, also if the addresses are not known yet. */
static int try_out(const weir_client_options *options, const weir_executor *loop)
{
    struct attempt attempt = {0};
    weir_address local;
    int err = weir_address_parse(":0", &attempt.address);

    if (err == 0 && options->local_address != NULL)
        err = weir__transport_parse(options->local_address, &local);
    if (err == 0)
        err = prepare(&attempt, options, loop);
    weir_channel_release(attempt.channel);
    return err;
}

static int take_loop(const weir_client_options *options, weir_executor **ret_loop)
{
    if (options->loop == NULL)
        return weir__group_lease_next(options->group, ret_loop);
    *ret_loop = options->loop;
    weir__executor_lease(options->loop);
    return 0;
}

static int connect_on(weir_executor *loop, const weir_client_options *options, bool is_name,
                      weir_promise **ret_connecting)
{
    int err;

    if (!is_name)
        return weir__client_race(options, loop, ret_connecting);
    err = try_out(options, loop);
    return err < 0 ? err : weir__client_connect_by_name(options, loop, ret_connecting);
}

int weir_client_connect(const weir_client_options *given, weir_promise **ret_connecting)
{
    weir_client_options options;
    weir_executor *loop;
    bool is_name = false;
    int err = weir__client_options_read(given, &options);

    if (err == 0)
        err = weir__client_check_address(&options, &is_name);
    if (err < 0)
        return err;
    err = take_loop(&options, &loop);
    if (err < 0)
        return err;
    err = connect_on(loop, &options, is_name, ret_connecting);
    weir__executor_unlease(loop); /* who goes on with it holds it */
    return err;
}

int weir_client_connect_sync(const weir_client_options *options, weir_channel **ret_channel)
{
    weir_promise *connecting;
    int err = weir__promise_may_wait(NULL);

    if (err == 0)
        err = weir_client_connect(options, &connecting);
    if (err != 0)
        return err;
    err = weir_promise_sync(connecting, WEIR_NEVER);
    if (err == 0)
        *ret_channel = weir_channel_retain(weir_promise_value(connecting));
    else if (err == -EDEADLK)
        (void)weir_promise_cancel(connecting); /* on the loop itself, where a handler may wait */
    weir_promise_release(connecting);
    return err;
}
