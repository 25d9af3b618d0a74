/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels inside the process, on executors that are stepped: what is told to whom, and in which
 * order. What runs on several threads at a time is in test_inproc_threads.c.
 */
#include <weir/inproc.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/pool.h>

#include "support/channel/rig.h"
#include "support/executor/global.h"
#include "support/memory.h"
#include "support/transport/pair.h"

static const struct pair_options together = {0};
static const struct pair_options apart = {.apart = true};

/* The test for both ends on one executor, and for each on its own. */
static void for_both(void (*test)(const struct pair_options *options))
{
    test(&together);
    test(&apart);
}

static weir_address address_of(const char *text)
{
    weir_address address;

    assert_int_equal(weir_address_parse(text, &address), 0);
    return address;
}

/* ---- connecting ---- */

/* D 75 */
static void connect_in_order(const struct pair_options *options)
{
    struct pair pair;

    pair_open(&pair, options);
    pair_call(&pair);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.active connect=ok client.active");
    pair_close(&pair);
}

TEST(inproc, registers_the_server_first_then_completes_connect_then_is_active)
{
    for_both(connect_in_order);
}

TEST(inproc, has_names_for_addresses)
{
    weir_address local = address_of("inproc:me"), address;
    struct pair pair;
    char text[128];

    pair_open(&pair, NULL);
    weir_channel_connect(pair.client.channel, &pair.address, &local, NULL);
    pair_run(&pair);
    assert_int_equal(weir_channel_local_address(pair.listener, &address), 0);
    assert_true(weir_address_equal(&address, &pair.address));
    assert_int_equal(weir_channel_local_address(pair.client.channel, &address), 0);
    assert_true(weir_address_equal(&address, &local));
    assert_int_equal(weir_channel_remote_address(pair.client.channel, &address), 0);
    assert_true(weir_address_equal(&address, &pair.address));
    assert_non_null(
        strstr(weir_channel_format(pair.server.channel, text, sizeof(text)), " - inproc:me]"));
    pair_close(&pair);
}

TEST(inproc, has_no_address_before_it_is_bound)
{
    weir_channel *listener;
    weir_address address;

    assert_int_equal(weir_inproc_create_server(NULL, NULL, &listener), 0);
    assert_int_equal(weir_channel_local_address(listener, &address), -ENOTCONN);
    weir_channel_release(listener);
}

TEST(inproc, that_has_no_name_is_known_by_its_number)
{
    struct pair pair;
    char text[128], expected[64];

    pair_open(&pair, NULL);
    assert_non_null(strstr(weir_channel_format(pair.client.channel, text, sizeof(text)), "- ! -"));
    pair_connect(&pair);
    (void)snprintf(expected, sizeof(expected), "inproc:#%llu - inproc:pair",
                   (unsigned long long)weir_channel_id(pair.client.channel));
    assert_non_null(strstr(weir_channel_format(pair.client.channel, text, sizeof(text)), expected));
    pair_close(&pair);
}

static weir_channel *bind_to(struct stepper *stepper, const char *name, bool server, int *ret_err)
{
    weir_address address = address_of(name);
    weir_channel *channel;
    weir_promise *done;

    assert_int_equal(weir_promise_create(stepper->executor, &done), 0);
    assert_int_equal(server ? weir_inproc_create_server(NULL, NULL, &channel)
                            : weir_inproc_create(NULL, &channel),
                     0);
    weir_channel_register(channel, stepper->executor, NULL);
    weir_channel_bind(channel, &address, done);
    (void)stepper_run(stepper);
    *ret_err = weir_promise_result(done);
    weir_promise_release(done);
    return channel;
}

static void end_channel(struct stepper *stepper, weir_channel *channel)
{
    weir_channel_close(channel, NULL);
    (void)stepper_run(stepper);
    weir_channel_release(channel);
}

TEST(inproc, has_its_name_alone_until_it_is_closed)
{
    struct stepper stepper = stepper_open();
    weir_channel *first, *second;
    int err;

    first = bind_to(&stepper, "inproc:name", true, &err);
    assert_int_equal(err, 0);
    for (int server = 0; server < 2; server++) {
        second = bind_to(&stepper, "inproc:name", server, &err);
        assert_int_equal(err, -EADDRINUSE);
        assert_false(weir_channel_is_open(second));
        weir_channel_release(second);
    }
    second = bind_to(&stepper, "inproc:another", true, &err);
    assert_int_equal(err, 0);
    end_channel(&stepper, second);
    end_channel(&stepper, first);
    second = bind_to(&stepper, "inproc:name", true, &err);
    assert_int_equal(err, 0);
    end_channel(&stepper, second);
    stepper_close(&stepper);
}

TEST(inproc, is_bound_to_names_only)
{
    struct stepper stepper = stepper_open();
    int err;
    weir_channel *channel = bind_to(&stepper, "127.0.0.1:1", true, &err);

    assert_int_equal(err, -EAFNOSUPPORT);
    weir_channel_release(channel);
    stepper_close(&stepper);
}

