/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File writers (weir/file_writer.h), as the end of the process and tests see them.
 */
#ifndef WEIR_OS_FILE_WRITER_H
#define WEIR_OS_FILE_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/file_writer.h>

/* Waits until no writer has anything left to write or close; false after the timeout. Called at
 * exit, with a timeout of three seconds. */
bool weir__file_writers_wait(int64_t timeout_ns);

/* Timeouts of weir_file_writer_close for a file that accepts nothing, and of the wait at exit;
 * variables for tests. */
extern _Atomic int64_t weir__file_writer_grace_ns;
extern _Atomic int64_t weir__file_writer_exit_ns;

#endif
