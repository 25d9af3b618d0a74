/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated io_uring. The same operations, on the two ends of a Unix socket, give the same
 * completions as in the kernel, if this one has io_uring.
 *
 * A script writes a log of completions: the letter of its operation, the result, `+` if more
 * follow, `b` if there is a buffer.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/uring.h"
#include "support/executor/log_capture.h"
#include "support/sim/net.h"

#define BUFFERS 4
#define BUFFER_SIZE 8
#define WAIT_NS weir_ms(20)

struct bench {
    const weir__uring_calls *calls;
    const weir__system *system;
    weir__uring loop; /* without handles: the simulator looks at them */
    int a, b;
    char memory[BUFFERS][BUFFER_SIZE];
    char log[512];
    size_t length;
};

typedef void script(struct bench *bench);

static _Alignas(4096) char buffer_ring[4096];

/* ---- what scripts do ---- */

static struct io_uring_sqe *operation(struct bench *bench)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&bench->loop.ring);

    memset(sqe, 0, sizeof(*sqe));
    return sqe;
}

static void poll_a(struct bench *bench, char letter, bool again)
{
    struct io_uring_sqe *sqe = operation(bench);

    if (again)
        io_uring_prep_poll_multishot(sqe, bench->a, POLLIN);
    else
        io_uring_prep_poll_add(sqe, bench->a, POLLIN);
    sqe->user_data = (uint64_t)letter;
}

static void receive_a(struct bench *bench, char letter)
{
    struct io_uring_sqe *sqe = operation(bench);

    io_uring_prep_recv_multishot(sqe, bench->a, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->user_data = (uint64_t)letter;
}

static void send_a(struct bench *bench, char letter, const void *bytes, size_t length)
{
    struct io_uring_sqe *sqe = operation(bench);

    io_uring_prep_send(sqe, bench->a, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    sqe->user_data = (uint64_t)letter;
}

static void cancel(struct bench *bench, char letter)
{
    struct io_uring_sqe *sqe = operation(bench);

    io_uring_prep_cancel64(sqe, (uint64_t)letter, 0);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    sqe->user_data = 'c';
}

static void give_buffer(struct bench *bench, unsigned id)
{
    struct io_uring_buf_ring *buffers = (struct io_uring_buf_ring *)(void *)buffer_ring;

    io_uring_buf_ring_add(buffers, bench->memory[id], BUFFER_SIZE, (unsigned short)id, BUFFERS - 1,
                          0);
    io_uring_buf_ring_advance(buffers, 1);
}

static void write_b(struct bench *bench, const char *text)
{
    (void)bench->system->send(bench->b, text, strlen(text), MSG_NOSIGNAL);
}

static void note(struct bench *bench, char letter, long result, const char *rest)
{
    bench->length +=
        (size_t)snprintf(bench->log + bench->length, sizeof(bench->log) - bench->length, "%c%ld%s ",
                         letter, result, rest);
}

/* Submits, waits for a completion and logs all that there are. */
static void turn(struct bench *bench)
{
    const struct __kernel_timespec timeout = {.tv_nsec = WAIT_NS};
    struct io_uring_getevents_arg argument = {.ts = (uintptr_t)&timeout};
    struct io_uring_cq *queue = &bench->loop.ring.cq;
    unsigned submitted = bench->loop.ring.sq.sqe_tail - *bench->loop.ring.sq.khead;
    int err;

    *bench->loop.ring.sq.ktail = bench->loop.ring.sq.sqe_tail;
    err = bench->calls->enter((unsigned)bench->loop.ring.ring_fd, submitted, 1,
                              IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                              (sigset_t *)(void *)&argument, sizeof(argument));
    if (err < 0)
        note(bench, '!', err, "");
    for (; *queue->khead != *queue->ktail; ++*queue->khead) {
        const struct io_uring_cqe *cqe = &queue->cqes[*queue->khead & queue->ring_mask];
        bool has_more = (cqe->flags & IORING_CQE_F_MORE) != 0;
        bool has_buffer = (cqe->flags & IORING_CQE_F_BUFFER) != 0;

        note(bench, (char)cqe->user_data, cqe->res,
             has_more && has_buffer ? "+b"
             : has_more             ? "+"
             : has_buffer           ? "b"
                                    : "");
    }
    note(bench, '|', (*bench->loop.ring.sq.kflags & IORING_SQ_CQ_OVERFLOW) != 0, "");
}

/* ---- the two kernels ---- */

static int open_ring(struct bench *bench)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
                 IORING_SETUP_DEFER_TASKRUN,
        .cq_entries = 4,
    };
    struct io_uring_buf_reg buffers = {.ring_addr = (uintptr_t)buffer_ring,
                                       .ring_entries = BUFFERS};
    int err = bench->calls->setup(4, &bench->loop.ring, &params);

    memset(buffer_ring, 0, sizeof(buffer_ring));
    if (err == 0)
        err = bench->calls->enable(&bench->loop.ring);
    if (err == 0)
        err = bench->calls->register_buffers(&bench->loop.ring, &buffers, 0);
    return err;
}

