/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cookie and Set-Cookie fields.
 */
#include "protocol/http/cookies.h"

#include <inttypes.h>

#include <weir/error.h>

#include "base/options.h"
#include "protocol/http/chars.h"
#include "protocol/http/date.h"

static const char *const same_site_names[] = {"", "Lax", "Strict", "None"};

/* ---- Cookie ---- */

static weir_span without_quotes(weir_span value)
{
    if (value.length >= 2 && value.data[0] == '"' && value.data[value.length - 1] == '"')
        return weir_span_of(value.data + 1, value.length - 2);
    return value;
}

bool weir_http_cookie_next(weir_span *rest, weir_span *ret_name, weir_span *ret_value)
{
    weir_span pair, name;

    while (rest->length > 0) {
        pair = weir__http_trimmed(weir__http_cut(rest, ';'));
        name = weir__http_cut(&pair, '=');
        if (pair.data != NULL && weir__http_is_token(name)) {
            *ret_name = name;
            *ret_value = without_quotes(pair);
            return true;
        }
    }
    return false;
}

weir_span weir_http_cookie_get(const weir_http_headers *headers, const char *name)
{
    weir_span wanted = weir_span_of_text(name), line, found, value;
    size_t index = 0;

    while (weir_http_headers_next(headers, WEIR_HTTP_COOKIE, &index, &line))
        while (weir_http_cookie_next(&line, &found, &value))
            if (weir_span_equal(found, wanted))
                return value;
    return weir_span_of(NULL, 0);
}

/* ---- rules ---- */

static bool has_prefix(weir_span name, const char *prefix)
{
    size_t length = strlen(prefix);

    return name.length >= length && weir__http_is_text(weir_span_of(name.data, length), prefix);
}

const char *weir__http_cookie_conflict(const weir_http_set_cookie *cookie)
{
    bool is_host = has_prefix(cookie->name, "__Host-");

    if (!cookie->secure) {
        if (is_host || has_prefix(cookie->name, "__Secure-"))
            return "a name that begins with __Host- or __Secure- requires secure";
        if (cookie->same_site == WEIR_HTTP_SAME_SITE_NONE)
            return "SameSite=None requires secure";
        if (cookie->partitioned)
            return "partitioned requires secure";
    }
    if (is_host && (cookie->domain.length > 0 || cookie->path.length != 1))
        return "a name that begins with __Host- requires path \"/\" and no domain";
    return NULL;
}

/* ---- setting ---- */

static weir_span span_of_option(const char *text)
{
    return text != NULL ? weir_span_of_text(text) : weir_span_of("", 0);
}

static bool is_path(weir_span path)
{
    for (size_t i = 0; i < path.length; i++)
        if (path.data[i] < ' ' || path.data[i] > '~' || path.data[i] == ';')
            return false;
    return path.length == 0 || path.data[0] == '/';
}

static bool is_domain(weir_span domain)
{
    for (size_t i = 0; i < domain.length; i++)
        if (domain.data[i] != '-' && domain.data[i] != '.' &&
            !weir__http_char_is(domain.data[i], WEIR__HTTP_ALPHA | WEIR__HTTP_DIGIT))
            return false;
    return true;
}

static const char *problem_of(const weir_http_set_cookie *cookie)
{
    if (!weir__http_is_token(cookie->name))
        return "the name is not a token";
    if (!weir__http_chars_are(without_quotes(cookie->value), WEIR__HTTP_COOKIE_OCTET))
        return "a character of the value is not allowed: encode it";
    if (!is_path(cookie->path))
        return "the path does not begin with / or has a character that is not allowed";
    if (!is_domain(cookie->domain))
        return "the domain is not a host name";
    if (cookie->same_site > WEIR_HTTP_SAME_SITE_NONE)
        return "same_site is out of range";
    return weir__http_cookie_conflict(cookie);
}

static int write_attributes(weir_buf *to, const weir_http_set_cookie *cookie)
{
    char date[WEIR__HTTP_DATE_SIZE];
    int err = 0;

    if (cookie->expires > 0)
        err = weir_buf_printf(to, "; Expires=%s", weir__http_date_format(cookie->expires, date));
    if (!err && cookie->max_age_seconds != 0)
        err = weir_buf_printf(to, "; Max-Age=%" PRId64,
                              cookie->max_age_seconds > 0 ? cookie->max_age_seconds : 0);
    if (!err && cookie->domain.length > 0)
        err = weir_buf_printf(to, "; Domain=%s", (const char *)cookie->domain.data);
    if (!err && cookie->path.length > 0)
        err = weir_buf_printf(to, "; Path=%s", (const char *)cookie->path.data);
    if (!err && cookie->secure)
        err = weir_buf_write_string(to, "; Secure");
    if (!err && cookie->http_only)
        err = weir_buf_write_string(to, "; HttpOnly");
    if (!err && cookie->same_site != WEIR_HTTP_SAME_SITE_DEFAULT)
        err = weir_buf_printf(to, "; SameSite=%s", same_site_names[cookie->same_site]);
    if (!err && cookie->partitioned)
        err = weir_buf_write_string(to, "; Partitioned");
    return err;
}

