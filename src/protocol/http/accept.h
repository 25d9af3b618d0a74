/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content negotiation: Accept-Encoding with its q-values (RFC 9110 12.5.3). For Accept see
 * weir_http_accept_type.
 *
 * A field may have several lines: pass all of them. A malformed line counts as if it allowed
 * nothing, so that a guess is never sent.
 */
#ifndef WEIR_PROTOCOL_HTTP_ACCEPT_H
#define WEIR_PROTOCOL_HTTP_ACCEPT_H

#include <weir/buf.h>

#define WEIR__HTTP_IDENTITY (-1) /* send the content as it is */

/*
 * The index of the content coding to use, of `count` ones that are available, the preferred one
 * first; WEIR__HTTP_IDENTITY if it is best not to encode, or if nothing is acceptable. Without
 * lines that is so, too. "x-gzip" is "gzip".
 */
int weir__http_accept_coding(const weir_span *lines, size_t line_count, const char *const *codings,
                             size_t count);

#endif
