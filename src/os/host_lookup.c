/* SPDX-License-Identifier: Apache-2.0 */
#include "os/host_lookup.h"

#include <errno.h>
#include <netdb.h>

#include <weir/error.h>

#include "os/virtual_os.h"

static int error_of(int code)
{
    switch (code) {
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
#ifdef EAI_ADDRFAMILY
    case EAI_ADDRFAMILY:
#endif
        return WEIR_ENOHOST;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return errno > 0 ? -errno : WEIR_ELOOKUP;
    default: /* EAI_AGAIN and EAI_FAIL: the name server may be repaired */
        return WEIR_ELOOKUP;
    }
}

int weir__host_lookup(const char *host, int family, weir_address *ret_addresses, size_t max,
                      size_t *ret_count)
{
    const struct addrinfo hints = {
        .ai_family = family,
        .ai_socktype = SOCK_STREAM, /* each address once, not once per socket type */
        .ai_flags = AI_ADDRCONFIG,
    };
    struct addrinfo *found = NULL;
    size_t count = 0;
    int code;

    if (weir__os_is_virtual())
        return weir__virtual_os_set->host_lookup(host, family, ret_addresses, max, ret_count);
    code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0)
        return error_of(code);
    for (const struct addrinfo *item = found; item != NULL && count < max; item = item->ai_next)
        if (weir_address_from_sockaddr(item->ai_addr, item->ai_addrlen, &ret_addresses[count]) == 0)
            count++;
    freeaddrinfo(found);
    *ret_count = count;
    return count > 0 ? 0 : WEIR_ENOHOST;
}
