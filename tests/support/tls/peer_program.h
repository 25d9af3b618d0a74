/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs as peers, with arguments for the address and the trusted authority.
 *
 *     struct program *client = s_client(endpoint, "-tls1_3");
 *     struct program *server = s_server(&port, "-tls1_2", "-rev");
 *
 * Later arguments override earlier ones. Clients trust the authority of our PKI and ask for
 * "localhost"; servers have its certificate, unless another is given.
 */
#ifndef WEIR_TEST_PEER_PROGRAM_H
#define WEIR_TEST_PEER_PROGRAM_H

#include "support/tls/program.h"
#include "support/tls/tls_endpoint.h"

#define PROGRAM_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The names of a version of TLS. */
struct tls_version_names {
    const char *flag;     /* of openssl */
    const char *priority; /* of gnutls */
    const char *number;   /* of curl */
    const char *name;     /* in a weir_tls_handshake */
};

#define TLS_VERSION_COUNT 2
extern const struct tls_version_names tls_versions[TLS_VERSION_COUNT];

#define each_version(version)                               \
    const struct tls_version_names *version = tls_versions; \
    version < tls_versions + TLS_VERSION_COUNT;             \
    version++

/* Each takes at least one argument. */
#define s_client(endpoint, ...) s_client_start(endpoint, PROGRAM_ARGS(__VA_ARGS__))
#define gnutls_cli(endpoint, ...) gnutls_cli_start(endpoint, PROGRAM_ARGS(__VA_ARGS__))
#define curl(endpoint, scheme, ...) curl_start(endpoint, scheme, PROGRAM_ARGS(__VA_ARGS__))
#define s_server(ret_port, ...) s_server_start(ret_port, PROGRAM_ARGS(__VA_ARGS__))
#define gnutls_serv(ret_port, ...) gnutls_serv_start(ret_port, PROGRAM_ARGS(__VA_ARGS__))

struct program *s_client_start(const struct tls_endpoint *endpoint, const char *const *args);
struct program *gnutls_cli_start(const struct tls_endpoint *endpoint, const char *const *args);
struct program *curl_start(const struct tls_endpoint *endpoint, const char *scheme,
                           const char *const *args);

/* Returns when it listens. */
struct program *s_server_start(unsigned *ret_port, const char *const *args);
struct program *gnutls_serv_start(unsigned *ret_port, const char *const *args);

#endif
