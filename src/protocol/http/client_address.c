/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/client_address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/connection_limits.h>
#include <weir/memory.h>
#include <weir/proxy_protocol.h>

#include "base/options.h"
#include "protocol/http/chars.h"
#include "protocol/http/forwarded.h"
#include "protocol/http/parameters.h"

struct weir__http_trust {
    weir_ip_filter *filter; /* accepts trusted proxies */
    bool trusts_unix;
    enum weir_http_name field; /* OTHER = either */
};

static const weir_attribute key = {.name = "weir.http_trust"};

/* ---- trust ---- */

static int create_filter(weir__http_trust *trust, const char *const *networks)
{
    weir_ip_rule *rules;
    size_t count = 0, used = 0;
    int err;

    while (networks[count] != NULL)
        count++;
    rules = weir_memory_alloc((count + 1) * sizeof(*rules));
    if (rules == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(networks[i], "unix") == 0)
            trust->trusts_unix = true;
        else
            rules[used++] = (weir_ip_rule){.subnet = networks[i], .verdict = WEIR_IP_ACCEPT};
    }
    err = weir_ip_filter_create(WEIR_IP_FILTER_OPTIONS(.rules = rules, .rule_count = used,
                                                       .default_verdict = WEIR_IP_REJECT),
                                &trust->filter);
    weir_memory_free(rules);
    return err;
}

int weir__http_trust_create(const char *const *networks, enum weir_http_name field,
                            weir__http_trust **ret_trust)
{
    weir__http_trust *trust;
    int err;

    if (field != WEIR_HTTP_OTHER && field != WEIR_HTTP_FORWARDED &&
        field != WEIR_HTTP_X_FORWARDED_FOR)
        return weir__options_reject("http-server", NULL,
                                    ".trusted_field is \"%s\", expected WEIR_HTTP_FORWARDED or "
                                    "WEIR_HTTP_X_FORWARDED_FOR",
                                    weir_http_name_text(field));
    trust = weir_memory_alloc(sizeof(*trust));
    if (trust == NULL)
        return -ENOMEM;
    *trust = (weir__http_trust){.field = field};
    err = create_filter(trust, networks);
    if (err < 0)
        weir_memory_free(trust);
    else
        *ret_trust = trust;
    return err;
}

void weir__http_trust_release(weir__http_trust *trust)
{
    if (trust == NULL)
        return;
    weir_ip_filter_release(trust->filter);
    weir_memory_free(trust);
}

int weir__http_trust_set(weir_channel *channel, const weir__http_trust *trust)
{
    return weir_attribute_set(channel, &key, (void *)(uintptr_t)trust);
}

static bool is_trusted(const weir__http_trust *trust, const weir_address *address)
{
    return weir_address_family(address) == AF_UNIX
               ? trust->trusts_unix
               : weir_ip_filter_check(trust->filter, address) == WEIR_IP_ACCEPT;
}

bool weir__http_is_from_proxy(weir_channel *channel)
{
    const weir__http_trust *trust = weir_attribute_get(channel, &key);
    weir_address address;

    return trust != NULL && weir_proxy_source(channel, &address) == 0 &&
           is_trusted(trust, &address);
}

/* ---- reported addresses ---- */

/* 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80; no names. */
static bool parse_address(weir_span text, weir_address *ret_address)
{
    char with_port[WEIR_ADDRESS_TEXT_SIZE];
    const char *before = "", *after = ":0";
    size_t colons = 0;

    if (text.length == 0 || text.length > 60)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (!weir__http_char_is(text.data[i], WEIR__HTTP_HEX) &&
            strchr(".:[]", text.data[i]) == NULL)
            return false;
        colons += text.data[i] == ':';
    }
    if (text.data[0] == '[' ? text.data[text.length - 1] != ']' : colons == 1) {
        after = "";
    } else if (text.data[0] != '[' && colons > 1) {
        before = "[";
        after = "]:0";
    }
    (void)snprintf(with_port, sizeof(with_port), "%s%.*s%s", before, (int)text.length,
                   (const char *)text.data, after);
    return weir_address_parse(with_port, ret_address) == 0;
}

/* The last element that is not a trusted proxy, or the first of all if each is one. One that is not
 * an address hides what is before it: then it is the proxy that has reported it. */
struct scan {
    const weir__http_trust *trust;
    weir_address found;
    bool has_found;
    bool has_elements;
};

static void scan_element(struct scan *scan, weir_span text)
{
    weir_address address;

    scan->has_elements = true;
    if (!parse_address(text, &address)) {
        scan->has_found = false;
    } else if (!scan->has_found || !is_trusted(scan->trust, &address)) {
        scan->found = address;
        scan->has_found = true;
    }
}

static void scan_forwarded_element(struct scan *scan, weir_span element)
{
    weir__http_parameter parameter;
    uint8_t text[64];
    size_t length = 0;
    int more;

    while ((more = weir__http_parameters_next(&element, &parameter)) > 0)
        if (weir__http_is_text(parameter.name, "for") && parameter.value.length <= sizeof(text))
            length = weir__http_unquote(&parameter, text);
    scan_element(scan, weir_span_of(text, more < 0 ? 0 : length));
}

/* It knows no quotes: one that a client sends must not hide what a proxy adds. */
static void scan_plain_line(struct scan *scan, weir_span line)
{
    while (line.length > 0) {
        weir_span element = weir__http_trimmed(weir__http_cut(&line, ','));

        if (element.length > 0)
            scan_element(scan, element);
    }
}

static struct scan scan_field(const weir__http_trust *trust, const weir_http_headers *headers,
                              enum weir_http_name name)
{
    struct scan scan = {.trust = trust};
    weir_span line, element;
    size_t index = 0;

    if (trust->field != WEIR_HTTP_OTHER && trust->field != name)
        return scan;
    while (weir_http_headers_next(headers, name, &index, &line)) {
        if (name == WEIR_HTTP_X_FORWARDED_FOR)
            scan_plain_line(&scan, line);
        else
            while (weir__http_list_next(&line, &element))
                scan_forwarded_element(&scan, element);
    }
    return scan;
}

static bool agree(const struct scan *a, const struct scan *b)
{
    char one[WEIR_ADDRESS_TEXT_SIZE], two[WEIR_ADDRESS_TEXT_SIZE];

    return a->has_found && b->has_found &&
           weir_span_equal(weir__http_address_host(&a->found, one),
                           weir__http_address_host(&b->found, two));
}

/* A proxy that appends to one of the fields passes the other one on, as the client has forged it:
 * if they differ, neither counts. */
static void find_reported(const weir__http_trust *trust, const weir_http_headers *headers,
                          weir_address *address)
{
    struct scan scan = scan_field(trust, headers, WEIR_HTTP_FORWARDED);
    struct scan other = scan_field(trust, headers, WEIR_HTTP_X_FORWARDED_FOR);

    if (scan.has_elements && other.has_elements && !agree(&scan, &other))
        return;
    if (scan.has_found)
        *address = scan.found;
    else if (other.has_found)
        *address = other.found;
}

int weir__http_client_address(weir_channel *channel, const weir_http_request *request,
                              weir_address *ret_address)
{
    const weir__http_trust *trust = weir_attribute_get(channel, &key);
    weir_address address;
    int err = weir_proxy_source(channel, &address);

    if (err < 0)
        return err;
    if (trust != NULL && request != NULL && is_trusted(trust, &address))
        find_reported(trust, weir_http_request_headers(request), &address);
    *ret_address = address;
    return 0;
}
