/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager's end of sd_notify(3): receives READY=1 from a process that we have started.
 */
#ifndef WEIR_BOOTSTRAP_NOTIFY_SOCKET_H
#define WEIR_BOOTSTRAP_NOTIFY_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR__NOTIFY_ENTRY_SIZE 64

/* Environment variable of the new process: the manager's notification socket, or "". Its
 * NOTIFY_SOCKET is ours until it is ready. */
#define WEIR__NOTIFY_MANAGER "WEIR_NOTIFY_SOCKET"

/* Opens a socket, and writes the "NOTIFY_SOCKET=..." for the new process's environment. */
int weir__notify_socket_open(int *ret_descriptor, char *ret_entry, size_t size);

/* True if one of the lines of a message is READY=1. */
bool weir__notify_says_ready(const char *text);

/*
 * A line by which a process says that it was replaced itself, by the process with that number: its
 * predecessor need not watch it any longer. The other side of weir__notify_predecessor.
 */
#define WEIR__NOTIFY_REPLACED "X_WEIR_REPLACED_BY="

typedef struct weir__notified {
    bool is_ready;   /* READY=1 */
    int replaced_by; /* WEIR__NOTIFY_REPLACED; 0 = it was not */
} weir__notified;

/* Reads the pending messages of the process `pid`. */
weir__notified weir__notify_socket_read(int descriptor, int pid);

/* Tells the process that this one has replaced that `pid` has taken over. No effect if it has
 * ended. */
void weir__notify_predecessor(int pid);

#endif
