/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack traces of the calling thread, as addresses; os/symbol.h resolves them.
 */
#ifndef WEIR_OS_BACKTRACE_H
#define WEIR_OS_BACKTRACE_H

#include <stddef.h>

/*
 * Writes return addresses, innermost first, without this function. Returns their number, at most
 * `count` and at most 60; 0 where backtraces are not available (musl).
 */
size_t weir__backtrace(void **ret_frames, size_t count);

#endif
