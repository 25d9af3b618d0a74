/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid unwind tables: the input is .eh_frame_hdr, .eh_frame and the stack at once,
 * and its first bytes are in each register. Reads outside of it are found by ASan.
 */
#include <stdlib.h>
#include <string.h>

#include "os/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir__cfi_memory memory = {data, 0x10000, size};
    weir__cfi_frame frame = {.is_interrupted = true}, caller;

    for (size_t i = 0; i < WEIR__CFI_REGISTERS; i++)
        frame.registers[i] = memory.address + (size > 0 ? data[i % size] : 0);
    for (size_t i = 0; i < 4096; i += 64) {
        frame.pc = memory.address + i;
        if (weir__cfi_step(&memory, memory.address, &memory, &frame, &caller) ==
                WEIR__CFI_NO_TABLE &&
            frame.function != 0)
            abort();
    }
    return 0;
}
