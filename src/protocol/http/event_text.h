/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of server-sent events.
 */
#ifndef WEIR_PROTOCOL_HTTP_EVENT_TEXT_H
#define WEIR_PROTOCOL_HTTP_EVENT_TEXT_H

#include <weir/http_events.h>

/* Fails with -EINVAL. */
int weir__http_event_check(const weir_http_event *event);

/* Appends a valid event. Fails as weir_buf_write_bytes; then some of it may be there. */
int weir__http_event_write(const weir_http_event *event, weir_buf *to);

#endif
