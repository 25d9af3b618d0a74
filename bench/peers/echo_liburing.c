/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server on io_uring with nothing else in it, in two ways to receive.
 *
 * receive=ring: accepts and receives are multishot, into a ring of 512 x 4 KiB buffers, and sends
 * go through the ring: all of a turn is submitted by the call that waits for the next one. A
 * connection has one send in flight, so that its bytes stay in order; what arrives meanwhile is
 * sent by the next one.
 *
 * receive=poll: multishot poll, a receive into one hot buffer and a plain send, for large messages.
 *
 * What a socket does not take is copied, and sent when it is writable again.
 */
#include "echo/competitor.h"

#include <liburing.h>
#include <poll.h>
#include <stdalign.h>
#include <unistd.h>

#include "peers/backlog.h"

enum {
    ENTRIES = 4096,
    BUFFERS = 512,
    BUFFER_SIZE = 4 * 1024,
    WINDOW = 128 * 1024, /* of a plain receive */
    GROUP = 0,
    NONE = -1,
    SEND_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL,
};

/* What a completion is of: the upper half of its user data; the lower is the descriptor. */
enum { ACCEPTED, RECEIVED, SENT, READABLE, WRITABLE };

/* Buffers in a row, linked by their numbers. */
struct chain {
    int first;
    int last;
};

/* All zero between connections. */
struct socket_state {
    bool is_sending;
    bool is_closing; /* the peer has closed; closes when the send is done */
    struct chain sending;
    struct chain queued; /* empty unless it is sending */
};

static struct io_uring ring;
static struct io_uring_buf_ring *buffer_ring;
static alignas(4096) char buffers[BUFFERS][BUFFER_SIZE];
static int lengths[BUFFERS]; /* of the bytes in each buffer, */
static int next[BUFFERS];    /* and the one after it in its chain */
static struct socket_state sockets[DESCRIPTORS_MAX];
static struct iovec vectors[BUFFERS]; /* of this turn's sends of several buffers */
static struct msghdr messages[BUFFERS];
static unsigned vector_count, message_count;
static int starved[DESCRIPTORS_MAX]; /* receives that ended because no buffer was left */
static unsigned starved_count;
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
    sockets[descriptor] = (struct socket_state){0};
    close(descriptor);
}

static void give_back(int id)
{
    io_uring_buf_ring_add(buffer_ring, buffers[id], BUFFER_SIZE, (unsigned short)id,
                          io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(buffer_ring, 1);
}

/* A send does not wait: it is made during the submission, which its vectors therefore outlive. */
static void send_chain(int descriptor, struct chain chain)
{
    struct socket_state *self = &sockets[descriptor];
    struct io_uring_sqe *sqe = entry();

    self->is_sending = true;
    self->sending = chain;
    if (chain.first == chain.last) {
        io_uring_prep_send(sqe, descriptor, buffers[chain.first], (size_t)lengths[chain.first],
                           SEND_FLAGS);
    } else {
        struct msghdr *message = &messages[message_count++];

        *message = (struct msghdr){.msg_iov = &vectors[vector_count]};
        for (int id = chain.first; id != NONE; id = next[id]) {
            vectors[vector_count++] = (struct iovec){buffers[id], (size_t)lengths[id]};
            message->msg_iovlen++;
        }
        io_uring_prep_sendmsg(sqe, descriptor, message, SEND_FLAGS);
    }
    io_uring_sqe_set_data64(sqe, data_of(SENT, descriptor));
}

static void answer_by_ring(int descriptor, int id, int length)
{
    struct socket_state *self = &sockets[descriptor];

    if (!backlog_is_empty(descriptor)) {
        backlog_add(descriptor, buffers[id], (size_t)length);
        give_back(id);
        return;
    }
    lengths[id] = length;
    next[id] = NONE;
    if (!self->is_sending) {
        self->queued.first = NONE;
        send_chain(descriptor, (struct chain){id, id});
    } else if (self->queued.first == NONE) {
        self->queued = (struct chain){id, id};
    } else {
        next[self->queued.last] = id;
        self->queued.last = id;
    }
}

/* Gives the buffers back, and copies what follows the first `sent` bytes unless it is negative. */
static void end_chain(int descriptor, int first, int sent)
{
    for (int id = first, following; id != NONE; id = following) {
        following = next[id];
        if (sent >= 0 && sent < lengths[id])
            backlog_add(descriptor, buffers[id] + sent, (size_t)(lengths[id] - sent));
        if (sent >= 0)
            sent = sent > lengths[id] ? sent - lengths[id] : 0;
        give_back(id);
    }
}

static void on_sent(int descriptor, const struct io_uring_cqe *cqe)
{
    struct socket_state *self = &sockets[descriptor];
    struct chain queued = self->queued;

    self->is_sending = false;
    self->queued.first = NONE;
    end_chain(descriptor, self->sending.first, cqe->res == -EAGAIN ? 0 : cqe->res);
    if (self->is_closing || (cqe->res < 0 && cqe->res != -EAGAIN)) {
        end_chain(descriptor, queued.first, -1); /* a receive of a broken socket ends by itself */
        if (self->is_closing)
            hang_up(descriptor);
    } else if (!backlog_is_empty(descriptor)) {
        end_chain(descriptor, queued.first, 0);
        await_room(descriptor);
    } else if (queued.first != NONE) {
        send_chain(descriptor, queued);
    }
}

static void on_received(int descriptor, const struct io_uring_cqe *cqe)
{
    if (cqe->res > 0) {
        answer_by_ring(descriptor, (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT), cqe->res);
    } else if (cqe->res == -ENOBUFS) {
        starved[starved_count++] = descriptor;
        return;
    } else if (sockets[descriptor].is_sending) {
        sockets[descriptor].is_closing = true;
        return;
    } else {
        hang_up(descriptor);
        return;
    }
    if (!(cqe->flags & IORING_CQE_F_MORE))
        start_receive(descriptor);
}

/* A socket that is broken ends its poll by itself. */
static void answer_by_call(int descriptor, const char *bytes, size_t length)
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

/* A poll reports new data once: reads until a read is short. */
static void on_readable(int descriptor, const struct io_uring_cqe *cqe)
{
    ssize_t got;

    if (cqe->res == -ECANCELED)
        return;
    do {
        got = recv(descriptor, window, WINDOW, MSG_DONTWAIT);
        if (got > 0)
            answer_by_call(descriptor, window, (size_t)got);
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
    case SENT:
        on_sent(descriptor, cqe);
        break;
    case READABLE:
        on_readable(descriptor, cqe);
        break;
    default:
        on_writable(descriptor);
    }
}

/*
 * All that was submitted before has been issued, so its vectors are free again. Completions that an
 * entry's submission adds are left for the next turn.
 */
static void run_turn(void)
{
    struct io_uring_cqe *cqe;
    unsigned head, count = 0, ready = io_uring_cq_ready(&ring);

    vector_count = message_count = 0;
    io_uring_for_each_cqe(&ring, head, cqe)
    {
        if (count == ready)
            break;
        on_completion(cqe);
        count++;
    }
    io_uring_cq_advance(&ring, count);
    while (starved_count > 0) /* the sends have given their buffers back */
        start_receive(starved[--starved_count]);
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
    for (int i = 0; i < BUFFERS; i++)
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
        io_uring_submit_and_wait(&ring, 1);
        run_turn();
    }
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
