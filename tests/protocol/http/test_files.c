/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_files.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/chunks.h>
#include <weir/error.h>
#include <weir/promise.h>

#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/protocol/http/disk_faults.h"
#include "support/protocol/http/exchange_fixture.h"
#include "support/protocol/http/file_site.h"

#define OPTIONS WEIR_HTTP_FILES_OPTIONS

static struct file_reply reply;

#define assert_field(name, value) assert_string_equal(file_reply_field(&reply, name), value)

static void get(struct file_site *site, const char *target, const char *fields)
{
    file_site_get(site, "GET", target, fields, &reply);
}

/* A site with a small and a large file. */
static void open_site(struct file_site *site, const weir_http_files_options *options)
{
    char large[20000];

    file_site_open(site, options);
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)('a' + i % 26);
    disk_tree_file(site->tree, "root/a.txt", "0123456789");
    disk_tree_bytes(site->tree, "root/large.bin", large, sizeof(large));
    disk_tree_set_time(site->tree, "root/a.txt", 784111777);
    disk_tree_file(site->tree, "secret.txt", "secret");
}

/* ---- whole files ---- */

TEST(files, small_files_are_sent_as_bytes)
{
    struct file_site site;

    open_site(&site, OPTIONS(.listing = true));
    get(&site, "/files/a.txt", "");
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.length, 10);
    assert_string_equal(reply.body, "0123456789");
    assert_true(reply.has_ended);
    assert_false(reply.has_range);
    assert_field("Content-Type", "text/plain; charset=utf-8");
    assert_field("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_field("Accept-Ranges", "bytes");
    assert_field("Vary", "");
    assert_field("Cache-Control", "");
    assert_int_equal(file_reply_field(&reply, "ETag")[0], '"');
    file_site_close(&site);
}

TEST(files, large_files_are_sent_by_the_kernel)
{
    struct file_site site;

    open_site(&site, OPTIONS(.max_age_seconds = 60));
    for (int i = 0; i < 2; i++) { /* then from the cache */
        get(&site, "/files/large.bin", "");
        assert_int_equal(reply.status, 200);
        assert_int_equal(reply.length, 20000);
        assert_int_equal(reply.size, 20000);
        assert_memory_equal(reply.body, "abcdef", 6);
        assert_true(reply.has_range);
        assert_true(reply.has_ended);
        assert_field("Content-Type", "application/octet-stream");
        assert_field("Cache-Control", "max-age=60");
    }
    file_site_close(&site);
}

TEST(files, head_has_the_length_but_no_content)
{
    static const char *const targets[] = {"/files/a.txt", "/files/large.bin"};
    static const int64_t lengths[] = {10, 20000};
    struct file_site site;

    open_site(&site, OPTIONS(.max_age_seconds = WEIR_OFF));
    for (int i = 0; i < 2; i++) {
        file_site_get(&site, "HEAD", targets[i], "Range: bytes=0-1", &reply);
        assert_int_equal(reply.status, 200); /* a range is for GET */
        assert_int_equal(reply.length, lengths[i]);
        assert_int_equal(reply.size, 0);
        assert_true(reply.has_ended);
        assert_field("Cache-Control", "no-cache");
    }
    file_site_close(&site);
}

TEST(files, empty_files_are_files)
{
    struct file_site site;

    open_site(&site, OPTIONS(.charset = ""));
    disk_tree_file(site.tree, "root/empty.css", "");
    get(&site, "/files/empty.css", "");
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.length, 0);
    assert_int_equal(reply.size, 0);
    assert_true(reply.has_ended);
    assert_field("Content-Type", "text/css");
    get(&site, "/files/empty.css", "Range: bytes=0-");
    assert_int_equal(reply.status, 416);
    assert_field("Content-Range", "bytes */0");
    file_site_close(&site);
}

TEST(files, other_methods_are_not_allowed)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH", "BREW"};
    struct file_site site;

    open_site(&site, OPTIONS(.listing = true));
    for (int i = 0; i < 5; i++) {
        file_site_get(&site, methods[i], "/files/a.txt", "", &reply);
        assert_int_equal(reply.status, 405);
        assert_field("Allow", "GET, HEAD");
    }
    file_site_close(&site);
}

/* ---- conditions ---- */

