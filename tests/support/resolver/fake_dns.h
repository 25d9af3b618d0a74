/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name server of the test's own, in the place of getaddrinfo: answers by what a name looks like,
 * counts what it is asked, and blocks as long as the test likes. No network is needed.
 *
 *     v4-3.test       3 addresses, 192.0.2.1 to 192.0.2.3
 *     v6-2.test       2 addresses, 2001:db8::1 and 2001:db8::2
 *     both-2.test     2 of each, the families taking turns, IPv6 first
 *     here.test       127.0.0.9 and 127.0.0.1: servers of tests are bound to the second
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

/* A resolver that asks it, and forgets what was asked before; without a hosts file, unless the
 * options name one. NULL: every default. */
weir_resolver *fake_dns_open(const weir_resolver_options *options);

/* Releases it when nobody else has it, so that its threads are gone then. */
void fake_dns_close(weir_resolver *resolver);

/* Waits until so many of its questions wait or run. */
void fake_dns_await_pending(weir_resolver *resolver, uint64_t count);

weir_resolver_stats fake_dns_stats(weir_resolver *resolver);

/* The promise of a resolution; its listeners run on the global executor. */
weir_promise *fake_dns_resolve(weir_resolver *resolver, const char *text);

/* Waits for it, and releases it: the addresses with spaces between them, or the error's name. */
const char *fake_dns_result(weir_promise *resolving, char *buffer, size_t size);

/* Both. */
#define assert_resolved(resolver, text, answer)                                               \
    do {                                                                                      \
        char told_[1024];                                                                     \
        assert_string_equal(                                                                  \
            fake_dns_result(fake_dns_resolve(resolver, text), told_, sizeof(told_)), answer); \
    } while (0)

#endif
