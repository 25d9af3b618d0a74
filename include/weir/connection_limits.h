/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/connection_limits.h - IP filters, and limits on the number of connections.
 *
 * Both handlers check a connection when it becomes active, and abort it if it is rejected; later
 * handlers then never see it. In a listener's pipeline (init_server) they apply to all accepted
 * connections, in a connection's pipeline (init_child) to that one. Any number of pipelines and
 * loops may share one filter or limit. Add them as the first handlers.
 */
#ifndef WEIR_CONNECTION_LIMITS_H
#define WEIR_CONNECTION_LIMITS_H

#include <weir/address.h>
#include <weir/handler.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- ip filter -------------------------------------------------------------------------------- */

/*
 *      static const weir_ip_rule rules[] = {
 *          {"10.1.0.0/16", WEIR_IP_REJECT},
 *          {"10.0.0.0/8", WEIR_IP_ACCEPT},
 *          {"2001:db8::/32", WEIR_IP_ACCEPT},
 *      };
 *      err = weir_ip_filter_create(
 *          WEIR_IP_FILTER_OPTIONS(.rules = rules, .rule_count = 3,
 *                                 .default_verdict = WEIR_IP_REJECT), &filter);
 *      err = weir_ip_filter_add(pipeline, filter);
 *
 * The first rule that matches the peer's address decides. IPv4 rules also match the IPv4-mapped
 * addresses of dual-stack listeners. The handler removes itself from accepted connections.
 */

enum weir_ip_verdict {
    WEIR_IP_ACCEPT,
    WEIR_IP_REJECT,
};

typedef struct weir_ip_rule {
    const char *subnet; /* "10.0.0.0/8", "2001:db8::/32", "::/0", or one address: "192.0.2.7" */
    enum weir_ip_verdict verdict;
} weir_ip_rule;

/* An immutable set of rules: any thread may use it. */
typedef struct weir_ip_filter weir_ip_filter;

/* Zero means default. Build with WEIR_IP_FILTER_OPTIONS(.rules = ..., ...). */
typedef struct weir_ip_filter_options {
    size_t size;
    const weir_ip_rule *rules; /* copied */
    size_t rule_count;
    enum weir_ip_verdict default_verdict; /* if no rule matches, or the peer has no IP address;
                                             default WEIR_IP_ACCEPT */
} weir_ip_filter_options;

#define WEIR_IP_FILTER_OPTIONS(...) WEIR_OPTIONS(weir_ip_filter_options, __VA_ARGS__)

/*
 * Creates a filter. An invalid rule is named in the log.
 * Thread: any.  Lends until it returns: options.  Gives: filter.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_ip_filter_create(const weir_ip_filter_options *options,
                                                 weir_ip_filter **ret_filter);

/*
 * Retains and releases a filter. Releasing NULL is ignored.
 * Thread: any.  Takes, by the second: filter.
 */
WEIR_API weir_ip_filter *weir_ip_filter_retain(weir_ip_filter *filter);
WEIR_API void weir_ip_filter_release(weir_ip_filter *filter);

/*
 * Applies the rules to an address, for addresses from other sources than the socket
 * (weir/proxy_protocol.h).
 * Thread: any.
 */
WEIR_API enum weir_ip_verdict weir_ip_filter_check(const weir_ip_filter *filter,
                                                   const weir_address *address);

/*
 * The number of connections that the handlers of this filter rejected.
 * Thread: any.
 */
WEIR_API uint64_t weir_ip_filter_rejected(const weir_ip_filter *filter);

/*
 * Adds the handler at the tail.
 * Thread: any.  Keeps: filter.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_ip_filter_add(weir_pipeline *pipeline, weir_ip_filter *filter);

/* --- connection limit ------------------------------------------------------------------------- */

/*
 *      err = weir_connection_limit_create(
 *          WEIR_CONNECTION_LIMIT_OPTIONS(.max = 10000, .max_per_address = 10), &limit);
 *      err = weir_connection_limit_add(pipeline, limit);
 *
 * A connection counts until it is closed, or until the handler is removed.
 */

typedef struct weir_connection_limit weir_connection_limit;

/* Zero means unlimited. Build with WEIR_CONNECTION_LIMIT_OPTIONS(.max = ...). */
typedef struct weir_connection_limit_options {
    size_t size;
    size_t max;
    size_t max_per_address; /* per IP address, any port; others have no such limit */
} weir_connection_limit_options;

#define WEIR_CONNECTION_LIMIT_OPTIONS(...) WEIR_OPTIONS(weir_connection_limit_options, __VA_ARGS__)

typedef struct weir_connection_limit_stats {
    size_t open;       /* connections that count now */
    size_t addresses;  /* distinct addresses of these; 0 without max_per_address */
    uint64_t accepted; /* since the limit was created */
    uint64_t rejected;
} weir_connection_limit_stats;

/*
 * Creates a limit.
 * Thread: any.  Lends until it returns: options.  Gives: limit.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int
weir_connection_limit_create(const weir_connection_limit_options *options,
                             weir_connection_limit **ret_limit);

/*
 * Retains and releases a limit. Releasing NULL is ignored.
 * Thread: any.  Takes, by the second: limit.
 */
WEIR_API weir_connection_limit *weir_connection_limit_retain(weir_connection_limit *limit);
WEIR_API void weir_connection_limit_release(weir_connection_limit *limit);

/*
 * Reads a consistent snapshot of the counters.
 * Thread: any.
 */
WEIR_API void weir_connection_limit_read_stats(weir_connection_limit *limit,
                                               weir_connection_limit_stats *ret_stats);

/*
 * Adds the handler at the tail.
 * Thread: any.  Keeps: limit.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_connection_limit_add(weir_pipeline *pipeline,
                                                     weir_connection_limit *limit);

#ifdef __cplusplus
}
#endif

#endif
