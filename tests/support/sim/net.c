/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEEDS 20

/* ---- running ---- */

static int begin(struct net *net)
{
    for (unsigned i = 0; i < NET_HOSTS; i++) {
        char name[16], addresses[64];
        int err;

        (void)snprintf(name, sizeof(name), "host%u", i);
        (void)snprintf(addresses, sizeof(addresses), "10.0.0.%u fd00::%u", i + 1, i + 1);
        err = weir_sim_host_create(net->sim, name, addresses, &net->hosts[i]);
        if (err < 0)
            return err;
        net->processes[i] = weir__sim_process_create(net->hosts[i], name);
        if (net->processes[i] == NULL)
            return -ENOMEM;
    }
    return 0;
}

static int program(weir_sim *sim, void *arg)
{
    struct net net = {.sim = sim};
    net_body **body = arg;
    int err = begin(&net);

    if (err < 0)
        return err;
    (*body)(&net);
    weir__sim->current->process = weir__sim->world_process;
    return 0;
}

void net_run(const weir_sim_options *options, net_body *body)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        weir_sim_options with_seed = options != NULL ? *options : *WEIR_SIM_OPTIONS(.seed = 0);
        weir_sim_result result = {0};
        int err;

        with_seed.seed = seed;
        err = weir_sim_run(&with_seed, program, &body, &result);
        if (err < 0)
            fail_msg("seed %llu: %s: %s\n%s", (unsigned long long)seed, weir_error_text(err),
                     result.failure != NULL ? result.failure : "",
                     result.trace != NULL ? result.trace : "");
        weir_sim_result_free(&result);
    }
}

