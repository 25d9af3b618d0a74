/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting to a name: resolves it, then runs the race of client.c over its addresses, on the loop
 * chosen at the beginning.
 *
 *      resolve -> on_resolved -> race -> (cascade) the promise
 *         ^           `-> the promise fails, with a detail that names the host
 *         `-- cancelled with the promise
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/resolver.h>

#include "base/memory.h"
#include "bootstrap/client.h"
#include "executor/executor.h"
#include "executor/promise.h"

struct call {
    weir_client_options *options; /* a copy */
    weir_executor *loop;
    weir_listener listener;
    _Atomic(weir_promise *) resolving; /* whoever exchanges it for NULL releases it */
};

static weir_promise *take_resolving(struct call *call)
{
    /* Acquire: the cancelling thread sees the promise as it was stored. */
    return atomic_exchange_explicit(&call->resolving, NULL, memory_order_acq_rel);
}

/* On the cancelling thread. During the race, the cascade cancels. */
static void on_cancel(weir_promise *promise)
{
    weir_promise *resolving = take_resolving(weir__promise_extra(promise));

    if (resolving != NULL)
        (void)weir_promise_cancel(resolving);
    weir_promise_release(resolving);
}

static int race(struct call *call, const weir_addresses *found, weir_promise *promise)
{
    weir_client_options options = *call->options;
    weir_promise *racing;
    int err;

    options.address = NULL;
    options.addresses = found->addresses;
    options.address_count = found->count;
    err = weir__client_race(&options, call->loop, &racing);
    if (err < 0)
        return err;
    err = weir_promise_cascade(racing, promise);
    if (err < 0)
        (void)weir_promise_cancel(racing);
    weir_promise_release(racing);
    return err;
}

/* The reason of a custom resolver may not name the host. */
static void fail(struct call *call, weir_promise *promise, int err, const char *reason)
{
    const char *address = call->options->address;
    size_t length = strcspn(address, ":");
    char detail[512];

    if (strncmp(reason, address, length) == 0)
        (void)snprintf(detail, sizeof(detail), "%s", reason);
    else
        (void)snprintf(detail, sizeof(detail), "%.*s: %s", (int)length, address, reason);
    (void)weir_promise_fail(promise, err, detail);
}

static void on_resolved(weir_promise *resolving, void *arg)
{
    struct call *call = arg;
    weir_promise *promise = weir__promise_of_extra(call);
    int err = weir_promise_result(resolving);

    weir_promise_release(take_resolving(call));
    if (err < 0)
        fail(call, promise, err, weir_promise_detail(resolving));
    else if (!weir_promise_is_done(promise))
        err = race(call, weir_promise_value(resolving), promise);
    if (err < 0)
        (void)weir_promise_fail(promise, err, NULL);
    weir__free(call->options);
    weir__executor_unlease(call->loop);
    weir__executor_weak_release(call->loop);
    weir_promise_release(promise);
}

int weir__client_connect_by_name(const weir_client_options *options, weir_executor *loop,
                                 weir_promise **ret_connecting)
{
    weir_resolver *resolver =
        options->resolver != NULL ? options->resolver : weir_resolver_default();
    weir_promise *promise = weir__promise_create_with(loop, sizeof(struct call)), *resolving;
    struct call *call;
    int err;

    if (promise == NULL)
        return -ENOMEM;
    call = weir__promise_extra(promise);
    err = weir__client_options_copy(options, &call->options);
    if (err == 0)
        err = weir_resolver_resolve(resolver, options->address, loop, &resolving);
    if (err != 0) {
        weir__free(call->options);
        weir_promise_release(promise);
        return err;
    }
    call->loop = loop;
    weir__executor_weak_retain(loop);
    weir__executor_lease(loop); /* no other channel gets it meanwhile */
    atomic_init(&call->resolving, weir_promise_retain(resolving));
    weir__promise_set_on_cancel(promise, on_cancel);
    call->listener = (weir_listener){.fn = on_resolved, .user_data = call};
    *ret_connecting = weir_promise_retain(promise);
    weir_promise_listen(resolving, &call->listener);
    weir_promise_release(resolving);
    return 0;
}
