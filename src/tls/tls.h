/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS handler: what its files share. tls.c describes the stages.
 *
 *      tls.c                  the handler: its slots, reading
 *      tls_handshake.c        the handshake
 *      tls_offload.c          a step of it on another executor
 *      tls_write.c            writing: plain bytes become records
 *      tls_closing.c          close_notify, ours and the peer's
 *      tls_handshake_info.c   the result of the handshake as a message
 */
#ifndef WEIR_TLS_TLS_H
#define WEIR_TLS_TLS_H

#include <weir/channel.h>
#include <weir/codec.h>
#include <weir/flow_control.h>
#include <weir/tls.h>

#include "tls/openssl/openssl.h"
#include "tls/tls_context.h"
#include "tls/tls_hello.h"
#include "tls/tls_sni_request.h"

/* The most received bytes that are buffered while they cannot be processed. */
#define WEIR__TLS_BUFFERED_MAX (128 * 1024)

/* The most bytes of replies to a peer that does not read them: about 150 key updates. */
#define WEIR__TLS_REPLIES_MAX (4 * 1024)

enum weir__tls_stage {
    WEIR__TLS_WAITING,
    WEIR__TLS_HANDSHAKING,
    WEIR__TLS_OPEN,
    WEIR__TLS_HALF_CLOSED,
    WEIR__TLS_CLOSING,
    WEIR__TLS_CLOSED,
};

/* What a handshake waits for, besides bytes. */
enum weir__tls_awaited {
    WEIR__TLS_AWAITS_NOTHING,
    WEIR__TLS_AWAITS_OFFLOAD, /* a step runs on another executor, which has the session */
    WEIR__TLS_AWAITS_SNI,     /* on_sni has not decided yet */
};

/* The message that start_tls sends in clear. */
enum weir__tls_clear {
    WEIR__TLS_CLEAR_NONE,
    WEIR__TLS_CLEAR_FIRST,  /* the first one, which is still to come */
    WEIR__TLS_CLEAR_PASSED, /* it was passed on */
};

/* What handlers behind know of the end of the input. */
enum weir__tls_input {
    WEIR__TLS_INPUT_OPEN,
    WEIR__TLS_INPUT_REPORTED,     /* all of it, because of close_notify */
    WEIR__TLS_INPUT_OWES_DRAINED, /* that it was closed; not yet that it was drained */
    WEIR__TLS_INPUT_HELD,         /* not yet that it was closed while the handshake waited, */
    WEIR__TLS_INPUT_HELD_DRAINED, /* nor that it was drained */
};

/* The peer's side. */
enum weir__tls_peer {
    WEIR__TLS_PEER_OPEN,
    WEIR__TLS_PEER_CUT_OFF,  /* handlers behind know that close_notify was missing */
    WEIR__TLS_PEER_CLOSED,   /* by close_notify; */
    WEIR__TLS_PEER_REPORTED, /* handlers behind know that */
};

typedef struct weir__tls_last_write weir__tls_last_write;

typedef struct weir__tls {
    weir_decoder_state decoder; /* first */
    weir_pending_writes writes;
    weir_tls_context *context;
    weir__openssl_session *session; /* NULL while a job has it */
    weir_group *offload;            /* or NULL */
    weir_promise *handshake;        /* NULL once it is complete, or if nobody waits */
    weir_tls_sni_request *request;  /* while it is awaited, and if it was rejected */
    weir__tls_last_write *last_write;
    weir_timer timer;           /* the handshake's, then the close's */
    weir__tls_hello_scan hello; /* server, until the client's hello is complete */
    int64_t handshake_timeout_ns;
    int64_t close_timeout_ns;
    int64_t peer_close_timeout_ns;
    int64_t sent_at;    /* time of the last send when the close's timer was started */
    size_t consumed;    /* bytes of the decoder that a job has consumed */
    size_t reply_bytes; /* written since nothing was queued */
    int last_error;     /* of the connection, or 0 */
    uint8_t stage;
    uint8_t awaits;
    uint8_t clear;
    uint8_t input;
    uint8_t peer;
    bool has_hello;       /* server: the session has got the first bytes */
    bool is_reported;     /* the result of the handshake */
    bool is_in_sni_fn;    /* on_sni is on the stack */
    bool is_sealing;      /* weir__tls_seal is on the stack */
    bool needs_flush;     /* there are records that have not been flushed */
    bool is_input_paused; /* while a job has the session */
} weir__tls;

static inline weir__tls *weir__tls_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

static inline bool weir__tls_has_peer_closed(const weir__tls *tls)
{
    return tls->peer >= WEIR__TLS_PEER_CLOSED;
}

