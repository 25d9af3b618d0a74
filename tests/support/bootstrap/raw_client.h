/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody who comes to a server with a socket of his own: plain system calls on the test's thread,
 * each of which fails the test if it takes longer than 10 s.
 */
#ifndef WEIR_TEST_RAW_CLIENT_H
#define WEIR_TEST_RAW_CLIENT_H

#include <weir/server.h>

/* Connects to a listener, or to an address. Returns the socket, to be closed by raw_client_close.
 */
int raw_client_connect(const weir_server *server);
int raw_client_connect_listener(weir_channel *listener);
int raw_client_connect_address(const weir_address *address);
void raw_client_close(int peer);

void raw_client_send(int peer, const char *text);

/* Reads exactly this. */
void raw_client_receive(int peer, const char *text);

/* Reads whatever is left; then the end, or a reset. */
void raw_client_receive_end(int peer);

/* Says something, and hears it again. */
void raw_client_echo(int peer, const char *text);

/*
 * An address that does not answer: a listener whose backlog is full, which holds until
 * silent_address_deinit.
 */
struct silent_address {
    weir_address address;
    int listener;
    int peers[2];
};

void silent_address_init(struct silent_address *silent);
void silent_address_deinit(struct silent_address *silent);

/* An address of the loopback interface where nobody listens. */
weir_address unused_address(void);

#endif
