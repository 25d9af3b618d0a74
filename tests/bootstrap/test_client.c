/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients: connecting to one address or to the first of several, and giving up.
 */
#include <weir/client.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/clock.h>
#include <weir/error.h>
#include <weir/pipeline.h>

#include "os/clock.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/channel/pointer_state.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/thread_factory.h"
#include "support/loop/host.h"
#include "support/memory.h"

static int64_t since(int64_t start_ns)
{
    return weir__monotonic_now() - start_ns;
}

/* ---- a client, and its events ---- */

struct caller {
    struct call_counter inits; /* attempts */
    struct call_counter active;
    struct call_counter inactive;
    struct call_counter bytes;
    struct call_counter told; /* that the promise is complete, */
    _Atomic bool told_first;  /* before the channel became active */
    int init_err;
    void *attribute; /* of the last attempt */
};

static const weir_attribute key = {.name = "key"};

static struct caller *caller_of(weir_ctx *ctx)
{
    return *(struct caller **)weir_ctx_state(ctx);
}

static void on_active(weir_ctx *ctx)
{
    struct caller *caller = caller_of(ctx);

    atomic_store(&caller->told_first, caller->told.calls == 1);
    call_counter_add(&caller->active);
}

static void on_inactive(weir_ctx *ctx)
{
    call_counter_add(&caller_of(ctx)->inactive);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    for (size_t i = 0; i < weir_buf_readable(buf); i++)
        call_counter_add(&caller_of(ctx)->bytes);
    weir_msg_release(msg);
}

static const weir_handler listener = {
    .name = "listener",
    .state_size = sizeof(struct caller *),
    .init = pointer_keep,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
};

static int init_call(weir_channel *channel, void *arg)
{
    struct caller *caller = arg;
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &listener, caller);

    caller->attribute = weir_attribute_get(channel, &key);
    call_counter_add(&caller->inits);
    return err < 0 ? err : caller->init_err;
}

static void on_connected(weir_promise *promise, void *arg)
{
    (void)promise;
    call_counter_add(&((struct caller *)arg)->told);
}

#define CALL(call) .init = init_call, .user_data = (call)

static weir_promise *call(struct caller *caller, const weir_client_options *options)
{
    weir_promise *connecting = NULL;

    assert_int_equal(weir_client_connect(options, &connecting), 0);
    assert_int_equal(weir_promise_add_listener(connecting, on_connected, caller), 0);
    return connecting;
}

/* Waits for the listener, which has the caller. */
static void forget(weir_promise *connecting, struct caller *caller)
{
    assert_true(call_counter_await(&caller->told, 1));
    weir_promise_release(connecting);
}

static weir_address address_of(const weir_server *server)
{
    weir_address address;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    return address;
}

static void hang_up(weir_channel *channel, struct caller *caller)
{
    weir_channel_close(channel, NULL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(&caller->inactive, 1));
    weir_channel_release(channel);
}

static char *text_of(const weir_address *address, char buffer[WEIR_ADDRESS_TEXT_SIZE])
{
    return weir_address_format(address, buffer, WEIR_ADDRESS_TEXT_SIZE);
}

/* ---- one address ---- */

TEST_EACH_LOOP(client, connects_and_talks)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_channel *channel = NULL;
    weir_address address = address_of(server), remote;
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_buf *buf;

    assert_int_equal(weir_client_connect_sync(
                         WEIR_CLIENT_OPTIONS(.group = host->group,
                                             .address = text_of(&address, text), CALL(&caller)),
                         &channel),
                     0);
    assert_true(weir_channel_is_active(channel));
    assert_int_equal(weir_channel_remote_address(channel, &remote), 0);
    assert_true(weir_address_equal(&remote, &address));
    assert_int_equal(weir_buf_create_from("hello", 5, &buf), 0);
    weir_channel_write_and_flush(channel, weir_buf_msg(buf), NULL);
    assert_true(call_counter_await(&caller.bytes, 5));
    hang_up(channel, &caller);
    echo_service_stop(server);
}

