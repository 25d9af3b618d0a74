/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the calling thread came to where it is, as addresses; os/symbol.h says what they mean.
 */
#ifndef WEIR_OS_BACKTRACE_H
#define WEIR_OS_BACKTRACE_H

#include <stddef.h>

/*
 * Return addresses, the innermost first, without this function's own. Returns how many, at most
 * `count` and at most 60; 0 on a system that has no backtraces (musl).
 */
size_t weir__backtrace(void **ret_frames, size_t count);

#endif
