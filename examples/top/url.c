/* SPDX-License-Identifier: Apache-2.0 */
#include "top/url.h"

#include <stdio.h>
#include <string.h>

/* The length of scheme and authority. */
static size_t server_length(const char *url)
{
    const char *authority = strstr(url, "://");

    authority = authority != NULL ? authority + 3 : url;
    return (size_t)(authority - url) + strcspn(authority, "/?#");
}

bool url_of_metrics(const char *given, char buffer[URL_SIZE])
{
    const char *scheme = strstr(given, "://") != NULL ? "" : "http://";
    size_t server = server_length(given);
    size_t path = strcspn(given + server, "?#");
    const char *query = given + server + path;
    size_t query_length = *query == '?' ? strcspn(query, "#") : 0;
    int length;

    if (path == 0 || given[server + path - 1] == '/')
        length =
            snprintf(buffer, URL_SIZE, "%s%.*s/metrics?format=json", scheme, (int)server, given);
    else
        length = snprintf(buffer, URL_SIZE, "%s%.*s%.*s%cformat=json", scheme, (int)(server + path),
                          given, (int)query_length, query, query_length > 0 ? '&' : '?');
    return length < URL_SIZE;
}

void url_of_server(const char *url, char buffer[URL_SIZE])
{
    (void)snprintf(buffer, URL_SIZE, "%.*s", (int)server_length(url), url);
}

bool url_find_token(const char *given, char *buffer, size_t size)
{
    const char *query = strchr(given, '?');
    const char *token = query != NULL ? strstr(query, "token=") : NULL;
    size_t length = 0;

    if (token != NULL && (token[-1] == '?' || token[-1] == '&')) {
        token += strlen("token=");
        length = strcspn(token, "&#");
    }
    return snprintf(buffer, size, "%.*s", (int)length, length > 0 ? token : "") < (int)size;
}
