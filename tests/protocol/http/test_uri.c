/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_uri.h>

#include <stdio.h>

#include "support/memory.h"
#include "support/test.h"

/* A part as text; "-" if it is missing. */
static const char *shown(weir_span part, char text[static 256])
{
    (void)snprintf(text, 256, "%.*s", part.data != NULL ? (int)part.length : 1,
                   part.data != NULL ? (const char *)part.data : "-");
    return text;
}

/* All parts of a URI: scheme|userinfo|host|port|path|query|fragment; [host] for an IP literal. */
static void assert_parts(const char *text, const char *expected)
{
    char found[1024], parts[6][256];
    weir_http_uri uri;
    int err = weir_http_uri_parse(weir_span_of_text(text), &uri);

    if (err) {
        assert_int_equal(err, WEIR_EMALFORMED);
        (void)snprintf(found, sizeof(found), "malformed");
    } else {
        (void)snprintf(found, sizeof(found),
                       uri.is_ip_literal ? "%s|%s|[%s]|%d|%s|%s|%s" : "%s|%s|%s|%d|%s|%s|%s",
                       shown(uri.scheme, parts[0]), shown(uri.userinfo, parts[1]),
                       shown(uri.host, parts[2]), uri.port, shown(uri.path, parts[3]),
                       shown(uri.query, parts[4]), shown(uri.fragment, parts[5]));
    }
    assert_string_equal(found, expected);
}

TEST(uri, is_taken_apart)
{
    assert_parts("http://a", "http|-|a|-1||-|-");
    assert_parts("https://user:pw@www.example.org:8443/a/b?x=1&y=2#top",
                 "https|user:pw|www.example.org|8443|/a/b|x=1&y=2|top");
    assert_parts("http://[2001:db8::1]:80/", "http|-|[2001:db8::1]|80|/|-|-");
    assert_parts("http://[v1.a:b]/", "http|-|[v1.a:b]|-1|/|-|-");
    assert_parts("http://a:/?#", "http|-|a|-1|/||");
    assert_parts("http://a?q/x?y", "http|-|a|-1||q/x?y|-");
    assert_parts("http://a#f?/x", "http|-|a|-1||-|f?/x");
    assert_parts("http://@a/", "http||a|-1|/|-|-");
    assert_parts("mailto:john@example.org", "mailto|-|-|-1|john@example.org|-|-");
    assert_parts("urn:a:b", "urn|-|-|-1|a:b|-|-");
    assert_parts("file:///etc/x", "file|-||-1|/etc/x|-|-");
    assert_parts("", "-|-|-|-1||-|-");
    assert_parts("a/b:c", "-|-|-|-1|a/b:c|-|-");
    assert_parts("/a?b:c", "-|-|-|-1|/a|b:c|-");
    assert_parts("//h/p", "-|-|h|-1|/p|-|-");
    assert_parts("?q", "-|-|-|-1||q|-");
    assert_parts("#f", "-|-|-|-1||-|f");
    assert_parts("http://%41.b/%2F%2e", "http|-|%41.b|-1|/%2F%2e|-|-");
}

TEST(uri, is_refused_if_malformed)
{
    static const char *const texts[] = {"http:",
                                        "http:/a",
                                        "http:a",
                                        "http://",
                                        "http:///a",
                                        "https://:80/",
                                        "http://a b/",
                                        "http://a/ b",
                                        "http://a/\t",
                                        "http://a/\x7f",
                                        "http://a/\xc3\xa4",
                                        "http://a/%",
                                        "http://a/%4",
                                        "http://a/%4g",
                                        "http://a/?%zz",
                                        "http://a/#%",
                                        "http://a/#a#b",
                                        "http://a/<",
                                        "http://a/[",
                                        "http://a/?[",
                                        "http://a:b/",
                                        "http://a:65536",
                                        "http://a:000080",
                                        "http://a:-1",
                                        "http://a:8 0",
                                        "http://a@b@c/",
                                        "http://[::1",
                                        "http://[::1]a",
                                        "http://[::1]:x",
                                        "http://[1:2]/",
                                        "http://::1/",
                                        "http://[v.a]/",
                                        "http://[vg.a]",
                                        "http://[v1.]",
                                        "http://[v1.%41]",
                                        "http://[::1%25a]/",
                                        "1http://a/",
                                        ":a",
                                        "a b",
                                        "-a:b",
                                        "h_ttp://a",
                                        "http://a\\b/",
                                        "http://\"a/",
                                        "ht%41tp://a",
                                        "a:b@c:d//\x01"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_parts(texts[i], "malformed");
    }
}

