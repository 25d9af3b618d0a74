/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/conditions.h"

#include "protocol/http/chars.h"
#include "protocol/http/date.h"

#define NOT_MODIFIED 304
#define PRECONDITION_FAILED 412

static bool is_missing(weir_span field)
{
    return field.data == NULL;
}

/* ---- entity tags ---- */

static bool is_weak(weir_span etag)
{
    return etag.length > 2 && etag.data[0] == 'W';
}

/* The length of the entity tag at the start of the text; 0 if there is none. */
static size_t etag_length(weir_span text)
{
    size_t at = text.length > 2 && memcmp(text.data, "W/", 2) == 0 ? 2 : 0;

    if (at == text.length || text.data[at++] != '"')
        return 0;
    while (at < text.length && text.data[at] > ' ' && text.data[at] != '"' && text.data[at] != 0x7f)
        at++;
    return at < text.length && text.data[at] == '"' ? at + 1 : 0;
}

bool weir__http_etag_is_valid(weir_span text)
{
    return text.length > 0 && etag_length(text) == text.length;
}

static bool are_same(weir_span a, weir_span b, bool is_weak_enough)
{
    if (!is_weak_enough && (is_weak(a) || is_weak(b)))
        return false;
    return weir_span_equal(weir__http_span_from(a, is_weak(a) ? 2 : 0),
                           weir__http_span_from(b, is_weak(b) ? 2 : 0));
}

bool weir__http_etags_have(weir_span list, weir_span etag, bool is_weak_enough)
{
    weir_span rest = weir__http_trimmed(list);
    bool found = false;
    size_t length;

    if (rest.length == 1 && rest.data[0] == '*')
        return true;
    while (rest.length > 0) {
        if (rest.data[0] != ',') {
            length = etag_length(rest);
            if (length == 0)
                return false;
            found |= !is_missing(etag) &&
                     are_same(weir_span_of(rest.data, length), etag, is_weak_enough);
            rest = weir__http_trimmed(weir__http_span_from(rest, length));
            if (rest.length > 0 && rest.data[0] != ',')
                return false;
        }
        if (rest.length > 0)
            rest = weir__http_trimmed(weir__http_span_from(rest, 1));
    }
    return found;
}

/* ---- conditions ---- */

/* The date of a field. False if it is missing or malformed, or there is nothing to compare. */
static bool read_date(weir_span field, const weir__http_validators *validators, int64_t now,
                      int64_t *ret_date)
{
    return !is_missing(field) && validators->is_there && validators->modified >= 0 &&
           weir__http_date_parse(field, now, ret_date) == 0;
}

int weir__http_conditions_status(const weir__http_conditions *conditions,
                                 const weir__http_validators *validators, bool is_read, int64_t now)
{
    int64_t date;

    if (!is_missing(conditions->if_match)) {
        if (!validators->is_there ||
            !weir__http_etags_have(conditions->if_match, validators->etag, false))
            return PRECONDITION_FAILED;
    } else if (read_date(conditions->if_unmodified_since, validators, now, &date) &&
               validators->modified > date) {
        return PRECONDITION_FAILED;
    }
    if (!is_missing(conditions->if_none_match)) {
        if (validators->is_there &&
            weir__http_etags_have(conditions->if_none_match, validators->etag, true))
            return is_read ? NOT_MODIFIED : PRECONDITION_FAILED;
    } else if (is_read && read_date(conditions->if_modified_since, validators, now, &date) &&
               validators->modified <= date) {
        return NOT_MODIFIED;
    }
    return 0;
}

/* A date is exact enough if the file cannot have changed again within its second. */
bool weir__http_conditions_allow_range(const weir__http_conditions *conditions,
                                       const weir__http_validators *validators, int64_t now)
{
    weir_span field = conditions->if_range;
    int64_t date;

    if (is_missing(field))
        return true;
    if (weir__http_etag_is_valid(field))
        return !is_missing(validators->etag) && are_same(field, validators->etag, false);
    return read_date(field, validators, now, &date) && validators->modified == date && date < now;
}