TEST(files, conditional_requests_are_answered_without_content)
{
    struct file_site site;
    char fields[128];

    open_site(&site, OPTIONS(.max_age_seconds = 5));
    get(&site, "/files/a.txt", "");
    (void)snprintf(fields, sizeof(fields), "If-None-Match: \"x\", W/%s",
                   file_reply_field(&reply, "ETag"));
    get(&site, "/files/a.txt", fields);
    assert_int_equal(reply.status, 304);
    assert_int_equal(reply.size, 0);
    assert_int_equal(reply.length, 10); /* that of the content */
    assert_field("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_field("Cache-Control", "max-age=5");
    assert_field("Content-Type", "");
    assert_true(strlen(file_reply_field(&reply, "ETag")) > 2);
    get(&site, "/files/a.txt", "If-None-Match: \"other\"");
    assert_int_equal(reply.status, 200);
    get(&site, "/files/a.txt", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT");
    assert_int_equal(reply.status, 304);
    get(&site, "/files/a.txt", "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT");
    assert_int_equal(reply.status, 200);
    get(&site, "/files/a.txt", "If-Match: \"other\"");
    assert_int_equal(reply.status, 412);
    get(&site, "/files/a.txt", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT");
    assert_int_equal(reply.status, 412);
    get(&site, "/files/large.bin", "If-None-Match: *");
    assert_int_equal(reply.status, 304);
    assert_int_equal(reply.length, 20000);
    assert_int_equal(reply.size, 0);
    file_site_close(&site);
}

/* ---- ranges ---- */

TEST(files, one_range_is_a_part_of_the_file)
{
    struct file_site site;

    open_site(&site, OPTIONS(.listing = true));
    get(&site, "/files/a.txt", "Range: bytes=2-4");
    assert_int_equal(reply.status, 206);
    assert_string_equal(reply.body, "234");
    assert_int_equal(reply.length, 3);
    assert_field("Content-Range", "bytes 2-4/10");
    assert_field("Content-Type", "text/plain; charset=utf-8");
    get(&site, "/files/a.txt", "Range: bytes=-3");
    assert_string_equal(reply.body, "789");
    get(&site, "/files/a.txt", "Range: bytes=8-100");
    assert_string_equal(reply.body, "89");
    assert_field("Content-Range", "bytes 8-9/10");
    get(&site, "/files/a.txt", "Range: bytes=10-");
    assert_int_equal(reply.status, 416);
    assert_field("Content-Range", "bytes */10");
    get(&site, "/files/a.txt", "Range: lines=1-2");
    assert_int_equal(reply.status, 200);
    get(&site, "/files/large.bin", "Range: bytes=26-51");
    assert_int_equal(reply.status, 206);
    assert_string_equal(reply.body, "abcdefghijklmnopqrstuvwxyz");
    assert_true(reply.has_range);
    assert_true(reply.has_ended);
    file_site_close(&site);
}

TEST(files, several_ranges_are_a_multipart_response)
{
    static const char *const targets[] = {"/files/a.txt", "/files/large.bin"};
    static const char *const parts[2][2] = {{"01", "789"}, {"ab", "def"}};
    static const char *const types[] = {"text/plain; charset=utf-8", "application/octet-stream"};
    static const char *const ranges[] = {"Range: bytes=0-1,-3", "Range: bytes=0-1,15603-15605"};
    char expected[512], boundary[64];
    struct file_site site;

    open_site(&site, OPTIONS(.listing = true));
    disk_tree_bytes(site.tree, "root/a.txt",
                    "01................................................."
                    "..............................................789",
                    100);
    for (int i = 0; i < 2; i++) {
        get(&site, targets[i], ranges[i]);
        assert_int_equal(reply.status, 206);
        assert_field("Content-Range", "");
        assert_int_equal(sscanf(file_reply_field(&reply, "Content-Type"),
                                "multipart/byteranges; boundary=%60s", boundary),
                         1);
        (void)snprintf(expected, sizeof(expected),
                       "\r\n--%s\r\nContent-Type: %s\r\nContent-Range: bytes 0-1/%s\r\n\r\n%s"
                       "\r\n--%s\r\nContent-Type: %s\r\nContent-Range: bytes %s/%s\r\n\r\n%s"
                       "\r\n--%s--\r\n",
                       boundary, types[i], i == 0 ? "100" : "20000", parts[i][0], boundary,
                       types[i], i == 0 ? "97-99" : "15603-15605", i == 0 ? "100" : "20000",
                       parts[i][1], boundary);
        assert_string_equal(reply.body, expected);
        assert_int_equal(reply.length, (int64_t)strlen(expected));
        assert_true(reply.has_ended);
    }
    file_site_close(&site);
}

static void send_typed(weir_http_exchange *exchange, void *user_data)
{
    weir_http_headers *headers = weir_http_exchange_headers(exchange);

    assert_int_equal(
        weir_http_headers_add_text(headers, WEIR_HTTP_CONTENT_TYPE, "text/x-application"), 0);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_CACHE_CONTROL, "private"), 0);
    weir_http_files(exchange, user_data);
}

/* The type that the application has set is that of the file: of a part, too. */
TEST(files, have_the_type_and_the_cache_control_of_the_application)
{
    static const char part_type[] = "\r\nContent-Type: text/x-application\r\nContent-Range: ";
    struct file_site site;
    const char *fields;

    open_site(&site, OPTIONS(.max_age_seconds = 60));
    weir_embedded_release(site.embedded);
    site.embedded = exchange_open((const weir_http_route[]){
        {"*", "/files/{path*}", send_typed, .user_data = site.root}, {0}});
    for (int i = 0; i < 3; i++) {
        get(&site, "/files/large.bin",
            i == 0   ? ""
            : i == 1 ? "Range: bytes=1-2"
                     : "Range: bytes=0-1,15603-15605");
        assert_int_equal(reply.status, i == 0 ? 200 : 206);
        assert_field("Cache-Control", "private");
        fields = strstr(reply.fields, "Content-Type: ");
        assert_non_null(fields);
        assert_null(strstr(fields + 1, "Content-Type: ")); /* one */
        assert_null(strstr(strstr(reply.fields, "Cache-Control: ") + 1, "Cache-Control: "));
        if (i < 2)
            assert_field("Content-Type", "text/x-application");
        else
            assert_non_null(strstr(fields, "multipart/byteranges; boundary="));
    }
    assert_non_null(strstr(reply.body, part_type));
    assert_non_null(strstr(strstr(reply.body, part_type) + 1, part_type));
    file_site_close(&site);
}

TEST(files, floods_of_ranges_are_ignored_or_joined)
{
    struct file_site site;
    char fields[2000] = "Range: bytes=0-0";

    open_site(&site, OPTIONS(.listing = true));
    get(&site, "/files/large.bin", "Range: bytes=0-99,50-150");
    assert_int_equal(reply.status, 206);
    assert_field("Content-Range", "bytes 0-150/20000");
    for (int i = 1; i < 100; i++)
        (void)snprintf(fields + strlen(fields), 16, ",%d-%d", i * 200, i * 200);
    get(&site, "/files/large.bin", fields);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.size, 20000);
    fields[16] = '\0';
    for (int i = 1; i < 100; i++)
        (void)snprintf(fields + strlen(fields), 16, ",0-");
    get(&site, "/files/large.bin", fields);
    assert_true(reply.size <= 20000);
    file_site_close(&site);
}

