/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the executors of a group, which differ only in their index.
 */
#ifndef WEIR_EXECUTOR_EXECUTOR_FACTORY_H
#define WEIR_EXECUTOR_EXECUTOR_FACTORY_H

#include <weir/group.h>

#include "executor/executor.h"

#define WEIR__EXECUTOR_FACTORY_NAME 11

typedef struct weir__executor_factory {
    const weir__executor_type *type;
    weir__executor_options options; /* without name and CPU */
    char name[WEIR__EXECUTOR_FACTORY_NAME];
    bool pin;
    const int *cpus;
    size_t cpu_count;
    void *copies; /* of the objects that `options` and `cpus` point to */
} weir__executor_factory;

/* Initializes from validated options. Borrows what they and `type_options` point to. Fails:
 * -EINVAL.
 */
int weir__executor_factory_init(weir__executor_factory *factory, const weir__executor_type *type,
                                const void *type_options, const weir_group_options *options);

/* Copies what is borrowed, for a factory that outlives it. Fails: -ENOMEM. */
int weir__executor_factory_copy_options(weir__executor_factory *factory, size_t type_options_size);
void weir__executor_factory_deinit(weir__executor_factory *factory);

/* Creates the executor with this index. Fails as weir__executor_create. */
int weir__executor_factory_create(const weir__executor_factory *factory, size_t index,
                                  weir_executor **ret_executor);

#endif
