/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backtrace(3), where the C library has it.
 */
#include "os/backtrace.h"

#include <string.h> /* and which C library this is */

#ifdef __GLIBC__
#include <execinfo.h>

#define FRAMES_MAX 64
#define FRAMES_OWN 4 /* this function's, and a sanitizer's that stands before backtrace(3) */

/* Not inlined: the frames that are wanted begin with the one that this returns to. */
__attribute__((noinline)) size_t weir__backtrace(void **ret_frames, size_t count)
{
    void *frames[FRAMES_MAX];
    int wanted = count < FRAMES_MAX - FRAMES_OWN ? (int)count + FRAMES_OWN : FRAMES_MAX;
    int found = backtrace(frames, wanted);
    int first = 0;

    while (first < found && frames[first] != __builtin_return_address(0))
        first++;
    if ((size_t)(found - first) < count)
        count = (size_t)(found - first);
    memcpy(ret_frames, frames + first, count * sizeof(frames[0]));
    return count;
}
#else
size_t weir__backtrace(void **ret_frames, size_t count)
{
    (void)ret_frames;
    (void)count;
    return 0;
}
#endif
