/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real program at the other end of a connection: openssl, curl, gnutls-cli, gnutls-serv.
 *
 *     static const char *const arguments[] = {"openssl", "s_client", ..., NULL};
 *     struct program *client = program_start(arguments);
 *     program_say(client, "hello\n");
 *     program_await(client, "hello");
 *     assert_int_equal(program_end(client), 0);
 *
 * What it prints is collected. Everything that waits fails the test, and says what was printed, if
 * it takes too long. Programs that a failed test leaves behind end with this process.
 */
#ifndef WEIR_TEST_PROGRAM_H
#define WEIR_TEST_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "support/loop/host.h"

struct program;

/* Skips the test if the program is missing; the host has no other use then. */
void program_require(struct host *host, const char *name);

/* Starts it; it is looked for in PATH. */
struct program *program_start(const char *const *argv);

/* Gives it something to read; or nothing more. */
void program_say(struct program *program, const char *text);
void program_feed(struct program *program, const void *bytes, size_t length);
void program_end_input(struct program *program);

/* Waits until it has printed this, on either output; or `length` bytes on standard output. */
void program_await(struct program *program, const char *text);
void program_await_bytes(struct program *program, const void *bytes, size_t length);
void program_await_output(struct program *program, size_t length);

/* Waits for a line of its first output that begins so, and copies the rest of it. */
void program_read_line(struct program *program, const char *begin, char *ret_rest, size_t size);

/* Whether it has printed this so far: ask when it has ended, or it may still be about to. */
bool program_printed(struct program *program, const char *text);

/* What it has printed on its first output: as much of it as was waited for. */
const char *program_output(const struct program *program);
size_t program_output_length(struct program *program);

/* Waits until it ends by itself, and its output has been read. Returns its status, or less than 0:
 * the signal that has ended it. */
int program_wait(struct program *program);

/* Releases a program; kills it unless it has been waited for. */
void program_release(struct program *program);

/* Ends its input, waits, releases. */
int program_end(struct program *program);

/* It has printed this. */
#define assert_printed(program, text)                        \
    do {                                                     \
        if (!program_printed(program, text))                 \
            program_fail(program, text, __FILE__, __LINE__); \
    } while (0)

void program_fail(struct program *program, const char *missing, const char *file, int line);

#endif
