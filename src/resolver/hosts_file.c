/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is kept as text and scanned for each name, as libc does: hosts files are small. If the
 * file cannot be read, the previous text stays in use.
 */
#include "resolver/hosts_file.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <weir/error.h>

#include "base/address.h"
#include "base/log.h"
#include "base/memory.h"
#include "os/virtual_os.h"

#define FILE_MAX ((size_t)16 << 20)
#define NUMBER_SIZE 64 /* an address without a port, and the terminator */

/* ---- parsing ---- */

struct piece {
    const char *start;
    const char *end;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Takes the next line from `text`, without its comment. */
static struct piece take_line(struct piece *text)
{
    struct piece line = *text;
    const char *comment;
    const char *end = memchr(text->start, '\n', (size_t)(text->end - text->start));

    line.end = end != NULL ? end : text->end;
    text->start = end != NULL ? end + 1 : text->end;
    comment = memchr(line.start, '#', (size_t)(line.end - line.start));
    if (comment != NULL)
        line.end = comment;
    return line;
}

/* Takes the next word from `line`; empty at its end. */
static struct piece take_word(struct piece *line)
{
    struct piece word;

    while (line->start < line->end && is_space(*line->start))
        line->start++;
    word.start = line->start;
    while (line->start < line->end && !is_space(*line->start))
        line->start++;
    word.end = line->start;
    return word;
}

static bool is_empty(struct piece piece)
{
    return piece.start == piece.end;
}

static bool has_name(struct piece names, const char *host, size_t length)
{
    for (struct piece word = take_word(&names); !is_empty(word); word = take_word(&names))
        if ((size_t)(word.end - word.start) == length && strncasecmp(word.start, host, length) == 0)
            return true;
    return false;
}

static bool parse_address(struct piece word, weir_address *ret_address)
{
    char number[NUMBER_SIZE];
    size_t length = (size_t)(word.end - word.start);

    if (length >= sizeof(number))
        return false;
    memcpy(number, word.start, length);
    number[length] = '\0';
    return strlen(number) == length && weir__address_parse_host(number, ret_address) == 0;
}

static bool contains(const weir_address *addresses, size_t count, const weir_address *address)
{
    while (count > 0)
        if (weir_address_equal(&addresses[--count], address))
            return true;
    return false;
}

size_t weir__hosts_find_in(const char *text, size_t length, const char *host,
                           weir_address *ret_addresses, size_t max)
{
    struct piece rest = {text, text + length};
    size_t host_length = strlen(host), count = 0;

    host_length -= host_length > 0 && host[host_length - 1] == '.';
    while (!is_empty(rest) && count < max) {
        struct piece line = take_line(&rest);
        struct piece number = take_word(&line);
        weir_address address;

        if (has_name(line, host, host_length) && parse_address(number, &address) &&
            !contains(ret_addresses, count, &address))
            ret_addresses[count++] = address;
    }
    return count;
}

/* ---- the file ---- */

void weir__hosts_init(weir__hosts *hosts, const char *path)
{
    *hosts = (weir__hosts){.path = path};
    weir__mutex_init(&hosts->lock);
}

static void replace(weir__hosts *hosts, const weir__file_version *version, char *text,
                    size_t length)
{
    weir__free(hosts->text);
    hosts->version = *version;
    hosts->text = text;
    hosts->length = length;
}

void weir__hosts_clear(weir__hosts *hosts)
{
    const weir__file_version none = {0};

    weir__mutex_lock(&hosts->lock);
    replace(hosts, &none, NULL, 0);
    weir__mutex_unlock(&hosts->lock);
}

static void refresh(weir__hosts *hosts)
{
    weir__file_version version = {0};
    size_t length = 0;
    char *text = NULL;
    int err = weir__file_version_read(hosts->path, &version);

    if (err == -ENOENT) {
        replace(hosts, &version, NULL, 0);
        return;
    }
    if (err == 0 && weir__file_version_equal(&hosts->version, &version))
        return;
    if (err == 0)
        err = weir__file_read(hosts->path, FILE_MAX, &text, &length);
    if (err == 0)
        replace(hosts, &version, text, length);
    else
        weir__warn_limited("resolver", hosts->path, "cannot be read: %s", weir_error_text(err));
}

size_t weir__hosts_find(weir__hosts *hosts, const char *host, weir_address *ret_addresses,
                        size_t max)
{
    size_t count = 0;

    if (hosts->path == NULL || weir__os_is_virtual())
        return 0;
    weir__mutex_lock(&hosts->lock);
    refresh(hosts);
    if (hosts->text != NULL)
        count = weir__hosts_find_in(hosts->text, hosts->length, host, ret_addresses, max);
    weir__mutex_unlock(&hosts->lock);
    return count;
}
