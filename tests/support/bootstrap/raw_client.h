/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client made of plain blocking system calls on the test's thread. A call that takes longer than
 * 10 s fails the test.
 */
#ifndef WEIR_TEST_RAW_CLIENT_H
#define WEIR_TEST_RAW_CLIENT_H

#include <stddef.h>

#include <weir/server.h>

/* Connects to the first listener of a server, to a listener, or to an address. Returns the socket.
 */
int raw_client_connect(const weir_server *server);
int raw_client_connect_listener(weir_channel *listener);
int raw_client_connect_address(const weir_address *address);
void raw_client_close(int peer);

void raw_client_send(int peer, const char *text);
void raw_client_send_bytes(int peer, const void *bytes, size_t length);

/* Receives exactly this text; exactly this many bytes. Calls of recv need to be repeated after
 * EINTR: a ring that was closed on this thread interrupts them. */
void raw_client_receive(int peer, const char *text);
void raw_client_receive_bytes(int peer, void *ret_bytes, size_t length);

/* Receives until the end of the stream, or a reset. */
void raw_client_receive_end(int peer);

/* Receives until the end of the stream. Keeps the last `size` - 1 bytes or less, as a text, and
 * returns how many bytes there were. */
size_t raw_client_receive_all(int peer, char *ret_text, size_t size);

/* Sends a text and receives it back. */
void raw_client_echo(int peer, const char *text);

/*
 * An address that does not answer: that of a listener whose backlog is full.
 */
struct silent_address {
    weir_address address;
    int listener;
    int peers[2];
};

void silent_address_init(struct silent_address *silent);
void silent_address_deinit(struct silent_address *silent);

/* An address of the loopback interface that has no listener. */
weir_address unused_address(void);

#endif
