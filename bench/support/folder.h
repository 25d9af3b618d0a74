/* SPDX-License-Identifier: Apache-2.0 */
/*
 * support/folder.h - a temporary folder of the program, removed when it ends: the configuration and
 * the files of a server.
 */
#ifndef BENCH_SUPPORT_FOLDER_H
#define BENCH_SUPPORT_FOLDER_H

#include <stdint.h>
#include <stdio.h>

/* Its path; the first call creates it. */
const char *bench_folder(void);

/* A new file in it, to be closed by the caller. */
FILE *bench_folder_create(const char *name);
void bench_folder_write(const char *name, const char *text);

/* A file of that many bytes, with its size as its name, unless it is there. */
void bench_folder_write_sized(int64_t size);

#endif
