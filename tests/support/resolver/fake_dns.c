/* SPDX-License-Identifier: Apache-2.0 */
#include "support/resolver/fake_dns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "resolver/resolver.h"
#include "resolver/system_resolver.h"
#include "support/executor/group.h"
#include "support/test.h"

struct fake_dns fake_dns;

static size_t add(const char *net, unsigned number, weir_address *addresses, size_t count)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];

    (void)snprintf(text, sizeof(text), "%s%u%s:0", net, number, net[0] == '[' ? "]" : "");
    return count + (weir_address_parse(text, &addresses[count]) == 0);
}

static unsigned number_behind(const char *host, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(host, prefix, length) == 0 ? (unsigned)strtoul(host + length, NULL, 10) : 0;
}

int fake_dns_look_up(const char *host, int family, weir_address *ret_addresses, size_t max,
                     size_t *ret_count)
{
    unsigned v4 = number_behind(host, "v4-"), v6 = number_behind(host, "v6-"),
             both = number_behind(host, "both-");
    size_t count = 0;

    call_counter_add(&fake_dns.asked);
    if (strncmp(host, "gate-", 5) == 0) {
        gate_task(&fake_dns.gate, 0);
        v4 = strcmp(host, "gate-here.test") != 0;
    }
    if (strcmp(host, "later.test") == 0)
        return WEIR_ELOOKUP;
    if (strstr(host, "here.test") != NULL)
        count = add("127.0.0.", 1, ret_addresses, add("127.0.0.", 9, ret_addresses, 0));
    for (unsigned i = 1; i <= v4 + v6 + both && count + 2 <= max; i++) {
        if (i <= v6 + both && family != AF_INET)
            count = add("[2001:db8::", i, ret_addresses, count);
        if (i <= v4 + both && family != AF_INET6)
            count = add("192.0.2.", i, ret_addresses, count);
    }
    *ret_count = count;
    return count > 0 ? 0 : WEIR_ENOHOST;
}

weir_resolver *fake_dns_open(const weir_resolver_options *options)
{
    weir_resolver_options own;
    weir_resolver *resolver = NULL;

    memset(&fake_dns, 0, sizeof(fake_dns));
    own = *WEIR_RESOLVER_OPTIONS();
    if (options != NULL)
        own = *options;
    if (own.hosts_file == NULL)
        own.hosts_file = "";
    assert_int_equal(weir__system_resolver_create(&own, fake_dns_look_up, &resolver), 0);
    return resolver;
}

/* A worker that has answered may still have it for a moment, and would be the last. */
void fake_dns_close(weir_resolver *resolver)
{
    while (atomic_load_explicit(&resolver->refs.count, memory_order_acquire) > 1)
        weir__thread_yield();
    weir_resolver_release(resolver);
}

void fake_dns_await_pending(weir_resolver *resolver, uint64_t count)
{
    while (fake_dns_stats(resolver).pending != count)
        weir__thread_yield();
}

weir_resolver_stats fake_dns_stats(weir_resolver *resolver)
{
    weir_resolver_stats stats;

    weir_resolver_read_stats(resolver, &stats);
    return stats;
}

weir_promise *fake_dns_resolve(weir_resolver *resolver, const char *text)
{
    weir_promise *resolving = NULL;

    assert_int_equal(weir_resolver_resolve(resolver, text, NULL, &resolving), 0);
    return resolving;
}

const char *fake_dns_result(weir_promise *resolving, char *buffer, size_t size)
{
    const weir_addresses *found;
    size_t length = 0;

    assert_int_equal(weir_promise_await(resolving, TEST_TIMEOUT_NS), 0);
    found = weir_promise_value(resolving);
    if (found == NULL)
        (void)snprintf(buffer, size, "%s", weir_error_name(weir_promise_result(resolving)));
    for (size_t i = 0; found != NULL && i < found->count; i++) {
        char text[WEIR_ADDRESS_TEXT_SIZE];

        length += (size_t)snprintf(buffer + length, size - length, "%s%s", i > 0 ? " " : "",
                                   weir_address_format(&found->addresses[i], text, sizeof(text)));
    }
    weir_promise_release(resolving);
    return buffer;
}
