/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack traces of the calling thread, as addresses; os/symbol.h resolves them.
 */
#ifndef WEIR_OS_BACKTRACE_H
#define WEIR_OS_BACKTRACE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes return addresses, innermost first, without this function. Returns their number, at most
 * `count` and at most 60; 0 where backtraces are not available (musl).
 */
size_t weir__backtrace(void **ret_frames, size_t count);

/*
 * In a signal handler: the same of the code that it has interrupted, and where each function begins
 * (NULL = unknown). The first frame is the interrupted instruction plus 1, so that it can be
 * treated as a return address, too. Does not allocate. Takes no lock with glibc 2.35 and gcc 12 or
 * later; before that the dynamic linker's, so a thread interrupted in dlopen may deadlock.
 * Call weir__backtrace_prepare once before, outside of signal handlers.
 */
size_t weir__backtrace_interrupted(const void **ret_frames, const void **ret_functions,
                                   size_t count);
void weir__backtrace_prepare(void);

/* False where backtraces are not available. */
bool weir__backtrace_is_available(void);

#endif
