/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stress test: eight foreign threads call every any-thread function on channels while these are
 * being closed. Every promise completes, and every message, handler and attribute is released.
 *
 * The test's own thread connects channels, publishes them for the others, and closes them.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/error.h>
#include <weir/handler.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "os/random.h"
#include "os/thread.h"
#include "support/executor/call_counter.h"
#include "support/executor/log_capture.h"
#include "support/loop/backend.h"
#include "support/test.h"
#include "support/transport/loops.h"

#define THREADS 8
#define PAIRS 4
#define HOOKS (2 * PAIRS)
#ifdef __SANITIZE_THREAD__
#define CONNECTIONS 100
#else
#define CONNECTIONS 200
#endif
#define CALLS_EACH 100 /* that a connection gets, about */
#define MESSAGE_MAX 3000

/* How channels are made. */
struct kind {
    const char *address;
    int (*create)(const weir_channel_options *options, weir_channel **ret_channel);
    int (*create_server)(const weir_channel_options *options,
                         const weir_channel_options *child_options, weir_channel **ret_channel);
};

/* Things that are made and must be gone in the end. */
struct balance {
    _Atomic uint32_t made, gone;
};

static struct {
    const struct kind *kind;
    weir_group *loops;
    weir_group *others; /* for remote handlers */
    weir_address address;
    weir_channel *listener;
    weir_channel *accepted; /* by the listener's loop, taken by the test when that has told */
    struct call_counter accepts;

    struct {
        weir__mutex lock;
        weir_channel *channel; /* NULL = none at the moment */
    } hooks[HOOKS];
    _Atomic bool is_over;
    _Atomic uint32_t calls;

    struct balance promises, messages, handlers, attributes;
    _Atomic uint32_t abandoned; /* promises that were released instead of completed */
    _Atomic uint32_t odd;       /* invalid results */
} storm;

/* For threads that may not assert. */
static void must(int err)
{
    if (err < 0)
        abort();
}

static void count_made(struct balance *balance)
{
    atomic_fetch_add(&balance->made, 1);
}

static void count_gone(struct balance *balance)
{
    atomic_fetch_add(&balance->gone, 1);
}

/* ---- promises, messages, attributes ---- */

static void hear(weir_promise *promise, void *user_data)
{
    (void)user_data;
    if (weir_promise_result(promise) == WEIR_EABANDONED)
        atomic_fetch_add(&storm.abandoned, 1);
    count_gone(&storm.promises);
}

/* Every other operation has one; the caller releases it. */
static weir_promise *maybe_promise(weir__random *random)
{
    weir_promise *promise;

    if (weir__random_below(random, 2) == 0)
        return NULL;
    must(weir_promise_create(NULL, &promise));
    must(weir_promise_add_listener(promise, hear, NULL));
    count_made(&storm.promises);
    return promise;
}

static void free_message(void *data, void *user_data)
{
    (void)data;
    (void)user_data;
    count_gone(&storm.messages);
}

static weir_msg *new_message(weir__random *random)
{
    static char bytes[MESSAGE_MAX];
    weir_buf *buf;

    count_made(&storm.messages);
    must(weir_buf_wrap(bytes, 1 + (size_t)weir__random_below(random, MESSAGE_MAX), free_message,
                       NULL, &buf));
    return weir_buf_msg(buf);
}

static void free_attribute(void *value)
{
    free(value);
    count_gone(&storm.attributes);
}

static const weir_attribute attributes[3] = {
    {.name = "a", .free = free_attribute},
    {.name = "b", .free = free_attribute},
    {.name = "c", .free = free_attribute},
};

/* ---- handlers ---- */

static int handler_init(void *state, const void *options)
{
    (void)state;
    (void)options;
    count_made(&storm.handlers);
    return 0;
}

static void handler_deinit(void *state)
{
    (void)state;
    count_gone(&storm.handlers);
}

struct balanced {
    bool was_added;
};

static void handler_added(weir_ctx *ctx)
{
    ((struct balanced *)weir_ctx_state(ctx))->was_added = true;
}

static void handler_removed(weir_ctx *ctx)
{
    if (!((struct balanced *)weir_ctx_state(ctx))->was_added)
        atomic_fetch_add(&storm.odd, 1);
}

static void handler_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_fire_read(ctx, msg);
}

static void handler_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_write(ctx, msg, done);
}

static void handler_flush(weir_ctx *ctx)
{
    weir_flush(ctx);
}

