/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP servers of examples, with the options of support/settings.h and support/tls.h.
 */
#ifndef EXAMPLES_HTTP_H
#define EXAMPLES_HTTP_H

#include <weir/http_server.h>

#include "support/settings.h"

/*
 * weir_http_server_start with the address, threads and TLS of the command line; prints the address.
 * A failure has been reported.
 */
int http_start(const struct settings *settings, const weir_http_server_options *options,
               weir_http_server **ret_server);

/* Starts a server, and runs it until a signal. Returns the exit status of the program. */
int serve_http(const struct settings *settings, const weir_http_server_options *options);

#endif
