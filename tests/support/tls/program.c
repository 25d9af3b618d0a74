/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process, a socket that is its input, and two pipes that are its outputs. A thread reads
 * these all the time: a program may print much while the test waits for something else.
 */
#include "support/tls/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/thread.h"
#include "support/executor/call_counter.h"
#include "support/test.h"

#define OUTPUT_SIZE (4u << 20)
#define SHOWN_MAX 900

struct output {
    int descriptor; /* the collector's; -1: it has come to its end */
    size_t length;
    char *text; /* of OUTPUT_SIZE, zero behind its end */
};

struct program {
    const char *name;
    pid_t pid;
    bool has_ended;
    int input; /* -1: there is nothing more to read */
    weir__thread collector;
    struct call_counter pieces; /* that were read, the ends too */
    weir__mutex lock;           /* guards all below */
    struct output outputs[2];
    bool is_silent; /* both have come to their end */
};

/* ---- starting ---- */

static bool holds(const char *folder, size_t length, const char *name)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, name);
    return access(path, X_OK) == 0;
}

static bool is_in_path(const char *name)
{
    const char *folder = getenv("PATH");

    while (folder != NULL && *folder != '\0') {
        size_t length = strcspn(folder, ":");

        if (holds(folder, length, name))
            return true;
        folder += length + (folder[length] == ':');
    }
    return false;
}

void program_require(struct host *host, const char *name)
{
    char reason[64];

    if (is_in_path(name))
        return;
    host_close(host);
    (void)snprintf(reason, sizeof(reason), "%s is not installed", name);
    WEIR_TEST_SKIP(reason);
}

