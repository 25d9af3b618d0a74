/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events: a number each second, from 1, to each client by itself.
 */
#ifndef EXAMPLES_DEMO_TICKS_H
#define EXAMPLES_DEMO_TICKS_H

#include <weir/http_server.h>

/* Handler of a route. */
void send_ticks(weir_http_exchange *exchange, void *user_data);

#endif
