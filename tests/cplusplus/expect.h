/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXPECT for the C++ programs, each of one file: counts what does not hold, and says where.
 */
#ifndef CPLUSPLUS_EXPECT_H
#define CPLUSPLUS_EXPECT_H

#include <cstdio>

#define EXPECT(condition) expect((condition), #condition, __FILE__, __LINE__)

static int failures = 0;

static inline void expect(bool holds, const char *condition, const char *file, int line)
{
    if (holds)
        return;
    failures++;
    std::fprintf(stderr, "%s:%d: %s\n", file, line, condition);
}

#endif
