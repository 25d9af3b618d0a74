/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <weir/memory.h>

#include "protocol/http/disk.h"
#include "protocol/http/listing.h"
#include "protocol/http/mime.h"

/* The coding preferred first. */
static const struct {
    const char *coding;
    const char *suffix;
} siblings[] = {{"br", ".br"}, {"zstd", ".zst"}, {"gzip", ".gz"}};

#define SIBLING_COUNT (sizeof(siblings) / sizeof(*siblings))

_Static_assert(SIBLING_COUNT + 1 == WEIR__HTTP_MAX_REPRESENTATIONS, "one is the file itself");

/* ---- paths ---- */

static bool is_segment_valid(weir_span segment, bool dotfiles)
{
    const uint8_t *bytes = segment.data;

    if (segment.length == 0 || segment.length > NAME_MAX)
        return false;
    if (bytes[0] == '.' &&
        (!dotfiles || segment.length == 1 || (segment.length == 2 && bytes[1] == '.')))
        return false;
    for (size_t i = 0; i < segment.length; i++) {
        if (bytes[i] < 0x20 || bytes[i] == 0x7f || bytes[i] == '\\')
            return false;
    }
    return true;
}

bool weir__http_file_path_is_valid(weir_span path, bool dotfiles)
{
    const uint8_t *at = path.data, *end = at + path.length, *slash;

    if (path.length >= PATH_MAX)
        return false;
    while (at < end) {
        slash = memchr(at, '/', (size_t)(end - at));
        if (slash == NULL)
            slash = end;
        if (!is_segment_valid((weir_span){at, (size_t)(slash - at)}, dotfiles))
            return false;
        at = slash < end ? slash + 1 : end;
    }
    return true;
}

/* ---- files ---- */

static weir__http_file *create(enum weir__http_file_kind kind)
{
    weir__http_file *file = weir_memory_alloc(sizeof(*file));

    if (file == NULL)
        return NULL;
    memset(file, 0, sizeof(*file));
    weir__refs_init(&file->refs);
    file->kind = kind;
    file->bytes = sizeof(*file);
    return file;
}

weir__http_file *weir__http_file_retain(weir__http_file *file)
{
    weir__refs_retain(&file->refs);
    return file;
}

void weir__http_file_release(weir__http_file *file)
{
    if (file == NULL || !weir__refs_release(&file->refs))
        return;
    for (size_t i = 0; i < file->count; i++) {
        for (int twice = 0; twice < 2; twice++) {
            weir_buf_release(file->representations[i].bytes);
            weir_file_range_release(file->representations[i].range);
        }
    }
    weir_memory_free(file);
}

/*
 * Adds a representation, whose message becomes the file's. The file holds two references to it:
 * with one, weir_msg_retain would take the caller for the only holder, and several threads that
 * slice the message at the same time would lose references.
 */
static void add(weir__http_file *file, const weir__http_representation *representation)
{
    if (representation->bytes != NULL) {
        (void)weir_buf_retain(representation->bytes);
        file->bytes += weir_buf_readable(representation->bytes);
    } else {
        (void)weir_file_range_retain(representation->range);
        file->descriptors++;
    }
    file->representations[file->count++] = *representation;
}

int weir__http_file_create_from(weir_buf *bytes, const char *type, weir__http_file **ret_file)
{
    weir__http_file *file = create(WEIR__HTTP_FILE_CONTENT);

    if (file == NULL) {
        weir_buf_release(bytes);
        return -ENOMEM;
    }
    (void)snprintf(file->type, sizeof(file->type), "%s", type);
    add(file, &(weir__http_representation){.bytes = bytes,
                                           .size = (int64_t)weir_buf_readable(bytes),
                                           .modified_seconds = -1});
    *ret_file = file;
    return 0;
}

/* ---- representations ---- */

static int read_bytes(int descriptor, size_t size, weir_buf **ret_bytes)
{
    weir_buf *bytes;
    int err = weir_buf_create(size, 0, &bytes);

    if (err == 0) {
        err = weir__http_disk_read(descriptor, 0, weir_buf_space(bytes), size);
        if (err == 0)
            err = weir_buf_advance(bytes, size);
        if (err < 0)
            weir_buf_release(bytes);
        else
            *ret_bytes = bytes;
    }
    weir__http_disk_close(descriptor);
    return err;
}

/*
 * The tag is a strong one: it changes with the file, also if that is replaced by another one of the
 * same size and time.
 */
static void describe(weir__http_representation *to, const weir__http_disk_info *info)
{
    int64_t seconds = info->modified_ns / 1000000000;

    to->size = info->size;
    to->modified_seconds = seconds >= 0 ? seconds : 0;
    (void)weir__http_date_format(to->modified_seconds, to->modified);
    (void)snprintf(to->etag, sizeof(to->etag), "\"%llx-%llx-%llx\"",
                   (unsigned long long)info->inode, (unsigned long long)info->modified_ns,
                   (unsigned long long)info->size);
}

