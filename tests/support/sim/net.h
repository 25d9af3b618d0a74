/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the simulated network by system calls. A test is one fiber that acts for processes of
 * several hosts in turn, and sleeps where packets should arrive:
 *
 *      static void arrives(struct net *net)
 *      {
 *          int client, server;
 *
 *          net_pair(net, &client, &server);
 *          EXPECT_EQUAL(net_send(client, "hello", 5), 5);
 *          net_sleep(weir_ms(10));
 *          EXPECT_TEXT(server, "hello");
 *          net_close(client);
 *          net_close(server);
 *      }
 *
 *      TEST(tcp, delivers) { net_run(NULL, arrives); }
 *
 * It runs with 20 seeds. Results are those of the system call, or -errno. Assertions of cmocka
 * cannot be used in a world: they leave by longjmp.
 */
#ifndef WEIR_TEST_SIM_NET_H
#define WEIR_TEST_SIM_NET_H

#include <poll.h>
#include <sys/socket.h>

#include <weir/sim.h>
#include <weir/weir.h>

#include "sim/world.h"
#include "support/test.h"

enum {
    NET_HOSTS = 3,
};

/* Host i has the addresses 10.0.0.(i + 1) and fd00::(i + 1), and one process. */
struct net {
    weir_sim *sim;
    weir_sim_host *hosts[NET_HOSTS];
    weir_sim_process *processes[NET_HOSTS];
};

typedef void net_body(struct net *net);

/* Runs with 20 seeds. `options` may be NULL; its seed is ignored. Fails the test if a run fails. */
void net_run(const weir_sim_options *options, net_body *body);

/* The same in a child, once. True if the run fails with that text. */
bool net_fails(net_body *body, const char *text);

/* Fails the run. */
#define EXPECT(condition)                                                                   \
    do {                                                                                    \
        if (!(condition))                                                                   \
            weir_sim_fail(weir_sim_current(), "%s:%d: %s", __FILE__, __LINE__, #condition); \
    } while (0)

#define EXPECT_EQUAL(a, b) net_expect_equal((long long)(a), (long long)(b), __FILE__, __LINE__, #a)

void net_expect_equal(long long a, long long b, const char *file, int line, const char *text);

/* Receives exactly this text. */
#define EXPECT_TEXT(descriptor, text) net_expect_text(descriptor, text, __FILE__, __LINE__)

void net_expect_text(int descriptor, const char *text, const char *file, int line);

/* From here on the fiber acts for the process of a host. */
void net_act(struct net *net, unsigned host);

/* Lets time pass. */
void net_sleep(int64_t duration_ns);

/* Sockets of the current process. Addresses are texts: "10.0.0.1:80", "unix:/path". */
int net_socket(int domain, int kind);
int net_bind(int descriptor, const char *address);
int net_listen(int descriptor, int backlog);
int net_connect(int descriptor, const char *address);
int net_accept(int descriptor);
int net_close(int descriptor);
int net_shutdown(int descriptor, int how);
int net_set(int descriptor, int level, int name, int value);
int net_get(int descriptor, int level, int name);
unsigned net_poll(int descriptor);
uint16_t net_port(int descriptor);      /* the local one */
uint16_t net_peer_port(int descriptor); /* 0 = none */
ssize_t net_send(int descriptor, const void *bytes, size_t length);
ssize_t net_send_to(int descriptor, const void *bytes, size_t length, const char *address);
ssize_t net_receive(int descriptor, void *bytes, size_t size, int flags);

/* A listener on a host, and a connection from host 0 to host 1. */
int net_server(struct net *net, unsigned host, const char *address, int backlog);
int net_client(struct net *net, unsigned host, const char *address);
void net_pair(struct net *net, int *ret_client, int *ret_server);

/* Waits up to a second for a connection. */
int net_await_accept(struct net *net, unsigned host, int listener);

#endif
