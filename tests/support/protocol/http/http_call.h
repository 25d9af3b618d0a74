/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to an HTTP server as text, by blocking calls on the test's thread.
 */
#ifndef WEIR_TEST_HTTP_CALL_H
#define WEIR_TEST_HTTP_CALL_H

#include <weir/http_server.h>

#define HTTP_CALL_SIZE 8192

/* The start and the Host field of a request. */
#define HTTP_CALL(line) line " HTTP/1.1\r\nHost: test\r\n"

/* A request without content; the last one of a connection. */
#define HTTP_GET(path) HTTP_CALL("GET " path) "\r\n"
#define HTTP_LAST(path) HTTP_CALL("GET " path) "Connection: close\r\n\r\n"

/* Sends a text on a new connection to the first listener, and receives until its end. */
void http_call(weir_http_server *server, const char *text, char ret_answer[HTTP_CALL_SIZE]);

/* Receives until the end of the stream. The result is false if it was a reset. */
bool http_call_receive(int peer, char ret_answer[HTTP_CALL_SIZE]);

/* Receives the head of one response and `length` bytes of content. */
void http_call_receive_one(int peer, size_t length, char ret_answer[HTTP_CALL_SIZE]);

/* Asserts that a text contains another. */
#define assert_contains(text, part)                                 \
    do {                                                            \
        if (strstr(text, part) == NULL)                             \
            fail_msg("\"%s\" does not contain \"%s\"", text, part); \
    } while (0)

#endif
