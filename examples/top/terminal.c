/* SPDX-License-Identifier: Apache-2.0 */
#include "top/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "top/screen.h"

#define ENTER "\033[?1049h\033[?25l" /* another screen, no cursor */
#define LEAVE "\033[0m\033[?25h\033[?1049l"

static struct termios saved;
static bool is_entered;

static void write_all(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);

        if (written < 0 && errno == EAGAIN) {
            struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

            (void)poll(&out, 1, 1000);
        } else if (written < 0 && errno != EINTR) {
            return; /* it is gone: the end of the input, or SIGHUP, follows */
        }
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        }
    }
}

bool terminal_enter(void)
{
    static bool leaves_at_exit;
    struct termios keys;

    if (tcgetattr(STDIN_FILENO, &saved) < 0)
        return false;
    if (!leaves_at_exit && atexit(terminal_leave) != 0)
        return false;
    leaves_at_exit = true;
    keys = saved;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* signals stay */
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &keys) < 0)
        return false;
    is_entered = true;
    write_all(ENTER, strlen(ENTER));
    return true;
}

void terminal_leave(void)
{
    if (!is_entered)
        return;
    is_entered = false;
    write_all(LEAVE, strlen(LEAVE));
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved);
}

void terminal_read_size(int *ret_width, int *ret_height)
{
    struct winsize size;

    *ret_width = 80;
    *ret_height = 24;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
        return;
    if (size.ws_col > 0)
        *ret_width = size.ws_col;
    if (size.ws_row > 0)
        *ret_height = size.ws_row;
}

/* Lines are replaced one by one: nothing flickers. The last one does not end, so that a full screen
 * is not scrolled. */
void terminal_show(const char *lines)
{
    write_all("\033[H", 3);
    while (*lines != '\0') {
        const char *end = strchr(lines, '\n');

        write_all(lines, (size_t)(end - lines));
        write_all("\033[K", 3);
        lines = end + 1;
        if (*lines != '\0')
            write_all("\r\n", 2);
    }
    write_all("\033[J", 3);
}

/* What a cursor key sends after ESC. */
static int key_of(const char *sequence)
{
    static const struct {
        const char *sequence;
        int key;
    } keys[] = {{"[A", KEY_UP},   {"OA", KEY_UP},       {"[B", KEY_DOWN},
                {"OB", KEY_DOWN}, {"[5~", KEY_PAGE_UP}, {"[6~", KEY_PAGE_DOWN},
                {"[H", KEY_HOME}, {"OH", KEY_HOME},     {"[1~", KEY_HOME}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i].sequence, sequence) == 0)
            return keys[i].key;
    return 0;
}

static bool has_input(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&in, 1, 0) > 0;
}

/* The rest of a sequence: it ends with a letter or "~". */
static int read_sequence(void)
{
    char sequence[8] = "";
    size_t length = 0;

    while (length < sizeof(sequence) - 1 && has_input() &&
           read(STDIN_FILENO, &sequence[length], 1) == 1) {
        char last = sequence[length++];

        if (length > 1 && (last == '~' || (last >= 'A' && last <= 'Z')))
            break;
    }
    return key_of(sequence);
}

int terminal_read_key(void)
{
    unsigned char key;
    ssize_t length;

    if (!has_input())
        return 0;
    length = read(STDIN_FILENO, &key, 1);
    if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR))
        return -1;
    if (length < 0)
        return 0;
    return key == '\033' ? read_sequence() : key;
}