/* D 82 */
TEST(inproc, is_refused_where_nobody_listens)
{
    weir_address nobody = address_of("inproc:nobody");
    struct pair pair;
    weir_promise *done;

    pair_open(&pair, NULL);
    done = pair_promise(&pair, "connect");
    weir_channel_connect(pair.client.channel, &nobody, NULL, done);
    pair_run(&pair);
    assert_diary(&pair.diary, "connect=ECONNREFUSED");
    assert_false(weir_channel_is_open(pair.client.channel));
    weir_promise_release(done);
    pair_close(&pair);
}

/* A name that somebody connects from is nobody's to connect to. */
TEST(inproc, is_refused_by_one_that_does_not_listen)
{
    struct stepper stepper = stepper_open();
    weir_address address = address_of("inproc:bound");
    weir_channel *bound, *channel;
    weir_promise *done;
    int err;

    bound = bind_to(&stepper, "inproc:bound", false, &err);
    assert_int_equal(err, 0);
    assert_int_equal(weir_inproc_create(NULL, &channel), 0);
    assert_int_equal(weir_promise_create(stepper.executor, &done), 0);
    weir_channel_register(channel, stepper.executor, NULL);
    weir_channel_connect(channel, &address, NULL, done);
    (void)stepper_run(&stepper);
    assert_int_equal(weir_promise_result(done), -ECONNREFUSED);
    weir_promise_release(done);
    end_channel(&stepper, channel);
    end_channel(&stepper, bound);
    stepper_close(&stepper);
}

static void refused_by_handler(const struct pair_options *options)
{
    struct pair_options refuses = *options;
    struct pair pair;

    refuses.refuses = true;
    pair_open(&pair, &refuses);
    pair_call(&pair);
    pair_run(&pair);
    assert_diary(&pair.diary, "connect=ECONNREFUSED");
    pair_close(&pair);
}

TEST(inproc, is_refused_if_the_accepted_channel_never_comes_to_a_loop)
{
    for_both(refused_by_handler);
}

/* D 81, D 96 */
TEST(inproc, listener_that_reads_on_demand_accepts_one_for_each_request)
{
    struct pair pair;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    pair_call(&pair);
    pair_run(&pair);
    assert_diary(&pair.diary, "");
    weir_channel_request_read(pair.listener);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.active connect=ok client.active");
    pair_close(&pair);
}

TEST(inproc, is_refused_if_the_listener_closes_before_it_accepts)
{
    struct pair pair;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    pair_call(&pair);
    pair_run(&pair);
    weir_channel_close(pair.listener, NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "connect=ECONNREFUSED");
    pair_close(&pair);
}

TEST(inproc, is_refused_if_too_many_wait)
{
    weir_channel *second;
    struct pair pair;
    weir_promise *done;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .backlog = 1)});
    pair_call(&pair);
    done = pair_promise(&pair, "second");
    assert_int_equal(weir_inproc_create(NULL, &second), 0);
    weir_channel_register(second, pair.near.executor, NULL);
    weir_channel_connect(second, &pair.address, NULL, done);
    pair_run(&pair);
    assert_diary(&pair.diary, "second=ECONNREFUSED");
    weir_promise_release(done);
    weir_channel_release(second);
    pair_close(&pair);
}

/* D 83 */
TEST(inproc, gives_up_connecting_in_time_and_the_listener_passes_it_over)
{
    struct pair pair;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true),
                         .client = WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_seconds(2))});
    pair_call(&pair);
    (void)stepper_advance(&pair.near, weir_seconds(1));
    assert_diary(&pair.diary, "");
    (void)stepper_advance(&pair.near, weir_seconds(1));
    assert_diary(&pair.diary, "connect=ETIMEDOUT");
    weir_channel_request_read(pair.listener);
    pair_run(&pair);
    assert_diary(&pair.diary, "");
    pair_close(&pair);
}

/* D 83 */
TEST(inproc, closes_if_connecting_is_cancelled)
{
    struct pair pair;
    weir_promise *done;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    done = pair_promise(&pair, "connect");
    weir_channel_connect(pair.client.channel, &pair.address, NULL, done);
    pair_run(&pair);
    assert_int_equal(weir_promise_cancel(done), 0);
    pair_run(&pair);
    assert_diary(&pair.diary, "connect=WEIR_ECANCELED");
    assert_false(weir_channel_is_open(pair.client.channel));
    weir_promise_release(done);
    pair_close(&pair);
}

/* D 85 */
TEST(inproc, connects_once)
{
    struct pair pair;

    pair_open(&pair, NULL);
    pair_call(&pair);
    pair_call(&pair);
    pair_run(&pair);
    assert_diary(&pair.diary, "connect=EALREADY server.active connect=ok client.active");
    pair_call(&pair);
    pair_run(&pair);
    assert_diary(&pair.diary, "connect=EISCONN");
    pair_close(&pair);
}

static void close_in_active(weir_ctx *ctx)
{
    weir_close(ctx, NULL);
}

