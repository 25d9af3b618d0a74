/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/demand.h - what a handler that may pass on several messages for one read remembers: whether
 * the next message was requested, and the messages that were not.
 *
 * With auto-read every message passes. Without it each weir_request_read from behind lets one
 * message pass, and the others wait in the handler, which asks for more only when it has nothing
 * left. The end of the input waits behind them. The bases of decoders do all of this, and so do
 * TLS and flow control: see docs/internals/pipeline.md.
 */
#ifndef WEIR_DEMAND_H
#define WEIR_DEMAND_H

#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Messages in a row. Private. */
typedef struct weir_msg_queue {
    struct weir__msg_item *first;
    struct weir__msg_item **end; /* the link that ends it; undefined while it is empty */
} weir_msg_queue;

/* The first member of the state of a handler with `keeps_reads`. Private. */
typedef struct weir_demand {
    weir_msg_queue kept;
    bool is_asked;      /* a message was requested and not passed on */
    bool is_answering;  /* the message that was requested is being passed on */
    bool is_running;    /* a call further out on the stack passes messages on */
    bool has_passed;    /* a message, since the last read_complete */
    bool owes_complete; /* read_complete, after the messages that may pass */
    bool owes_request;  /* a request, if nothing is left to pass on */
    uint8_t kept_end;   /* events of the end that wait behind the messages */
} weir_demand;

#ifdef __cplusplus
}
#endif

#endif
