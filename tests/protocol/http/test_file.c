/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "protocol/http/disk.h"
#include "support/memory.h"
#include "support/protocol/http/disk_faults.h"
#include "support/protocol/http/disk_tree.h"
#include "support/test.h"

static char first_index[] = "index.html", second_index[] = "index.htm";
static char *index_files[] = {first_index, second_index, NULL};

struct site {
    disk_tree *tree;
    weir__http_file_rules rules;
};

static struct site make_site(void)
{
    struct site site = {.tree = disk_tree_create(),
                        .rules = {.index_files = index_files,
                                  .charset = "utf-8",
                                  .small = 100,
                                  .precompressed = true,
                                  .max_listing = 100}};

    disk_tree_file(site.tree, "root/a.txt", "hello");
    disk_tree_folder(site.tree, "root/empty");
    disk_faults_install();
    assert_int_equal(weir__http_disk_open_root(disk_tree_path(site.tree, "root"), &site.rules.root),
                     0);
    return site;
}

static void end_site(struct site *site)
{
    weir__http_disk_close(site->rules.root);
    disk_faults_remove();
    disk_tree_destroy(site->tree);
}

static weir__http_file *open_file(const struct site *site, const char *path)
{
    weir__http_file *file = NULL;

    assert_int_equal(weir__http_file_open(&site->rules, path, &file), 0);
    return file;
}

static int failure_of(const struct site *site, const char *path)
{
    weir__http_file *file;

    return weir__http_file_open(&site->rules, path, &file);
}

static bool is_valid(const char *path)
{
    return weir__http_file_path_is_valid(weir_span_of_text(path), false);
}

TEST(file, paths_have_segments_that_are_names)
{
    assert_true(is_valid(""));
    assert_true(is_valid("a"));
    assert_true(is_valid("a/b/c.txt"));
    assert_true(is_valid("a/"));
    assert_true(is_valid("a..b/c.."));   /* not dots only */
    assert_true(is_valid("\xc3\xa4 b")); /* any bytes above ASCII, and blanks */
    assert_true(is_valid("%2e%2e"));
    assert_false(is_valid("/"));
    assert_false(is_valid("/etc/passwd"));
    assert_false(is_valid("a//b"));
    assert_false(is_valid("a//"));
    assert_false(is_valid(".."));
    assert_false(is_valid("a/.."));
    assert_false(is_valid("a/../b"));
    assert_false(is_valid("."));
    assert_false(is_valid("a/./b"));
    assert_false(is_valid(".git/config"));
    assert_false(is_valid("a/.htaccess"));
    assert_false(is_valid("a\\..\\b"));
    assert_false(is_valid("a\nb"));
    assert_false(is_valid("a\x7f"));
    assert_false(weir__http_file_path_is_valid(weir_span_of("a\0b", 3), true));
}

TEST(file, dots_at_the_beginning_may_be_allowed_but_not_the_folders_of_dots)
{
    assert_true(weir__http_file_path_is_valid(weir_span_of_text(".well-known/x"), true));
    assert_true(weir__http_file_path_is_valid(weir_span_of_text("..."), true));
    assert_false(weir__http_file_path_is_valid(weir_span_of_text("."), true));
    assert_false(weir__http_file_path_is_valid(weir_span_of_text(".."), true));
    assert_false(weir__http_file_path_is_valid(weir_span_of_text("a/../b"), true));
}

TEST(file, paths_and_segments_have_a_length)
{
    char *path = malloc(5000);

    assert_non_null(path);
    memset(path, 'a', 5000);
    assert_true(weir__http_file_path_is_valid(weir_span_of(path, 255), false));
    assert_false(weir__http_file_path_is_valid(weir_span_of(path, 256), false));
    for (int i = 1; i < 5000; i += 2)
        path[i] = '/';
    assert_true(weir__http_file_path_is_valid(weir_span_of(path, 4095), false));
    assert_false(weir__http_file_path_is_valid(weir_span_of(path, 4096), false));
    free(path);
}

TEST(file, small_files_are_bytes_and_others_descriptors)
{
    struct site site = make_site();
    weir__http_file *file = open_file(&site, "a.txt");
    char large[101];

    assert_int_equal(file->kind, WEIR__HTTP_FILE_CONTENT);
    assert_int_equal(file->count, 1);
    assert_string_equal(file->type, "text/plain; charset=utf-8");
    assert_int_equal(file->representations[0].size, 5);
    assert_memory_equal(weir_buf_bytes(file->representations[0].bytes), "hello", 5);
    assert_null(file->representations[0].range);
    assert_int_equal(file->descriptors, 0);
    weir__http_file_release(file);

    memset(large, 'x', sizeof(large));
    disk_tree_bytes(site.tree, "root/large.png", large, sizeof(large));
    file = open_file(&site, "large.png");
    assert_string_equal(file->type, "image/png");
    assert_null(file->representations[0].bytes);
    assert_int_equal(weir_file_range_length(file->representations[0].range), 101);
    assert_int_equal(file->descriptors, 1);
    weir__http_file_release(file);

    disk_tree_file(site.tree, "root/none.css", "");
    file = open_file(&site, "none.css");
    assert_int_equal(file->representations[0].size, 0);
    weir__http_file_release(file);
    end_site(&site);
}

