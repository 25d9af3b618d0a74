/* SPDX-License-Identifier: Apache-2.0 */
#include "base/addresses.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/refcount.h"

struct addresses {
    weir_addresses base;
    weir__refs refs;
    weir_address list[];
};

weir_addresses *weir__addresses_alloc(size_t count, weir_address **ret_list)
{
    struct addresses *self = weir__alloc(sizeof(*self) + count * sizeof(*self->list));

    if (self == NULL)
        return NULL;
    weir__refs_init(&self->refs);
    self->base = (weir_addresses){.count = count, .addresses = self->list};
    *ret_list = self->list;
    return &self->base;
}

int weir_addresses_create(const weir_address *given, size_t count, weir_addresses **ret_addresses)
{
    weir_addresses *addresses;
    weir_address *list;

    if (count == 0)
        return -EINVAL;
    addresses = weir__addresses_alloc(count, &list);
    if (addresses == NULL)
        return -ENOMEM;
    memcpy(list, given, count * sizeof(*given));
    *ret_addresses = addresses;
    return 0;
}

weir_addresses *weir_addresses_retain(weir_addresses *addresses)
{
    weir__refs_retain(&WEIR_CONTAINER_OF(addresses, struct addresses, base)->refs);
    return addresses;
}

void weir_addresses_release(weir_addresses *addresses)
{
    struct addresses *self;

    if (addresses == NULL)
        return;
    self = WEIR_CONTAINER_OF(addresses, struct addresses, base);
    if (weir__refs_release(&self->refs))
        weir__free(self);
}
