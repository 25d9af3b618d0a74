/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/cookie_jar.h"

#include <stdio.h>

#include "support/memory.h"
#include "support/test.h"

#define NOW INT64_C(1794829772)

static weir_http_cookie_jar *new_jar(int max_cookies, int max_per_domain)
{
    weir_http_cookie_jar *jar = NULL;

    assert_int_equal(
        weir_http_cookie_jar_create(WEIR_HTTP_COOKIE_JAR_OPTIONS(.max_cookies = max_cookies,
                                                                 .max_per_domain = max_per_domain),
                                    &jar),
        0);
    return jar;
}

static weir_http_uri uri_of(const char *text)
{
    weir_http_uri uri;

    assert_int_equal(weir_http_uri_parse(weir_span_of_text(text), &uri), 0);
    return uri;
}

static int store_at(weir_http_cookie_jar *jar, const char *url, const char *cookie, int64_t now)
{
    weir_http_uri uri = uri_of(url);

    return weir__http_cookie_jar_store_at(jar, &uri, weir_span_of_text(cookie), now);
}

static int store(weir_http_cookie_jar *jar, const char *url, const char *cookie)
{
    return store_at(jar, url, cookie, NOW);
}

static void assert_sent_at(weir_http_cookie_jar *jar, const char *url, const char *expected,
                           int64_t now)
{
    weir_http_uri uri = uri_of(url);
    weir_buf *to = NULL;
    char text[16384];

    assert_int_equal(weir_buf_create(0, 0, &to), 0);
    assert_int_equal(weir__http_cookie_jar_write_at(jar, &uri, to, now), 0);
    assert_int_equal(weir_buf_read_string(to, weir_buf_readable(to), text, sizeof(text)), 0);
    weir_buf_release(to);
    assert_string_equal(text, expected);
}

static void assert_sent(weir_http_cookie_jar *jar, const char *url, const char *expected)
{
    assert_sent_at(jar, url, expected, NOW);
}

TEST(cookie_jar, sends_cookies_to_the_host_that_set_them)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);

    assert_int_equal(store(jar, "http://www.example.org/", "a=1"), 0);
    assert_sent(jar, "http://www.example.org/x", "a=1");
    assert_sent(jar, "http://www.example.org", "a=1");
    assert_sent(jar, "https://WWW.Example.ORG.:81/", "a=1");
    assert_sent(jar, "http://example.org/", "");
    assert_sent(jar, "http://x.www.example.org/", "");
    assert_sent(jar, "http://xwww.example.org/", "");
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, sends_cookies_of_a_domain_to_its_hosts)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);

    assert_int_equal(store(jar, "http://www.example.org/", "a=1; Domain=.Example.org"), 0);
    assert_sent(jar, "http://example.org/", "a=1");
    assert_sent(jar, "http://b.a.example.org/", "a=1");
    assert_sent(jar, "http://badexample.org/", "");
    assert_sent(jar, "http://org/", "");
    assert_int_equal(store(jar, "http://www.example.org/", "a=1; Domain=other.org"), -EPERM);
    assert_int_equal(store(jar, "http://www.example.org/", "a=1; Domain=x.www.example.org"),
                     -EPERM);
    assert_int_equal(store(jar, "http://www.example.org/", "a=1; Domain=ample.org"), -EPERM);
    assert_int_equal(weir_http_cookie_jar_count(jar), 1);
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, refuses_domains_of_a_single_label)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);

    assert_int_equal(store(jar, "http://www.example.org/", "a=1; Domain=org"), -EPERM);
    assert_int_equal(store(jar, "http://www.example.org/", "a=1; Domain=org."), -EPERM);
    assert_int_equal(store(jar, "http://localhost/", "a=1; Domain=localhost"), 0);
    assert_sent(jar, "http://localhost/", "a=1");
    assert_sent(jar, "http://a.localhost/", "");
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, addresses_have_no_subdomains)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);

    assert_int_equal(store(jar, "http://127.0.0.1/", "a=1; Domain=0.0.1"), -EPERM);
    assert_int_equal(store(jar, "http://127.0.0.1/", "a=1; Domain=127.0.0.1"), 0);
    assert_int_equal(store(jar, "http://[::1]/", "b=2"), 0);
    assert_sent(jar, "http://127.0.0.1:1/", "a=1");
    assert_sent(jar, "http://[::1]/", "b=2");
    assert_sent(jar, "http://x.127.0.0.1/", "");
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, sends_longer_paths_and_older_cookies_first)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);

    assert_int_equal(store(jar, "http://a.b/x/y", "folder=1"), 0);
    assert_int_equal(store(jar, "http://a.b/x/y", "root=2; Path=/"), 0);
    assert_int_equal(store(jar, "http://a.b/x/y", "deep=3; Path=/x/y"), 0);
    assert_int_equal(store(jar, "http://a.b/", "late=4; Domain=a.b"), 0);
    assert_sent(jar, "http://a.b/x/y", "deep=3; folder=1; root=2; late=4");
    assert_sent(jar, "http://a.b/x/y/z", "deep=3; folder=1; root=2; late=4");
    assert_sent(jar, "http://a.b/x/yz", "folder=1; root=2; late=4");
    assert_sent(jar, "http://a.b/x", "folder=1; root=2; late=4");
    assert_sent(jar, "http://a.b/xy", "root=2; late=4");
    assert_sent(jar, "http://a.b", "root=2; late=4");
    assert_int_equal(store(jar, "http://a.b/x/y", "root=5; Path=/"), 0);
    assert_sent(jar, "http://a.b/", "root=5; late=4");
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, keeps_secure_cookies_from_plain_connections)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);

    assert_int_equal(store(jar, "http://a.b/", "s=1; Secure"), -EPERM);
    assert_int_equal(store(jar, "https://a.b/", "s=1; Secure"), 0);
    assert_sent(jar, "http://a.b/", "");
    assert_sent(jar, "wss://a.b/", "s=1");
    assert_int_equal(store(jar, "http://a.b/", "s=2"), -EPERM);
    assert_int_equal(store(jar, "http://a.b/x/", "s=2"), -EPERM);
    assert_int_equal(store(jar, "http://a.b/", "s=2; Max-Age=0"), -EPERM);
    assert_int_equal(store(jar, "http://a.b/", "t=2"), 0);
    assert_sent(jar, "https://a.b/", "s=1; t=2");
    weir_http_cookie_jar_release(jar);
}

