/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests without TLS at an address with TLS.
 */
#ifndef WEIR_PROTOCOL_HTTP_PLAIN_REFUSAL_H
#define WEIR_PROTOCOL_HTTP_PLAIN_REFUSAL_H

#include <weir/pipeline.h>

/* Adds a handler in front of TLS: answers a plain request with 400, and closes; removes itself at
 * anything else. Fails as weir_pipeline_add. */
int weir__http_plain_refusal_add(weir_pipeline *pipeline);

#endif
