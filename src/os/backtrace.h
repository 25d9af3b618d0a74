/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack traces of the calling thread and of interrupted ones, as addresses; os/symbol.h resolves
 * them.
 */
#ifndef WEIR_OS_BACKTRACE_H
#define WEIR_OS_BACKTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/cfi.h"

#define WEIR__STACK_COPY_MAX (256 * 1024)

/*
 * Writes return addresses, innermost first, without this function. Returns their number, at most
 * `count` and at most 60; 0 where backtraces are not available (musl).
 */
size_t weir__backtrace(void **ret_frames, size_t count);

/* Registers and a part of the stack of an interrupted thread. */
typedef struct weir__stack_copy {
    weir__cfi_frame frame;
    uintptr_t from; /* the address of the first byte */
    size_t length;
    uint8_t bytes[WEIR__STACK_COPY_MAX];
} weir__stack_copy;

/*
 * In a signal handler: copies what it has interrupted. Takes no lock, does not allocate and makes
 * one system call, process_vm_readv, which skips memory that is not mapped. Where it is not allowed
 * the stack is empty. `context` is that of the handler, a ucontext_t.
 */
void weir__stack_copy_take(weir__stack_copy *copy, const void *context);

/*
 * On another thread, later: writes the return addresses, innermost first, and where each function
 * begins (NULL = unknown). Returns their number. The first one is the interrupted instruction plus
 * 1, so that it can be treated as a return address, too.
 */
size_t weir__stack_copy_unwind(const weir__stack_copy *copy, const void **ret_frames,
                               const void **ret_functions, size_t count);

/* False where stacks cannot be unwound: musl, and CPUs other than x86_64 and aarch64. */
bool weir__stack_copy_is_available(void);

#endif
