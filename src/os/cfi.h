/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: the tables of a module, .eh_frame_hdr and .eh_frame, that say where a
 * function has saved the registers of its caller. They are written for exceptions and debuggers;
 * compilers write them for C, too.
 *
 * Nothing is trusted: all reads of tables and of the stack are checked, all loops bounded.
 */
#ifndef WEIR_OS_CFI_H
#define WEIR_OS_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__LP64__)
#define WEIR__CFI_SP 7 /* numbers of registers in the tables */
#define WEIR__CFI_FP 6
#define WEIR__CFI_REGISTERS 17
#elif defined(__aarch64__) && defined(__LP64__)
#define WEIR__CFI_SP 31
#define WEIR__CFI_FP 29
#define WEIR__CFI_REGISTERS 32
#else /* no backtraces of other threads */
#define WEIR__CFI_SP 0
#define WEIR__CFI_FP 0
#define WEIR__CFI_REGISTERS 1
#endif

/* A part of memory: `length` bytes that were at `address`, and are now at `bytes`. */
typedef struct weir__cfi_memory {
    const uint8_t *bytes;
    uintptr_t address;
    size_t length;
} weir__cfi_memory;

typedef struct weir__cfi_frame {
    uintptr_t pc;
    bool is_interrupted; /* by a signal: pc is the next instruction, and not a return address */
    uintptr_t function;  /* where it begins; 0 = unknown */
    uintptr_t registers[WEIR__CFI_REGISTERS];
} weir__cfi_frame;

typedef enum weir__cfi_result {
    WEIR__CFI_NO_TABLE, /* that has the function: frame.function is 0 */
    WEIR__CFI_END,      /* no caller, or it cannot be found */
    WEIR__CFI_CALLER,
} weir__cfi_result;

/* Reads 8 bytes. Returns false if some of them are not in it. */
bool weir__cfi_memory_read(const weir__cfi_memory *memory, uintptr_t address, uintptr_t *ret_value);

/*
 * Sets frame->function, and *ret_caller if the result is WEIR__CFI_CALLER. `tables` is the segment
 * of the function's module that contains both tables, and `header` the address of .eh_frame_hdr in
 * it.
 */
weir__cfi_result weir__cfi_step(const weir__cfi_memory *tables, uintptr_t header,
                                const weir__cfi_memory *stack, weir__cfi_frame *frame,
                                weir__cfi_frame *ret_caller);

#endif
