/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jar: a hash table of cookies by their domain. The cookies for a host are those of the
 * domain of that name and of all above it, label by label; each is one lookup. A mutex guards all
 * of it.
 */
#include "protocol/http/cookie_jar.h"

#include <errno.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "base/list.h"
#include "base/options.h"
#include "base/refcount.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "protocol/http/chars.h"
#include "protocol/http/cookies.h"

#define BUCKETS 256
#define MAX_COOKIES 3000
#define MAX_PER_DOMAIN 50
#define MAX_WRITTEN 8192 /* bytes of a Cookie field */
#define MAX_MATCHES 512
#define MAX_HOST 253
#define MAX_AGE ((int64_t)400 * 86400)
#define NS_OF_SECOND INT64_C(1000000000)

/* Its texts lie behind it. */
struct cookie {
    weir__list in_bucket; /* the latest last */
    weir__list by_use;    /* the least recently used first */
    weir_span name;
    weir_span value;
    weir_span domain;
    weir_span path;
    int64_t expires;
    uint64_t order; /* of creation */
    bool is_host_only;
    bool is_secure;
};

struct weir_http_cookie_jar {
    weir__refs refs;
    weir__mutex mutex;
    weir__list buckets[BUCKETS]; /* cookie.in_bucket */
    weir__list by_use;           /* cookie.by_use */
    size_t count;
    size_t max_cookies;
    size_t max_per_domain;
    uint64_t order;
};

/* A host in lower case, without a dot at the end. */
struct host {
    uint8_t text[MAX_HOST + 1];
    size_t length;
    bool is_address;
};

/* ---- lifecycle ---- */

int weir_http_cookie_jar_create(const weir_http_cookie_jar_options *caller_options,
                                weir_http_cookie_jar **ret_jar)
{
    weir_http_cookie_jar_options options;
    weir_http_cookie_jar *jar;
    int err = weir__options_read(&options, sizeof(options), caller_options);

    if (!err)
        err = weir__options_check("http", NULL, WEIR__OPTION_FROM(&options, max_cookies, 0),
                                  WEIR__OPTION_FROM(&options, max_per_domain, 0));
    if (err)
        return err;
    jar = weir_memory_alloc(sizeof(*jar));
    if (jar == NULL)
        return -ENOMEM;
    memset(jar, 0, sizeof(*jar));
    weir__refs_init(&jar->refs);
    weir__mutex_init(&jar->mutex);
    for (size_t i = 0; i < BUCKETS; i++)
        weir__list_init(&jar->buckets[i]);
    weir__list_init(&jar->by_use);
    jar->max_cookies = options.max_cookies > 0 ? (size_t)options.max_cookies : MAX_COOKIES;
    jar->max_per_domain =
        options.max_per_domain > 0 ? (size_t)options.max_per_domain : MAX_PER_DOMAIN;
    *ret_jar = jar;
    return 0;
}

weir_http_cookie_jar *weir_http_cookie_jar_retain(weir_http_cookie_jar *jar)
{
    weir__refs_retain(&jar->refs);
    return jar;
}

static void forget(weir_http_cookie_jar *jar, struct cookie *cookie)
{
    weir__list_remove(&cookie->in_bucket);
    weir__list_remove(&cookie->by_use);
    jar->count--;
    weir_memory_free(cookie);
}

static void forget_least_used(weir_http_cookie_jar *jar)
{
    forget(jar, WEIR_CONTAINER_OF(jar->by_use.next, struct cookie, by_use));
}

void weir_http_cookie_jar_clear(weir_http_cookie_jar *jar)
{
    weir__mutex_lock(&jar->mutex);
    while (jar->count > 0)
        forget_least_used(jar);
    weir__mutex_unlock(&jar->mutex);
}

void weir_http_cookie_jar_release(weir_http_cookie_jar *jar)
{
    if (jar == NULL || !weir__refs_release(&jar->refs))
        return;
    weir_http_cookie_jar_clear(jar);
    weir__mutex_deinit(&jar->mutex);
    weir_memory_free(jar);
}

size_t weir_http_cookie_jar_count(weir_http_cookie_jar *jar)
{
    size_t count;

    weir__mutex_lock(&jar->mutex);
    count = jar->count;
    weir__mutex_unlock(&jar->mutex);
    return count;
}

/* ---- hosts and paths ---- */

