/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/planted/planted.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/planted.h"

enum weir__planted weir__planted;

static const struct {
    const char *name, *text;
} mistakes[] = {{"NONE", "the library as it is"},
#define ROW(name, text) {#name, text},
                WEIR__PLANTED_MISTAKES(ROW)
#undef ROW
};

bool planted_select(const char *name)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        if (strcmp(mistakes[i].name, name) == 0) {
            weir__planted = (enum weir__planted)i;
            return true;
        }
    return false;
}

void planted_list(void)
{
    for (size_t i = 1; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        printf("%-20s %s\n", mistakes[i].name, mistakes[i].text);
}