bool net_fails(net_body *body, const char *text)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        weir_sim_result result = {0};
        int err = weir_sim_run(WEIR_SIM_OPTIONS(.seed = 1), program, &body, &result);

        if (err != WEIR_ESIM || strstr(result.failure, text) == NULL)
            (void)fprintf(stderr, "%s: %s\n", weir_error_text(err),
                          result.failure != NULL ? result.failure : "no failure");
        _exit(err == WEIR_ESIM && strstr(result.failure, text) != NULL ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void net_expect_equal(long long a, long long b, const char *file, int line, const char *text)
{
    if (a != b)
        weir_sim_fail(weir_sim_current(), "%s:%d: %s is %lld, expected %lld", file, line, text, a,
                      b);
}

void net_expect_text(int descriptor, const char *text, const char *file, int line)
{
    char bytes[256] = {0};
    size_t done = 0;
    ssize_t length = 1;

    while (length > 0 && done < strlen(text)) {
        length = net_receive(descriptor, bytes + done, sizeof(bytes) - 1 - done, 0);
        if (length > 0)
            done += (size_t)length;
    }
    if (strcmp(bytes, text) != 0)
        weir_sim_fail(weir_sim_current(), "%s:%d: received \"%s\" (%zd), expected \"%s\"", file,
                      line, bytes, length, text);
}

void net_act(struct net *net, unsigned host)
{
    weir__sim->current->process = net->processes[host];
}

void net_sleep(int64_t duration_ns)
{
    weir_sim_process *process = weir__sim->current->process;

    weir__sim->current->process = weir__sim->world_process; /* whose host is never stopped */
    weir_sim_sleep(duration_ns);
    weir__sim->current->process = process;
}

/* ---- calls ---- */

static weir__system *sys(void)
{
    return weir__seams_get()->system;
}

static ssize_t result_of(ssize_t result)
{
    return result < 0 ? -errno : result;
}

static weir_address parse(const char *text)
{
    weir_address address = {0};

    if (weir_address_parse(text, &address) < 0)
        weir_sim_fail(weir_sim_current(), "%s is not an address", text);
    return address;
}

int net_socket(int domain, int kind)
{
    return (int)result_of(sys()->socket(domain, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

int net_bind(int descriptor, const char *address)
{
    weir_address local = parse(address);

    return (int)result_of(sys()->bind(descriptor, weir_address_sockaddr(&local), local.length));
}

int net_listen(int descriptor, int backlog)
{
    return (int)result_of(sys()->listen(descriptor, backlog));
}

int net_connect(int descriptor, const char *address)
{
    weir_address to = parse(address);

    return (int)result_of(sys()->connect(descriptor, weir_address_sockaddr(&to), to.length));
}

int net_accept(int descriptor)
{
    return (int)result_of(sys()->accept4(descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

int net_close(int descriptor)
{
    return (int)result_of(sys()->close(descriptor));
}

int net_shutdown(int descriptor, int how)
{
    return (int)result_of(sys()->shutdown(descriptor, how));
}

int net_set(int descriptor, int level, int name, int value)
{
    return (int)result_of(sys()->setsockopt(descriptor, level, name, &value, sizeof(value)));
}

int net_get(int descriptor, int level, int name)
{
    int value = 0;
    socklen_t length = sizeof(value);

    return sys()->getsockopt(descriptor, level, name, &value, &length) < 0 ? -errno : value;
}

unsigned net_poll(int descriptor)
{
    struct pollfd poll = {.fd = descriptor, .events = POLLIN | POLLOUT | POLLRDHUP};

    (void)sys()->ppoll(&poll, 1, NULL, NULL);
    return (unsigned)poll.revents;
}

uint16_t net_port(int descriptor)
{
    weir_address local = {.length = sizeof(local.storage)};

    (void)sys()->getsockname(descriptor, (struct sockaddr *)&local.storage, &local.length);
    return weir_address_port(&local);
}

uint16_t net_peer_port(int descriptor)
{
    weir_address peer = {.length = sizeof(peer.storage)};

    if (sys()->getpeername(descriptor, (struct sockaddr *)&peer.storage, &peer.length) < 0)
        return 0;
    return weir_address_port(&peer);
}

ssize_t net_send(int descriptor, const void *bytes, size_t length)
{
    return result_of(sys()->send(descriptor, bytes, length, MSG_NOSIGNAL));
}

ssize_t net_send_to(int descriptor, const void *bytes, size_t length, const char *address)
{
    weir_address to = parse(address);
    struct iovec vector = {(void *)(uintptr_t)bytes, length};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_name = &to.storage, .msg_namelen = to.length};

    return result_of(sys()->sendmsg(descriptor, &message, MSG_NOSIGNAL));
}

ssize_t net_receive(int descriptor, void *bytes, size_t size, int flags)
{
    return result_of(sys()->recv(descriptor, bytes, size, flags));
}

/* ---- connections ---- */

static int domain_of(const char *address)
{
    weir_address parsed = parse(address);

    return weir_address_family(&parsed);
}

int net_server(struct net *net, unsigned host, const char *address, int backlog)
{
    int listener;

    net_act(net, host);
    listener = net_socket(domain_of(address), SOCK_STREAM);
    EXPECT_EQUAL(net_bind(listener, address), 0);
    EXPECT_EQUAL(net_listen(listener, backlog), 0);
    return listener;
}

int net_client(struct net *net, unsigned host, const char *address)
{
    int client, err;

    net_act(net, host);
    client = net_socket(domain_of(address), SOCK_STREAM);
    err = net_connect(client, address);
    EXPECT(err == -EINPROGRESS || err == 0);
    return client;
}

int net_await_accept(struct net *net, unsigned host, int listener)
{
    int server = -EAGAIN;

    net_act(net, host);
    for (unsigned i = 0; i < 1000 && (server == -EAGAIN || server == -EINTR); i++) {
        net_sleep(weir_ms(1));
        server = net_accept(listener);
    }
    return server;
}

void net_pair(struct net *net, int *ret_client, int *ret_server)
{
    int listener = net_server(net, 1, "10.0.0.2:7", 16);

    *ret_client = net_client(net, 0, "10.0.0.2:7");
    *ret_server = net_await_accept(net, 1, listener);
    EXPECT(*ret_server >= 0);
    EXPECT_EQUAL(net_get(*ret_client, SOL_SOCKET, SO_ERROR), 0);
    (void)net_close(listener);
}
