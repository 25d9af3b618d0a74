/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolvers: numeric addresses, lookups by fake_dns, the cache, the hosts file, custom resolvers.
 */
#include <weir/resolver.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>

#include "os/host_lookup.h"
#include "os/thread.h"
#include "resolver/system_resolver.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/promises.h"
#include "support/executor/single_executor.h"
#include "support/memory.h"
#include "support/resolver/fake_dns.h"
#include "support/test.h"

/* ---- without a lookup ---- */

TEST(resolver, answers_numbers_at_once)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *resolving = fake_dns_resolve(resolver, "192.0.2.9:80");

    assert_true(weir_promise_is_done(resolving));
    weir_promise_release(resolving);
    assert_resolved(resolver, "192.0.2.9:80", "192.0.2.9:80");
    assert_resolved(resolver, "[2001:db8::9]:80", "[2001:db8::9]:80");
    assert_resolved(resolver, "unix:/run/x", "unix:/run/x");
    assert_int_equal(fake_dns_stats(resolver).queries, 0);
    fake_dns_close(resolver);
}

TEST(resolver, knows_localhost_without_asking)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_resolver *only = fake_dns_open(WEIR_RESOLVER_OPTIONS(.family = WEIR_FAMILY_IPV4_ONLY));

    assert_resolved(resolver, "localhost:80", "[::1]:80 127.0.0.1:80");
    assert_resolved(resolver, "me.LocalHost.:1", "[::1]:1 127.0.0.1:1");
    assert_resolved(only, "localhost:80", "127.0.0.1:80");
    assert_int_equal(fake_dns.asked.calls, 0);
    fake_dns_close(resolver);
    fake_dns_close(only);
}

TEST(resolver, refuses_what_is_neither_a_name_nor_an_address)
{
    static const char *const texts[] = {"", "x", "x:", ":x", "1.2.3.400:80", "[::1:80", "a b:80"};
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *none = NULL;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(weir_resolver_resolve(resolver, texts[i], NULL, &none), -EINVAL);
    assert_int_equal(weir_resolver_resolve(resolver, NULL, NULL, &none), -EINVAL);
    assert_null(none);
    fake_dns_close(resolver);
}

TEST(resolver, rejects_invalid_options)
{
    weir_resolver *none = NULL;
    const weir_resolver_type no_type = {.name = "none"};

    assert_int_equal(weir_resolver_create_system(WEIR_RESOLVER_OPTIONS(.cache_ttl_ns = -2), &none),
                     -EINVAL);
    assert_int_equal(weir_resolver_create_system(WEIR_RESOLVER_OPTIONS(.max_cached = -1), &none),
                     -EINVAL);
    assert_int_equal(
        weir_resolver_create_system(WEIR_RESOLVER_OPTIONS(.family = (enum weir_family)9), &none),
        -EINVAL);
    assert_int_equal(weir_resolver_create(&no_type, NULL, &none), -EINVAL);
    assert_null(none);
}

/* ---- lookups ---- */

TEST(resolver, looks_names_up)
{
    weir_resolver *resolver = fake_dns_open(NULL);

    assert_resolved(resolver, "v4-2.test:80", "192.0.2.1:80 192.0.2.2:80");
    assert_resolved(resolver, "both-2.test:7",
                    "[2001:db8::1]:7 192.0.2.1:7 [2001:db8::2]:7 192.0.2.2:7");
    assert_int_equal(fake_dns.asked.calls, 2);
    fake_dns_close(resolver);
}

TEST(resolver, prefers_a_family)
{
    weir_resolver *first = fake_dns_open(WEIR_RESOLVER_OPTIONS(.family = WEIR_FAMILY_IPV4_FIRST));
    weir_resolver *only = fake_dns_open(WEIR_RESOLVER_OPTIONS(.family = WEIR_FAMILY_IPV6_ONLY));

    assert_resolved(first, "both-1.test:80", "192.0.2.1:80 [2001:db8::1]:80");
    assert_resolved(only, "both-1.test:80", "[2001:db8::1]:80");
    assert_resolved(only, "v4-1.test:80", "WEIR_ENOHOST");
    fake_dns_close(first);
    fake_dns_close(only);
}

