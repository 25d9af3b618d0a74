/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting to the first of several addresses that answers (happy eyeballs, RFC 8305): an attempt
 * starts when the previous one has failed, or has not answered for a while; the first to succeed
 * wins, and the others are aborted. All attempts run on one loop, so the race needs no locks.
 *
 *      on_begin -> start_next -> on_attempt -> won -> end
 *                     ^  ^           `-> lost -> start_next, or the promise fails
 *                     `--' on_delay
 *
 * The race is part of the promise's memory. Each pending task and attempt holds a reference to the
 * promise, and all channels are released at the end of the race.
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
    weir_channel *channel; /* NULL once the attempt is over */
    weir_address address;
    weir_listener listener;
};

struct race {
    weir_task begin;
    weir_task give_up;
    weir_timer timer; /* until the next attempt */
    weir_executor *loop;
    bool has_lease; /* on the loop, for attempts still to come (executor/group.c) */
    int64_t delay_ns;
    weir_address local; /* length 0 = any */
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

static void release_attempt(struct attempt *attempt)
{
    weir_channel_release(attempt->channel);
    attempt->channel = NULL;
}

static void unlease_loop(struct race *race)
{
    if (race->has_lease)
        weir__executor_unlease(race->loop);
    race->has_lease = false;
}

/* Aborts the remaining attempts; those under way still call on_attempt. */
static void end(struct race *race)
{
    (void)weir_timer_stop(&race->timer);
    unlease_loop(race);
    for (size_t i = 0; i < race->count; i++) {
        struct attempt *attempt = &race->attempts[i];

        if (attempt->channel == NULL)
            continue;
        if (i < race->started)
            weir_channel_abort(attempt->channel, NULL);
        else
            release_attempt(attempt);
    }
}

static void release_channel(void *channel)
{
    weir_channel_release(channel);
}

/* The others are aborted after the promise is complete: until then one of them could still win. */
static void won(struct attempt *attempt)
{
    struct race *race = attempt->race;
    weir_channel *channel = attempt->channel;

    attempt->channel = NULL;
    if (weir_promise_succeed_with(promise_of(race), weir_channel_retain(channel), release_channel) <
        0)
        weir_channel_abort(channel, NULL); /* the promise was cancelled meanwhile */
    weir_channel_release(channel);
    end(race);
}

/* Appends to the detail: "[::1]:80: connection refused, 127.0.0.1:80: ..." */
static void add_detail(struct race *race, const struct attempt *attempt, int err)
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
    unlease_loop(race);
}

static void lost(struct attempt *attempt, int err)
{
    struct race *race = attempt->race;

    add_detail(race, attempt, err);
    release_attempt(attempt);
    if (weir_promise_is_done(promise_of(race)))
        end(race); /* cancelled: on_cancel may have found the loop shut down */
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
    if (err == 0) {
        won(attempt);
    } else {
        weir_channel_abort(attempt->channel, NULL); /* open if there was no memory to begin */
        lost(attempt, err);
    }
    weir_promise_release(promise_of(race)); /* held by the attempt */
}

/* Registers and connects; a channel that cannot be registered fails to connect. */
static void start(struct attempt *attempt, weir_promise *connected)
{
    struct race *race = attempt->race;

    race->under_way++;
    weir_promise_retain(promise_of(race));
    attempt->listener = (weir_listener){.fn = on_attempt, .user_data = attempt};
    weir_promise_listen(connected, &attempt->listener);
    weir_channel_register(attempt->channel, race->loop, NULL);
    weir_channel_connect(attempt->channel, &attempt->address,
                         race->local.length > 0 ? &race->local : NULL, connected);
}

static void on_delay(weir_timer *timer)
{
    start_next(WEIR_CONTAINER_OF(timer, struct race, timer));
}

/* If the timer cannot be started, because the loop shuts down, the next attempt starts when this
 * one fails. */
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

/* The task was rejected: the loop shuts down, or its thread cannot be started. */
static void reject(struct race *race, int err)
{
    char detail[128];

    if (err == WEIR_EREJECTED || err == WEIR_ECANCELED) {
        (void)weir_promise_fail(promise_of(race), WEIR_EREJECTED, "the loop has shut down");
        return;
    }
    (void)snprintf(detail, sizeof(detail), "cannot start the thread of the loop: %s",
                   weir_error_text(err));
    (void)weir_promise_fail(promise_of(race), err, detail);
}

static void on_begin(void *arg, int status)
{
    struct race *race = arg;
    weir_promise *promise = promise_of(race);

    if (status < 0)
        reject(race, status);
    if (weir_promise_is_done(promise))
        end(race);
    else
        start_next(race);
    weir_promise_release(promise);
}

static void on_give_up(void *arg, int status)
{
    (void)status; /* on the loop's thread in either case */
    end(arg);
    weir_promise_release(promise_of(arg));
}

/* On the cancelling thread. */
static void on_cancel(weir_promise *promise)
{
    struct race *race = weir__promise_extra(promise);

    weir_promise_retain(promise);
    weir_task_init(&race->give_up, on_give_up, race);
    if (weir__executor_post(race->loop, &race->give_up, WEIR__NOW) < 0)
        weir_promise_release(promise); /* the loop has ended and has no channels */
}

/* ---- creation ---- */

static int64_t delay_of(const weir_client_options *options)
{
    if (options->attempt_delay_ns == WEIR_OFF)
        return WEIR_NEVER;
    if (options->attempt_delay_ns == 0)
        return DELAY_NS;
    return options->attempt_delay_ns > DELAY_MIN_NS ? options->attempt_delay_ns : DELAY_MIN_NS;
}

/* The next address from `index` on that is of the family, or is not; the count if there is none. */
static size_t find(const weir_client_options *options, size_t index, int family, bool is_of_it)
{
    while (index < options->address_count &&
           (weir_address_family(&options->addresses[index]) == family) != is_of_it)
        index++;
    return index;
}

/* RFC 8305, section 4: alternates between families, starting with that of the first address;
 * otherwise keeps the order. */
static void copy_interleaved(const weir_client_options *options, struct race *race)
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
    copy_interleaved(options, race);
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

/* Creates all channels now, so that invalid options are reported at once. */
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
    race->has_lease = true;
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

/* Reports invalid options before the name is resolved. */
static int check_for_name(const weir_client_options *options, const weir_executor *loop)
{
    weir_address local;
    int err = 0;

    if (options->local_address != NULL)
        err = weir__transport_parse(options->local_address, &local);
    return err < 0 ? err : weir__transport_check_internet(options->kind, options->options, loop);
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
    err = check_for_name(options, loop);
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
    weir__executor_unlease(loop); /* the race has its own lease */
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
        (void)weir_promise_cancel(connecting); /* called on the loop itself */
    weir_promise_release(connecting);
    return err;
}
