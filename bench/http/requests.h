/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http/requests.h - the requests of the suite. A plain head has the field Host only, one of a
 * browser twelve fields.
 */
#ifndef BENCH_HTTP_REQUESTS_H
#define BENCH_HTTP_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { REQUEST_MAX = 2048 };

static const char browser_fields[] =
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;"
    "q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Referer: http://www.example.org/articles/2026/11/index.html\r\n"
    "Connection: keep-alive\r\n"
    "Cookie: session=8f14e45fceea167a5a36dedd4bea2543; theme=dark; consent=2026-05-01\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Cache-Control: max-age=0\r\n";

/* Writes up to REQUEST_MAX bytes; returns the length. */
static inline size_t make_request(char *bytes, const char *path, uint16_t port, bool browser)
{
    return (size_t)snprintf(bytes, REQUEST_MAX,
                            "GET %s HTTP/1.1\r\n"
                            "Host: 127.0.0.1:%u\r\n"
                            "%s\r\n",
                            path, port, browser ? browser_fields : "");
}

#endif
