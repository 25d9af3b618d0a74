/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server that is HttpNetty.java.
 */
#include "peers/java.h"

#include "http/service.h"

static void server_configure(bench_round *round)
{
    service_configure(round);
    bench_require(service.serve == SERVE_HELLO, "anything but a hello");
    java_configure(round);
}

static void server_run(int cpu)
{
    java_run("HttpNetty", cpu);
}

#include "http/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {HTTP_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
