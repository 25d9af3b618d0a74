/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs in PATH, and pidfds. tests/loop/test_child.c tests the start of processes.
 */
#include "os/process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/test.h"

static void assert_found(const char *name, const char *path)
{
    char *found = NULL;

    assert_int_equal(weir__process_find(name, &found), 0);
    assert_string_equal(found, path);
    weir__free(found);
}

TEST(process, is_found_by_path)
{
    char *found = NULL, *before = getenv("PATH");

    assert_non_null(before);
    before = weir__strdup(before);
    assert_int_equal(setenv("PATH", "/no/such:/bin:/usr/bin", 1), 0);
    assert_found("sh", "/bin/sh");
    assert_found("./sh", "./sh");
    assert_int_equal(weir__process_find("no-such-program", &found), -ENOENT);
    assert_int_equal(weir__process_find("", &found), -ENOENT);
    assert_int_equal(chdir("/bin"), 0);
    assert_int_equal(setenv("PATH", "/no/such:", 1), 0); /* an empty directory is the current one */
    assert_found("sh", "./sh");
    assert_int_equal(unsetenv("PATH"), 0);
    assert_int_equal(weir__process_find("sh", &found), 0);
    weir__free(found);
    assert_int_equal(setenv("PATH", before, 1), 0);
    weir__free(before);
}

TEST(process, is_known_by_a_descriptor)
{
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exec sleep 100"}, NULL};
    char *env[] = {NULL};
    int descriptors[3] = {-1, -1, -1};
    weir__process process;
    struct pollfd ready;

    assert_int_equal(weir__process_start(&(const weir__process_options){.program = "/bin/sh",
                                                                        .argv = argv,
                                                                        .env = env,
                                                                        .descriptors = descriptors,
                                                                        .count = 3},
                                         &process),
                     0);
    ready = (struct pollfd){.fd = process.descriptor, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 0), 0);
    weir__process_kill(&process);
    assert_int_equal(process.descriptor, -1);
    assert_int_equal(waitpid(process.pid, NULL, 0), -1);
    assert_int_equal(weir__process_open(process.pid, &process.descriptor), -ESRCH);
    assert_int_equal(weir__process_open(weir__process_id(), &process.descriptor), 0);
    assert_int_equal(close(process.descriptor), 0);
}