TEST(files, if_range_decides_between_a_part_and_everything)
{
    struct file_site site;
    char fields[128];

    open_site(&site, OPTIONS(.listing = true));
    get(&site, "/files/a.txt", "");
    (void)snprintf(fields, sizeof(fields), "Range: bytes=0-1\nIf-Range: %s",
                   file_reply_field(&reply, "ETag"));
    get(&site, "/files/a.txt", fields);
    assert_int_equal(reply.status, 206);
    get(&site, "/files/a.txt", "Range: bytes=0-1\nIf-Range: \"old\"");
    assert_int_equal(reply.status, 200);
    get(&site, "/files/a.txt", "Range: bytes=0-1\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT");
    assert_int_equal(reply.status, 206);
    get(&site, "/files/a.txt", "Range: bytes=0-1\nIf-Range: Sun, 06 Nov 1994 08:49:38 GMT");
    assert_int_equal(reply.status, 200);
    file_site_close(&site);
}

/* ---- precompressed siblings ---- */

TEST(files, siblings_are_sent_to_clients_that_accept_them)
{
    struct file_site site;
    char identity[64];

    open_site(&site, OPTIONS(.listing = true));
    disk_tree_file(site.tree, "root/a.txt.gz", "gzipped");
    disk_tree_file(site.tree, "root/a.txt.br", "brotli");
    get(&site, "/files/a.txt", "");
    assert_string_equal(reply.body, "0123456789");
    assert_field("Vary", "Accept-Encoding");
    assert_field("Content-Encoding", "");
    (void)snprintf(identity, sizeof(identity), "%s", file_reply_field(&reply, "ETag"));
    get(&site, "/files/a.txt", "Accept-Encoding: gzip, deflate");
    assert_string_equal(reply.body, "gzipped");
    assert_field("Content-Encoding", "gzip");
    assert_field("Content-Type", "text/plain; charset=utf-8");
    assert_field("Vary", "Accept-Encoding");
    assert_string_not_equal(file_reply_field(&reply, "ETag"), identity);
    get(&site, "/files/a.txt", "Accept-Encoding: gzip\nAccept-Encoding: br");
    assert_string_equal(reply.body, "brotli");
    get(&site, "/files/a.txt", "Accept-Encoding: gzip;q=0.9, br;q=0.1");
    assert_string_equal(reply.body, "gzipped");
    get(&site, "/files/a.txt", "Accept-Encoding: identity");
    assert_string_equal(reply.body, "0123456789");
    get(&site, "/files/a.txt", "Accept-Encoding: gzip\nRange: bytes=0-1");
    assert_int_equal(reply.status, 206);
    assert_string_equal(reply.body, "gz"); /* of what is sent */
    assert_field("Content-Range", "bytes 0-1/7");
    get(&site, "/files/a.txt.gz", "");
    assert_field("Content-Type", "application/gzip");
    assert_field("Content-Encoding", "");
    file_site_close(&site);
}

