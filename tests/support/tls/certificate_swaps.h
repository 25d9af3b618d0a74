/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose certificate changes all the time, and clients that come, believe it, are echoed
 * and go: threads with a blocking socket and OpenSSL, half of which take up their former session.
 *
 *     struct swaps swaps = {.group = group, .clients = 4, .count = 1000};
 *     if (swaps_run(&swaps)) ...
 *
 * The certificate is in a file: another takes its place, and the server reads it again. Between two
 * swaps there is a handshake at the least.
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

    /* What came of it. */
    uint64_t visits;     /* that were good from beginning to end */
    uint64_t resumed;    /* of these */
    uint64_t by_leaf[2]; /* of these: who was there, before and after a swap */
    uint64_t failed;
    char why[256]; /* the first one of these */
    weir_tls_context_stats stats;
};

/* Whether nothing has failed, and everything was seen. */
bool swaps_run(struct swaps *swaps);

#endif
