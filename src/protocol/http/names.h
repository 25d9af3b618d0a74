/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of methods and header fields.
 */
#ifndef WEIR_PROTOCOL_HTTP_NAMES_H
#define WEIR_PROTOCOL_HTTP_NAMES_H

#include <weir/http.h>

#include "protocol/http/chars.h"
#include "protocol/http/parameters.h"

/* weir_http_name_of for a token. */
enum weir_http_name weir__http_name_of_token(weir_span token);

/* The customary spelling of a name. */
weir_span weir__http_name_span(enum weir_http_name name);

/* Aliases, until the codec uses the names of chars.h. */
#define weir__http_is weir__http_char_is
#define weir__http_all weir__http_chars_are
#define weir__http_equal_nocase weir__http_same_text
#define weir__http_trim weir__http_trimmed
#define weir__http_next_element weir__http_list_next

#endif