TEST(resolver, distinguishes_unknown_hosts_from_failed_lookups)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *resolving = fake_dns_resolve(resolver, "none.test:80");

    assert_int_equal(weir_promise_sync(resolving, TEST_TIMEOUT_NS), WEIR_ENOHOST);
    assert_non_null(strstr(weir_promise_detail(resolving), "none.test"));
    weir_promise_release(resolving);
    assert_resolved(resolver, "later.test:80", "WEIR_ELOOKUP");
    assert_int_equal(fake_dns_stats(resolver).failures, 2);
    fake_dns_close(resolver);
}

TEST(resolver, runs_listeners_on_the_given_executor)
{
    struct single_executor single = single_executor_open(NULL);
    struct completion_record record = {0};
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *resolving = NULL;

    assert_int_equal(weir_resolver_resolve(resolver, "gate-1.test:80", single.executor, &resolving),
                     0);
    assert_int_equal(weir_promise_add_listener(resolving, record_completion, &record), 0);
    gate_open(&fake_dns.gate);
    assert_true(call_counter_await(&record.calls, 1));
    assert_ptr_equal(record.current, single.executor);
    weir_promise_release(resolving);
    fake_dns_close(resolver);
    single_executor_close(&single);
}

TEST(resolver, shares_a_lookup_among_concurrent_requests)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *resolving[10];
    char result[64], expected[64];

    for (int i = 0; i < 10; i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "gate-%s.test:%d", i % 2 == 0 ? "x" : "X", i);
        resolving[i] = fake_dns_resolve(resolver, text);
    }
    gate_open(&fake_dns.gate);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(expected, sizeof(expected), "192.0.2.1:%d", i);
        assert_string_equal(fake_dns_result(resolving[i], result, sizeof(result)), expected);
    }
    assert_int_equal(fake_dns.asked.calls, 1);
    assert_int_equal(fake_dns_stats(resolver).coalesced, 9);
    fake_dns_close(resolver);
}

/* Three workers are blocked, the fourth is not. */
TEST(resolver, is_not_held_up_by_a_name_server_that_hangs)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *hanging[3];
    char text[32], result[64];

    for (int i = 0; i < 3; i++) {
        (void)snprintf(text, sizeof(text), "gate-%d.test:80", i);
        hanging[i] = fake_dns_resolve(resolver, text);
    }
    assert_true(gate_await_arrivals(&fake_dns.gate, 3));
    for (int i = 1; i <= 20; i++) {
        (void)snprintf(text, sizeof(text), "v4-1.%d.test:80", i);
        assert_resolved(resolver, text, "192.0.2.1:80");
    }
    gate_open(&fake_dns.gate);
    for (int i = 0; i < 3; i++)
        (void)fake_dns_result(hanging[i], result, sizeof(result));
    fake_dns_close(resolver);
}

TEST(resolver, bounds_what_waits)
{
    weir_resolver *resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS(.max_pending = 2));
    weir_promise *first = fake_dns_resolve(resolver, "gate-1.test:80"),
                 *second = fake_dns_resolve(resolver, "gate-2.test:80");
    char result[64];

    assert_resolved(resolver, "gate-3.test:80", "WEIR_EFULL");
    gate_open(&fake_dns.gate);
    assert_string_equal(fake_dns_result(first, result, sizeof(result)), "192.0.2.1:80");
    assert_string_equal(fake_dns_result(second, result, sizeof(result)), "192.0.2.1:80");
    fake_dns_close(resolver);
}

TEST(resolver, skips_a_lookup_that_was_cancelled_before_it_began)
{
    struct single_executor single = single_executor_open(NULL);
    weir_resolver *resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS(.group = single.group));
    weir_promise *first = fake_dns_resolve(resolver, "gate-1.test:80"),
                 *second = fake_dns_resolve(resolver, "gate-2.test:80"),
                 *third = fake_dns_resolve(resolver, "gate-3.test:80");
    char result[64];

    assert_true(gate_await_arrivals(&fake_dns.gate, 1));
    assert_int_equal(weir_promise_cancel(first), 0); /* too late: the lookup runs */
    assert_int_equal(weir_promise_cancel(second), 0);
    gate_open(&fake_dns.gate);
    assert_string_equal(fake_dns_result(first, result, sizeof(result)), "WEIR_ECANCELED");
    assert_string_equal(fake_dns_result(second, result, sizeof(result)), "WEIR_ECANCELED");
    assert_string_equal(fake_dns_result(third, result, sizeof(result)), "192.0.2.1:80");
    assert_int_equal(fake_dns.asked.calls, 2);
    fake_dns_close(resolver);
    single_executor_close(&single);
}

