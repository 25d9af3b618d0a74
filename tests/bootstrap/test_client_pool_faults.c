/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of a client fails with the errors that it can return while a pool connects, is
 * used, and is closed. Whatever fails: who acquires gets a channel or an error, a pool that is
 * closed says so, and no descriptor is left.
 */
#include <weir/client.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/buf.h>
#include <weir/error.h>

#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/faults.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"

#define ROUNDS 3
#define PLACES 6 /* calls of one kind to fail */

/* Only every n-th error where it is slow. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STRIDE 5
#else
#define STRIDE 1
#endif

/* A listener whose calls do not fail: nobody accepts, the system connects all the same. */
struct peer_side {
    int listener;
    char address[WEIR_ADDRESS_TEXT_SIZE];
};

static void listen_plainly(struct peer_side *peer)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(any);
    weir_address address;

    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(peer->listener >= 0);
    assert_int_equal(bind(peer->listener, (struct sockaddr *)&any, length), 0);
    assert_int_equal(listen(peer->listener, 4096), 0);
    assert_int_equal(getsockname(peer->listener, (struct sockaddr *)&any, &length), 0);
    assert_int_equal(weir_address_from_sockaddr((struct sockaddr *)&any, length, &address), 0);
    weir_address_format(&address, peer->address, sizeof(peer->address));
}

/* What was connected meanwhile is gone with it. */
static void hang_up_plainly(struct peer_side *peer)
{
    assert_int_equal(close(peer->listener), 0);
}

static void use_pool(weir_client_pool *pool)
{
    for (int i = 0; i < ROUNDS; i++) {
        weir_promise *acquiring = NULL;

        assert_int_equal(weir_client_pool_acquire(pool, NULL, &acquiring), 0);
        if (weir_promise_sync(acquiring, TEST_TIMEOUT_NS) == 0) {
            weir_channel *channel = weir_promise_value(acquiring);
            weir_buf *buf;

            assert_int_equal(weir_buf_create_from("hello", 5, &buf), 0);
            weir_channel_write_and_flush(channel, weir_buf_msg(buf), NULL);
            weir_client_pool_return(pool, channel, NULL);
        }
        assert_true(weir_promise_is_done(acquiring));
        weir_promise_release(acquiring);
    }
}

/* One life of a loop and a pool, in which a call fails. True if there was such a call. */
static bool endure(enum backend_id backend, enum fault_call call, uint64_t place, int err)
{
    const weir_channel_options *options = WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(1));
    struct peer_side peer;
    struct host own;
    weir_client_pool *pool = NULL;
    bool was_injected;

    listen_plainly(&peer);
    host_open(&own, backend);
    assert_int_equal(
        weir_client_pool_create(
            WEIR_CLIENT_POOL_OPTIONS(.max = 2,
                                     .client =
                                         WEIR_CLIENT_OPTIONS(.group = own.group, .options = options,
                                                             .address = peer.address)),
            &pool),
        0);
    faults_inject(call, place, 1, err);
    use_pool(pool);
    weir_client_pool_close(pool);
    assert_int_equal(weir_promise_sync(weir_client_pool_closed(pool), TEST_TIMEOUT_NS), 0);
    was_injected = faults_injected() > 0;
    faults_end();
    weir_client_pool_release(pool);
    host_close(&own);
    global_executor_stop(); /* it may hold the loop, and its ring */
    hang_up_plainly(&peer);
    return was_injected;
}

static const enum fault_call calls[] = {
    FAULT_SOCKET,  FAULT_CONNECT, FAULT_SHUTDOWN, FAULT_GETSOCKOPT,   FAULT_SETSOCKOPT, FAULT_RECV,
    FAULT_SENDMSG, FAULT_SEND,    FAULT_CLOSE,    FAULT_RING_CONNECT, FAULT_RING_SEND};

static void endure_all(enum backend_id backend)
{
    size_t descriptors = descriptors_open();
    unsigned injected = 0, turn = 0;

    log_capture_start();
    faults_install();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (const int *err = faults_errors(calls[i]); *err != 0; err++) {
            if (turn++ % STRIDE != 0)
                continue;
            for (uint64_t place = 1; place <= PLACES && endure(backend, calls[i], place, *err);
                 place++)
                injected++;
        }
    }
    faults_remove();
    global_executor_stop(); /* it may hold a loop that it was to watch over */
    assert_int_equal(descriptors_open(), descriptors);
    assert_true(injected > 20 / STRIDE);
}

TEST(client_pool_faults, leave_nobody_waiting_on_epoll)
{
    endure_all(BACKEND_EPOLL);
}

TEST(client_pool_faults, leave_nobody_waiting_on_uring)
{
    endure_all(BACKEND_URING);
}

TEST(client_pool_faults, leave_nobody_waiting_on_poll)
{
    endure_all(BACKEND_POLL);
}

TEST(client_pool_faults, leave_nobody_waiting_with_a_thread_per_channel)
{
    endure_all(BACKEND_BLOCKING);
}
