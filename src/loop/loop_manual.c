/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event loops driven by their owner. Between two runs such a loop is asleep: next_wakeup holds a
 * deadline. The thread that takes it writes the eventfd, which makes the backend's descriptor
 * readable, as I/O does.
 */
#include "loop/loop.h"

#include <errno.h>
#include <string.h>

#include "base/options.h"

#define TASK_CAP_NS weir_ms(10)

struct create_args {
    const weir_loop_options *options;
    const char *name;
    weir_executor *executor;
};

static weir__loop *manual_of(const weir_executor *executor)
{
    if (executor == NULL || executor->type != &weir__manual_loop_type)
        return NULL;
    return WEIR_CONTAINER_OF((weir_executor *)(uintptr_t)executor, weir__loop, executor);
}

static int make_loop(const weir__loop_options *loop, void *arg)
{
    struct create_args *args = arg;
    const weir_loop_options *options = args->options;
    weir__executor_options executor = {
        .name = args->name,
        .clock = options->clock != NULL ? options->clock : weir_clock_monotonic(),
        .max_pending = weir__queue_bound(options->max_pending),
        .rejected = options->rejected != NULL ? options->rejected : weir_reject,
        .rejected_data = options->rejected_data,
        .task_cap_ns = options->task_cap_ns == 0 ? TASK_CAP_NS : options->task_cap_ns,
        .cpu = -1,
        .idle_ns = WEIR_NEVER,
        .type_options = loop,
    };

    if (executor.task_cap_ns < 0)
        executor.task_cap_ns = WEIR_NEVER;
    return weir__executor_create(&weir__manual_loop_type, &executor, &args->executor);
}

/*
 * A ring is bound to the thread that begins it, so the owner must. From here on the loop is asleep,
 * and can be woken only if the kernel has received the first operations.
 */
static void begin(weir_executor *executor)
{
    (void)executor->type->begin(executor);
    executor->type->flush(executor);
}

int weir_loop_create(const weir_loop_options *options, weir_executor **ret_loop)
{
    weir_loop_options given;
    struct create_args args = {.options = &given};
    weir__loop_options loop;
    int err = weir__options_read(&given, sizeof(given), options);

    if (err < 0)
        return err;
    err = weir__options_check("loop", given.name, WEIR__OPTION_FROM(&given, max_pending, 0),
                              WEIR__OPTION_FROM(&given, task_cap_ns, WEIR_OFF),
                              WEIR__OPTION(&given, io, WEIR_IO_AUTO, WEIR_IO_POLL));
    if (err < 0)
        return err;
    args.name = given.name != NULL ? given.name : "loop";
    loop = (weir__loop_options){
        .io = given.io,
        .is_embedded = true,
        .io_ratio = given.io_ratio,
        .strategy = given.strategy,
        .strategy_fn = given.strategy_fn,
        .strategy_data = given.strategy_data,
        .adaptive_limit_ns = given.adaptive_limit_ns,
        .adaptive_credit_ns = given.adaptive_credit_ns,
    };
    err = weir__loop_make(args.name, &loop, make_loop, &args);
    if (err < 0)
        return err;
    weir__manual_open(args.executor, &manual_of(args.executor)->manual, !given.claim_later);
    if (!given.claim_later)
        begin(args.executor);
    *ret_loop = args.executor;
    return 0;
}

int weir_loop_claim(weir_executor *executor)
{
    int err = manual_of(executor) != NULL ? weir__manual_claim(executor) : -EINVAL;

    if (err == 0)
        begin(executor);
    return err;
}

int weir_loop_run_once(weir_executor *executor, int64_t max_wait_ns)
{
    weir__loop *loop = manual_of(executor);

    if (loop == NULL)
        return -EINVAL;
    return weir__manual_run_once(executor, &loop->manual, max_wait_ns, WEIR__TYPE_BUDGET);
}

/* Time until the loop retries a rebuild, or a receive without memory. */
static int64_t until_retry(const weir__loop *loop)
{
    int64_t at_ns = weir__earlier(loop->health.retry_at_ns, loop->io->retry_at_ns);

    return at_ns == WEIR_NEVER ? WEIR_NEVER : weir__monotonic_left(at_ns);
}

int64_t weir_loop_timeout(weir_executor *executor)
{
    weir__loop *loop = manual_of(executor);
    int64_t timeout_ns;

    if (loop == NULL)
        return WEIR_NEVER;
    timeout_ns = weir__manual_timeout(executor, &loop->manual);
    if (!weir__in_executor(executor))
        return timeout_ns;
    executor->type->flush(executor); /* submits what the owner started since the last run */
    return weir__earlier(timeout_ns, until_retry(loop));
}

int weir_loop_descriptor(const weir_executor *executor)
{
    const weir__loop *loop = manual_of(executor);

    if (loop == NULL)
        return -EINVAL;
    if (loop->io->type->descriptor == NULL)
        return -ENOTSUP;
    return loop->io->broken ? -EAGAIN : loop->io->type->descriptor(loop->io);
}

ssize_t weir_loop_pollfds(const weir_executor *executor, size_t count, struct pollfd *ret_entries)
{
    int descriptor = weir_loop_descriptor(executor);
    weir__io *io;

    if (descriptor == -ENOTSUP) {
        io = manual_of(executor)->io;
        return io->broken ? -EAGAIN : (ssize_t)io->type->pollfds(io, ret_entries, count);
    }
    if (descriptor < 0)
        return descriptor;
    if (count > 0)
        ret_entries[0] = (struct pollfd){.fd = descriptor, .events = POLLIN};
    return 1;
}