/* ---- folders ---- */

TEST(files, folders_are_redirected_to_their_slash)
{
    struct file_site site;

    open_site(&site, OPTIONS(.listing = true));
    disk_tree_file(site.tree, "root/folder/index.html", "<p>");
    get(&site, "/files/folder", "");
    assert_int_equal(reply.status, 301);
    assert_field("Location", "/files/folder/");
    get(&site, "/files/folder?a=1&b=%20", "");
    assert_field("Location", "/files/folder/?a=1&b=%20");
    get(&site, "/files/folder/", "");
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body, "<p>");
    assert_field("Content-Type", "text/html; charset=utf-8");
    file_site_close(&site);
}

/* No file has a slash in its name, also if the route lets one pass. */
TEST(files, an_encoded_slash_is_no_separator_of_folders)
{
    struct file_site site;

    file_site_open(&site, OPTIONS(.listing = true));
    disk_tree_folder(site.tree, "root/folder");
    disk_tree_file(site.tree, "root/folder/b.txt", "b");
    weir_embedded_release(site.embedded);
    site.embedded = exchange_open((const weir_http_route[]){
        {"GET", "/{path*}", weir_http_files, .user_data = site.root, .encoded_slashes = true},
        {"GET", "/one/{path}", weir_http_files, .user_data = site.root},
        {0}});
    disk_tree_file(site.tree, "root/c.txt", "c");
    get(&site, "/one/%63.txt", "");
    assert_int_equal(reply.status, 200);
    get(&site, "/one/folder%2Fb.txt", "");
    assert_int_equal(reply.status, 404);
    get(&site, "/folder/%62.txt", "");
    assert_int_equal(reply.status, 200);
    get(&site, "/folder%2Fb.txt", "");
    assert_int_equal(reply.status, 404);
    get(&site, "/folder%2f", "");
    assert_int_equal(reply.status, 404);
    file_site_close(&site);
}

TEST(files, a_redirection_never_names_another_host)
{
    const weir_http_route routes[] = {{"GET", "/{path*}", weir_http_files}, {0}};
    struct file_site site;
    weir_http_route route = routes[0];
    weir_http_router *router = NULL;

    file_site_open(&site, OPTIONS(.listing = true));
    disk_tree_folder(site.tree, "root/example.org");
    route.user_data = site.root;
    assert_int_equal(weir_http_router_create((const weir_http_route[]){route, {0}}, &router), 0);
    weir_embedded_release(site.embedded);
    assert_int_equal(weir_embedded_create(NULL, &site.embedded), 0);
    assert_int_equal(weir_http_router_add(weir_embedded_pipeline(site.embedded), router, 0), 0);
    get(&site, "/example.org", "");
    assert_field("Location", "/example.org/");
    get(&site, "//example.org", "");
    assert_int_equal(reply.status, 404);
    get(&site, "///example.org", "");
    assert_int_equal(reply.status, 404);
    get(&site, "/%2Fexample.org", "");
    assert_int_equal(reply.status, 404);
    weir_http_router_release(router);
    file_site_close(&site);
}

TEST(files, folders_are_listed_only_if_wanted)
{
    struct file_site site;

    open_site(&site, OPTIONS(.dotfiles = true));
    get(&site, "/files/", "");
    assert_int_equal(reply.status, 404);
    file_site_close(&site);
    open_site(&site, OPTIONS(.listing = true, .index_files = (const char *const[]){NULL}));
    disk_tree_file(site.tree, "root/index.html", "not an index file here");
    get(&site, "/files/", "Range: bytes=0-1");
    assert_int_equal(reply.status, 200);
    assert_non_null(strstr(reply.body, "index.html"));
    assert_field("Content-Type", "text/html; charset=utf-8");
    assert_field("ETag", "");
    assert_field("Last-Modified", "");
    file_site_get(&site, "HEAD", "/files/", "", &reply);
    assert_int_equal(reply.status, 200);
    assert_true(reply.length > 100);
    assert_int_equal(reply.size, 0);
    file_site_close(&site);
}

