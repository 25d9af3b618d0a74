/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Much through Unix sockets, with every byte compared: ./dev soak unix in small.
 */
#include <stdio.h>
#include <unistd.h>

#include "support/loop/host.h"
#include "support/test.h"
#include "support/transport/echo.h"
#include "support/transport/flood.h"

#define CONNECTIONS 10
#define SHARE (1024 * 1024)
#define DATAGRAMS 50000

static void check_echo(struct host *host, enum weir_kind kind)
{
    char place[64];
    struct echo echo = {.place = place,
                        .kind = kind,
                        .connections = CONNECTIONS,
                        .low_mark = 8192,
                        .high_mark = 16384,
                        .pauses = true,
                        .seed = 1};

    (void)snprintf(place, sizeof(place), "unix:@weir-echo-%d", (int)getpid());
    assert_int_equal(echo_open(&echo, host->group, host->group), 0);
    assert_true(echo_exchange(&echo, SHARE));
    assert_true(echo_close(&echo));
    assert_int_equal(echo.wrong, 0);
    assert_int_equal(echo.errors, 0);
    assert_int_equal(echo.received, (uint64_t)CONNECTIONS * SHARE);
}

TEST_EACH_LOOP(unix_stream, brings_every_byte)
{
    check_echo(host, WEIR_KIND_STREAM);
}

TEST_EACH_LOOP(seqpacket, brings_every_byte)
{
    check_echo(host, WEIR_KIND_SEQPACKET);
}

TEST_EACH_LOOP(unix_datagram, come_all)
{
    struct flood flood = {.is_unix = true, .count = DATAGRAMS};

    assert_int_equal(flood_run(&flood, host->group, host->group), 0);
    assert_true(flood_is_good(&flood));
    assert_int_equal(flood.dropped, 0);
}
