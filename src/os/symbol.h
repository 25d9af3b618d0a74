/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function an address belongs to: for reports that people read.
 *
 * The names are those of the symbol tables in the files that the process was started from, static
 * functions too, unless the file was stripped. It opens and reads a file: not for hot paths.
 */
#ifndef WEIR_OS_SYMBOL_H
#define WEIR_OS_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weir__symbol {
    const void *address; /* the one that was looked for */
    char function[96];   /* "" = not known */
    uintptr_t function_offset;
    char module[64];         /* the program or library, without its folder; "" = in none */
    uintptr_t module_offset; /* what addr2line takes */
} weir__symbol;

/* `address` is one that a call returns to. */
void weir__symbol_find(const void *address, weir__symbol *ret_symbol);

/* Writes "function+0x1f (module+0x3a1f)", or as much of it as is known. */
void weir__symbol_describe(const weir__symbol *symbol, char *text, size_t size);

#endif
