/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose certificate is replaced all the time, and clients that connect, verify it, are
 * echoed and disconnect: threads with a blocking socket and OpenSSL, half of which resume their
 * sessions.
 *
 *     struct swaps swaps = {.group = group, .clients = 4, .count = 1000};
 *     if (swaps_run(&swaps)) ...
 *
 * The certificate is in a file, which is replaced and reloaded. There is at least one handshake
 * between two swaps.
 */
#ifndef WEIR_TEST_TLS_CERTIFICATE_SWAPS_H
#define WEIR_TEST_TLS_CERTIFICATE_SWAPS_H

#include <weir/group.h>
#include <weir/tls_context.h>

#define SWAPS_CLIENTS_MAX 16

struct swaps {
    weir_group *group; /* the server's */
    int clients;
    int count; /* of swaps */

    /* Results. */
    uint64_t visits;     /* successful connections */
    uint64_t resumed;    /* of these */
    uint64_t by_leaf[2]; /* of these: by the certificate seen */
    uint64_t failed;
    char why[256]; /* of the first failure */
    weir_tls_context_stats stats;
};

/* True if nothing failed, and both certificates were seen. */
bool swaps_run(struct swaps *swaps);

#endif
