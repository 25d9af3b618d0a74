/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that somebody else has made, as channels of each kind on a loop of each backend, and two
 * loops that accept from one socket as two processes do.
 */
#include <weir/transport.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/pipeline.h>

#include "os/thread.h"
#include "support/executor/call_counter.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/faults.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"

#define STOP_WORD 1

/* ---- handlers ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
};

struct acceptor {
    struct call_counter *accepted;
};

static int keep_pointer(void *state, const void *options)
{
    *(struct acceptor *)state = *(const struct acceptor *)options;
    return 0;
}

static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel *channel = weir_channel_of(msg);

    if (weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL) == 0)
        weir_channel_register(channel, weir_ctx_executor(ctx), NULL);
    call_counter_add(((struct acceptor *)weir_ctx_state(ctx))->accepted);
    weir_msg_release(msg);
}

static const weir_handler acceptor = {
    .name = "acceptor",
    .state_size = sizeof(struct acceptor),
    .init = keep_pointer,
    .read = on_accepted,
};

/* ---- both sides ---- */

static void begin(weir_executor *loop, weir_channel *channel)
{
    weir_promise *registered = NULL;

    assert_int_equal(weir_promise_create(NULL, &registered), 0);
    weir_channel_register(channel, loop, registered);
    assert_int_equal(weir_promise_sync(registered, TEST_TIMEOUT_NS), 0);
    weir_promise_release(registered);
}

static void end(weir_channel *channel)
{
    weir_channel_abort(channel, NULL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
}

static weir_channel *adopt_echo(struct host *host, int descriptor)
{
    weir_channel *channel = NULL;

    assert_int_equal(weir_adopt(descriptor, NULL, &channel), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL), 0);
    begin(host->loop, channel);
    return channel;
}

static weir_channel *adopt_listener(struct host *host, int descriptor,
                                    struct call_counter *accepted)
{
    weir_channel *channel = NULL;

    assert_int_equal(weir_adopt_server(descriptor, NULL, NULL, &channel), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(channel), &acceptor,
                                            &(const struct acceptor){accepted}),
                     0);
    begin(host->loop, channel);
    return channel;
}

static void greet(int peer)
{
    struct pollfd ready = {.fd = peer, .events = POLLIN};
    char answer[8] = "";

    assert_int_equal(send(peer, "hello", 5, MSG_NOSIGNAL), 5);
    assert_int_equal(poll(&ready, 1, (int)(TEST_TIMEOUT_NS / weir_ms(1))), 1);
    assert_int_equal(recv(peer, answer, sizeof(answer), 0), 5);
    assert_string_equal(answer, "hello");
}

static void visit(const struct address *address)
{
    int peer = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(peer, (const struct sockaddr *)&address->storage, address->length), 0);
    greet(peer);
    assert_int_equal(close(peer), 0);
}

/* ---- connections ---- */

TEST_EACH_LOOP(adopt, makes_channels_of_connections_of_every_kind)
{
    const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX, PAIR_UNIX_SEQPACKET};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        weir_channel *channel;
        int pair[2];

        socket_pair(kinds[i], pair);
        channel = adopt_echo(host, pair[0]);
        greet(pair[1]);
        assert_true(weir_channel_is_active(channel));
        end(channel);
        assert_int_equal(fcntl(pair[0], F_GETFD), -1); /* it was the channel's to close */
        assert_int_equal(close(pair[1]), 0);
    }
}

TEST_EACH_LOOP(adopt, makes_a_channel_of_a_bound_datagram_socket)
{
    struct address address;
    int server = socket_bind(AF_INET, SOCK_DGRAM, &address);
    int client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    weir_channel *channel = adopt_echo(host, server);

    assert_int_equal(connect(client, (struct sockaddr *)&address.storage, address.length), 0);
    assert_int_equal(send(client, "x", 1, 0), 1);
    end(channel);
    assert_int_equal(close(client), 0);
}