/* D 84 */
TEST(inproc, that_is_closed_as_soon_as_it_is_connected_was_active_first)
{
    struct pair pair;

    pair_open(&pair, NULL);
    pair.client.on_active = close_in_active;
    pair_call(&pair);
    pair_run(&pair);
    assert_diary(&pair.diary,
                 "server.active connect=ok client.active client.inactive server.inactive");
    pair_close(&pair);

    pair_open(&pair, NULL);
    pair.server.on_active = close_in_active;
    pair_call(&pair);
    pair_run(&pair);
    assert_diary(&pair.diary,
                 "server.active connect=ok client.active server.inactive client.inactive");
    pair_close(&pair);
}

/* ---- messages ---- */

static void both_ways(const struct pair_options *options)
{
    struct pair pair;

    pair_open_connected(&pair, options);
    pair_send(&pair.client, "ping", "w");
    pair_run(&pair);
    assert_diary(&pair.diary, "w=ok server.read(ping)");
    pair_send(&pair.server, "pong", NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "client.read(pong)");
    pair_close(&pair);
}

TEST(inproc, sends_messages_both_ways)
{
    for_both(both_ways);
}

struct parcel {
    weir_msg msg;
    bool is_gone;
};

static void parcel_destroy(weir_msg *msg)
{
    container_of(msg, struct parcel, msg)->is_gone = true;
}

static const weir_msg_type parcel_type = {.name = "parcel", .destroy = parcel_destroy};

TEST(inproc, hands_over_messages_of_every_type_as_they_are)
{
    struct parcel parcel = {.is_gone = false};
    struct pair pair;

    pair_open_connected(&pair, NULL);
    weir_msg_init(&parcel.msg, &parcel_type);
    weir_channel_write_and_flush(pair.client.channel, &parcel.msg, NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(parcel)");
    assert_true(parcel.is_gone);
    pair_close(&pair);
}

static const uint8_t *seen_bytes;

static void remember_bytes(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    seen_bytes = weir_buf_bytes(weir_buf_of(msg));
    weir_msg_release(msg);
}

TEST(inproc, does_not_copy_a_buffer_that_comes_alone)
{
    struct pair pair;
    weir_msg *msg = text_msg("alone");
    const uint8_t *bytes = weir_buf_bytes(weir_buf_of(msg));

    pair_open_connected(&pair, NULL);
    pair.server.on_read = remember_bytes;
    weir_channel_write_and_flush(pair.client.channel, msg, NULL);
    pair_run(&pair);
    assert_ptr_equal(seen_bytes, bytes);
    pair_close(&pair);
}

TEST(inproc, puts_buffers_together_that_fit_into_what_it_would_receive)
{
    struct parcel parcel = {.is_gone = false};
    struct pair pair;

    pair_open_connected(&pair,
                        &(const struct pair_options){
                            .server = WEIR_CHANNEL_OPTIONS(.receive_min = 16, .receive_initial = 16,
                                                           .receive_max = 16)});
    pair_write(&pair.client, "0123456", NULL);
    pair_write(&pair.client, "", NULL);
    pair_write(&pair.client, "789", NULL);
    pair_write(&pair.client, "abcdef", NULL);
    pair_write(&pair.client, "g", NULL);
    pair_write(&pair.client, "longer than a receive buffer is", NULL);
    pair_write(&pair.client, "h", NULL);
    weir_msg_init(&parcel.msg, &parcel_type);
    weir_channel_write(pair.client.channel, &parcel.msg, NULL);
    pair_write(&pair.client, "i", NULL);
    weir_channel_flush(pair.client.channel);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(0123456789abcdef) server.read(g) "
                              "server.read(longer than a receive buffer is) server.read(h) "
                              "server.read(parcel) server.read(i)");
    pair_close(&pair);
}

/* The guess follows what comes: four steps up each time that it was too small. */
TEST(inproc, puts_more_together_if_more_comes)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.receive_min = 16, .receive_initial = 16)});
    for (int i = 0; i < 16; i++)
        pair_write(&pair.client, "12345678", NULL);
    weir_channel_flush(pair.client.channel);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(1234567812345678) server.read(80) "
                              "server.read(12345678123456781234567812345678)");
    pair_close(&pair);
}

/* Three buffers of 100,000 come, in however many pieces there is memory for. */
static unsigned bytes_read;

static void count_bytes(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    bytes_read += (unsigned)weir_buf_readable(weir_buf_of(msg));
    weir_msg_release(msg);
}

static bool come_together(struct pair *pair, unsigned n)
{
    bool failed;

    for (int i = 0; i < 3; i++)
        pair_send_bytes(&pair->client, 100000);
    bytes_read = 0;
    (void)weir_pool_trim();
    test_memory_fail_at(n);
    weir_channel_request_read(pair->server.channel);
    weir_channel_request_read(pair->server.channel);
    pair_run(pair);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_channel_set_auto_read(pair->server.channel, true);
    pair_run(pair);
    weir_channel_set_auto_read(pair->server.channel, false);
    assert_int_equal(bytes_read, 300000);
    return failed;
}

