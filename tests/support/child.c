/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes that may crash, without output.
 */
#include "support/child.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

#define RETURNED 42 /* not an exit status of a sanitizer */

/* Runs fn with stderr redirected to `errors`; -1 = discarded. */
static void run_with_stderr(int errors, void (*fn)(void))
{
    /* cmocka catches these signals and would continue with the next test. */
    const int caught[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
    const struct rlimit no_core = {0, 0};
    int nowhere = open("/dev/null", O_WRONLY);

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)dup2(errors >= 0 ? errors : nowhere, STDERR_FILENO);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        (void)signal(caught[i], SIG_DFL);
    fn();
    _exit(RETURNED);
}

static pid_t start_child(int errors, void (*fn)(void))
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        run_with_stderr(errors, fn);
    return child;
}

static bool has_returned(pid_t child)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == RETURNED;
}

bool child_survives(void (*fn)(void))
{
    return has_returned(start_child(-1, fn));
}

/* Reads the beginning of the output of the child as text, and discards the rest. */
static void read_output(int from, char *text, size_t size)
{
    char rest[1024];
    size_t used = 0;
    ssize_t count;

    while (used < size - 1 && (count = read(from, text + used, size - 1 - used)) > 0)
        used += (size_t)count;
    text[used] = '\0';
    while (read(from, rest, sizeof(rest)) > 0)
        ;
}

/* True if fn has returned. */
static bool run_and_read(void (*fn)(void), char *output, size_t size)
{
    int ends[2];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = start_child(ends[1], fn);
    (void)close(ends[1]);
    read_output(ends[0], output, size);
    (void)close(ends[0]);
    return has_returned(child);
}

void child_output(void (*fn)(void), char *output, size_t size)
{
    assert_false(run_and_read(fn, output, size));
}

bool child_dies_with_output(void (*fn)(void), const char *text)
{
    char output[8192];

    if (run_and_read(fn, output, sizeof(output)))
        return false;
    return strstr(output, text) != NULL || strstr(output, "Sanitizer") != NULL;
}
