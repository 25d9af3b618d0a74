/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that can grow: a struct whose first member is `size_t size`, set by its macro in the
 * caller. An old caller's struct is shorter than ours, a newer one's longer; they are read by the
 * rule of Linux's openat2 and clone3. All of it is here, for the libraries on top of ours too.
 */
#ifndef WEIR_BASE_OPTIONS_H
#define WEIR_BASE_OPTIONS_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool weir__options_all_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/*
 * Copies the caller's options over zeroes into ours, of `known` bytes; NULL as `given` means every
 * default. Fails with -EINVAL if the size is impossible, or if a newer caller has set an option
 * that we do not know: ignoring what was asked for would be worse than refusing it.
 */
static inline int weir__options_read(void *ret_options, size_t known, const void *given)
{
    size_t size = sizeof(size);

    assert(known >= sizeof(size));
    if (given != NULL)
        memcpy(&size, given, sizeof(size));
    if (size < sizeof(size))
        return -EINVAL;
    if (size > known && !weir__options_all_zero((const unsigned char *)given + known, size - known))
        return -EINVAL;

    memset(ret_options, 0, known);
    if (given != NULL)
        memcpy(ret_options, given, size < known ? size : known);
    memcpy(ret_options, &known, sizeof(known));
    return 0;
}

#endif
