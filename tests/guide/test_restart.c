/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/15-restart.md shows; the restart itself is that of examples/hot-restart.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"

static struct echo_service service;

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return echo_service_init(channel, &service);
}

#define ADDRESS "127.0.0.1:0"

static weir_server *start(weir_group *workers, char **argv)
{
    weir_server *server = NULL;
    /* doc:begin options */
    int err = weir_server_start(WEIR_SERVER_OPTIONS(.workers = workers, .address = ADDRESS,
                                                    .init_child = init_child, .inherit = true,
                                                    .restart_argv = argv),
                                &server);
    /* doc:end */

    assert_int_equal(err, 0);
    return server;
}

static void end(weir_server *server, weir_group *workers)
{
    echo_service_stop(server);
    weir_group_release(workers);
    service = (struct echo_service){0};
}

/* doc:begin replace */
static int replace(weir_server *server)
{
    weir_promise *replaced = NULL;
    int err = weir_promise_create(NULL, &replaced);

    if (!err)
        err = weir_server_restart(server, NULL, replaced);
    if (!err)
        err = weir_promise_sync(replaced, WEIR_NEVER);
    if (!err)
        err = weir_server_stop(server, 0, weir_seconds(60)); /* the other one has taken over */
    else if (replaced != NULL)
        fprintf(stderr, "not replaced: %s\n", weir_promise_detail(replaced));
    weir_promise_release(replaced);
    return err;
}
/* doc:end */

TEST(restart, that_fails_does_no_harm)
{
    char program[] = "false";
    char *argv[] = {program, NULL};
    weir_group *workers = make_loops(2);
    weir_server *server = start(workers, argv);
    int peer;

    assert_int_equal(replace(server), -ECHILD);
    peer = raw_client_connect(server);
    raw_client_echo(peer, "still here");
    raw_client_close(peer);
    end(server, workers);
}

static weir_server *start_on(weir_group *workers, int descriptor)
{
    weir_server *server = NULL;
    /* doc:begin adopt */
    int err = weir_server_start(WEIR_SERVER_OPTIONS(.workers = workers, .adopt = &descriptor,
                                                    .adopt_count = 1, .init_child = init_child),
                                &server); /* takes the descriptor */
    /* doc:end */

    assert_int_equal(err, 0);
    return server;
}

TEST(restart, a_server_listens_on_a_socket_that_exists)
{
    weir_group *workers = make_loops(1);
    int descriptor = socket(AF_INET, SOCK_STREAM, 0), peer;
    weir_server *server;
    weir_address here;

    assert_int_equal(weir_address_parse("127.0.0.1:0", &here), 0);
    assert_int_equal(bind(descriptor, weir_address_sockaddr(&here), here.length), 0);
    assert_int_equal(listen(descriptor, 10), 0);
    server = start_on(workers, descriptor);
    peer = raw_client_connect(server);
    raw_client_echo(peer, "hello");
    raw_client_close(peer);
    end(server, workers);
}

/* doc:begin watchdog */
static void on_beat(void *arg, int status)
{
    (void)arg;
    if (status == 0)
        (void)weir_systemd_notify("WATCHDOG=1"); /* this loop still turns */
}

static int keep_watchdog_quiet(weir_executor *loop)
{
    int64_t interval_ns = 0;
    int wanted = weir_systemd_watchdog(&interval_ns);

    if (wanted <= 0)
        return wanted; /* nobody watches us */
    return weir_schedule_at_fixed_rate(loop, 0, interval_ns / 2, on_beat, NULL, NULL);
}
/* doc:end */

TEST(restart, a_watchdog_is_kept_quiet)
{
    weir_group *loops = make_loops(1);
    int manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    char name[64], text[32] = "";
    weir_address address;

    snprintf(name, sizeof(name), "unix:@weir-guide-manager-%d", getpid());
    assert_int_equal(weir_address_parse(name, &address), 0);
    assert_int_equal(bind(manager, weir_address_sockaddr(&address), address.length), 0);
    setenv("NOTIFY_SOCKET", name + 5, 1);
    setenv("WATCHDOG_USEC", "60000000", 1);
    assert_int_equal(keep_watchdog_quiet(weir_group_next(loops)), 0);
    assert_int_equal(recv(manager, text, sizeof(text) - 1, 0), 10);
    assert_string_equal(text, "WATCHDOG=1");
    end_group(loops);
    unsetenv("WATCHDOG_USEC");
    unsetenv("NOTIFY_SOCKET");
    close(manager);
}
