/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/ip_filter.h - which peers may connect.
 *
 *      static const weir_ip_rule rules[] = {
 *          {"10.1.0.0/16", WEIR_IP_REJECT},
 *          {"10.0.0.0/8", WEIR_IP_ACCEPT},
 *          {"2001:db8::/32", WEIR_IP_ACCEPT},
 *      };
 *      weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.rules = rules, .rule_count = 3,
 *                                                   .others = WEIR_IP_REJECT), &filter);
 *      weir_ip_filter_add(pipeline, filter);
 *
 * The first rule that has the peer's address decides; an IPv4 peer of a listener for both families
 * goes by the rules for IPv4. Who is rejected is aborted before the handlers behind have heard of
 * the connection; from one that is accepted the handler goes away. In a listener's pipeline (a
 * server's init_server) it is for all that is accepted, in a connection's for that one.
 */
#ifndef WEIR_IP_FILTER_H
#define WEIR_IP_FILTER_H

#include <weir/address.h>
#include <weir/handler.h>

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
    enum weir_ip_verdict others; /* whom no rule has, and who has no IP address; default accepted */
} weir_ip_filter_options;

#define WEIR_IP_FILTER_OPTIONS(...) \
    (&(const weir_ip_filter_options){.size = sizeof(weir_ip_filter_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_ip_filter_options_init(weir_ip_filter_options *options);

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
WEIR_API enum weir_ip_verdict weir_ip_filter_judge(const weir_ip_filter *filter,
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

#ifdef __cplusplus
}
#endif

#endif