TEST(inproc, hands_over_one_by_one_what_there_is_no_memory_to_put_together)
{
    struct pair pair;
    unsigned n = 0;

    pair_open_connected(
        &pair,
        &(const struct pair_options){
            .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 400000,
                                           .receive_initial = 400000, .receive_max = 400000)});
    pair.server.on_read = count_bytes;
    while (come_together(&pair, ++n))
        ;
    assert_in_range(n, 2, 10);
    assert_int_equal(diary_count(&pair.diary, "server.read(300000)"), 1);
    pair_close(&pair);
}

/* ---- who runs when ---- */

TEST(inproc, is_read_inside_the_flush_where_both_have_one_executor)
{
    struct pair pair;

    pair_open_connected(&pair, &together);
    pair_send(&pair.client, "x", NULL);
    assert_diary(&pair.diary, "server.read(x)");
    pair_close(&pair);

    pair_open_connected(&pair, &apart);
    pair_send(&pair.client, "x", NULL);
    assert_diary(&pair.diary, "");
    (void)stepper_run(&pair.near);
    assert_diary(&pair.diary, "");
    (void)stepper_run(&pair.far);
    assert_diary(&pair.diary, "server.read(x)");
    pair_close(&pair);
}

static unsigned nested, deepest, bounces;

/* Sends it back, some times. */
static void bounce(weir_ctx *ctx, weir_msg *msg)
{
    nested++;
    deepest = nested > deepest ? nested : deepest;
    if (bounces-- > 0)
        weir_write_and_flush(ctx, msg, NULL);
    else
        weir_msg_release(msg);
    nested--;
}

/* The writer's own flush is further out on the stack: its peer's answer comes in a task. */
TEST(inproc, is_not_read_while_it_writes_or_reads)
{
    struct pair pair;

    pair_open_connected(&pair, &together);
    pair.client.on_read = pair.server.on_read = bounce;
    nested = deepest = 0;
    bounces = 100;
    pair_send(&pair.client, "x", NULL);
    pair_run(&pair);
    assert_int_equal(diary_count(&pair.diary, "server.read(x)"), 51);
    assert_int_equal(diary_count(&pair.diary, "client.read(x)"), 50);
    assert_int_equal(deepest, 2); /* one reads in a task, the other inside its flush */
    pair_close(&pair);
}

#define CHAIN 20

static weir_channel *chain_callers[CHAIN], *chain_called[CHAIN];
static unsigned chain_count, chain_arrived;

static void relay_read(weir_ctx *ctx, weir_msg *msg)
{
    unsigned next = 1;

    while (chain_called[next - 1] != weir_ctx_channel(ctx))
        next++;
    nested++;
    deepest = nested > deepest ? nested : deepest;
    if (next < CHAIN) {
        weir_channel_write_and_flush(chain_callers[next], msg, NULL);
    } else {
        chain_arrived++;
        weir_msg_release(msg);
    }
    nested--;
}

static const weir_handler relay = {.name = "relay", .read = relay_read};

static void relay_accepted(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel *channel = weir_channel_of(msg);

    chain_called[chain_count++] = channel;
    (void)weir_pipeline_add_last(weir_channel_pipeline(channel), &relay, NULL);
    weir_channel_register(channel, weir_ctx_executor(ctx), NULL);
}

static const weir_handler chain_acceptor = {.name = "acceptor", .read = relay_accepted};

static void call_chain(struct stepper *stepper, const weir_address *address)
{
    for (unsigned i = 0; i < CHAIN; i++) {
        assert_int_equal(weir_inproc_create(NULL, &chain_callers[i]), 0);
        weir_channel_register(chain_callers[i], stepper->executor, NULL);
        weir_channel_connect(chain_callers[i], address, NULL, NULL);
    }
    (void)stepper_run(stepper);
    assert_int_equal(chain_count, CHAIN);
}

TEST(inproc, is_read_inside_eight_flushes_at_the_deepest)
{
    struct stepper stepper = stepper_open();
    weir_address address = address_of("inproc:chain");
    weir_channel *listener;

    chain_count = chain_arrived = nested = deepest = 0;
    assert_int_equal(weir_inproc_create_server(NULL, NULL, &listener), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(listener), &chain_acceptor, NULL),
                     0);
    weir_channel_register(listener, stepper.executor, NULL);
    weir_channel_bind(listener, &address, NULL);
    call_chain(&stepper, &address);
    weir_channel_write_and_flush(chain_callers[0], text_msg("x"), NULL);
    assert_int_equal(chain_arrived, 0);
    assert_int_equal(deepest, 8);
    (void)stepper_run(&stepper);
    assert_int_equal(chain_arrived, 1);
    assert_int_equal(deepest, 1 + 8); /* in a task, and inside its flushes */
    for (unsigned i = 0; i < CHAIN; i++) {
        end_channel(&stepper, chain_callers[i]);
        end_channel(&stepper, chain_called[i]);
    }
    end_channel(&stepper, listener);
    stepper_close(&stepper);
}