/* A name whose last label is a number is an IPv4 address. */
static bool ends_in_number(weir_span name)
{
    size_t start = name.length;

    while (start > 0 && weir__http_char_is(name.data[start - 1], WEIR__HTTP_DIGIT))
        start--;
    return start < name.length && (start == 0 || name.data[start - 1] == '.');
}

static int read_host(weir_span text, bool is_literal, struct host *ret_host)
{
    if (text.length > 0 && text.data[text.length - 1] == '.')
        text.length--;
    if (text.length == 0 || text.length > MAX_HOST)
        return WEIR_EMALFORMED;
    for (size_t i = 0; i < text.length; i++)
        ret_host->text[i] = weir__http_lower(text.data[i]);
    ret_host->length = text.length;
    ret_host->is_address = is_literal || ends_in_number(text);
    return 0;
}

static weir_span host_span(const struct host *host)
{
    return weir_span_of(host->text, host->length);
}

/* True if the host is the domain or below it. */
static bool is_within(const struct host *host, weir_span domain)
{
    size_t above = host->length - domain.length;

    if (host->length < domain.length || memcmp(host->text + above, domain.data, domain.length) != 0)
        return false;
    return above == 0 || (!host->is_address && host->text[above - 1] == '.');
}

/* True if the path of a request is that of a cookie or below it. */
static bool is_below(weir_span path, weir_span folder)
{
    if (path.length < folder.length || memcmp(path.data, folder.data, folder.length) != 0)
        return false;
    return path.length == folder.length || folder.data[folder.length - 1] == '/' ||
           path.data[folder.length] == '/';
}

/* The path of a request up to its last "/", or "/". */
static weir_span folder_of(weir_span path)
{
    if (path.length == 0 || path.data[0] != '/')
        return weir_span_of_text("/");
    while (path.length > 1 && path.data[path.length - 1] != '/')
        path.length--;
    path.length -= path.length > 1;
    return path;
}

static bool is_secure(const weir_http_uri *uri)
{
    return weir__http_is_text(uri->scheme, "https") || weir__http_is_text(uri->scheme, "wss");
}

/* ---- the table ---- */

static weir__list *bucket_of(weir_http_cookie_jar *jar, weir_span domain)
{
    return &jar->buckets[weir_span_hash(domain, (uint64_t)(uintptr_t)jar) % BUCKETS];
}

static struct cookie *cookie_in(weir__list *link)
{
    return WEIR_CONTAINER_OF(link, struct cookie, in_bucket);
}

static weir_span copy(uint8_t **to, weir_span text)
{
    weir_span copied = weir_span_of(*to, text.length);

    if (text.length > 0)
        memcpy(*to, text.data, text.length);
    *to += text.length;
    return copied;
}

static struct cookie *create_cookie(const weir_http_set_cookie *set, weir_span domain,
                                    weir_span path)
{
    struct cookie *cookie = weir_memory_alloc(sizeof(*cookie) + set->name.length +
                                              set->value.length + domain.length + path.length);
    uint8_t *text = (uint8_t *)(cookie + 1);

    if (cookie == NULL)
        return NULL;
    cookie->name = copy(&text, set->name);
    cookie->value = copy(&text, set->value);
    cookie->domain = copy(&text, domain);
    cookie->path = copy(&text, path);
    cookie->is_secure = set->secure;
    return cookie;
}

/* The cookie that another one replaces; NULL if there is none. */
static struct cookie *find_same(weir_http_cookie_jar *jar, const struct cookie *cookie)
{
    struct cookie *found;

    weir_list_foreach (link, bucket_of(jar, cookie->domain)) {
        found = cookie_in(link);
        if (weir_span_equal(found->name, cookie->name) &&
            weir_span_equal(found->domain, cookie->domain) &&
            weir_span_equal(found->path, cookie->path) &&
            found->is_host_only == cookie->is_host_only)
            return found;
    }
    return NULL;
}

/* The least recently used cookie of a domain; a secure one only if there is no other, for a plain
 * connection can set any number. */
static struct cookie *find_least_used(weir_http_cookie_jar *jar, weir_span domain)
{
    struct cookie *secure = NULL;

    weir_list_foreach (link, &jar->by_use) {
        struct cookie *cookie = WEIR_CONTAINER_OF(link, struct cookie, by_use);

        if (!weir_span_equal(cookie->domain, domain))
            continue;
        if (!cookie->is_secure)
            return cookie;
        if (secure == NULL)
            secure = cookie;
    }
    return secure;
}

