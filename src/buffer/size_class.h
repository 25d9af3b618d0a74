/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes of the pool: four per power of two from 256 B to 1 MiB; below that one per cache
 * line, so that every header is on its own line; and class 0, a header without payload.
 *
 *     class   0   1    2    3    4    5    6    7    8    9   10  ...  52
 *     size    0  64  128  192  256  320  384  448  512  640  768  ...  1 MiB
 */
#ifndef WEIR_BUFFER_SIZE_CLASS_H
#define WEIR_BUFFER_SIZE_CLASS_H

#include <stddef.h>

#define WEIR__LINE 64u
#define WEIR__CLASS_COUNT 53u
#define WEIR__CLASS_SIZE_MAX ((size_t)1 << 20)
#define WEIR__SMALL_SIZE_MAX ((size_t)4 << 10) /* heaps have a table for payloads up to this */

/* The smallest class that holds `payload` bytes, at most WEIR__CLASS_SIZE_MAX. */
static inline unsigned weir__class_of(size_t payload)
{
    unsigned lines = (unsigned)((payload + WEIR__LINE - 1) / WEIR__LINE), doubling;

    if (lines <= 4)
        return lines;
    doubling = 29u - (unsigned)__builtin_clz(lines - 1); /* 0 for 5 to 8 lines, 1 for 9 to 16 ... */
    return 1 + 4 * doubling + ((lines - 1) >> doubling);
}

static inline size_t weir__class_size(unsigned size_class)
{
    unsigned doubling = (size_class - 5) / 4, quarter = (size_class - 5) % 4;

    if (size_class <= 4)
        return (size_t)size_class * WEIR__LINE;
    return (size_t)(5 + quarter) * WEIR__LINE << doubling;
}

#endif