TEST_EACH_LOOP(client, completes_before_the_channel_is_active)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    struct gate gate = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_address address = address_of(server);
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_promise *connecting;

    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0); /* until it has a listener */
    connecting = call(&caller, WEIR_CLIENT_OPTIONS(.group = host->group, CALL(&caller),
                                                   .address = text_of(&address, text)));
    gate_open(&gate);
    assert_true(call_counter_await(&caller.active, 1));
    assert_true(caller.told_first);
    assert_int_equal(weir_promise_result(connecting), 0);
    hang_up(weir_channel_retain(weir_promise_value(connecting)), &caller);
    forget(connecting, &caller);
    echo_service_stop(server);
}

TEST_EACH_LOOP(client, fails_without_a_listener)
{
    struct caller caller = {0};
    weir_address nobody = unused_address();
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_promise *connecting =
        call(&caller, WEIR_CLIENT_OPTIONS(.group = host->group, .address = text_of(&nobody, text),
                                          CALL(&caller)));

    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), -ECONNREFUSED);
    assert_non_null(strstr(weir_promise_detail(connecting), text));
    assert_null(weir_promise_value(connecting));
    assert_int_equal(caller.inits.calls, 1);
    assert_int_equal(caller.active.calls, 0);
    forget(connecting, &caller);
}

TEST_EACH_LOOP(client, fails_with_the_error_of_its_initializer)
{
    struct echo_service service = {0};
    struct caller caller = {.init_err = -EXDEV};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_channel *channel = NULL;
    weir_address address = address_of(server);
    char text[WEIR_ADDRESS_TEXT_SIZE];

    log_capture_start();
    assert_int_equal(weir_client_connect_sync(
                         WEIR_CLIENT_OPTIONS(.group = host->group,
                                             .address = text_of(&address, text), CALL(&caller)),
                         &channel),
                     -EXDEV);
    assert_null(channel);
    assert_int_equal(caller.active.calls, 0);
    echo_service_stop(server);
}

TEST_EACH_LOOP(client, gives_its_channel_attributes_options_and_a_local_address)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    const weir_attribute_value value = {&key, &caller};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_channel *channel = NULL;
    weir_address address = address_of(server), local = unused_address(), found;
    weir_channel_options options;
    char text[WEIR_ADDRESS_TEXT_SIZE], local_text[WEIR_ADDRESS_TEXT_SIZE];

    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = host->group, .address = text_of(&address, text),
                                .local_address = text_of(&local, local_text), .attributes = &value,
                                .attribute_count = 1,
                                .options = WEIR_CHANNEL_OPTIONS(.high_mark = 1234, .low_mark = 1),
                                CALL(&caller)),
            &channel),
        0);
    assert_ptr_equal(caller.attribute, &caller);
    assert_int_equal(weir_channel_local_address(channel, &found), 0);
    assert_true(weir_address_equal(&found, &local));
    weir_channel_get_options(channel, &options);
    assert_int_equal(options.high_mark, 1234);
    hang_up(channel, &caller);
    echo_service_stop(server);
}

