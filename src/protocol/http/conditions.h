/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional requests (RFC 9110 13): entity tags, dates, and the order in which they count.
 */
#ifndef WEIR_PROTOCOL_HTTP_CONDITIONS_H
#define WEIR_PROTOCOL_HTTP_CONDITIONS_H

#include <weir/http.h>

/* The fields of a request; data is NULL if a field is missing. */
typedef struct weir__http_conditions {
    weir_span if_match;
    weir_span if_none_match;
    weir_span if_modified_since;
    weir_span if_unmodified_since;
    weir_span if_range;
} weir__http_conditions;

/* The validators of the resource, to compare the conditions with. */
typedef struct weir__http_validators {
    weir_span etag;   /* "\"x\"" or "W/\"x\""; data NULL = none */
    int64_t modified; /* seconds since 1970; -1 = unknown */
    bool is_there;    /* the resource exists */
} weir__http_validators;

/*
 * The status that the conditions demand instead of the usual response: 304 or 412; 0 if they hold.
 * `is_read` is true for GET and HEAD; `now` is in seconds since 1970.
 */
int weir__http_conditions_status(const weir__http_conditions *conditions,
                                 const weir__http_validators *validators, bool is_read,
                                 int64_t now);

/* False if If-Range demands to ignore Range. True if there is no If-Range. */
bool weir__http_conditions_allow_range(const weir__http_conditions *conditions,
                                       const weir__http_validators *validators, int64_t now);

/* True if a list of entity tags, such as If-None-Match, has one. A weak comparison ignores "W/"; in
 * a strong one weak tags differ from all others. "*" has every tag. False if it is malformed. */
bool weir__http_etags_have(weir_span list, weir_span etag, bool is_weak_enough);

/* True if the text is an entity tag. */
bool weir__http_etag_is_valid(weir_span text);

#endif
