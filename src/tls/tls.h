/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS handler: what its files know of each other. tls.c says what it is in which stage.
 *
 *      tls.c             the handler: its slots, reading
 *      tls_shaking.c     the handshake
 *      tls_offload.c     a step of it on another executor
 *      tls_writes.c      writing: plain bytes become records
 *      tls_closing.c     both ends of TLS
 *      tls_handshake.c   how the handshake went, as a message
 */
#ifndef WEIR_TLS_TLS_H
#define WEIR_TLS_TLS_H

#include <weir/codec.h>
#include <weir/flow_control.h>
#include <weir/tls.h>

#include "tls/engine.h"
#include "tls/tls_choice.h"
#include "tls/tls_context.h"
#include "tls/tls_hello.h"

/* What is kept of a peer's bytes while they cannot be looked at. */
#define WEIR__TLS_KEPT_MAX (128 * 1024)

/* What a peer gets of answers to its records before it has to have taken some: 150 new keys. */
#define WEIR__TLS_ANSWERED_MAX (4 * 1024)

enum weir__tls_stage {
    WEIR__TLS_WAITING,
    WEIR__TLS_SHAKING,
    WEIR__TLS_OPEN,
    WEIR__TLS_SHUT,
    WEIR__TLS_ENDING,
    WEIR__TLS_OVER,
};

/* What a handshake waits for, besides bytes. */
enum weir__tls_awaited {
    WEIR__TLS_NOTHING,
    WEIR__TLS_JOB,    /* a step is done elsewhere, and the session is there */
    WEIR__TLS_CHOICE, /* somebody decides what the client gets */
};

typedef struct weir__tls_last_write weir__tls_last_write;

typedef struct weir__tls {
    weir_decoder_state decoder; /* first */
    weir_pending_writes writes;
    weir_tls_context *context;  /* kept */
    weir__tls_session *session; /* NULL while a job has it */
    weir_group *offload;        /* kept; or NULL */
    weir_promise *handshake;    /* kept; NULL once it is complete, or nobody waits */
    weir_tls_choice *choice;    /* kept, while it is awaited, and if it was a refusal */
    weir__tls_last_write *last_write;
    weir_timer timer;           /* the handshake's, then the close's */
    weir__tls_hello_scan hello; /* of a server, until the client's hello is there */
    int64_t handshake_timeout_ns;
    int64_t close_timeout_ns;
    int64_t peer_close_timeout_ns;
    int64_t sent_at; /* something was, last before the timer of a close was started */
    size_t taken;    /* a job has taken so many of the bytes that are kept */
    size_t answered; /* bytes of answers since there was nothing to be sent */
    int lost;        /* the last error of the connection, or 0 */
    uint8_t stage;
    uint8_t awaits;
    bool is_start_tls;     /* and nothing was written yet, */
    bool has_passed_first; /* or the first message was, which goes out in clear */
    bool has_hello;        /* of a server: the session has got the first bytes */
    bool is_told;          /* how the handshake went */
    bool is_choosing;      /* the chooser is on the stack */
    bool is_sealing;       /* somebody further out on the stack */
    bool needs_flush;      /* there are records that nobody has flushed */
    bool has_input_closed; /* while the handshake waited for something: not told yet */
    bool has_peer_ended;   /* TLS, properly; */
    bool is_end_told;      /* those behind know it; or that it was not properly */
    bool is_input_held;    /* nothing is read while a job has the session */
    bool is_input_closed;  /* those behind know it, by the peer's end of TLS */
} weir__tls;

static inline weir__tls *weir__tls_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

extern const weir_decoder weir__tls_handler;

/* ---- tls.c ---- */

/* Writes records, which are flushed later; NULL is fine. Takes: records. */
void weir__tls_send(weir_ctx *ctx, weir_buf *records);

/* Sends what nobody has flushed. */
void weir__tls_flush(weir_ctx *ctx);

/* Looks at the bytes that were kept, and sends what is to be sent. */
void weir__tls_resume(weir_ctx *ctx);

/* Goes on reading, unless a job still has the session. */
void weir__tls_release_input(weir_ctx *ctx);

/* From here on nothing comes of what is under way. */
void weir__tls_become_over(weir__tls *tls);

/* It cannot go on: everybody who waits hears of it, then it is closed. */
void weir__tls_give_up(weir_ctx *ctx, int err, const char *detail);

/* Begins the handshake if there is a connection, and it has not begun; not that of a start-TLS. */
void weir__tls_begin_if_active(weir_ctx *ctx);

/* ---- tls_shaking.c ---- */

void weir__tls_begin(weir_ctx *ctx);

/* With the bytes that have come: as a decode_fn. */
int weir__tls_shake(weir_ctx *ctx, weir_buf *in);

/* What is to be done when a step has been: it is over, has failed, or needs more. Takes: out. */
void weir__tls_stepped(weir_ctx *ctx, int result, weir_buf *out);

/* A choice has come back. Takes: choice. */
void weir__tls_decided(weir_ctx *ctx, weir_tls_choice *choice);

/* Tells how the handshake went, unless that was told; `err` is 0 if it is over. */
void weir__tls_tell(weir_ctx *ctx, int err, const char *detail);

/* The same where the channel has ended before: it was lost, whoever closes it then, or closed. */
void weir__tls_tell_ended(weir_ctx *ctx);

/* The handshake may last so long from now on. */
void weir__tls_limit_handshake(weir_ctx *ctx);

/* ---- tls_offload.c ---- */

/* The next step, with the bytes of `in` (or NULL), elsewhere. False: it has to be done here. */
bool weir__tls_offload(weir_ctx *ctx, weir_buf *in);

/* ---- tls_writes.c ---- */

/* Makes records of what is flushed, and writes them. */
void weir__tls_seal(weir_ctx *ctx);

/* Fails what is held, and a half closure behind it. Who does not wait does not hear of it. */
void weir__tls_fail_writes(weir_ctx *ctx, int err, const char *detail);

/* ---- tls_closing.c ---- */

void weir__tls_close(weir_ctx *ctx, weir_promise *done);
void weir__tls_shutdown_output(weir_ctx *ctx, weir_promise *done);

/* Goes on with a close or half closure that has been asked for, if it can. */
void weir__tls_go_on_closing(weir_ctx *ctx);

/* Those behind hear that the peer has ended TLS, if they have not, and the rest is done. */
void weir__tls_peer_ended(weir_ctx *ctx);

/* The peer has ended its stream: it is an error if TLS was not ended before. */
void weir__tls_input_ended(weir_ctx *ctx);

/* A close may wait so long from now on: until something can be sent, for a peer that takes nothing,
 * or for its end of TLS. If there is one. */
void weir__tls_limit_close(weir_ctx *ctx);

/* True if a close waits for the peer's end, or a write for the rest of a message of the peer's. */
bool weir__tls_waits_for_bytes(const weir__tls *tls);

/* Reads on, where that is on demand, if a close waits for the peer's end, or writes for the end of
 * what it has begun to say: nobody else asks then. */
void weir__tls_ask_for_more(weir_ctx *ctx);

/* The handler goes, or leaves its loop: nobody comes back to it. */
void weir__tls_forget_last_write(weir__tls *tls);

/* ---- tls_handshake.c ---- */

/* NULL facts: it has failed. Keeps: peer. Always gives one: without memory, one that says so. */
weir_msg *weir__tls_handshake_create(int err, const char *detail, const weir__tls_facts *facts,
                                     weir_tls_certificate *peer);

#endif
