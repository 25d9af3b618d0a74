/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/listing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http_uri.h>
#include <weir/memory.h>

#include "protocol/http/date.h"
#include "protocol/http/disk.h"

/* More is not looked at: a folder may have millions of entries. */
#define FULL 1

struct entry {
    char *name;
    int64_t size;
    int64_t modified_seconds;
    bool is_folder;
};

struct listing {
    const weir__http_file_rules *rules;
    const char *path;
    int folder;
    bool is_complete;
    size_t count;
    size_t capacity;
    struct entry *entries;
};

/* ---- entries ---- */

static int grow(struct listing *listing)
{
    size_t capacity = listing->capacity > 0 ? 2 * listing->capacity : 64;
    struct entry *entries = weir_memory_realloc(listing->entries, capacity * sizeof(*entries));

    if (entries == NULL)
        return -ENOMEM;
    listing->entries = entries;
    listing->capacity = capacity;
    return 0;
}

/* False if a request for the entry would not be answered. */
static bool look_up(const struct listing *listing, const char *name, weir__http_disk_info *ret_info)
{
    const weir__http_file_rules *rules = listing->rules;
    char path[PATH_MAX + NAME_MAX + 1];
    int descriptor;

    if (!weir__http_file_path_is_valid(weir_span_of_text(name), rules->dotfiles))
        return false;
    if (weir__http_disk_look_up(listing->folder, name, ret_info) == 0)
        return true;
    if ((rules->disk_flags & WEIR__HTTP_DISK_LINKS) == 0)
        return false;
    (void)snprintf(path, sizeof(path), "%s%s", listing->path, name);
    if (weir__http_disk_open(rules->root, path, rules->disk_flags, &descriptor, ret_info) < 0)
        return false;
    weir__http_disk_close(descriptor);
    return true;
}

static int on_entry(const char *name, void *user_data)
{
    struct listing *listing = user_data;
    size_t length = strlen(name);
    weir__http_disk_info info;
    char *copy;

    if (!look_up(listing, name, &info))
        return 0;
    if (listing->count == listing->rules->max_listing)
        return FULL;
    if (listing->count == listing->capacity && grow(listing) < 0)
        return -ENOMEM;
    copy = weir_memory_alloc(length + 1);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, name, length + 1);
    listing->entries[listing->count++] =
        (struct entry){.name = copy,
                       .size = info.size,
                       .modified_seconds = info.modified_ns / 1000000000,
                       .is_folder = info.is_folder};
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct entry *first = a, *second = b;

    if (first->is_folder != second->is_folder)
        return first->is_folder ? -1 : 1;
    return strcmp(first->name, second->name);
}

/* ---- HTML ---- */

static int write_escaped(weir_buf *html, const char *text)
{
    int err = 0;

    for (; *text != '\0' && err == 0; text++) {
        switch (*text) {
        case '&':
            err = weir_buf_write_string(html, "&amp;");
            break;
        case '<':
            err = weir_buf_write_string(html, "&lt;");
            break;
        case '>':
            err = weir_buf_write_string(html, "&gt;");
            break;
        case '"':
            err = weir_buf_write_string(html, "&quot;");
            break;
        case '\'':
            err = weir_buf_write_string(html, "&#39;");
            break;
        default:
            err = weir_buf_write_bytes(html, text, 1);
        }
    }
    return err;
}

/* Names that begin like a scheme ("a:b") are paths because of the "./". */
static int write_entry(weir_buf *html, const struct entry *entry)
{
    const char *slash = entry->is_folder ? "/" : "";
    char date[WEIR__HTTP_DATE_SIZE], size[24] = "";
    int err = weir_buf_write_string(html, "<tr><td><a href=\"./");

    if (err == 0)
        err = weir_http_percent_encode(html, weir_span_of_text(entry->name),
                                       WEIR_HTTP_PERCENT_COMPONENT);
    if (err == 0)
        err = weir_buf_printf(html, "%s\">", slash);
    if (err == 0)
        err = write_escaped(html, entry->name);
    if (!entry->is_folder)
        (void)snprintf(size, sizeof(size), "%lld", (long long)entry->size);
    if (err == 0)
        err = weir_buf_printf(html, "%s</a></td><td>%s</td><td>%s</td></tr>\n", slash, size,
                              weir__http_date_format(entry->modified_seconds, date));
    return err;
}

static int write_page(weir_buf *html, const struct listing *listing)
{
    int err = weir_buf_write_string(
        html, "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Index of /");

    if (err == 0)
        err = write_escaped(html, listing->path);
    if (err == 0)
        err = weir_buf_write_string(
            html, "</title>\n<style>body{font-family:sans-serif}td{padding:0 1em 0 0}"
                  "td+td{text-align:right}</style>\n</head><body>\n<h1>Index of /");
    if (err == 0)
        err = write_escaped(html, listing->path);
    if (err == 0)
        err = weir_buf_printf(html, "</h1>\n<table>\n%s",
                              listing->path[0] != '\0'
                                  ? "<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n"
                                  : "");
    for (size_t i = 0; i < listing->count && err == 0; i++)
        err = write_entry(html, &listing->entries[i]);
    if (err == 0)
        err = weir_buf_printf(html, "</table>\n%s</body></html>\n",
                              listing->is_complete ? "" : "<p>There are more.</p>\n");
    return err;
}

int weir__http_listing_create(const weir__http_file_rules *rules, int folder, const char *path,
                              weir_buf **ret_html)
{
    struct listing listing = {.rules = rules, .path = path, .folder = folder};
    int err = weir__http_disk_list(folder, on_entry, &listing);
    weir_buf *html;

    listing.is_complete = err == 0;
    if (err >= 0) {
        if (listing.count > 0)
            qsort(listing.entries, listing.count, sizeof(*listing.entries), compare);
        err = weir_buf_create(4096, 0, &html);
    }
    if (err == 0) {
        err = write_page(html, &listing);
        if (err < 0)
            weir_buf_release(html);
        else
            *ret_html = html;
    }
    for (size_t i = 0; i < listing.count; i++)
        weir_memory_free(listing.entries[i].name);
    weir_memory_free(listing.entries);
    return err;
}