/* ---- reading ---- */

/* D 76, D 79-81: our n is 1, and what fits together is one message. */
static void read_on_demand(const struct pair_options *options)
{
    struct pair_options on_demand = *options;
    struct pair pair;

    on_demand.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_min = 1,
                                            .receive_initial = 1, .receive_max = 1);
    pair_open_connected(&pair, &on_demand);
    pair_write(&pair.client, "1", NULL);
    pair_write(&pair.client, "2", NULL);
    pair_send(&pair.client, "3", NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "");
    weir_channel_request_read(pair.server.channel);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(1)");
    weir_channel_request_read(pair.server.channel);
    weir_channel_request_read(pair.server.channel);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(2)");
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(3)");
    pair_close(&pair);
}

TEST(inproc, reads_one_message_for_each_request)
{
    for_both(read_on_demand);
}

static void stop_reading(weir_ctx *ctx, weir_msg *msg)
{
    weir_set_auto_read(ctx, false);
    weir_msg_release(msg);
}

/* D 79 */
TEST(inproc, reads_nothing_more_when_a_handler_says_so)
{
    struct pair pair;

    pair_open_connected(&pair,
                        &(const struct pair_options){
                            .server = WEIR_CHANNEL_OPTIONS(.receive_min = 1, .receive_initial = 1,
                                                           .receive_max = 1)});
    pair.server.on_read = stop_reading;
    pair_write(&pair.client, "1", NULL);
    pair_send(&pair.client, "2", NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(1)");
    weir_channel_request_read(pair.server.channel);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(2)");
    pair_close(&pair);
}

static void ask_again(weir_ctx *ctx, weir_msg *msg)
{
    weir_request_read(ctx);
    weir_msg_release(msg);
}

/* D 80 */
TEST(inproc, reads_on_if_a_handler_asks_for_it)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_min = 1,
                                                  .receive_initial = 1, .receive_max = 1)});
    pair.server.on_read = ask_again;
    weir_channel_request_read(pair.server.channel);
    for (int i = 0; i < 3; i++)
        pair_send(&pair.client, "x", NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(x) server.read(x) server.read(x)");
    pair_close(&pair);
}

/* ---- back-pressure ---- */

/* 16 messages of 1024 + 96 fit on the way; above 8 KiB in the queue the writer is unwritable. */
static void press(const struct pair_options *options)
{
    struct pair_options small = *options;
    int written = 0;
    struct pair pair;

    small.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 16 * 1120,
                                        .receive_max = 1024);
    small.client = WEIR_CHANNEL_OPTIONS(.low_mark = 4096, .high_mark = 8192);
    pair_open_connected(&pair, &small);
    for (; weir_channel_is_writable(pair.client.channel); written++)
        pair_send_bytes(&pair.client, 1024);
    pair_run(&pair);
    assert_int_equal(written, 16 + 8);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 8 * 1120);
    assert_diary(&pair.diary, "client.unwritable");
    for (int i = 0; i < 7; i++) {
        weir_channel_request_read(pair.server.channel);
        pair_run(&pair);
    }
    assert_false(weir_channel_is_writable(pair.client.channel));
    assert_int_equal(diary_count(&pair.diary, "server.read(1024)"), 7);
    diary_clear(&pair.diary);
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_true(weir_channel_is_writable(pair.client.channel));
    assert_int_equal(diary_count(&pair.diary, "server.read(1024)"), written - 7);
    assert_int_equal(diary_count(&pair.diary, "client.writable"), 1);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 0);
    pair_close(&pair);
}

TEST(inproc, that_is_not_read_makes_its_writer_unwritable)
{
    for_both(press);
}

TEST(inproc, sends_a_message_that_is_larger_than_the_way_alone)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 200)});
    pair_send_bytes(&pair.client, 100);
    pair_send_bytes(&pair.client, 5000);
    pair_send_bytes(&pair.client, 101);
    pair_run(&pair);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 5000 + 101 + 2 * 96);
    weir_channel_request_read(pair.server.channel);
    pair_run(&pair);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 101 + 96);
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(100) server.read(5000) server.read(101)");
    pair_close(&pair);
}

TEST(inproc, takes_more_if_its_options_say_so_later)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 200)});
    assert_int_equal(
        weir_channel_set_options(pair.server.channel, WEIR_CHANNEL_OPTIONS(.read_on_demand = true,
                                                                           .receive_buffer = 400)),
        0);
    pair_send_bytes(&pair.client, 100);
    pair_send_bytes(&pair.client, 100);
    pair_send_bytes(&pair.client, 100);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 196);
    pair_close(&pair);
}

