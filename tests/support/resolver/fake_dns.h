/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces getaddrinfo in tests: derives the answer from the name, counts the lookups, and blocks
 * while the test wants it to. No network is needed.
 *
 *     v4-3.test       3 addresses, 192.0.2.1 to 192.0.2.3
 *     v6-2.test       2 addresses, 2001:db8::1 and 2001:db8::2
 *     both-2.test     2 of each, the families alternating, IPv6 first
 *     here.test       127.0.0.9 and 127.0.0.1; test servers are bound to the second
 *     later.test      WEIR_ELOOKUP
 *     gate-X.test     as v4-1.test, once fake_dns.gate is open; gate-here.test as here.test
 *     anything else   WEIR_ENOHOST
 */
#ifndef WEIR_TEST_FAKE_DNS_H
#define WEIR_TEST_FAKE_DNS_H

#include <weir/resolver.h>

#include "os/host_lookup.h"
#include "support/executor/gate.h"

struct fake_dns {
    struct call_counter asked;
    struct gate gate;
};

extern struct fake_dns fake_dns;

/* A weir__host_lookup_fn. */
weir__host_lookup_fn fake_dns_look_up;

/* Creates a resolver that uses it, and resets the counters. No hosts file, unless the options name
 * one. NULL: all defaults. */
weir_resolver *fake_dns_open(const weir_resolver_options *options);

/* Waits until this is the only reference, and releases it: its threads have ended then. */
void fake_dns_close(weir_resolver *resolver);

/* Waits until `count` lookups are queued or running. */
void fake_dns_await_pending(weir_resolver *resolver, uint64_t count);

weir_resolver_stats fake_dns_stats(weir_resolver *resolver);

/* Resolves; listeners run on the global executor. */
weir_promise *fake_dns_resolve(weir_resolver *resolver, const char *text);

/* Waits for the promise and releases it. Returns the addresses, separated by spaces, or the name of
 * the error. */
const char *fake_dns_result(weir_promise *resolving, char *buffer, size_t size);

/* Resolves and compares the result. */
#define assert_resolved(resolver, text, answer)                                                   \
    do {                                                                                          \
        char result_[1024];                                                                       \
        assert_string_equal(                                                                      \
            fake_dns_result(fake_dns_resolve(resolver, text), result_, sizeof(result_)), answer); \
    } while (0)

#endif
