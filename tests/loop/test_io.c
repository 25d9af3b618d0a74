/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code shared by all backends, tested on one whose events are written by the test: the order of
 * callbacks, what a wait waits for, and how a handle leaves.
 */
#include "loop/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>

#include "os/clock.h"
#include "support/loop/faults.h"
#include "support/loop/scripted.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/test.h"

#define NOTES_MAX 64

/* Callbacks so far: a letter for the handle and one for the callback. */
static char history[512];

struct note {
    weir__io_handle handle;
    char name;
    int err;
    void (*react)(struct note *note);
    struct note *other;
};

static void record(weir__io_handle *handle, char letter)
{
    struct note *note = WEIR_CONTAINER_OF(handle, struct note, handle);
    size_t length = strlen(history);

    if (length + 2 < sizeof(history)) {
        history[length] = note->name;
        history[length + 1] = letter;
    }
    if (note->react != NULL)
        note->react(note);
}

static void on_polled(weir__io_handle *handle, unsigned events)
{
    (void)events;
    record(handle, 'p');
}

static void on_connected(weir__io_handle *handle, int err)
{
    WEIR_CONTAINER_OF(handle, struct note, handle)->err = err;
    record(handle, 'c');
}

static void on_sent(weir__io_handle *handle, ssize_t count)
{
    (void)count;
    record(handle, 's');
}

static void on_failed(weir__io_handle *handle, int err)
{
    WEIR_CONTAINER_OF(handle, struct note, handle)->err = err;
    record(handle, 'f');
}

static void on_detached(weir__io_handle *handle)
{
    record(handle, 'x');
}

static const weir__io_owner owner = {
    .polled = on_polled,
    .connected = on_connected,
    .sent = on_sent,
    .failed = on_failed,
    .detached = on_detached,
};

struct stage {
    weir__io *io;
    struct scripted *script;
    struct note notes[NOTES_MAX];
    size_t descriptors;
};

/* So many handles, named from 'A' on. */
static void fixture_open(struct stage *stage, size_t count)
{
    char reason[64];

    memset(history, 0, sizeof(history));
    *stage = (struct stage){.descriptors = descriptors_open()};
    assert_int_equal(backend_create(&scripted_level, &stage->io, reason, sizeof(reason)), 0);
    assert_int_equal(weir__io_begin(stage->io), 0);
    stage->script = scripted_of(stage->io);
    for (size_t i = 0; i < count; i++) {
        struct note *note = &stage->notes[i];

        note->name = (char)('A' + i);
        weir__io_handle_init(&note->handle, open("/dev/null", O_RDONLY | O_CLOEXEC), &owner);
        assert_int_equal(weir__io_attach(stage->io, &note->handle), 0);
    }
}

static void stage_close(struct stage *stage)
{
    for (size_t i = 0; i < NOTES_MAX; i++)
        if (stage->notes[i].handle.io != NULL)
            weir__io_close(&stage->notes[i].handle);
    while (weir__io_dispatch(stage->io, WEIR_NEVER) || weir__io_has_pending(stage->io)) {
    }
    assert_int_equal(atomic_load(&stage->io->stats.handles), 0);
    weir__io_destroy(stage->io);
    assert_int_equal(descriptors_open(), stage->descriptors);
}

static void want_polled(struct note *note)
{
    weir__io_poll_start(&note->handle, POLLIN);
    scripted_event(&note->handle, POLLIN);
}

/* ---- the order ---- */

TEST(io, pending_handles_come_before_the_batch_and_detached_after_it)
{
    struct stage stage;

    fixture_open(&stage, 3);
    want_polled(&stage.notes[1]);
    weir__io_close(&stage.notes[0].handle);
    weir__io_set_pending(&stage.notes[2].handle, WEIR__IO_PENDING_CONNECT);
    assert_true(weir__io_has_pending(stage.io));
    assert_false(weir__io_dispatch(stage.io, WEIR_NEVER));
    assert_string_equal(history, "CcBpAx");
    assert_false(weir__io_has_pending(stage.io));
    stage_close(&stage);
}

static void close_other(struct note *note)
{
    if (note->other != NULL)
        weir__io_close(&note->other->handle);
}

/* The batch names handles: none of them goes before it is through, however many calls that takes.
 */
