/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_key_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#define LINE_MAX_SIZE 512 /* a label, and two numbers of 64 bytes at the most, in hex */

int weir__tls_key_log_open(const char *path, int *ret_file)
{
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);

    if (file < 0)
        return -errno;
    *ret_file = file;
    return 0;
}

void weir__tls_key_log_write(int file, const char *line)
{
    char text[LINE_MAX_SIZE];
    int length = snprintf(text, sizeof(text), "%s\n", line);
    ssize_t written;

    if (length < 0 || (size_t)length >= sizeof(text))
        return;
    do
        written = write(file, text, (size_t)length);
    while (written < 0 && errno == EINTR);
}

void weir__tls_key_log_close(int file)
{
    (void)close(file);
}
