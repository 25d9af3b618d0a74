/* SPDX-License-Identifier: Apache-2.0 */
#include "resolver/address_order.h"

#include "base/addresses.h"

static size_t keep_family(int family, weir_address *addresses, size_t count)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        if (weir_address_family(&addresses[i]) == family)
            addresses[left++] = addresses[i];
    return left;
}

/* A stable insertion: there are few addresses. */
static void put_first(int family, weir_address *addresses, size_t count)
{
    size_t first = 0;

    for (size_t i = 0; i < count; i++) {
        weir_address address = addresses[i];

        if (weir_address_family(&address) != family)
            continue;
        for (size_t j = i; j > first; j--)
            addresses[j] = addresses[j - 1];
        addresses[first++] = address;
    }
}

size_t weir__address_order(enum weir_family family, weir_address *addresses, size_t count)
{
    switch (family) {
    case WEIR_FAMILY_IPV4_ONLY:
        return keep_family(AF_INET, addresses, count);
    case WEIR_FAMILY_IPV6_ONLY:
        return keep_family(AF_INET6, addresses, count);
    case WEIR_FAMILY_IPV4_FIRST:
        put_first(AF_INET, addresses, count);
        return count;
    case WEIR_FAMILY_IPV6_FIRST:
        put_first(AF_INET6, addresses, count);
        return count;
    case WEIR_FAMILY_ANY:
        break;
    }
    return count;
}

static size_t count_family(const weir_addresses *addresses, int family)
{
    size_t count = 0;

    for (size_t i = 0; i < addresses->count; i++)
        count += weir_address_family(&addresses->addresses[i]) == family;
    return count;
}

/* Returns the address `steps` positions after `index` among those of its family, cyclically. */
static const weir_address *rotate_one(const weir_addresses *addresses, size_t index, size_t steps)
{
    int family = weir_address_family(&addresses->addresses[index]);

    for (; steps > 0; steps--)
        do
            index = (index + 1) % addresses->count;
        while (weir_address_family(&addresses->addresses[index]) != family);
    return &addresses->addresses[index];
}

weir_addresses *weir__address_rotate(const weir_addresses *addresses, unsigned rotation,
                                     uint16_t port)
{
    weir_address *list;
    weir_addresses *rotated = weir__addresses_alloc(addresses->count, &list);

    if (rotated == NULL)
        return NULL;
    for (size_t i = 0; i < addresses->count; i++) {
        size_t same = count_family(addresses, weir_address_family(&addresses->addresses[i]));

        list[i] = *rotate_one(addresses, i, same > 1 ? rotation % same : 0);
        weir_address_set_port(&list[i], port);
    }
    return rotated;
}