TEST(resolver, cancelled_by_one_still_answers_the_others)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *first = fake_dns_resolve(resolver, "gate-1.test:80"),
                 *second = fake_dns_resolve(resolver, "gate-1.test:81");
    char result[64];

    assert_int_equal(weir_promise_cancel(first), 0);
    gate_open(&fake_dns.gate);
    assert_string_equal(fake_dns_result(second, result, sizeof(result)), "192.0.2.1:81");
    assert_string_equal(fake_dns_result(first, result, sizeof(result)), "WEIR_ECANCELED");
    assert_int_equal(fake_dns.asked.calls, 1);
    fake_dns_close(resolver);
}

TEST(resolver, released_by_all_still_answers)
{
    struct single_executor single = single_executor_open(NULL);
    weir_resolver *resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS(.group = single.group));
    weir_promise *first = fake_dns_resolve(resolver, "gate-1.test:80"),
                 *second = fake_dns_resolve(resolver, "gate-2.test:80");
    char result[64];

    weir_resolver_release(resolver);
    gate_open(&fake_dns.gate);
    assert_string_equal(fake_dns_result(first, result, sizeof(result)), "192.0.2.1:80");
    assert_string_equal(fake_dns_result(second, result, sizeof(result)), "192.0.2.1:80");
    single_executor_close(&single);
}

struct rotation {
    size_t asked; /* when it came */
    struct call_counter calls;
};

static void take_turn(void *arg, int status)
{
    struct rotation *rotation = arg;

    (void)status;
    rotation->asked = fake_dns.asked.calls;
    call_counter_add(&rotation->calls);
}

/* Even with many queued names. */
TEST(resolver, lets_others_have_their_turn_on_its_group)
{
    struct single_executor single = single_executor_open(NULL);
    weir_resolver *resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS(.group = single.group));
    weir_promise *resolving[4];
    struct rotation rotation = {0};
    char text[32], result[64];

    for (int i = 0; i < 4; i++) {
        (void)snprintf(text, sizeof(text), "gate-%d.test:80", i);
        resolving[i] = fake_dns_resolve(resolver, text);
    }
    assert_true(gate_await_arrivals(&fake_dns.gate, 1));
    assert_int_equal(weir_execute(single.executor, take_turn, &rotation), 0);
    gate_open(&fake_dns.gate);
    assert_true(call_counter_await(&rotation.calls, 1));
    assert_int_equal(rotation.asked, 1);
    for (int i = 0; i < 4; i++)
        assert_string_equal(fake_dns_result(resolving[i], result, sizeof(result)), "192.0.2.1:80");
    fake_dns_close(resolver);
    single_executor_close(&single);
}

TEST(resolver, fails_when_its_group_has_ended)
{
    struct single_executor single = single_executor_open(NULL);
    weir_resolver *resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS(.group = single.group));

    log_capture_start();
    single_executor_end(&single);
    assert_resolved(resolver, "v4-1.test:80", "WEIR_EREJECTED");
    assert_resolved(resolver, "v4-1.test:80", "WEIR_EREJECTED");
    fake_dns_close(resolver);
    single_executor_close(&single);
}

/* ---- the cache ---- */

struct cached {
    weir_manual_clock *clock;
    weir_resolver *resolver;
};

static struct cached cached_open(const weir_resolver_options *given)
{
    struct cached cached;
    weir_resolver_options options = *given;

    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &cached.clock), 0);
    options.clock = weir_manual_clock_clock(cached.clock);
    cached.resolver = fake_dns_open(&options);
    return cached;
}

static void cached_close(struct cached *cached)
{
    fake_dns_close(cached->resolver);
    weir_manual_clock_release(cached->clock);
}

static void advance(struct cached *cached, int64_t ns)
{
    assert_int_equal(weir_manual_clock_advance(cached->clock, ns), 0);
}

