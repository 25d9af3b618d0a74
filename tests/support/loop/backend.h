/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends that every test of the suite runs on, and how it is said that a test does: for such
 * definitions as TEST_EACH_LOOP (support/loop/host.h).
 */
#ifndef WEIR_TEST_BACKEND_H
#define WEIR_TEST_BACKEND_H

#include <weir/group.h>

#include "loop/io.h"
#include "support/test.h"

enum backend_id {
    BACKEND_EPOLL,
    BACKEND_URING,      /* poll-first */
    BACKEND_URING_RING, /* receives by a buffer ring */
    BACKEND_POLL,
    BACKEND_COUNT, /* of event loops */

    BACKEND_BLOCKING = BACKEND_COUNT, /* a thread per channel, which polls */
    BACKEND_KINDS,
};

struct backend {
    const char *name;
    const weir__io_type *type; /* NULL = not built */
    enum weir_io io;           /* a group's option for it */
    bool ring_receive;
};

extern const struct backend backends[BACKEND_KINDS];

/* As weir__io_create: an error leaves a sentence in `reason`, also if the backend is not built. */
int backend_create(const struct backend *backend, weir__io **ret_io, char *reason, size_t size);

#define BACKEND_NAME_EPOLL "epoll"
#define BACKEND_NAME_URING "uring"
#define BACKEND_NAME_URING_RING "uring-ring"
#define BACKEND_NAME_POLL "poll"
#define BACKEND_NAME_BLOCKING "blocking"

/* XX(EPOLL, ...) and so on, for each event loop; and for those and threads per channel. */
#define BACKEND_LOOPS(XX, ...) \
    XX(EPOLL, __VA_ARGS__) XX(URING, __VA_ARGS__) XX(URING_RING, __VA_ARGS__) XX(POLL, __VA_ARGS__)
#define BACKEND_HOSTS(XX, ...) BACKEND_LOOPS(XX, __VA_ARGS__) XX(BLOCKING, __VA_ARGS__)

#define BACKEND_FUNCTION(id, run, test, name) \
    static void test##_on_##id(void)          \
    {                                         \
        run(BACKEND_##id, test);              \
    }

#define BACKEND_CASE(id, run, test, name) {name "@" BACKEND_NAME_##id, test##_on_##id, NULL},

/* Tests of one body, that has a parameter: run(BACKEND_EPOLL, test) calls it, and so on. */
#define BACKEND_TESTS(list, run, parameter, test, name)                          \
    static void test(parameter);                                                 \
    list(BACKEND_FUNCTION, run, test, name)                                      \
        __attribute__((constructor)) static void register_##test(void)           \
    {                                                                            \
        static struct test_case tests[] = {list(BACKEND_CASE, run, test, name)}; \
                                                                                 \
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)            \
            test_register(&tests[i]);                                            \
    }                                                                            \
    static void test(parameter)

#endif