/* Makes room for a cookie: of its domain, and in all. */
static void make_room(weir_http_cookie_jar *jar, weir_span domain, int64_t now)
{
    struct cookie *cookie;
    size_t count = 0;

    weir_list_foreach (link, bucket_of(jar, domain)) {
        cookie = cookie_in(link);
        if (cookie->expires <= now)
            forget(jar, cookie);
        else
            count += weir_span_equal(cookie->domain, domain);
    }
    if (count >= jar->max_per_domain)
        forget(jar, find_least_used(jar, domain));
    if (jar->count >= jar->max_cookies)
        forget_least_used(jar);
}

/* True if one of the domains is the other or below it. */
static bool are_related(weir_span a, weir_span b)
{
    weir_span longer = a.length > b.length ? a : b, other = a.length > b.length ? b : a;
    size_t above = longer.length - other.length;

    if (memcmp(longer.data + above, other.data, other.length) != 0)
        return false;
    return above == 0 || (longer.data[above - 1] == '.' && !ends_in_number(longer));
}

/* True if a cookie from a plain connection would shadow a secure one (RFC 6265bis 5.7): of a domain
 * above, or below, whose hosts get both. */
static bool shadows_secure(const weir_http_cookie_jar *jar, const struct cookie *cookie,
                           int64_t now)
{
    weir_list_foreach (link, &jar->by_use) {
        const struct cookie *found = WEIR_CONTAINER_OF(link, struct cookie, by_use);

        if (found->is_secure && found->expires > now &&
            weir_span_equal(found->name, cookie->name) &&
            are_related(found->domain, cookie->domain) && is_below(cookie->path, found->path))
            return true;
    }
    return false;
}

static int put(weir_http_cookie_jar *jar, struct cookie *cookie, bool from_secure, int64_t now)
{
    struct cookie *same;

    if (!from_secure && shadows_secure(jar, cookie, now)) {
        weir_memory_free(cookie);
        return -EPERM;
    }
    same = find_same(jar, cookie);
    cookie->order = same != NULL ? same->order : jar->order++;
    if (same != NULL)
        forget(jar, same);
    if (cookie->expires <= now) {
        weir_memory_free(cookie);
        return 0;
    }
    make_room(jar, cookie->domain, now);
    weir__list_append(bucket_of(jar, cookie->domain), &cookie->in_bucket);
    weir__list_append(&jar->by_use, &cookie->by_use);
    jar->count++;
    return 0;
}

/* ---- storing ---- */

static int64_t expiry_of(const weir_http_set_cookie *set, int64_t now)
{
    int64_t expires = set->expires;

    if (set->max_age_seconds != WEIR_NEVER)
        expires = set->max_age_seconds <= 0
                      ? INT64_MIN
                      : now + (set->max_age_seconds < MAX_AGE ? set->max_age_seconds : MAX_AGE);
    return expires != WEIR_NEVER && expires > now + MAX_AGE ? now + MAX_AGE : expires;
}

/* The domain of a cookie: that of its attribute, if the host may set it, or the host. */
static int domain_of(const weir_http_set_cookie *set, const struct host *host,
                     struct host *ret_domain, bool *ret_host_only)
{
    *ret_domain = *host;
    *ret_host_only = true;
    if (set->domain.length == 0)
        return 0;
    if (read_host(set->domain, false, ret_domain) != 0 || !is_within(host, host_span(ret_domain)))
        return -EPERM;
    if (ret_domain->length == host->length && host->is_address)
        return 0;
    if (weir_span_find(host_span(ret_domain), '.') < 0) /* "com": only for itself */
        return ret_domain->length == host->length ? 0 : -EPERM;
    *ret_host_only = false;
    return 0;
}

