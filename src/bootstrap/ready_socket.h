/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager's end of systemd's notifications: where a process that we have started says that it
 * is ready.
 */
#ifndef WEIR_BOOTSTRAP_READY_SOCKET_H
#define WEIR_BOOTSTRAP_READY_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR__READY_ENTRY_SIZE 64

/* Opens one, and writes the "NOTIFY_SOCKET=..." for the process's environment. Fails with -errno.
 */
int weir__ready_socket_open(int *ret_descriptor, char *ret_entry, size_t size);

/* Reads what has come: whether the process of that number has said READY=1. */
bool weir__ready_socket_hear(int descriptor, int pid);

#endif
