/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backends whose thread ends and comes back, or another one; backends that sleep in another main
 * loop; and backends that do not sleep. On each backend.
 */
#include <errno.h>
#include <poll.h>

#include "support/executor/run_on_thread.h"
#include "support/loop/suite.h"
#include "support/memory.h"

/* ---- suspended and begun again ---- */

/* A pair of sockets exchanges something; nothing is left of it. Asserts nothing. */
static void live_for_a_while(void *arg)
{
    struct driver *driver = arg;
    struct peer *peers[2];
    int pair[2];

    socket_pair(PAIR_TCP, pair);
    for (int i = 0; i < 2; i++) {
        peers[i] = peer_open(driver, pair[i]);
        peer_receive_start(peers[i], false);
        peer_send(peers[i], 500000);
    }
    for (int i = 0; i < 10000 && peers[0]->bytes + peers[1]->bytes < 1000000; i++)
        (void)driver_step(driver, weir_ms(10));
    if (peers[0]->bytes + peers[1]->bytes != 1000000)
        driver_fail(driver, "not all has come");
    for (int i = 0; i < 2; i++)
        peer_close(peers[i]);
    for (int i = 0; i < 1000 && (peers[0]->handle != NULL || peers[1]->handle != NULL); i++)
        (void)driver_step(driver, weir_ms(10));
}

static void begin_and_live(void *arg)
{
    struct driver *driver = arg;
    int err = weir__io_begin(driver->io);

    if (err < 0)
        driver_fail(driver, "begin fails with %d", err);
    else
        live_for_a_while(driver);
}

TEST_EACH_BACKEND(suspend, holds_nothing_and_begins_again)
{
    size_t given_back = driver->backend->type == &weir__io_poll ? 0 : 1;
    size_t descriptors;

    for (int i = 0; i < 5; i++) {
        live_for_a_while(driver);
        descriptors = descriptors_open();
        weir__io_suspend(driver->io);
        assert_int_equal(driver->memory.live, 0);
        assert_int_equal(descriptors_open(), descriptors - given_back);
        assert_int_equal(weir__io_begin(driver->io), 0);
    }
    live_for_a_while(driver);
}

TEST_EACH_BACKEND(suspend, another_thread_may_take_over)
{
    for (int i = 0; i < 5; i++) {
        weir__io_suspend(driver->io);
        run_on_other_thread(begin_and_live, driver);
        assert_string_equal(driver->failure, "");
    }
    weir__io_suspend(driver->io);
    begin_and_live(driver);
}

TEST_EACH_BACKEND(suspend, may_be_the_end)
{
    live_for_a_while(driver);
    weir__io_suspend(driver->io);
}

TEST_EACH_BACKEND(suspend, a_wake_up_meanwhile_is_not_lost)
{
    weir__io_suspend(driver->io);
    weir__io_wake(driver->io);
    assert_int_equal(weir__io_begin(driver->io), 0);
    assert_int_equal(weir__io_wait(driver->io, weir__monotonic_now() + TEST_TIMEOUT_NS), 0);
    assert_true(driver->io->woken);
    (void)weir__io_dispatch(driver->io, WEIR_NEVER);
}

TEST_EACH_BACKEND(suspend, without_a_descriptor_can_be_tried_again)
{
    rlim_t limit;
    int err;

    weir__io_suspend(driver->io);
    limit = descriptors_forbid();
    err = weir__io_begin(driver->io);
    descriptors_limit(limit);
    if (driver->backend->type != &weir__io_poll) {
        assert_int_equal(err, -EMFILE);
        assert_int_equal(weir__io_begin(driver->io), 0);
    }
    live_for_a_while(driver);
}

/* Begins again, without descriptors or without the n-th allocation; whether that has failed. */
static bool fails_to_begin(struct driver *driver, unsigned n)
{
    rlim_t limit = n == 0 ? descriptors_forbid() : 0;
    int err;

    test_memory_fail_at(n);
    err = weir__io_begin(driver->io);
    test_memory_fail_at(0);
    if (n == 0)
        descriptors_limit(limit);
    return err < 0;
}

