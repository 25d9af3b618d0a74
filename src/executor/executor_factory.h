/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a group's executors are made: all alike, but for their number.
 */
#ifndef WEIR_EXECUTOR_EXECUTOR_FACTORY_H
#define WEIR_EXECUTOR_EXECUTOR_FACTORY_H

#include <weir/group.h>

#include "executor/executor.h"

#define WEIR__EXECUTOR_FACTORY_NAME 11

typedef struct weir__executor_factory {
    const weir__executor_type *type;
    weir__executor_options options; /* without a name and a CPU */
    char name[WEIR__EXECUTOR_FACTORY_NAME];
    bool pin;
    const int *cpus;
    size_t cpu_count;
    void *kept; /* copies of what `options` and `cpus` point to */
} weir__executor_factory;

/* From options that have been read. What they, and `kind`, point to is lent. Fails: -EINVAL. */
int weir__executor_factory_init(weir__executor_factory *factory, const weir__executor_type *type,
                                const void *kind, const weir_group_options *options);

/* Copies what is lent, for one that is used for longer. Fails: -ENOMEM. */
int weir__executor_factory_copy_options(weir__executor_factory *factory, size_t kind_size);
void weir__executor_factory_deinit(weir__executor_factory *factory);

/* Makes the executor of this index. Fails as weir__executor_create. */
int weir__executor_factory_create(const weir__executor_factory *factory, size_t index,
                                  weir_executor **ret_executor);

#endif