/* The peer reads at once, but no flush goes on for ever: the rest comes in tasks. */
TEST(inproc, lets_others_have_their_turn_when_a_flush_is_long)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){.server = WEIR_CHANNEL_OPTIONS(.receive_buffer = 1),
                                            .client = WEIR_CHANNEL_OPTIONS(.writes_per_flush = 4)});
    for (int i = 0; i < 10; i++)
        weir_channel_write(pair.client.channel, sized_msg(100), NULL);
    weir_channel_flush(pair.client.channel);
    assert_int_equal(diary_count(&pair.diary, "server.read(100)"), 4);
    pair_run(&pair);
    assert_int_equal(diary_count(&pair.diary, "server.read(100)"), 10);
    pair_close(&pair);
}

/* ---- closing ---- */

/* Whose handlers hear of it first is certain on one executor only. */
TEST(inproc, is_inactive_before_its_peer_if_it_closes)
{
    struct pair pair;

    pair_open_connected(&pair, &together);
    pair_close_end(&pair.client);
    assert_diary(&pair.diary, "client.inactive server.inactive");
    pair_close(&pair);

    pair_open_connected(&pair, &together);
    weir_channel_abort(pair.server.channel, NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.inactive client.inactive");
    pair_close(&pair);
}

TEST(inproc, closes_its_peer_on_another_executor)
{
    struct pair pair;

    pair_open_connected(&pair, &apart);
    weir_channel_close(pair.client.channel, NULL);
    (void)stepper_run(&pair.near);
    assert_diary(&pair.diary, "client.inactive");
    (void)stepper_run(&pair.far);
    assert_diary(&pair.diary, "server.inactive");
    pair_close(&pair);
}

/* The peer's task is in the queue already, and would come before ours. */
TEST(inproc, is_inactive_before_its_peer_though_that_has_something_to_do)
{
    struct pair pair;

    pair_open_connected(&pair, &together);
    weir_channel_set_user_writable(pair.server.channel, 1, false);
    weir_channel_close(pair.client.channel, NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.unwritable client.inactive server.inactive");
    pair_close(&pair);
}

static void both_close(const struct pair_options *options)
{
    weir_promise *first, *second;
    struct pair pair;

    pair_open_connected(&pair, options);
    first = pair_promise(&pair, "first");
    second = pair_promise(&pair, "second");
    weir_channel_close(pair.client.channel, first);
    weir_channel_close(pair.server.channel, second);
    pair_run(&pair);
    assert_int_equal(diary_count(&pair.diary, "first=ok"), 1);
    assert_int_equal(diary_count(&pair.diary, "second=ok"), 1);
    assert_int_equal(diary_count(&pair.diary, "client.inactive"), 1);
    assert_int_equal(diary_count(&pair.diary, "server.inactive"), 1);
    weir_promise_release(first);
    weir_promise_release(second);
    pair_close(&pair);
}

TEST(inproc, can_be_closed_from_both_ends)
{
    for_both(both_close);
}

/* D 86 */
TEST(inproc, can_be_closed_twice)
{
    weir_promise *first, *second;
    struct pair pair;

    pair_open_connected(&pair, NULL);
    first = pair_promise(&pair, "first");
    second = pair_promise(&pair, "second");
    weir_channel_close(pair.client.channel, first);
    weir_channel_close(pair.client.channel, second);
    pair_run(&pair);
    assert_diary(&pair.diary, "first=ok second=ok client.inactive server.inactive");
    weir_promise_release(first);
    weir_promise_release(second);
    pair_close(&pair);
}

static void close_channel(weir_promise *promise, void *channel)
{
    assert_int_equal(weir_promise_result(promise), 0);
    weir_channel_close(channel, NULL);
}

/* D 74 */
static void close_in_listener(const struct pair_options *options)
{
    struct pair pair;
    weir_promise *done;

    pair_open_connected(&pair, options);
    done = pair_promise(&pair, "w");
    assert_int_equal(weir_promise_add_listener(done, close_channel, pair.client.channel), 0);
    weir_channel_write_and_flush(pair.client.channel, text_msg("last"), done);
    pair_run(&pair);
    assert_int_equal(diary_count(&pair.diary, "client.inactive"), 1);
    assert_non_null(strstr(pair.diary.text, "server.read(last)"));
    assert_non_null(strstr(strstr(pair.diary.text, "server.read(last)"), "server.inactive"));
    weir_promise_release(done);
    pair_close(&pair);
}

TEST(inproc, peer_gets_what_was_written_before_a_listener_closed)
{
    for_both(close_in_listener);
}

/* B 11: also what was not flushed. */
static void close_sends(const struct pair_options *options)
{
    struct pair_options later = *options;
    struct pair pair;

    later.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true);
    pair_open_connected(&pair, &later);
    pair_write(&pair.client, "un", NULL);
    pair_write(&pair.client, "flushed", NULL);
    pair_close_end(&pair.client);
    assert_diary(&pair.diary, "client.inactive");
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(unflushed) server.inactive");
    pair_close(&pair);
}

TEST(inproc, peer_gets_what_was_written_before_a_close_whenever_it_reads)
{
    for_both(close_sends);
}

/* B 11 */
TEST(inproc, waits_for_room_when_it_closes_but_not_for_ever)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 1)});
    pair_send(&pair.client, "first", "first");
    pair_send(&pair.client, "second", "second");
    pair_close_end(&pair.client);
    assert_diary(&pair.diary, "first=ok");
    (void)stepper_advance(&pair.near, weir_seconds(3));
    assert_diary(&pair.diary, "second=WEIR_ECLOSED client.inactive");
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(first) server.inactive");
    pair_close(&pair);
}

