/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that secrets are appended to, for Wireshark. Others may append to it at the same time:
 * each line is one write.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include <weir/error.h>

#include "tls/openssl/internal.h"

#define LINE_MAX_SIZE 512 /* a label, and two numbers of at most 64 bytes, in hex */

/* A line that cannot be written is left out. */
static void on_secret(const SSL *ssl, const char *line)
{
    int file = weir__openssl_session_of(ssl)->context->key_log;
    char text[LINE_MAX_SIZE];
    int length = snprintf(text, sizeof(text), "%s\n", line);
    ssize_t written;

    if (length < 0 || (size_t)length >= sizeof(text))
        return;
    do
        written = write(file, text, (size_t)length);
    while (written < 0 && errno == EINTR);
}

/* A new file is readable by its owner only. */
int weir__openssl_key_log_prepare(weir__openssl_builder *builder)
{
    const char *path = builder->options->key_log_file;
    int file, err;

    if (path == NULL)
        return 0;
    file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (file < 0) {
        err = -errno;
        return weir__openssl_builder_fail(builder, err, "%s: %s", path, weir_error_text(err));
    }
    builder->context->key_log = file;
    SSL_CTX_set_keylog_callback(builder->context->ctx, on_secret);
    return 0;
}

void weir__openssl_key_log_close(int file)
{
    (void)close(file);
}