TEST(resolver, remembers_addresses_for_a_while)
{
    struct cached cached = cached_open(WEIR_RESOLVER_OPTIONS(.cache_ttl_ns = 0));
    weir_promise *resolving;

    assert_resolved(cached.resolver, "v4-1.test:80", "192.0.2.1:80");
    advance(&cached, weir_seconds(30) - 1);
    resolving = fake_dns_resolve(cached.resolver, "V4-1.test:81");
    assert_true(weir_promise_is_done(resolving));
    weir_promise_release(resolving);
    assert_int_equal(fake_dns.asked.calls, 1);
    assert_int_equal(fake_dns_stats(cached.resolver).hits, 1);
    advance(&cached, 1);
    assert_resolved(cached.resolver, "v4-1.test:80", "192.0.2.1:80");
    assert_int_equal(fake_dns.asked.calls, 2);
    cached_close(&cached);
}

TEST(resolver, remembers_for_a_shorter_while_that_there_is_no_host)
{
    struct cached cached = cached_open(WEIR_RESOLVER_OPTIONS(.negative_ttl_ns = weir_ms(5)));

    assert_resolved(cached.resolver, "none.test:80", "WEIR_ENOHOST");
    advance(&cached, weir_ms(5) - 1);
    assert_resolved(cached.resolver, "none.test:80", "WEIR_ENOHOST");
    assert_int_equal(fake_dns.asked.calls, 1);
    assert_int_equal(fake_dns_stats(cached.resolver).negative_hits, 1);
    advance(&cached, 1);
    assert_resolved(cached.resolver, "none.test:80", "WEIR_ENOHOST");
    assert_int_equal(fake_dns.asked.calls, 2);
    cached_close(&cached);
}

TEST(resolver, does_not_remember_what_may_be_better_next_time)
{
    weir_resolver *resolver = fake_dns_open(NULL);

    assert_resolved(resolver, "later.test:80", "WEIR_ELOOKUP");
    assert_resolved(resolver, "later.test:80", "WEIR_ELOOKUP");
    assert_int_equal(fake_dns.asked.calls, 2);
    assert_int_equal(fake_dns_stats(resolver).cached, 0);
    fake_dns_close(resolver);
}

TEST(resolver, caches_nothing_if_caching_is_off)
{
    weir_resolver *resolver =
        fake_dns_open(WEIR_RESOLVER_OPTIONS(.cache_ttl_ns = WEIR_OFF, .negative_ttl_ns = WEIR_OFF));

    for (int i = 0; i < 2; i++) {
        assert_resolved(resolver, "v4-1.test:80", "192.0.2.1:80");
        assert_resolved(resolver, "none.test:80", "WEIR_ENOHOST");
    }
    assert_int_equal(fake_dns.asked.calls, 4);
    fake_dns_close(resolver);
}

TEST(resolver, forgets_when_flushed)
{
    weir_resolver *resolver = fake_dns_open(NULL);

    assert_resolved(resolver, "v4-1.test:80", "192.0.2.1:80");
    assert_int_equal(fake_dns_stats(resolver).cached, 1);
    weir_resolver_flush(resolver);
    assert_int_equal(fake_dns_stats(resolver).cached, 0);
    assert_resolved(resolver, "v4-1.test:80", "192.0.2.1:80");
    assert_int_equal(fake_dns.asked.calls, 2);
    fake_dns_close(resolver);
}

TEST(resolver, does_not_cache_lookups_that_were_running_at_a_flush)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    weir_promise *resolving = fake_dns_resolve(resolver, "gate-1.test:80");
    char result[64];

    assert_true(gate_await_arrivals(&fake_dns.gate, 1));
    weir_resolver_flush(resolver);
    gate_open(&fake_dns.gate);
    assert_string_equal(fake_dns_result(resolving, result, sizeof(result)), "192.0.2.1:80");
    assert_int_equal(fake_dns_stats(resolver).cached, 0);
    fake_dns_close(resolver);
}

TEST(resolver, forgets_the_oldest_of_too_many)
{
    weir_resolver *resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS(.max_cached = 2));

    assert_resolved(resolver, "v4-1.a.test:80", "192.0.2.1:80");
    assert_resolved(resolver, "v4-1.b.test:80", "192.0.2.1:80");
    assert_resolved(resolver, "v4-1.c.test:80", "192.0.2.1:80");
    assert_int_equal(fake_dns_stats(resolver).cached, 2);
    assert_resolved(resolver, "v4-1.b.test:80", "192.0.2.1:80");
    assert_int_equal(fake_dns.asked.calls, 3);
    assert_resolved(resolver, "v4-1.a.test:80", "192.0.2.1:80");
    assert_int_equal(fake_dns.asked.calls, 4);
    fake_dns_close(resolver);
}

