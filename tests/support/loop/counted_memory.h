/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory to receive into that is counted, and refused on demand. Blocks are exactly as large as was
 * asked for, so that a sanitizer sees a byte too many.
 */
#ifndef WEIR_TEST_COUNTED_MEMORY_H
#define WEIR_TEST_COUNTED_MEMORY_H

#include "loop/io.h"

struct counted_memory {
    size_t live;    /* blocks that are out */
    size_t taken;   /* ever */
    size_t refused; /* ever */
    size_t refuse;  /* so many calls from now on are refused; SIZE_MAX = all */
    size_t extra;   /* blocks are so much larger than asked for */
};

/* What to give to weir__io_set_memory. */
weir__io_memory counted_memory_functions(struct counted_memory *memory);

/* For owners: what they do with a block that they have read. A block that is not out ends the
 * program. */
void counted_memory_free(struct counted_memory *memory, const weir__io_block *block);

#endif
