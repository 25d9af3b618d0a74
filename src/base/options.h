/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that can grow: a struct whose first member is `size_t size`, set by its macro in the
 * caller. An old caller's struct is shorter than ours, a newer one's longer.
 */
#ifndef WEIR_BASE_OPTIONS_H
#define WEIR_BASE_OPTIONS_H

#include <stddef.h>

/*
 * Copies the caller's options over zeroes into ours, of `known` bytes; NULL as `given` means every
 * default. Fails with -EINVAL if the size is impossible, or if a newer caller has set an option
 * that we do not know: ignoring what was asked for would be worse than refusing it.
 */
int weir__options_read(void *ret_options, size_t known, const void *given);

#endif
