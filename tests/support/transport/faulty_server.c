/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server in trouble.
 */
#include "support/transport/faulty_server.h"

#include <string.h>

#include <weir/thread.h>

#include "support/channel/pointer_state.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/test.h"

/* ---- handlers ---- */

struct faulty_server *faulty_server_of(weir_ctx *ctx)
{
    return *(struct faulty_server **)weir_ctx_state(ctx);
}

static void on_active(weir_ctx *ctx)
{
    call_counter_add(&faulty_server_of(ctx)->opened);
    weir_fire_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    call_counter_add(&faulty_server_of(ctx)->closed);
    weir_fire_inactive(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    call_counter_add(&faulty_server_of(ctx)->errors);
    weir_fire_error(ctx, err, detail);
}

static const weir_handler guestbook = {
    .name = "guestbook",
    .state_size = sizeof(struct faulty_server *),
    .init = pointer_keep,
    .active = on_active,
    .inactive = on_inactive,
    .error = on_error,
};

int faulty_server_add(struct faulty_server *faulty, weir_channel *channel,
                      const weir_handler *handler)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &guestbook, faulty);

    return err == 0 ? weir_pipeline_add_last(pipeline, handler, faulty) : err;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

const weir_handler faulty_server_echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
};

/* ---- a life ---- */

int faulty_server_open(struct faulty_server *faulty, struct sweep *sweep)
{
    const struct backend *backend = sweep->backend;

    *faulty = (struct faulty_server){.sweep = sweep};
    return weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "site", .io = backend->io),
                             &faulty->group);
}

static int await(weir_promise *promise)
{
    int err;

    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    err = weir_promise_result(promise);
    weir_promise_release(promise);
    return err;
}

int faulty_server_find_address(struct faulty_server *faulty)
{
    weir_address address;
    int err = weir_channel_local_address(faulty->channel, &address);

    if (err == 0) {
        faulty->address.length = address.length;
        memcpy(&faulty->address.storage, &address.storage, sizeof(address.storage));
    }
    return err;
}

int faulty_server_bind(struct faulty_server *faulty, const weir_address *address)
{
    weir_executor *loop = weir_group_at(faulty->group, 0);
    weir_promise *registered, *bound;
    int err = weir_promise_create(loop, &registered);

    if (err < 0)
        return err;
    weir_group_register(faulty->group, faulty->channel, registered);
    err = await(registered);
    if (err == 0)
        err = weir_promise_create(loop, &bound);
    if (err < 0)
        return err;
    weir_channel_bind(faulty->channel, address, bound);
    err = await(bound);
    return err == 0 ? faulty_server_find_address(faulty) : err;
}

void faulty_server_close(struct faulty_server *faulty)
{
    if (faulty->group != NULL)
        end_group(faulty->group);
    weir_channel_release(faulty->channel);
    if (atomic_load(&faulty->opened.calls) != atomic_load(&faulty->closed.calls))
        fail_msg("%s: %s: %u channels were opened, %u closed", faulty->sweep->backend->name,
                 faulty->sweep->fault, atomic_load(&faulty->opened.calls),
                 atomic_load(&faulty->closed.calls));
}

/* ---- a play ---- */

int faulty_server_run(struct sweep *sweep)
{
    size_t descriptors = descriptors_open(), blocks = test_memory_live();
    const struct faulty_server_run *play = sweep->arg;
    struct faulty_server faulty;
    int err;

    log_capture_start();
    err = faulty_server_open(&faulty, sweep);
    if (err == 0)
        err = play->open(&faulty);
    if (err == 0)
        play->serve(&faulty);
    sweep_stop_faults(sweep);
    faulty_server_close(&faulty);
    global_executor_stop();
    weir_locals_remove_all();
    if (!test_memory_await(blocks))
        sweep_fail(sweep, "memory is left");
    if (!descriptors_await(descriptors))
        sweep_fail(sweep, "descriptors are left");
    return err;
}
