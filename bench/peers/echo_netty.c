/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The echo server that is EchoNetty.java.
 */
#include "peers/java.h"

static void server_configure(bench_round *round)
{
    java_configure(round);
}

static void server_run(int cpu)
{
    java_run("EchoNetty", cpu);
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
