/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the caller of a function by the tables of its module.
 *
 *     .eh_frame_hdr --binary search--> FDE (one function) --offset before it--> CIE (shared part)
 *     instructions of CIE and FDE, up to the pc --> a row: the rule of each register, and the CFA
 *
 * The CFA is the stack pointer of the caller before the call. Formats: "DWARF Exception Header
 * Encoding" of the Linux Standard Base, and chapter 6.4 of DWARF 4.
 */
#include "os/cfi.h"

#include <string.h>

#define ROWS_MAX 8            /* remembered */
#define EXPRESSION_MAX 32     /* values on its stack */
#define INSTRUCTIONS_MAX 4096 /* of a function */

/* ---- reading ---- */

struct cursor {
    const weir__cfi_memory *memory;
    size_t at; /* at most `end` */
    size_t end;
    bool failed; /* the end was passed: the values since are 0 */
};

static struct cursor cursor_at(const weir__cfi_memory *memory, uintptr_t address)
{
    uintptr_t offset = address - memory->address;
    bool holds = offset <= memory->length;

    return (struct cursor){memory, holds ? offset : 0, holds ? memory->length : 0, !holds};
}

static uintptr_t address_of(const struct cursor *cursor)
{
    return cursor->memory->address + cursor->at;
}

static void skip(struct cursor *cursor, uint64_t length)
{
    if (length > cursor->end - cursor->at) {
        cursor->failed = true;
        length = cursor->end - cursor->at;
    }
    cursor->at += length;
}

/* Both architectures are little endian in Linux programs that have these tables. */
static uint64_t read_unsigned(struct cursor *cursor, size_t size)
{
    size_t at = cursor->at;
    uint64_t value = 0;

    skip(cursor, size);
    if (!cursor->failed)
        memcpy(&value, cursor->memory->bytes + at, size);
    return value;
}

static int64_t read_signed(struct cursor *cursor, size_t size)
{
    uint64_t sign = (uint64_t)1 << (8 * size - 1);

    return (int64_t)((read_unsigned(cursor, size) ^ sign) - sign);
}

/* Of a variable length: 7 bits a byte. */
static uint64_t read_uleb(struct cursor *cursor)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;

    do {
        byte = read_unsigned(cursor, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0);
    return value;
}

static int64_t read_sleb(struct cursor *cursor)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;

    do {
        byte = read_unsigned(cursor, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0);
    if (shift < 64 && (byte & 0x40) != 0)
        value |= ~(uint64_t)0 << shift;
    return (int64_t)value;
}

/* The low four bits of an encoding are the format, the next three what the value is relative to. */
static uint64_t read_pointer(struct cursor *cursor, unsigned encoding, uintptr_t header)
{
    uintptr_t here = address_of(cursor);
    uint64_t value = 0;

    switch (encoding & 0x0f) {
    case 0x00: /* as wide as a pointer */
    case 0x04:
    case 0x0c:
        value = read_unsigned(cursor, 8);
        break;
    case 0x01:
        value = read_uleb(cursor);
        break;
    case 0x02:
        value = read_unsigned(cursor, 2);
        break;
    case 0x03:
        value = read_unsigned(cursor, 4);
        break;
    case 0x09:
        value = (uint64_t)read_sleb(cursor);
        break;
    case 0x0a:
        value = (uint64_t)read_signed(cursor, 2);
        break;
    case 0x0b:
        value = (uint64_t)read_signed(cursor, 4);
        break;
    default:
        cursor->failed = true;
    }
    if ((encoding & 0x70) == 0x10)
        return value + here;
    if ((encoding & 0x70) == 0x30)
        return value + header;
    cursor->failed |= (encoding & 0x70) != 0;
    return value;
}

bool weir__cfi_memory_read(const weir__cfi_memory *memory, uintptr_t address, uintptr_t *ret_value)
{
    uintptr_t offset = address - memory->address;

    if (memory->length < sizeof(*ret_value) || offset > memory->length - sizeof(*ret_value))
        return false;
    memcpy(ret_value, memory->bytes + offset, sizeof(*ret_value));
    return true;
}

/* ---- finding the function ---- */

#define TABLE_ENCODING 0x3b /* of all linkers: 4 bytes, relative to the header */

