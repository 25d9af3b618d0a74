/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses backtrace(3) of glibc, and the unwinder of the compiler's runtime, which backtrace uses,
 * too.
 */
#include "os/backtrace.h"

#include <string.h> /* defines __GLIBC__ */

#ifdef __GLIBC__
#include <execinfo.h>
#include <stdint.h>
#include <unwind.h>

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

struct walk {
    const void **frames;
    const void **functions;
    size_t count;
    size_t capacity;
    bool has_interrupted; /* a frame is that of the interrupted code */
};

/* The frames before the interrupted one are those of the signal handler. A sanitizer may call it
 * later, from a function of its own: then there is none. */
static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *arg)
{
    struct walk *walk = arg;
    int is_interrupted = 0;
    uintptr_t address = _Unwind_GetIPInfo(context, &is_interrupted);

    if (is_interrupted != 0 && !walk->has_interrupted) {
        walk->has_interrupted = true;
        walk->count = 0;
    }
    if (walk->count == walk->capacity || address == 0)
        return _URC_END_OF_STACK;
    walk->frames[walk->count] = (const void *)(address + (is_interrupted != 0));
    walk->functions[walk->count] = (const void *)(uintptr_t)_Unwind_GetRegionStart(context);
    walk->count++;
    return _URC_NO_REASON;
}

size_t weir__backtrace_interrupted(const void **ret_frames, const void **ret_functions,
                                   size_t count)
{
    struct walk walk = {.frames = ret_frames, .functions = ret_functions, .capacity = count};

    (void)_Unwind_Backtrace(on_frame, &walk);
    return walk.count;
}

/* The first call may load and initialize a library. */
void weir__backtrace_prepare(void)
{
    const void *frames[2], *functions[2];

    (void)weir__backtrace_interrupted(frames, functions, 2);
}

bool weir__backtrace_is_available(void)
{
    return true;
}
#else
size_t weir__backtrace_interrupted(const void **ret_frames, const void **ret_functions,
                                   size_t count)
{
    (void)ret_frames;
    (void)ret_functions;
    (void)count;
    return 0;
}

void weir__backtrace_prepare(void)
{
}

bool weir__backtrace_is_available(void)
{
    return false;
}

size_t weir__backtrace(void **ret_frames, size_t count)
{
    (void)ret_frames;
    (void)count;
    return 0;
}
#endif