TEST_EACH_LOOP(client, rejects_invalid_options)
{
    weir_client_options options;
    weir_promise *none = NULL;
    const weir_address address = unused_address();

#define REFUSED(...) \
    weir_client_connect(WEIR_CLIENT_OPTIONS(.group = host->group, __VA_ARGS__), &none)
    log_capture_start();
    options = *WEIR_CLIENT_OPTIONS();
    assert_int_equal(weir_client_connect(&options, &none), -EINVAL);
    assert_true(log_capture_last_contains("exactly one of .group and .loop"));
    assert_int_equal(REFUSED(.loop = host->loop, .address = "127.0.0.1:1"), -EINVAL);
    assert_int_equal(REFUSED(.address = NULL), -EINVAL);
    assert_int_equal(REFUSED(.address = "localhost"), -EINVAL);
    assert_true(log_capture_last_contains("not an address"));
    assert_int_equal(REFUSED(.address = "127.0.0.256:8007"), -EINVAL);
    assert_int_equal(REFUSED(.address = "x:1", .local_address = "here"), -EINVAL);
    assert_int_equal(REFUSED(.address = "x:1", .options = WEIR_CHANNEL_OPTIONS(.low_mark = -1)),
                     -EINVAL);
    assert_int_equal(REFUSED(.address = "inproc:x", .kind = WEIR_KIND_SEQPACKET), -EAFNOSUPPORT);
    assert_int_equal(REFUSED(.address = "127.0.0.1:1", .local_address = "here"), -EINVAL);
    assert_int_equal(REFUSED(.address = "127.0.0.1:1", .attempt_delay_ns = -2), -EINVAL);
    assert_int_equal(REFUSED(.address = "127.0.0.1:1", .addresses = &address, .address_count = 1),
                     -EINVAL);
    assert_int_equal(
        REFUSED(.address = "127.0.0.1:1", .options = WEIR_CHANNEL_OPTIONS(.low_mark = -1)),
        -EINVAL);
    assert_null(none);
}

TEST_EACH_LOOP(client, connects_on_the_given_loop)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_channel *channel = NULL;
    weir_group *loops = NULL;
    weir_address address = address_of(server);
    char text[WEIR_ADDRESS_TEXT_SIZE];

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 3), &loops), 0);
    assert_int_equal(weir_client_connect_sync(
                         WEIR_CLIENT_OPTIONS(.loop = weir_group_at(loops, 2),
                                             .address = text_of(&address, text), CALL(&caller)),
                         &channel),
                     0);
    assert_ptr_equal(weir_channel_executor(channel), weir_group_at(loops, 2));
    hang_up(channel, &caller);
    echo_service_stop(server);
    end_group(loops);
}

/* ---- time ---- */

TEST_EACH_LOOP(client, times_out)
{
    struct silent_address silent;
    struct caller caller = {0};
    weir_channel *channel = NULL;
    char text[WEIR_ADDRESS_TEXT_SIZE];
    int64_t start_ns = weir__monotonic_now();

    silent_address_init(&silent);
    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = host->group, .address = text_of(&silent.address, text),
                                .options = WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_ms(200)),
                                CALL(&caller)),
            &channel),
        -ETIMEDOUT);
    assert_true(since(start_ns) >= weir_ms(200));
    assert_true(since(start_ns) < weir_seconds(3));
    assert_null(channel);
    silent_address_deinit(&silent);
}

TEST_EACH_LOOP(client, stops_when_cancelled)
{
    struct silent_address silent;
    struct caller caller = {0};
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_promise *connecting;
    int64_t start_ns;

    silent_address_init(&silent);
    connecting = call(&caller, WEIR_CLIENT_OPTIONS(.group = host->group, CALL(&caller),
                                                   .address = text_of(&silent.address, text)));
    assert_true(call_counter_await(&caller.inits, 1));
    start_ns = weir__monotonic_now();
    assert_int_equal(weir_promise_cancel(connecting), 0);
    assert_true(weir_promise_is_cancelled(connecting));
    forget(connecting, &caller);
    host_end(host); /* which waits for the channel's end */
    assert_true(since(start_ns) < TEST_TIMEOUT_NS / 2);
    assert_int_equal(caller.active.calls, 0);
    silent_address_deinit(&silent);
}

/* A handler that cancels the client's promise just before it passes a connection on. */
struct canceller {
    weir_promise *_Atomic connecting;
    weir_promise *done; /* the client's, of this attempt */
};

static void cancel_and_pass_on(weir_promise *connected, void *arg)
{
    struct canceller *canceller = arg;

    assert_int_equal(weir_promise_result(connected), 0);
    assert_int_equal(weir_promise_cancel(canceller->connecting), 0);
    (void)weir_promise_succeed(canceller->done, NULL);
    weir_promise_release(canceller->done);
}