TEST(io, detached_is_not_called_during_a_batch)
{
    struct stage stage;

    fixture_open(&stage, 3);
    stage.script->max_events = 1;
    stage.notes[0].react = close_other;
    stage.notes[0].other = &stage.notes[2];
    for (size_t i = 0; i < 3; i++)
        want_polled(&stage.notes[i]);
    assert_true(weir__io_dispatch(stage.io, WEIR_NEVER));
    assert_string_equal(history, "Ap");
    assert_true(weir__io_dispatch(stage.io, WEIR_NEVER));
    assert_string_equal(history, "ApBp");
    assert_false(weir__io_dispatch(stage.io, WEIR_NEVER));
    assert_string_equal(history, "ApBpCx");
    stage_close(&stage);
}

static void connect_again(struct note *note)
{
    if (weir__io_is_attached(&note->handle))
        weir__io_set_pending(&note->handle, WEIR__IO_PENDING_CONNECT);
}

TEST(io, what_becomes_due_meanwhile_is_the_next_dispatchs)
{
    struct stage stage;

    fixture_open(&stage, 1);
    stage.notes[0].react = connect_again;
    weir__io_set_pending(&stage.notes[0].handle, WEIR__IO_PENDING_CONNECT);
    for (size_t turns = 1; turns <= 3; turns++) {
        (void)weir__io_dispatch(stage.io, WEIR_NEVER);
        assert_int_equal(strlen(history), 2 * turns);
    }
    stage_close(&stage);
}

static void attach_anew(struct note *note)
{
    note->react = NULL;
    assert_int_equal(weir__io_attach(note->other->handle.io, &note->handle), 0);
    weir__io_close(&note->handle);
}

TEST(io, a_handle_may_be_attached_and_closed_again_when_it_is_detached)
{
    struct stage stage;

    fixture_open(&stage, 2);
    stage.notes[0].react = attach_anew;
    stage.notes[0].other = &stage.notes[1];
    weir__io_detach(&stage.notes[0].handle);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "Ax");
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "AxAx");
    stage_close(&stage);
}

/* ---- time ---- */

TEST(io, a_wait_does_not_block_while_something_is_due)
{
    struct stage stage;

    fixture_open(&stage, 2);
    (void)weir__io_wait(stage.io, 1234);
    assert_int_equal(stage.script->deadline_ns, 1234);
    weir__io_set_pending(&stage.notes[0].handle, WEIR__IO_PENDING_CONNECT);
    (void)weir__io_wait(stage.io, WEIR_NEVER);
    assert_int_equal(stage.script->deadline_ns, 0);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    weir__io_close(&stage.notes[1].handle);
    (void)weir__io_wait(stage.io, WEIR_NEVER);
    assert_int_equal(stage.script->deadline_ns, 0);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    (void)weir__io_wait(stage.io, WEIR_NEVER);
    assert_true(stage.script->deadline_ns == WEIR_NEVER);
    stage_close(&stage);
}

TEST(io, a_late_dispatch_leaves_pending_handles_but_not_the_batch)
{
    struct stage stage;

    fixture_open(&stage, NOTES_MAX);
    want_polled(&stage.notes[0]);
    for (size_t i = 1; i < NOTES_MAX; i++)
        weir__io_set_pending(&stage.notes[i].handle, WEIR__IO_PENDING_CONNECT);
    assert_false(weir__io_dispatch(stage.io, 0));
    assert_true(weir__io_has_pending(stage.io));
    assert_int_equal(strlen(history), 2 * (WEIR__IO_CLOCK_INTERVAL + 1));
    assert_string_equal(history + strlen(history) - 2, "Ap");
    assert_false(weir__io_dispatch(stage.io, 0));
    assert_int_equal(strlen(history), 2 * NOTES_MAX);
    stage_close(&stage);
}

/* ---- memory ---- */

TEST(io, parked_handles_are_retried_in_time)
{
    struct stage stage;
    int64_t before_ns = weir__monotonic_now();

    fixture_open(&stage, 1);
    weir__io_park(&stage.notes[0].handle);
    assert_false(weir__io_has_pending(stage.io));
    assert_in_range(stage.io->retry_at_ns - before_ns, WEIR__IO_RETRY_NS, weir_seconds(10));
    (void)weir__io_wait(stage.io, WEIR_NEVER);
    assert_int_equal(stage.script->deadline_ns, stage.io->retry_at_ns);
    (void)weir__io_wait(stage.io, 1);
    assert_int_equal(stage.script->deadline_ns, 1);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_int_equal(stage.notes[0].handle.pending, WEIR__IO_PENDING_READ);
    stage.io->retry_at_ns = weir__monotonic_now();
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_int_equal(stage.notes[0].handle.pending, 0);
    assert_true(stage.io->retry_at_ns == WEIR_NEVER);
    stage_close(&stage);
}

