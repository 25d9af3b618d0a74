/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/connection_limits.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/ip.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "handler/admission.h"

struct rule {
    weir__subnet subnet;
    enum weir_ip_verdict verdict;
};

struct weir_ip_filter {
    weir__refs refs;
    _Atomic uint64_t rejected; /* relaxed: independent of other memory */
    enum weir_ip_verdict default_verdict;
    size_t rule_count;
    struct rule rules[];
};

/* ---- rules ---- */

#define RULES_MAX ((int64_t)((INT64_MAX - sizeof(weir_ip_filter)) / sizeof(struct rule)))
#define VERDICT(options, member) WEIR__OPTION(options, member, WEIR_IP_ACCEPT, WEIR_IP_REJECT)

static int read_rule(const weir_ip_rule *given, struct rule *ret_rule)
{
    ret_rule->verdict = given->verdict;
    if (weir__subnet_parse(given->subnet, &ret_rule->subnet) < 0)
        return weir__options_reject("ip-filter", given->subnet,
                                    "not a subnet: expected 10.0.0.0/8 or 2001:db8::/32");
    return weir__options_check("ip-filter", given->subnet, VERDICT(given, verdict));
}

int weir_ip_filter_create(const weir_ip_filter_options *options, weir_ip_filter **ret_filter)
{
    weir_ip_filter_options own;
    weir_ip_filter *filter;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    if (own.rules == NULL && own.rule_count > 0)
        return weir__options_reject("ip-filter", NULL, "rule_count is %zu, but .rules is NULL",
                                    own.rule_count);
    err = weir__options_check("ip-filter", NULL, VERDICT(&own, default_verdict),
                              WEIR__OPTION(&own, rule_count, 0, RULES_MAX));
    if (err < 0)
        return err;
    filter = weir__zalloc(sizeof(*filter) + own.rule_count * sizeof(struct rule));
    if (filter == NULL)
        return -ENOMEM;
    weir__refs_init(&filter->refs);
    filter->default_verdict = own.default_verdict;
    filter->rule_count = own.rule_count;
    for (size_t i = 0; i < own.rule_count && err == 0; i++)
        err = read_rule(&own.rules[i], &filter->rules[i]);
    if (err < 0)
        weir__free(filter);
    else
        *ret_filter = filter;
    return err;
}

weir_ip_filter *weir_ip_filter_retain(weir_ip_filter *filter)
{
    weir__refs_retain(&filter->refs);
    return filter;
}

void weir_ip_filter_release(weir_ip_filter *filter)
{
    if (filter != NULL && weir__refs_release(&filter->refs))
        weir__free(filter);
}

enum weir_ip_verdict weir_ip_filter_check(const weir_ip_filter *filter, const weir_address *address)
{
    weir__ip ip = weir__ip_of(address);

    for (size_t i = 0; i < filter->rule_count; i++)
        if (weir__subnet_contains(&filter->rules[i].subnet, &ip))
            return filter->rules[i].verdict;
    return filter->default_verdict;
}

uint64_t weir_ip_filter_rejected(const weir_ip_filter *filter)
{
    return atomic_load_explicit(&filter->rejected, memory_order_relaxed);
}

/* ---- the handler ---- */

static void retain(void *shared)
{
    (void)weir_ip_filter_retain(shared);
}

static void release(void *shared)
{
    weir_ip_filter_release(shared);
}

static bool enter(void *shared, const weir_address *peer, void **ret_ticket)
{
    weir_ip_filter *filter = shared;

    (void)ret_ticket;
    if (weir_ip_filter_check(filter, peer) == WEIR_IP_ACCEPT)
        return true;
    atomic_fetch_add_explicit(&filter->rejected, 1, memory_order_relaxed);
    return false;
}

static weir__log_limit rejections;

static const weir__admission admission = {
    .connection = {.name = "ip-filter", WEIR__ADMISSION_SLOTS},
    .listener = {.name = "ip-filter", WEIR__ADMISSION_LISTENER_SLOTS},
    .retain = retain,
    .release = release,
    .enter = enter,
    .rejections = &rejections,
};

int weir_ip_filter_add(weir_pipeline *pipeline, weir_ip_filter *filter)
{
    return weir__admission_add(pipeline, &admission, filter);
}
