/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the stack frame of a handler's slot.
 *
 * A compiler turns the last call of a function into a jump, which leaves no frame of the function
 * in the stack. The watchdog finds handlers by the frames of their slots.
 */
#ifndef WEIR_BASE_KEEP_FRAME_H
#define WEIR_BASE_KEEP_FRAME_H

/* After the last call of a slot that calls much: it is not turned into a jump. */
static inline void weir__keep_frame(void)
{
    __asm__ volatile("");
}

#endif
