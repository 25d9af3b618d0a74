/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid options of servers, clients, pools and resolvers: each is rejected, and logged once.
 */
#include <weir/client.h>
#include <weir/resolver.h>
#include <weir/server.h>

#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/test.h"

static int init(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

#define SERVER(...) weir_server_start(WEIR_SERVER_OPTIONS(.init_child = init, __VA_ARGS__), &server)
#define CLIENT(...) weir_client_connect(WEIR_CLIENT_OPTIONS(.init = init, __VA_ARGS__), &attempt)

TEST(options, of_servers_and_clients_are_named_once)
{
    weir_server *server = NULL;
    weir_promise *attempt = NULL;
    struct host host;

    host_open(&host, BACKEND_EPOLL);
    assert_options_rejected(SERVER(.address = "127.0.0.1:0"),
                            ".boss, .workers or .loop is required");
    assert_options_rejected(SERVER(.boss = host.group), ".address is required");
    assert_options_rejected(SERVER(.boss = host.group, .address = "127.0.0.1:0", .acceptors = -1),
                            "server -: invalid options: acceptors is -1");
    assert_options_rejected(SERVER(.boss = host.group, .address = "127.0.0.1:0", .backlog = -2),
                            "backlog is -2");
    assert_options_rejected(weir_server_start(&(const weir_server_options){.size = 3}, &server),
                            "size is 3");
    assert_options_rejected(
        CLIENT(.group = host.group, .address = "127.0.0.1:1", .attempt_delay_ns = -2),
        "client -: invalid options: attempt_delay_ns is -2");
    assert_null(server);
    host_close(&host);
}

TEST(options, of_pools_and_resolvers_are_named)
{
    static const weir_resolver_type no_type = {.name = "none"};
    const weir_client_options *client = WEIR_CLIENT_OPTIONS(.init = init);
    weir_client_pool *pool = NULL;
    weir_resolver *resolver = NULL;

    assert_options_rejected(
        weir_client_pool_create(WEIR_CLIENT_POOL_OPTIONS(.client = client, .max = -2), &pool),
        "max is -2");
    assert_options_rejected(
        weir_client_pool_create(WEIR_CLIENT_POOL_OPTIONS(.client = client, .idle_timeout_ns = -2),
                                &pool),
        "idle_timeout_ns is -2");
    assert_options_rejected(
        weir_resolver_create_system(WEIR_RESOLVER_OPTIONS(.max_cached = -1), &resolver),
        "resolver -: invalid options: max_cached is -1");
    assert_options_rejected(weir_resolver_create_system(
                                WEIR_RESOLVER_OPTIONS(.family = (enum weir_family)9), &resolver),
                            "family is 9");
    assert_options_rejected(weir_resolver_create(&no_type, NULL, &resolver),
                            "the type has no `resolve`");
}
