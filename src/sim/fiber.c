/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of fibers, the switch between them, and their thread-local variables.
 *
 * A simulated thread must have its own copy of each thread-local variable: the executor that it
 * runs, its caches, its exit hooks. All fibers run in one thread, so the switch exchanges the
 * contents: it copies the blocks of the program and of weir's libraries out and in, about a
 * kilobyte. The blocks of the C library and of sanitizers stay. `errno` is one of those and is
 * saved separately.
 */
#include "sim/world.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/sanitizer.h"

#define STACK_SIZE ((size_t)256 * 1024)
#define GUARD_SIZE ((size_t)4096)
#define MODULES_MAX 8

/* ---- thread-local variables ---- */

struct module {
    char *block; /* of the calling thread */
    const void *initial;
    size_t initial_size;
    size_t size;
};

static struct module modules[MODULES_MAX];
static unsigned module_count;
static size_t locals_size;

/* The program itself has no name. */
static bool is_exchanged(const char *path)
{
    const char *name = strrchr(path, '/');

    name = name != NULL ? name + 1 : path;
    return name[0] == '\0' || strncmp(name, "libweir", 7) == 0;
}

static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (!is_exchanged(info->dlpi_name) || info->dlpi_tls_data == NULL)
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum && module_count < MODULES_MAX; i++) {
        if (info->dlpi_phdr[i].p_type != PT_TLS)
            continue;
        modules[module_count++] = (struct module){
            .block = info->dlpi_tls_data,
            .initial = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
            .initial_size = info->dlpi_phdr[i].p_filesz,
            .size = info->dlpi_phdr[i].p_memsz,
        };
        locals_size += info->dlpi_phdr[i].p_memsz;
    }
    return 0;
}

static void init_locals(char *locals)
{
    for (unsigned i = 0; i < module_count; i++) {
        memcpy(locals, modules[i].initial, modules[i].initial_size);
        memset(locals + modules[i].initial_size, 0, modules[i].size - modules[i].initial_size);
        locals += modules[i].size;
    }
}

/* Not instrumented: ASan poisons the space between variables. */
__attribute__((no_sanitize("address"))) static void copy(char *to, const char *from, size_t size)
{
    uint64_t word;

    for (; size >= sizeof(word); size -= sizeof(word)) {
        __builtin_memcpy(&word, from, sizeof(word));
        __builtin_memcpy(to, &word, sizeof(word));
        to += sizeof(word);
        from += sizeof(word);
    }
    for (; size > 0; size--)
        *to++ = *from++;
}

static void exchange_locals(char *save, const char *restore)
{
    for (unsigned i = 0; i < module_count; i++) {
        copy(save, modules[i].block, modules[i].size);
        copy(modules[i].block, restore, modules[i].size);
        save += modules[i].size;
        restore += modules[i].size;
    }
}

/* ---- stacks: kept for the next fibers, also of the next world ---- */

static char *free_stacks; /* linked by their first word above the guard */

static char *take_stack(void)
{
    char *stack = free_stacks;

    if (stack != NULL) {
        memcpy(&free_stacks, stack + GUARD_SIZE, sizeof(free_stacks));
        return stack;
    }
    stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    (void)mprotect(stack, GUARD_SIZE, PROT_NONE);
    return stack;
}

static void return_stack(char *stack)
{
#if WEIR__SIM_ASAN
    __asan_unpoison_memory_region(stack + GUARD_SIZE, STACK_SIZE - GUARD_SIZE);
#endif
    memcpy(stack + GUARD_SIZE, &free_stacks, sizeof(free_stacks));
    free_stacks = stack;
}

/* ---- the switch ---- */

void weir__sim_switch_stack(void **save, void *restore);

#if defined(__x86_64__)

/* Saves the registers that a call preserves. */
__asm__(".text\n"
        ".globl weir__sim_switch_stack\n"
        ".hidden weir__sim_switch_stack\n"
        ".type weir__sim_switch_stack, @function\n"
        "weir__sim_switch_stack:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size weir__sim_switch_stack, . - weir__sim_switch_stack\n");

#define SAVED_WORDS 6

