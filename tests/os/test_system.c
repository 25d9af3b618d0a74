/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls with wrappers.
 */
#include "os/system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/thread.h"
#include "support/test.h"

#define FILE_SIZE (1 << 20)

/* A socket whose peer has gone, and a file to send there. */
static void open_broken_pipe(int *ret_socket, int *ret_file)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    (void)close(pair[1]);
    *ret_socket = pair[0];
    *ret_file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(*ret_file >= 0);
}

static bool is_pending(int number)
{
    sigset_t pending;

    assert_int_equal(sigpending(&pending), 0);
    return sigismember(&pending, number) == 1;
}

/* ---- calls without a cancellation point ---- */

static int open_pair(int pair[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair);
}

static int watch(int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    int epoll = weir__sys.epoll_create1(EPOLL_CLOEXEC);

    assert_true(epoll >= 0);
    assert_int_equal(weir__sys.epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event), 0);
    return epoll;
}

/* Each call that is made directly, with its result. */
TEST(system, direct_calls_return_what_the_kernel_does)
{
    const struct timespec short_time = {.tv_nsec = 1000};
    struct epoll_event event;
    struct pollfd poll;
    char memory[8] = "";
    int pair[2], epoll;

    assert_int_equal(open_pair(pair), 0);
    poll = (struct pollfd){.fd = pair[1], .events = POLLIN};
    assert_int_equal(weir__sys.ppoll(&poll, 1, &short_time, NULL), 0);
    assert_int_equal(short_time.tv_nsec, 1000);
    epoll = watch(pair[1]);
    assert_int_equal(weir__sys.epoll_wait(epoll, &event, 1, 0), 0);
    assert_int_equal(weir__sys.send(pair[0], "ab", 2, MSG_NOSIGNAL), 2);
    assert_int_equal(weir__sys.write(pair[0], "cde", 3), 3);
    assert_int_equal(weir__sys.epoll_wait(epoll, &event, 1, -1), 1);
    assert_int_equal(event.data.fd, pair[1]);
    assert_int_equal(weir__sys.ppoll(&poll, 1, NULL, NULL), 1);
    assert_int_equal(poll.revents, POLLIN);
    assert_int_equal(weir__sys.recv(pair[1], memory, 1, MSG_PEEK), 1);
    assert_int_equal(weir__sys.recv(pair[1], memory, sizeof(memory), 0), 5);
    assert_string_equal(memory, "abcde");
    (void)close(epoll);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

TEST(system, direct_calls_pass_messages)
{
    char memory[2][8] = {""};
    struct iovec sent = {(void *)(uintptr_t) "abc", 3};
    struct iovec parts[2] = {{memory[0], 1}, {memory[1], 2}};
    struct mmsghdr messages[2] = {
        {.msg_hdr = {.msg_iov = &sent, .msg_iovlen = 1}},
        {.msg_hdr = {.msg_iov = &sent, .msg_iovlen = 1}},
    };
    struct timespec at_once = {0};
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(weir__sys.sendmmsg(pair[0], messages, 2, MSG_NOSIGNAL), 2);
    assert_int_equal(weir__sys.sendmsg(pair[0], &messages[0].msg_hdr, MSG_NOSIGNAL), 3);
    messages[0].msg_hdr = (struct msghdr){.msg_iov = &parts[0], .msg_iovlen = 1};
    messages[1].msg_hdr = (struct msghdr){.msg_iov = &parts[1], .msg_iovlen = 1};
    assert_int_equal(weir__sys.recvmmsg(pair[1], messages, 2, MSG_PEEK, &at_once), 1);
    assert_int_equal(weir__sys.recvmmsg(pair[1], messages, 2, 0, NULL), 2);
    assert_string_equal(memory[0], "a");
    assert_string_equal(memory[1], "ab");
    assert_int_equal(messages[1].msg_hdr.msg_flags, MSG_TRUNC);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

TEST(system, direct_calls_set_errno)
{
    struct epoll_event event;
    char byte = 0;
    int pair[2];

    assert_int_equal(open_pair(pair), 0);
    assert_int_equal(weir__sys.recv(pair[1], &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    (void)close(pair[1]);
    assert_int_equal(weir__sys.send(pair[0], &byte, 1, MSG_NOSIGNAL), -1);
    assert_int_equal(errno, EPIPE);
    (void)close(pair[0]);
    assert_int_equal(weir__sys.write(-1, &byte, 1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(weir__sys.epoll_wait(-1, &event, 1, 0), -1);
    assert_int_equal(errno, EBADF);
}

/* ---- sendfile ---- */

/* SIGPIPE would end this program. */
TEST(system, sendfile_raises_no_signal)
{
    sigset_t mask;
    int socket, file;

    open_broken_pipe(&socket, &file);
    assert_int_equal(weir__sys.sendfile(socket, file, NULL, 100), -1);
    assert_int_equal(errno, EPIPE);
    assert_false(is_pending(SIGPIPE));
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_false(sigismember(&mask, SIGPIPE));
    (void)close(socket);
    (void)close(file);
}

/* Closes as soon as there is something to read. */
static void read_one_and_go(void *arg)
{
    const int *socket = arg;
    char byte;

    while (recv(*socket, &byte, 1, MSG_DONTWAIT) < 0)
        continue;
    (void)close(*socket);
}

/* The kernel sends a file in parts, and sometimes the peer closes between two of them. */
TEST(system, sendfile_raises_no_signal_with_a_success_either)
{
    int file = memfd_create("file", MFD_CLOEXEC), room = FILE_SIZE, pair[2];
    weir__thread thread;

    assert_int_equal(ftruncate(file, FILE_SIZE), 0);
    for (int i = 0; i < 200; i++) {
        off_t offset = 0;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
                         0);
        assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
        assert_int_equal(weir__thread_start("reader", read_one_and_go, &pair[1], &thread), 0);
        assert_true(weir__sys.sendfile(pair[0], file, &offset, FILE_SIZE) > 0);
        weir__thread_join(&thread);
        assert_false(is_pending(SIGPIPE));
        (void)close(pair[0]);
    }
    (void)close(file);
}

TEST(system, sendfile_leaves_a_signal_alone_that_its_caller_blocks)
{
    sigset_t pipe_only, before, mask;
    int socket, file, number;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &pipe_only, &before), 0);
    assert_int_equal(raise(SIGPIPE), 0);
    open_broken_pipe(&socket, &file);
    assert_int_equal(weir__sys.sendfile(socket, file, NULL, 100), -1);
    assert_int_equal(errno, EPIPE);
    assert_true(is_pending(SIGPIPE));
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_true(sigismember(&mask, SIGPIPE));
    assert_int_equal(sigwait(&pipe_only, &number), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    (void)close(socket);
    (void)close(file);
}

TEST(system, epoll_pwait2_takes_what_libc_does)
{
    const struct timespec timeout = {.tv_nsec = 1000};
    int epoll = weir__sys.epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    int count = weir__sys.epoll_pwait2(epoll, &event, 1, &timeout, NULL);

    assert_true(count == 0 || errno == ENOSYS || errno == EPERM);
    (void)weir__sys.close(epoll);
}
