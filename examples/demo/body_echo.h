/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the content of a request back as it arrives.
 */
#ifndef EXAMPLES_DEMO_BODY_ECHO_H
#define EXAMPLES_DEMO_BODY_ECHO_H

#include <weir/http_server.h>

/* Handler of a streaming route. */
void echo_body(weir_http_exchange *exchange, void *user_data);

#endif
