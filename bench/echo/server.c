/* SPDX-License-Identifier: Apache-2.0 */
#include "echo/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/bench.h"

enum { BACKLOG = 4096 };

static int announcements; /* the server's end of the pipe that its port comes through */

static void become_server(const int pipe_ends[2], pid_t load, void (*run)(int cpu), int cpu)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a server outlives no load, also one that failed, */
    if (getppid() != load)            /* or has failed already */
        _exit(1);
    close(pipe_ends[0]);
    announcements = pipe_ends[1];
    run(cpu);
    bench_require(false, "serving");
}

void echo_server_start(echo_server *server, void (*run)(int cpu), int cpu)
{
    pid_t load = getpid();
    int pipe_ends[2];

    bench_require(pipe(pipe_ends) == 0, "pipe");
    fflush(stdout); /* or the server says it, too */
    server->process = fork();
    bench_require(server->process >= 0, "fork");
    if (server->process == 0)
        become_server(pipe_ends, load, run, cpu);
    close(pipe_ends[1]);
    bench_require(read(pipe_ends[0], &server->port, sizeof(server->port)) == sizeof(server->port),
                  "starting the server");
    close(pipe_ends[0]);
    bench_require(clock_getcpuclockid(server->process, &server->cpu_clock) == 0,
                  "clock_getcpuclockid");
}

void echo_server_stop(echo_server *server)
{
    int status;

    kill(server->process, SIGKILL);
    bench_require(waitpid(server->process, &status, 0) == server->process, "waitpid");
    bench_require(WIFSIGNALED(status), "serving");
}

int64_t echo_server_cpu_ns(const echo_server *server)
{
    struct timespec used;

    bench_require(clock_gettime(server->cpu_clock, &used) == 0, "reading the server's CPU time");
    return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}

int echo_server_listen(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;

    bench_require(listener >= 0, "socket");
    bench_require(setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0,
                  "TCP_NODELAY");
    bench_require(bind(listener, (const struct sockaddr *)&address, sizeof(address)) == 0, "bind");
    bench_require(listen(listener, BACKLOG) == 0, "listen");
    return listener;
}

void echo_server_announce_port(uint16_t port)
{
    bench_require(write(announcements, &port, sizeof(port)) == sizeof(port), "announcing the port");
    close(announcements);
}

void echo_server_announce(int listener)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);

    bench_require(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    echo_server_announce_port(ntohs(address.sin_port));
}
