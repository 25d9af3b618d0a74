/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of the codec: its state, shared by the files that read, write and time.
 *
 * One exchange at a time:
 *
 *      HEAD  ->  CONTENT  ->  RESPONSE  ->  HEAD ...      what is read next
 *
 * A head is read only when the response before it has been written to its end. In RESPONSE, and
 * while the channel is unwritable, `decode` waits: the decoder is stuck until it is resumed.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP1_SERVER_H
#define WEIR_PROTOCOL_HTTP_HTTP1_SERVER_H

#include <weir/codec.h>
#include <weir/handler.h>
#include <weir/timer.h>

#include "protocol/http/http1_body.h"
#include "protocol/http/http1_config.h"
#include "protocol/http/http1_writer.h"

enum weir__http1_phase {
    WEIR__HTTP1_HEAD,     /* the head of the next request */
    WEIR__HTTP1_CONTENT,  /* content of the request; its response may have begun or ended */
    WEIR__HTTP1_RESPONSE, /* nothing: the response has not ended */
    WEIR__HTTP1_DEAD,     /* nothing any more: refused, or closing */
};

/* What is being read. Most heads arrive whole and without content: there is none then. */
typedef struct weir__http1_reading {
    weir__http1_parser parser;
    weir__http1_body body;
    weir_http_request *request; /* whose head is incomplete; NULL behind the head */
} weir__http1_reading;

/* What a call that runs (decodes, or resumes) has to do at its end. */
enum {
    WEIR__HTTP1_RUNS = 1 << 0,    /* the call is on the stack, */
    WEIR__HTTP1_FLUSHES = 1 << 1, /* a flush waits for it, to send all responses as one buffer, */
    WEIR__HTTP1_RESUMES = 1 << 2, /* and so does decoding; */
    WEIR__HTTP1_BEGAN = 1 << 3,   /* the current request began within: record_run has its time */
};

/* What follows the current response. */
enum weir__http1_next {
    WEIR__HTTP1_NEXT_REQUEST,
    WEIR__HTTP1_NEXT_CLOSE,    /* it said that the connection ends */
    WEIR__HTTP1_NEXT_PROTOCOL, /* it said that another protocol follows, */
    WEIR__HTTP1_SWITCHED,      /* which it does: everything passes unchanged */
};

/* Whether `decode` can use bytes. */
enum weir__http1_input {
    WEIR__HTTP1_INPUT_OPEN,
    WEIR__HTTP1_INPUT_STUCK,  /* it waits for something other than bytes, */
    WEIR__HTTP1_INPUT_PAUSED, /* and those that wait are above WAITING_MAX: nothing is read */
};

/* The meaning of since_ns. */
enum weir__http1_since {
    WEIR__HTTP1_SINCE_NOTHING,
    WEIR__HTTP1_SINCE_HEAD,    /* the first byte of the head, or the connection */
    WEIR__HTTP1_SINCE_CONTENT, /* the start of the period in which content is counted */
    WEIR__HTTP1_SINCE_IDLE,    /* not earlier than the end of the last exchange */
};

/* Small, because a server has many idle connections. */
typedef struct weir__http1_server {
    weir_decoder_state decoder; /* first */
    weir__http1_writer writer;
    weir__http1_reading *reading;
    const weir__http1_config *config;

    uint8_t phase;        /* enum weir__http1_phase */
    uint8_t method;       /* of the current request */
    bool holds_end;       /* of the input: it waits behind requests */
    bool is_http10;       /* the current request is of version 1.0 */
    bool is_persistent;   /* its client wants to keep the connection */
    bool awaits_continue; /* its client waits for status 100 */
    bool has_responded;   /* its response has ended, its content has not */
    uint8_t run;          /* WEIR__HTTP1_RUNS ... */
    uint8_t next;         /* enum weir__http1_next */
    uint8_t input;        /* enum weir__http1_input */
    bool is_draining;
    uint32_t waiting;  /* bytes received while stuck */
    uint32_t requests; /* at most UINT32_MAX */
    uint32_t ended;    /* requests that began and ended in this batch: not recorded yet */
    int64_t begun_ns;  /* when the current request began, unless WEIR__HTTP1_BEGAN */

    /* Timeouts; see http1_server_timeouts.c. */
    weir_timer timer;
    int64_t armed_until_ns;  /* when the timer fires; WEIR_NEVER = it does not run */
    int64_t since_ns;        /* by `since` */
    int64_t received;        /* bytes of content in this period */
    int64_t output_since_ns; /* the start of the period in which output is counted; 0 = none */
    int64_t output_seen;     /* bytes sent then */
    uint32_t output_file;    /* writer.files then */
    uint8_t since;           /* enum weir__http1_since */
} weir__http1_server;

/* ---- http1_server.c ---- */

/* Answers with a status and closes the connection. */
void weir__http1_server_refuse(weir_ctx *ctx, weir__http1_server *server, int status,
                               const char *detail);

/* Decodes further if `decode` waited for something that has happened. */
void weir__http1_server_resume(weir_ctx *ctx, weir__http1_server *server);

/* Closes the connection after what was written. */
void weir__http1_server_close(weir_ctx *ctx, weir__http1_server *server);

/* Hands the connection over to another protocol, when request and response have ended. */
void weir__http1_server_switch(weir_ctx *ctx, weir__http1_server *server);

/* ---- http1_server_write.c ---- */

/* The slots of the same name. */
void weir__http1_server_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);
void weir__http1_server_flush(weir_ctx *ctx);

/* See weir__http_codec. */
bool weir__http1_server_answer(weir_ctx *ctx, const weir__http_answer *answer);
void weir__http1_server_end_answer(weir_ctx *ctx);

void weir__http1_server_on_close(weir_ctx *ctx, weir_promise *done);
void weir__http1_server_shutdown_output(weir_ctx *ctx, weir_promise *done);

/* ---- http1_server_timeouts.c ---- */

/* Starts the timer: the channel is active. */
void weir__http1_server_start_timer(weir_ctx *ctx, weir__http1_server *server);

/* True if the head of a request has begun and is incomplete. */
static inline bool weir__http1_server_is_in_head(const weir__http1_server *server)
{
    return server->phase == WEIR__HTTP1_HEAD && server->reading != NULL;
}

/* To be called after a read: starts timeouts of heads and content that are incomplete. */
void weir__http1_server_watch(weir_ctx *ctx, weir__http1_server *server);

#endif