/* True if a close or a half closure is deferred. */
static inline bool weir__tls_is_ending(const weir__tls *tls)
{
    return tls->writes.close_deferred || tls->writes.shutdown_deferred;
}

/* True if a close waits for the peer's close_notify, or a write for the rest of a message of the
 * peer. */
static inline bool weir__tls_waits_for_bytes(const weir__tls *tls)
{
    if (tls->stage != WEIR__TLS_OPEN)
        return tls->stage == WEIR__TLS_CLOSING && tls->writes.close_deferred;
    return tls->session->is_blocked && (tls->writes.flushed > 0 || weir__tls_is_ending(tls));
}

extern const weir_decoder weir__tls_handler;

/* ---- tls.c ---- */

/* Writes records, to be flushed later. Takes: records. NULL is ignored. */
void weir__tls_send(weir_ctx *ctx, weir_buf *records);

/* Flushes if there are unflushed records. */
void weir__tls_flush(weir_ctx *ctx, weir__tls *tls);

/* Processes buffered bytes, and sends what that produces. */
void weir__tls_resume(weir_ctx *ctx);

/* Resumes reading, unless a job still has the session. */
void weir__tls_resume_input(weir_ctx *ctx);

/* Enters CLOSED and stops the timer. */
void weir__tls_set_closed(weir__tls *tls);

/* Fails the connection: writes, the handshake and the handlers behind get the error, then it is
 * closed. */
void weir__tls_fail_and_close(weir_ctx *ctx, int err, const char *detail);

/* Starts the handshake if the channel is active and it has not started; not with start_tls. */
void weir__tls_start_if_active(weir_ctx *ctx);

/* ---- tls_handshake.c ---- */

void weir__tls_start_handshake(weir_ctx *ctx);

/* Continues it with received bytes: as a decode_fn. */
int weir__tls_handshake_decode(weir_ctx *ctx, weir_buf *in);

/* Handles the result of a step that ran as a job. Takes: out. */
void weir__tls_handshake_step_done(weir_ctx *ctx, int result, weir_buf *out);

/* A request has been decided. Takes: request. */
void weir__tls_sni_decided(weir_ctx *ctx, weir_tls_sni_request *request);

/* Reports that the handshake failed, unless its result was reported before. */
void weir__tls_report_handshake(weir_ctx *ctx, int err, const char *detail);

/* The same when the channel ends first, by an error or by a close. */
void weir__tls_report_handshake_lost(weir_ctx *ctx);

/* Starts the timer of the handshake. */
void weir__tls_limit_handshake(weir_ctx *ctx);

/* ---- tls_offload.c ---- */

/* Runs the next step, with the bytes of `in` (or NULL), on another executor. False if it has to be
 * done here. */
bool weir__tls_offload(weir_ctx *ctx, weir_buf *in);

/* ---- tls_write.c ---- */

/* Turns flushed writes into records, and writes these. */
void weir__tls_seal(weir_ctx *ctx, weir__tls *tls);

/* Fails the queued writes, and a half closure behind them. */
void weir__tls_fail_writes(weir_ctx *ctx, int err, const char *detail);

/* ---- tls_closing.c ---- */

void weir__tls_close(weir_ctx *ctx, weir_promise *done);
void weir__tls_shutdown_output(weir_ctx *ctx, weir_promise *done);

/* Continues a pending close or half closure as far as possible. */
void weir__tls_continue_closing(weir_ctx *ctx);

/* Reports the peer's close_notify to the handlers behind, if there is one, and acts on it; once. */
void weir__tls_peer_closed(weir_ctx *ctx);

/* The peer's stream has ended: an error if there was no close_notify. */
void weir__tls_input_closed(weir_ctx *ctx);

/* Restarts the timer of a pending close: until something can be sent, for a peer that reads
 * nothing, or for its close_notify. */
void weir__tls_limit_close(weir_ctx *ctx);

/* If it waits for bytes, requests a read, with auto-read off: no other handler does then. */
static inline void weir__tls_request_more(weir_ctx *ctx, const weir__tls *tls)
{
    if (weir__tls_waits_for_bytes(tls) && !weir_channel_auto_read(weir_ctx_channel(ctx)))
        weir_request_read(ctx);
}

/* The handler is removed, or leaves its loop: the listener of the last write must not use it. */
void weir__tls_detach_last_write(weir__tls *tls);

/* ---- tls_handshake_info.c ---- */

/* NULL `negotiated` = it failed. Retains: peer. Never fails: without memory, returns a static one
 * that says so. */
weir_msg *weir__tls_handshake_create(int err, const char *detail,
                                     const weir__openssl_negotiated *negotiated,
                                     weir_tls_certificate *peer);

#endif