int weir__http_cookie_jar_store_at(weir_http_cookie_jar *jar, const weir_http_uri *uri,
                                   weir_span set_cookie, int64_t now)
{
    weir_http_set_cookie set;
    struct host host, domain;
    struct cookie *cookie;
    bool is_host_only;
    int err = weir_http_set_cookie_parse(set_cookie, &set);

    if (!err)
        err = read_host(uri->host, uri->is_ip_literal, &host);
    if (!err)
        err = domain_of(&set, &host, &domain, &is_host_only);
    if (!err && ((set.secure && !is_secure(uri)) || weir__http_cookie_conflict(&set) != NULL))
        err = -EPERM;
    if (err)
        return err;
    cookie = create_cookie(&set, host_span(&domain),
                           set.path.length > 0 ? set.path : folder_of(uri->path));
    if (cookie == NULL)
        return -ENOMEM;
    cookie->is_host_only = is_host_only;
    cookie->expires = expiry_of(&set, now);
    weir__mutex_lock(&jar->mutex);
    err = put(jar, cookie, is_secure(uri), now);
    weir__mutex_unlock(&jar->mutex);
    return err;
}

int weir_http_cookie_jar_store(weir_http_cookie_jar *jar, const weir_http_uri *uri,
                               weir_span set_cookie)
{
    return weir__http_cookie_jar_store_at(jar, uri, set_cookie, weir_time_of_day() / NS_OF_SECOND);
}

/* ---- sending ---- */

struct matches {
    struct cookie *list[MAX_MATCHES];
    size_t count;
};

/* Longer paths first, then older cookies. */
static void insert(struct matches *matches, struct cookie *cookie)
{
    size_t at = matches->count;

    if (matches->count == MAX_MATCHES)
        return;
    for (; at > 0; at--) {
        const struct cookie *before = matches->list[at - 1];

        if (before->path.length > cookie->path.length ||
            (before->path.length == cookie->path.length && before->order < cookie->order))
            break;
        matches->list[at] = matches->list[at - 1];
    }
    matches->list[at] = cookie;
    matches->count++;
}

static void find_matches(weir_http_cookie_jar *jar, const weir_http_uri *uri,
                         const struct host *host, int64_t now, struct matches *matches)
{
    weir_span path = uri->path.length > 0 ? uri->path : weir_span_of_text("/");
    weir_span domain = host_span(host);
    struct cookie *cookie;

    for (; domain.length > 0; weir__http_cut(&domain, '.')) {
        weir_list_foreach (link, bucket_of(jar, domain)) {
            cookie = cookie_in(link);
            if (cookie->expires <= now)
                forget(jar, cookie);
            else if (weir_span_equal(cookie->domain, domain) &&
                     (domain.length == host->length || !cookie->is_host_only) &&
                     (!cookie->is_secure || is_secure(uri)) && is_below(path, cookie->path))
                insert(matches, cookie);
        }
        if (host->is_address)
            break;
    }
}

static int write_matches(weir_http_cookie_jar *jar, const struct matches *matches, weir_buf *to)
{
    struct cookie *cookie;
    size_t length = 0;
    int err;

    for (size_t i = 0; i < matches->count; i++)
        length += matches->list[i]->name.length + matches->list[i]->value.length + 3;
    err = weir_buf_reserve(to, length);
    if (err)
        return err;
    length = 0;
    for (size_t i = 0; i < matches->count && !err; i++) {
        cookie = matches->list[i];
        length += cookie->name.length + cookie->value.length + 3;
        if (length > MAX_WRITTEN)
            break;
        if (i > 0)
            err = weir_buf_write_string(to, "; ");
        if (!err)
            err = weir_buf_write_bytes(to, cookie->name.data, cookie->name.length);
        if (!err)
            err = weir_buf_write_string(to, "=");
        if (!err)
            err = weir_buf_write_bytes(to, cookie->value.data, cookie->value.length);
        weir__list_remove(&cookie->by_use);
        weir__list_append(&jar->by_use, &cookie->by_use);
    }
    return err;
}

int weir__http_cookie_jar_write_at(weir_http_cookie_jar *jar, const weir_http_uri *uri,
                                   weir_buf *to, int64_t now)
{
    struct matches matches = {.count = 0};
    struct host host;
    int err;

    if (read_host(uri->host, uri->is_ip_literal, &host) != 0)
        return 0;
    weir__mutex_lock(&jar->mutex);
    find_matches(jar, uri, &host, now, &matches);
    err = write_matches(jar, &matches, to);
    weir__mutex_unlock(&jar->mutex);
    return err;
}

int weir_http_cookie_jar_write(weir_http_cookie_jar *jar, const weir_http_uri *uri, weir_buf *to)
{
    return weir__http_cookie_jar_write_at(jar, uri, to, weir_time_of_day() / NS_OF_SECOND);
}
