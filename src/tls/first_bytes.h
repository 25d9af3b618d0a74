/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of handlers that look at the first bytes of a connection, then go and pass them on: a
 * decoder with a time limit, which asks for bytes where reads are on demand.
 */
#ifndef WEIR_TLS_FIRST_BYTES_H
#define WEIR_TLS_FIRST_BYTES_H

#include <weir/codec.h>

/* The first member of a handler's state. */
typedef struct weir__first_bytes {
    weir_decoder_state decoder; /* first */
    weir_timer timer;
    int64_t timeout_ns;
    bool is_over; /* an error: what comes now is thrown away */
    bool is_done; /* waits until the bytes are requested */
} weir__first_bytes;

#define WEIR__FIRST_BYTES_SLOTS(state)                                     \
    WEIR_DECODER_SLOTS(state), .added = weir__first_bytes_added,           \
                               .registered = weir__first_bytes_registered, \
                               .active = weir__first_bytes_active

/* 0 = default. Fails with -EINVAL. */
int weir__first_bytes_init(weir__first_bytes *base, int64_t timeout_ns);

void weir__first_bytes_added(weir_ctx *ctx);
void weir__first_bytes_registered(weir_ctx *ctx);
void weir__first_bytes_active(weir_ctx *ctx);

/* is_urgent: the first bytes are no message that anybody requests. */
bool weir__first_bytes_is_urgent(weir_ctx *ctx);

/* decode_last: it ends without having said what it is for. */
int weir__first_bytes_end(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);

/* Those that follow are the last thing that `decode` does, and return what it returns. */

/* Goes: the bytes go on as soon as they are requested. */
int weir__first_bytes_pass(weir_ctx *ctx);

/* An error, and the channel is closed; unless who hears of it removes the handler. Then the bytes
 * go on to others. */
int weir__first_bytes_fail(weir_ctx *ctx, weir_buf *in, int err, const char *why);

#endif
