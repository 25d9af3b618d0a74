/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 1 of the PROXY protocol: "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n", with exactly
 * one space between words and none at the end.
 */
#include <errno.h>
#include <string.h>

#include <weir/buf.h>

#include "base/address.h"
#include "codec/proxy_header.h"

#define WORD_SIZE 64 /* longer than any address */
#define WORDS 4      /* source, destination, and their ports */

static ssize_t reject(const char *detail, const char **ret_detail)
{
    *ret_detail = detail;
    return WEIR_EMALFORMED;
}

/* ---- reading ---- */

/* Takes the next word, up to a space or the end. False if it is empty. */
static bool take_word(weir_span *line, char word[WORD_SIZE])
{
    const uint8_t *blank = memchr(line->data, ' ', line->length);
    size_t length = blank != NULL ? (size_t)(blank - line->data) : line->length;

    if (length == 0 || length >= WORD_SIZE || memchr(line->data, '\0', length) != NULL)
        return false;
    memcpy(word, line->data, length);
    word[length] = '\0';
    line->data += length;
    line->length -= length;
    if (blank != NULL && line->length > 1) {
        line->data++; /* a trailing space is left, and rejected */
        line->length--;
    }
    return true;
}

static bool read_port(const char *word, uint16_t *ret_port)
{
    unsigned port = 0;

    if (strlen(word) > 5 || (word[0] == '0' && word[1] != '\0'))
        return false;
    for (; *word >= '0' && *word <= '9'; word++)
        port = port * 10 + (unsigned)(*word - '0');
    *ret_port = (uint16_t)port;
    return *word == '\0' && port <= UINT16_MAX;
}

static bool read_address(const char *host, const char *port_word, int family,
                         weir_address *ret_address)
{
    uint16_t port;

    if (strchr(host, '%') != NULL || weir__address_parse_host(host, ret_address) < 0 ||
        weir_address_family(ret_address) != family || !read_port(port_word, &port))
        return false;
    weir_address_set_port(ret_address, port);
    return true;
}

static bool read_addresses(weir_span line, int family, weir_proxy_header *header)
{
    char words[WORDS][WORD_SIZE];

    for (int i = 0; i < WORDS; i++)
        if (!take_word(&line, words[i]))
            return false;
    return line.length == 0 && read_address(words[0], words[2], family, &header->source) &&
           read_address(words[1], words[3], family, &header->destination);
}

static bool read_line(weir_span line, weir_proxy_header *header)
{
    char word[WORD_SIZE];

    if (!take_word(&line, word))
        return false;
    if (strcmp(word, "UNKNOWN") == 0)
        return true; /* the rest is ignored */
    if (strcmp(word, "TCP4") == 0)
        return read_addresses(line, AF_INET, header);
    return strcmp(word, "TCP6") == 0 && read_addresses(line, AF_INET6, header);
}

ssize_t weir__proxy_v1_read(const uint8_t *bytes, size_t length, weir_proxy_header **ret_header,
                            const char **ret_detail)
{
    size_t seen = length < WEIR__PROXY_V1_MAX ? length : WEIR__PROXY_V1_MAX;
    const size_t begin = sizeof(WEIR__PROXY_V1_PREFIX) - 1;
    const uint8_t *end = memmem(bytes, seen, "\r\n", 2);
    weir_proxy_header *header;

    if (end == NULL && seen < WEIR__PROXY_V1_MAX)
        return 0;
    if (end == NULL)
        return reject("PROXY line longer than 107 bytes", ret_detail);
    header = weir__proxy_header_alloc(0);
    if (header == NULL)
        return -ENOMEM;
    header->version = 1;
    if (!read_line((weir_span){bytes + begin, (size_t)(end - bytes) - begin}, header)) {
        weir_proxy_header_release(header);
        return reject("malformed PROXY line", ret_detail);
    }
    *ret_header = header;
    return end + 2 - bytes;
}

/* ---- writing ---- */

/* Formats an address without its port. */
static void format_host(const weir_address *address, char text[WEIR_ADDRESS_TEXT_SIZE])
{
    char *last;

    (void)weir_address_format(address, text, WEIR_ADDRESS_TEXT_SIZE);
    *strrchr(text, ':') = '\0';
    if (text[0] != '[')
        return;
    last = strpbrk(text, "%]"); /* the scope has no meaning for the peer */
    *last = '\0';
    memmove(text, text + 1, strlen(text));
}

int weir__proxy_v1_write(const weir_proxy_header *header, weir_buf *buf)
{
    char source[WEIR_ADDRESS_TEXT_SIZE], destination[WEIR_ADDRESS_TEXT_SIZE];
    int family = weir_address_family(&header->source);

    if (family == AF_UNSPEC)
        return weir_buf_printf(buf, WEIR__PROXY_V1_PREFIX "UNKNOWN\r\n");
    format_host(&header->source, source);
    format_host(&header->destination, destination);
    return weir_buf_printf(buf, WEIR__PROXY_V1_PREFIX "%s %s %s %u %u\r\n",
                           family == AF_INET ? "TCP4" : "TCP6", source, destination,
                           (unsigned)weir_address_port(&header->source),
                           (unsigned)weir_address_port(&header->destination));
}
