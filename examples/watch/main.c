/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor and signals on an event loop: numbers the lines of stdin until its end, Ctrl-C or
 * SIGTERM, then prints their count and the reason of the end.
 *     watch [--io auto|epoll|uring|poll] [--threads N]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

static const char *const io_names[] = {
    [WEIR_IO_AUTO] = "auto",
    [WEIR_IO_EPOLL] = "epoll",
    [WEIR_IO_URING] = "uring",
    [WEIR_IO_POLL] = "poll",
};

struct input {
    weir_promise *ended; /* its value is the signal that has ended it, 0 if none did */
    int lines;
    bool inside_line;
};

/* Copies at most a buffer of input, or detects its end. */
static void copy_some(struct input *input)
{
    char bytes[4096];
    ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));

    for (ssize_t i = 0; i < count; i++) {
        if (!input->inside_line)
            printf("%6d  ", ++input->lines);
        putchar(bytes[i]);
        input->inside_line = bytes[i] != '\n';
    }
    fflush(stdout);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        weir_promise_succeed(input->ended, NULL);
}

/* On the loop's thread, again and again as long as there is something to read, and be it the end.
 */
static void on_ready(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    struct input *input = user_data;

    (void)events;
    copy_some(input);
    if (weir_promise_is_done(input->ended))
        weir_fd_watch_close(watch);
}

/* May run on another loop's thread. The first end counts. */
static void on_signal(weir_signals *signals, const weir_signal *signal, void *user_data)
{
    struct input *input = user_data;

    (void)signals;
    weir_promise_succeed(input->ended, (void *)(intptr_t)signal->number);
}

/* Reads until the end of input or a signal. */
static int read_input(struct input *input, weir_group *loops)
{
    weir_fd_watch *watch = NULL;
    int err = weir_fd_watch_create(
        weir_group_next(loops), STDIN_FILENO,
        WEIR_FD_WATCH_OPTIONS(.events = WEIR_FD_READABLE, .ready = on_ready, .user_data = input),
        &watch);

    if (err == -EPERM) { /* a regular file: always readable */
        while (!weir_promise_is_done(input->ended))
            copy_some(input);
        return 0;
    }
    if (!err)
        err = weir_promise_sync(input->ended, WEIR_NEVER);
    if (!err) {
        weir_fd_watch_close(watch); /* on_ready may run until the watch is closed */
        err = weir_promise_sync(weir_fd_watch_closed(watch), WEIR_NEVER);
    }
    weir_fd_watch_release(watch); /* NULL is ignored */
    return err;
}

static void say_goodbye(const struct input *input, weir_executor *loop)
{
    int number = (int)(intptr_t)weir_promise_value(input->ended);

    printf("%s%d lines, by %s, until %s\n", input->inside_line ? "\n" : "", input->lines,
           io_names[weir_loop_io(loop)], number ? strsignal(number) : "their end");
}

static int run(enum weir_io io, int threads)
{
    struct input input = {0};
    weir_group *loops = NULL;
    weir_signals *signals = NULL;
    int err = weir_promise_create(NULL, &input.ended);

    if (!err)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.io = io, .threads = threads), &loops);
    if (!err)
        err = weir_signals_create(weir_group_next(loops),
                                  WEIR_SIGNALS_OPTIONS(.numbers = {SIGINT, SIGTERM},
                                                       .received = on_signal, .user_data = &input),
                                  &signals);
    if (!err)
        err = read_input(&input, loops);
    if (!err)
        say_goodbye(&input, weir_group_at(loops, 0));
    else
        fprintf(stderr, "watch: %s\n", weir_error_text(err));
    weir_signals_release(signals);
    weir_group_release(loops); /* joins its threads: no callback runs after this */
    weir_promise_release(input.ended);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool read_io(const char *name, enum weir_io *ret_io)
{
    for (size_t i = 0; i < sizeof(io_names) / sizeof(*io_names); i++) {
        if (strcmp(name, io_names[i]) == 0) {
            *ret_io = (enum weir_io)i;
            return true;
        }
    }
    return false;
}

static void explain(const char *program, FILE *to)
{
    fprintf(to, "usage: %s [--io auto|epoll|uring|poll] [--threads N]\n", program);
}

int main(int argc, char **argv)
{
    enum weir_io io = WEIR_IO_AUTO;
    int threads = 1;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        explain(argv[0], stdout);
        return EXIT_SUCCESS;
    }
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool known = (strcmp(argv[i], "--io") == 0 && read_io(value, &io)) ||
                     (strcmp(argv[i], "--threads") == 0 && (threads = atoi(value)) > 0);

        if (!known) {
            explain(argv[0], stderr);
            return 2;
        }
    }
    return run(io, threads);
}
