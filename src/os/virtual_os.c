/* SPDX-License-Identifier: Apache-2.0 */
#include "os/virtual_os.h"

#include <assert.h>

#define END_MAX 8

const weir__virtual_os *weir__virtual_os_set;

static void (*at_end[END_MAX])(void);

void weir__virtual_os_at_end(void (*fn)(void))
{
    unsigned i = 0;

    while (i < END_MAX && at_end[i] != NULL && at_end[i] != fn)
        i++;
    assert(i < END_MAX);
    at_end[i] = fn;
}

void weir__virtual_os_end(void)
{
    for (unsigned i = 0; i < END_MAX && at_end[i] != NULL; i++) {
        void (*fn)(void) = at_end[i];

        at_end[i] = NULL;
        fn();
    }
}