/* ---- paths ---- */

static const char *const tricks[] = {
    "/files/../secret.txt",
    "/files/%2e%2e/secret.txt",
    "/files/%2E%2e%2fsecret.txt",
    "/files/..%2fsecret.txt",
    "/files/.%2e/secret.txt",
    "/files/%252e%252e/secret.txt",
    "/files/%252e%252e%252fsecret.txt",
    "/files/folder/../../secret.txt",
    "/files/folder/%2e%2e/%2e%2e/secret.txt",
    "/files/..%5csecret.txt",
    "/files/..%255csecret.txt",
    "/files/%5c..%5csecret.txt",
    "/files//etc/passwd",
    "/files/%2fetc%2fpasswd",
    "/files///etc/passwd",
    "/files/a.txt%00",
    "/files/a.txt%00.html",
    "/files/%00",
    "/files/..%00/secret.txt",
    "/files/%c0%ae%c0%ae/secret.txt",
    "/files/%c0%ae%c0%ae%c0%afsecret.txt",
    "/files/%e0%80%ae%e0%80%ae/secret.txt",
    "/files/%f0%80%80%ae%f0%80%80%ae/secret.txt",
    "/files/..;/secret.txt",
    "/files/.../secret.txt",
    "/files/..../secret.txt",
    "/files/%2e",
    "/files/.",
    "/files/./a.txt",
    "/files/folder/./b.txt",
    "/files/folder/.",
    "/files/folder/..",
    "/files/folder/../a.txt",
    "/files/a.txt/",
    "/files/a.txt/..",
    "/files/a.txt/../../secret.txt",
    "/files/link",
    "/files/link_out",
    "/files/link_root/etc/passwd",
    "/files/link_proc/etc/passwd",
    "/files/link_up/secret.txt",
    "/files/proc/self/root/etc/passwd",
    "/files/.hidden",
    "/files/.git/config",
    "/files/folder/.hidden",
    "/files/%2ehidden",
    "/files/pipe",
    "/files/a.txt%0a",
    "/files/a.txt%20",
    "/files/A.TXT",
    "/files/a.txt.",
    "/files/a.txt::$DATA",
    "/files/~root",
    "/files/C:/secret.txt",
    "/files/%zz",
    "/files/%",
};

static void open_tricky_site(struct file_site *site, const weir_http_files_options *options)
{
    open_site(site, options);
    disk_tree_file(site->tree, "root/folder/b.txt", "b");
    disk_tree_file(site->tree, "root/.hidden", "hidden");
    disk_tree_file(site->tree, "root/.git/config", "hidden");
    disk_tree_file(site->tree, "root/folder/.hidden", "hidden");
    disk_tree_link(site->tree, "root/link", "a.txt");
    disk_tree_link(site->tree, "root/link_out", "../secret.txt");
    disk_tree_link(site->tree, "root/link_root", "/");
    disk_tree_link(site->tree, "root/link_proc", "/proc/self/root");
    disk_tree_link(site->tree, "root/link_up", "..");
    disk_tree_pipe(site->tree, "root/pipe");
}

static void try_tricks(struct file_site *site, bool with_links)
{
    char target[600];

    for (size_t i = 0; i < sizeof(tricks) / sizeof(*tricks); i++) {
        bool is_link = strcmp(tricks[i], "/files/link") == 0;

        get(site, tricks[i], "");
        if (with_links && is_link)
            assert_int_equal(reply.status, 200);
        else if (reply.status != 404 && reply.status != 400)
            fail_msg("%s: %d", tricks[i], reply.status);
        assert_null(strstr(reply.body, "secret"));
        assert_null(strstr(reply.body, "root:"));
        assert_null(strstr(reply.body, "hidden"));
    }
    for (size_t length = 250; length < 520; length += 10) {
        (void)snprintf(target, sizeof(target), "/files/%0*d", (int)length, 0);
        get(site, target, "");
        assert_int_equal(reply.status, 404);
    }
    get(site, "/files/folder/b.txt", "");
    assert_int_equal(reply.status, 200);
    get(site, "/files/folder%2fb.txt", "");
    assert_int_equal(reply.status, 404);
    get(site, "/files/f%6flder/b.txt", "");
    assert_int_equal(reply.status, 200);
}