static script *script_of_world;
static struct bench simulated;

static void in_world(struct net *net)
{
    int listener = net_socket(AF_UNIX, SOCK_STREAM);

    (void)net;
    weir__sim_kernel_of_world =
        (weir__sim_kernel){.submissions = 256, .completions = 4096, .receives = 32};
    memset(&simulated, 0, sizeof(simulated));
    simulated.calls = weir__seams_get()->uring_calls;
    simulated.system = weir__seams_get()->system;
    EXPECT_EQUAL(net_bind(listener, "unix:/a"), 0);
    EXPECT_EQUAL(net_listen(listener, 1), 0);
    simulated.a = net_socket(AF_UNIX, SOCK_STREAM);
    EXPECT_EQUAL(net_connect(simulated.a, "unix:/a"), 0);
    simulated.b = net_accept(listener);
    EXPECT_EQUAL(open_ring(&simulated), 0);
    script_of_world(&simulated);
    simulated.calls->exit(&simulated.loop.ring);
    (void)net_close(simulated.a);
    (void)net_close(simulated.b);
    (void)net_close(listener);
}

static void in_kernel(script *run, const char *expected)
{
    struct bench real = {.calls = weir__seams_get()->uring_calls,
                         .system = weir__seams_get()->system};
    int ends[2], err;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    real.a = ends[0];
    real.b = ends[1];
    err = open_ring(&real);
    if (err == 0) { /* else this kernel has no io_uring */
        run(&real);
        assert_string_equal(real.log, expected);
        real.calls->exit(&real.loop.ring);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void compare(script *run, const char *expected)
{
    script_of_world = run;
    net_run(WEIR_SIM_OPTIONS(.uring = true), in_world);
    assert_string_equal(simulated.log, expected);
    in_kernel(run, expected);
}

/* ---- polls ---- */

static void poll_once(struct bench *bench)
{
    poll_a(bench, 'p', false);
    turn(bench);
    write_b(bench, "x");
    turn(bench);
    poll_a(bench, 'q', false);
    turn(bench);
}

TEST(uring, a_poll_reports_an_event_or_the_state)
{
    compare(poll_once, "|0 p1 |0 q1 |0 ");
}

static void poll_edges(struct bench *bench)
{
    write_b(bench, "x");
    poll_a(bench, 'p', true);
    turn(bench);
    turn(bench);
    write_b(bench, "x");
    turn(bench);
    turn(bench);
}

TEST(uring, a_multishot_poll_reports_edges)
{
    compare(poll_edges, "p1+ |0 !-62 |0 p1+ |0 !-62 |0 ");
}

/* ---- receives ---- */

static void receive(struct bench *bench)
{
    for (unsigned i = 0; i < BUFFERS; i++)
        give_buffer(bench, i);
    receive_a(bench, 'r');
    turn(bench);
    write_b(bench, "abc");
    turn(bench);
    write_b(bench, "0123456789");
    turn(bench);
    write_b(bench, "0123456789");
    turn(bench);
}

TEST(uring, a_multishot_receive_splits_data_and_ends_without_a_buffer)
{
    compare(receive, "|0 r3+b |0 r8+b r2+b |0 r8+b r-105 |0 ");
}

static void receive_the_end(struct bench *bench)
{
    give_buffer(bench, 0);
    give_buffer(bench, 1);
    receive_a(bench, 'r');
    write_b(bench, "abc");
    (void)bench->system->shutdown(bench->b, SHUT_WR);
    turn(bench);
    receive_a(bench, 's');
    turn(bench);
}

TEST(uring, a_multishot_receive_ends_with_the_stream)
{
    compare(receive_the_end, "r3+b r0 |0 s0 |0 ");
}

/* ---- cancellations ---- */

static void cancel_some(struct bench *bench)
{
    give_buffer(bench, 0);
    receive_a(bench, 'r');
    poll_a(bench, 'p', true);
    turn(bench);
    write_b(bench, "x");
    cancel(bench, 'r');
    cancel(bench, 'p');
    cancel(bench, 'n');
    turn(bench);
}

/* What has happened but was not processed is cancelled, too. */
TEST(uring, a_cancelled_operation_completes_once_more)
{
    compare(cancel_some, "|0 c-2 p-125 r-125 |0 ");
}

/* ---- sends ---- */

static void send_much(struct bench *bench)
{
    static char bytes[1 << 20];
    ssize_t length;

    send_a(bench, 's', "abc", 3);
    turn(bench);
    do {
        length = bench->system->send(bench->a, bytes, sizeof(bytes), MSG_DONTWAIT);
    } while (length > 0);
    send_a(bench, 't', bytes, sizeof(bytes));
    turn(bench);
}

TEST(uring, a_send_does_not_wait)
{
    compare(send_much, "s3 |0 t-11 |0 ");
}

/* ---- the queue ---- */

static void overflow(struct bench *bench)
{
    poll_a(bench, 'p', true);
    for (unsigned i = 0; i < 3; i++)
        send_a(bench, 's', "x", 1);
    turn(bench);
    for (unsigned i = 0; i < 4; i++)
        send_a(bench, 't', "x", 1);
    write_b(bench, "x");
    turn(bench);
    turn(bench);
}

TEST(uring, a_full_queue_ends_a_multishot_operation)
{
    compare(overflow, "s1 s1 s1 |0 t1 t1 t1 t1 |1 p1 |0 ");
}

/* ---- worlds ---- */

static enum weir_io io_of_a_group(enum weir_io io)
{
    weir_group *group = NULL;
    enum weir_io result = WEIR_IO_NONE;

    if (weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = io), &group) == 0)
        result = weir_loop_io(weir_group_at(group, 0));
    EXPECT_EQUAL(weir_group_shutdown(group, 0, weir_seconds(1)), 0);
    weir_group_release(group);
    return result;
}