static void write_back(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

/* A client that sends three requests and closes has all of them handled, though not answered. */
TEST(inproc, reads_to_the_end_though_its_answers_fail)
{
    struct pair pair;

    pair_open_connected(&pair,
                        &(const struct pair_options){
                            .apart = true,
                            .server = WEIR_CHANNEL_OPTIONS(.receive_min = 1, .receive_initial = 1,
                                                           .receive_max = 1)});
    pair.server.on_read = write_back;
    pair_write(&pair.client, "1", NULL);
    pair_write(&pair.client, "2", NULL);
    pair_write(&pair.client, "3", NULL);
    pair_close_end(&pair.client);
    assert_diary(&pair.diary, "client.inactive server.read(1) server.read(2) server.read(3) "
                              "server.inactive");
    pair_close(&pair);
}

/* D 77 */
static void write_to_closed(const struct pair_options *options)
{
    struct pair_options later = *options;
    struct parcel parcel = {.is_gone = false};
    weir_promise *done;
    struct pair pair;

    later.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true);
    pair_open_connected(&pair, &later);
    pair_close_end(&pair.client);
    diary_clear(&pair.diary);
    assert_true(weir_channel_is_open(pair.server.channel));
    weir_msg_init(&parcel.msg, &parcel_type);
    done = pair_promise(&pair, "w");
    weir_channel_write_and_flush(pair.server.channel, &parcel.msg, done);
    pair_run(&pair);
    assert_true(parcel.is_gone);
    assert_diary(&pair.diary, "w=WEIR_ECLOSED");
    assert_string_equal(weir_promise_detail(done), "the peer has closed");
    weir_promise_release(done);
    pair_close(&pair);
}

TEST(inproc, write_to_a_closed_peer_fails_and_is_released)
{
    for_both(write_to_closed);
}

/* What waits for room when the peer goes waits no more. */
TEST(inproc, fails_what_waits_when_the_peer_closes)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 1),
                   .client = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    pair_send(&pair.client, "first", "first");
    pair_send(&pair.client, "second", "second");
    weir_channel_abort(pair.server.channel, NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "first=ok second=WEIR_ECLOSED server.inactive");
    pair_close(&pair);
}

/* ---- half closure ---- */

static const weir_channel_options half_closure = {.size = sizeof(weir_channel_options),
                                                  .half_closure = true};

/* D 87, D 89 */
static void shut_output(const struct pair_options *options)
{
    struct pair_options half = *options;
    weir_promise *done;
    struct pair pair;

    half.server = half.client = &half_closure;
    pair_open_connected(&pair, &half);
    pair_send(&pair.client, "before", NULL);
    done = pair_promise(&pair, "shut");
    weir_channel_shutdown_output(pair.client.channel, done);
    pair_run(&pair);
    assert_int_equal(diary_count(&pair.diary, "shut=ok"), 1);
    assert_int_equal(diary_count(&pair.diary, "server.read(before)"), 1);
    assert_int_equal(diary_count(&pair.diary, "server.input-closed"), 1);
    assert_int_equal(diary_count(&pair.diary, "server.input-drained"), 1);
    assert_int_equal(diary_count(&pair.diary, "client.output-closed"), 1);
    diary_clear(&pair.diary);
    pair_send(&pair.server, "after", "w");
    pair_send(&pair.client, "more", "more");
    pair_run(&pair);
    assert_int_equal(diary_count(&pair.diary, "client.read(after)"), 1);
    assert_int_equal(diary_count(&pair.diary, "w=ok"), 1);
    assert_int_equal(diary_count(&pair.diary, "more=WEIR_ECLOSED"), 1);
    assert_true(weir_channel_is_active(pair.client.channel));
    weir_promise_release(done);
    pair_close(&pair);
}

TEST(inproc, can_still_read_when_its_output_is_shut)
{
    for_both(shut_output);
}

TEST(inproc, closes_at_the_end_of_the_stream_without_half_closure)
{
    struct pair pair;

    pair_open_connected(&pair, NULL);
    weir_channel_shutdown_output(pair.client.channel, NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "client.output-closed server.inactive client.inactive");
    pair_close(&pair);
}

/* D 88 */
TEST(inproc, cannot_be_shut_when_it_is_closed)
{
    weir_promise *done;
    struct pair pair;

    pair_open_connected(&pair, NULL);
    pair_close_end(&pair.client);
    diary_clear(&pair.diary);
    done = pair_promise(&pair, "shut");
    weir_channel_shutdown_output(pair.client.channel, done);
    pair_run(&pair);
    assert_diary(&pair.diary, "shut=WEIR_ECLOSED");
    weir_promise_release(done);
    pair_close(&pair);
}

