/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the function of an address, for reports.
 *
 * Names come from the symbol tables of the program and its libraries, including static functions
 * unless stripped. Opens and reads a file: not for hot paths.
 */
#ifndef WEIR_OS_SYMBOL_H
#define WEIR_OS_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weir__symbol {
    const void *address; /* as passed */
    char function[96];   /* "" = unknown */
    uintptr_t function_offset;
    char module[64];         /* base name of the program or library; "" = none */
    uintptr_t module_offset; /* for addr2line */
} weir__symbol;

/* `address` is a return address. */
void weir__symbol_find(const void *address, weir__symbol *ret_symbol);

/* Writes "function+0x1f (module+0x3a1f)", or as much as is known. Returns the length of the whole
 * text. */
size_t weir__symbol_describe(const weir__symbol *symbol, char *text, size_t size);

#endif
