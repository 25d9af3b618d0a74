/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/connection_limits.h - which peers may connect.
 *
 *      static const weir_ip_rule rules[] = {
 *          {"10.1.0.0/16", WEIR_IP_REJECT},
 *          {"10.0.0.0/8", WEIR_IP_ACCEPT},
 *          {"2001:db8::/32", WEIR_IP_ACCEPT},
 *      };
 *      weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.rules = rules, .rule_count = 3,
 *                                                   .default_verdict = WEIR_IP_REJECT), &filter);
 *      weir_ip_filter_add(pipeline, filter);
 *
 * The first rule that has the peer's address decides; an IPv4 peer of a listener for both families
 * goes by the rules for IPv4. Who is rejected is aborted before the handlers behind have heard of
 * the connection; from one that is accepted the handler goes away. In a listener's pipeline (a
 * server's init_server) it is for all that is accepted, in a connection's for that one.
 */
#ifndef WEIR_CONNECTION_LIMITS_H
#define WEIR_CONNECTION_LIMITS_H

#include <weir/address.h>
#include <weir/handler.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_ip_verdict {
    WEIR_IP_ACCEPT,
    WEIR_IP_REJECT,
};

typedef struct weir_ip_rule {
    const char *subnet; /* "10.0.0.0/8", "2001:db8::/32", "::/0", or one address: "192.0.2.7" */
    enum weir_ip_verdict verdict;
} weir_ip_rule;

/* Rules for any number of channels. They never change: all threads may use them. */
typedef struct weir_ip_filter weir_ip_filter;

/* Zero means default. Build with WEIR_IP_FILTER_OPTIONS(.rules = ..., ...). */
typedef struct weir_ip_filter_options {
    size_t size;
    const weir_ip_rule *rules;
    size_t rule_count;
    enum weir_ip_verdict
        default_verdict; /* whom no rule has, and who has no IP address; default accepted */
} weir_ip_filter_options;

#define WEIR_IP_FILTER_OPTIONS(...) WEIR_OPTIONS(weir_ip_filter_options, __VA_ARGS__)

/*
 * Makes a filter; the log says which rule is none.
 * Thread: any.  Lends until it returns: options.  Gives: filter.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API int weir_ip_filter_create(const weir_ip_filter_options *options,
                                   weir_ip_filter **ret_filter);

/*
 * Keeps a filter; and gives a reference back, of which NULL is fine.
 * Thread: any.  Takes, by the second: filter.
 */
WEIR_API weir_ip_filter *weir_ip_filter_retain(weir_ip_filter *filter);
WEIR_API void weir_ip_filter_release(weir_ip_filter *filter);

/*
 * What the rules say of an address: also of one that came otherwise (weir/proxy_protocol.h).
 * Thread: any.
 */
WEIR_API enum weir_ip_verdict weir_ip_filter_check(const weir_ip_filter *filter,
                                                   const weir_address *address);

/*
 * How many connections the handlers of this filter have rejected.
 * Thread: any.
 */
WEIR_API uint64_t weir_ip_filter_rejected(const weir_ip_filter *filter);

/*
 * Adds the handler at the end of a pipeline; best it is the first there.
 * Thread: any.  Keeps: filter.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_ip_filter_add(weir_pipeline *pipeline, weir_ip_filter *filter);

/* --- connection limit ------------------------------------------------------------------------- */

/*
 * How many connections there may be at once: in all, and from one IP
 * address.
 *
 *      weir_connection_limit_create(
 *          WEIR_CONNECTION_LIMIT_OPTIONS(.max = 10000, .max_per_address = 1), &limit);
 *      weir_connection_limit_add(pipeline, limit);     in init_server, or in init_child
 *
 * What is beyond is aborted when it becomes active, before the handlers behind have heard of it.
 * Any number of servers, loops and connections may share a limit. A connection counts until its
 * handlers are gone: when it has been closed, or the handler was removed.
 */

typedef struct weir_connection_limit weir_connection_limit;

/* Zero means default: no limit of that kind. Build with WEIR_CONNECTION_LIMIT_OPTIONS(.max = ...).
 */
typedef struct weir_connection_limit_options {
    size_t size;
    size_t max;
    size_t max_per_address; /* whatever the port; connections without an IP address have none */
} weir_connection_limit_options;

#define WEIR_CONNECTION_LIMIT_OPTIONS(...) WEIR_OPTIONS(weir_connection_limit_options, __VA_ARGS__)

typedef struct weir_connection_limit_stats {
    size_t open;       /* that count now */
    size_t addresses;  /* from so many; 0 without max_per_address */
    uint64_t accepted; /* since it was made */
    uint64_t rejected;
} weir_connection_limit_stats;

/*
 * Makes a limit.
 * Thread: any.  Lends until it returns: options.  Gives: limit.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API int weir_connection_limit_create(const weir_connection_limit_options *options,
                                          weir_connection_limit **ret_limit);

/*
 * Keeps a limit; and gives a reference back, of which NULL is fine.
 * Thread: any.  Takes, by the second: limit.
 */
WEIR_API weir_connection_limit *weir_connection_limit_retain(weir_connection_limit *limit);
WEIR_API void weir_connection_limit_release(weir_connection_limit *limit);

/*
 * What it has counted, all at one moment.
 * Thread: any.
 */
WEIR_API void weir_connection_limit_read_stats(weir_connection_limit *limit,
                                               weir_connection_limit_stats *ret_stats);

/*
 * Adds the handler at the end of a connection's pipeline; or of a listener's, for all that it
 * accepts. Best it is the first there.
 * Thread: any.  Keeps: limit.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_connection_limit_add(weir_pipeline *pipeline, weir_connection_limit *limit);

#ifdef __cplusplus
}
#endif

#endif
