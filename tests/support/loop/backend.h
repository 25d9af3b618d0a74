/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends that every test runs on, and the macros that define a test for each of them; used by
 * definitions such as TEST_EACH_LOOP (support/loop/host.h).
 */
#ifndef WEIR_TEST_BACKEND_H
#define WEIR_TEST_BACKEND_H

#include <weir/group.h>

#include "loop/io.h"
#include "support/test.h"

enum backend_id {
    BACKEND_EPOLL,
    BACKEND_URING,
    BACKEND_POLL,
    BACKEND_COUNT, /* number of event loops */

    BACKEND_BLOCKING = BACKEND_COUNT, /* a thread per channel, with poll */
    BACKEND_KINDS,
};

struct backend {
    const char *name;
    const weir__io_type *type; /* NULL = not built */
    enum weir_io io;           /* the option of a group */
};

extern const struct backend backends[BACKEND_KINDS];

/* As weir__io_create: on an error, also if the backend is not built, writes a `reason`. */
int backend_create(const struct backend *backend, weir__io **ret_io, char *reason, size_t size);

#define BACKEND_NAME_EPOLL "epoll"
#define BACKEND_NAME_URING "uring"
#define BACKEND_NAME_POLL "poll"
#define BACKEND_NAME_BLOCKING "blocking"

/* XX(EPOLL, ...) and so on, for each event loop; and for event loops and threads per channel. */
#define BACKEND_LOOPS(XX, ...) XX(EPOLL, __VA_ARGS__) XX(URING, __VA_ARGS__) XX(POLL, __VA_ARGS__)
#define BACKEND_HOSTS(XX, ...) BACKEND_LOOPS(XX, __VA_ARGS__) XX(BLOCKING, __VA_ARGS__)

#define BACKEND_FUNCTION(id, run, test, name) \
    static void test##_on_##id(void)          \
    {                                         \
        run(BACKEND_##id, test);              \
    }

#define BACKEND_CASE(id, run, test, name) {name "@" BACKEND_NAME_##id, test##_on_##id, NULL},

/* Registers one test per backend: run(BACKEND_EPOLL, test) calls the body, and so on. */
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
