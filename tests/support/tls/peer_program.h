/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs at the other end, told where a party is and whom to believe.
 *
 *     struct program *client = s_client(party, "-tls1_3");
 *     struct program *server = s_server(&port, "-tls1_2", "-rev");
 *
 * What they are told last takes the place of what was said before. Clients believe the authority of
 * our PKI, and want "localhost"; servers are that, unless they are told of another certificate.
 */
#ifndef WEIR_TEST_PEER_PROGRAM_H
#define WEIR_TEST_PEER_PROGRAM_H

#include "support/tls/program.h"
#include "support/tls/tls_party.h"

#define COUNTERPART_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What the versions of TLS are called. */
struct counterpart_version {
    const char *flag;     /* of openssl */
    const char *priority; /* of gnutls */
    const char *number;   /* of curl */
    const char *name;     /* in our facts */
};

#define COUNTERPART_VERSIONS 2
extern const struct counterpart_version counterpart_versions[COUNTERPART_VERSIONS];

#define each_version(version)                                         \
    const struct counterpart_version *version = counterpart_versions; \
    version < counterpart_versions + COUNTERPART_VERSIONS;            \
    version++

/* Each has one argument at the least. */
#define s_client(party, ...) s_client_start(party, COUNTERPART_ARGS(__VA_ARGS__))
#define gnutls_cli(party, ...) gnutls_cli_start(party, COUNTERPART_ARGS(__VA_ARGS__))
#define curl(party, scheme, ...) curl_start(party, scheme, COUNTERPART_ARGS(__VA_ARGS__))
#define s_server(ret_port, ...) s_server_start(ret_port, COUNTERPART_ARGS(__VA_ARGS__))
#define gnutls_serv(ret_port, ...) gnutls_serv_start(ret_port, COUNTERPART_ARGS(__VA_ARGS__))

struct program *s_client_start(const struct party *party, const char *const *args);
struct program *gnutls_cli_start(const struct party *party, const char *const *args);
struct program *curl_start(const struct party *party, const char *scheme, const char *const *args);

/* Returns when it listens. */
struct program *s_server_start(unsigned *ret_port, const char *const *args);
struct program *gnutls_serv_start(unsigned *ret_port, const char *const *args);

#endif
