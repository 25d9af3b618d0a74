/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hello that comes bit by bit, and the parts of it that others read, too.
 */
#ifndef WEIR_TLS_TLS_HELLO_H
#define WEIR_TLS_TLS_HELLO_H

#include <weir/tls.h>

#define WEIR__TLS_NAME_SIZE 256

/* How far the records have been looked at: each is once, however often more bytes come. Zeroed at
 * the beginning. */
typedef struct weir__tls_hello_scan {
    size_t end;    /* of those that were complete */
    size_t length; /* of the handshake's bytes in them */
    size_t whole;  /* of the hello's; 0 = not known */
    uint8_t head[4];
} weir__tls_hello_scan;

/*
 * As weir_tls_hello_read; goes on where it was, with the same bytes and more. With 0: nothing
 * happens before there are `*ret_need` bytes. With an error: why, a literal.
 */
int weir__tls_hello_scan_read(weir__tls_hello_scan *scan, weir_span bytes,
                              weir_tls_hello *ret_hello, size_t *ret_need, const char **ret_why);

/* The same without reading the hello: 1 when all of its records are there. */
int weir__tls_hello_scan_records(weir__tls_hello_scan *scan, weir_span bytes, size_t *ret_need,
                                 const char **ret_why);

/*
 * What is in the extensions server_name and application_layer_protocol_negotiation of a client's:
 * NULL, or why it makes no sense. The texts are as in weir_tls_hello.
 */
const char *weir__tls_hello_server_name(weir_span extension, char ret_name[WEIR__TLS_NAME_SIZE]);
const char *weir__tls_hello_alpn(weir_span extension, char ret_alpn[WEIR__TLS_NAME_SIZE]);

#endif
