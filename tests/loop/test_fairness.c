/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I/O does not starve tasks, and tasks do not starve I/O: each is served within the cap of one
 * turn, or of two. The loops here are never idle, so time is measured as CPU time of their threads,
 * which a busy machine does not change.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loop/loop.h"
#include "support/executor/call_counter.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/suite.h"

#define CAP_NS weir_ms(2)
#define APART_NS weir_us(500) /* so that the next comes when the loop does I/O again */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 9
#define SPRINGS_MAX 40
#define WINDOW 4096
#define LIMIT_NS (30 * CAP_NS)
#else
#define ROUNDS 15
#define SPRINGS_MAX 200
#define WINDOW WEIR__IO_WINDOW
#define LIMIT_NS (10 * CAP_NS)
#endif

/* A socket that never runs dry: what was read is written again, to its other end. */
struct spring {
    weir__io_handle handle;
    struct fountain *fountain;
    int source;
    uint64_t reads;
};

struct fountain {
    weir_executor *loop;
    size_t count;
    struct spring springs[SPRINGS_MAX];
    struct call_counter gone;
};

static struct spring *spring_of(weir__io_handle *handle)
{
    return WEIR_CONTAINER_OF(handle, struct spring, handle);
}

static void pour(const struct spring *spring, size_t length)
{
    static const char water[WINDOW];

    while (length > 0) {
        ssize_t count = send(spring->source, water, length, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (count <= 0)
            return;
        length -= (size_t)count;
    }
}

static void on_received(weir__io_handle *handle, const weir__io_block *block, size_t length)
{
    const weir__io_memory *memory = &handle->io->memory;

    memory->free(memory->arg, block);
    spring_of(handle)->reads++;
    pour(spring_of(handle), length);
}

static void on_read_complete(weir__io_handle *handle)
{
    (void)handle;
}

static void on_ended(weir__io_handle *handle, int err)
{
    (void)handle;
    (void)err; /* then the spring is dry, and the test sees that it was not read any more */
}

static void on_detached(weir__io_handle *handle)
{
    call_counter_add(&spring_of(handle)->fountain->gone);
}

static const weir__io_owner spring_owner = {
    .received = on_received,
    .receive_ended = on_ended,
    .read_complete = on_read_complete,
    .failed = on_ended,
    .detached = on_detached,
};

static void turn_on(void *arg)
{
    struct fountain *fountain = arg;

    for (size_t i = 0; i < fountain->count; i++) {
        weir__io_handle *handle = &fountain->springs[i].handle;

        if (weir__io_attach(weir__loop_io(fountain->loop), handle) == 0)
            weir__io_receive_start(handle, false);
    }
}

static void turn_off(void *arg)
{
    struct fountain *fountain = arg;

    for (size_t i = 0; i < fountain->count; i++)
        if (weir__io_is_attached(&fountain->springs[i].handle))
            weir__io_close(&fountain->springs[i].handle);
}

static struct fountain *fountain_open(weir_executor *loop, size_t count)
{
    struct fountain *fountain = calloc(1, sizeof(*fountain));

    assert_non_null(fountain);
    fountain->loop = loop;
    fountain->count = count;
    for (size_t i = 0; i < count; i++) {
        struct spring *spring = &fountain->springs[i];
        int pair[2];

        socket_pair(PAIR_UNIX, pair);
        weir__io_handle_init(&spring->handle, pair[0], &spring_owner);
        spring->fountain = fountain;
        spring->handle.window = WINDOW;
        spring->source = pair[1];
        for (int j = 0; j < 4; j++)
            pour(spring, WINDOW);
    }
    run_on_executor(loop, turn_on, fountain);
    return fountain;
}

/* Each spring has been read from: they do not starve each other, either. */
static void fountain_close(struct fountain *fountain)
{
    run_on_executor(fountain->loop, turn_off, fountain);
    assert_true(call_counter_await(&fountain->gone, (uint32_t)fountain->count));
    for (size_t i = 0; i < fountain->count; i++) {
        assert_true(fountain->springs[i].reads > 0);
        (void)close(fountain->springs[i].source);
    }
    free(fountain);
}

/* A task that submits itself again, for ever. */
struct mill {
    weir_executor *loop;
    _Atomic bool stopped;
    struct call_counter still;
};

static void grind(void *arg, int status)
{
    struct mill *mill = arg;

    if (status < 0 || atomic_load(&mill->stopped) || weir_execute(mill->loop, grind, mill) < 0)
        call_counter_add(&mill->still);
}

static void mill_start(struct mill *mill, weir_executor *loop)
{
    *mill = (struct mill){.loop = loop};
    assert_int_equal(weir_execute(loop, grind, mill), 0);
}

static void mill_stop(struct mill *mill)
{
    atomic_store(&mill->stopped, true);
    assert_true(call_counter_await(&mill->still, 1));
}

/* ---- how long it takes ---- */

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static int64_t median_of(int64_t times_ns[ROUNDS])
{
    qsort(times_ns, ROUNDS, sizeof(times_ns[0]), compare);
    return times_ns[ROUNDS / 2];
}

/* The clock that counts the CPU time of a loop's thread: its number is made of the thread's. */
static clockid_t busy_clock(weir_executor *loop)
{
    weir_thread_properties thread;

    assert_int_equal(weir_executor_thread(loop, &thread), 0);
    return (clockid_t)(~(uint32_t)thread.id << 3 | 6);
}

static int64_t busy_ns(clockid_t clock)
{
    struct timespec time;

    assert_int_equal(clock_gettime(clock, &time), 0);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* From the submission of a task until it runs. */
struct stamp {
    int64_t run_ns;
    struct call_counter counter;
};

static void stamp_it(void *arg, int status)
{
    struct stamp *stamp = arg;

    stamp->run_ns = busy_ns(CLOCK_THREAD_CPUTIME_ID);
    call_counter_task(&stamp->counter, status);
}

static int64_t task_latency(weir_executor *loop)
{
    clockid_t clock = busy_clock(loop);
    int64_t times_ns[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        struct stamp stamp = {0};
        int64_t begin_ns;

        weir__thread_sleep(APART_NS);
        begin_ns = busy_ns(clock);
        assert_int_equal(weir_execute(loop, stamp_it, &stamp), 0);
        assert_true(call_counter_await(&stamp.counter, 1));
        times_ns[i] = stamp.run_ns - begin_ns;
    }
    return median_of(times_ns);
}

/* From a byte's way to the loop until it is back. */
struct echo {
    weir__io_handle handle;
    weir_executor *loop;
    char byte;
    struct call_counter gone;
};

static void on_echo(weir__io_handle *handle, const weir__io_block *block, size_t length)
{
    const weir__io_memory *memory = &handle->io->memory;

    struct echo *echo = WEIR_CONTAINER_OF(handle, struct echo, handle);

    echo->byte = *(char *)block->base; /* lent until it is sent */
    (void)weir__io_send(handle, &(struct iovec){&echo->byte, length}, 1); /* it has room for it */
    memory->free(memory->arg, block);
}

static void on_echo_sent(weir__io_handle *handle, ssize_t count)
{
    (void)handle;
    assert_int_equal(count, 1);
}

static void on_echo_detached(weir__io_handle *handle)
{
    call_counter_add(&WEIR_CONTAINER_OF(handle, struct echo, handle)->gone);
}

static const weir__io_owner echo_owner = {
    .received = on_echo,
    .sent = on_echo_sent,
    .receive_ended = on_ended,
    .read_complete = on_read_complete,
    .failed = on_ended,
    .detached = on_echo_detached,
};

static void start_echo(void *arg)
{
    struct echo *echo = arg;

    if (weir__io_attach(weir__loop_io(echo->loop), &echo->handle) == 0)
        weir__io_receive_start(&echo->handle, false);
}

static void close_echo(void *arg)
{
    weir__io_close(&((struct echo *)arg)->handle);
}

static int64_t echo_latency(weir_executor *loop)
{
    struct echo echo = {.loop = loop};
    clockid_t clock = busy_clock(loop);
    int64_t times_ns[ROUNDS];
    int pair[2];

    socket_pair(PAIR_UNIX, pair);
    weir__io_handle_init(&echo.handle, pair[0], &echo_owner);
    run_on_executor(loop, start_echo, &echo);
    for (int i = 0; i < ROUNDS; i++) {
        struct pollfd answer = {.fd = pair[1], .events = POLLIN};
        int64_t begin_ns = busy_ns(clock);
        char byte = 'e';

        assert_int_equal(send(pair[1], &byte, 1, MSG_NOSIGNAL), 1);
        assert_int_equal(poll(&answer, 1, (int)(TEST_TIMEOUT_NS / weir_ms(1))), 1);
        assert_int_equal(recv(pair[1], &byte, 1, 0), 1);
        times_ns[i] = busy_ns(clock) - begin_ns;
    }
    run_on_executor(loop, close_echo, &echo);
    assert_true(call_counter_await(&echo.gone, 1));
    (void)close(pair[1]);
    return median_of(times_ns);
}

/* ---- the tests ---- */

static weir_group *make_loop(const struct backend *backend)
{
    weir_group *group;

    assert_int_equal(
        weir_group_create(
            WEIR_GROUP_OPTIONS(.threads = 1, .io = backend->io, .task_cap_ns = CAP_NS), &group),
        0);
    return group;
}

/* The global executor may be the last to release a loop and its descriptors. */
static void end_loop(weir_group *group)
{
    end_group(group);
    global_executor_stop();
}

TEST_EACH_BACKEND(fairness, an_echo_answers_within_the_cap_beside_an_endless_task)
{
    weir_group *group = make_loop(driver->backend);
    weir_executor *loop = weir_group_at(group, 0);
    struct mill mill;

    mill_start(&mill, loop);
    assert_in_range(echo_latency(loop), 0, LIMIT_NS);
    mill_stop(&mill);
    end_loop(group);
}

static void flood(const struct backend *backend, size_t springs, bool grinds)
{
    weir_group *group = make_loop(backend);
    weir_executor *loop = weir_group_at(group, 0);
    struct fountain *fountain = fountain_open(loop, springs);
    struct mill mill;

    if (grinds)
        mill_start(&mill, loop);
    assert_in_range(task_latency(loop), 0, LIMIT_NS);
    assert_in_range(echo_latency(loop), 0, grinds ? 20 * LIMIT_NS : 10 * LIMIT_NS);
    if (grinds)
        mill_stop(&mill);
    fountain_close(fountain);
    end_loop(group);
}

TEST_EACH_BACKEND(fairness, a_task_runs_within_the_cap_beside_a_flooded_socket)
{
    flood(driver->backend, 1, false);
}

TEST_EACH_BACKEND(fairness, a_task_runs_within_the_cap_beside_many_flooded_sockets)
{
    flood(driver->backend, SPRINGS_MAX, false);
}

TEST_EACH_BACKEND(fairness, everybody_is_served_beside_a_flood_and_an_endless_task)
{
    flood(driver->backend, SPRINGS_MAX, true);
}
