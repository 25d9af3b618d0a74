/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL of the metrics, of what the user wrote:
 *
 *      localhost:8080                              http://localhost:8080/metrics?format=json
 *      https://example.org/weir/?token=secret      https://example.org/metrics?format=json
 *      http://example.org/stats                    http://example.org/stats?format=json
 *
 * A path that ends with "/" is not that of metrics, but perhaps that of the live page.
 */
#ifndef EXAMPLES_TOP_URL_H
#define EXAMPLES_TOP_URL_H

#include <stdbool.h>
#include <stddef.h>

#define URL_SIZE 1024

/* False if it is too long. */
bool url_of_metrics(const char *given, char buffer[URL_SIZE]);

/* Scheme and authority: what the screen shows. */
void url_of_server(const char *url, char buffer[URL_SIZE]);

/* The value of "token" in its query; "" if there is none. False if it is too long. */
bool url_find_token(const char *given, char *buffer, size_t size);

#endif