static void on_connect(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                       weir_promise *done)
{
    struct canceller *canceller = *(struct canceller **)weir_ctx_state(ctx);
    weir_promise *connected = NULL;

    canceller->done = weir_promise_retain(done);
    assert_int_equal(weir_promise_create(weir_ctx_executor(ctx), &connected), 0);
    assert_int_equal(weir_promise_add_listener(connected, cancel_and_pass_on, canceller), 0);
    weir_connect(ctx, remote, local, connected);
    weir_promise_release(connected);
}

static int init_canceller(weir_channel *channel, void *canceller)
{
    static const weir_handler handler = {
        .name = "canceller",
        .state_size = sizeof(struct canceller *),
        .init = pointer_keep,
        .connect = on_connect,
    };

    return weir_pipeline_add_last(weir_channel_pipeline(channel), &handler, canceller);
}

TEST_EACH_LOOP(client, closes_a_connection_that_is_cancelled_as_it_is_made)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    struct canceller canceller = {.done = NULL};
    struct gate gate = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_address address = address_of(server);
    char text[WEIR_ADDRESS_TEXT_SIZE];

    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    canceller.connecting =
        call(&caller, WEIR_CLIENT_OPTIONS(.group = host->group, .address = text_of(&address, text),
                                          .init = init_canceller, .user_data = &canceller));
    gate_open(&gate);
    assert_true(call_counter_await(&service.opened, 1));
    assert_true(call_counter_await(&service.closed, 1));
    assert_true(weir_promise_is_cancelled(canceller.connecting));
    forget(canceller.connecting, &caller);
    echo_service_stop(server);
}

TEST_EACH_LOOP(client, cancelled_before_it_begins_does_not_begin)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    struct gate gate = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_address address = address_of(server);
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_promise *connecting;

    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    connecting = call(&caller, WEIR_CLIENT_OPTIONS(.group = host->group, CALL(&caller),
                                                   .address = text_of(&address, text)));
    assert_int_equal(weir_promise_cancel(connecting), 0);
    gate_open(&gate);
    forget(connecting, &caller);
    echo_service_stop(server);
    assert_int_equal(caller.inits.calls, 0);
}

TEST_EACH_LOOP(client, fails_on_a_group_that_has_ended)
{
    weir_channel *channel = NULL;

    host_end(host);
    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = host->group, .address = "127.0.0.1:1"), &channel),
        WEIR_EREJECTED);
    assert_null(channel);
}

TEST_EACH_LOOP(client, reports_why_its_loop_has_no_thread)
{
    const int reasons[] = {-EAGAIN, -ENOMEM};
    weir_channel *channel = NULL;
    weir_promise *connecting;
    struct thread_factory_fixture fixture;
    weir_group *group;

    log_capture_start();
    thread_factory_open(&fixture);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        const weir_client_options *options;

        fixture.answer = reasons[i];
        assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = host->backend->io,
                                                              .thread_factory = &fixture.factory),
                                           &group),
                         0);
        options = WEIR_CLIENT_OPTIONS(.group = group, .address = "127.0.0.1:1");
        assert_int_equal(weir_client_connect_sync(options, &channel), reasons[i]);
        assert_int_equal(weir_client_connect(options, &connecting), 0);
        assert_int_equal(weir_promise_result(connecting), reasons[i]);
        assert_non_null(strstr(weir_promise_detail(connecting), "thread"));
        assert_non_null(strstr(weir_promise_detail(connecting), weir_error_text(reasons[i])));
        weir_promise_release(connecting);
        end_group(group);
    }
    thread_factory_close(&fixture);
    assert_null(channel);
}

TEST_EACH_LOOP(client, fails_when_its_loop_shuts_down)
{
    struct silent_address silent;
    struct caller caller = {0};
    weir_promise *connecting;
    weir_address addresses[2];

    silent_address_init(&silent);
    addresses[0] = addresses[1] = silent.address;
    connecting = call(&caller, WEIR_CLIENT_OPTIONS(.group = host->group, .addresses = addresses,
                                                   .address_count = 2, CALL(&caller)));
    assert_true(call_counter_await(&caller.inits, 1));
    host_end(host);
    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), WEIR_ECLOSED);
    forget(connecting, &caller);
    silent_address_deinit(&silent);
}