TEST(uri, with_a_nul_is_refused)
{
    weir_http_uri uri;

    assert_int_equal(weir_http_uri_parse(weir_span_of("http://a/\0", 10), &uri), WEIR_EMALFORMED);
    assert_int_equal(weir_http_uri_parse(weir_span_of("http://\0/", 9), &uri), WEIR_EMALFORMED);
    assert_false(weir_http_authority_is_valid(weir_span_of("a\0", 2)));
    assert_int_equal(weir_http_uri_parse(weir_span_of(NULL, 0), &uri), 0);
    assert_non_null(uri.path.data);
}

TEST(uri, has_the_port_of_its_scheme)
{
    static const struct {
        const char *text;
        int port;
    } rows[] = {{"http://a", 80},  {"HTTPS://a", 443}, {"ws://a/", 80},
                {"wss://a/", 443}, {"http://a:1", 1},  {"http://a:", 80},
                {"ftp://a/", -1},  {"ftp://a:0/", 0},  {"//a", -1}};
    weir_http_uri uri;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(weir_http_uri_parse(weir_span_of_text(rows[i].text), &uri), 0);
        assert_int_equal(weir_http_uri_port(&uri), rows[i].port);
    }
}

static const char *const valid_authorities[] = {"a",
                                                "www.example.org",
                                                "a:80",
                                                "a:",
                                                "192.0.2.1:1",
                                                "[::]",
                                                "[::1]:443",
                                                "[1:2:3:4:5:6:7:8]",
                                                "[1::8]",
                                                "[::2:3:4:5:6:7:8]",
                                                "[1:2:3:4:5:6:7::]",
                                                "[::1.2.3.4]",
                                                "[1:2:3:4:5:6:1.2.3.4]",
                                                "[1::1.2.3.4]",
                                                "a_b~c!$&'()*+,;=",
                                                "%41",
                                                "a:0",
                                                "a:65535",
                                                "[vF.x]",
                                                "[::1]:"};

static const char *const invalid_authorities[] = {"",
                                                  ":80",
                                                  "a@b",
                                                  "a b",
                                                  "a:80:90",
                                                  "a/b",
                                                  "a?b",
                                                  "a#b",
                                                  "a,b c",
                                                  "[]",
                                                  "[::1",
                                                  "::1",
                                                  "[::1]]",
                                                  "[:]",
                                                  "[:::]",
                                                  "[1::2::3]",
                                                  "[1:2:3:4:5:6:7]",
                                                  "[1:2:3:4:5:6:7:8:9]",
                                                  "[1:2:3:4:5:6:7:8::]",
                                                  "[::1:2:3:4:5:6:7:8]",
                                                  "[12345::]",
                                                  "[1:]",
                                                  "[:1]",
                                                  "[::1:]",
                                                  "[::g]",
                                                  "[::1.2.3]",
                                                  "[::1.2.3.256]",
                                                  "[::1.2.3.04]",
                                                  "[::1.2.3.4.5]",
                                                  "[::1.2.3.4:1]",
                                                  "[1:2:3:4:5:6:7:1.2.3.4]",
                                                  "[1.2.3.4]",
                                                  "[::1.2..4]",
                                                  "[::.1.2.3]",
                                                  "[1::2:3:4:5:6:1.2.3.4:]",
                                                  "%4",
                                                  "%",
                                                  "a%zz",
                                                  "a:+1",
                                                  "a: 1",
                                                  "a:1 ",
                                                  "[::1]1",
                                                  "a:123456",
                                                  "a\x80"};

TEST(authority, is_a_host_and_perhaps_a_port)
{
    weir_http_uri uri;

    for (size_t i = 0; i < sizeof(valid_authorities) / sizeof(valid_authorities[0]); i++) {
        if (!weir_http_authority_is_valid(weir_span_of_text(valid_authorities[i])))
            fail_msg("%s is refused", valid_authorities[i]);
        assert_int_equal(weir_http_authority_parse(weir_span_of_text(valid_authorities[i]), &uri),
                         0);
    }
    for (size_t i = 0; i < sizeof(invalid_authorities) / sizeof(invalid_authorities[0]); i++) {
        if (weir_http_authority_is_valid(weir_span_of_text(invalid_authorities[i])))
            fail_msg("%s is accepted", invalid_authorities[i]);
        assert_int_equal(weir_http_authority_parse(weir_span_of_text(invalid_authorities[i]), &uri),
                         WEIR_EMALFORMED);
    }
}

