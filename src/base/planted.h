/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes that are planted into the library to find out whether the simulator finds them
 * (tests/sim/planted.txt). Only that test compiles the files that contain them with WEIR_PLANTED;
 * everywhere else WEIR__PLANTED is false and leaves no code behind.
 */
#ifndef WEIR_BASE_PLANTED_H
#define WEIR_BASE_PLANTED_H

#include <stdbool.h>

#ifdef WEIR_PLANTED

enum weir__planted {
    WEIR__PLANTED_NONE,
    WEIR__PLANTED_LOST_WAKEUP,
};

extern enum weir__planted weir__planted;

#define WEIR__PLANTED(name) (weir__planted == WEIR__PLANTED_##name)

/* Selects a mistake by its name, "LOST_WAKEUP"; false if there is none of that name. */
bool weir__planted_select(const char *name);

#else

#define WEIR__PLANTED(name) false

static inline bool weir__planted_select(const char *name)
{
    (void)name;
    return false;
}

#endif

#endif
