/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading options of another version, by the rule of Linux's openat2 and clone3.
 */
#include "base/options.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool all_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

int weir__options_read(void *ret_options, size_t known, const void *given)
{
    size_t size = sizeof(size);

    assert(known >= sizeof(size));
    if (given != NULL)
        memcpy(&size, given, sizeof(size));
    if (size < sizeof(size))
        return -EINVAL;
    if (size > known && !all_zero((const unsigned char *)given + known, size - known))
        return -EINVAL;

    memset(ret_options, 0, known);
    if (given != NULL)
        memcpy(ret_options, given, size < known ? size : known);
    memcpy(ret_options, &known, sizeof(known));
    return 0;
}