TEST(io, parked_handles_are_retried_when_memory_returns)
{
    struct stage stage;

    fixture_open(&stage, 1);
    weir__io_memory_returned(stage.io);
    assert_true(stage.io->retry_at_ns == WEIR_NEVER);
    weir__io_park(&stage.notes[0].handle);
    weir__io_memory_returned(stage.io);
    (void)weir__io_wait(stage.io, WEIR_NEVER);
    assert_int_equal(stage.script->deadline_ns, 0);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_int_equal(stage.notes[0].handle.pending, 0);
    stage_close(&stage);
}

TEST(io, a_pending_handle_is_not_parked)
{
    struct stage stage;

    fixture_open(&stage, 2);
    weir__io_set_pending(&stage.notes[0].handle, WEIR__IO_PENDING_CONNECT);
    weir__io_park(&stage.notes[0].handle);
    weir__io_set_pending(&stage.notes[1].handle, WEIR__IO_PENDING_CONNECT);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "AcBc");
    assert_int_equal(stage.notes[0].handle.pending, 0);
    stage_close(&stage);
}

TEST(io, a_parked_handle_may_become_pending_fail_and_close)
{
    struct stage stage;

    fixture_open(&stage, 4);
    for (size_t i = 0; i < 4; i++)
        weir__io_park(&stage.notes[i].handle);
    weir__io_set_pending(&stage.notes[0].handle, WEIR__IO_PENDING_CONNECT);
    weir__io_fail(&stage.notes[1].handle, -EBADF);
    weir__io_close(&stage.notes[2].handle);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "AcBfCx");
    assert_int_equal(stage.notes[0].handle.pending, 0);
    assert_int_equal(stage.notes[3].handle.pending, WEIR__IO_PENDING_READ);
    stage_close(&stage);
}

/* ---- leaving ---- */

TEST(io, only_detached_follows_a_failure)
{
    struct stage stage;
    struct note *note = &stage.notes[0];

    fixture_open(&stage, 1);
    want_polled(note);
    weir__io_set_pending(&note->handle, WEIR__IO_PENDING_CONNECT);
    weir__io_fail(&note->handle, WEIR_EREBUILT);
    weir__io_fail(&note->handle, -EBADF);
    assert_int_equal(weir__io_send(&note->handle, NULL, 0), WEIR_EREBUILT);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "Af");
    assert_int_equal(note->err, WEIR_EREBUILT);
    weir__io_poll_start(&note->handle, POLLIN);
    scripted_event(&note->handle, POLLIN);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "Af");
    weir__io_close(&note->handle);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "AfAx");
    stage_close(&stage);
}

static bool is_open(int descriptor)
{
    return fcntl(descriptor, F_GETFD) >= 0;
}

TEST(io, a_descriptor_is_closed_when_the_backend_is_through_with_it)
{
    struct stage stage;
    struct note *note = &stage.notes[0];
    int descriptor;

    fixture_open(&stage, 1);
    stage.script->defers_detach = true;
    descriptor = note->handle.descriptor;
    weir__io_close(&note->handle);
    weir__io_close(&note->handle);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "");
    assert_true(is_open(descriptor));
    weir__io_detach_done(&note->handle);
    assert_false(is_open(descriptor));
    assert_string_equal(history, "");
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "Ax");
    stage_close(&stage);
}

static void close_while_detaching(bool through)
{
    struct stage stage;
    struct note *note = &stage.notes[0];
    int descriptor;

    fixture_open(&stage, 1);
    stage.script->defers_detach = !through;
    descriptor = note->handle.descriptor;
    weir__io_detach(&note->handle);
    stage.script->defers_detach = true; /* a backend that is through is not asked again */
    weir__io_close(&note->handle);
    if (!through) {
        assert_true(is_open(descriptor));
        weir__io_detach_done(&note->handle);
    }
    assert_false(is_open(descriptor));
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    (void)weir__io_dispatch(stage.io, WEIR_NEVER);
    assert_string_equal(history, "Ax");
    stage_close(&stage);
}