/* Returns the address of the FDE that may have the pc; 0 = none. */
static uintptr_t find_fde(const weir__cfi_memory *tables, uintptr_t header, uintptr_t pc)
{
    struct cursor start = cursor_at(tables, header), entry;
    uint64_t version = read_unsigned(&start, 1), encodings = read_unsigned(&start, 3);
    uint64_t low = 0, high;

    (void)read_pointer(&start, encodings & 0xff, header); /* .eh_frame */
    high = read_pointer(&start, encodings >> 8 & 0xff, header);
    if (version != 1 || encodings >> 16 != TABLE_ENCODING || start.failed ||
        high > (start.end - start.at) / 8)
        return 0;
    while (low < high) { /* the functions before `low` begin at the pc or before it */
        uint64_t middle = low + (high - low) / 2;

        entry = cursor_at(tables, address_of(&start) + 8 * middle);
        if (header + (uintptr_t)read_signed(&entry, 4) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    entry = cursor_at(tables, address_of(&start) + 8 * (low - 1) + 4);
    return header + (uintptr_t)read_signed(&entry, 4);
}

struct function {
    uintptr_t begin;
    uint64_t code_unit;
    int64_t data_unit;
    uint64_t return_register;
    unsigned encoding;         /* of code addresses */
    bool has_lengths;          /* of augmentations, in the FDE */
    bool is_signal;            /* returns to code that a signal has interrupted */
    struct cursor common, own; /* instructions */
};

/* Returns a cursor behind the length of a CIE or FDE, which ends with it. */
static struct cursor read_entry(const weir__cfi_memory *tables, uintptr_t address)
{
    struct cursor entry = cursor_at(tables, address);
    uint64_t length = read_unsigned(&entry, 4);

    if (length == 0xffffffff)
        length = read_unsigned(&entry, 8);
    if (length > entry.end - entry.at)
        entry.failed = true;
    else
        entry.end = entry.at + length;
    return entry;
}

static bool read_augmentation(struct cursor *entry, const char *text, struct function *function)
{
    uint64_t length, start;

    if (text[0] == '\0')
        return true;
    if (text[0] != 'z')
        return false;
    function->has_lengths = true;
    length = read_uleb(entry);
    start = entry->at;
    for (text++; *text != '\0'; text++) {
        if (*text == 'R')
            function->encoding = (unsigned)read_unsigned(entry, 1);
        else if (*text == 'P')
            (void)read_pointer(entry, read_unsigned(entry, 1) & 0x0f, 0);
        else if (*text == 'L')
            skip(entry, 1);
        else if (*text == 'S')
            function->is_signal = true;
        else if (*text != 'B') /* return addresses are signed with the second key */
            break;
    }
    entry->at = start;
    skip(entry, length);
    return !entry->failed;
}

static bool read_cie(const weir__cfi_memory *tables, uintptr_t address, struct function *function)
{
    struct cursor entry = read_entry(tables, address);
    bool is_cie = read_unsigned(&entry, 4) == 0;
    uint64_t version = read_unsigned(&entry, 1);
    char augmentation[8] = "";
    size_t length = 0;

    while (length < sizeof(augmentation) &&
           (augmentation[length] = (char)read_unsigned(&entry, 1)) != '\0')
        length++;
    if (!is_cie || (version != 1 && version != 3) || length == sizeof(augmentation))
        return false;
    function->code_unit = read_uleb(&entry);
    function->data_unit = read_sleb(&entry);
    function->return_register = version == 1 ? read_unsigned(&entry, 1) : read_uleb(&entry);
    if (!read_augmentation(&entry, augmentation, function))
        return false;
    function->common = entry;
    return !entry.failed && function->return_register < WEIR__CFI_REGISTERS;
}

static bool find_function(const weir__cfi_memory *tables, uintptr_t header, uintptr_t pc,
                          struct function *ret_function)
{
    uintptr_t fde = find_fde(tables, header, pc), here;
    struct cursor entry = read_entry(tables, fde);
    uint64_t length;

    *ret_function = (struct function){0};
    here = address_of(&entry);
    if (fde == 0 || entry.failed ||
        !read_cie(tables, here - (uintptr_t)read_unsigned(&entry, 4), ret_function))
        return false;
    ret_function->begin = (uintptr_t)read_pointer(&entry, ret_function->encoding, header);
    length = read_pointer(&entry, ret_function->encoding & 0x0f, header);
    if (ret_function->has_lengths)
        skip(&entry, read_uleb(&entry));
    ret_function->own = entry;
    return !entry.failed && pc - ret_function->begin < length;
}

/* ---- the row of the pc ---- */

enum rule_kind { SAME, UNDEFINED, SAVED, VALUE, REGISTER, EXPRESSION, VALUE_EXPRESSION };

struct rule {
    enum rule_kind kind;
    int64_t value; /* of SAVED and VALUE: relative to the CFA; the number of a REGISTER */
    struct cursor expression;
};

struct row {
    struct rule cfa; /* SAVED: the register `cfa_register` plus the value; or EXPRESSION */
    uint64_t cfa_register;
    struct rule rules[WEIR__CFI_REGISTERS];
};

struct program {
    const struct function *function;
    uintptr_t pc;
    uintptr_t location; /* of the row */
    struct row row;
    struct row initial; /* after the instructions of the CIE */
    struct row remembered[ROWS_MAX];
    size_t remembered_count;
};

static void set_rule(struct program *program, uint64_t number, enum rule_kind kind, int64_t value)
{
    if (number < WEIR__CFI_REGISTERS)
        program->row.rules[number] = (struct rule){.kind = kind, .value = value};
}

/* The expression is a length and as many bytes. */
static struct rule read_expression(struct cursor *code, enum rule_kind kind)
{
    struct rule rule = {.kind = kind};
    uint64_t length = read_uleb(code);

    rule.expression = *code;
    skip(code, length);
    rule.expression.end = code->at;
    return rule;
}

static void restore_rule(struct program *program, uint64_t number)
{
    if (number < WEIR__CFI_REGISTERS)
        program->row.rules[number] = program->initial.rules[number];
}

static int64_t scaled(const struct program *program, int64_t factor)
{
    return (int64_t)((uint64_t)factor * (uint64_t)program->function->data_unit);
}

static void define_cfa(struct program *program, uint64_t number, int64_t offset)
{
    program->row.cfa = (struct rule){.kind = SAVED, .value = offset};
    program->row.cfa_register = number;
}

static void advance(struct program *program, uint64_t units)
{
    program->location += units * program->function->code_unit;
}

/* An instruction that sets the rule of one register. Returns false if it is not known. */
static bool run_rule(struct program *program, struct cursor *code, uint64_t instruction)
{
    uint64_t number = read_uleb(code);

    switch (instruction) {
    case 0x05: /* offset_extended */
        set_rule(program, number, SAVED, scaled(program, (int64_t)read_uleb(code)));
        return true;
    case 0x06: /* restore_extended */
        restore_rule(program, number);
        return true;
    case 0x07: /* undefined */
        set_rule(program, number, UNDEFINED, 0);
        return true;
    case 0x08: /* same_value */
        set_rule(program, number, SAME, 0);
        return true;
    case 0x09: /* register */
        set_rule(program, number, REGISTER, (int64_t)read_uleb(code));
        return true;
    case 0x11: /* offset_extended_sf */
        set_rule(program, number, SAVED, scaled(program, read_sleb(code)));
        return true;
    case 0x14: /* val_offset */
        set_rule(program, number, VALUE, scaled(program, (int64_t)read_uleb(code)));
        return true;
    case 0x15: /* val_offset_sf */
        set_rule(program, number, VALUE, scaled(program, read_sleb(code)));
        return true;
    case 0x10: /* expression */
    case 0x16: /* val_expression */
        if (number >= WEIR__CFI_REGISTERS)
            return false;
        program->row.rules[number] =
            read_expression(code, instruction == 0x10 ? EXPRESSION : VALUE_EXPRESSION);
        return true;
    default:
        return false;
    }
}

/* An instruction without operands in its first byte. Returns false if it is not known. */
static bool run_extended(struct program *program, struct cursor *code, uint64_t instruction)
{
    struct row *row = &program->row;
    uint64_t number;

    switch (instruction) {
    case 0x00: /* nop */
    case 0x2d: /* negate_ra_state: the bits of a signature are always removed */
        return true;
    case 0x01: /* set_loc */
        program->location = (uintptr_t)read_pointer(code, program->function->encoding, 0);
        return (program->function->encoding & 0x70) != 0x30;
    case 0x02: /* advance_loc1, 2, 4 */
    case 0x03:
    case 0x04:
        advance(program, read_unsigned(code, (size_t)1 << (instruction - 0x02)));
        return true;
    case 0x0a: /* remember_state */
        if (program->remembered_count == ROWS_MAX)
            return false;
        program->remembered[program->remembered_count++] = *row;
        return true;
    case 0x0b: /* restore_state */
        if (program->remembered_count == 0)
            return false;
        *row = program->remembered[--program->remembered_count];
        return true;
    case 0x0c: /* def_cfa */
        number = read_uleb(code);
        define_cfa(program, number, (int64_t)read_uleb(code));
        return true;
    case 0x0d: /* def_cfa_register */
        row->cfa_register = read_uleb(code);
        return row->cfa.kind == SAVED;
    case 0x0e: /* def_cfa_offset */
        row->cfa.value = (int64_t)read_uleb(code);
        return row->cfa.kind == SAVED;
    case 0x0f: /* def_cfa_expression */
        row->cfa = read_expression(code, EXPRESSION);
        return true;
    case 0x12: /* def_cfa_sf */
        number = read_uleb(code);
        define_cfa(program, number, scaled(program, read_sleb(code)));
        return true;
    case 0x13: /* def_cfa_offset_sf */
        row->cfa.value = scaled(program, read_sleb(code));
        return row->cfa.kind == SAVED;
    case 0x2e: /* GNU_args_size */
        (void)read_uleb(code);
        return true;
    default:
        return run_rule(program, code, instruction);
    }
}

/* Runs instructions up to the pc. */
static bool run(struct program *program, struct cursor code)
{
    for (int i = 0; code.at < code.end && program->location <= program->pc; i++) {
        uint64_t instruction = read_unsigned(&code, 1), low = instruction & 0x3f;
        bool is_known = true;

        if (instruction >> 6 == 1)
            advance(program, low);
        else if (instruction >> 6 == 2)
            set_rule(program, low, SAVED, scaled(program, (int64_t)read_uleb(&code)));
        else if (instruction >> 6 == 3)
            restore_rule(program, low);
        else
            is_known = run_extended(program, &code, instruction);
        if (!is_known || code.failed || i == INSTRUCTIONS_MAX)
            return false;
    }
    return true;
}

/*
 * A row describes the instructions from its location on: that of the pc is complete when the
 * location has passed it. The advance itself changes no rule.
 */
static bool find_row(struct program *program)
{
    program->location = program->function->begin;
    if (!run(program, program->function->common))
        return false;
    program->initial = program->row;
    program->location = program->function->begin;
    return run(program, program->function->own);
}

/* ---- expressions ---- */

struct evaluation {
    const weir__cfi_frame *frame;
    const weir__cfi_memory *stack;
    uintptr_t values[EXPRESSION_MAX];
    size_t count;
};

static bool push(struct evaluation *self, uintptr_t value)
{
    if (self->count == EXPRESSION_MAX)
        return false;
    self->values[self->count++] = value;
    return true;
}

static bool push_register(struct evaluation *self, uint64_t number, int64_t offset)
{
    /* x86_64: the "register" of the return address is the pc */
    if (number >= WEIR__CFI_REGISTERS)
        return false;
    return push(self, self->frame->registers[number] + (uintptr_t)offset);
}

/* An operation with two operands. */
static bool combine(struct evaluation *self, uint64_t operation)
{
    uintptr_t *left, right;

    if (self->count < 2)
        return false;
    right = self->values[--self->count];
    left = &self->values[self->count - 1];
    switch (operation) {
    case 0x1a:
        *left &= right;
        return true;
    case 0x1c:
        *left -= right;
        return true;
    case 0x1e:
        *left *= right;
        return true;
    case 0x21:
        *left |= right;
        return true;
    case 0x22:
        *left += right;
        return true;
    case 0x24:
        *left = right < 64 ? *left << right : 0;
        return true;
    case 0x25:
        *left = right < 64 ? *left >> right : 0;
        return true;
    case 0x29:
        *left = *left == right;
        return true;
    case 0x2a:
        *left = (intptr_t)*left >= (intptr_t)right;
        return true;
    case 0x2b:
        *left = (intptr_t)*left > (intptr_t)right;
        return true;
    case 0x2c:
        *left = (intptr_t)*left <= (intptr_t)right;
        return true;
    case 0x2d:
        *left = (intptr_t)*left < (intptr_t)right;
        return true;
    case 0x2e:
        *left = *left != right;
        return true;
    default:
        return false;
    }
}

/* Those that linkers, the C library and assembler code use: no jumps. */
static bool evaluate_one(struct evaluation *self, struct cursor *code)
{
    uint64_t operation = read_unsigned(code, 1), number;
    uintptr_t *top = self->count > 0 ? &self->values[self->count - 1] : NULL;

    if (operation >= 0x30 && operation <= 0x4f) /* lit0 ... lit31 */
        return push(self, (uintptr_t)operation - 0x30);
    if (operation >= 0x70 && operation <= 0x8f) /* breg0 ... breg31 */
        return push_register(self, operation - 0x70, read_sleb(code));
    switch (operation) {
    case 0x06: /* deref */
        return top != NULL && weir__cfi_memory_read(self->stack, *top, top);
    case 0x08: /* const1u ... const8s */
    case 0x0a:
    case 0x0c:
    case 0x0e:
        return push(self, (uintptr_t)read_unsigned(code, (size_t)1 << (operation - 0x08) / 2));
    case 0x09:
    case 0x0b:
    case 0x0d:
    case 0x0f:
        return push(self, (uintptr_t)read_signed(code, (size_t)1 << (operation - 0x09) / 2));
    case 0x10: /* constu */
        return push(self, (uintptr_t)read_uleb(code));
    case 0x11: /* consts */
        return push(self, (uintptr_t)read_sleb(code));
    case 0x12: /* dup */
        return top != NULL && push(self, *top);
    case 0x23: /* plus_uconst */
        number = read_uleb(code);
        if (top != NULL)
            *top += (uintptr_t)number;
        return top != NULL;
    case 0x92: /* bregx */
        number = read_uleb(code);
        return push_register(self, number, read_sleb(code));
    case 0x96: /* nop */
        return true;
    default:
        return combine(self, operation);
    }
}

static bool evaluate(const weir__cfi_frame *frame, const weir__cfi_memory *stack,
                     struct cursor code, const uintptr_t *first, uintptr_t *ret_value)
{
    struct evaluation self = {.frame = frame, .stack = stack};

    if (first != NULL)
        (void)push(&self, *first);
    while (code.at < code.end)
        if (!evaluate_one(&self, &code) || code.failed)
            return false;
    if (self.count == 0)
        return false;
    *ret_value = self.values[self.count - 1];
    return true;
}

/* ---- the caller ---- */

static bool find_cfa(const struct row *row, const weir__cfi_frame *frame,
                     const weir__cfi_memory *stack, uintptr_t *ret_cfa)
{
    if (row->cfa.kind == EXPRESSION)
        return evaluate(frame, stack, row->cfa.expression, NULL, ret_cfa);
    if (row->cfa.kind != SAVED || row->cfa_register >= WEIR__CFI_REGISTERS)
        return false;
    *ret_cfa = frame->registers[row->cfa_register] + (uintptr_t)row->cfa.value;
    return true;
}

static bool apply(const struct rule *rule, const weir__cfi_frame *frame,
                  const weir__cfi_memory *stack, uintptr_t cfa, uintptr_t *value)
{
    switch (rule->kind) {
    case SAVED:
        return weir__cfi_memory_read(stack, cfa + (uintptr_t)rule->value, value);
    case VALUE:
        *value = cfa + (uintptr_t)rule->value;
        return true;
    case REGISTER:
        if ((uint64_t)rule->value >= WEIR__CFI_REGISTERS)
            return false;
        *value = frame->registers[rule->value];
        return true;
    case EXPRESSION:
        return evaluate(frame, stack, rule->expression, &cfa, value) &&
               weir__cfi_memory_read(stack, *value, value);
    case VALUE_EXPRESSION:
        return evaluate(frame, stack, rule->expression, &cfa, value);
    default:
        return true;
    }
}

/* Removes the signature of a return address: xpaclri, which older CPUs ignore. */
static uintptr_t without_signature(uintptr_t address)
{
#if defined(__aarch64__)
    register uintptr_t x30 __asm__("x30") = address;

    __asm__("hint #7" : "+r"(x30));
    return x30;
#else
    return address;
#endif
}

weir__cfi_result weir__cfi_step(const weir__cfi_memory *tables, uintptr_t header,
                                const weir__cfi_memory *stack, weir__cfi_frame *frame,
                                weir__cfi_frame *ret_caller)
{
    uintptr_t pc = frame->pc - !frame->is_interrupted, cfa;
    struct function function;
    struct program program = {.function = &function, .pc = pc};

    frame->function = 0;
    if (!find_function(tables, header, pc, &function))
        return WEIR__CFI_NO_TABLE;
    frame->function = function.begin;
    if (!find_row(&program) || !find_cfa(&program.row, frame, stack, &cfa) ||
        program.row.rules[function.return_register].kind == UNDEFINED)
        return WEIR__CFI_END;
    *ret_caller = *frame;
    ret_caller->registers[WEIR__CFI_SP] = cfa;
    for (size_t i = 0; i < WEIR__CFI_REGISTERS; i++)
        if (!apply(&program.row.rules[i], frame, stack, cfa, &ret_caller->registers[i]))
            return WEIR__CFI_END;
    ret_caller->pc = without_signature(ret_caller->registers[function.return_register]);
    ret_caller->is_interrupted = function.is_signal;
    ret_caller->function = 0;
    return WEIR__CFI_CALLER;
}