TEST_EACH_BACKEND(suspend, may_come_again_where_beginning_has_failed)
{
    weir__io_suspend(driver->io);
    for (unsigned n = 0; n < 4; n++) {
        if (fails_to_begin(driver, n))
            (void)fails_to_begin(driver, n);
        weir__io_suspend(driver->io);
    }
    begin_and_live(driver);
}

static void on_detached(weir__io_handle *handle)
{
    (void)handle;
}

TEST_EACH_BACKEND(suspend, handles_may_come_where_beginning_has_failed)
{
    static const weir__io_owner owner = {.detached = on_detached};
    weir__io_handle handle;

    for (unsigned n = 0; n < 4; n++) {
        weir__io_suspend(driver->io);
        if (!fails_to_begin(driver, n))
            continue;
        weir__io_handle_init(&handle, 0, &owner);
        if (weir__io_attach(driver->io, &handle) < 0)
            continue;
        weir__io_detach(&handle);
        (void)weir__io_dispatch(driver->io, WEIR_NEVER);
        assert_null(handle.io);
    }
    weir__io_suspend(driver->io);
    begin_and_live(driver);
}

/* ---- a descriptor to poll ---- */

static int descriptor_of(struct driver *driver)
{
    const weir__io_type *type = driver->io->type;

    return type->descriptor != NULL ? type->descriptor(driver->io) : -1;
}

/* Whether the descriptor becomes readable in that time. */
static bool becomes_readable(struct driver *driver, int timeout_ms)
{
    struct pollfd readable = {descriptor_of(driver), POLLIN, 0};

    if (driver->io->type->flush != NULL)
        driver->io->type->flush(driver->io);
    assert_true(poll(&readable, 1, timeout_ms) >= 0);
    return readable.revents != 0;
}

TEST_EACH_BACKEND(io_descriptor, is_readable_when_there_are_events)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    if (descriptor_of(driver) < 0)
        return; /* it has none */
    peer_receive_start(peer, false);
    for (unsigned i = 1; i <= 20; i++) {
        assert_false(becomes_readable(driver, 0));
        assert_int_equal(peer_remote_send(peer, 100), 100);
        assert_true(becomes_readable(driver, 10000));
        while (peer->bytes < 100ull * i)
            assert_true(driver_step(driver, 0));
        while (becomes_readable(driver, 0))
            assert_true(driver_step(driver, 0));
    }
}

TEST_EACH_BACKEND(io_descriptor, is_readable_when_it_was_woken)
{
    if (descriptor_of(driver) < 0)
        return;
    for (unsigned i = 0; i < 20; i++) {
        assert_false(becomes_readable(driver, 0));
        weir__io_wake(driver->io);
        assert_true(becomes_readable(driver, 10000));
        assert_true(weir__io_wait(driver->io, 0) >= 0);
        assert_true(driver->io->woken);
        (void)weir__io_dispatch(driver->io, WEIR_NEVER);
    }
}

TEST_EACH_BACKEND(io_descriptor, is_another_one_after_a_rebuild)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    if (descriptor_of(driver) < 0)
        return;
    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    assert_int_equal(weir__io_rebuild(driver->io), 0);
    driver_run_until_idle(driver);
    assert_int_equal(peer_remote_send(peer, 100), 100);
    assert_true(becomes_readable(driver, 10000));
    driver_until(driver, peer->bytes == 100);
}

/* ---- a look that costs less than a wait ---- */

TEST_EACH_BACKEND(io_peek, sees_what_a_wait_would_find)
{
    const weir__io_type *type = driver->io->type;
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    if (type->peek == NULL)
        return; /* a wait is as cheap */
    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    for (unsigned i = 1; i <= 20; i++) {
        int64_t give_up_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

        assert_false(type->peek(driver->io));
        assert_int_equal(peer_remote_send(peer, 100), 100);
        while (!type->peek(driver->io))
            assert_true(weir__monotonic_now() < give_up_ns);
        assert_true(driver_step(driver, 0));
        assert_int_equal(peer->bytes, 100 * i);
    }
    weir__io_wake(driver->io);
    assert_true(type->peek(driver->io));
}
