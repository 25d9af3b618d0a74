/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system resolver: cache, creation, and the default resolver in static memory.
 */
#include "resolver/system_resolver.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "base/memory.h"
#include "base/options.h"
#include "executor/group.h"
#include "executor/promise.h"
#include "os/clock.h"
#include "os/virtual_os.h"
#include "resolver/address_order.h"
#include "resolver/host_name.h"

#define HOSTS_FILE "/etc/hosts"
#define TTL_NS weir_seconds(30)
#define NEGATIVE_TTL_NS weir_seconds(5)
#define CACHE_MAX 1024
#define PENDING_MAX 4096

/* ---- resolving ---- */

/* "localhost" always has the loopback addresses. */
static void answer_local(const weir__system_resolver *self, uint16_t port, weir_promise *promise)
{
    weir_address addresses[2];
    size_t count;

    (void)weir_address_parse("[::1]:0", &addresses[0]);
    (void)weir_address_parse("127.0.0.1:0", &addresses[1]);
    count = weir__address_order(self->family, addresses, 2);
    (void)weir_resolver_answer(promise, addresses, count, port);
}

/* Answers from the cache. Called with the lock, which it unlocks. */
static void answer_cached(weir__system_resolver *self, weir__query *query, weir_promise *promise)
{
    weir_addresses *addresses = query->addresses;
    unsigned rotation = self->round_robin ? weir__queries_rotate(&self->queries, query, 1) : 0;
    char host[WEIR__HOST_MAX + 2];
    int err = query->err;

    if (err == 0)
        self->stats.hits++;
    else
        self->stats.negative_hits++;
    if (addresses != NULL)
        weir_addresses_retain(addresses);
    memcpy(host, query->host, strlen(query->host) + 1);
    weir__mutex_unlock(&self->lock);
    weir__lookup_answer(promise, host, err, addresses, rotation);
    weir_addresses_release(addresses);
}

/* Queues a new query. Called with the lock. */
static int add_query(weir__system_resolver *self, const char *host, weir__query **ret_query)
{
    int err;

    if (weir__queries_pending(&self->queries) >= self->max_pending)
        return WEIR_EFULL;
    err = weir__lookup_create_workers(self);
    if (err < 0)
        return err;
    *ret_query = weir__queries_add(&self->queries, host);
    return *ret_query != NULL ? 0 : -ENOMEM;
}

static void resolve(void *user_data, const char *host, uint16_t port, weir_promise *promise)
{
    weir__system_resolver *self = user_data;
    weir__resolve_request *request = weir__promise_extra(promise);
    weir__resolver_worker *worker = NULL;
    weir__query *query;
    int err = 0;

    request->port = port;
    weir__mutex_lock(&self->lock);
    self->stats.queries++;
    query = weir__queries_find(&self->queries, host, weir__clock_now(self->clock));
    if (query != NULL && query->state == WEIR__QUERY_ANSWERED) {
        answer_cached(self, query, promise);
        return;
    }
    if (query != NULL)
        self->stats.coalesced++;
    else if ((err = add_query(self, host, &query)) == 0)
        worker = weir__lookup_claim_worker(self);
    if (err == 0) {
        weir_promise_retain(promise);
        weir__list_append(&query->requests, &request->link);
    }
    weir__mutex_unlock(&self->lock);
    if (err < 0)
        weir__resolver_fail(promise, host, err);
    weir__lookup_post(worker);
}

static void resolve_any(void *user_data, const char *host, uint16_t port, weir_promise *promise)
{
    if (weir__host_is_local(host))
        answer_local(user_data, port, promise);
    else if (weir__host_is_invalid(host))
        weir__resolver_fail(promise, host, WEIR_ENOHOST);
    else
        resolve(user_data, host, port, promise);
}

static void flush(void *user_data)
{
    weir__system_resolver *self = user_data;

    weir__mutex_lock(&self->lock);
    weir__queries_flush(&self->queries);
    weir__mutex_unlock(&self->lock);
}

static void read_stats(void *user_data, weir_resolver_stats *ret_stats)
{
    weir__system_resolver *self = user_data;

    weir__mutex_lock(&self->lock);
    *ret_stats = self->stats;
    ret_stats->cached = self->queries.answered_count;
    ret_stats->pending = weir__queries_pending(&self->queries);
    weir__mutex_unlock(&self->lock);
}

/* ---- creation and destruction ---- */

/* No worker is busy, because a busy one references the resolver. */
static void destroy(void *user_data)
{
    weir__system_resolver *self = user_data;

    weir__lookup_destroy_workers(self->group, self->workers);
    weir__queries_flush(&self->queries);
    weir__hosts_clear(&self->hosts);
    weir__mutex_deinit(&self->hosts.lock);
    weir__mutex_deinit(&self->lock);
    weir__free(self->hosts_path);
    weir__free(self);
}

static const weir_resolver_type system_type = {
    .name = "system",
    .resolve = resolve_any,
    .destroy = destroy,
    .flush = flush,
    .read_stats = read_stats,
};

