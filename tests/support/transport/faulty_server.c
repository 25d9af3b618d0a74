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

struct site *site_of(weir_ctx *ctx)
{
    return *(struct site **)weir_ctx_state(ctx);
}

static void on_active(weir_ctx *ctx)
{
    call_counter_add(&site_of(ctx)->opened);
    weir_fire_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    call_counter_add(&site_of(ctx)->closed);
    weir_fire_inactive(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    call_counter_add(&site_of(ctx)->errors);
    weir_fire_error(ctx, err, detail);
}

static const weir_handler guestbook = {
    .name = "guestbook",
    .state_size = sizeof(struct site *),
    .init = pointer_keep,
    .active = on_active,
    .inactive = on_inactive,
    .error = on_error,
};

int site_add(struct site *site, weir_channel *channel, const weir_handler *handler)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &guestbook, site);

    return err == 0 ? weir_pipeline_add_last(pipeline, handler, site) : err;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

const weir_handler site_echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
};

/* ---- a life ---- */

int site_open(struct site *site, struct sweep *sweep)
{
    const struct backend *backend = sweep->backend;

    *site = (struct site){.sweep = sweep};
    return weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "site", .io = backend->io,
                                                .uring_receive = backend->ring_receive),
                             &site->group);
}

static int await(weir_promise *promise)
{
    int err;

    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    err = weir_promise_result(promise);
    weir_promise_release(promise);
    return err;
}

int site_find(struct site *site)
{
    weir_address address;
    int err = weir_channel_local_address(site->channel, &address);

    if (err == 0) {
        site->address.length = address.length;
        memcpy(&site->address.storage, &address.storage, sizeof(address.storage));
    }
    return err;
}

int site_bind(struct site *site, const weir_address *address)
{
    weir_executor *loop = weir_group_at(site->group, 0);
    weir_promise *registered, *bound;
    int err = weir_promise_create(loop, &registered);

    if (err < 0)
        return err;
    weir_group_register(site->group, site->channel, registered);
    err = await(registered);
    if (err == 0)
        err = weir_promise_create(loop, &bound);
    if (err < 0)
        return err;
    weir_channel_bind(site->channel, address, bound);
    err = await(bound);
    return err == 0 ? site_find(site) : err;
}

void site_close(struct site *site)
{
    if (site->group != NULL)
        end_group(site->group);
    weir_channel_release(site->channel);
    if (atomic_load(&site->opened.calls) != atomic_load(&site->closed.calls))
        fail_msg("%s: %s: %u channels were opened, %u closed", site->sweep->backend->name,
                 site->sweep->fault, atomic_load(&site->opened.calls),
                 atomic_load(&site->closed.calls));
}

/* ---- a play ---- */

int site_play(struct sweep *sweep)
{
    size_t descriptors = descriptors_open(), blocks = test_memory_live();
    const struct site_play *play = sweep->arg;
    struct site site;
    int err;

    log_capture_start();
    err = site_open(&site, sweep);
    if (err == 0)
        err = play->open(&site);
    if (err == 0)
        play->serve(&site);
    sweep_stop_faults(sweep);
    site_close(&site);
    global_executor_stop();
    weir_locals_remove_all();
    if (test_memory_live() != blocks)
        sweep_fail(sweep, "memory is left");
    if (descriptors_open() != descriptors)
        sweep_fail(sweep, "descriptors are left");
    return err;
}