/* As a socket that has been shut: the writer does not hear of it. */
TEST(inproc, throws_away_what_comes_when_its_input_is_shut)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 1),
                   .client = &half_closure});
    pair_send(&pair.client, "before", "before");
    pair_send(&pair.client, "waits", "waits");
    weir_channel_shutdown_input(pair.server.channel, NULL);
    pair_send(&pair.client, "after", "after");
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_diary(&pair.diary,
                 "before=ok server.input-closed server.input-drained waits=ok after=ok");
    pair_send(&pair.server, "back", NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "client.read(back)");
    pair_close(&pair);
}

/* With half closure it is the write that finds out, as with a socket. */
TEST(inproc, ends_by_a_write_when_its_peer_has_gone_and_all_is_read)
{
    struct pair pair;

    pair_open_connected(&pair, &(const struct pair_options){.server = &half_closure});
    pair_close_end(&pair.client);
    assert_diary(&pair.diary, "client.inactive server.input-closed server.input-drained");
    pair_send(&pair.server, "x", "w");
    pair_run(&pair);
    assert_diary(&pair.diary, "w=EPIPE server.inactive");
    pair_close(&pair);
}

/* ---- moving ---- */

static void deregister(struct pair_end *end)
{
    weir_channel_deregister(end->channel, NULL);
    pair_run(end->pair);
    assert_false(weir_channel_is_registered(end->channel));
}

static void register_on(struct pair_end *end, weir_executor *executor)
{
    weir_channel_register(end->channel, executor, NULL);
    pair_run(end->pair);
}

/* D 78, D 23 */
TEST(inproc, can_move_to_another_executor_and_loses_nothing)
{
    struct pair pair;

    pair_open_connected(&pair, &apart);
    deregister(&pair.server);
    pair_send(&pair.client, "meanwhile", NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "");
    register_on(&pair.server, pair.near.executor);
    assert_diary(&pair.diary, "server.read(meanwhile)");
    pair_send(&pair.client, "now", NULL);
    assert_diary(&pair.diary, "server.read(now)");
    pair_send(&pair.server, "back", NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "client.read(back)");
    pair_close(&pair);
}

/* What waited for room goes on, whether the room came while it had no executor or later. */
static void move_writer(bool early)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .apart = true,
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 1)});
    pair_send(&pair.client, "first", NULL);
    pair_send(&pair.client, "second", NULL);
    deregister(&pair.client);
    if (early)
        weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    register_on(&pair.client, pair.far.executor);
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.read(first) server.read(second)");
    pair_close(&pair);
}

TEST(inproc, goes_on_writing_after_a_move)
{
    move_writer(true);
    move_writer(false);
}

TEST(inproc, hears_after_a_move_that_its_peer_has_closed)
{
    struct pair pair;

    pair_open_connected(&pair, &apart);
    deregister(&pair.server);
    pair_send(&pair.client, "last", NULL);
    pair_close_end(&pair.client);
    assert_diary(&pair.diary, "client.inactive");
    register_on(&pair.server, pair.far.executor);
    assert_diary(&pair.diary, "server.read(last) server.inactive");
    pair_close(&pair);
}

/* Nobody holds it any more, and no executor has it. */
TEST(inproc, closes_if_it_is_released_without_an_executor)
{
    struct pair pair;

    pair_open_connected(&pair, &apart);
    deregister(&pair.server);
    weir_channel_release(pair.server.channel);
    pair.server.channel = NULL;
    pair_run(&pair);
    assert_diary(&pair.diary, "server.inactive client.inactive");
    pair_close(&pair);
}

TEST(inproc, listener_can_move_while_others_call)
{
    struct pair pair;

    pair_open(&pair, &apart);
    weir_channel_deregister(pair.listener, NULL);
    pair_run(&pair);
    pair_call(&pair);
    pair_run(&pair);
    assert_diary(&pair.diary, "");
    weir_channel_register(pair.listener, pair.near.executor, NULL);
    pair_run(&pair);
    assert_diary(&pair.diary, "server.active connect=ok client.active");
    pair_close(&pair);
}

/* ---- executors that end ---- */

/* The peer's executor was given up with the channel on it; ours goes on. */
TEST(inproc, can_be_written_to_and_closed_though_its_executor_has_ended)
{
    struct pair pair;

    pair_open_connected(&pair, &apart);
    assert_int_equal(weir_executor_shutdown(pair.far.executor, 0, 0), 0);
    (void)stepper_run(&pair.far);
    pair_send(&pair.client, "x", "w");
    pair_run(&pair);
    global_settle();
    pair_close_end(&pair.client);
    global_settle();
    assert_int_equal(diary_count(&pair.diary, "w="), 1);
    assert_int_equal(diary_count(&pair.diary, "client.inactive"), 1);
    weir_channel_abort(pair.server.channel, NULL);
    global_settle();
    assert_int_equal(weir_channel_await_closed(pair.server.channel, weir_seconds(10)), 0);
    pair_close(&pair);
}