/* Whoever made it may have wanted to wait in it. */
TEST_EACH_LOOP(adopt, makes_sockets_nonblocking_and_closed_on_exec)
{
    weir_channel *channel;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    channel = adopt_echo(host, pair[0]);
    assert_true((fcntl(pair[0], F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(pair[0], F_GETFD) & FD_CLOEXEC) != 0);
    greet(pair[1]);
    end(channel);
    assert_int_equal(close(pair[1]), 0);
}

/* ---- listeners ---- */

TEST_EACH_LOOP(adopt, makes_servers_of_listeners_of_every_family)
{
    const int families[] = {AF_INET, AF_UNIX};

    for (size_t i = 0; i < 2; i++) {
        struct address address;
        struct call_counter accepted = {0};
        weir_channel *channel =
            adopt_listener(host, socket_listen(families[i], 16, &address), &accepted);

        for (unsigned visits = 1; visits <= 3; visits++)
            visit(&address);
        assert_true(weir_channel_is_active(channel));
        assert_int_equal(accepted.calls, 3);
        end(channel);
    }
}

/* As in two processes: both are woken for every client, and one of them is too late. */
TEST_EACH_LOOP(adopt, lets_two_accept_from_one_socket)
{
    for (int other = 0; other < BACKEND_COUNT; other++) {
        struct call_counter accepted[2] = {{0}, {0}};
        struct address address;
        struct host second;
        weir_channel *channels[2];
        int listener = socket_listen(AF_INET, 64, &address), copy;

        host_open(&second, other);
        channels[0] = adopt_listener(host, listener, &accepted[0]);
        assert_int_equal(weir_channel_duplicate_descriptor(channels[0], &copy), 0);
        channels[1] = adopt_listener(&second, copy, &accepted[1]);
        for (unsigned i = 0; i < 50; i++)
            visit(&address);
        assert_int_equal(accepted[0].calls + accepted[1].calls, 50);
        end(channels[0]); /* the other one goes on with all of them */
        for (unsigned i = 0; i < 10; i++)
            visit(&address);
        assert_int_equal(accepted[0].calls + accepted[1].calls, 60);
        end(channels[1]);
        host_close(&second);
    }
}

/* One that is woken for a client, as the only one of its kind, and then killed. */
static void be_woken(void *arg)
{
    const int *epoll = arg;
    struct epoll_event event = {0};

    while (event.data.u32 != STOP_WORD)
        (void)epoll_wait(*epoll, &event, 1, -1);
}

static int wait_in_line(int listener, int stop)
{
    struct epoll_event exclusive = {.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLET};
    struct epoll_event last = {.events = EPOLLIN, .data.u32 = STOP_WORD};
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &exclusive), 0);
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, stop, &last), 0);
    return epoll;
}

TEST_EACH_LOOP(adopt, accepts_clients_for_which_another_process_was_woken)
{
    struct call_counter accepted = {0};
    struct address address;
    weir__thread thread;
    int listener = socket_listen(AF_INET, 64, &address), stop = eventfd(0, EFD_CLOEXEC);
    int epoll = wait_in_line(listener, stop);
    weir_channel *channel = adopt_listener(host, listener, &accepted);

    assert_int_equal(weir__thread_start("woken", be_woken, &epoll, &thread), 0);
    for (unsigned i = 0; i < 50; i++)
        visit(&address);
    assert_int_equal(accepted.calls, 50);
    assert_int_equal(eventfd_write(stop, 1), 0);
    weir__thread_join(&thread);
    end(channel);
    (void)close(epoll);
    (void)close(stop);
}

/* ---- what is refused ---- */

static void refuse(int descriptor, int err, int server_err)
{
    weir_channel *channel = (weir_channel *)&channel;

    assert_int_equal(weir_adopt(descriptor, NULL, &channel), err);
    assert_int_equal(weir_adopt_server(descriptor, NULL, NULL, &channel), server_err);
    assert_ptr_equal(channel, &channel);
}

