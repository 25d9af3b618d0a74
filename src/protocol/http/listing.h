/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a folder as an HTML page.
 */
#ifndef WEIR_PROTOCOL_HTTP_LISTING_H
#define WEIR_PROTOCOL_HTTP_LISTING_H

#include <weir/buf.h>

#include "protocol/http/file.h"

/*
 * Lists a folder that has just been opened: folders first, both sorted by name; only what a request
 * would get, too. `path` is relative to the root and ends in "/", or is empty. If there are more
 * entries than the rules allow, the page says so. Fails with -ENOMEM, or -errno.
 */
int weir__http_listing_create(const weir__http_file_rules *rules, int folder, const char *path,
                              weir_buf **ret_html);

#endif
