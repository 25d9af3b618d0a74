/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups, on executors that may block. Threads of the resolver's own group end as soon as they
 * have no work: starting a thread is cheap compared to a lookup.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "executor/executor.h"
#include "executor/group.h"
#include "executor/promise.h"
#include "resolver/address_order.h"
#include "resolver/host_name.h"
#include "resolver/system_resolver.h"

#define THREADS 4
#define ADDRESSES_MAX 64 /* further addresses are ignored */

/* ---- answers ---- */

static weir__resolve_request *request_of(weir__list *link)
{
    return WEIR_CONTAINER_OF(link, weir__resolve_request, link);
}

void weir__lookup_answer(weir_promise *promise, const char *host, int err,
                         const weir_addresses *addresses, unsigned rotation)
{
    weir__resolve_request *request = weir__promise_extra(promise);
    weir_addresses *answer = NULL;

    if (err == 0) {
        answer = weir__address_rotate(addresses, rotation, request->port);
        err = answer != NULL ? 0 : -ENOMEM;
    }
    if (err == 0)
        (void)weir__resolver_succeed(promise, answer);
    else
        weir__resolver_fail(promise, host, err);
}

/* With the lock: moves the requests to a list of the caller and returns their number. */
static unsigned take_requests(weir__query *query, weir__list *ret_requests)
{
    unsigned count = 0;

    weir__list_init(ret_requests);
    for (weir__list *link; (link = weir__list_pop(&query->requests)) != NULL; count++)
        weir__list_append(ret_requests, link);
    return count;
}

static weir_promise *pop_promise(weir__list *requests)
{
    weir__list *link = weir__list_pop(requests);

    return link != NULL ? weir__promise_of_extra(request_of(link)) : NULL;
}

/* ---- one lookup ---- */

struct found {
    int err;
    int64_t ttl_ns; /* 0: not cached */
    weir_addresses *addresses;
};

static int family_of(enum weir_family family)
{
    switch (family) {
    case WEIR_FAMILY_IPV4_ONLY:
        return AF_INET;
    case WEIR_FAMILY_IPV6_ONLY:
        return AF_INET6;
    default:
        return AF_UNSPEC;
    }
}

static struct found look_up(weir__system_resolver *self, const char *host)
{
    weir_address addresses[ADDRESSES_MAX];
    struct found found = {0};
    size_t count = weir__hosts_find(&self->hosts, host, addresses, ADDRESSES_MAX);

    count = weir__address_order(self->family, addresses, count);
    if (count == 0) {
        found.err = self->lookup(host, family_of(self->family), addresses, ADDRESSES_MAX, &count);
        found.ttl_ns = found.err == 0              ? self->ttl_ns
                       : found.err == WEIR_ENOHOST ? self->negative_ttl_ns
                                                   : 0;
        if (found.err == 0)
            count = weir__address_order(self->family, addresses, count);
    }
    if (found.err == 0 && count == 0)
        found.err = WEIR_ENOHOST;
    if (found.err == 0)
        found.err = weir_addresses_create(addresses, count, &found.addresses);
    return found;
}

/* With the lock: caches the answer, or removes the query. */
static void cache_answer(weir__system_resolver *self, weir__query *query, const struct found *found)
{
    if (found->ttl_ns == 0 || (found->err < 0 && found->err != WEIR_ENOHOST)) {
        weir__queries_remove(&self->queries, query);
        return;
    }
    query->err = found->err;
    query->expires_ns = weir__deadline(weir__clock_now(self->clock), found->ttl_ns);
    if (found->addresses != NULL)
        query->addresses = weir_addresses_retain(found->addresses);
    weir__queries_store(&self->queries, query, self->max_cached);
}

/* Requests are completed without the lock, when the query may be gone: so its host is copied. */
static void complete_query(weir__system_resolver *self, weir__query *query,
                           const struct found *found)
{
    char host[WEIR__HOST_MAX + 2];
    weir__list requests;
    weir_promise *promise;
    unsigned count, rotation = 0;

    memcpy(host, query->host, strlen(query->host) + 1);
    weir__mutex_lock(&self->lock);
    self->stats.lookups++;
    self->stats.failures += found->err < 0;
    count = take_requests(query, &requests);
    if (self->round_robin)
        rotation = weir__queries_rotate(&self->queries, query, count);
    cache_answer(self, query, found);
    weir__mutex_unlock(&self->lock);
    while ((promise = pop_promise(&requests)) != NULL) {
        weir__lookup_answer(promise, host, found->err, found->addresses, rotation);
        weir_promise_release(promise);
        rotation += self->round_robin;
    }
    weir_addresses_release(found->addresses);
}

/* ---- workers ---- */