/* What is added and removed: it passes on what comes. */
static const weir_handler passer = {
    .name = "passer",
    .state_size = sizeof(struct balanced),
    .init = handler_init,
    .deinit = handler_deinit,
    .added = handler_added,
    .removed = handler_removed,
    .read = handler_read,
    .write = handler_write,
    .flush = handler_flush,
};

static void sink_read(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg);
}

static void sink_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_close(ctx, NULL);
}

/* The last one of a channel. */
static const weir_handler sink = {
    .name = "sink",
    .state_size = sizeof(struct balanced),
    .init = handler_init,
    .deinit = handler_deinit,
    .added = handler_added,
    .removed = handler_removed,
    .read = sink_read,
    .error = sink_error,
};

static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel *channel = weir_channel_of(msg);

    (void)ctx;
    must(weir_pipeline_add_last(weir_channel_pipeline(channel), &sink, NULL));
    weir_group_register(storm.loops, channel, NULL);
    storm.accepted = channel;
    call_counter_add(&storm.accepts);
}

static const weir_handler acceptor = {.name = "acceptor", .read = on_accepted};

/* ---- what the threads do ---- */

static const char *const names[4] = {"w", "x", "y", "z"};

static void do_write(weir_channel *channel, weir__random *random, weir_promise *done)
{
    if (weir__random_below(random, 2) == 0)
        weir_channel_write(channel, new_message(random), done);
    else
        weir_channel_write_and_flush(channel, new_message(random), done);
}

static void do_flush(weir_channel *channel, weir__random *random, weir_promise *done)
{
    (void)random;
    if (done != NULL)
        (void)weir_promise_succeed(done, NULL); /* a flush has none */
    weir_channel_flush(channel);
    weir_channel_request_read(channel);
}

static void do_attribute(weir_channel *channel, weir__random *random, weir_promise *done)
{
    const weir_attribute *attribute = &attributes[weir__random_below(random, 3)];
    void *value = malloc(1), *taken;

    if (done != NULL)
        (void)weir_promise_succeed(done, NULL);
    count_made(&storm.attributes);
    must(weir_attribute_set(channel, attribute, value));
    taken = weir__random_below(random, 2) == 0 ? weir_attribute_take(channel, attribute) : NULL;
    if (taken != NULL)
        free_attribute(taken);
}

static void fail_if(weir_promise *done, int err)
{
    if (err < 0 && done != NULL)
        (void)weir_promise_fail(done, err, NULL);
}

static void do_add(weir_channel *channel, weir__random *random, weir_promise *done)
{
    weir_place place = *WEIR_PLACE();

    place.first = true;
    place.done = done;
    place.name = names[weir__random_below(random, 4)];
    place.group = weir__random_below(random, 4) == 0 ? storm.others : NULL;
    fail_if(done, weir_pipeline_add(weir_channel_pipeline(channel), &place, &passer, NULL));
}

static void do_remove(weir_channel *channel, weir__random *random, weir_promise *done)
{
    fail_if(done, weir_pipeline_remove(weir_channel_pipeline(channel),
                                       names[weir__random_below(random, 4)], done));
}

static void do_replace(weir_channel *channel, weir__random *random, weir_promise *done)
{
    weir_place place = *WEIR_PLACE();

    place.done = done;
    place.name = names[weir__random_below(random, 4)];
    fail_if(done,
            weir_pipeline_replace(weir_channel_pipeline(channel),
                                  names[weir__random_below(random, 4)], &place, &passer, NULL));
}

static void do_deregister(weir_channel *channel, weir__random *random, weir_promise *done)
{
    (void)random;
    weir_channel_deregister(channel, done);
    weir_group_register(storm.loops, channel, NULL);
}

static void do_register(weir_channel *channel, weir__random *random, weir_promise *done)
{
    (void)random;
    weir_group_register(storm.loops, channel, done);
}

static void do_look(weir_channel *channel, weir__random *random, weir_promise *done)
{
    char text[256];

    if (done != NULL)
        (void)weir_promise_succeed(done, NULL);
    (void)weir_channel_format(channel, text, sizeof(text));
    (void)weir_channel_is_writable(channel);
    (void)weir_channel_is_registered(channel);
    if (weir_channel_pending_bytes(channel) < 0)
        atomic_fetch_add(&storm.odd, 1);
    weir_channel_set_auto_read(channel, weir__random_below(random, 4) != 0);
    (void)weir_channel_set_user_writable(channel, 1, weir__random_below(random, 2) == 0);
    weir_channel_fire_event(channel, weir_msg_retain(weir_event_output_closed()));
}

