/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that servers and clients share.
 */
#ifndef WEIR_PROTOCOL_HTTP_COOKIES_H
#define WEIR_PROTOCOL_HTTP_COOKIES_H

#include <weir/http_cookies.h>

#define WEIR__HTTP_MAX_COOKIE 4096           /* bytes of name and value */
#define WEIR__HTTP_MAX_COOKIE_ATTRIBUTE 1024 /* bytes of Domain or Path */

/* Why a cookie may not be set with these attributes; NULL if it may. */
const char *weir__http_cookie_conflict(const weir_http_set_cookie *cookie);

#endif