/* `ret` pops the address of fiber_begin, which finds a stack as after a call. */
static void *first_frame(char *top, void (*begin)(void))
{
    void **frame = (void **)(void *)(top - 24);

    frame[0] = NULL; /* where fiber_begin would return to */
    *--frame = (void *)(uintptr_t)begin;
    for (int i = 0; i < SAVED_WORDS; i++)
        *--frame = NULL;
    return frame;
}

#elif defined(__aarch64__)

__asm__(".text\n"
        ".globl weir__sim_switch_stack\n"
        ".hidden weir__sim_switch_stack\n"
        ".type weir__sim_switch_stack, %function\n"
        "weir__sim_switch_stack:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size weir__sim_switch_stack, . - weir__sim_switch_stack\n");

#define SAVED_WORDS 20
#define LINK_REGISTER 11

static void *first_frame(char *top, void (*begin)(void))
{
    void **frame = (void **)(void *)(top - 16) - SAVED_WORDS;

    memset(frame, 0, SAVED_WORDS * sizeof(*frame));
    frame[LINK_REGISTER] = (void *)(uintptr_t)begin;
    return frame;
}

#else
#error "weir-sim knows x86-64 and aarch64"
#endif

static weir__sim_fiber *switched_from; /* for ASan, and to free ended fibers */

/* Completes a switch, on the stack of the fiber that runs from here on. */
static void arrive(weir__sim_fiber *self)
{
#if WEIR__SIM_ASAN
    const void *bottom;
    size_t size;

    __sanitizer_finish_switch_fiber(self->fake_stack, &bottom, &size);
    if (switched_from->stack == NULL && switched_from == &weir__sim->root) {
        weir__sim->root.wait_object = bottom; /* the stack of the thread */
        weir__sim->root.slot = size;
    }
#else
    (void)self;
#endif
}

static void fiber_begin(void)
{
    arrive(weir__sim->current);
    weir__sim_fiber_main();
}

void weir__sim_fiber_switch(weir__sim_fiber *from, weir__sim_fiber *to)
{
    from->saved_errno = errno;
    exchange_locals(from->locals, to->locals);
    switched_from = from;
#if WEIR__SIM_ASAN
    {
        const void *bottom = to->stack != NULL ? to->stack + GUARD_SIZE : to->wait_object;
        size_t size = to->stack != NULL ? STACK_SIZE - GUARD_SIZE : to->slot;

        __sanitizer_start_switch_fiber(from->state == WEIR__SIM_ENDED ? NULL : &from->fake_stack,
                                       bottom, size);
    }
#endif
    weir__sim_switch_stack(&from->stack_pointer, to->stack_pointer);
    arrive(from);
    errno = from->saved_errno;
}

int weir__sim_fiber_prepare(weir__sim_fiber *fiber)
{
    fiber->locals = malloc(locals_size + 1);
    fiber->stack = take_stack();
    if (fiber->locals == NULL || fiber->stack == NULL) {
        weir__sim_fiber_unprepare(fiber);
        return -ENOMEM;
    }
    init_locals(fiber->locals);
    fiber->stack_pointer = first_frame(fiber->stack + STACK_SIZE, fiber_begin);
    return 0;
}

void weir__sim_fiber_unprepare(weir__sim_fiber *fiber)
{
    if (fiber->stack != NULL)
        return_stack(fiber->stack);
    free(fiber->locals);
    fiber->stack = NULL;
    fiber->locals = NULL;
}

/*
 * True if the variables of the C library are among those that are exchanged: the program is linked
 * with -static. A new fiber would have a C library that nobody has initialized. musl has no
 * thread-local variables.
 */
static bool exchanges_libc(void)
{
    for (unsigned i = 0; i < module_count; i++)
        if ((char *)&errno >= modules[i].block &&
            (char *)&errno < modules[i].block + modules[i].size)
            return true;
    return false;
}

int weir__sim_fibers_begin(void)
{
    module_count = 0;
    locals_size = 0;
    (void)dl_iterate_phdr(find_module, NULL);
    if (exchanges_libc())
        return -ENOTSUP;
    weir__sim->root.locals = malloc(locals_size + 1);
    return weir__sim->root.locals != NULL ? 0 : -ENOMEM;
}

void weir__sim_fibers_end(void)
{
    free(weir__sim->root.locals);
    weir__sim->root.locals = NULL;
}