static void do_options(weir_channel *channel, weir__random *random, weir_promise *done)
{
    weir_channel_options options;

    if (done != NULL)
        (void)weir_promise_succeed(done, NULL);
    weir_channel_get_options(channel, &options);
    options.high_mark = 10000 + (int64_t)weir__random_below(random, 10000);
    options.low_mark = 5000;
    (void)weir_channel_set_options(channel, &options);
}

/* Seldom, so that there is something to close. */
static void do_close(weir_channel *channel, weir__random *random, weir_promise *done)
{
    switch (weir__random_below(random, 100)) {
    case 0:
        weir_channel_close(channel, done);
        break;
    case 1:
        weir_channel_abort(channel, done);
        break;
    case 2:
        weir_channel_shutdown_output(channel, done);
        break;
    case 3:
        weir_channel_disconnect(channel, done);
        break;
    default:
        fail_if(done, WEIR_ECANCELED);
    }
}

typedef void call_fn(weir_channel *channel, weir__random *random, weir_promise *done);

static call_fn *const calls[] = {
    do_write,  do_write,   do_write,      do_flush,    do_flush, do_attribute, do_add,
    do_remove, do_replace, do_deregister, do_register, do_look,  do_options,   do_close,
};

static weir_channel *take_from(unsigned hook)
{
    weir_channel *channel;

    weir__mutex_lock(&storm.hooks[hook].lock);
    channel = storm.hooks[hook].channel;
    if (channel != NULL)
        weir_channel_retain(channel);
    weir__mutex_unlock(&storm.hooks[hook].lock);
    return channel;
}

static void call_one(weir__random *random)
{
    weir_channel *channel = take_from((unsigned)weir__random_below(random, HOOKS));
    weir_promise *done;

    if (channel == NULL)
        return;
    done = maybe_promise(random);
    calls[weir__random_below(random, sizeof(calls) / sizeof(calls[0]))](channel, random, done);
    if (done != NULL && weir__random_below(random, 16) == 0)
        (void)weir_promise_cancel(done);
    weir_promise_release(done);
    weir_channel_release(channel);
    atomic_fetch_add(&storm.calls, 1);
}

/* As fast as the loops can follow: a call comes after all that were posted to its channel. */
static void wait_for_one(weir__random *random)
{
    weir_channel *channel = take_from((unsigned)weir__random_below(random, HOOKS));
    weir_promise *done;

    if (channel == NULL)
        return;
    assert_int_equal(weir_promise_create(NULL, &done), 0);
    (void)weir_pipeline_remove(weir_channel_pipeline(channel), "nobody", done);
    assert_int_not_equal(weir_promise_sync(done, TEST_TIMEOUT_NS), -ETIMEDOUT);
    weir_promise_release(done);
    weir_channel_release(channel);
}

static void rage(void *number)
{
    weir__random random;

    weir__random_init(&random, weir__random_process_seed() + (uintptr_t)number);
    while (!atomic_load(&storm.is_over)) {
        for (int i = 0; i < 16; i++)
            call_one(&random);
        wait_for_one(&random);
    }
}

/* ---- what the test does ---- */

static void hang_up(unsigned hook, weir_channel *channel)
{
    weir__mutex_lock(&storm.hooks[hook].lock);
    storm.hooks[hook].channel = channel;
    weir__mutex_unlock(&storm.hooks[hook].lock);
}

/* Closes what hangs there, while others still use it. */
static void take_away(unsigned hook, uint32_t n)
{
    weir_channel *channel = storm.hooks[hook].channel;

    if (channel == NULL)
        return;
    if (n % 2 == 0)
        weir_channel_close(channel, NULL);
    hang_up(hook, NULL);
    weir_channel_abort(channel, NULL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
}

static weir_promise *new_promise(void)
{
    weir_promise *promise;

    assert_int_equal(weir_promise_create(NULL, &promise), 0);
    return promise;
}

static void await(weir_promise *promise)
{
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    weir_promise_release(promise);
}

static void connect_pair(unsigned pair)
{
    weir_promise *done = new_promise();
    uint32_t before = atomic_load(&storm.accepts.calls);
    weir_channel *channel;

    assert_int_equal(storm.kind->create(NULL, &channel), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(channel), &sink, NULL), 0);
    weir_group_register(storm.loops, channel, NULL);
    weir_channel_connect(channel, &storm.address, NULL, done);
    await(done);
    assert_true(call_counter_await(&storm.accepts, before + 1));
    hang_up(2 * pair, channel);
    hang_up(2 * pair + 1, storm.accepted);
}

