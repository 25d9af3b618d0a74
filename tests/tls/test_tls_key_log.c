/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/test.h"
#include "support/tls/memory_handshake.h"
#include "support/tls/pki.h"

/* How many lines begin with this label, in a file all of whose lines are whole. */
static unsigned count_lines(const char *path, const char *label)
{
    FILE *file = fopen(path, "r");
    unsigned count = 0;
    char line[512];

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        assert_int_equal(line[strlen(line) - 1], '\n');
        count += strncmp(line, label, strlen(label)) == 0 && line[strlen(label)] == ' ';
    }
    assert_int_equal(fclose(file), 0);
    return count;
}

static weir_tls_context *logging_server(enum weir_tls_version version, const char *path)
{
    weir_tls_context *server;

    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key,
                                                  .max_version = version, .key_log_file = path),
                         &server),
                     0);
    return server;
}

static void visit_logged(enum weir_tls_version version, const char *path)
{
    weir_tls_context *server = logging_server(version, path), *client = handshake_client(version);

    (void)handshake_resumes(client, server);
    assert_int_equal(weir_tls_context_reload(server), 0);
    (void)handshake_resumes(client, server);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

TEST(tls_key_log, secrets_are_appended_for_their_owner_alone)
{
    struct stat status;
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/keys.log", pki()->folder);
    visit_logged(WEIR_TLS_VERSION_1_3, path);
    assert_int_equal(count_lines(path, "SERVER_TRAFFIC_SECRET_0"), 2);
    assert_int_equal(count_lines(path, "CLIENT_HANDSHAKE_TRAFFIC_SECRET"), 2);
    visit_logged(WEIR_TLS_VERSION_1_2, path);
    assert_int_equal(count_lines(path, "CLIENT_RANDOM"), 2);
    assert_int_equal(count_lines(path, "SERVER_TRAFFIC_SECRET_0"), 2);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(remove(path), 0);
}
