/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that a simulator replaces, and the functions that it needs for that. libweir-sim is a
 * library of its own and sees only exported functions: weir__seams_get is one, for it alone.
 */
#ifndef WEIR_LOOP_SEAMS_H
#define WEIR_LOOP_SEAMS_H

#include <weir/base.h>
#include <weir/group.h>

#include "base/memory.h"
#include "loop/io.h"
#include "os/backtrace.h"
#include "os/random.h"
#include "os/symbol.h"
#include "os/system.h"
#include "os/virtual_os.h"

/* The backend of a loop whose options ask for this one. */
typedef const weir__io_type *weir__backend_fn(enum weir_io io);

typedef struct weir__seams {
    weir__system *system;
    const weir__virtual_os **virtual_os;
    weir__backend_fn **backend; /* of all loops, if not NULL */

    void (*set_fiber)(uintptr_t number); /* the calling thread is that fiber from here on */
    weir_memory (*memory)(void);         /* the allocator that is set */
    void (*begin)(void); /* before a world: initializes what lasts, resets what would differ */
    void (*end)(void);   /* weir__virtual_os_end */
    void (*reap_global)(void); /* frees what the global executor keeps of ended threads */

    void (*random_init)(weir__random *random, uint64_t seed);
    uint64_t (*random_next)(weir__random *random);
    uint64_t (*random_below)(weir__random *random, uint64_t limit);

    /* For reports of a crash: os/backtrace.h, os/symbol.h. */
    void (*stack_take)(weir__stack_copy *copy, const void *context);
    size_t (*stack_unwind)(const weir__stack_copy *copy, const void **ret_frames,
                           const void **ret_functions, size_t count);
    void (*symbol_find)(const void *address, weir__symbol *ret_symbol);
    size_t (*symbol_describe)(const weir__symbol *symbol, char *text, size_t size);

    /* For a backend by readiness. */
    const weir__io_type *readiness; /* its operations: members of WEIR__READINESS_SLOTS */
    unsigned (*wanted)(const weir__io_handle *handle);
    void (*deliver)(weir__io_handle *handle, unsigned events);
    void (*receive)(weir__io_handle *handle, unsigned events);
    bool (*check_clock)(weir__io *io, int64_t until_ns);

    /* For io_uring. NULL if libweir was built without it. */
    const weir__io_type *uring;
    struct weir__uring_calls *uring_calls;
} weir__seams;

/* Internal: for libweir-sim. Thread: setup. */
WEIR_API const weir__seams *weir__seams_get(void);

/* The backends of all loops, or NULL. */
extern weir__backend_fn *weir__backend_set;

#endif