TEST(files, a_path_never_leaves_the_root)
{
    struct file_site site;

    for (int links = 0; links < 2; links++) {
        open_tricky_site(&site, OPTIONS(.links = links == 1));
        try_tricks(&site, links == 1);
        file_site_close(&site);
    }
}

TEST(files, a_path_never_leaves_the_root_without_openat2)
{
    struct file_site site;

    for (int links = 0; links < 2; links++) {
        disk_faults_install();
        disk_faults_refuse_openat2(links == 0 ? ENOSYS : EPERM);
        open_tricky_site(&site, OPTIONS(.links = links == 1));
        try_tricks(&site, links == 1);
        assert_true(disk_faults_calls(DISK_OPENAT) > 10);
        file_site_close(&site);
        disk_faults_remove();
    }
}

TEST(files, very_long_paths_are_not_found)
{
    struct file_site site;
    char *target = malloc(9000);

    assert_non_null(target);
    open_site(&site, OPTIONS(.links = true));
    (void)snprintf(target, 9000, "/files/");
    for (int i = 7; i < 8000; i += 2)
        memcpy(target + i, "a/", 3);
    get(&site, target, "");
    assert_int_equal(reply.status, 404);
    free(target);
    file_site_close(&site);
}

TEST(files, dotfiles_are_served_if_allowed)
{
    struct file_site site;

    open_site(&site, OPTIONS(.dotfiles = true));
    disk_tree_file(site.tree, "root/.well-known/x", "known");
    get(&site, "/files/.well-known/x", "");
    assert_string_equal(reply.body, "known");
    get(&site, "/files/../secret.txt", "");
    assert_int_equal(reply.status, 404);
    file_site_close(&site);
}

/* ---- the cache ---- */

TEST(files, changes_are_seen_after_the_lifetime)
{
    struct file_site site;

    disk_faults_install();
    open_site(&site, OPTIONS(.cache_lifetime_ns = weir_ms(100)));
    get(&site, "/files/a.txt", "");
    disk_tree_file(site.tree, "root/a.txt", "changed");
    get(&site, "/files/a.txt", "");
    assert_string_equal(reply.body, "0123456789");
    assert_int_equal(disk_faults_calls(DISK_FSTAT), 1); /* the second one was kept */
    weir_embedded_advance(site.embedded, weir_ms(100));
    get(&site, "/files/a.txt", "");
    assert_string_equal(reply.body, "changed");
    disk_tree_remove(site.tree, "root/a.txt");
    weir_embedded_advance(site.embedded, weir_ms(100));
    get(&site, "/files/a.txt", "");
    assert_int_equal(reply.status, 404);
    file_site_close(&site);
    disk_faults_remove();
}

TEST(files, nothing_is_kept_without_a_cache)
{
    struct file_site site;

    open_site(&site, OPTIONS(.cache_lifetime_ns = WEIR_OFF));
    get(&site, "/files/a.txt", "");
    disk_tree_file(site.tree, "root/a.txt", "changed");
    get(&site, "/files/a.txt", "");
    assert_string_equal(reply.body, "changed");
    file_site_close(&site);
}

TEST(files, what_is_small_is_an_option)
{
    struct file_site site;

    open_site(&site, OPTIONS(.cache_file_size = 9));
    get(&site, "/files/a.txt", "");
    assert_true(reply.has_range);
    assert_string_equal(reply.body, "0123456789");
    file_site_close(&site);
    open_site(&site, OPTIONS(.cache_file_size = 20000));
    get(&site, "/files/large.bin", "");
    assert_false(reply.has_range);
    assert_int_equal(reply.size, 20000);
    file_site_close(&site);
}

TEST(files, a_lack_of_descriptors_empties_the_cache)
{
    struct file_site site;

    log_capture_start();
    disk_faults_install();
    open_site(&site, OPTIONS(.cache_lifetime_ns = weir_ms(100)));
    disk_faults_inject(DISK_OPENAT2, 1, EMFILE);
    get(&site, "/files/a.txt", "");
    assert_int_equal(disk_faults_injected(), 1);
    assert_int_equal(reply.status, 200);
    disk_faults_refuse_openat2(EMFILE);
    get(&site, "/files/large.bin", "");
    assert_int_equal(reply.status, 503);
    assert_log_contains("large.bin");
    disk_faults_refuse_openat2(EIO);
    get(&site, "/files/large.bin", "");
    assert_int_equal(reply.status, 500);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    file_site_close(&site);
    disk_faults_remove();
}

/* ---- other threads ---- */

static int do_nothing(void *arg, int status, void **ret_value)
{
    (void)arg;
    (void)status;
    (void)ret_value;
    return 0;
}

