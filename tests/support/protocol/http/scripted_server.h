/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that answers each request with the next reply of a script, whatever the request is. It
 * reads requests with a few lines of its own, not with the codec under test. It runs on the loop of
 * a host; the test's thread may look at its members when a response has arrived.
 *
 *     struct scripted_server server;
 *     scripted_server_open(&server, host, (struct scripted_reply[]){{SCRIPTED_OK(5, "hello")},
 * {0}});
 *     ... server.address, server.requests, server.last
 *     scripted_server_close(&server);
 */
#ifndef WEIR_TEST_SCRIPTED_SERVER_H
#define WEIR_TEST_SCRIPTED_SERVER_H

#include <stdatomic.h>

#include <weir/address.h>
#include <weir/server.h>

#include "support/loop/host.h"

enum scripted_action {
    SCRIPTED_KEEP,
    SCRIPTED_CLOSE,     /* after the reply */
    SCRIPTED_RESET,     /* after the reply */
    SCRIPTED_CLOSE_ALL, /* the reply and then all connections, without a warning */
};

struct scripted_reply {
    const char *text; /* "" = none: the client waits; NULL = the end of the script, which repeats */
    enum scripted_action action;
    size_t length;  /* of the text, if that has NULs; default up to its NUL */
    bool at_head;   /* does not wait for the content of the request */
    bool at_once;   /* does not wait for a request */
    size_t repeats; /* the text is sent this many times more */
};

#define SCRIPTED_OK(length, content) \
    "HTTP/1.1 200 OK\r\nContent-Length: " #length "\r\n\r\n" content

struct scripted_server {
    struct host *host;
    weir_server *server;
    char address[WEIR_ADDRESS_TEXT_SIZE]; /* "127.0.0.1:port" */
    const struct scripted_reply *replies;
    size_t next;
    atomic_uint connections;
    atomic_uint requests;
    char last[4096];    /* the last request */
    size_t last_length; /* its whole length, even if it was longer */
    void *first;        /* connections */
    weir_init_fn *init; /* adds handlers before, such as TLS; or NULL */
};

void scripted_server_open(struct scripted_server *server, struct host *host,
                          const struct scripted_reply *replies);

/* The same with an `init` for each connection. */
void scripted_server_open_with(struct scripted_server *server, struct host *host,
                               const struct scripted_reply *replies, weir_init_fn *init);

/* Ends the host, too: close clients first. */
void scripted_server_close(struct scripted_server *server);

/* Writes "scheme://127.0.0.1:port" and a path to `url`. Returns it. */
char *scripted_server_url(const struct scripted_server *server, const char *scheme,
                          const char *path, char url[256]);

#endif
