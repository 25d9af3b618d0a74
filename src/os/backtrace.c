/* SPDX-License-Identifier: Apache-2.0 */
/* Uses backtrace(3) of glibc. */
#include "os/backtrace.h"

#include <string.h> /* defines __GLIBC__ */

#ifdef __GLIBC__
#include <execinfo.h>

#define FRAMES_MAX 64
#define FRAMES_OWN 4 /* this function, and the interceptor of a sanitizer */

/* Not inlined: the result begins with the frame of the caller. */
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
