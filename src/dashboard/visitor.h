/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A visitor of a dashboard: a WebSocket.
 *
 *      any thread      offer -> queue, and the newest statistics -> a task of the loop
 *      the loop        writes what waits, unless the messages before are not sent yet
 *
 * So a slow visitor holds the messages that are on the way, and as many that wait. What does not
 * fit is left out: of the statistics all but the newest, of other messages the oldest.
 *
 * References: one of the list of visitors while it is open, one of the handler, and one of each
 * task, promise and block.
 */
#ifndef WEIR_DASHBOARD_VISITOR_H
#define WEIR_DASHBOARD_VISITOR_H

#include <weir/handler.h>

#include "dashboard/dashboard.h"

#define WEIR__VISITOR_QUEUE_MAX 32
#define WEIR__VISITOR_NAME_SIZE 33

typedef struct weir__visitor {
    weir__refs refs;
    weir__dashboard *dashboard; /* retained */

    /* Guarded by the mutex of the dashboard. */
    weir__list link; /* in its visitors */
    bool is_open;
    bool is_posted; /* a task is queued */
    uint64_t number;
    weir_ctx *ctx;          /* retained while it is open */
    weir_ws_message *stats; /* the newest; NULL = none */
    weir_ws_message *queue[WEIR__VISITOR_QUEUE_MAX];
    size_t first; /* in the queue */
    size_t count; /* in the queue */

    /* On the loop. */
    bool is_sending; /* messages are written and not sent */
    bool is_moving;  /* its channel has offload_when_blocking */
    int64_t credit;  /* commands that it may send */
    int64_t credit_at_ns;
    char name[WEIR__VISITOR_NAME_SIZE];

    atomic_bool is_blocking; /* a block has been started and has not ended */
} weir__visitor;

void weir__visitor_release(weir__visitor *visitor);

/* A route's handler, for the WebSocket. */
void weir__dashboard_open_socket(weir_http_exchange *exchange, void *user_data);

/* Offers a message to one visitor, or to all. Any thread; takes the message, which may be NULL. */
void weir__visitor_offer(weir__visitor *visitor, weir_ws_message *message);
void weir__visitors_offer(weir__dashboard *dashboard, weir_ws_message *message);

/* The same for all visitors, by a caller that has the mutex. Takes the message. */
void weir__visitors_append(weir__dashboard *dashboard, weir_ws_message *message);

/* Offers statistics to all visitors. The caller has the mutex. */
void weir__visitors_offer_stats(weir__dashboard *dashboard, weir_ws_message *message);

/* ---- commands.c ---- */

/* On the loop: a text that the visitor has sent. */
void weir__visitor_command(weir__visitor *visitor, weir_ctx *ctx, weir_span text);

/* ---- blocking.c ---- */

/* Adds the handler that blocks, behind the visitor's. Its option is the visitor. */
extern const weir_handler weir__dashboard_block_handler;

/* On the loop: sets offload_when_blocking as the switch says. False: nothing has changed. */
bool weir__visitor_apply_switch(weir__visitor *visitor, weir_ctx *ctx);

#endif