/* ---- several addresses ---- */

TEST_EACH_LOOP(client, tries_the_next_address_when_one_does_not_answer)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    struct silent_address silent;
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_channel *channel = NULL;
    weir_address addresses[2], remote;
    int64_t start_ns = weir__monotonic_now();

    silent_address_init(&silent);
    addresses[0] = silent.address;
    addresses[1] = address_of(server);
    assert_int_equal(
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = host->group, .addresses = addresses,
                                                     .address_count = 2, CALL(&caller)),
                                 &channel),
        0);
    assert_true(since(start_ns) >= weir_ms(250));
    assert_int_equal(weir_channel_remote_address(channel, &remote), 0);
    assert_true(weir_address_equal(&remote, &addresses[1]));
    assert_int_equal(caller.inits.calls, 2);
    hang_up(channel, &caller);
    echo_service_stop(server); /* which waits for the one that was aborted */
    assert_int_equal(caller.active.calls, 1);
    silent_address_deinit(&silent);
}

/* A loop of this backend on a clock of its own. */
static void open_stepped(struct host *stepped, const struct host *host,
                         weir_manual_clock **ret_clock)
{
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), ret_clock), 0);
    stepped->backend = host->backend;
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = host->backend->io,
                                             .clock = weir_manual_clock_clock(*ret_clock)),
                          &stepped->group),
        0);
    stepped->loop = weir_group_at(stepped->group, 0);
}

/* Lets just less than a delay pass, in which nothing begins, and then the rest of it. */
static void pass_delay(const struct host *stepped, weir_manual_clock *clock, struct caller *caller,
                       unsigned attempts)
{
    struct host host = *stepped;

    assert_true(call_counter_await(&caller->inits, attempts));
    host_turn(&host, 2);
    assert_int_equal(weir_manual_clock_advance(clock, weir_ms(240)), 0);
    host_turn(&host, 2);
    assert_int_equal(caller->inits.calls, attempts);
    assert_int_equal(weir_manual_clock_advance(clock, weir_ms(20)), 0);
}

/* Each attempt waits for its own delay after the one before. */
TEST_EACH_LOOP(client, waits_a_delay_before_each_of_three_addresses)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    struct silent_address silent;
    struct host stepped;
    weir_manual_clock *clock;
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_address addresses[3], remote;
    weir_promise *connecting;
    weir_channel *channel;

    silent_address_init(&silent);
    addresses[0] = addresses[1] = silent.address;
    addresses[2] = address_of(server);
    open_stepped(&stepped, host, &clock);
    connecting = call(&caller, WEIR_CLIENT_OPTIONS(.group = stepped.group, .addresses = addresses,
                                                   .address_count = 3, CALL(&caller)));
    pass_delay(&stepped, clock, &caller, 1);
    pass_delay(&stepped, clock, &caller, 2);
    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), 0);
    channel = weir_channel_retain(weir_promise_value(connecting));
    assert_int_equal(weir_channel_remote_address(channel, &remote), 0);
    assert_true(weir_address_equal(&remote, &addresses[2]));
    assert_int_equal(caller.inits.calls, 3);
    weir_promise_release(connecting);
    hang_up(channel, &caller);
    echo_service_stop(server);
    end_group(stepped.group);
    weir_manual_clock_release(clock);
    silent_address_deinit(&silent);
}

TEST_EACH_LOOP(client, tries_the_next_address_at_once_when_one_refuses)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_channel *channel = NULL;
    weir_address addresses[3] = {unused_address(), unused_address(), address_of(server)};

    assert_int_equal(
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = host->group, .addresses = addresses,
                                                     .address_count = 3,
                                                     .attempt_delay_ns = WEIR_OFF, CALL(&caller)),
                                 &channel),
        0);
    assert_int_equal(caller.inits.calls, 3);
    hang_up(channel, &caller);
    echo_service_stop(server);
}