/* Waits until the tasks before have run: the group has one thread. */
static void wait_for_group(weir_group *group)
{
    weir_promise *promise = NULL;

    assert_int_equal(weir_group_submit(group, do_nothing, NULL, &promise), 0);
    assert_int_equal(weir_promise_await(promise, weir_ms(10000)), 0);
    weir_promise_release(promise);
}

TEST(files, are_opened_on_the_threads_of_a_group)
{
    struct file_site site;
    weir_group *group = NULL;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &group), 0);
    open_site(&site, OPTIONS(.group = group));
    file_site_put(&site, "GET", "/files/large.bin", "");
    wait_for_group(group);
    weir_embedded_run(site.embedded);
    file_site_read(&site, &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.size, 20000);
    assert_true(reply.has_ended);
    get(&site, "/files/large.bin", ""); /* at once */
    assert_int_equal(reply.status, 200);
    file_site_close(&site);
    assert_int_equal(weir_group_shutdown(group, 0, weir_ms(5000)), 0);
    weir_group_release(group);
}

TEST(files, a_client_that_has_gone_meanwhile_is_no_problem)
{
    struct file_site site;
    weir_group *group = NULL;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &group), 0);
    open_site(&site, OPTIONS(.group = group));
    file_site_put(&site, "GET", "/files/large.bin", "");
    weir_channel_abort(weir_embedded_channel(site.embedded), NULL);
    weir_embedded_run(site.embedded);
    wait_for_group(group);
    weir_embedded_run(site.embedded);
    file_site_close(&site);
    assert_int_equal(weir_group_shutdown(group, 0, weir_ms(5000)), 0);
    weir_group_release(group);
}

TEST(files, a_root_may_go_while_a_file_is_being_opened)
{
    weir_http_files_root *root;
    struct file_site site;
    weir_group *group = NULL;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &group), 0);
    open_site(&site, OPTIONS(.group = group));
    file_site_put(&site, "GET", "/files/a.txt", "");
    root = site.root;
    site.root = NULL;
    weir_http_files_root_release(root);
    wait_for_group(group);
    weir_embedded_run(site.embedded);
    file_site_read(&site, &reply);
    assert_string_equal(reply.body, "0123456789");
    file_site_close(&site);
    assert_int_equal(weir_group_shutdown(group, 0, weir_ms(5000)), 0);
    weir_group_release(group);
}

TEST(files, a_file_that_becomes_shorter_while_it_is_read_is_opened_again)
{
    struct file_site site;

    disk_faults_install();
    open_site(&site, OPTIONS(.listing = true));
    disk_faults_inject(DISK_PREAD, 1, DISK_END_OF_FILE);
    get(&site, "/files/a.txt", "");
    assert_int_equal(disk_faults_injected(), 1);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body, "0123456789");
    file_site_close(&site);
    disk_faults_remove();
}

TEST(files, a_group_that_has_ended_is_unavailable)
{
    struct file_site site;
    weir_group *group = NULL;

    log_capture_start();
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &group), 0);
    open_site(&site, OPTIONS(.group = group));
    assert_int_equal(weir_group_shutdown(group, 0, weir_ms(5000)), 0);
    assert_int_equal(weir_group_await_termination(group, weir_ms(5000)), 0);
    get(&site, "/files/a.txt", "");
    assert_int_equal(reply.status, 503);
    file_site_close(&site);
    weir_group_release(group);
}

TEST(files, a_root_has_threads_of_its_own_by_default)
{
    weir_http_files_root *root = NULL;

    assert_int_equal(weir_http_files_root_create(OPTIONS(.root = "/tmp"), &root), 0);
    weir_http_files_root_release(weir_http_files_root_retain(root));
    weir_http_files_root_release(root);
    weir_http_files_root_release(NULL);
}

/* ---- with handlers that have to see the bytes, such as TLS ---- */

/* Adds handlers before those of the site. */
static void read_files(struct file_site *site)
{
    const weir_http_route routes[] = {
        {"GET", "/files/{path*}", weir_http_files, .user_data = site->root}, {0}};
    weir_http_router *router = NULL;
    weir_pipeline *pipeline;

    weir_embedded_release(site->embedded);
    assert_int_equal(weir_embedded_create(NULL, &site->embedded), 0);
    pipeline = weir_embedded_pipeline(site->embedded);
    assert_int_equal(weir_http_router_create(routes, &router), 0);
    assert_int_equal(weir_chunked_writing_add(pipeline), 0);
    assert_int_equal(weir_file_reading_add(pipeline), 0);
    assert_int_equal(weir_http_router_add(pipeline, router, 0), 0);
    weir_http_router_release(router);
}