TEST(resolver, goes_round_within_each_family)
{
    weir_resolver *resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS(.round_robin = true));

    assert_resolved(resolver, "v4-3.test:1", "192.0.2.1:1 192.0.2.2:1 192.0.2.3:1");
    assert_resolved(resolver, "v4-3.test:1", "192.0.2.2:1 192.0.2.3:1 192.0.2.1:1");
    assert_resolved(resolver, "v4-3.test:1", "192.0.2.3:1 192.0.2.1:1 192.0.2.2:1");
    assert_resolved(resolver, "v4-3.test:1", "192.0.2.1:1 192.0.2.2:1 192.0.2.3:1");
    assert_resolved(resolver, "both-2.test:1",
                    "[2001:db8::1]:1 192.0.2.1:1 [2001:db8::2]:1 192.0.2.2:1");
    assert_resolved(resolver, "both-2.test:1",
                    "[2001:db8::2]:1 192.0.2.2:1 [2001:db8::1]:1 192.0.2.1:1");
    fake_dns_close(resolver);
}

TEST(resolver, keeps_the_order_by_default)
{
    weir_resolver *resolver = fake_dns_open(NULL);

    assert_resolved(resolver, "v4-2.test:1", "192.0.2.1:1 192.0.2.2:1");
    assert_resolved(resolver, "v4-2.test:1", "192.0.2.1:1 192.0.2.2:1");
    fake_dns_close(resolver);
}

/* ---- the hosts file ---- */

static void write_hosts(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

TEST(resolver, believes_the_hosts_file_first_and_does_not_cache_it)
{
    char path[] = "/tmp/weir-hosts-XXXXXX";
    weir_resolver *resolver;

    assert_int_equal(close(mkstemp(path)), 0);
    write_hosts(path, "198.51.100.1 v4-1.test other.test\n");
    resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS(.hosts_file = path));
    assert_resolved(resolver, "v4-1.test:80", "198.51.100.1:80");
    assert_resolved(resolver, "OTHER.test:80", "198.51.100.1:80");
    assert_int_equal(fake_dns.asked.calls, 0);
    write_hosts(path, "198.51.100.22 v4-1.test\n"); /* longer than before */
    assert_resolved(resolver, "v4-1.test:80", "198.51.100.22:80");
    assert_resolved(resolver, "other.test:80", "WEIR_ENOHOST");
    assert_int_equal(fake_dns_stats(resolver).cached, 1);
    assert_int_equal(unlink(path), 0);
    assert_resolved(resolver, "v4-1.test:80", "192.0.2.1:80");
    fake_dns_close(resolver);
}

/* Two hosts rotate independently of each other. */
TEST(resolver, rotates_without_a_cache)
{
    char path[] = "/tmp/weir-hosts-XXXXXX";
    weir_resolver *resolver;

    assert_int_equal(close(mkstemp(path)), 0);
    write_hosts(path, "198.51.100.1 file.test\n198.51.100.2 file.test\n");
    resolver = fake_dns_open(
        WEIR_RESOLVER_OPTIONS(.hosts_file = path, .cache_ttl_ns = WEIR_OFF, .round_robin = true));
    assert_resolved(resolver, "file.test:1", "198.51.100.1:1 198.51.100.2:1");
    assert_resolved(resolver, "v4-2.test:1", "192.0.2.1:1 192.0.2.2:1");
    assert_resolved(resolver, "file.test:1", "198.51.100.2:1 198.51.100.1:1");
    assert_resolved(resolver, "v4-2.test:1", "192.0.2.2:1 192.0.2.1:1");
    assert_resolved(resolver, "file.test:1", "198.51.100.1:1 198.51.100.2:1");
    fake_dns_close(resolver);
    assert_int_equal(unlink(path), 0);
}

