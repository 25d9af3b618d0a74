/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The WebSocket server that is websocket_node.cjs: the package `ws` of npm. It is kept from round
 * to round, because its code gets fast only while it runs; fresh=1 starts a new one.
 */
#include "echo/competitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void server_configure(bench_round *round)
{
    echo_server_keep(bench_setting(round, "fresh", 0) == 0);
}

static bool server_upgrades(void)
{
    return true;
}

static void server_run(int cpu)
{
    char file[32];

    snprintf(file, sizeof(file), "/dev/fd/%d", echo_server_announcements());
    setenv("NODE_PATH", NODE_MODULES, 1);
    bench_pin(cpu);
    execl(NODE_PROGRAM, "node", NODE_SCRIPT, file, (char *)NULL);
}

#include "websocket/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {WEBSOCKET_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