/* With the lock: removes cancelled requests. Returns true if none is left. */
static bool is_cancelled(weir__query *query, weir__list *cancelled)
{
    weir_list_foreach (link, &query->requests) {
        if (!weir_promise_is_done(weir__promise_of_extra(request_of(link))))
            continue;
        weir__list_remove(link);
        weir__list_append(cancelled, link);
    }
    return weir__list_is_empty(&query->requests);
}

/* With the lock: takes the next query that still has requests. */
static weir__query *next_query(weir__system_resolver *self, weir__list *cancelled)
{
    weir__query *query;

    while ((query = weir__queries_next(&self->queries)) != NULL && is_cancelled(query, cancelled))
        weir__queries_remove(&self->queries, query);
    return query;
}

/* Looks up one name. False if the queue is empty: then the worker is no longer busy. */
static bool look_up_next(weir__resolver_worker *worker)
{
    weir__system_resolver *self = worker->resolver;
    weir__query *query;
    weir_promise *promise;
    struct found found;
    weir__list cancelled;

    weir__list_init(&cancelled);
    weir__mutex_lock(&self->lock);
    query = next_query(self, &cancelled);
    if (query == NULL) {
        worker->is_busy = false;
        self->busy_count--;
    }
    weir__mutex_unlock(&self->lock);
    while ((promise = pop_promise(&cancelled)) != NULL)
        weir_promise_release(promise);
    if (query == NULL)
        return false;
    found = look_up(self, query->host);
    complete_query(self, query, &found);
    return true;
}

/* The worker's executor accepts no tasks. Fails the queries, unless another worker is busy. */
static void stop_worker(weir__resolver_worker *worker, int err)
{
    weir__system_resolver *self = worker->resolver;
    weir__query *query = NULL;

    do {
        weir__mutex_lock(&self->lock);
        if (self->busy_count == 1)
            query = weir__queries_next(&self->queries);
        if (self->busy_count > 1 || query == NULL) {
            worker->is_busy = false;
            self->busy_count--;
            query = NULL;
        }
        weir__mutex_unlock(&self->lock);
        if (query != NULL)
            complete_query(self, query, &(struct found){.err = err});
    } while (query != NULL);
}

/*
 * Looks up one name, then yields: the executor may be shared, or about to end. Once the worker is
 * not busy it may be freed, so what follows does not use it.
 */
static void on_work(void *arg, int status)
{
    weir__resolver_worker *worker = arg;
    weir_resolver *base = worker->resolver->base;
    weir_executor *executor = worker->executor;
    bool suspends = worker->resolver->owns_group;

    if (status < 0) {
        stop_worker(worker, WEIR_EREJECTED);
    } else if (look_up_next(worker)) {
        weir__lookup_post(worker);
        return;
    }
    if (suspends)
        (void)weir_executor_suspend(executor);
    weir_resolver_release(base);
}

weir__resolver_worker *weir__lookup_claim_worker(weir__system_resolver *self)
{
    for (size_t i = 0; i < self->worker_count; i++) {
        weir__resolver_worker *worker = &self->workers[i];

        if (worker->is_busy)
            continue;
        worker->is_busy = true;
        self->busy_count++;
        weir_resolver_retain(self->base);
        return worker;
    }
    return NULL;
}

void weir__lookup_post(weir__resolver_worker *worker)
{
    weir_resolver *base;
    int err;

    if (worker == NULL)
        return;
    base = worker->resolver->base;
    err = weir__executor_post(worker->executor, &worker->task, WEIR__NOW);
    if (err == 0)
        return;
    weir__warn_limited("resolver", weir_executor_name(worker->executor), "cannot look up: %s",
                       weir_error_text(err));
    stop_worker(worker, err);
    weir_resolver_release(base);
}

/* ---- creation and destruction ---- */

static int create_group(weir__system_resolver *self)
{
    const weir_group_options options = {
        .size = sizeof(options), .threads = THREADS, .io = WEIR_IO_NONE, .name = "weir-dns"};
    int err = weir__group_create(&weir__plain_type, NULL, &options, &self->group);

    self->owns_group = err == 0;
    return err;
}

int weir__lookup_create_workers(weir__system_resolver *self)
{
    size_t count;
    int err = self->group == NULL ? create_group(self) : 0;

    if (err < 0 || self->workers != NULL)
        return err;
    count = weir_group_count(self->group);
    self->workers = weir__zalloc(count * sizeof(*self->workers));
    if (self->workers == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        self->workers[i].resolver = self;
        self->workers[i].executor = weir_group_at(self->group, i);
        weir_task_init(&self->workers[i].task, on_work, &self->workers[i]);
    }
    self->worker_count = count;
    return 0;
}

void weir__lookup_destroy_workers(weir_group *group, weir__resolver_worker *workers)
{
    weir_group_release(group);
    weir__free(workers);
}
