/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receive memory that is counted and fails on demand. Blocks have exactly the requested size, so
 * that a sanitizer detects an overflow by one byte.
 */
#ifndef WEIR_TEST_COUNTED_MEMORY_H
#define WEIR_TEST_COUNTED_MEMORY_H

#include "loop/io.h"

struct counted_memory {
    size_t live;    /* blocks in use */
    size_t taken;   /* in total */
    size_t refused; /* in total */
    size_t refuse;  /* number of the next calls to refuse; SIZE_MAX = all */
    size_t extra;   /* added to the size of each block */
};

/* The argument of weir__io_set_memory. */
weir__io_memory counted_memory_functions(struct counted_memory *memory);

/* For owners: frees a received block. Ends the program if the block is not in use. */
void counted_memory_free(struct counted_memory *memory, const weir__io_block *block);

#endif
