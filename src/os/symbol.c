/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads symbol tables.
 *
 *     address --dl_iterate_phdr--> module (path, load address)
 *             --minus load address-> virtual address in the module's file
 *             --.symtab----------> function; .dynsym, the exported names, if it was stripped
 *
 * dladdr finds only exported names, and most functions of a C program are static. The file is read
 * in small pieces and nothing is cached, so no memory is needed. The file may have been replaced
 * since it was loaded: nothing in it is trusted, all offsets are checked by the reads.
 */
#include "os/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SYMBOLS_AT_ONCE 128

#define NATIVE_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define SYMBOL_TYPE(info) ELF32_ST_TYPE(info) /* the same in both classes */

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Phdr) elf_segment;
typedef ElfW(Shdr) elf_section;
typedef ElfW(Sym) elf_symbol;

struct module {
    uintptr_t wanted; /* the address to find */
    uintptr_t base;
    char path[4096];
};

static bool module_holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const elf_segment *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD &&
            address - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            return true;
    }
    return false;
}

static int on_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct module *module = arg;

    (void)size;
    if (!module_holds(info, module->wanted))
        return 0;
    module->base = info->dlpi_addr;
    /* The name of the program itself is empty. */
    (void)snprintf(module->path, sizeof(module->path), "%s",
                   info->dlpi_name[0] != '\0' ? info->dlpi_name : "/proc/self/exe");
    return 1;
}

static bool read_at(int file, void *ret_bytes, size_t length, uint64_t offset)
{
    return offset <= INT64_MAX && pread(file, ret_bytes, length, (off_t)offset) == (ssize_t)length;
}

/* Reads a name from the string table, truncated to `size`. */
static bool read_name(int file, uint64_t offset, char *ret_name, size_t size)
{
    ssize_t length = offset <= INT64_MAX ? pread(file, ret_name, size - 1, (off_t)offset) : -1;

    ret_name[length > 0 ? length : 0] = '\0';
    return length > 0 && ret_name[0] != '\0';
}

static const elf_symbol *find_among(const elf_symbol *symbols, size_t count, uintptr_t address)
{
    for (size_t i = 0; i < count; i++)
        if (SYMBOL_TYPE(symbols[i].st_info) == STT_FUNC &&
            address - symbols[i].st_value < symbols[i].st_size)
            return &symbols[i];
    return NULL;
}

static bool find_in_table(int file, const elf_section *table, uintptr_t address,
                          elf_symbol *ret_found)
{
    elf_symbol symbols[SYMBOLS_AT_ONCE];
    const elf_symbol *found;
    uint64_t left = table->sh_size / sizeof(symbols[0]);
    uint64_t offset = table->sh_offset;

    while (left > 0) {
        size_t count = left < SYMBOLS_AT_ONCE ? (size_t)left : SYMBOLS_AT_ONCE;

        if (!read_at(file, symbols, count * sizeof(symbols[0]), offset))
            return false;
        found = find_among(symbols, count, address);
        if (found != NULL) {
            *ret_found = *found;
            return true;
        }
        offset += count * sizeof(symbols[0]);
        left -= count;
    }
    return false;
}

static bool read_section(int file, const elf_header *elf, size_t index, elf_section *ret_section)
{
    return index < elf->e_shnum && read_at(file, ret_section, sizeof(*ret_section),
                                           elf->e_shoff + index * sizeof(*ret_section));
}

static bool find_in_tables(int file, const elf_header *elf, uint32_t type, uintptr_t address,
                           weir__symbol *symbol)
{
    elf_section table, names;
    elf_symbol found;

    for (size_t i = 0; read_section(file, elf, i, &table); i++) {
        if (table.sh_type != type || !find_in_table(file, &table, address, &found))
            continue;
        symbol->function_offset = address - found.st_value;
        return read_section(file, elf, table.sh_link, &names) &&
               read_name(file, names.sh_offset + found.st_name, symbol->function,
                         sizeof(symbol->function));
    }
    return false;
}

static bool is_native(const elf_header *elf)
{
    return memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 && elf->e_ident[EI_CLASS] == NATIVE_CLASS &&
           elf->e_shentsize == sizeof(elf_section);
}

static void find_function(const char *path, uintptr_t address, weir__symbol *symbol)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    elf_header elf;

    if (file < 0)
        return; /* the vdso of the kernel, or deleted */
    if (read_at(file, &elf, sizeof(elf), 0) && is_native(&elf) &&
        !find_in_tables(file, &elf, SHT_SYMTAB, address, symbol))
        (void)find_in_tables(file, &elf, SHT_DYNSYM, address, symbol);
    (void)close(file);
}

static const char *name_of(const struct module *module)
{
    const char *slash = strrchr(module->path, '/');

    if (strcmp(module->path, "/proc/self/exe") == 0)
        return program_invocation_short_name;
    return slash != NULL ? slash + 1 : module->path;
}

void weir__symbol_find(const void *address, weir__symbol *ret_symbol)
{
    /* The call precedes its return address, which may already belong to the next function. */
    struct module module = {.wanted = (uintptr_t)address - 1};

    *ret_symbol = (weir__symbol){.address = address};
    if (dl_iterate_phdr(on_module, &module) == 0)
        return;
    (void)snprintf(ret_symbol->module, sizeof(ret_symbol->module), "%.*s",
                   (int)sizeof(ret_symbol->module) - 1, name_of(&module));
    ret_symbol->module_offset = (uintptr_t)address - module.base;
    find_function(module.path, module.wanted - module.base, ret_symbol);
    if (ret_symbol->function[0] != '\0')
        ret_symbol->function_offset++;
}

size_t weir__symbol_describe(const weir__symbol *symbol, char *text, size_t size)
{
    int length;

    if (symbol->module[0] == '\0')
        length = snprintf(text, size, "%p", symbol->address);
    else if (symbol->function[0] == '\0')
        length = snprintf(text, size, "%s+0x%zx", symbol->module, (size_t)symbol->module_offset);
    else
        length = snprintf(text, size, "%s+0x%zx (%s+0x%zx)", symbol->function,
                          (size_t)symbol->function_offset, symbol->module,
                          (size_t)symbol->module_offset);
    return length > 0 ? (size_t)length : 0;
}
