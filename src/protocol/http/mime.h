/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content types of files, by the extension of their name.
 */
#ifndef WEIR_PROTOCOL_HTTP_MIME_H
#define WEIR_PROTOCOL_HTTP_MIME_H

#include <stdbool.h>

/* The content type of a file, such as "text/css"; "application/octet-stream" if the extension is
 * unknown. Upper and lower case are the same. */
const char *weir__http_mime_type(const char *name);

/* True if a content type has a charset parameter. */
bool weir__http_mime_is_text(const char *type);

#endif
