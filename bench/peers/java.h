/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that is a Java program: a process that becomes a virtual machine. It is kept from round
 * to round, because its code gets fast only while it runs; fresh=1 starts a new one.
 */
#ifndef BENCH_PEERS_JAVA_H
#define BENCH_PEERS_JAVA_H

#include <stdio.h>
#include <unistd.h>

#include "echo/competitor.h"

static inline void java_configure(bench_round *round)
{
    echo_server_keep(bench_setting(round, "fresh", 0) == 0);
}

static inline void java_run(const char *class_name, int cpu)
{
    char file[32];

    snprintf(file, sizeof(file), "/dev/fd/%d", echo_server_announcements());
    bench_pin(cpu);
    execl(NETTY_JAVA, "java", "-Xms64m", "-Xmx1g", "-XX:+UseSerialGC", "-cp", NETTY_CLASSES,
          class_name, file, (char *)NULL);
}

#endif
