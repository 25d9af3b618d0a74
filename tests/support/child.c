/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child that may end badly, quietly.
 */
#include "support/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

#define CAME_BACK 42 /* no sanitizer ends a program with it */

static void run_quietly(void (*fn)(void))
{
    /* cmocka catches these and would go on with the next test. */
    const int caught[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
    const struct rlimit no_core = {0, 0};
    int nowhere = open("/dev/null", O_WRONLY);

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)dup2(nowhere, STDERR_FILENO);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        (void)signal(caught[i], SIG_DFL);
    fn();
    _exit(CAME_BACK);
}

bool child_survives(void (*fn)(void))
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        run_quietly(fn);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == CAME_BACK;
}