/* Loads or keeps an open file. Takes the descriptor. */
static int add_file(weir__http_file *file, const weir__http_file_rules *rules, int descriptor,
                    const weir__http_disk_info *info, const char *coding)
{
    weir__http_representation new = {.coding = coding};
    int err =
        info->size <= (int64_t)rules->small
            ? read_bytes(descriptor, (size_t)info->size, &new.bytes)
            : weir_file_range_create(descriptor, 0, info->size, WEIR_FILE_RANGE_CLOSE, &new.range);

    if (err < 0)
        return err;
    describe(&new, info);
    add(file, &new);
    return 0;
}

/* Siblings that are missing, or that cannot be opened, are left out. */
static void add_siblings(weir__http_file *file, const weir__http_file_rules *rules,
                         const char *path)
{
    weir__http_disk_info info;
    char sibling[PATH_MAX + 8];
    int descriptor;

    for (size_t i = 0; i < SIBLING_COUNT; i++) {
        (void)snprintf(sibling, sizeof(sibling), "%s%s", path, siblings[i].suffix);
        if (weir__http_disk_open(rules->root, sibling, rules->disk_flags, &descriptor, &info) < 0)
            continue;
        if (info.is_folder)
            weir__http_disk_close(descriptor);
        else
            (void)add_file(file, rules, descriptor, &info, siblings[i].coding);
    }
}

static void set_type(weir__http_file *file, const char *path, const char *charset)
{
    const char *type = weir__http_mime_type(path);
    bool has_charset = charset[0] != '\0' && weir__http_mime_is_text(type);

    (void)snprintf(file->type, sizeof(file->type), "%s%s%s", type, has_charset ? "; charset=" : "",
                   has_charset ? charset : "");
}

/* ---- opening ---- */

/* Takes the descriptor. */
static int open_content(const weir__http_file_rules *rules, const char *path, int descriptor,
                        const weir__http_disk_info *info, weir__http_file **ret_file)
{
    weir__http_file *file = create(WEIR__HTTP_FILE_CONTENT);
    int err;

    if (file == NULL) {
        weir__http_disk_close(descriptor);
        return -ENOMEM;
    }
    err = add_file(file, rules, descriptor, info, NULL);
    if (err < 0) {
        weir__http_file_release(file);
        return err;
    }
    if (rules->precompressed)
        add_siblings(file, rules, path);
    set_type(file, path, rules->charset);
    *ret_file = file;
    return 0;
}

static int open_listing(const weir__http_file_rules *rules, const char *path,
                        weir__http_file **ret_file)
{
    weir__http_disk_info info;
    weir_buf *html;
    int folder, err = weir__http_disk_open(rules->root, path, rules->disk_flags, &folder, &info);

    if (err < 0)
        return err;
    err = info.is_folder ? weir__http_listing_create(rules, folder, path, &html) : -ENOTDIR;
    weir__http_disk_close(folder);
    return err < 0 ? err : weir__http_file_create_from(html, "text/html; charset=utf-8", ret_file);
}

static int open_folder(const weir__http_file_rules *rules, const char *path,
                       weir__http_file **ret_file)
{
    weir__http_disk_info info;
    char index[PATH_MAX + NAME_MAX + 1];
    int descriptor, err;

    for (char *const *name = rules->index_files; *name != NULL; name++) {
        (void)snprintf(index, sizeof(index), "%s%s", path, *name);
        err = weir__http_disk_open(rules->root, index, rules->disk_flags, &descriptor, &info);
        if (err == 0 && !info.is_folder)
            return open_content(rules, index, descriptor, &info, ret_file);
        if (err == 0)
            weir__http_disk_close(descriptor);
        else if (err != -ENOENT)
            return err;
    }
    return rules->listing ? open_listing(rules, path, ret_file) : -ENOENT;
}

int weir__http_file_open(const weir__http_file_rules *rules, const char *path,
                         weir__http_file **ret_file)
{
    weir__http_disk_info info;
    size_t length = strlen(path);
    int descriptor, err;

    if (length == 0 || path[length - 1] == '/')
        return open_folder(rules, path, ret_file);
    err = weir__http_disk_open(rules->root, path, rules->disk_flags, &descriptor, &info);
    if (err < 0)
        return err;
    if (!info.is_folder)
        return open_content(rules, path, descriptor, &info, ret_file);
    weir__http_disk_close(descriptor);
    *ret_file = create(WEIR__HTTP_FILE_FOLDER);
    return *ret_file != NULL ? 0 : -ENOMEM;
}