TEST(files, are_read_for_handlers_that_need_bytes)
{
    struct file_site site;

    open_site(&site, OPTIONS(.listing = true));
    read_files(&site);
    get(&site, "/files/large.bin", "");
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.size, 20000);
    assert_false(reply.has_range);
    assert_true(reply.has_ended);
    get(&site, "/files/large.bin", "Range: bytes=0-1,10000-10001");
    assert_int_equal(reply.status, 206);
    assert_int_equal(reply.length, (int64_t)reply.size);
    file_site_close(&site);
}

TEST(files, that_become_shorter_close_the_channel)
{
    struct file_site site;

    log_capture_start();
    open_site(&site, OPTIONS(.listing = true));
    read_files(&site);
    get(&site, "/files/large.bin", "");
    disk_tree_truncate(site.tree, "root/large.bin", 100);
    get(&site, "/files/large.bin", "");
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.size, 100);
    assert_false(weir_channel_is_open(weir_embedded_channel(site.embedded)));
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_log_contains("could not be sent");
    file_site_close(&site);
}

/* ---- options and failures ---- */

TEST(files, options_are_checked)
{
    static const char *const path[] = {"a/b", NULL}, *const dots[] = {"..", NULL},
                             *const none[] = {"", NULL};
    weir_http_files_root *root = NULL;

    assert_options_rejected(weir_http_files_root_create(NULL, &root), "root");
    assert_options_rejected(
        weir_http_files_root_create(OPTIONS(.root = "/tmp", .index_files = path), &root), "a/b");
    assert_options_rejected(
        weir_http_files_root_create(OPTIONS(.root = "/tmp", .index_files = dots), &root), "..");
    assert_options_rejected(
        weir_http_files_root_create(OPTIONS(.root = "/tmp", .index_files = none), &root), "index");
    assert_options_rejected(
        weir_http_files_root_create(OPTIONS(.root = "/tmp", .max_listing = -1), &root), "listing");
    assert_options_rejected(
        weir_http_files_root_create(OPTIONS(.root = "/tmp", .cache_file_size = 2 << 20), &root),
        "cache_file_size");
    assert_int_equal(weir_http_files_root_create(OPTIONS(.root = "/nonexistent"), &root), -ENOENT);
    assert_int_equal(weir_http_files_root_create(OPTIONS(.root = "/etc/passwd"), &root), -ENOTDIR);
    assert_null(root);
}

static void get_everything(struct file_site *site)
{
    static const char *const targets[] = {"/files/a.txt", "/files/large.bin", "/files/folder",
                                          "/files/",      "/files/a.txt",     "/files/large.bin"};
    static const char *const fields[] = {
        "", "", "", "", "Range: bytes=0-1,-2", "Range: bytes=0-1,9999-10000"};

    for (int i = 0; i < 6; i++) {
        if (weir_channel_is_open(weir_embedded_channel(site->embedded)))
            get(site, targets[i], fields[i]);
    }
}

TEST(files, survive_a_lack_of_memory)
{
    bool failed;
    unsigned n = 0;

    log_capture_start();
    do {
        struct file_site site;

        open_site(&site, OPTIONS(.listing = true));
        disk_tree_folder(site.tree, "root/folder");
        test_memory_fail_at(++n);
        get_everything(&site);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        file_site_close(&site);
    } while (failed);
    assert_true(n > 20);
}

TEST(files, a_root_survives_a_lack_of_memory)
{
    unsigned n = 0;
    bool failed;

    do {
        weir_http_files_root *root = NULL;
        int err;

        test_memory_fail_at(++n);
        err = weir_http_files_root_create(OPTIONS(.root = "/tmp"), &root);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(err, failed ? -ENOMEM : 0);
        weir_http_files_root_release(root);
    } while (failed);
    assert_true(n > 5);
}

TEST(files, survive_failures_of_the_file_system)
{
    struct file_site site;
    unsigned failures = 0;

    log_capture_start();
    for (int call = 0; call < DISK_CALL_COUNT; call++) {
        for (unsigned n = 1;; n++) {
            unsigned injected;

            disk_faults_install();
            open_site(&site, OPTIONS(.listing = true, .cache_lifetime_ns = WEIR_OFF));
            disk_tree_folder(site.tree, "root/folder");
            disk_faults_inject((enum disk_call)call, n, EIO);
            get_everything(&site);
            injected = disk_faults_injected();
            file_site_close(&site);
            disk_faults_remove();
            if (injected == 0)
                break;
            failures++;
        }
    }
    assert_true(failures > 20);
}
