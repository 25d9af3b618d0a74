/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/accept.h"

#include <errno.h>

#include <weir/http_body.h>

#include "protocol/http/chars.h"
#include "protocol/http/parameters.h"

#define UNKNOWN (-1)
#define MAX_LINES 16     /* of Accept; more are ignored */
#define MAX_QUALITY 1000 /* q-values in thousandths */

/* "0", "1", "0.123", "1.000". */
static int parse_quality(weir_span text, int *ret_quality)
{
    int quality, unit = MAX_QUALITY / 10;

    if (text.length == 0 || text.length > 5 || (text.data[0] != '0' && text.data[0] != '1') ||
        (text.length > 1 && text.data[1] != '.'))
        return WEIR_EMALFORMED;
    quality = (text.data[0] - '0') * MAX_QUALITY;
    for (size_t i = 2; i < text.length; i++, unit /= 10) {
        if (!weir__http_char_is(text.data[i], WEIR__HTTP_DIGIT))
            return WEIR_EMALFORMED;
        quality += (text.data[i] - '0') * unit;
    }
    *ret_quality = quality;
    return quality <= MAX_QUALITY ? 0 : WEIR_EMALFORMED;
}

/* Parameters before "q", without the ";" in front of it. */
static weir_span without_separator(weir_span parameters)
{
    while (parameters.length > 0 && (parameters.data[parameters.length - 1] == ';' ||
                                     parameters.data[parameters.length - 1] == ' ' ||
                                     parameters.data[parameters.length - 1] == '\t'))
        parameters.length--;
    return parameters;
}

/* Takes the quality of an element off its parameters; what is before "q" stays. */
static int cut_quality(weir_span *parameters, int *ret_quality)
{
    weir_span rest = *parameters;
    weir__http_parameter parameter;
    int more;

    *ret_quality = MAX_QUALITY;
    while ((more = weir__http_parameters_next(&rest, &parameter)) > 0) {
        if (weir__http_is_text(parameter.name, "q")) {
            parameters->length = (size_t)(parameter.name.data - parameters->data);
            *parameters = without_separator(*parameters);
            return parse_quality(parameter.value, ret_quality);
        }
    }
    return more;
}

/* ---- codings ---- */

static bool is_coding(weir_span token, const char *coding)
{
    return weir__http_is_text(token, coding) ||
           (strcmp(coding, "gzip") == 0 && weir__http_is_text(token, "x-gzip"));
}

/* The quality of a coding: its own, otherwise that of "*", otherwise UNKNOWN. */
static int coding_quality(const weir_span *lines, size_t line_count, const char *coding)
{
    int own = UNKNOWN, any = UNKNOWN, quality;
    weir_span rest, element, token;

    for (size_t i = 0; i < line_count; i++) {
        rest = lines[i];
        while (weir__http_list_next(&rest, &element)) {
            token = weir__http_parameters_begin(&element);
            if (!weir__http_is_token(token) || cut_quality(&element, &quality) != 0)
                return 0;
            if (is_coding(token, coding))
                own = quality > own ? quality : own;
            else if (weir__http_is_text(token, "*"))
                any = quality > any ? quality : any;
        }
    }
    return own != UNKNOWN ? own : any;
}

int weir__http_accept_coding(const weir_span *lines, size_t line_count, const char *const *codings,
                             size_t count)
{
    int best = WEIR__HTTP_IDENTITY, best_quality = 0, quality;

    for (size_t i = 0; i < count; i++) {
        quality = coding_quality(lines, line_count, codings[i]);
        if (quality > best_quality) {
            best = (int)i;
            best_quality = quality;
        }
    }
    return coding_quality(lines, line_count, "identity") > best_quality ? WEIR__HTTP_IDENTITY
                                                                        : best;
}

/* ---- media types ---- */

/* True if the type has the parameter; names are case-insensitive, values are not. */
static bool has_parameter(weir_span type, const weir__http_parameter *wanted)
{
    weir__http_parameter found;

    while (weir__http_parameters_next(&type, &found) > 0)
        if (weir__http_same_text(found.name, wanted->name))
            return weir_span_equal(found.value, wanted->value);
    return false;
}

/* True if each parameter of the range is one of the type. */
static bool has_parameters(weir_span type, weir_span range)
{
    weir__http_parameter wanted;

    while (weir__http_parameters_next(&range, &wanted) > 0)
        if (!has_parameter(type, &wanted))
            return false;
    return true;
}

/* How specific a range matches a type: 1 for any type, up to 4 with parameters; 0 if not. */
static int specificity(weir_span range, weir_span range_parameters, const char *type_text)
{
    weir_span parameters = weir_span_of_text(type_text);
    weir_span subtype = weir__http_parameters_begin(&parameters);
    weir_span type = weir__http_cut(&subtype, '/'), wanted = weir__http_cut(&range, '/');

    if (weir__http_is_text(wanted, "*"))
        return 1;
    if (!weir__http_same_text(type, wanted))
        return 0;
    if (weir__http_is_text(range, "*"))
        return 2;
    if (!weir__http_same_text(subtype, range) || !has_parameters(parameters, range_parameters))
        return 0;
    return range_parameters.length > 0 ? 4 : 3;
}

static bool is_range(weir_span range)
{
    weir_span subtype = range, type = weir__http_cut(&subtype, '/');

    return weir__http_is_token(type) && weir__http_is_token(subtype) &&
           (!weir__http_is_text(type, "*") || weir__http_is_text(subtype, "*"));
}

static int type_quality(const weir_span *lines, size_t line_count, const char *type)
{
    int found = 0, found_quality = 0, quality, match;
    weir_span rest, element, range;

    for (size_t i = 0; i < line_count; i++) {
        rest = lines[i];
        while (weir__http_list_next(&rest, &element)) {
            range = weir__http_parameters_begin(&element);
            if (!is_range(range) || cut_quality(&element, &quality) != 0)
                return 0;
            match = specificity(range, element, type);
            if (match > found || (match == found && quality > found_quality)) {
                found = match;
                found_quality = quality;
            }
        }
    }
    return found > 0 ? found_quality : 0;
}

int weir_http_accept_type(const weir_http_headers *headers, const char *const *types)
{
    weir_span lines[MAX_LINES];
    size_t count = 0, index = 0;
    int best = -ENOENT, best_quality = 0, quality;

    while (count < MAX_LINES &&
           weir_http_headers_next(headers, WEIR_HTTP_ACCEPT, &index, &lines[count]))
        count++;
    if (count == 0)
        return types[0] != NULL ? 0 : -ENOENT;
    for (int i = 0; types[i] != NULL; i++) {
        quality = type_quality(lines, count, types[i]);
        if (quality > best_quality) {
            best = i;
            best_quality = quality;
        }
    }
    return best;
}