TEST(io, a_handle_that_detaches_may_still_be_closed)
{
    close_while_detaching(false);
    close_while_detaching(true);
}

TEST(io, a_closed_handle_takes_no_orders)
{
    struct stage stage;
    weir__io_handle *handle = &stage.notes[0].handle;

    fixture_open(&stage, 1);
    stage.script->defers_detach = true;
    weir__io_close(handle);
    weir__io_accept_start(handle);
    weir__io_receive_start(handle, false);
    weir__io_poll_start(handle, POLLIN);
    weir__io_connect(handle, NULL, 0);
    assert_int_equal(handle->wants, 0);
    assert_int_equal(handle->pending, 0);
    assert_int_equal(weir__io_send(handle, NULL, 0), WEIR_ECLOSED);
    assert_int_equal(weir__io_send_datagrams(handle, NULL, 0), WEIR_ECLOSED);
    assert_int_equal(weir__io_send_file(handle, -1, 0, 1), WEIR_ECLOSED);
    weir__io_detach_done(handle);
    stage_close(&stage);
}

/* ---- the backend as a whole ---- */

TEST(io, a_broken_backend_still_sleeps_and_wakes_and_lets_handles_go)
{
    struct stage stage;
    int64_t deadline_ns;

    fixture_open(&stage, 2);
    stage.script->rebuild_error = -EMFILE;
    assert_int_equal(weir__io_rebuild(stage.io), -EMFILE);
    assert_int_equal(weir__io_wait(stage.io, 0), 0);
    deadline_ns = weir__monotonic_now() + weir_ms(2);
    assert_int_equal(weir__io_wait(stage.io, deadline_ns), 0);
    assert_true(weir__monotonic_now() >= deadline_ns);
    assert_false(stage.io->woken);
    weir__io_wake(stage.io);
    weir__io_wake(stage.io);
    assert_int_equal(weir__io_wait(stage.io, WEIR_NEVER), 0);
    assert_true(stage.io->woken);
    assert_int_equal(weir__io_wait(stage.io, 1), 0);
    assert_false(stage.io->woken);
    want_polled(&stage.notes[0]);
    weir__io_close(&stage.notes[1].handle);
    assert_false(weir__io_dispatch(stage.io, WEIR_NEVER));
    assert_string_equal(history, "Bx");
    stage.script->rebuild_error = 0;
    assert_int_equal(weir__io_rebuild(stage.io), 0);
    scripted_event(&stage.notes[0].handle, POLLIN);
    assert_int_equal(weir__io_wait(stage.io, WEIR_NEVER), 1);
    assert_false(weir__io_dispatch(stage.io, WEIR_NEVER));
    assert_string_equal(history, "BxAp");
    stage_close(&stage);
}

TEST(io, a_backend_that_cannot_be_created_gives_a_reason)
{
    char reason[128] = "";
    weir__io *io;

    test_memory_fail_at(1);
    assert_int_equal(backend_create(&scripted_level, &io, reason, sizeof(reason)), -ENOMEM);
    test_memory_fail_at(0);
    assert_non_null(strstr(reason, "memory"));
    faults_install();
    faults_inject(FAULT_EVENTFD, 1, 1, EMFILE);
    assert_int_equal(backend_create(&scripted_level, &io, reason, sizeof(reason)), -EMFILE);
    faults_remove();
    assert_non_null(strstr(reason, "ulimit"));
    scripted_refuse(-EPERM);
    assert_int_equal(backend_create(&scripted_level, &io, reason, sizeof(reason)), -EPERM);
    scripted_refuse(0);
    assert_string_equal(reason, "the script says no");
}

TEST(io, receive_memory_comes_from_malloc_by_default)
{
    struct stage stage;
    weir__io_block block = {0};

    fixture_open(&stage, 0);
    test_memory_fail_at(1);
    assert_int_equal(stage.io->memory.alloc(stage.io->memory.arg, 100, &block), -ENOMEM);
    test_memory_fail_at(0);
    assert_int_equal(stage.io->memory.alloc(stage.io->memory.arg, 100, &block), 0);
    assert_true(block.capacity >= 100);
    memset(block.base, 1, block.capacity);
    stage.io->memory.free(stage.io->memory.arg, &block);
    stage_close(&stage);
}