/* An address of an excluded family counts as none. */
TEST(resolver, asks_where_the_hosts_file_has_only_the_other_family)
{
    char path[] = "/tmp/weir-hosts-XXXXXX";
    weir_resolver *resolver;

    assert_int_equal(close(mkstemp(path)), 0);
    write_hosts(path, "198.51.100.1 both-1.test\n");
    resolver =
        fake_dns_open(WEIR_RESOLVER_OPTIONS(.hosts_file = path, .family = WEIR_FAMILY_IPV6_ONLY));
    assert_resolved(resolver, "both-1.test:80", "[2001:db8::1]:80");
    fake_dns_close(resolver);
    assert_int_equal(unlink(path), 0);
}

/* ---- custom resolvers ---- */

struct own {
    unsigned resolved, destroyed, flushed;
    weir_promise *kept;
};

static void own_resolve(void *user_data, const char *host, uint16_t port, weir_promise *promise)
{
    struct own *own = user_data;
    weir_address address;

    own->resolved++;
    if (strcmp(host, "kept.test") == 0)
        own->kept = weir_promise_retain(promise);
    else if (strcmp(host, "none.test") == 0)
        (void)weir_resolver_answer(promise, NULL, 0, port);
    else if (weir_address_parse("192.0.2.7:1", &address) == 0)
        (void)weir_resolver_answer(promise, &address, 1, port);
}

static void own_destroy(void *user_data)
{
    ((struct own *)user_data)->destroyed++;
}

static void own_flush(void *user_data)
{
    ((struct own *)user_data)->flushed++;
}

static const weir_resolver_type own_type = {
    .name = "own", .resolve = own_resolve, .destroy = own_destroy, .flush = own_flush};

TEST(resolver, may_be_custom)
{
    struct own own = {0};
    weir_resolver *resolver = NULL;
    weir_promise *resolving;

    assert_int_equal(weir_resolver_create(&own_type, &own, &resolver), 0);
    assert_resolved(resolver, "x.test:80", "192.0.2.7:80");
    assert_resolved(resolver, "none.test:80", "WEIR_ENOHOST");
    assert_resolved(resolver, "192.0.2.8:80", "192.0.2.8:80");
    assert_int_equal(own.resolved, 2);
    weir_resolver_flush(resolver);
    assert_int_equal(own.flushed, 1);
    assert_int_equal(fake_dns_stats(resolver).queries, 0);
    resolving = fake_dns_resolve(resolver, "kept.test:80");
    assert_false(weir_promise_is_done(resolving));
    assert_int_equal(weir_promise_cancel(resolving), 0);
    assert_int_equal(weir_resolver_answer(own.kept, NULL, 0, 80), WEIR_ECOMPLETED);
    weir_promise_release(own.kept);
    weir_promise_release(resolving);
    assert_resolved(weir_resolver_retain(resolver), "x.test:80", "192.0.2.7:80");
    weir_resolver_release(resolver);
    assert_int_equal(own.destroyed, 0);
    weir_resolver_release(resolver);
    assert_int_equal(own.destroyed, 1);
}

/* ---- the default resolver ---- */

/* Uses fake_dns: the machine may have no name server. */
TEST(resolver, default_one_is_always_there)
{
    weir_resolver *resolver = weir_resolver_default();
    weir__system_resolver *inside = resolver->user_data;

    assert_ptr_equal(weir_resolver_default(), resolver);
    assert_resolved(resolver, "localhost:80", "[::1]:80 127.0.0.1:80");
    assert_resolved(resolver, "host.invalid:80", "WEIR_ENOHOST");
    inside->lookup = fake_dns_look_up;
    for (int i = 0; i < 3; i++) {
        assert_resolved(resolver, "v4-2.test:80", "192.0.2.1:80 192.0.2.2:80");
        while (!weir__resolver_default_cleanup()) /* as at the end of the process; it can be used
                                                     again */
            weir__thread_yield();
    }
    inside->lookup = weir__host_lookup;
    weir_resolver_release(weir_resolver_retain(resolver));
}

TEST(resolver, default_is_not_cleaned_up_during_a_lookup)
{
    weir_resolver *resolver = weir_resolver_default();
    weir__system_resolver *inside = resolver->user_data;
    weir_promise *resolving;
    char result[64];

    memset(&fake_dns, 0, sizeof(fake_dns));
    inside->lookup = fake_dns_look_up;
    resolving = fake_dns_resolve(resolver, "gate-1.test:80");
    assert_true(gate_await_arrivals(&fake_dns.gate, 1));
    assert_false(weir__resolver_default_cleanup());
    gate_open(&fake_dns.gate);
    assert_string_equal(fake_dns_result(resolving, result, sizeof(result)), "192.0.2.1:80");
    while (!weir__resolver_default_cleanup())
        weir__thread_yield();
    inside->lookup = weir__host_lookup;
}