TEST(file, the_tag_and_the_date_follow_the_file)
{
    struct site site = make_site();
    weir__http_file *before, *after;

    disk_tree_set_time(site.tree, "root/a.txt", 784111777);
    before = open_file(&site, "a.txt");
    assert_string_equal(before->representations[0].modified, "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_int_equal(before->representations[0].modified_seconds, 784111777);
    assert_int_equal(before->representations[0].etag[0], '"');
    after = open_file(&site, "a.txt");
    assert_string_equal(after->representations[0].etag, before->representations[0].etag);
    weir__http_file_release(after);

    disk_tree_remove(site.tree, "root/a.txt"); /* the same size and time, but another file */
    disk_tree_file(site.tree, "root/other", "");
    disk_tree_file(site.tree, "root/a.txt", "HELLO");
    disk_tree_set_time(site.tree, "root/a.txt", 784111778);
    after = open_file(&site, "a.txt");
    assert_string_not_equal(after->representations[0].etag, before->representations[0].etag);
    weir__http_file_release(after);
    weir__http_file_release(before);

    disk_tree_set_time(site.tree, "root/a.txt", -100); /* before 1970 */
    after = open_file(&site, "a.txt");
    assert_string_equal(after->representations[0].modified, "Thu, 01 Jan 1970 00:00:00 GMT");
    weir__http_file_release(after);
    end_site(&site);
}

TEST(file, precompressed_siblings_are_other_representations)
{
    struct site site = make_site();
    weir__http_file *file;

    disk_tree_file(site.tree, "root/a.txt.gz", "gz");
    disk_tree_file(site.tree, "root/a.txt.br", "b");
    disk_tree_folder(site.tree, "root/a.txt.zst"); /* not a file */
    file = open_file(&site, "a.txt");
    assert_int_equal(file->count, 3);
    assert_null(file->representations[0].coding);
    assert_string_equal(file->representations[1].coding, "br");
    assert_string_equal(file->representations[2].coding, "gzip");
    assert_int_equal(file->representations[2].size, 2);
    assert_string_not_equal(file->representations[0].etag, file->representations[1].etag);
    assert_int_equal(disk_faults_open_files(), 1); /* the root */
    assert_string_equal(file->type, "text/plain; charset=utf-8");
    weir__http_file_release(file);
    site.rules.precompressed = false;
    file = open_file(&site, "a.txt");
    assert_int_equal(file->count, 1);
    weir__http_file_release(file);
    end_site(&site);
}

TEST(file, folders_have_an_index_file_or_nothing)
{
    struct site site = make_site();
    weir__http_file *file = open_file(&site, "empty");

    assert_int_equal(file->kind, WEIR__HTTP_FILE_FOLDER);
    weir__http_file_release(file);
    assert_int_equal(failure_of(&site, ""), -ENOENT);
    assert_int_equal(failure_of(&site, "empty/"), -ENOENT);
    assert_int_equal(failure_of(&site, "a.txt/"), -ENOTDIR);
    disk_tree_folder(site.tree, "root/empty/index.html"); /* not a file */
    disk_tree_file(site.tree, "root/empty/index.htm", "second");
    file = open_file(&site, "empty/");
    assert_int_equal(file->representations[0].size, 6);
    assert_int_equal(disk_faults_open_files(), 1); /* the root */
    assert_string_equal(file->type, "text/html; charset=utf-8");
    weir__http_file_release(file);
    end_site(&site);
}

/* ---- listings ---- */

static char *list(struct site *site, const char *path)
{
    weir__http_file *file;
    char *text;

    site->rules.listing = true;
    file = open_file(site, path);
    assert_string_equal(file->type, "text/html; charset=utf-8");
    assert_string_equal(file->representations[0].etag, "");
    text = strndup((const char *)weir_buf_bytes(file->representations[0].bytes),
                   weir_buf_readable(file->representations[0].bytes));
    assert_non_null(text);
    weir__http_file_release(file);
    return text;
}

static void assert_in_order(const char *text, const char *first, const char *second)
{
    const char *at = strstr(text, first), *then = strstr(text, second);

    assert_non_null(at);
    assert_non_null(then);
    assert_true(at < then);
}

TEST(listing, is_sorted_with_folders_first)
{
    struct site site = make_site();
    char *text;

    disk_tree_file(site.tree, "root/Z.txt", "");
    disk_tree_folder(site.tree, "root/zoo");
    text = list(&site, "");
    assert_in_order(text, "./empty/\">empty/</a>", "./zoo/\">zoo/</a>");
    assert_in_order(text, "./zoo/\"", "./Z.txt\"");
    assert_in_order(text, "./Z.txt\"", "./a.txt\">a.txt</a></td><td>5</td>");
    assert_null(strstr(text, "../"));
    assert_non_null(strstr(text, "Index of /<"));
    free(text);
    text = list(&site, "empty/");
    assert_non_null(strstr(text, "../"));
    assert_non_null(strstr(text, "Index of /empty/<"));
    free(text);
    end_site(&site);
}

TEST(listing, escapes_names)
{
    struct site site = make_site();
    char *text;

    disk_tree_file(site.tree, "root/<script>alert('x')&\"", "");
    disk_tree_file(site.tree, "root/javascript:alert(1)", "");
    disk_tree_file(site.tree, "root/50% of #1?.txt", "");
    disk_tree_file(site.tree, "root/\xc3\xa4", "");
    text = list(&site, "");
    assert_null(strstr(text, "<script>"));
    assert_non_null(strstr(text, ">&lt;script&gt;alert(&#39;x&#39;)&amp;&quot;</a>"));
    assert_non_null(strstr(text, "href=\"./%3Cscript%3Ealert%28%27x%27%29%26%22\""));
    assert_null(strstr(text, "href=\"javascript"));
    assert_non_null(strstr(text, "href=\"./50%25%20of%20%231%3F.txt\""));
    assert_non_null(strstr(text, "href=\"./%C3%A4\">\xc3\xa4</a>"));
    free(text);
    end_site(&site);
}

TEST(listing, shows_only_what_a_request_would_get)
{
    struct site site = make_site();
    char *text;

    disk_tree_file(site.tree, "root/.hidden", "");
    disk_tree_file(site.tree, "root/back\\slash", "");
    disk_tree_link(site.tree, "root/link", "a.txt");
    disk_tree_link(site.tree, "root/out", "../outside");
    disk_tree_file(site.tree, "outside", "");
    disk_tree_pipe(site.tree, "root/pipe");
    text = list(&site, "");
    assert_null(strstr(text, "hidden"));
    assert_null(strstr(text, "slash"));
    assert_null(strstr(text, "link"));
    assert_null(strstr(text, "out"));
    assert_null(strstr(text, "pipe"));
    free(text);
    site.rules.disk_flags = WEIR__HTTP_DISK_LINKS;
    site.rules.dotfiles = true;
    text = list(&site, "");
    assert_non_null(strstr(text, ".hidden"));
    assert_non_null(strstr(text, ">link</a></td><td>5</td>"));
    assert_null(strstr(text, "out"));
    free(text);
    end_site(&site);
}

TEST(listing, is_bounded)
{
    struct site site = make_site();
    char path[32], *text;

    for (int i = 0; i < 200; i++) {
        (void)snprintf(path, sizeof(path), "root/many/%d", i);
        disk_tree_file(site.tree, path, "");
    }
    text = list(&site, "many/");
    assert_non_null(strstr(text, "There are more."));
    free(text);
    site.rules.max_listing = 200;
    text = list(&site, "many/");
    assert_null(strstr(text, "There are more."));
    free(text);
    end_site(&site);
}

/* ---- failures ---- */

static void open_everything(const struct site *site)
{
    static const char *const paths[] = {"a.txt", "large", "", "empty", "missing"};

    for (size_t i = 0; i < 5; i++) {
        weir__http_file *file = NULL;

        if (weir__http_file_open(&site->rules, paths[i], &file) == 0)
            assert_non_null(file);
        else
            assert_null(file);
        weir__http_file_release(file);
    }
}

static struct site make_rich_site(void)
{
    struct site site = make_site();
    char large[200] = "";

    disk_tree_bytes(site.tree, "root/large", large, sizeof(large));
    disk_tree_file(site.tree, "root/a.txt.gz", "gz");
    disk_tree_bytes(site.tree, "root/large.br", large, sizeof(large));
    site.rules.listing = true;
    return site;
}

TEST(file, survives_a_lack_of_memory)
{
    struct site site = make_rich_site();
    bool failed;
    unsigned n = 0;

    do {
        test_memory_fail_at(++n);
        open_everything(&site);
        failed = test_memory_failed();
        test_memory_fail_at(0);
    } while (failed);
    assert_true(n > 8);
    end_site(&site);
}

TEST(file, survives_failures_of_the_file_system)
{
    static const int errors[] = {EIO, EMFILE, ENOENT};
    struct site site = make_rich_site();
    unsigned failures = 0;

    for (int call = 0; call < DISK_CALL_COUNT; call++) {
        for (unsigned n = 1;; n++) {
            disk_faults_inject((enum disk_call)call, n, errors[n % 3]);
            open_everything(&site);
            if (disk_faults_injected() == 0)
                break;
            failures++;
        }
    }
    assert_true(failures > 20);
    disk_faults_inject(DISK_PREAD, 1, EIO);
    assert_int_equal(failure_of(&site, "a.txt"), -EIO);
    disk_faults_inject(DISK_GETDENTS64, 1, EIO);
    assert_int_equal(failure_of(&site, ""), -EIO);
    end_site(&site);
}
