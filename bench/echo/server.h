/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo/server.h - the server of a round: a process of its own, so that its CPU time is what the
 * server has cost, and that it shares nothing with the load but the kernel and the core.
 *
 *      load                                   server
 *      echo_server_start  ---- fork ---->     run(cpu): listens,
 *                         <--- port -----     echo_server_announce, serves
 *      echo_server_stop   ---- SIGKILL -->
 */
#ifndef BENCH_ECHO_SERVER_H
#define BENCH_ECHO_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

typedef struct echo_server {
    pid_t process;
    clockid_t cpu_clock;
    uint16_t port; /* of 127.0.0.1, or the number of an abstract name */
    bool cold;     /* it will be kept, and has just been started */
} echo_server;

/*
 * Before the start of a server: it is to stay when it is stopped, and the next start, on the same
 * CPU, finds it again.
 */
void echo_server_keep(bool keep);

/* Before the start: it listens on a Unix socket. */
void echo_server_use_unix(bool use);
bool echo_server_uses_unix(void);

/* The address that a port is, for both ends; returns its length. */
socklen_t echo_server_address(uint16_t port, struct sockaddr_storage *ret_address);

/* The same in words, as weir has them: the server's own, where it is to listen. */
void echo_server_place(char *ret_text, size_t size);

/* Returns when the server listens. It is there with one thread only: the caller's. */
void echo_server_start(echo_server *server, void (*run)(int cpu), int cpu);
void echo_server_stop(echo_server *server);

/*
 * Whether server and load preempt one another when woken. A measurement does not allow it: the
 * scheduler would equalize the CPU time of the two where they share a core, so a cheaper server
 * would be woken more often, for fewer requests at a time, and lose part of its advantage. Many
 * connections are opened with it, or the backlog of the listener overflows.
 */
void echo_server_allow_preemption(const echo_server *server, bool allow);

/* The CPU time that all its threads have used; and what of it was not the kernel's, by the ticks of
 * 10 ms. */
int64_t echo_server_cpu_ns(const echo_server *server);
int64_t echo_server_user_ns(const echo_server *server);

/* The bytes of its memory that are there. */
int64_t echo_server_resident(const echo_server *server);

/* ---- for the server ---- */

/* A socket that listens on a free port, O_NONBLOCK; connections inherit its TCP_NODELAY. */
int echo_server_listen(void);

/* Says that connections to this socket, or to this port, will be accepted. */
void echo_server_announce(int listener);
void echo_server_announce_port(uint16_t port);

/* For one that becomes another program: where its port is written to, as two bytes, low one first.
 */
int echo_server_announcements(void);

#endif