/* A refusal is no reason to wait for another address that does not answer. */
TEST_EACH_LOOP(client, tries_the_next_address_at_once_while_another_is_silent)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    struct silent_address silent;
    struct host stepped;
    weir_manual_clock *clock;
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_address addresses[3];
    weir_promise *connecting;
    weir_channel *channel;

    silent_address_init(&silent);
    addresses[0] = silent.address;
    addresses[1] = unused_address();
    addresses[2] = address_of(server);
    open_stepped(&stepped, host, &clock);
    connecting = call(&caller, WEIR_CLIENT_OPTIONS(.group = stepped.group, .addresses = addresses,
                                                   .address_count = 3, CALL(&caller)));
    pass_delay(&stepped, clock, &caller, 1);
    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), 0); /* in no time */
    assert_int_equal(caller.inits.calls, 3);
    channel = weir_channel_retain(weir_promise_value(connecting));
    weir_promise_release(connecting);
    hang_up(channel, &caller);
    echo_service_stop(server);
    end_group(stepped.group);
    weir_manual_clock_release(clock);
    silent_address_deinit(&silent);
}

/* The refusal of the last address leaves those before it their time. */
TEST_EACH_LOOP(client, waits_for_a_silent_address_when_the_last_one_refuses)
{
    struct caller caller = {0};
    struct silent_address silent;
    struct host stepped;
    weir_manual_clock *clock;
    weir_address addresses[2];
    weir_promise *connecting;

    silent_address_init(&silent);
    addresses[0] = silent.address;
    addresses[1] = unused_address();
    open_stepped(&stepped, host, &clock);
    connecting = call(&caller, WEIR_CLIENT_OPTIONS(.group = stepped.group, .addresses = addresses,
                                                   .address_count = 2, CALL(&caller)));
    pass_delay(&stepped, clock, &caller, 1);
    assert_true(call_counter_await(&caller.inits, 2));
    host_turn(&stepped, 2);
    assert_false(weir_promise_is_done(connecting));
    assert_int_equal(weir_manual_clock_advance(clock, weir_seconds(31)), 0);
    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), -ETIMEDOUT);
    forget(connecting, &caller);
    end_group(stepped.group);
    weir_manual_clock_release(clock);
    silent_address_deinit(&silent);
}

TEST_EACH_LOOP(client, connects_only_once)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_channel *channel = NULL;
    weir_address addresses[4];

    for (int i = 0; i < 4; i++)
        addresses[i] = address_of(server);
    assert_int_equal(
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = host->group, .addresses = addresses,
                                                     .address_count = 4, CALL(&caller)),
                                 &channel),
        0);
    hang_up(channel, &caller);
    echo_service_stop(server);
    assert_int_equal(caller.inits.calls, 1);
    assert_int_equal(caller.active.calls, 1);
}

TEST_EACH_LOOP(client, lists_every_address_when_all_fail)
{
    struct caller caller = {0};
    weir_address addresses[2] = {unused_address(), unused_address()};
    char text[2][WEIR_ADDRESS_TEXT_SIZE];
    weir_promise *connecting =
        call(&caller, WEIR_CLIENT_OPTIONS(.group = host->group, .addresses = addresses,
                                          .address_count = 2, CALL(&caller)));

    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), -ECONNREFUSED);
    for (int i = 0; i < 2; i++)
        assert_non_null(strstr(weir_promise_detail(connecting), text_of(&addresses[i], text[i])));
    assert_int_equal(caller.inits.calls, 2);
    forget(connecting, &caller);
}

/* RFC 8305, 4: nobody listens at any of them, and the sentence says in which order they were tried.
 */
