/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of stacks, and their unwinding.
 *
 * The interrupted thread may be inside of the unwinder of C++ exceptions, the dynamic linker or
 * malloc: unwinding there is not safe, copying is. The tables of a module are read inside of the
 * callback of dl_iterate_phdr, whose lock keeps dlclose from unmapping them.
 */
#include <link.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "os/backtrace.h"

#if defined(__GLIBC__) && WEIR__CFI_REGISTERS > 1
#define IS_AVAILABLE true
#else
#define IS_AVAILABLE false
#endif

#define PIECE 4096   /* a page, or a part of one: the kernel copies each whole or not at all */
#define RED_ZONE 128 /* below the stack pointer, which functions may use */
#define PIECES_MAX (WEIR__STACK_COPY_MAX / PIECE)

/* ---- copying ---- */

static void copy_registers(weir__cfi_frame *frame, const ucontext_t *context)
{
#if defined(__x86_64__) && defined(__LP64__)
    static const int numbers[WEIR__CFI_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

    for (size_t i = 0; i < WEIR__CFI_REGISTERS; i++)
        frame->registers[i] = (uintptr_t)context->uc_mcontext.gregs[numbers[i]];
    frame->pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__) && defined(__LP64__)
    for (size_t i = 0; i < WEIR__CFI_SP; i++)
        frame->registers[i] = context->uc_mcontext.regs[i];
    frame->registers[WEIR__CFI_SP] = context->uc_mcontext.sp;
    frame->pc = context->uc_mcontext.pc;
#else
    (void)context;
    frame->pc = 0;
#endif
}

void weir__stack_copy_take(weir__stack_copy *copy, const void *context)
{
    struct iovec pieces[PIECES_MAX], whole = {copy->bytes, sizeof(copy->bytes)};
    uintptr_t address;
    long length;

#ifdef __SANITIZE_THREAD__ /* it calls signal handlers late: the registers are old ones */
    ucontext_t own;

    (void)getcontext(&own);
    context = &own;
#endif
    copy->frame.is_interrupted = true;
    copy_registers(&copy->frame, context);
    copy->from = address = copy->frame.registers[WEIR__CFI_SP] - RED_ZONE;
    for (size_t i = 0; i < PIECES_MAX; i++) {
        size_t size = PIECE - address % PIECE;

        pieces[i] = (struct iovec){(void *)address, size}; /* NOLINT: an address of the stack */
        address += size;
    }
    length = syscall(SYS_process_vm_readv, getpid(), &whole, 1UL, pieces, (unsigned long)PIECES_MAX,
                     0UL);
    copy->length = length > 0 ? (size_t)length : 0;
}

/* ---- unwinding ---- */

struct step {
    const weir__cfi_memory *stack;
    weir__cfi_frame *frame;
    weir__cfi_frame *caller;
    weir__cfi_result result;
};

static const ElfW(Phdr) * segment_of(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) != 0 &&
            address - (info->dlpi_addr + segment->p_vaddr) < segment->p_filesz)
            return segment;
    }
    return NULL;
}

static int on_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct step *step = arg;
    const ElfW(Phdr) * tables;
    uintptr_t header = 0;

    (void)size;
    if (segment_of(info, step->frame->pc - !step->frame->is_interrupted) == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            header = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    tables = segment_of(info, header);
    if (header != 0 && tables != NULL) {
        uintptr_t begin = info->dlpi_addr + tables->p_vaddr;
        weir__cfi_memory memory = {(const uint8_t *)begin, /* NOLINT: an address of the module */
                                   begin, tables->p_filesz};

        step->result = weir__cfi_step(&memory, header, step->stack, step->frame, step->caller);
    }
    return 1;
}

/* Code without tables may have frame pointers. */
static bool follow_frame_pointer(const weir__cfi_memory *stack, const weir__cfi_frame *frame,
                                 weir__cfi_frame *ret_caller)
{
    uintptr_t address = frame->registers[WEIR__CFI_FP];

    *ret_caller = *frame;
    ret_caller->is_interrupted = false;
    ret_caller->registers[WEIR__CFI_SP] = address + 2 * sizeof(address);
    return address >= frame->registers[WEIR__CFI_SP] &&
           weir__cfi_memory_read(stack, address, &ret_caller->registers[WEIR__CFI_FP]) &&
           weir__cfi_memory_read(stack, address + sizeof(address), &ret_caller->pc);
}

/* A frame that a frame pointer led to is kept if its function has a table. */
size_t weir__stack_copy_unwind(const weir__stack_copy *copy, const void **ret_frames,
                               const void **ret_functions, size_t count)
{
    weir__cfi_memory stack = {copy->bytes, copy->from, copy->length};
    weir__cfi_frame frame = copy->frame, caller;
    bool is_guessed = false, has_caller = true;
    size_t found = 0;

    while (has_caller && found < count && frame.pc != 0) {
        struct step step = {&stack, &frame, &caller, WEIR__CFI_NO_TABLE};

        (void)dl_iterate_phdr(on_module, &step);
        if (is_guessed && step.result == WEIR__CFI_NO_TABLE)
            break;
        ret_frames[found] = (const void *)(frame.pc + frame.is_interrupted);
        ret_functions[found++] = (const void *)frame.function;
        is_guessed = step.result == WEIR__CFI_NO_TABLE;
        has_caller = is_guessed ? follow_frame_pointer(&stack, &frame, &caller)
                                : step.result == WEIR__CFI_CALLER;
        if (has_caller)
            frame = caller;
    }
    return found;
}

bool weir__stack_copy_is_available(void)
{
    return IS_AVAILABLE;
}
