/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/mime.h"

#include <stdio.h>

#include "support/test.h"

TEST(mime, is_found_by_the_extension)
{
    assert_string_equal(weir__http_mime_type("index.html"), "text/html");
    assert_string_equal(weir__http_mime_type("a/b.c/INDEX.HTM"), "text/html");
    assert_string_equal(weir__http_mime_type("a.tar.gz"), "application/gzip");
    assert_string_equal(weir__http_mime_type("movie.3gp"), "video/3gpp");
    assert_string_equal(weir__http_mime_type("last.zst"), "application/zstd");
    assert_string_equal(weir__http_mime_type("font.woff2"), "font/woff2");
    assert_string_equal(weir__http_mime_type("code.mjs"), "text/javascript");
    assert_string_equal(weir__http_mime_type("code.wasm"), "application/wasm");
}

TEST(mime, is_bytes_if_nothing_is_known)
{
    assert_string_equal(weir__http_mime_type("README"), "application/octet-stream");
    assert_string_equal(weir__http_mime_type(""), "application/octet-stream");
    assert_string_equal(weir__http_mime_type("a."), "application/octet-stream");
    assert_string_equal(weir__http_mime_type("a.html/b"), "application/octet-stream");
    assert_string_equal(weir__http_mime_type("a.htmlx"), "application/octet-stream");
}

TEST(mime, every_row_of_the_table_is_found)
{
    static const char *const names[] = {
        "aac", "avif", "bz2", "css",  "csv",  "docx", "eot", "flac", "gif", "h",   "heic",
        "ico", "ics",  "jpg", "js",   "json", "jxl",  "m4a", "map",  "md",  "mp3", "mp4",
        "odt", "ogg",  "otf", "pdf",  "png",  "pptx", "rss", "rtf",  "svg", "tar", "ttf",
        "txt", "vtt",  "wav", "webm", "webp", "xls",  "xml", "xz",   "yml", "zip", "webmanifest"};
    char name[32];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        (void)snprintf(name, sizeof(name), "x.%s", names[i]);
        assert_string_not_equal(weir__http_mime_type(name), "application/octet-stream");
    }
}

TEST(mime, only_text_has_a_charset)
{
    assert_true(weir__http_mime_is_text("text/css"));
    assert_false(weir__http_mime_is_text("application/xml"));
    assert_false(weir__http_mime_is_text("image/png"));
}
