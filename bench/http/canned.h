/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http/canned.h - a server on epoll that answers every request with the same bytes: one receive,
 * one send, and no parsing. It only counts the ends of heads, so that pipelined requests are
 * answered together. The limit of the suite, and the upstream server of the proxies.
 */
#ifndef BENCH_HTTP_CANNED_H
#define BENCH_HTTP_CANNED_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "peers/watched.h"

enum { CANNED_WINDOW = 128 * 1024, CANNED_DESCRIPTORS_MAX = 32768, CANNED_COPIES = 64 };

struct canned_connection {
    size_t unsent;    /* of the answers that are due */
    unsigned matched; /* bytes of "\r\n\r\n" at the end of what was received */
};

static struct {
    char *answers; /* CANNED_COPIES of what is in memory of an answer */
    size_t in_memory;
    size_t size; /* of an answer: in memory, then the file */
    int file;
    struct canned_connection connections[CANNED_DESCRIPTORS_MAX];
} canned;

static inline void canned_prepare(const char *body, size_t in_memory, int64_t length)
{
    char head[256];
    int head_length = snprintf(head, sizeof(head),
                               "HTTP/1.1 200 OK\r\n"
                               "Date: Mon, 16 Nov 2026 12:00:00 GMT\r\n"
                               "Content-Type: text/plain\r\n"
                               "Content-Length: %lld\r\n\r\n",
                               (long long)length);
    size_t each = (size_t)head_length + in_memory;

    canned.in_memory = each;
    canned.size = (size_t)(head_length + length);
    canned.answers = bench_alloc(CANNED_COPIES, each);
    for (size_t i = 0; i < CANNED_COPIES; i++) {
        memcpy(canned.answers + i * each, head, (size_t)head_length);
        memcpy(canned.answers + i * each + head_length, body, in_memory);
    }
}

/* The answer's content: a text, or a file, which is kept in memory if it is short. */
static inline void canned_prepare_text(const char *text)
{
    canned_prepare(text, strlen(text), (int64_t)strlen(text));
}

static inline void canned_prepare_file(const char *path, int64_t length)
{
    static char bytes[16384];
    size_t in_memory = (size_t)length <= sizeof(bytes) ? (size_t)length : 0;

    canned.file = open(path, O_RDONLY | O_CLOEXEC);
    bench_require(canned.file >= 0, path);
    bench_require(read(canned.file, bytes, in_memory) == (ssize_t)in_memory, path);
    canned_prepare(bytes, in_memory, length);
}

/* The number of heads that end in what was received. */
static inline size_t canned_count_heads(struct canned_connection *self, const char *bytes,
                                        size_t length)
{
    static const char end[] = "\r\n\r\n";
    const char *at = bytes, *stop = bytes + length;
    size_t count = 0;

    if (self->matched == 0 && length >= 4 && memcmp(stop - 4, end, 4) == 0) {
        /* whole heads, as nearly always */
        while ((at = memchr(at, '\n', (size_t)(stop - at))) != NULL) {
            count += at - bytes >= 3 && memcmp(at - 3, end, 4) == 0;
            at++;
        }
        return count;
    }
    for (; at < stop; at++) {
        self->matched = *at == end[self->matched] ? self->matched + 1 : *at == '\r';
        if (self->matched == 4) {
            count++;
            self->matched = 0;
        }
    }
    return count;
}

/* Sends what the socket takes of the next piece in memory or in the file. */
static inline ssize_t canned_send_piece(int descriptor, size_t unsent)
{
    size_t whole = CANNED_COPIES * canned.size, left;
    off_t offset;

    if (canned.in_memory == canned.size) {
        left = unsent % whole > 0 ? unsent % whole : whole;
        return send(descriptor, canned.answers + whole - left, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    left = unsent % canned.size > 0 ? unsent % canned.size : canned.size;
    offset = (off_t)(canned.size - left) - (off_t)canned.in_memory;
    if (offset < 0)
        return send(descriptor, canned.answers + canned.in_memory + offset, (size_t)-offset,
                    MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
    return sendfile(descriptor, canned.file, &offset, left);
}

static inline void canned_hang_up(int descriptor)
{
    close(descriptor);
}

/* Sends what is due; false if the socket is full and there is a rest, or if it is broken. */
static inline bool canned_send(int descriptor)
{
    struct canned_connection *self = &canned.connections[descriptor];

    while (self->unsent > 0) {
        ssize_t sent = canned_send_piece(descriptor, self->unsent);

        if (sent <= 0) {
            if (errno != EAGAIN)
                canned_hang_up(descriptor);
            return false;
        }
        self->unsent -= (size_t)sent;
    }
    return true;
}

static void canned_on_accepted(int descriptor)
{
    bench_require(descriptor < CANNED_DESCRIPTORS_MAX, "so many connections");
    canned.connections[descriptor] = (struct canned_connection){0};
}

static void canned_on_readable(int descriptor)
{
    static alignas(4096) char window[CANNED_WINDOW];
    struct canned_connection *self = &canned.connections[descriptor];
    ssize_t got = recv(descriptor, window, sizeof(window), 0);

    if (got <= 0) {
        canned_hang_up(descriptor);
        return;
    }
    self->unsent += canned_count_heads(self, window, (size_t)got) * canned.size;
    if (!canned_send(descriptor) && errno == EAGAIN)
        watch(descriptor, EPOLL_CTL_MOD, EPOLLOUT);
}

static void canned_on_writable(int descriptor)
{
    if (canned_send(descriptor))
        watch(descriptor, EPOLL_CTL_MOD, EPOLLIN);
}

static void canned_run(int cpu)
{
    static const struct watched server = {canned_on_accepted, canned_on_readable,
                                          canned_on_writable};

    signal(SIGPIPE, SIG_IGN); /* of sendfile, to a client that has seen enough */
    watched_run(&server, cpu);
}

#endif
