/* SPDX-License-Identifier: Apache-2.0 */
/* Creates groups of every kind of executor. */
#include "executor/group.h"

#include <stdio.h>

#include <weir/error.h>

#include "base/options.h"
#include "loop/loop.h"

struct create_args {
    const weir_group_options *options;
    weir_group *group;
};

/* Most channel loops are created later, when nobody can receive a reason. */
static int make_channel_loops(const weir__loop_options *loop, struct create_args *args)
{
    weir__loop_options lasting = *loop;
    int err;

    lasting.reason = NULL;
    lasting.reason_size = 0;
    err = weir__group_create_growing(&weir__channel_loop_type, &lasting, sizeof(lasting),
                                     args->options, &args->group);
    if (err < 0 && err != -EINVAL) /* invalid options were logged already */
        (void)snprintf(loop->reason, loop->reason_size, "%s", weir_error_text(err));
    return err;
}

static int make_loops(const weir__loop_options *loop, void *arg)
{
    struct create_args *args = arg;

    if (loop->io == WEIR_IO_BLOCKING)
        return make_channel_loops(loop, args);
    return weir__group_create(&weir__loop_type, loop, args->options, &args->group);
}

static int create_loops(const weir_group_options *options, const char *name, weir_group **ret_group)
{
    struct create_args args = {.options = options};
    const weir__loop_options loop = {
        .io = options->io,
        .io_ratio = options->io_ratio,
        .strategy = options->strategy,
        .strategy_fn = options->strategy_fn,
        .strategy_data = options->strategy_data,
        .adaptive_limit_ns = options->adaptive_limit_ns,
        .adaptive_credit_ns = options->adaptive_credit_ns,
    };
    int err = weir__loop_make(name, &loop, make_loops, &args);

    if (err == 0)
        *ret_group = args.group;
    return err;
}

int weir_group_create(const weir_group_options *options, weir_group **ret_group)
{
    weir_group_options given;
    const char *name;
    int err = weir__options_read(&given, sizeof(given), options);

    if (err < 0)
        return err;
    name = given.name != NULL ? given.name : "weir";
    if (given.io == WEIR_IO_NONE)
        return weir__group_create(&weir__plain_type, NULL, &given, ret_group);
    return create_loops(&given, name, ret_group);
}
