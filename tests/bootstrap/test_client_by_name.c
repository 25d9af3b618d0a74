/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that are given a name: it is looked up, then all its addresses are tried; and at every
 * stage of that somebody may give up.
 */
#include <weir/client.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/pipeline.h>

#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/promises.h"
#include "support/loop/host.h"
#include "support/memory.h"
#include "support/resolver/fake_dns.h"

/* "NAME:port", with the port of the server, or of nobody if there is none. */
static const char *at(const char *name, weir_server *server, char *buffer, size_t size)
{
    weir_address address = unused_address();

    if (server != NULL)
        assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    (void)snprintf(buffer, size, "%s:%u", name, (unsigned)weir_address_port(&address));
    return buffer;
}

static weir_promise *call(struct host *host, weir_resolver *resolver, const char *address)
{
    weir_promise *connecting = NULL;

    assert_int_equal(
        weir_client_connect(
            WEIR_CLIENT_OPTIONS(.group = host->group, .address = address, .resolver = resolver),
            &connecting),
        0);
    return connecting;
}

static void hang_up(weir_channel *channel)
{
    weir_channel_close(channel, NULL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
}

TEST_EACH_LOOP(client_by_name, connects_to_the_address_that_answers)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_channel *channel = NULL;
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_address address, remote;
    char text[64];

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_int_equal(
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = host->group, .resolver = resolver,
                                                     .address = at("here.test", server, text, 64)),
                                 &channel),
        0);
    assert_int_equal(weir_channel_remote_address(channel, &remote), 0);
    assert_true(weir_address_equal(&remote, &address));
    hang_up(channel);
    echo_service_stop(server);
    fake_dns_close(resolver);
}

TEST_EACH_LOOP(client_by_name, has_a_resolver_without_asking_for_one)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_channel *channel = NULL;
    char text[64];

    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = host->group, .address = at("localhost", server, text, 64)),
            &channel),
        0);
    hang_up(channel);
    echo_service_stop(server);
}

static int put_it_down(weir_channel *channel, void *user_data)
{
    weir_channel_options options;

    weir_channel_get_options(channel, &options);
    *(int64_t *)user_data = options.high_mark;
    return 0;
}

/* The caller's options are gone when the name is known. */
TEST_EACH_LOOP(client_by_name, remembers_its_options)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_resolver *resolver = fake_dns_open(NULL);
    char text[64], local[WEIR_ADDRESS_TEXT_SIZE] = "127.0.0.1:0";
    int64_t high_mark = 0;
    weir_socket_option socket_option = {.level = SOL_SOCKET, .name = SO_KEEPALIVE, .value = 1};
    weir_channel_options options;
    weir_promise *connecting = NULL;
    weir_channel *channel;
    int value = 0;
    size_t length = sizeof(value);

    options = *WEIR_CHANNEL_OPTIONS();
    options.high_mark = 4321;
    options.low_mark = 1;
    options.socket_options = &socket_option;
    options.socket_option_count = 1;
    assert_int_equal(
        weir_client_connect(WEIR_CLIENT_OPTIONS(.group = host->group, .resolver = resolver,
                                                .init = put_it_down,
                                                .address = at("gate-here.test", server, text, 64),
                                                .local_address = local, .user_data = &high_mark,
                                                .options = &options),
                            &connecting),
        0);
    memset(text, 'x', sizeof(text) - 1);
    memset(local, 'x', sizeof(local) - 1);
    memset(&options, 0xff, sizeof(options));
    memset(&socket_option, 0xff, sizeof(socket_option));
    gate_open(&fake_dns.gate);
    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), 0);
    assert_int_equal(high_mark, 4321);
    channel = weir_channel_retain(weir_promise_value(connecting));
    weir_promise_release(connecting);
    assert_int_equal(
        weir_channel_get_socket_option(channel, SOL_SOCKET, SO_KEEPALIVE, &value, &length), 0);
    assert_int_equal(value, 1);
    hang_up(channel);
    echo_service_stop(server);
    fake_dns_close(resolver);
}

TEST_EACH_LOOP(client_by_name, fails_with_a_sentence_that_names_the_host)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *connecting = call(host, resolver, "none.test:80");

    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), WEIR_ENOHOST);
    assert_string_equal(weir_promise_detail(connecting),
                        "none.test: unknown host, or host without addresses");
    weir_promise_release(connecting);
    connecting = call(host, resolver, "later.test:80");
    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), WEIR_ELOOKUP);
    weir_promise_release(connecting);
    fake_dns_close(resolver);
}

static void say_no(void *user_data, const char *host, uint16_t port, weir_promise *promise)
{
    (void)user_data;
    (void)host;
    (void)port;
    (void)weir_promise_fail(promise, -EACCES, "not on a Sunday");
}

TEST_EACH_LOOP(client_by_name, reports_the_error_of_a_custom_resolver)
{
    static const weir_resolver_type type = {.name = "no", .resolve = say_no};
    weir_resolver *resolver = NULL;
    weir_promise *connecting;

    assert_int_equal(weir_resolver_create(&type, NULL, &resolver), 0);
    connecting = call(host, resolver, "x.test:80");
    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), -EACCES);
    assert_string_equal(weir_promise_detail(connecting), "x.test: not on a Sunday");
    weir_promise_release(connecting);
    weir_resolver_release(resolver);
}

