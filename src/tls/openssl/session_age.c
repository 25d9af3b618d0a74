/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long ago the peer of a session was verified.
 *
 * What is taken up again is not verified again, and to OpenSSL a session is new with each ticket of
 * TLS 1.3: it could be taken up for ever, whatever has become of the certificate (RFC 8446, 4.6.1).
 * So a session has with it when its handshake was a full one; a server's, within the ticket.
 */
#include <string.h>

#include "os/clock.h"
#include "tls/openssl/session.h"

static int64_t now_s(void)
{
    return weir__realtime_now() / 1000000000;
}

/* False if nobody has said. */
static bool read_begin(SSL_SESSION *session, int64_t *ret_begin_s)
{
    void *data;
    size_t length;

    if (SSL_SESSION_get0_ticket_appdata(session, &data, &length) != 1 ||
        length != sizeof(*ret_begin_s))
        return false;
    memcpy(ret_begin_s, data, sizeof(*ret_begin_s));
    return true;
}

bool weir__openssl_age_begin(SSL_SESSION *session)
{
    int64_t begin_s;

    if (read_begin(session, &begin_s))
        return true;
    begin_s = now_s();
    return SSL_SESSION_set1_ticket_appdata(session, &begin_s, sizeof(begin_s)) == 1;
}

/* One that comes from far in the future was made by a clock that was wrong: it is not younger. */
bool weir__openssl_age_exceeds(SSL_SESSION *session, int64_t lifetime_s)
{
    int64_t begin_s, age_s;

    if (!read_begin(session, &begin_s))
        begin_s = SSL_SESSION_get_time(session);
    age_s = now_s() - begin_s;
    return age_s >= lifetime_s || age_s <= -lifetime_s;
}
