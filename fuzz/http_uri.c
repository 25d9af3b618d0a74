/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URIs: the parts of a URI make up its text; a resolved reference is a URI that resolves to itself;
 * decoding reverses encoding; each pair of a query string is found. Input: the text.
 */
#include <stdlib.h>

#include <weir/http_uri.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static weir_buf *new_buf(void)
{
    weir_buf *buf = NULL;

    expect(weir_buf_create(0, 0, &buf) == 0);
    return buf;
}

static void put(weir_buf *to, const char *before, weir_span part, const char *behind)
{
    if (part.data == NULL)
        return;
    expect(weir_buf_write_string(to, before) == 0);
    expect(weir_buf_write_bytes(to, part.data, part.length) == 0);
    expect(weir_buf_write_string(to, behind) == 0);
}

static void check_parts(weir_span text, const weir_http_uri *uri)
{
    weir_buf *whole = new_buf();
    weir_http_uri authority;

    put(whole, "", uri->scheme, ":");
    put(whole, "//", uri->authority, "");
    put(whole, "", uri->path, "");
    put(whole, "?", uri->query, "");
    put(whole, "#", uri->fragment, "");
    expect(weir_span_equal(weir_buf_span(whole), text));
    weir_buf_release(whole);
    expect(uri->port >= -1 && uri->port <= 65535);
    expect((uri->host.data != NULL) == (uri->authority.data != NULL));
    if (uri->host.length > 0 && uri->userinfo.data == NULL) {
        expect(weir_http_authority_is_valid(uri->authority));
        expect(weir_http_authority_parse(uri->authority, &authority) == 0);
        expect(weir_span_equal(authority.host, uri->host) && authority.port == uri->port);
    }
}

static void check_resolution(weir_span base, weir_span text)
{
    weir_buf *once = new_buf(), *twice = new_buf();
    weir_http_uri uri;

    if (weir_http_uri_resolve(base, text, once) == 0) {
        expect(weir_http_uri_parse(weir_buf_span(once), &uri) == 0 && uri.scheme.data != NULL);
        expect(weir_http_uri_resolve(base, weir_buf_span(once), twice) == 0);
        if (text.length > 0 && text.data[0] != '?' && text.data[0] != '#')
            expect(weir_buf_equal(once, twice));
    } else {
        expect(weir_buf_readable(once) == 0);
    }
    weir_buf_release(once);
    weir_buf_release(twice);
}

static void check_percent(weir_span text)
{
    uint8_t *decoded = malloc(text.length + 1), *again = malloc(3 * text.length + 1);
    ssize_t length = weir_http_percent_decode(text, decoded);
    weir_buf *encoded = new_buf();

    expect(decoded != NULL && again != NULL);
    expect(length == WEIR_EMALFORMED || (length >= 0 && (size_t)length <= text.length));
    expect(weir_http_percent_encode(encoded, text, WEIR_HTTP_PERCENT_PATH) == 0);
    length = weir_http_percent_decode(weir_buf_span(encoded), again);
    expect(length >= 0 && weir_span_equal(weir_span_of(again, (size_t)length), text));
    weir_buf_release(encoded);
    free(decoded);
    free(again);
}

static void check_query(weir_span query)
{
    weir_span rest = query, name, value, found;
    uint8_t *decoded = malloc(query.length + 1);
    ssize_t length;

    expect(decoded != NULL);
    while (weir_http_query_next(&rest, &name, &value)) {
        length = weir_http_query_decode(name, decoded);
        if (length >= 0)
            expect(weir_http_query_find(query, weir_span_of(decoded, (size_t)length), &found));
    }
    free(decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_span text = weir_span_of(data, size);
    weir_http_uri uri;
    weir_buf *path;

    if (size > 512)
        return 0;
    if (weir_http_uri_parse(text, &uri) == 0)
        check_parts(text, &uri);
    expect(weir_http_authority_is_valid(text) == (weir_http_authority_parse(text, &uri) == 0));
    check_resolution(weir_span_of_text("http://a/b/c/d;p?q"), text);
    check_resolution(weir_span_of_text("x:a/b"), text);
    check_resolution(text, weir_span_of_text("../x"));
    check_percent(text);
    check_query(text);
    path = new_buf();
    expect(weir_buf_write_bytes(path, data, size) == 0 && weir_buf_write_bytes(path, "", 1) == 0);
    expect(weir_http_path_remove_dots((char *)path->data, size) <= size);
    weir_buf_release(path);
    return 0;
}
