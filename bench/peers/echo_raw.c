/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The echo server that is peers/raw_echo.h.
 */
#include "peers/raw_echo.h"

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
