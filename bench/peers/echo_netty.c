/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The echo server that is EchoNetty.java: a process that becomes a Java virtual machine. It is kept
 * from round to round, because its code gets fast only while it runs; fresh=1 starts a new one.
 */
#include "echo/competitor.h"

#include <stdio.h>
#include <unistd.h>

static void server_configure(bench_round *round)
{
    echo_server_keep(bench_setting(round, "fresh", 0) == 0);
}

static void server_run(int cpu)
{
    char file[32];

    snprintf(file, sizeof(file), "/dev/fd/%d", echo_server_announcements());
    bench_pin(cpu);
    execl(NETTY_JAVA, "java", "-Xms64m", "-Xmx1g", "-XX:+UseSerialGC", "-cp", NETTY_CLASSES,
          "EchoNetty", file, (char *)NULL);
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
