/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/executor_factory.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"

#define TASK_CAP_NS weir_ms(10)

static bool are_cpus(const int *cpus, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cpus[i] < 0)
            return false;
    return count > 0;
}

static int validate(const weir_group_options *options)
{
    if (options->cpus != NULL && !are_cpus(options->cpus, options->cpu_count))
        return weir__options_reject("group", options->name,
                                    ".cpus is empty or has a negative entry");
    if (options->thread_factory != NULL && options->thread_factory->start == NULL)
        return weir__options_reject("group", options->name, ".thread_factory has no `start`");
    return weir__options_check("group", options->name, WEIR__OPTION_FROM(options, max_pending, 0),
                               WEIR__OPTION_FROM(options, task_cap_ns, WEIR_OFF));
}

int weir__executor_factory_init(weir__executor_factory *factory, const weir__executor_type *type,
                                const void *type_options, const weir_group_options *options)
{
    int err = validate(options);

    if (err < 0)
        return err;
    *factory = (weir__executor_factory){
        .type = type, .pin = options->pin, .cpus = options->cpus, .cpu_count = options->cpu_count};
    factory->options = (weir__executor_options){
        .clock = options->clock != NULL ? options->clock : weir_clock_monotonic(),
        .max_pending = weir__queue_bound(options->max_pending),
        .rejected = options->rejected != NULL ? options->rejected : weir_reject,
        .rejected_data = options->rejected_data,
        .task_cap_ns = options->task_cap_ns == 0 ? TASK_CAP_NS : options->task_cap_ns,
        .idle_ns = WEIR_NEVER,
        .type_options = type_options,
    };
    if (factory->options.task_cap_ns < 0)
        factory->options.task_cap_ns = WEIR_NEVER;
    if (options->thread_factory != NULL)
        factory->options.thread_factory = *options->thread_factory;
    (void)snprintf(factory->name, sizeof(factory->name), "%s",
                   options->name != NULL ? options->name : "weir");
    return 0;
}

int weir__executor_factory_copy_options(weir__executor_factory *factory, size_t type_options_size)
{
    size_t cpus_size = factory->cpus != NULL ? factory->cpu_count * sizeof(int) : 0;
    size_t cpus_at = (type_options_size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    char *copies = weir__alloc(cpus_at + cpus_size + 1);

    if (copies == NULL)
        return -ENOMEM;
    if (type_options_size > 0)
        factory->options.type_options =
            memcpy(copies, factory->options.type_options, type_options_size);
    if (cpus_size > 0)
        factory->cpus = memcpy(copies + cpus_at, factory->cpus, cpus_size);
    factory->copies = copies;
    return 0;
}

void weir__executor_factory_deinit(weir__executor_factory *factory)
{
    weir__free(factory->copies);
}

static int cpu_of(const weir__executor_factory *factory, size_t index)
{
    if (!factory->pin)
        return -1;
    if (factory->cpus != NULL)
        return factory->cpus[index % factory->cpu_count];
    return weir__cpu_nth((unsigned)index);
}

int weir__executor_factory_create(const weir__executor_factory *factory, size_t index,
                                  weir_executor **ret_executor)
{
    weir__executor_options options = factory->options;
    char name[32];

    (void)snprintf(name, sizeof(name), "%s-%zu", factory->name, index + 1);
    options.name = name;
    options.group = factory->name;
    options.cpu = cpu_of(factory, index);
    return weir__executor_create(factory->type, &options, ret_executor);
}
