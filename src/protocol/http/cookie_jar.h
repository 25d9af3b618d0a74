/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a jar with a time, in seconds since 1970.
 */
#ifndef WEIR_PROTOCOL_HTTP_COOKIE_JAR_H
#define WEIR_PROTOCOL_HTTP_COOKIE_JAR_H

#include <weir/http_cookies.h>

int weir__http_cookie_jar_store_at(weir_http_cookie_jar *jar, const weir_http_uri *uri,
                                   weir_span set_cookie, int64_t now);
int weir__http_cookie_jar_write_at(weir_http_cookie_jar *jar, const weir_http_uri *uri,
                                   weir_buf *to, int64_t now);

#endif