static int64_t duration(int64_t given_ns, int64_t default_ns)
{
    return given_ns == 0 ? default_ns : given_ns == WEIR_OFF ? 0 : given_ns;
}

static size_t limit(int given, size_t default_limit)
{
    return given == 0 ? default_limit : (size_t)given;
}

static void init(weir__system_resolver *self, const weir_resolver_options *options,
                 weir__host_lookup_fn *lookup)
{
    *self = (weir__system_resolver){
        .lookup = lookup,
        .clock = options->clock != NULL ? options->clock : weir_clock_monotonic(),
        .ttl_ns = duration(options->cache_ttl_ns, TTL_NS),
        .negative_ttl_ns = duration(options->negative_ttl_ns, NEGATIVE_TTL_NS),
        .max_cached = limit(options->max_cached, CACHE_MAX),
        .max_pending = limit(options->max_pending, PENDING_MAX),
        .round_robin = options->round_robin,
        .family = options->family,
    };
    weir__mutex_init(&self->lock);
    weir__queries_init(&self->queries);
    weir__hosts_init(&self->hosts, options->hosts_file == NULL ? HOSTS_FILE : NULL);
}

static int read_options(const weir_resolver_options *given, weir_resolver_options *ret_options)
{
    int err = weir__options_read(ret_options, sizeof(*ret_options), given);

    if (err < 0)
        return err;
    return weir__options_check("resolver", NULL,
                               WEIR__OPTION_FROM(ret_options, cache_ttl_ns, WEIR_OFF),
                               WEIR__OPTION_FROM(ret_options, negative_ttl_ns, WEIR_OFF),
                               WEIR__OPTION_FROM(ret_options, max_cached, 0),
                               WEIR__OPTION_FROM(ret_options, max_pending, 0),
                               WEIR__OPTION(ret_options, family, 0, WEIR_FAMILY_IPV6_ONLY));
}

static int set_hosts_file(weir__system_resolver *self, const char *path)
{
    if (path == NULL || path[0] == '\0')
        return 0;
    self->hosts_path = weir__strdup(path);
    self->hosts.path = self->hosts_path;
    return self->hosts_path != NULL ? 0 : -ENOMEM;
}

int weir__system_resolver_create(const weir_resolver_options *given, weir__host_lookup_fn *lookup,
                                 weir_resolver **ret_resolver)
{
    weir_resolver_options options;
    weir__system_resolver *self;
    int err = read_options(given, &options);

    if (err < 0)
        return err;
    if (options.group != NULL && weir__group_grows(options.group))
        return -ENOTSUP;
    self = weir__alloc(sizeof(*self));
    if (self == NULL)
        return -ENOMEM;
    init(self, &options, lookup);
    err = set_hosts_file(self, options.hosts_file);
    if (err == 0)
        err = weir_resolver_create(&system_type, self, &self->base);
    if (err < 0) {
        destroy(self);
        return err;
    }
    if (options.group != NULL)
        self->group = weir_group_retain(options.group);
    *ret_resolver = self->base;
    return 0;
}

int weir_resolver_create_system(const weir_resolver_options *options, weir_resolver **ret_resolver)
{
    return weir__system_resolver_create(options, weir__host_lookup, ret_resolver);
}

/* ---- the default resolver ---- */

static weir__system_resolver default_system;
static weir_resolver default_resolver = {.type = &system_type, .user_data = &default_system};
static weir__once default_once = WEIR__ONCE_INIT;

static void init_default(void)
{
    const weir_resolver_options options = {.size = sizeof(options)};

    init(&default_system, &options, weir__host_lookup);
    default_system.base = &default_resolver;
    weir__refs_init(&default_resolver.refs);
}

static void end_in_world(void)
{
    (void)weir__resolver_default_cleanup();
}

weir_resolver *weir_resolver_default(void)
{
    weir__once_run(&default_once, init_default);
    if (weir__os_is_virtual())
        weir__virtual_os_at_end(end_in_world);
    return &default_resolver;
}

/* A worker is marked busy under the lock before it is posted, so an idle resolver has no users. */
bool weir__resolver_default_cleanup(void)
{
    weir__system_resolver *self = weir_resolver_default()->user_data;
    weir__resolver_worker *workers = NULL;
    weir_group *group = NULL;
    bool is_idle;

    weir__mutex_lock(&self->lock);
    is_idle = self->busy_count == 0;
    if (is_idle) {
        workers = self->workers;
        group = self->group;
        self->workers = NULL;
        self->worker_count = 0;
        self->group = NULL;
        weir__queries_flush(&self->queries);
    }
    weir__mutex_unlock(&self->lock);
    if (!is_idle)
        return false;
    weir__lookup_destroy_workers(group, workers);
    weir__hosts_clear(&self->hosts);
    return true;
}

/* A thread that is blocked in getaddrinfo must not delay the end of the process. */
__attribute__((destructor)) static void end_default(void)
{
    (void)weir__resolver_default_cleanup();
}
