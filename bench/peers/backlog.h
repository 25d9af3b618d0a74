/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the socket of a raw server has not taken yet, by descriptor. Nearly always nothing.
 */
#ifndef BENCH_PEERS_BACKLOG_H
#define BENCH_PEERS_BACKLOG_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "support/bench.h"

enum { DESCRIPTORS_MAX = 32768 };

struct backlog {
    char *bytes;
    size_t length;
};

static struct backlog backlogs[DESCRIPTORS_MAX];

static inline bool backlog_is_empty(int descriptor)
{
    return backlogs[descriptor].length == 0;
}

static void backlog_add(int descriptor, const char *bytes, size_t length)
{
    struct backlog *self = &backlogs[descriptor];

    self->bytes = realloc(self->bytes, self->length + length);
    bench_require(self->bytes != NULL, "allocating");
    memcpy(self->bytes + self->length, bytes, length);
    self->length += length;
}

static void backlog_clear(int descriptor)
{
    free(backlogs[descriptor].bytes);
    backlogs[descriptor] = (struct backlog){0};
}

/* What the socket takes now: bytes, 0 if it is full; -1 = it is broken. */
static inline ssize_t send_now(int descriptor, const char *bytes, size_t length)
{
    ssize_t sent = send(descriptor, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

    return sent < 0 && errno == EAGAIN ? 0 : sent;
}

/* False = the socket is broken. */
static bool backlog_send(int descriptor)
{
    struct backlog *self = &backlogs[descriptor];
    ssize_t sent = send_now(descriptor, self->bytes, self->length);

    if (sent < 0)
        return false;
    self->length -= (size_t)sent;
    memmove(self->bytes, self->bytes + sent, self->length);
    if (self->length == 0)
        backlog_clear(descriptor);
    return true;
}

#endif
