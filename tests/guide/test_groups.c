/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/16-groups.md shows.
 */
#include <stdio.h>
#include <stdlib.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"

static struct call_counter joined;

/* doc:begin room */
static weir_channel_group *room; /* weir_channel_group_create(NULL, &room) in main */

static void on_active(weir_ctx *ctx)
{
    int err = weir_channel_group_add(room, weir_ctx_channel(ctx)); /* leaves when it closes */

    if (err < 0)
        weir_fire_error(ctx, err, "cannot join the room");
    weir_fire_active(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel_group_write_and_flush(room, msg, NULL, weir_match_is_not, weir_ctx_channel(ctx));
}

static const weir_handler chat = {.name = "chat", .active = on_active, .read = on_read};
/* doc:end */

static void tell_active(weir_ctx *ctx)
{
    (void)ctx;
    call_counter_add(&joined);
}

static const weir_handler teller = {.name = "teller", .active = tell_active};

static int init_child(weir_channel *channel, void *user_data)
{
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &chat, NULL);

    (void)user_data;
    return err < 0 ? err : weir_pipeline_add_last(weir_channel_pipeline(channel), &teller, NULL);
}

/* doc:begin close */
static int close_all(size_t *ret_count)
{
    weir_promise *closed = NULL;
    int err = weir_promise_create(NULL, &closed);

    if (!err) {
        weir_channel_group_close(room, closed, NULL, NULL);
        err = weir_promise_sync(closed, weir_seconds(10));
    }
    if (!err)
        *ret_count = (uintptr_t)weir_promise_value(closed);
    weir_promise_release(closed);
    return err;
}
/* doc:end */

/* doc:begin match */
static bool has_paid(weir_channel *channel, void *user_data)
{
    const weir_attribute *account = user_data;

    return weir_attribute_get(channel, account) != NULL && weir_channel_is_writable(channel);
}
/* doc:end */

static void say_to_who_has_paid(const char *text)
{
    static const weir_attribute account = {.name = "account"};
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    weir_channel_group_write_and_flush(room, weir_buf_msg(buf), NULL, has_paid,
                                       (void *)(uintptr_t)&account);
}

static weir_server *open_room(weir_group *loops)
{
    const weir_channel_options *impatient = WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(200));
    weir_server *server = NULL;

    joined = (struct call_counter){0};
    assert_int_equal(weir_channel_group_create(NULL, &room), 0);
    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.workers = loops, .address = "127.0.0.1:0",
                                              .init_child = init_child, .child_options = impatient),
                          &server),
        0);
    return server;
}

static void close_room(weir_server *server, weir_group *loops)
{
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    weir_group_release(loops);
    weir_channel_group_release(room);
}

TEST(groups, a_word_goes_to_all_others)
{
    weir_group *loops = make_loops(2);
    weir_server *server = open_room(loops);
    int ada = raw_client_connect(server), bob = raw_client_connect(server),
        cy = raw_client_connect(server);

    assert_true(call_counter_await(&joined, 3));
    say_to_who_has_paid("nobody has");
    raw_client_send(ada, "hello\n");
    raw_client_receive(bob, "hello\n");
    raw_client_receive(cy, "hello\n");
    raw_client_close(ada);
    raw_client_close(bob);
    raw_client_close(cy);
    close_room(server, loops);
}

TEST(groups, all_are_closed_at_once)
{
    weir_group *loops = make_loops(1);
    weir_server *server = open_room(loops);
    int ada = raw_client_connect(server), bob = raw_client_connect(server);
    size_t count = 0;

    assert_true(call_counter_await(&joined, 2));
    raw_client_close(bob);
    assert_int_equal(close_all(&count), 0);
    assert_in_range(count, 1, 2); /* bob may have left before */
    raw_client_receive_end(ada);
    raw_client_close(ada);
    close_room(server, loops);
}

/* doc:begin by-name */
static int call(weir_group *loops, const char *name, weir_resolver *resolver,
                weir_channel **ret_channel)
{
    return weir_client_connect_sync(
        WEIR_CLIENT_OPTIONS(.group = loops, .address = name, .resolver = resolver), ret_channel);
}
/* doc:end */

static void call_and_hang_up(weir_group *loops, const char *name, weir_resolver *resolver)
{
    weir_channel *channel = NULL;

    assert_int_equal(call(loops, name, resolver, &channel), 0);
    weir_channel_abort(channel, NULL);
    weir_channel_release(channel);
}

/* doc:begin own */
static void answer(void *user_data, const char *host, uint16_t port, weir_promise *promise)
{
    const weir_address *here = user_data;

    if (strcmp(host, "shop") == 0)
        (void)weir_resolver_answer(promise, here, 1, port);
    else
        (void)weir_promise_fail(promise, WEIR_ENOHOST, "unknown service");
}

static const weir_resolver_type shop_resolver = {.name = "shop", .resolve = answer};
/* doc:end */

TEST(groups, servers_have_names)
{
    weir_group *loops = make_loops(1);
    weir_server *server = open_room(loops);
    weir_channel *channel = NULL;
    weir_resolver *resolver = NULL;
    weir_address here;
    char name[64];

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &here), 0);
    snprintf(name, sizeof(name), "localhost:%u", weir_address_port(&here));
    call_and_hang_up(loops, name, NULL);
    assert_int_equal(weir_resolver_create(&shop_resolver, &here, &resolver), 0);
    snprintf(name, sizeof(name), "shop:%u", weir_address_port(&here));
    call_and_hang_up(loops, name, resolver);
    assert_int_equal(call(loops, "pub:80", resolver, &channel), WEIR_ENOHOST);
    weir_resolver_release(resolver);
    close_room(server, loops);
}

static int make_resolver(weir_resolver **ret_resolver)
{
    weir_resolver *resolver = NULL;
    /* doc:begin system */
    int err = weir_resolver_create_system(WEIR_RESOLVER_OPTIONS(.round_robin = true,
                                                                .cache_ttl_ns = weir_seconds(5),
                                                                .family = WEIR_FAMILY_IPV4_FIRST),
                                          &resolver);
    /* doc:end */

    *ret_resolver = resolver;
    return err;
}

/* doc:begin resolve */
static int print_addresses(weir_resolver *resolver, const char *name, FILE *to)
{
    weir_promise *resolving = NULL;
    int err = weir_resolver_resolve(resolver, name, NULL, &resolving);

    if (!err)
        err = weir_promise_sync(resolving, weir_seconds(10));
    if (!err) {
        const weir_addresses *found = weir_promise_value(resolving);
        char text[WEIR_ADDRESS_TEXT_SIZE];

        for (size_t i = 0; i < found->count; i++)
            fprintf(to, "%s\n", weir_address_format(&found->addresses[i], text, sizeof(text)));
    }
    weir_promise_release(resolving);
    return err;
}
/* doc:end */

TEST(groups, names_are_looked_up)
{
    weir_resolver *resolver = NULL;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    assert_non_null(to);
    assert_int_equal(make_resolver(&resolver), 0);
    assert_int_equal(print_addresses(resolver, "localhost:80", to), 0);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, "127.0.0.1:80\n"));
    free(text);
    weir_resolver_release(resolver);
}
