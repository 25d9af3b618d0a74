/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of handlers that inspect the first bytes of a connection, then remove themselves and
 * pass the bytes on: a decoder with a timeout, which requests reads if auto-read is off.
 */
#ifndef WEIR_TLS_FIRST_BYTES_H
#define WEIR_TLS_FIRST_BYTES_H

#include <weir/codec.h>

/* The first member of a handler's state. */
typedef struct weir__first_bytes {
    weir_decoder_state decoder; /* first */
    weir_timer timer;
    int64_t timeout_ns;
    bool has_failed; /* later bytes are discarded */
    bool is_done;    /* waits until the bytes are requested */
} weir__first_bytes;

#define WEIR__FIRST_BYTES_SLOTS(state)                                     \
    WEIR_DECODER_SLOTS(state), .added = weir__first_bytes_added,           \
                               .registered = weir__first_bytes_registered, \
                               .active = weir__first_bytes_active

/* timeout_ns: 0 = default. Fails: -EINVAL. */
int weir__first_bytes_init(weir__first_bytes *base, int64_t timeout_ns);

void weir__first_bytes_added(weir_ctx *ctx);
void weir__first_bytes_registered(weir_ctx *ctx);
void weir__first_bytes_active(weir_ctx *ctx);

/* is_urgent: no handler behind requests the first bytes. */
bool weir__first_bytes_is_urgent(weir_ctx *ctx);

/* decode_last: the connection ends before its first bytes are complete. */
int weir__first_bytes_end(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);

/* `decode` ends with one of the following, and returns its result. */

/* Removes the handler; the bytes are passed on as soon as they are requested. */
int weir__first_bytes_pass(weir_ctx *ctx);

/* Fires an error and closes the channel. If a handler behind removes this one instead, the bytes
 * are passed on. */
int weir__first_bytes_fail(weir_ctx *ctx, weir_buf *in, int err, const char *why);

#endif