TEST_EACH_LOOP(client_by_name, lists_every_address_when_all_fail)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    char text[64];
    weir_promise *connecting = call(host, resolver, at("here.test", NULL, text, 64));

    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), -ECONNREFUSED);
    assert_non_null(strstr(weir_promise_detail(connecting), "127.0.0.9:"));
    assert_non_null(strstr(weir_promise_detail(connecting), "127.0.0.1:"));
    weir_promise_release(connecting);
    fake_dns_close(resolver);
}

static void note_thread(weir_promise *connecting, void *user_data)
{
    (void)connecting;
    atomic_store((_Atomic(weir_executor *) *)user_data, weir_executor_current());
}

TEST_EACH_LOOP(client_by_name, completes_on_the_channels_loop)
{
    struct echo_service service = {0};
    struct call_counter told = {0};
    _Atomic(weir_executor *) where = NULL;
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_resolver *resolver = fake_dns_open(NULL);
    char text[64];
    weir_promise *connecting = call(host, resolver, at("gate-here.test", server, text, 64));

    assert_int_equal(weir_promise_add_listener(connecting, note_thread, &where), 0);
    assert_int_equal(weir_promise_add_listener(connecting, count_completion, &told), 0);
    gate_open(&fake_dns.gate);
    assert_true(call_counter_await(&told, 1));
    assert_ptr_equal(where, host->loop);
    hang_up(weir_channel_retain(weir_promise_value(connecting)));
    weir_promise_release(connecting);
    echo_service_stop(server);
    fake_dns_close(resolver);
}

/* ---- giving up ---- */

TEST_EACH_LOOP(client_by_name, cancelled_while_it_is_looked_up_does_not_connect)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_resolver *resolver = fake_dns_open(NULL);
    char text[64];
    weir_promise *connecting = call(host, resolver, at("gate-here.test", server, text, 64));

    assert_true(gate_await_arrivals(&fake_dns.gate, 1));
    assert_int_equal(weir_promise_cancel(connecting), 0);
    gate_open(&fake_dns.gate);
    fake_dns_await_pending(resolver, 0);
    weir_promise_release(connecting);
    echo_service_stop(server);
    assert_int_equal(service.opened.calls, 0);
    fake_dns_close(resolver);
}

static void answer_silent_address(void *user_data, const char *host, uint16_t port,
                                  weir_promise *promise)
{
    const struct silent_address *silent = user_data;

    (void)host;
    (void)weir_resolver_answer(promise, &silent->address, 1, port);
}

static int count_init(weir_channel *channel, void *user_data)
{
    (void)channel;
    call_counter_add(user_data);
    return 0;
}

TEST_EACH_LOOP(client_by_name, cancelled_while_connecting_stops)
{
    static const weir_resolver_type type = {.name = "silent", .resolve = answer_silent_address};
    struct silent_address silent;
    struct call_counter inits = {0};
    weir_resolver *resolver = NULL;
    weir_promise *connecting = NULL;
    char text[64];

    silent_address_init(&silent);
    (void)snprintf(text, sizeof(text), "silent.test:%u",
                   (unsigned)weir_address_port(&silent.address));
    assert_int_equal(weir_resolver_create(&type, &silent, &resolver), 0);
    assert_int_equal(
        weir_client_connect(WEIR_CLIENT_OPTIONS(.group = host->group, .address = text,
                                                .resolver = resolver, .init = count_init,
                                                .user_data = &inits),
                            &connecting),
        0);
    assert_true(call_counter_await(&inits, 1));
    assert_int_equal(weir_promise_cancel(connecting), 0);
    weir_promise_release(connecting);
    host_end(host); /* which waits for the channel's end */
    weir_resolver_release(resolver);
    silent_address_deinit(&silent);
}

TEST_EACH_LOOP(client_by_name, connect_timeout_is_for_each_attempt)
{
    static const weir_resolver_type type = {.name = "silent", .resolve = answer_silent_address};
    struct silent_address silent;
    weir_resolver *resolver = NULL;
    weir_channel *channel = NULL;
    char text[64];

    silent_address_init(&silent);
    (void)snprintf(text, sizeof(text), "silent.test:%u",
                   (unsigned)weir_address_port(&silent.address));
    assert_int_equal(weir_resolver_create(&type, &silent, &resolver), 0);
    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = host->group, .address = text, .resolver = resolver,
                                .options = WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_ms(50))),
            &channel),
        -ETIMEDOUT);
    weir_resolver_release(resolver);
    silent_address_deinit(&silent);
}

/* The group has gone, and its memory with it, when the name is known. */
TEST_EACH_LOOP(client_by_name, fails_when_its_group_has_gone_meanwhile)
{
    struct host other;
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *connecting;

    host_open(&other, (enum backend_id)(host->backend - backends));
    connecting = call(&other, resolver, "gate-1.test:80");
    assert_true(gate_await_arrivals(&fake_dns.gate, 1));
    host_close(&other);
    gate_open(&fake_dns.gate);
    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), WEIR_EREJECTED);
    weir_promise_release(connecting);
    fake_dns_close(resolver);
}

/* ---- memory ---- */

TEST_EACH_LOOP(client_by_name, survives_every_failed_allocation)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_resolver *resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS(.cache_ttl_ns = WEIR_OFF));
    char text[64];
    bool failed = true;

    log_capture_start();
    at("here.test", server, text, sizeof(text));
    for (unsigned n = 1; failed; n++) {
        weir_channel *channel = NULL;
        int err;

        test_memory_fail_at(n);
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = host->group, .address = text, .resolver = resolver),
            &channel);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_true(err == 0 || failed);
        if (err == 0)
            hang_up(channel);
    }
    echo_service_stop(server);
    fake_dns_close(resolver);
}
