/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server on io_uring with nothing else in it, in two ways to receive: by multishot receive
 * over a ring of 256 x 8 KiB buffers, or (receive=poll) by multishot poll and a receive into one
 * hot buffer. Accepts are multishot, sends plain calls; what the socket does not take is kept.
 */
#include "echo/competitor.h"

#include <liburing.h>
#include <poll.h>
#include <stdalign.h>
#include <unistd.h>

#include "peers/backlog.h"

enum {
    ENTRIES = 4096,
    BUFFERS = 256,
    BUFFER_SIZE = 8 * 1024,
    WINDOW = 128 * 1024, /* of a plain receive */
    GROUP = 0,
};

/* What a completion is of: the upper half of its user data; the lower is the descriptor. */
enum { ACCEPTED, RECEIVED, READABLE, WRITABLE };

static struct io_uring ring;
static struct io_uring_buf_ring *buffer_ring;
static alignas(4096) char buffers[BUFFERS][BUFFER_SIZE];
static alignas(4096) char window[WINDOW];
static bool polls;

static void server_configure(bench_round *round)
{
    static const char *const ways[] = {"ring", "poll", NULL};

    polls = bench_choice(round, "receive", ways) == 1;
}

static struct io_uring_sqe *entry(void)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

    if (sqe == NULL) {
        io_uring_submit(&ring);
        sqe = io_uring_get_sqe(&ring);
    }
    return sqe;
}

static uint64_t data_of(int kind, int descriptor)
{
    return (uint64_t)kind << 32 | (uint32_t)descriptor;
}

static void start_accept(int listener)
{
    struct io_uring_sqe *sqe = entry();

    io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    io_uring_sqe_set_data64(sqe, data_of(ACCEPTED, listener));
}

static void start_receive(int descriptor)
{
    struct io_uring_sqe *sqe = entry();

    if (polls) {
        io_uring_prep_poll_multishot(sqe, descriptor, POLLIN);
        io_uring_sqe_set_data64(sqe, data_of(READABLE, descriptor));
        return;
    }
    io_uring_prep_recv_multishot(sqe, descriptor, NULL, 0, 0);
    io_uring_sqe_set_flags(sqe, IOSQE_BUFFER_SELECT);
    sqe->buf_group = GROUP;
    io_uring_sqe_set_data64(sqe, data_of(RECEIVED, descriptor));
}

static void await_room(int descriptor)
{
    struct io_uring_sqe *sqe = entry();

    io_uring_prep_poll_add(sqe, descriptor, POLLOUT);
    io_uring_sqe_set_data64(sqe, data_of(WRITABLE, descriptor));
}

/* A poll that is armed would keep the socket open. */
static void hang_up(int descriptor)
{
    struct io_uring_sqe *sqe;

    if (polls) {
        sqe = entry();
        io_uring_prep_cancel64(sqe, data_of(READABLE, descriptor), 0);
        io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
        io_uring_sqe_set_data64(sqe, data_of(WRITABLE, 0));
    }
    backlog_clear(descriptor);
    close(descriptor);
}

/* A socket that is broken ends its receive by itself. */
static void answer(int descriptor, const char *bytes, size_t length)
{
    ssize_t sent = 0;

    if (backlog_is_empty(descriptor)) {
        sent = send_now(descriptor, bytes, length);
        if (sent < 0 || (size_t)sent == length)
            return;
        await_room(descriptor);
    }
    backlog_add(descriptor, bytes + sent, length - (size_t)sent);
}

static void give_back(unsigned id)
{
    io_uring_buf_ring_add(buffer_ring, buffers[id], BUFFER_SIZE, (unsigned short)id,
                          io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(buffer_ring, 1);
}

static void on_received(int descriptor, const struct io_uring_cqe *cqe)
{
    if (cqe->res > 0) {
        unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;

        answer(descriptor, buffers[id], (size_t)cqe->res);
        give_back(id);
    } else if (cqe->res != -ENOBUFS) {
        hang_up(descriptor);
        return;
    }
    if (!(cqe->flags & IORING_CQE_F_MORE))
        start_receive(descriptor);
}

/* A poll reports new data once: reads until a read is short. */
static void on_readable(int descriptor, const struct io_uring_cqe *cqe)
{
    ssize_t got;

    if (cqe->res == -ECANCELED)
        return;
    do {
        got = recv(descriptor, window, WINDOW, MSG_DONTWAIT);
        if (got > 0)
            answer(descriptor, window, (size_t)got);
    } while (got == WINDOW);
    if (got == 0 || (got < 0 && errno != EAGAIN))
        hang_up(descriptor);
    else if (!(cqe->flags & IORING_CQE_F_MORE))
        start_receive(descriptor);
}

static void on_writable(int descriptor)
{
    if (!backlog_is_empty(descriptor) && backlog_send(descriptor) && !backlog_is_empty(descriptor))
        await_room(descriptor);
}

static void on_accepted(int listener, const struct io_uring_cqe *cqe)
{
    if (cqe->res >= 0) {
        bench_require(cqe->res < DESCRIPTORS_MAX, "so many connections");
        start_receive(cqe->res);
    }
    if (!(cqe->flags & IORING_CQE_F_MORE))
        start_accept(listener);
}

static void on_completion(const struct io_uring_cqe *cqe)
{
    int descriptor = (int)(uint32_t)cqe->user_data;

    switch (cqe->user_data >> 32) {
    case ACCEPTED:
        on_accepted(descriptor, cqe);
        break;
    case RECEIVED:
        on_received(descriptor, cqe);
        break;
    case READABLE:
        on_readable(descriptor, cqe);
        break;
    default:
        on_writable(descriptor);
    }
}

static void open_ring(void)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
    };
    struct io_uring_buf_reg registration = {.ring_entries = BUFFERS, .bgid = GROUP};

    bench_require(io_uring_queue_init_params(ENTRIES, &ring, &params) == 0, "io_uring_setup");
    buffer_ring = aligned_alloc(4096, BUFFERS * sizeof(struct io_uring_buf));
    bench_require(buffer_ring != NULL, "allocating");
    io_uring_buf_ring_init(buffer_ring);
    registration.ring_addr = (uintptr_t)buffer_ring;
    bench_require(io_uring_register_buf_ring(&ring, &registration, 0) == 0, "a buffer ring");
    for (unsigned i = 0; i < BUFFERS; i++)
        give_back(i);
}

static void server_run(int cpu)
{
    int listener = echo_server_listen();

    bench_pin(cpu);
    open_ring();
    start_accept(listener);
    io_uring_submit(&ring);
    echo_server_announce(listener);
    for (;;) {
        struct io_uring_cqe *cqe;
        unsigned head, count = 0;

        io_uring_submit_and_wait(&ring, 1);
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            on_completion(cqe);
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
