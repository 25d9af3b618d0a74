/* SPDX-License-Identifier: Apache-2.0 */
/* Setup and teardown of tests on a loop. */
#include "support/loop/host.h"

#include "support/executor/call_counter.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/loop/sockets.h"

/* Created first, so that an unavailable backend reports its reason. */
static void skip_if_refused(const struct backend *backend)
{
    char reason[256] = "";
    weir__io *io;

    if (backend_create(backend, &io, reason, sizeof(reason)) < 0)
        WEIR_TEST_SKIP(reason);
    weir__io_destroy(io);
}

void host_open(struct host *host, enum backend_id id)
{
    host->backend = &backends[id];
    skip_if_refused(host->backend);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 1, .name = "host"),
                          &host->group),
        0);
    host->loop = weir_group_at(host->group, 0);
}

void host_end(struct host *host)
{
    assert_int_equal(weir_group_shutdown(host->group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(host->group, TEST_TIMEOUT_NS), 0);
}

void host_close(struct host *host)
{
    host_end(host);
    weir_group_release(host->group);
}

void host_run(enum backend_id id, void (*body)(struct host *host))
{
    size_t descriptors = descriptors_open();
    struct host host;

    host_open(&host, id);
    body(&host);
    host_close(&host);
    global_executor_stop(); /* it may retain the loop */
    assert_true(descriptors_await(descriptors));
}

static uint64_t turns_of(const weir_executor *loop)
{
    weir_executor_stats stats;

    weir_executor_read_stats(loop, &stats);
    return stats.turns;
}

/* A turn is counted at its end: the first one may have polled before this call. */
static void turn(weir_executor *loop, unsigned turns)
{
    uint64_t end = turns_of(loop) + turns + 1;

    while (turns_of(loop) < end) {
        struct call_counter counter = {0};

        assert_int_equal(weir_execute(loop, call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, 1));
    }
}

void host_turn(struct host *host, unsigned turns)
{
    for (size_t i = 0; i < weir_group_count(host->group); i++)
        turn(weir_group_at(host->group, i), turns);
}
