/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status codes and their reason phrases.
 */
#include <weir/http.h>

static const char *const informational[] = {"Continue", "Switching Protocols", "Processing",
                                            "Early Hints"};

static const char *const success[] = {"OK",
                                      "Created",
                                      "Accepted",
                                      "Non-Authoritative Information",
                                      "No Content",
                                      "Reset Content",
                                      "Partial Content",
                                      "Multi-Status",
                                      "Already Reported"};

static const char *const redirection[] = {
    "Multiple Choices",  "Moved Permanently", "Found", "See Other",
    "Not Modified",      "Use Proxy",         NULL,    "Temporary Redirect",
    "Permanent Redirect"};

static const char *const client_error[] = {"Bad Request",
                                           "Unauthorized",
                                           "Payment Required",
                                           "Forbidden",
                                           "Not Found",
                                           "Method Not Allowed",
                                           "Not Acceptable",
                                           "Proxy Authentication Required",
                                           "Request Timeout",
                                           "Conflict",
                                           "Gone",
                                           "Length Required",
                                           "Precondition Failed",
                                           "Content Too Large",
                                           "URI Too Long",
                                           "Unsupported Media Type",
                                           "Range Not Satisfiable",
                                           "Expectation Failed",
                                           NULL,
                                           NULL,
                                           NULL,
                                           "Misdirected Request",
                                           "Unprocessable Content",
                                           "Locked",
                                           "Failed Dependency",
                                           "Too Early",
                                           "Upgrade Required",
                                           NULL,
                                           "Precondition Required",
                                           "Too Many Requests",
                                           NULL,
                                           "Request Header Fields Too Large"};

static const char *const server_error[] = {"Internal Server Error",
                                           "Not Implemented",
                                           "Bad Gateway",
                                           "Service Unavailable",
                                           "Gateway Timeout",
                                           "HTTP Version Not Supported",
                                           NULL,
                                           "Insufficient Storage",
                                           "Loop Detected"};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct {
    const char *const *texts;
    int count;
} classes[] = {{informational, COUNT(informational)},
               {success, COUNT(success)},
               {redirection, COUNT(redirection)},
               {client_error, COUNT(client_error)},
               {server_error, COUNT(server_error)}};

const char *weir_http_status_text(int status)
{
    const char *text = NULL;

    if (status >= 100 && status <= 599) {
        int index = status % 100;

        if (index < classes[status / 100 - 1].count)
            text = classes[status / 100 - 1].texts[index];
    }
    if (status == 451)
        text = "Unavailable For Legal Reasons";
    return text != NULL ? text : "Unknown";
}
