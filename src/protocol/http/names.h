/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of methods and header fields.
 */
#ifndef WEIR_PROTOCOL_HTTP_NAMES_H
#define WEIR_PROTOCOL_HTTP_NAMES_H

#include <weir/http.h>

#include "protocol/http/chars.h"
#include "protocol/http/parameters.h"

/* The customary spelling of a name. */
weir_span weir__http_name_span(enum weir_http_name name);

#endif
