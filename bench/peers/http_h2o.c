/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2o with one thread and no log. It has no configured texts, so its hello is a file of 13 bytes,
 * which it keeps open. The listening socket is inherited, as from Server::Starter.
 */
#include "echo/competitor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "http/service.h"

static const char configuration[] = "%s"
                                    "num-threads: 1\n"
                                    "max-connections: 30000\n"
                                    "http1-request-timeout: 3600\n"
                                    "error-log: /dev/stderr\n"
                                    "listen:\n"
                                    "  host: 127.0.0.1\n"
                                    "  port: %u\n"
                                    "proxy.timeout.keepalive: 3600000\n"
                                    "hosts:\n"
                                    "  default:\n"
                                    "    paths:\n"
                                    "      /:\n"
                                    "        %s\n";

static void server_configure(bench_round *round)
{
    service_configure(round);
    bench_folder_write("index.html", HTTP_HELLO);
}

static void write_configuration(uint16_t port)
{
    FILE *file = bench_folder_create("h2o.conf");
    char serves[128];

    if (service.serve == SERVE_PROXY)
        snprintf(serves, sizeof(serves), "proxy.reverse.url: http://127.0.0.1:%u/",
                 service.upstream);
    else
        snprintf(serves, sizeof(serves), "file.dir: %s", bench_folder());
    fprintf(file, configuration, geteuid() == 0 ? "user: root\n" : "", port, serves);
    fclose(file);
}

/* The port of a listener that a program which is executed inherits. */
static uint16_t pass_on(int listener)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);
    char text[64];

    bench_require(fcntl(listener, F_SETFD, 0) == 0, "F_SETFD");
    bench_require(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    snprintf(text, sizeof(text), "127.0.0.1:%u=%d", ntohs(address.sin_port), listener);
    setenv("SERVER_STARTER_PORT", text, 1);
    setenv("SERVER_STARTER_GENERATION", "1", 1);
    return ntohs(address.sin_port);
}

static void server_run(int cpu)
{
    int listener = echo_server_listen();
    char path[128];

    write_configuration(pass_on(listener));
    echo_server_announce(listener);
    bench_pin(cpu);
    snprintf(path, sizeof(path), "%s/h2o.log", bench_folder()); /* or it reports each start */
    bench_require(freopen(path, "w", stderr) != NULL, path);
    snprintf(path, sizeof(path), "%s/h2o.conf", bench_folder());
    execl(H2O_PROGRAM, "h2o", "-c", path, (char *)NULL);
}

#include "http/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {HTTP_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
