/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: echo on many connections. ./dev soak echo and ./dev soak connections do more of it.
 */
#include <sys/resource.h>

#include "support/loop/sockets.h"
#include "support/transport/connection.h"
#include "support/transport/echo.h"

#define COST 208 /* of a message, besides its bytes */
#define HIGH_MARK 16384
#define RECEIVE_MAX 16384
#define SHARE (16 << 10) /* of a connection, in a round */
#ifdef __SANITIZE_THREAD__
#define ROUNDS 2
#define CONNECTIONS 80
#else
#define ROUNDS 4
#define CONNECTIONS 200
#endif
#define ROUNDS_MAX 64

/*
 * The bytes queued for a client that does not read never exceed the high mark and the size of one
 * read.
 */
TEST_EACH_PAIR(tcp, echoes_every_byte_within_its_marks)
{
    struct echo echo = {.connections = CONNECTIONS,
                        .low_mark = HIGH_MARK / 2,
                        .high_mark = HIGH_MARK,
                        .receive_max = RECEIVE_MAX,
                        .socket_buffer = 8192,
                        .pauses = true,
                        .seed = 1};

    unsigned rounds = 0;

    /* A client that has a thread of its own is a fast reader: there the mark need not be reached */
    if (connection->near.backend->io == WEIR_IO_BLOCKING)
        echo.most_pending = HIGH_MARK + 1;
    assert_int_equal(echo_open(&echo, connection->far.group, connection->near.group), 0);
    for (; rounds < ROUNDS || (echo.most_pending <= HIGH_MARK && rounds < ROUNDS_MAX); rounds++)
        assert_true(echo_exchange(&echo, SHARE));
    assert_true(echo_close(&echo));
    assert_int_equal(echo.received, (uint64_t)rounds * SHARE * CONNECTIONS);
    assert_int_equal(echo.wrong, 0);
    assert_int_equal(echo.errors, 0);
    assert_true(echo.most_pending > HIGH_MARK);
    assert_true(echo.most_pending <= HIGH_MARK + RECEIVE_MAX + COST);
}

/* With a thread per channel 500, which are 1,000 threads. */
TEST_EACH_CONNECTION(tcp, holds_5000_connections)
{
    bool has_threads = connection->far.backend->io == WEIR_IO_BLOCKING;
    struct echo echo = {.connections = has_threads ? 500 : 5000, .seed = 2};
    struct rlimit limits;

    descriptors_allow_all();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limits), 0);
    if (limits.rlim_cur < (has_threads ? 4 : 2) * echo.connections + 100)
        WEIR_TEST_SKIP("the limit of descriptors is too low (ulimit -n)");
    assert_int_equal(echo_open(&echo, connection->far.group, connection->near.group), 0);
    assert_true(echo_exchange(&echo, 64));
    assert_true(echo_exchange(&echo, 64));
    assert_int_equal(echo.closed.calls, 0);
    assert_true(echo_close(&echo));
    assert_int_equal(echo.received, 2 * 64 * echo.connections);
    assert_int_equal(echo.wrong, 0);
    assert_int_equal(echo.errors, 0);
}