/* A host gets the cookies of the domains above it, too. */
TEST(cookie_jar, keeps_secure_cookies_from_plain_connections_of_related_domains)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);

    assert_int_equal(store(jar, "https://a.b.c/x/", "s=1; Secure; Path=/x"), 0);
    assert_int_equal(store(jar, "https://b.c/", "t=1; Secure; Domain=b.c"), 0);
    assert_int_equal(store(jar, "http://b.c/x/", "s=2; Domain=b.c"), -EPERM);
    assert_int_equal(store(jar, "http://other.b.c/x/", "s=2; Domain=b.c"), -EPERM);
    assert_int_equal(store(jar, "http://a.b.c/", "t=2"), -EPERM);
    assert_int_equal(store(jar, "http://d.a.b.c/", "t=2"), -EPERM);
    assert_int_equal(store(jar, "http://b.c/", "s=2; Domain=b.c"), 0); /* not below /x */
    assert_int_equal(store(jar, "http://other.b.c/x/", "s=3"), 0);
    assert_int_equal(store(jar, "http://za.b.c/x/", "s=4"), 0);
    assert_int_equal(store(jar, "https://b.c/x/", "s=5; Domain=b.c"), 0);
    assert_sent(jar, "https://a.b.c/x/", "s=1; s=5; t=1; s=2");
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, is_not_flooded_by_plain_connections)
{
    weir_http_cookie_jar *jar = new_jar(0, 2);

    assert_int_equal(store(jar, "https://a.b/", "s=1; Secure"), 0);
    assert_int_equal(store(jar, "http://a.b/", "t=1"), 0);
    assert_int_equal(store(jar, "http://a.b/", "u=1"), 0);
    assert_sent(jar, "https://a.b/", "s=1; u=1");
    assert_int_equal(store(jar, "https://a.b/", "u=1; Secure"), 0);
    assert_int_equal(store(jar, "http://a.b/", "v=1"), 0);
    assert_sent(jar, "https://a.b/", "u=1; v=1");
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, checks_the_prefixes_of_names)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);

    assert_int_equal(store(jar, "https://a.b/", "__Secure-a=1"), -EPERM);
    assert_int_equal(store(jar, "https://a.b/", "__Secure-a=1; Secure"), 0);
    assert_int_equal(store(jar, "https://a.b/", "__Host-a=1; Secure"), -EPERM);
    assert_int_equal(store(jar, "https://a.b/", "__host-a=1; Secure; Path=/; Domain=a.b"), -EPERM);
    assert_int_equal(store(jar, "https://a.b/", "__Host-a=1; Secure; Path=/"), 0);
    assert_int_equal(store(jar, "https://a.b/", "n=1; SameSite=None"), -EPERM);
    assert_int_equal(store(jar, "https://a.b/", "p=1; Partitioned"), -EPERM);
    assert_int_equal(store(jar, "https://a.b/", "=1"), WEIR_EMALFORMED);
    assert_int_equal(weir_http_cookie_jar_count(jar), 2);
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, forgets_cookies_that_expire)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);

    assert_int_equal(store(jar, "http://a.b/", "a=1; Max-Age=10"), 0);
    assert_int_equal(store(jar, "http://a.b/", "b=2; Expires=Mon, 16 Nov 2026 11:49:42 GMT"), 0);
    assert_int_equal(store(jar, "http://a.b/", "c=3; Max-Age=5; Expires=Sun, 06 Nov 1994 08:49:37"),
                     0);
    assert_int_equal(store(jar, "http://a.b/", "d=4; Max-Age=99999999999"), 0);
    assert_int_equal(store(jar, "http://a.b/", "e=5; Expires=Sun, 06 Nov 1994 08:49:37"), 0);
    assert_int_equal(weir_http_cookie_jar_count(jar), 4);
    assert_sent_at(jar, "http://a.b/", "a=1; b=2; c=3; d=4", NOW + 4);
    assert_sent_at(jar, "http://a.b/", "a=1; b=2; d=4", NOW + 9);
    assert_sent_at(jar, "http://a.b/", "d=4", NOW + 10);
    assert_int_equal(weir_http_cookie_jar_count(jar), 1);
    assert_sent_at(jar, "http://a.b/", "d=4", NOW + 400 * 86400 - 1);
    assert_sent_at(jar, "http://a.b/", "", NOW + 400 * 86400);
    assert_int_equal(store(jar, "http://a.b/", "f=6"), 0);
    assert_int_equal(store(jar, "http://a.b/", "f=; Max-Age=0"), 0);
    assert_sent(jar, "http://a.b/", "");
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, forgets_the_least_recently_used)
{
    weir_http_cookie_jar *jar = new_jar(4, 3);

    assert_int_equal(store(jar, "http://a.b/1/x", "a=1"), 0);
    assert_int_equal(store(jar, "http://a.b/2/x", "b=2"), 0);
    assert_int_equal(store(jar, "http://a.b/3/x", "c=3"), 0);
    assert_sent(jar, "http://a.b/1", "a=1");
    assert_int_equal(store(jar, "http://a.b/4/x", "d=4"), 0); /* the domain is full: b goes */
    assert_sent(jar, "http://a.b/1", "a=1");
    assert_sent(jar, "http://a.b/2", "");
    assert_int_equal(store(jar, "http://c.d/", "e=5"), 0);
    assert_int_equal(store(jar, "http://e.f/", "f=6"), 0); /* the jar is full: c goes */
    assert_sent(jar, "http://a.b/3", "");
    assert_sent(jar, "http://a.b/4", "d=4");
    assert_sent(jar, "http://c.d", "e=5");
    assert_int_equal(weir_http_cookie_jar_count(jar), 4);
    weir_http_cookie_jar_clear(jar);
    assert_int_equal(weir_http_cookie_jar_count(jar), 0);
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, a_flood_of_cookies_is_bounded)
{
    weir_http_cookie_jar *jar = new_jar(0, 0);
    char url[64], cookie[4000];
    weir_buf *to = NULL;
    weir_http_uri uri;
    size_t bytes = test_memory_live_bytes();

    memset(cookie, 'x', sizeof(cookie) - 1);
    cookie[sizeof(cookie) - 1] = '\0';
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(url, sizeof(url), "http://h%d.example.org/", i % 500);
        cookie[snprintf(cookie, 10, "%08d=", i)] = 'x'; /* instead of the NUL */
        assert_int_equal(store(jar, url, cookie), 0);
    }
    assert_int_equal(weir_http_cookie_jar_count(jar), 3000);
    assert_true(test_memory_live_bytes() - bytes < (size_t)3000 * 4500);
    uri = uri_of("http://h1.example.org/");
    assert_int_equal(weir_buf_create(0, 0, &to), 0);
    assert_int_equal(weir__http_cookie_jar_write_at(jar, &uri, to, NOW), 0);
    assert_in_range(weir_buf_readable(to), 7000, 8192);
    weir_buf_release(to);
    weir_http_cookie_jar_release(jar);
}

TEST(cookie_jar, survives_without_memory)
{
    weir_http_cookie_jar *jar = NULL;
    weir_http_uri uri = uri_of("http://a.b/");
    weir_buf *to = NULL;
    int err;

    test_memory_fail_at(1);
    assert_int_equal(weir_http_cookie_jar_create(NULL, &jar), -ENOMEM);
    test_memory_fail_at(0);
    jar = new_jar(0, 0);
    test_memory_fail_at(1);
    assert_int_equal(store(jar, "http://a.b/", "a=1"), -ENOMEM);
    test_memory_fail_at(0);
    assert_int_equal(weir_http_cookie_jar_count(jar), 0);
    assert_int_equal(weir_http_cookie_jar_store(jar, &uri, weir_span_of_text("a=1")), 0);
    assert_int_equal(weir_buf_create(2, 2, &to), 0);
    err = weir_http_cookie_jar_write(weir_http_cookie_jar_retain(jar), &uri, to);
    assert_int_equal(err, WEIR_EBOUNDS);
    assert_int_equal(weir_buf_readable(to), 0);
    weir_buf_release(to);
    weir_http_cookie_jar_release(jar);
    weir_http_cookie_jar_release(jar);
    weir_http_cookie_jar_release(NULL);
}
