/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing to files without a reader. A write that blocks would run into the time limit of the test.
 */
#include "os/nowait_write.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "support/test.h"

#define LINE_SIZE 300
#define LINES_MAX 100000

static const unsigned each_way[] = {WEIR__NOWAIT_FLAG, WEIR__NOWAIT_REOPEN, WEIR__NOWAIT_POLL,
                                    WEIR__NOWAIT_ANY};

#define WAYS_COUNT (sizeof(each_way) / sizeof(each_way[0]))

/* Each line has a number, and the same length. */
static ssize_t write_line(int descriptor, unsigned number, unsigned ways)
{
    char line[LINE_SIZE + 1];

    (void)snprintf(line, sizeof(line), "%0*u", LINE_SIZE - 1, number);
    line[LINE_SIZE - 1] = '\n';
    return weir__nowait_write(descriptor, line, LINE_SIZE, ways);
}

/* Writes lines until one fails. Returns the number of complete lines, and the error. */
static unsigned fill(int descriptor, unsigned ways, ssize_t *ret_answer)
{
    unsigned count = 0;

    while (count < LINES_MAX && (*ret_answer = write_line(descriptor, count, ways)) == LINE_SIZE)
        count++;
    return count;
}

static void read_lines(int descriptor, unsigned first, unsigned count)
{
    char line[LINE_SIZE + 1] = "";

    for (unsigned i = first; i < first + count; i++) {
        assert_int_equal(read(descriptor, line, LINE_SIZE), LINE_SIZE);
        assert_int_equal(strtoul(line, NULL, 10), i);
    }
}

/* RWF_NOWAIT is not supported by every kernel and kind of file. */
static bool is_unsupported(unsigned ways, ssize_t answer)
{
    return ways == WEIR__NOWAIT_FLAG && answer < 0 && answer != -EAGAIN;
}

TEST(nowait_write, fills_a_pipe_with_whole_lines_and_does_not_wait)
{
    for (size_t i = 0; i < WAYS_COUNT; i++) {
        unsigned count;
        ssize_t answer;
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        count = fill(ends[1], each_way[i], &answer);
        if (!is_unsupported(each_way[i], answer)) {
            assert_int_equal(answer, -EAGAIN);
            assert_in_range(count, 10, LINES_MAX - 1);
            read_lines(ends[0], 0, count);
            assert_int_equal(write_line(ends[1], 7, each_way[i]), LINE_SIZE);
            read_lines(ends[0], 7, 1);
        }
        close(ends[0]);
        close(ends[1]);
    }
}

TEST(nowait_write, leaves_the_flags_of_the_file_alone)
{
    ssize_t answer;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    for (size_t i = 0; i < WAYS_COUNT; i++) {
        (void)fill(ends[1], each_way[i], &answer);
        assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    }
    close(ends[0]);
    close(ends[1]);
}

TEST(nowait_write, does_not_wait_for_the_peer_of_a_socket)
{
    for (size_t i = 0; i < WAYS_COUNT; i++) {
        unsigned count;
        ssize_t answer;
        int ends[2];

        if (each_way[i] == WEIR__NOWAIT_REOPEN) /* a socket cannot be reopened */
            continue;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        count = fill(ends[0], each_way[i], &answer);
        if (!is_unsupported(each_way[i], answer)) {
            assert_int_equal(answer, -EAGAIN);
            assert_in_range(count, 10, LINES_MAX - 1);
        }
        close(ends[0]);
        close(ends[1]);
    }
}

struct terminal {
    int master;
    int slave;
};

static struct terminal open_terminal(void)
{
    struct terminal terminal = {.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    char name[64];

    if (terminal.master < 0 || grantpt(terminal.master) < 0 || unlockpt(terminal.master) < 0 ||
        ptsname_r(terminal.master, name, sizeof(name)) != 0)
        WEIR_TEST_SKIP("no pseudo terminals");
    terminal.slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal.slave >= 0);
    return terminal;
}

static void close_terminal(struct terminal terminal)
{
    close(terminal.slave);
    close(terminal.master);
}

TEST(nowait_write, does_not_wait_for_a_terminal_that_is_stopped)
{
    struct terminal terminal = open_terminal();
    char byte[LINE_SIZE + 1];

    assert_int_equal(tcflow(terminal.slave, TCOOFF), 0);
    for (size_t i = 0; i < WAYS_COUNT; i++)
        if (each_way[i] != WEIR__NOWAIT_FLAG)
            assert_int_equal(write_line(terminal.slave, 1, each_way[i]), -EAGAIN);
    assert_int_equal(tcflow(terminal.slave, TCOON), 0);
    assert_int_equal(write_line(terminal.slave, 2, WEIR__NOWAIT_ANY), LINE_SIZE);
    assert_true(read(terminal.master, byte, sizeof(byte)) > 0);
    close_terminal(terminal);
}

/* The last line may be truncated. */
TEST(nowait_write, does_not_wait_for_a_terminal_that_nobody_reads)
{
    struct terminal terminal = open_terminal();
    ssize_t answer;
    unsigned count = fill(terminal.slave, WEIR__NOWAIT_ANY, &answer);

    assert_in_range(count, 1, LINES_MAX - 1);
    assert_true(answer == -EAGAIN || (answer > 0 && answer < LINE_SIZE));
    close_terminal(terminal);
}

TEST(nowait_write, writes_a_regular_file_at_its_offset)
{
    char path[] = "/tmp/weir-instant-write-XXXXXX", text[2 * LINE_SIZE + 8] = "";
    int file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(write(file, "before\n", 7), 7);
    assert_int_equal(write_line(file, 3, WEIR__NOWAIT_ANY), LINE_SIZE);
    assert_int_equal(write(file, "behind\n", 7), 7);
    assert_int_equal(pread(file, text, sizeof(text), 0), LINE_SIZE + 14);
    assert_memory_equal(text, "before\n", 7);
    assert_memory_equal(text + 7 + LINE_SIZE, "behind\n", 7);
    close(file);
    unlink(path);
}

TEST(nowait_write, reports_a_file_that_has_no_reader_or_is_not_open)
{
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    for (size_t i = 0; i < WAYS_COUNT; i++) {
        ssize_t answer = write_line(ends[1], 1, each_way[i]);

        if (!is_unsupported(each_way[i], answer))
            assert_int_equal(answer, -EPIPE);
    }
    close(ends[1]);
    assert_int_equal(write_line(ends[1], 1, WEIR__NOWAIT_POLL), -EBADF); /* no pwritev2 */
    assert_int_equal(write_line(ends[1], 1, WEIR__NOWAIT_ANY), -EBADF);
    signal(SIGPIPE, before);
}
