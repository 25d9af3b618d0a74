/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs at the other end, told where a endpoint is and whom to believe.
 *
 *     struct program *client = s_client(endpoint, "-tls1_3");
 *     struct program *server = s_server(&port, "-tls1_2", "-rev");
 *
 * What they are told last takes the place of what was said before. Clients believe the authority of
 * our PKI, and want "localhost"; servers are that, unless they are told of another certificate.
 */
#ifndef WEIR_TEST_PEER_PROGRAM_H
#define WEIR_TEST_PEER_PROGRAM_H

#include "support/tls/program.h"
#include "support/tls/tls_endpoint.h"

#define PROGRAM_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What the versions of TLS are called. */
struct tls_version_names {
    const char *flag;     /* of openssl */
    const char *priority; /* of gnutls */
    const char *number;   /* of curl */
    const char *name;     /* in our facts */
};

#define TLS_VERSION_COUNT 2
extern const struct tls_version_names tls_versions[TLS_VERSION_COUNT];

#define each_version(version)                               \
    const struct tls_version_names *version = tls_versions; \
    version < tls_versions + TLS_VERSION_COUNT;             \
    version++

/* Each has one argument at the least. */
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
