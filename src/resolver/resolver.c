/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common to all resolvers: references, and answers for numeric addresses.
 */
#include "resolver/resolver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "base/addresses.h"
#include "base/memory.h"
#include "base/options.h"
#include "executor/promise.h"
#include "resolver/host_name.h"

/* ---- creation and references ---- */

int weir_resolver_create(const weir_resolver_type *type, void *user_data,
                         weir_resolver **ret_resolver)
{
    weir_resolver *resolver;

    if (type == NULL || type->resolve == NULL)
        return weir__options_reject("resolver", NULL, "the type has no `resolve`");
    resolver = weir__alloc(sizeof(*resolver));
    if (resolver == NULL)
        return -ENOMEM;
    *resolver = (weir_resolver){.type = type, .user_data = user_data};
    weir__refs_init(&resolver->refs);
    *ret_resolver = resolver;
    return 0;
}

weir_resolver *weir_resolver_retain(weir_resolver *resolver)
{
    weir__refs_retain(&resolver->refs);
    return resolver;
}

void weir_resolver_release(weir_resolver *resolver)
{
    if (resolver == NULL || !weir__refs_release(&resolver->refs))
        return;
    if (resolver->type->destroy != NULL)
        resolver->type->destroy(resolver->user_data);
    weir__free(resolver);
}

/* ---- answers ---- */

static void release_addresses(void *addresses)
{
    weir_addresses_release(addresses);
}

int weir__resolver_succeed(weir_promise *promise, weir_addresses *taken)
{
    return weir_promise_succeed_with(promise, taken, release_addresses);
}

void weir__resolver_fail(weir_promise *promise, const char *host, int err)
{
    char detail[WEIR__HOST_MAX + 128];

    (void)snprintf(detail, sizeof(detail), "%s: %s", host, weir_error_text(err));
    (void)weir_promise_fail(promise, err, detail);
}

int weir_resolver_answer(weir_promise *promise, const weir_address *given, size_t count,
                         uint16_t port)
{
    weir_addresses *addresses;
    weir_address *list;

    if (count == 0)
        return weir_promise_fail(promise, WEIR_ENOHOST, NULL);
    addresses = weir__addresses_alloc(count, &list);
    if (addresses == NULL) {
        (void)weir_promise_fail(promise, -ENOMEM, NULL);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = given[i];
        weir_address_set_port(&list[i], port);
    }
    return weir__resolver_succeed(promise, addresses);
}

static int answer_number(weir_promise *promise, const weir_address *address)
{
    weir_addresses *addresses;
    int err = weir_addresses_create(address, 1, &addresses);

    return err < 0 ? err : weir__resolver_succeed(promise, addresses);
}

/* ---- resolving ---- */

int weir_resolver_resolve(weir_resolver *resolver, const char *text, weir_executor *executor,
                          weir_promise **ret_resolving)
{
    weir_address address;
    weir_promise *promise;
    weir__host host;
    int err = weir_address_parse(text, &address);
    bool is_number = err == 0;

    if (err == -EINVAL && text != NULL)
        err = weir__host_parse(text, &host);
    if (err != 0)
        return err;
    promise = weir__promise_create_with(executor, sizeof(weir__resolve_request));
    if (promise == NULL)
        return -ENOMEM;
    if (is_number)
        err = answer_number(promise, &address);
    else
        resolver->type->resolve(resolver->user_data, host.name, host.port, promise);
    if (err < 0) {
        weir_promise_release(promise);
        return err;
    }
    *ret_resolving = promise;
    return 0;
}

void weir_resolver_flush(weir_resolver *resolver)
{
    if (resolver->type->flush != NULL)
        resolver->type->flush(resolver->user_data);
}

void weir_resolver_read_stats(weir_resolver *resolver, weir_resolver_stats *ret_stats)
{
    memset(ret_stats, 0, sizeof(*ret_stats));
    if (resolver->type->read_stats != NULL)
        resolver->type->read_stats(resolver->user_data, ret_stats);
}
