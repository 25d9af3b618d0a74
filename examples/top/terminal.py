# SPDX-License-Identifier: Apache-2.0
"""terminal.py TOP URL PID: uses `top` in a terminal: sizes, keys, a resize, all ways to leave it.
PID is the server, which is stopped while `top` runs.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

TIMEOUT_S = 30
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


def fail(message):
    sys.exit(f"terminal.py: {message}")


class Terminal:
    def __init__(self, command, columns, lines, locale="C.UTF-8"):
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.output = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for descriptor in range(3):
                os.dup2(slave, descriptor)
            os.execve(command[0], command, {"TERM": "xterm", "LC_ALL": locale})

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))

    def screens(self):
        """Those that were drawn: lists of lines without styles."""
        for drawn in self.output.split(b"\x1b[H")[1:]:
            if b"\x1b[J" in drawn:
                text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", drawn.split(b"\x1b[J")[0])
                yield [line.rstrip(b"\r") for line in text.split(b"\n")]

    def read(self, deadline):
        left = max(0, deadline - time.monotonic())
        if not left or not select.select([self.master], [], [], left)[0]:
            fail(f"waited in vain; the last output is {self.output[-2000:]}")
        try:
            self.output += os.read(self.master, 65536)
        except OSError:  # it has ended
            return False
        return True

    def await_screen(self, wanted, what):
        """Waits for a screen for which `wanted` is true, among those drawn from now on."""
        self.output, deadline = b"", time.monotonic() + TIMEOUT_S
        while True:
            for screen in self.screens():
                if wanted(screen):
                    return screen
            if not self.read(deadline):
                fail(f"ended while waiting for {what}")

    def await_words(self, *words):
        return self.await_screen(
            lambda screen: all(any(word in line for line in screen) for word in words), words)

    def press(self, keys):
        os.write(self.master, keys)

    def end(self, status=0):
        """Waits for the end, and checks that the terminal is as it was."""
        deadline = time.monotonic() + TIMEOUT_S
        while LEAVE not in self.output:
            if not self.read(deadline):
                fail("it did not leave the screen")
        found = os.waitpid(self.pid, os.WUNTRACED)[1]
        if found != status:
            fail(f"it ended with {found}, expected {status}")
        if termios.tcgetattr(self.slave) != self.before:
            fail("the terminal is not restored")
        if self.output.count(b"\x1b[?25h") < 1:
            fail("the cursor is not visible")
        os.close(self.slave)
        os.close(self.master)


def check_sizes(command):
    terminal = Terminal(command, 80, 24)
    screen = terminal.await_words(b"weir top", b"worker-1#", b"q quit")
    if len(screen) > 24 or max(len(line.decode()) for line in screen) > 80:
        fail(f"too large for 80 x 24: {screen}")
    terminal.resize(132, 30)
    terminal.await_words(b"TASKS/S", b"EVENTS/S")
    terminal.resize(40, 10)
    terminal.await_screen(
        lambda screen: len(screen) <= 10 and all(len(line.decode()) <= 40 for line in screen),
        "40 x 10")
    terminal.press(b"q")
    terminal.end()


def check_keys(command):
    terminal = Terminal(command, 80, 24, "C")
    screen = terminal.await_words(b"q quit")
    if any(byte > 0x7e for line in screen for byte in line):
        fail(f"not ASCII: {screen}")
    terminal.press(b"h")
    terminal.await_words(b"reverse the order")
    terminal.press(b"hr")
    names = [line.split()[0] for line in terminal.await_words(b"worker-1#") if b"worker-" in line]
    if names != sorted(names, reverse=True) or len(names) < 2:
        fail(f"the reverse order is {names}")
    terminal.press(b"r\x1b[B\x1b[Abbx")  # down, up, a key that it has not
    terminal.press(b" ")
    terminal.await_words(b" paused ")
    terminal.press(b" ")
    terminal.await_screen(lambda screen: b"paused" not in screen[0], "the end of the pause")
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.end()


def check_suspension(command):
    terminal = Terminal(command, 80, 24)
    terminal.await_words(b"q quit")
    terminal.press(b"\x1a")  # Ctrl-Z
    os.waitpid(terminal.pid, os.WUNTRACED)
    if termios.tcgetattr(terminal.slave) != terminal.before:
        fail("the terminal is not restored while it is stopped")
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.await_words(b"q quit")
    terminal.press(b"\x03")  # Ctrl-C
    terminal.end()


def check_two_signals(command):
    """Of two at the same time, the one that ends it counts."""
    terminal = Terminal(command, 80, 24)
    terminal.await_words(b"q quit")
    os.kill(terminal.pid, signal.SIGTERM)
    os.kill(terminal.pid, signal.SIGTSTP)
    terminal.end()


def check_lost_server(command, server):
    terminal = Terminal(command, 160, 24)
    terminal.await_words(b"q quit")
    os.kill(server, signal.SIGTERM)
    terminal.await_words(b"Connection refused", b"worker-1#")
    terminal.press(b"q")
    terminal.end()


def main(top, url, server):
    command = [top, "--interval", "0.1", url]
    check_sizes(command)
    check_keys(command)
    check_suspension(command)
    check_two_signals(command)
    check_lost_server(command, int(server))


if __name__ == "__main__":
    main(*sys.argv[1:])
