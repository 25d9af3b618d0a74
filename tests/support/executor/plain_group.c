/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weir_group_create does for WEIR_IO_NONE.
 */
#include "support/executor/plain_group.h"

#include "base/options.h"
#include "executor/group.h"

int plain_group_create(const weir_group_options *options, weir_group **ret_group)
{
    weir_group_options given;
    int err = weir__options_read(&given, sizeof(given), options);

    return err < 0 ? err : weir__group_create(&weir__plain_type, NULL, &given, ret_group);
}
