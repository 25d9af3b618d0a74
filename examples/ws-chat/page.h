/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page for browsers.
 */
#ifndef EXAMPLES_WS_CHAT_PAGE_H
#define EXAMPLES_WS_CHAT_PAGE_H

#include <weir/http_server.h>

/* A route of GET. */
weir_http_handler_fn show_page;

#endif
