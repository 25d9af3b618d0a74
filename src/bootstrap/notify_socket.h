/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager's end of systemd's notifications: where a process that we have started says that it
 * is ready.
 */
#ifndef WEIR_BOOTSTRAP_NOTIFY_SOCKET_H
#define WEIR_BOOTSTRAP_NOTIFY_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR__NOTIFY_ENTRY_SIZE 64

/* Where the manager of the process is heard that has been replaced, or "": in the environment of
 * the one that replaces it, whose NOTIFY_SOCKET is ours until it is ready. */
#define WEIR__NOTIFY_MANAGER "WEIR_NOTIFY_SOCKET"

/* Opens one, and writes the "NOTIFY_SOCKET=..." for the process's environment. Fails with -errno.
 */
int weir__notify_socket_open(int *ret_descriptor, char *ret_entry, size_t size);

/* Whether such a message says READY=1, beside other things. */
bool weir__notify_says_ready(const char *text);

/* Reads what has come: whether the process of that number has said READY=1. */
bool weir__notify_socket_read(int descriptor, int pid);

#endif
