/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file to which secrets are appended, for Wireshark. Others may append to it at the same time:
 * each line is one write.
 */
#ifndef WEIR_TLS_TLS_KEY_LOG_H
#define WEIR_TLS_TLS_KEY_LOG_H

/* Only its owner may read a file that is made. Fails with -errno. */
int weir__tls_key_log_open(const char *path, int *ret_file);

/* A line, without its end. What cannot be written is left out. */
void weir__tls_key_log_write(int file, const char *line);

void weir__tls_key_log_close(int file);

#endif