static int add_field(weir_http_headers *headers, const weir_http_set_cookie *cookie)
{
    weir_buf *text = NULL;
    int err = weir_buf_create(0, 0, &text);

    if (err)
        return err;
    err = weir_buf_printf(text, "%s=%s", (const char *)cookie->name.data,
                          (const char *)cookie->value.data);
    if (!err)
        err = write_attributes(text, cookie);
    if (!err)
        err = weir_http_headers_add(headers, WEIR_HTTP_SET_COOKIE, weir_buf_span(text));
    weir_buf_release(text);
    return err;
}

int weir_http_cookie_set(weir_http_headers *headers, const weir_http_cookie_options *caller_options)
{
    weir_http_cookie_options options;
    weir_http_set_cookie cookie;
    const char *problem;
    int err = weir__options_read(&options, sizeof(options), caller_options);

    if (!err)
        err = weir__options_check("http", NULL, WEIR__OPTION_FROM(&options, expires, 0),
                                  WEIR__OPTION_FROM(&options, max_age_seconds, WEIR_OFF));
    if (err)
        return err;
    cookie = (weir_http_set_cookie){.name = span_of_option(options.name),
                                    .value = span_of_option(options.value),
                                    .domain = span_of_option(options.domain),
                                    .path = span_of_option(options.path),
                                    .expires = options.expires,
                                    .max_age_seconds = options.max_age_seconds,
                                    .secure = options.secure,
                                    .http_only = options.http_only,
                                    .partitioned = options.partitioned,
                                    .same_site = options.same_site};
    problem = problem_of(&cookie);
    if (problem != NULL)
        return weir__options_reject("http", NULL, "cookie: %s", problem);
    if (cookie.name.length + cookie.value.length > WEIR__HTTP_MAX_COOKIE ||
        cookie.domain.length > WEIR__HTTP_MAX_COOKIE_ATTRIBUTE ||
        cookie.path.length > WEIR__HTTP_MAX_COOKIE_ATTRIBUTE)
        return WEIR_ETOOLONG;
    return add_field(headers, &cookie);
}

/* ---- received ---- */

/* A number of seconds, perhaps negative; false if it is something else. */
static bool read_seconds(weir_span text, int64_t *ret_seconds)
{
    bool is_negative = text.length > 0 && text.data[0] == '-';
    int64_t seconds = 0;

    if (is_negative)
        text = weir__http_span_from(text, 1);
    if (text.length == 0 || !weir__http_chars_are(text, WEIR__HTTP_DIGIT))
        return false;
    for (size_t i = 0; i < text.length && seconds < INT64_MAX / 100; i++)
        seconds = 10 * seconds + (text.data[i] - '0');
    *ret_seconds = is_negative ? -seconds : seconds;
    return true;
}

/* The last attribute of a name counts. Too long ones are ignored. */
static void read_attribute(weir_span name, weir_span value, weir_http_set_cookie *cookie)
{
    if (value.length > WEIR__HTTP_MAX_COOKIE_ATTRIBUTE)
        return;
    if (weir__http_is_text(name, "expires")) {
        if (weir__http_date_parse_cookie(value, &cookie->expires) != 0)
            cookie->expires = WEIR_NEVER;
    } else if (weir__http_is_text(name, "max-age")) {
        if (!read_seconds(value, &cookie->max_age_seconds))
            cookie->max_age_seconds = WEIR_NEVER;
    } else if (weir__http_is_text(name, "domain")) {
        cookie->domain =
            value.length > 0 && value.data[0] == '.' ? weir__http_span_from(value, 1) : value;
    } else if (weir__http_is_text(name, "path")) {
        cookie->path = value.length > 0 && value.data[0] == '/' ? value : weir_span_of("", 0);
    } else if (weir__http_is_text(name, "secure")) {
        cookie->secure = true;
    } else if (weir__http_is_text(name, "httponly")) {
        cookie->http_only = true;
    } else if (weir__http_is_text(name, "partitioned")) {
        cookie->partitioned = true;
    } else if (weir__http_is_text(name, "samesite")) {
        cookie->same_site = WEIR_HTTP_SAME_SITE_DEFAULT;
        for (int i = WEIR_HTTP_SAME_SITE_LAX; i <= WEIR_HTTP_SAME_SITE_NONE; i++)
            if (weir__http_is_text(value, same_site_names[i]))
                cookie->same_site = (enum weir_http_same_site)i;
    }
}

static bool has_control(weir_span text)
{
    for (size_t i = 0; i < text.length; i++)
        if ((text.data[i] < ' ' && text.data[i] != '\t') || text.data[i] == 0x7f)
            return true;
    return false;
}

int weir_http_set_cookie_parse(weir_span text, weir_http_set_cookie *ret_cookie)
{
    weir_http_set_cookie cookie = {.expires = WEIR_NEVER, .max_age_seconds = WEIR_NEVER};
    weir_span rest = text, value = weir__http_cut(&rest, ';'), name, attribute;

    name = weir__http_trimmed(weir__http_cut(&value, '='));
    if (value.data == NULL || name.length == 0 || has_control(text))
        return WEIR_EMALFORMED;
    cookie.name = name;
    cookie.value = weir__http_trimmed(value);
    if (cookie.name.length + cookie.value.length > WEIR__HTTP_MAX_COOKIE)
        return WEIR_ETOOLONG;
    while (rest.data != NULL) {
        attribute = weir__http_cut(&rest, ';');
        name = weir__http_cut(&attribute, '=');
        read_attribute(weir__http_trimmed(name), weir__http_trimmed(attribute), &cookie);
    }
    *ret_cookie = cookie;
    return 0;
}