TEST(resolver, asks_the_system)
{
    weir_address found[4];
    size_t count = 0;

    assert_int_equal(weir__host_lookup("localhost", AF_UNSPEC, found, 4, &count), 0);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(weir_address_port(&found[i]), 0);
}

/* ---- memory, and threads ---- */

TEST(resolver, survives_every_failed_allocation)
{
    char path[] = "/tmp/weir-hosts-XXXXXX";
    bool failed = true;

    log_capture_start();
    assert_int_equal(close(mkstemp(path)), 0);
    write_hosts(path, "198.51.100.1 there.test\n");
    for (unsigned n = 1; failed; n++) {
        static const char *const texts[] = {"v4-2.test:80", "v4-2.test:81", "there.test:1",
                                            "none.test:1", "192.0.2.1:1"};
        weir_resolver *resolver = NULL;
        weir_resolver_options options;

        memset(&fake_dns, 0, sizeof(fake_dns));
        options = *WEIR_RESOLVER_OPTIONS();
        options.hosts_file = path;
        test_memory_fail_at(n);
        if (weir__system_resolver_create(&options, fake_dns_look_up, &resolver) < 0) {
            failed = test_memory_failed();
            assert_true(failed);
            continue;
        }
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            weir_promise *resolving = NULL;

            if (weir_resolver_resolve(resolver, texts[i], NULL, &resolving) == 0)
                assert_int_equal(weir_promise_await(resolving, TEST_TIMEOUT_NS), 0);
            weir_promise_release(resolving);
        }
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_resolved(resolver, "v4-2.test:80", "192.0.2.1:80 192.0.2.2:80");
        fake_dns_close(resolver);
    }
    assert_int_equal(unlink(path), 0);
}

#define STRESS_THREADS 4
#define STORM_QUERIES 400

struct resolve_stress {
    weir_resolver *resolver;
    unsigned seed;
    _Atomic unsigned *wrong;
};

/* Resolves, cancels and flushes in a random order. */
static void run_stress(void *arg)
{
    struct resolve_stress *resolve_stress = arg;
    char text[32];

    for (unsigned i = 0; i < STORM_QUERIES; i++) {
        unsigned chance = (resolve_stress->seed = resolve_stress->seed * 1103515245 + 12345) >> 16;
        weir_promise *resolving = NULL;

        (void)snprintf(text, sizeof(text), "%s%u.test:80", chance % 7 == 0 ? "none-" : "v4-",
                       1 + chance % 13);
        if (weir_resolver_resolve(resolve_stress->resolver, text, NULL, &resolving) < 0)
            atomic_fetch_add(resolve_stress->wrong, 1);
        if (chance % 5 == 0)
            (void)weir_promise_cancel(resolving);
        if (chance % 11 == 0)
            weir_resolver_flush(resolve_stress->resolver);
        if (weir_promise_await(resolving, TEST_TIMEOUT_NS) < 0)
            atomic_fetch_add(resolve_stress->wrong, 1);
        weir_promise_release(resolving);
    }
}

TEST(resolver, serves_many_threads)
{
    weir_resolver *resolver =
        fake_dns_open(WEIR_RESOLVER_OPTIONS(.max_cached = 5, .round_robin = true));
    weir__thread threads[STRESS_THREADS];
    struct resolve_stress stress_threads[STRESS_THREADS];
    _Atomic unsigned wrong = 0;

    for (unsigned i = 0; i < STRESS_THREADS; i++) {
        stress_threads[i] =
            (struct resolve_stress){.resolver = resolver, .seed = i, .wrong = &wrong};
        assert_int_equal(weir__thread_start("storm", run_stress, &stress_threads[i], &threads[i]),
                         0);
    }
    for (unsigned i = 0; i < STRESS_THREADS; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(wrong, 0);
    assert_int_equal(fake_dns_stats(resolver).queries, STRESS_THREADS * STORM_QUERIES);
    fake_dns_await_pending(resolver, 0); /* of those that were cancelled */
    fake_dns_close(resolver);
}