TEST_EACH_LOOP(client, lets_the_families_take_turns)
{
    static const char *const given[] = {"[::1]:1", "[::1]:2", "[::1]:3", "127.0.0.1:4",
                                        "127.0.0.1:5"};
    static const char *const tried[] = {"[::1]:1", "127.0.0.1:4", "[::1]:2", "127.0.0.1:5",
                                        "[::1]:3"};
    struct caller caller = {0};
    weir_address addresses[5];
    weir_promise *connecting;
    const char *detail, *place = NULL, *next;

    for (int i = 0; i < 5; i++)
        assert_int_equal(weir_address_parse(given[i], &addresses[i]), 0);
    connecting = call(&caller, WEIR_CLIENT_OPTIONS(.group = host->group, .addresses = addresses,
                                                   .address_count = 5, CALL(&caller)));
    assert_int_equal(weir_promise_await(connecting, TEST_TIMEOUT_NS), 0);
    assert_true(weir_promise_result(connecting) < 0);
    detail = weir_promise_detail(connecting);
    for (int i = 0; i < 5; i++, place = next) {
        next = strstr(detail, tried[i]);
        assert_non_null(next);
        assert_true(place == NULL || next > place);
    }
    forget(connecting, &caller);
}

/* ---- loops that talk to each other ---- */

struct errand {
    struct host *host;
    weir_channel *channel;
    weir_promise *connecting;
    const char *address;
    int sync_err;
    int err;
};

static void connect_there(void *arg)
{
    struct errand *errand = arg;
    const weir_client_options *options =
        WEIR_CLIENT_OPTIONS(.group = errand->host->group, .address = errand->address);

    errand->sync_err = weir_client_connect_sync(options, &errand->channel);
    errand->err = weir_client_connect(options, &errand->connecting);
}

TEST_EACH_LOOP(client, connects_from_loops_to_each_other_without_waiting)
{
    struct echo_service services[2] = {0};
    struct host other;
    struct host *hosts[2] = {host, &other};
    struct errand errands[2];
    char text[2][WEIR_ADDRESS_TEXT_SIZE];
    weir_server *servers[2];

    host_open(&other, BACKEND_EPOLL);
    for (int i = 0; i < 2; i++)
        servers[i] = echo_service_start(&services[i], WEIR_SERVER_OPTIONS(.boss = hosts[i]->group));
    for (int i = 0; i < 2; i++) {
        weir_address address = address_of(servers[!i]);

        errands[i] = (struct errand){.host = hosts[i], .address = text_of(&address, text[i])};
        run_on_executor(hosts[!i]->loop, connect_there, &errands[i]);
        assert_int_equal(errands[i].sync_err, -EDEADLK);
        assert_int_equal(errands[i].err, 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_promise_sync(errands[i].connecting, TEST_TIMEOUT_NS), 0);
        assert_true(call_counter_await(&services[!i].opened, 1));
        weir_channel_close(weir_promise_value(errands[i].connecting), NULL);
        weir_promise_release(errands[i].connecting);
    }
    for (int i = 0; i < 2; i++)
        assert_true(call_counter_await(&services[i].closed, 1));
    echo_service_stop(servers[1]);
    weir_group_release(other.group);
    echo_service_stop(servers[0]);
}

/* ---- memory ---- */

TEST_EACH_LOOP(client, survives_every_failed_allocation)
{
    struct echo_service service = {0};
    struct caller caller = {0};
    const weir_attribute_value value = {&key, &caller};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_address addresses[2] = {unused_address(), address_of(server)};
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed; n++) {
        weir_channel *channel = NULL;
        int err;

        test_memory_fail_at(n);
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = host->group, .addresses = addresses, .address_count = 2,
                                .attributes = &value, .attribute_count = 1, CALL(&caller)),
            &channel);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_true(err == 0 || failed);
        if (err < 0)
            continue;
        weir_channel_close(channel, NULL);
        assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
        weir_channel_release(channel);
    }
    echo_service_stop(server);
    assert_int_equal(caller.active.calls, caller.inactive.calls);
}