static void create_groups(struct net *net)
{
    (void)net;
    EXPECT_EQUAL(io_of_a_group(WEIR_IO_AUTO), WEIR_IO_URING);
    EXPECT_EQUAL(io_of_a_group(WEIR_IO_URING), WEIR_IO_URING);
    EXPECT_EQUAL(io_of_a_group(WEIR_IO_EPOLL), WEIR_IO_EPOLL);
}

TEST(uring, is_what_loops_of_a_world_run_on)
{
    net_run(WEIR_SIM_OPTIONS(.uring = true), create_groups);
}

/* The eventfd is the only descriptor: the loop falls back to readiness. */
static void create_without_descriptors(struct net *net)
{
    (void)net;
    EXPECT_EQUAL(io_of_a_group(WEIR_IO_AUTO), WEIR_IO_EPOLL);
}

TEST(uring, that_is_refused_is_replaced_by_readiness)
{
    log_capture_start();
    net_run(WEIR_SIM_OPTIONS(.uring = true, .max_descriptors = 1), create_without_descriptors);
    assert_log_contains("no descriptor for io_uring");
}

static void close_in_flight(struct net *net)
{
    struct bench bench = {.calls = weir__seams_get()->uring_calls,
                          .system = weir__seams_get()->system};

    net_pair(net, &bench.a, &bench.b);
    weir__sim_uring_begin();
    EXPECT_EQUAL(open_ring(&bench), 0);
    poll_a(&bench, 'p', false);
    turn(&bench);
    (void)net_close(bench.a);
}

TEST(uring, notices_a_descriptor_that_closes_too_early)
{
    assert_true(net_fails(close_in_flight, "was closed with an operation"));
}
