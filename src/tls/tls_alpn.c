/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_alpn.h"

#include <errno.h>
#include <string.h>

#include "tls/tls_reason.h"

int weir__tls_alpn_encode(const char *alpn, uint8_t *ret_bytes, size_t *ret_length)
{
    const char *protocol = alpn;
    size_t length;

    if (strlen(alpn) > WEIR__TLS_ALPN_MAX)
        return weir__tls_fail(-EINVAL, "alpn has more than %d bytes", WEIR__TLS_ALPN_MAX);
    for (;; protocol += length + 1) {
        length = strcspn(protocol, ",");
        if (length == 0)
            return weir__tls_fail(-EINVAL, "\"%s\" has an empty protocol", alpn);
        if (ret_bytes != NULL) {
            *ret_bytes++ = (uint8_t)length;
            memcpy(ret_bytes, protocol, length);
            ret_bytes += length;
        }
        if (protocol[length] == '\0')
            break;
    }
    *ret_length = strlen(alpn) + 1; /* a length for each comma, and one in front */
    return 0;
}
