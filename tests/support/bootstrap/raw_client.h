/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody who comes to a server with a socket of his own: plain system calls on the test's thread,
 * each of which fails the test if it takes longer than 10 s.
 */
#ifndef WEIR_TEST_RAW_CLIENT_H
#define WEIR_TEST_RAW_CLIENT_H

#include <weir/server.h>

/* Connects to a listener, or to an address. Returns the socket, to be closed by visitor_leave. */
int visitor_come(const weir_server *server);
int visitor_come_to_listener(weir_channel *listener);
int visitor_come_to(const weir_address *address);
void visitor_leave(int visitor);

void visitor_say(int visitor, const char *text);

/* Reads exactly this. */
void visitor_hear(int visitor, const char *text);

/* Reads whatever is left; then the end, or a reset. */
void visitor_hear_end(int visitor);

/* Says something, and hears it again. */
void visitor_greet(int visitor, const char *text);

/*
 * An address that does not answer: a listener whose backlog is full, which holds until
 * silence_release.
 */
struct silence {
    weir_address address;
    int listener;
    int visitors[2];
};

void silence_make(struct silence *silence);
void silence_release(struct silence *silence);

/* An address of the loopback interface where nobody listens. */
weir_address nobody_there(void);

#endif
