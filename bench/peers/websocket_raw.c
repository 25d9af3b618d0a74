/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit: the echo server of peers/raw_echo.h, which sends frames back without looking at them.
 */
#include "peers/raw_echo.h"

static bool server_upgrades(void)
{
    return false;
}

#include "websocket/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {WEBSOCKET_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