/* In the child, where nothing may be done that waits for another thread. */
static void become(const char *const *argv, pid_t parent, const int standard[3])
{
    sigset_t none;

    for (int i = 0; i < 3; i++)
        (void)dup2(standard[i], i);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static void start(struct program *program, const char *const *argv, const int standard[3])
{
    pid_t parent = getpid();

    program->pid = fork();
    assert_true(program->pid >= 0);
    if (program->pid == 0)
        become(argv, parent, standard);
}

/* ---- collecting ---- */

/* False at its end. What is too much is a failure of the test: it does not find the rest. */
static bool output_read(struct program *program, struct output *output)
{
    size_t room = OUTPUT_SIZE - 1 - output->length;
    ssize_t length = read(output->descriptor, output->text + output->length, room);

    if (length < 0 && errno == EINTR)
        return true;
    weir__mutex_lock(&program->lock);
    output->length += length > 0 ? (size_t)length : 0;
    weir__mutex_unlock(&program->lock);
    return length > 0;
}

static void turn(struct program *program)
{
    struct pollfd polled[2] = {
        {.fd = program->outputs[0].descriptor, .events = POLLIN},
        {.fd = program->outputs[1].descriptor, .events = POLLIN},
    };

    if (poll(polled, 2, -1) < 0)
        return;
    for (int i = 0; i < 2; i++) {
        struct output *output = &program->outputs[i];

        if (polled[i].revents == 0 || output_read(program, output))
            continue;
        (void)close(output->descriptor);
        output->descriptor = -1;
    }
}

static void collect(void *arg)
{
    struct program *program = arg;
    bool is_silent;

    do {
        turn(program);
        is_silent = program->outputs[0].descriptor < 0 && program->outputs[1].descriptor < 0;
        weir__mutex_lock(&program->lock);
        program->is_silent = is_silent;
        weir__mutex_unlock(&program->lock);
        call_counter_add(&program->pieces);
    } while (!is_silent);
}

static void output_init(struct output *output, int descriptor)
{
    output->descriptor = descriptor;
    output->text = calloc(1, OUTPUT_SIZE);
    assert_non_null(output->text);
}

/* The input is a socket: one that nobody reads any more is an error, and not a signal. */
struct program *program_start(const char *const *argv)
{
    struct program *program = calloc(1, sizeof(*program));
    const struct timeval patience = {.tv_sec = TEST_TIMEOUT_NS / weir_seconds(1)};
    int input[2], output[2], error[2];

    assert_non_null(program);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input), 0);
    assert_int_equal(setsockopt(input[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    assert_int_equal(pipe2(error, O_CLOEXEC), 0);
    program->name = argv[1] != NULL && strcmp(argv[0], "openssl") == 0 ? argv[1] : argv[0];
    start(program, argv, (const int[]){input[1], output[1], error[1]});
    (void)close(input[1]);
    (void)close(output[1]);
    (void)close(error[1]);
    program->input = input[0];
    output_init(&program->outputs[0], output[0]);
    output_init(&program->outputs[1], error[0]);
    weir__mutex_init(&program->lock);
    assert_int_equal(weir__thread_start(program->name, collect, program, &program->collector), 0);
    return program;
}

/* ---- talking ---- */

void program_feed(struct program *program, const void *bytes, size_t length)
{
    const char *next = bytes;

    while (length > 0) {
        ssize_t sent = send(program->input, next, length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            program_fail(program, "(its input is read)", __FILE__, __LINE__);
        next += sent;
        length -= (size_t)sent;
    }
}

void program_say(struct program *program, const char *text)
{
    program_feed(program, text, strlen(text));
}

void program_end_input(struct program *program)
{
    if (program->input < 0)
        return;
    (void)close(program->input);
    program->input = -1;
}

/* ---- output ---- */

/* What is waited for: these bytes; NULL = `length` bytes on standard output, or its end. */
struct sought {
    const void *bytes;
    size_t length;
    bool is_end;
};

static bool is_found_locked(struct program *program, const struct sought *sought)
{
    if (sought->is_end)
        return program->is_silent;
    if (sought->bytes == NULL)
        return program->outputs[0].length >= sought->length;
    for (int i = 0; i < 2; i++) {
        const struct output *output = &program->outputs[i];

        if (memmem(output->text, output->length, sought->bytes, sought->length) != NULL)
            return true;
    }
    return false;
}

/* `ret_is_silent`: nothing more comes. */
static bool is_found(struct program *program, const struct sought *sought, bool *ret_is_silent)
{
    bool found;

    weir__mutex_lock(&program->lock);
    found = is_found_locked(program, sought);
    *ret_is_silent = program->is_silent;
    weir__mutex_unlock(&program->lock);
    return found;
}

static void await(struct program *program, const struct sought *sought, const char *what)
{
    for (;;) {
        uint32_t pieces = atomic_load(&program->pieces.calls);
        bool is_silent;

        if (is_found(program, sought, &is_silent))
            return;
        if (is_silent || !call_counter_await_for(&program->pieces, pieces + 1, TEST_TIMEOUT_NS))
            program_fail(program, what, __FILE__, __LINE__);
    }
}

void program_await_bytes(struct program *program, const void *bytes, size_t length)
{
    await(program, &(const struct sought){.bytes = bytes, .length = length}, bytes);
}

void program_await(struct program *program, const char *text)
{
    program_await_bytes(program, text, strlen(text));
}

void program_await_output(struct program *program, size_t length)
{
    await(program, &(const struct sought){.length = length}, "(more than that)");
}

bool program_printed(struct program *program, const char *text)
{
    bool is_silent;

    return is_found(program, &(const struct sought){.bytes = text, .length = strlen(text)},
                    &is_silent);
}

static bool copy_line_locked(const struct output *output, const char *begin, char *ret_rest,
                             size_t size)
{
    const char *line = memmem(output->text, output->length, begin, strlen(begin));
    const char *rest = line == NULL ? NULL : line + strlen(begin);
    const char *end =
        rest == NULL ? NULL : memchr(rest, '\n', output->length - (size_t)(rest - output->text));

    if (end == NULL)
        return false;
    (void)snprintf(ret_rest, size, "%.*s", (int)(end - rest), rest);
    return true;
}

void program_read_line(struct program *program, const char *begin, char *ret_rest, size_t size)
{
    bool is_there = false;

    for (size_t length = 0; !is_there; length++) {
        program_await_output(program, length);
        weir__mutex_lock(&program->lock);
        is_there = copy_line_locked(&program->outputs[0], begin, ret_rest, size);
        length = program->outputs[0].length;
        weir__mutex_unlock(&program->lock);
    }
}

const char *program_output(const struct program *program)
{
    return program->outputs[0].text;
}

size_t program_output_length(struct program *program)
{
    size_t length;

    weir__mutex_lock(&program->lock);
    length = program->outputs[0].length;
    weir__mutex_unlock(&program->lock);
    return length;
}

/* The end of it, which is where something is missing. */
static const char *end_of(const struct output *output)
{
    return output->text + (output->length > SHOWN_MAX ? output->length - SHOWN_MAX : 0);
}

void program_fail(struct program *program, const char *missing, const char *file, int line)
{
    weir__mutex_lock(&program->lock);
    print_error("%s has not printed: %.80s\n---- output:\n%s\n---- errors:\n%s\n----\n",
                program->name, missing, end_of(&program->outputs[0]), end_of(&program->outputs[1]));
    weir__mutex_unlock(&program->lock);
    _fail(file, line);
}

/* ---- ending ---- */

int program_wait(struct program *program)
{
    int status;

    await(program, &(const struct sought){.is_end = true}, "(its end)");
    while (waitpid(program->pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    program->has_ended = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void kill_and_wait(struct program *program)
{
    (void)kill(program->pid, SIGKILL);
    while (waitpid(program->pid, NULL, 0) < 0)
        assert_int_equal(errno, EINTR);
}

void program_release(struct program *program)
{
    if (!program->has_ended)
        kill_and_wait(program);
    program_end_input(program);
    weir__thread_join(&program->collector);
    weir__mutex_deinit(&program->lock);
    for (int i = 0; i < 2; i++)
        free(program->outputs[i].text);
    free(program);
}

int program_end(struct program *program)
{
    int status;

    program_end_input(program);
    status = program_wait(program);
    program_release(program);
    return status;
}