static void open_storm(const struct kind *kind, const weir_group_options *loops)
{
    weir_promise *done = new_promise();

    memset(&storm, 0, sizeof(storm));
    log_capture_start();
    storm.kind = kind;
    storm.loops = make_loops(loops);
    storm.others = make_loops(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    for (unsigned i = 0; i < HOOKS; i++)
        weir__mutex_init(&storm.hooks[i].lock);
    assert_int_equal(weir_address_parse(kind->address, &storm.address), 0);
    assert_int_equal(kind->create_server(NULL, NULL, &storm.listener), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(storm.listener), &acceptor, NULL),
                     0);
    weir_group_register(storm.loops, storm.listener, NULL);
    weir_channel_bind(storm.listener, &storm.address, done);
    await(done);
    assert_int_equal(weir_channel_local_address(storm.listener, &storm.address), 0);
}

/* All channels are closed, or about to be: each gives its executor back. */
static bool await_idle(void)
{
    weir_group_stats stats = {.active = 1};

    for (int i = 0; i < 10000 && stats.active > 0; i++) {
        weir__thread_sleep(weir_ms(1));
        weir_group_read_stats(storm.loops, &stats);
    }
    return stats.active == 0;
}

static void close_storm(void)
{
    weir_channel_close(storm.listener, NULL);
    assert_int_equal(weir_channel_await_closed(storm.listener, TEST_TIMEOUT_NS), 0);
    weir_channel_release(storm.listener);
    assert_true(await_idle());
    end_group(storm.loops);
    end_group(storm.others);
    for (unsigned i = 0; i < HOOKS; i++)
        weir__mutex_deinit(&storm.hooks[i].lock);
}

static bool await_balance(struct balance *balance)
{
    for (int i = 0; i < 1000 && atomic_load(&balance->made) != atomic_load(&balance->gone); i++)
        weir__thread_sleep(weir_ms(1)); /* the global executor tells the last ones */
    return atomic_load(&balance->made) == atomic_load(&balance->gone);
}

static void blow(void)
{
    weir__thread threads[THREADS];
    uint32_t calls_before;
    unsigned pair;

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(weir__thread_start("storm", rage, (void *)i, &threads[i]), 0);
    for (uint32_t n = 0; n < CONNECTIONS; n++) {
        pair = n % PAIRS;
        take_away(2 * pair, n);
        take_away(2 * pair + 1, n / 2);
        connect_pair(pair);
        calls_before = atomic_load(&storm.calls);
        while (atomic_load(&storm.calls) - calls_before < CALLS_EACH)
            weir__thread_yield();
    }
    for (unsigned hook = 0; hook < HOOKS; hook++)
        take_away(hook, hook);
    atomic_store(&storm.is_over, true);
    for (int i = 0; i < THREADS; i++)
        weir__thread_join(&threads[i]);
}

static void storm_over(const struct kind *kind, const weir_group_options *loops)
{
    open_storm(kind, loops);
    blow();
    close_storm();
    assert_true(await_balance(&storm.promises));
    assert_true(await_balance(&storm.messages));
    assert_true(await_balance(&storm.handlers));
    assert_true(await_balance(&storm.attributes));
    assert_int_equal(storm.abandoned, 0);
    assert_int_equal(storm.odd, 0);
}

static const struct kind inproc = {
    .address = "inproc:storm",
    .create = weir_inproc_create,
    .create_server = weir_inproc_create_server,
};

static const struct kind tcp = {
    .address = "127.0.0.1:0",
    .create = weir_tcp_create,
    .create_server = weir_tcp_create_server,
};

static void storm_on(enum backend_id id)
{
    if (backends[id].type == NULL)
        WEIR_TEST_SKIP("the backend is not built");
    storm_over(&tcp, WEIR_GROUP_OPTIONS(.io = backends[id].io, .threads = 3));
}

TEST(storm, over_channels_in_the_process)
{
    storm_over(&inproc, WEIR_GROUP_OPTIONS(PLAIN, .threads = 3));
}

TEST(storm, over_channels_in_the_process_on_event_loops)
{
    storm_over(&inproc, WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .threads = 3));
}

TEST(storm, over_tcp_on_epoll)
{
    storm_on(BACKEND_EPOLL);
}

TEST(storm, over_tcp_on_uring)
{
    storm_on(BACKEND_URING);
}

TEST(storm, over_tcp_on_poll)
{
    storm_on(BACKEND_POLL);
}

/* Where each registration anew is with another thread. */
TEST(storm, over_tcp_with_a_thread_per_channel)
{
    storm_on(BACKEND_BLOCKING);
}

TEST(storm, over_channels_in_the_process_with_a_thread_per_channel)
{
    storm_over(&inproc, WEIR_GROUP_OPTIONS(.io = WEIR_IO_BLOCKING));
}