/* ---- references ---- */

static void assert_resolved(const char *base, const char *reference, const char *expected)
{
    weir_buf *to = NULL;
    char text[256] = "malformed";
    int err;

    assert_int_equal(weir_buf_create(0, 0, &to), 0);
    assert_int_equal(weir_buf_write_string(to, "kept "), 0);
    err = weir_http_uri_resolve(weir_span_of_text(base), weir_span_of_text(reference), to);
    assert_int_equal(weir_buf_skip(to, 5), 0);
    if (err)
        assert_int_equal(weir_buf_readable(to), 0);
    else
        assert_int_equal(weir_buf_read_string(to, weir_buf_readable(to), text, sizeof(text)), 0);
    weir_buf_release(to);
    assert_string_equal(text, expected);
}

TEST(uri, references_are_resolved_as_in_the_rfc)
{
    static const char *const rows[][2] = {
        {"g:h", "g:h"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q#s"},
        {"g#s", "http://a/b/c/g#s"},
        {"g?y#s", "http://a/b/c/g?y#s"},
        {";x", "http://a/b/c/;x"},
        {"g;x", "http://a/b/c/g;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y#s"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../", "http://a/"},
        {"../../g", "http://a/g"},
        {"../../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {".g", "http://a/b/c/.g"},
        {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"g#s/./x", "http://a/b/c/g#s/./x"},
        {"g#s/../x", "http://a/b/c/g#s/../x"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_resolved("http://a/b/c/d;p?q", rows[i][0], rows[i][1]);
    }
}

TEST(uri, references_are_resolved_at_the_edges)
{
    assert_resolved("http://a", "g", "http://a/g");
    assert_resolved("http://a", "../g", "http://a/g");
    assert_resolved("http://a?q#f", "", "http://a?q");
    assert_resolved("http://a/b?q", "?", "http://a/b?");
    assert_resolved("http://u@a:1/b", "c", "http://u@a:1/c");
    assert_resolved("http://a/b", "https://c/./d/../e", "https://c/e");
    assert_resolved("http://a/b", "//c:2", "http://c:2");
    assert_resolved("x:/a", "/.//b", "x:/.//b");
    assert_resolved("x:a/b", "../c", "x:/c");
    assert_resolved("urn:a", "b", "urn:b");
    assert_resolved("http://a/b", "http:c", "malformed");
    assert_resolved("http://a/b", "///c", "malformed");
    assert_resolved("http://a/b", "c d", "malformed");
    assert_resolved("/b", "c", "malformed");
    assert_resolved("http://", "c", "malformed");
}

TEST(uri, a_resolution_without_memory_appends_nothing)
{
    weir_span base = weir_span_of_text("http://a/b"), reference = weir_span_of_text("c");
    weir_buf *to = NULL;

    assert_int_equal(weir_buf_create(4, 4, &to), 0);
    assert_int_equal(weir_http_uri_resolve(base, reference, to), WEIR_EBOUNDS);
    assert_int_equal(weir_http_percent_encode(to, base, WEIR_HTTP_PERCENT_PATH), WEIR_EBOUNDS);
    assert_int_equal(weir_http_query_add(to, base, base), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_readable(to), 0);
    weir_buf_release(to);
}

static void assert_without_dots(const char *path, const char *expected)
{
    char text[64];
    size_t length;

    (void)snprintf(text, sizeof(text), "%s", path);
    length = weir_http_path_remove_dots(text, strlen(text));
    text[length] = '\0';
    assert_string_equal(text, expected);
}

TEST(path, loses_its_dot_segments)
{
    assert_without_dots("/a/b/c/./../../g", "/a/g");
    assert_without_dots("mid/content=5/../6", "mid/6");
    assert_without_dots("", "");
    assert_without_dots(".", "");
    assert_without_dots("..", "");
    assert_without_dots("./", "");
    assert_without_dots("../", "");
    assert_without_dots("../.././a", "a");
    assert_without_dots("/..", "/");
    assert_without_dots("/.", "/");
    assert_without_dots("/../..//", "//");
    assert_without_dots("/a//../b", "/a/b");
    assert_without_dots("/...", "/...");
    assert_without_dots("...", "...");
    assert_without_dots("a", "a");
    assert_without_dots("/%2e%2e/a", "/%2e%2e/a");
}
