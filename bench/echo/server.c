/* SPDX-License-Identifier: Apache-2.0 */
#include "echo/server.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/bench.h"

enum { BACKLOG = 4096 };

static bool uses_unix;

static int announcements; /* the server's end of the pipe that its port comes through */

static bool keeps;       /* the next server stays, */
static echo_server kept; /* or has stayed, */
static int kept_cpu;     /* on this one */

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

/* Thousands of connections are more than the usual limit allows, to both ends. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    bench_require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    bench_require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

void echo_server_keep(bool keep)
{
    keeps = keep;
}

static void start(echo_server *server, void (*run)(int cpu), int cpu)
{
    pid_t load = getpid();
    int pipe_ends[2];

    raise_descriptor_limit();
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

void echo_server_start(echo_server *server, void (*run)(int cpu), int cpu)
{
    if (!keeps) {
        start(server, run, cpu);
        return;
    }
    kept.cold = kept.process == 0;
    if (kept.cold)
        start(&kept, run, kept_cpu = cpu);
    bench_require(cpu == kept_cpu, "moving the server to another CPU");
    *server = kept;
}

void echo_server_stop(echo_server *server)
{
    int status;

    if (server->process == kept.process)
        return;
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

/* Opens /proc/<id>/<name>. */
static FILE *open_proc(pid_t id, const char *name)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)id, name);
    file = fopen(path, "r");
    bench_require(file != NULL, path);
    return file;
}

/* A thread of the server that runs: the first one may have ended, and shows no memory then. */
static pid_t newest_thread(const echo_server *server)
{
    pid_t newest = server->process;
    char path[64];
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)server->process);
    folder = opendir(path);
    bench_require(folder != NULL, path);
    while ((entry = readdir(folder)) != NULL)
        if ((pid_t)atoi(entry->d_name) > newest)
            newest = (pid_t)atoi(entry->d_name);
    closedir(folder);
    return newest;
}

void echo_server_allow_preemption(const echo_server *server, bool allow)
{
    const struct sched_param none = {0};
    int policy = allow ? SCHED_OTHER : SCHED_BATCH;
    char path[64];
    struct dirent *entry;
    DIR *folder;

    bench_require(sched_setscheduler(0, policy, &none) == 0, "sched_setscheduler");
    snprintf(path, sizeof(path), "/proc/%d/task", (int)server->process);
    folder = opendir(path);
    bench_require(folder != NULL, path);
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            sched_setscheduler((pid_t)atoi(entry->d_name), policy, &none); /* it may have ended */
    closedir(folder);
}

int64_t echo_server_user_ns(const echo_server *server)
{
    FILE *file = open_proc(server->process, "stat");
    long long ticks = 0;

    bench_require(
        fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld", &ticks) == 1,
        "reading the server's user time");
    fclose(file);
    return ticks * (INT64_C(1000000000) / sysconf(_SC_CLK_TCK));
}

int64_t echo_server_resident(const echo_server *server)
{
    FILE *file = open_proc(newest_thread(server), "smaps_rollup");
    long long kilobytes = -1;
    char line[128];

    while (kilobytes < 0 && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "Rss: %lld kB", &kilobytes) != 1)
            kilobytes = -1;
    bench_require(kilobytes >= 0, "reading the server's memory");
    fclose(file);
    return kilobytes * 1024;
}

void echo_server_use_unix(bool use)
{
    uses_unix = use;
}

bool echo_server_uses_unix(void)
{
    return uses_unix;
}

/* Nobody else has the name of this process's number, as long as rounds come one by one. */
static uint16_t own_port(void)
{
    return uses_unix ? (uint16_t)getpid() : 0;
}

static socklen_t unix_address(uint16_t port, struct sockaddr_un *address)
{
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "weir-bench-%u", port);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address->sun_path + 1));
}

socklen_t echo_server_address(uint16_t port, struct sockaddr_storage *ret_address)
{
    struct sockaddr_in *in = (struct sockaddr_in *)ret_address;

    memset(ret_address, 0, sizeof(*ret_address));
    if (uses_unix)
        return unix_address(port, (struct sockaddr_un *)ret_address);
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof(*in);
}

void echo_server_place(char *ret_text, size_t size)
{
    snprintf(ret_text, size, uses_unix ? "unix:@weir-bench-%u" : "127.0.0.1:%u", own_port());
}

int echo_server_listen(void)
{
    struct sockaddr_storage address;
    socklen_t length = echo_server_address(own_port(), &address);
    int listener = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;

    bench_require(listener >= 0, "socket");
    bench_require(uses_unix || setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0,
                  "TCP_NODELAY");
    bench_require(bind(listener, (const struct sockaddr *)&address, length) == 0, "bind");
    bench_require(listen(listener, BACKLOG) == 0, "listen");
    return listener;
}

void echo_server_announce_port(uint16_t port)
{
    if (uses_unix)
        port = own_port();
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

int echo_server_announcements(void)
{
    return announcements;
}