TEST(adopt, refuses_in_words_what_is_no_such_socket)
{
    struct address address;
    int ends[2], pair[2], listener = socket_listen(AF_INET, 16, &address);
    int fresh = socket_new(AF_INET, SOCK_STREAM), lonely = socket_new(AF_INET, SOCK_DGRAM);
    weir_channel *channel = NULL;

    log_capture_start();
    refuse(-1, -EBADF, -EBADF);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    refuse(ends[0], -ENOTSOCK, -ENOTSOCK);
    assert_true(log_capture_last_contains("not a socket"));
    refuse(fresh, -ENOTCONN, -EINVAL);
    assert_true(log_capture_last_contains("does not listen"));
    refuse(lonely, -ENOTCONN, -EINVAL);
    assert_int_equal(weir_adopt(listener, NULL, &channel), -EINVAL);
    assert_true(log_capture_last_contains("it listens"));
    socket_pair(PAIR_TCP, pair);
    assert_int_equal(weir_adopt_server(pair[0], NULL, NULL, &channel), -EINVAL);
    assert_int_equal(weir_adopt(pair[0], WEIR_CHANNEL_OPTIONS(.backlog = -1), &channel), -EINVAL);
    assert_null(channel);
    assert_int_equal(close(ends[0]) + close(ends[1]) + close(listener) + close(fresh) +
                         close(lonely) + close(pair[0]) + close(pair[1]),
                     0); /* all of them are still the caller's */
}

TEST(adopt, leaves_a_channel_that_was_never_registered_closed)
{
    weir_channel *channel = NULL;
    int pair[2];

    socket_pair(PAIR_TCP, pair);
    assert_int_equal(weir_adopt(pair[0], NULL, &channel), 0);
    weir_channel_release(channel);
    assert_int_equal(fcntl(pair[0], F_GETFD), -1);
    assert_int_equal(close(pair[1]), 0);
}

/* ---- for others ---- */

TEST_EACH_LOOP(adopt, duplicates_what_there_is)
{
    weir_channel *channel = NULL;
    int pair[2], copy = -1;

    assert_int_equal(weir_inproc_create(NULL, &channel), 0);
    assert_int_equal(weir_channel_duplicate_descriptor(channel, &copy), -ENOTSUP);
    weir_channel_release(channel);
    assert_int_equal(weir_tcp_create(NULL, &channel), 0);
    assert_int_equal(weir_channel_duplicate_descriptor(channel, &copy), -ENOTSUP);
    weir_channel_release(channel);
    socket_pair(PAIR_TCP, pair);
    channel = weir_channel_retain(adopt_echo(host, pair[0]));
    assert_int_equal(weir_channel_duplicate_descriptor(channel, &copy), 0);
    assert_true((fcntl(copy, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(close(copy), 0);
    greet(pair[1]);
    end(channel);
    assert_int_equal(weir_channel_duplicate_descriptor(channel, &copy), WEIR_ECLOSED);
    weir_channel_release(channel);
    assert_int_equal(close(pair[1]), 0);
}

/* ---- failures ---- */

/* On failure both are still the caller's; on success the channel closes it. */
static int adopt_one(bool listens)
{
    weir_channel *channel = NULL;
    struct address address;
    int pair[2] = {-1, -1}, err;

    if (listens)
        pair[0] = socket_listen(AF_INET, 16, &address);
    else
        socket_pair(PAIR_TCP, pair);
    err = listens ? weir_adopt_server(pair[0], NULL, NULL, &channel)
                  : weir_adopt(pair[0], NULL, &channel);
    if (err == 0)
        weir_channel_release(channel);
    else
        assert_int_equal(close(pair[0]), 0);
    if (pair[1] >= 0)
        assert_int_equal(close(pair[1]), 0);
    return err;
}

TEST(adopt, survives_each_allocation_that_fails)
{
    log_capture_start();
    for (int listens = 0; listens < 2; listens++) {
        bool failed = true;

        for (unsigned n = 1; failed; n++) {
            int err;

            test_memory_fail_at(n);
            err = adopt_one(listens);
            failed = test_memory_failed();
            test_memory_fail_at(0);
            assert_int_equal(err, failed ? -ENOMEM : 0);
        }
    }
}

TEST(adopt, survives_each_call_that_fails)
{
    const enum fault_call calls[] = {FAULT_GETSOCKOPT, FAULT_SETSOCKOPT,  FAULT_GETSOCKNAME,
                                     FAULT_FCNTL,      FAULT_GETPEERNAME, FAULT_EVENTFD};
    size_t descriptors = descriptors_open();

    log_capture_start();
    faults_install();
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        for (const int *err = faults_errors(calls[i]); *err != 0; err++) {
            for (uint64_t n = 1; n <= 6; n++) {
                faults_inject(calls[i], n, 1, *err);
                (void)adopt_one(n % 2 == 0);
                faults_end();
            }
        }
    }
    faults_remove();
    assert_int_equal(descriptors_open(), descriptors);
}
