/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common arguments, followed by those of the test.
 */
#include "support/tls/peer_program.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/tls/pki.h"

#define ARGS_MAX 48

const struct tls_version_names tls_versions[TLS_VERSION_COUNT] = {
    {"-tls1_2", "NORMAL:-VERS-ALL:+VERS-TLS1.2", "1.2", "TLSv1.2"},
    {"-tls1_3", "NORMAL:-VERS-ALL:+VERS-TLS1.3", "1.3", "TLSv1.3"},
};

/* Starts a program with both. */
static struct program *start(const char *const *usual, const char *const *args)
{
    const char *argv[ARGS_MAX + 1] = {NULL};
    size_t count = 0;

    for (; *usual != NULL; usual++)
        argv[count++] = *usual;
    for (; *args != NULL; args++) {
        assert_true(count < ARGS_MAX);
        argv[count++] = *args;
    }
    return program_start(argv);
}

struct program *s_client_start(const struct tls_endpoint *endpoint, const char *const *args)
{
    char address[32];

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", endpoint->port);
    return start(PROGRAM_ARGS("openssl", "s_client", "-connect", address, "-servername",
                              "localhost", "-verify_hostname", "localhost", "-CAfile",
                              pki()->ca_file, "-verify_return_error"),
                 args);
}

struct program *gnutls_cli_start(const struct tls_endpoint *endpoint, const char *const *args)
{
    char port[16];

    (void)snprintf(port, sizeof(port), "%u", endpoint->port);
    return start(PROGRAM_ARGS("gnutls-cli", "--x509cafile", pki()->ca_file, "--port", port,
                              "--sni-hostname", "localhost", "--verify-hostname", "localhost",
                              "127.0.0.1"),
                 args);
}

/* No configuration of the user's, no proxy, no meter. */
struct program *curl_start(const struct tls_endpoint *endpoint, const char *scheme,
                           const char *const *args)
{
    char url[64];

    (void)snprintf(url, sizeof(url), "%s://localhost:%u/", scheme, endpoint->port);
    return start(PROGRAM_ARGS("curl", "-q", "--noproxy", "*", "--silent", "--show-error", "--ipv4",
                              "--cacert", pki()->ca_file, "--url", url),
                 args);
}

struct program *s_server_start(unsigned *ret_port, const char *const *args)
{
    struct program *program =
        start(PROGRAM_ARGS("openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
                           pki()->server.certificate_file, "-cert_chain",
                           pki()->server.certificate_file, "-key", pki()->server.key_file),
              args);
    char port[16];

    program_read_line(program, "ACCEPT 127.0.0.1:", port, sizeof(port));
    *ret_port = (unsigned)strtoul(port, NULL, 10);
    return program;
}

/* A port that is nobody's on any address: a socket that is bound to all of them has been given it.
 */
static unsigned find_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(descriptor, (struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(descriptor, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(close(descriptor), 0);
    return ntohs(address.sin_port);
}

static struct program *try_gnutls_serv(unsigned number, const char *const *args)
{
    char port[16];
    struct program *program;

    (void)snprintf(port, sizeof(port), "%u", number);
    program =
        start(PROGRAM_ARGS("gnutls-serv", "--port", port, "--echo", "--x509certfile",
                           pki()->server.certificate_file, "--x509keyfile", pki()->server.key_file),
              args);
    program_await(program, "...done");
    return program;
}

/* It cannot choose a port by itself, and somebody may be quicker: then it listens by IPv6 alone. */
struct program *gnutls_serv_start(unsigned *ret_port, const char *const *args)
{
    unsigned port = find_port();
    struct program *program = try_gnutls_serv(port, args);

    for (int tries = 1; tries < 5 && program_printed(program, "bind() failed"); tries++) {
        program_release(program);
        port = find_port();
        program = try_gnutls_serv(port, args);
    }
    *ret_port = port;
    return program;
}
