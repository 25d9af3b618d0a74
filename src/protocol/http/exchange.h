/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of exchanges.
 *
 *      exchange_handler.c   the handler: finds the route, passes on the request's parts
 *      exchange_content.c   the content of the request: collected, streamed or discarded
 *      exchange_response.c  the response
 *      exchange_upgrade.c   handing the connection over to another protocol
 *      exchange.c           lifecycle, calls between the loop and other threads, accessors
 *
 * Threads. Everything that touches the channel runs on its loop. Calls from other threads are
 * posted to `to_loop`, and callbacks to `to_handler`, which runs on the thread of the route's
 * handler (executor/mailbox.h). Until a handler retains its exchange, or runs on another group, the
 * exchange is not shared: then no other thread knows it, and no locked instruction is executed.
 *
 * Ownership. `users` counts the call of the handler and references. The last user drops the
 * exchange, on the loop: what is not answered is given up. `refs` counts the holders of the memory:
 * all users together until then, the connection (the handler's state), and mailboxes that are not
 * empty. The last one frees it, on any thread.
 *
 * States, each of them a field of its own:
 *
 *      phase   OPEN -> BEGUN -> ENDED             the response, claimed on any thread
 *              OPEN ---------> ENDED
 *      mode    COLLECT or STREAM -> DISCARD       when the response ends before the request
 *      input   OPEN -> AWAITS_CONTINUE -> OPEN    by `expect`; by status 100 or a final one
 *              either -> ENDED                    the end of the request
 *      use     PENDING -> CALLED -> DROPPED       the handler; without users there are no callbacks
 *
 * Order. `phase` is claimed by compare-and-swap; only the winner touches the response. While
 * `to_loop` is not empty, calls on the loop are posted, too: none overtakes an earlier one of
 * another thread.
 */
#ifndef WEIR_PROTOCOL_HTTP_EXCHANGE_H
#define WEIR_PROTOCOL_HTTP_EXCHANGE_H

#include <stdatomic.h>

#include <weir/channel.h>

#include "base/refcount.h"
#include "executor/mailbox.h"
#include "os/mutex.h"
#include "protocol/http/message.h"
#include "protocol/http/route_tree.h"

/* Flags of `to_loop`, which are handled in this order. */
enum weir__exchange_call {
    WEIR__EXCHANGE_READ = 1 << 0,     /* content was requested */
    WEIR__EXCHANGE_CHECK = 1 << 1,    /* a callback was set */
    WEIR__EXCHANGE_RELEASED = 1 << 2, /* by the last user */
};

/* Flags of `to_handler`, likewise. */
enum weir__exchange_event {
    WEIR__EXCHANGE_EVENT_PIECE = 1 << 0,    /* of content */
    WEIR__EXCHANGE_EVENT_LAST = 1 << 1,     /* the end of the content, or an error */
    WEIR__EXCHANGE_EVENT_WRITABLE = 1 << 2, /* the on_writable callback */
    WEIR__EXCHANGE_EVENT_LOST = 1 << 3,     /* the on_lost callback */
};

enum weir__exchange_phase {
    WEIR__EXCHANGE_OPEN,  /* no response */
    WEIR__EXCHANGE_BEGUN, /* a streamed response */
    WEIR__EXCHANGE_ENDED,
};

/* Content of the request. */
enum weir__exchange_mode {
    WEIR__EXCHANGE_COLLECT, /* until it is complete; then the handler runs */
    WEIR__EXCHANGE_STREAM,  /* on demand; auto-read is off */
    WEIR__EXCHANGE_DISCARD, /* the response has ended, or will be an error */
};

/* The client's side of the connection. */
enum weir__exchange_input {
    WEIR__EXCHANGE_INPUT_OPEN,
    WEIR__EXCHANGE_INPUT_AWAITS_CONTINUE, /* the client waits for status 100 */
    WEIR__EXCHANGE_INPUT_ENDED,           /* the end of the request was received */
};

/* Its handler, or what else uses it. */
enum weir__exchange_use {
    WEIR__EXCHANGE_PENDING, /* one user is the handler's call, which is still to come */
    WEIR__EXCHANGE_CALLED,
    WEIR__EXCHANGE_DROPPED, /* no users are left: callbacks are not called any more */
};

/* A one-shot callback, set on any thread and taken by the handler's. */
struct weir__exchange_callback {
    weir_http_exchange_fn *fn; /* NULL = none */
    void *user_data;
};

/* Another protocol that takes the connection over. */
struct weir__exchange_upgrade {
    weir_init_fn *init; /* NULL = none */
    void *user_data;
};

/* The state of the handler: one for each connection. */
struct weir__exchange_connection {
    weir_http_router *router; /* retained */
    weir_ctx *ctx;
    weir_http_exchange *exchange; /* the current one, attached */
    uint64_t max_content;
    bool is_draining;
    struct weir__exchange_upgrade upgrade; /* whose 101 has been written */
};

struct weir_http_exchange {
    _Atomic uint32_t users;
    weir__refs refs;
    _Atomic int64_t posted_bytes; /* of content in `to_loop`: not in the channel's queue yet */
    _Atomic uint8_t phase;
    atomic_bool is_lost; /* the connection is gone, or the codec has refused the request */
    bool is_shared;      /* see above; then ctx and router are retained */

    /* On the loop. The pointer keeps the flags in another word than those above: compilers read
     * adjacent ones together. */
    struct weir__exchange_connection *connection; /* NULL = detached */
    uint64_t received; /* bytes of content; while discarding, since then */
    uint8_t mode;
    uint8_t input;
    uint8_t use;
    bool is_content_copied;  /* `content` is a copy, to append to */
    bool is_last_delivered;  /* the last content callback */
    bool has_ended_response; /* up to its end */
    bool has_encoded_slash;  /* in the value of "{name*}"; without one, of any parameter */

    weir_ctx *ctx;
    weir_executor *loop;
    weir_executor *executor; /* of the handler, retained; NULL = the loop */
    weir_http_router *router;
    const weir__http_route *route;
    weir_http_request *request;
    weir_http_headers headers;           /* of the response, until it is begun */
    weir_buf *content;                   /* collected; NULL = none */
    weir_http_end *end;                  /* of the request, if it has trailers; NULL */
    weir_buf *block;                     /* its memory; NULL = in the request's */
    struct weir__exchange_text *decoded; /* values of the query string; the handler's thread */
    weir_http_content_fn *content_fn;
    void *content_user_data;

    /* Initialized when it becomes shared. */
    weir__mailbox to_loop;
    weir__mailbox to_handler;
    weir_task run;           /* of the handler */
    weir_msg *_Atomic piece; /* on its way to the handler's thread */
    int content_err;
    weir__mutex mutex; /* guards these: */
    struct weir__exchange_callback on_lost;
    struct weir__exchange_callback on_writable;

    weir_span values[]; /* of the route's parameters; the decoded path may follow */
};

/* A decoded value of the query string. */
struct weir__exchange_text {
    struct weir__exchange_text *next;
    uint8_t bytes[];
};

/* --- exchange.c --- */

/*
 * On the loop: creates an exchange with one user, and attaches it. `extra` bytes follow its values.
 * Takes the request. Fails with -ENOMEM.
 */
int weir__http_exchange_create(struct weir__exchange_connection *connection,
                               weir_http_request *request, size_t extra,
                               weir_http_exchange **ret_exchange);

/* The extra bytes. */
uint8_t *weir__http_exchange_extra(weir_http_exchange *exchange);

/* On the loop, before another thread knows it. */
void weir__http_exchange_share(weir_http_exchange *exchange);

/* On the handler's thread: calls the handler of the route, and releases the user that the call
 * is. */
void weir__http_exchange_run(weir_http_exchange *exchange);

/* A reference to its memory. */
void weir__http_exchange_release_memory(weir_http_exchange *exchange);

/* On the loop: detaches it from its connection. */
void weir__http_exchange_detach(weir_http_exchange *exchange);

/* As weir_http_exchange_is_writable, of a connection that is not lost. */
static inline bool weir__http_exchange_has_room(const weir_http_exchange *exchange)
{
    int64_t posted = atomic_load_explicit(&exchange->posted_bytes, memory_order_relaxed);

    if (posted == 0)
        return weir_ctx_is_writable(exchange->ctx);
    return weir_channel_bytes_before_unwritable(weir_ctx_channel(exchange->ctx)) > posted;
}

/* True if the caller is on the loop, and nothing that was posted comes before its call. */
static inline bool weir__http_exchange_is_direct(const weir_http_exchange *exchange)
{
    return !exchange->is_shared ||
           (weir__mailbox_is_empty(&exchange->to_loop) && weir_in_executor(exchange->loop));
}

/* On the loop: delivers events to the handler's thread. */
void weir__http_exchange_signal(weir_http_exchange *exchange, uint32_t events);

/* On the loop: runs the handler on an executor. Fails as weir_execute_task. */
int weir__http_exchange_dispatch(weir_http_exchange *exchange, weir_executor *executor);

/* On the loop: signals callbacks that are due. */
void weir__http_exchange_check(weir_http_exchange *exchange);

/* --- exchange_content.c --- */

/* On the loop: begins with the content of a request whose route is set. */
void weir__http_content_begin(weir_http_exchange *exchange);

/* On the loop. Take the message, the latter an end. */
void weir__http_content_piece(weir_http_exchange *exchange, weir_msg *msg);
void weir__http_content_end(weir_http_exchange *exchange, weir_msg *msg);

/* On the loop: the rest of the content will not be delivered. */
void weir__http_content_fail(weir_http_exchange *exchange, int err);

/* On the loop: a streaming handler requests a piece. */
void weir__http_content_read(weir_http_exchange *exchange);

/* On the loop: the response has ended before the request; the rest is discarded. */
void weir__http_content_discard(weir_http_exchange *exchange);

/* True if the content that is left, as far as known, is not worth reading after the response. */
bool weir__http_content_is_long(const weir_http_exchange *exchange);

/* --- exchange_response.c --- */

/* Any thread: as weir_http_respond, with a promise for the body. If this fails, so does `done`. */
int weir__http_exchange_respond(weir_http_exchange *exchange, int status, weir_msg *body,
                                weir_promise *done);

/* Any thread: writes 101 with the headers of the exchange, and upgrades. Fails as the upgrade. */
int weir__http_exchange_respond_upgrade(weir_http_exchange *exchange,
                                        const struct weir__exchange_upgrade *upgrade);

/* On the loop: the exchange has no users and is not answered: 500, or a reset. */
void weir__http_exchange_give_up(weir_http_exchange *exchange);

/* On the loop: answers with an error, and closes the connection. Resets it if a response has
 * begun. If the handler has not run, it will not. */
void weir__http_exchange_refuse(weir_http_exchange *exchange, int status);

/* On the loop: the connection is gone, or the request was refused by another handler. */
void weir__http_exchange_lose(weir_http_exchange *exchange);

/* On the loop: writes a response of status 1xx other than 100 and 101, unless a response has begun
 * or the client does not read. Takes the response. */
void weir__http_exchange_inform(weir_http_exchange *exchange, weir_http_response *response);

/* On the loop: writes status 100. */
void weir__http_exchange_continue(weir_http_exchange *exchange);

/* --- exchange_upgrade.c --- */

/*
 * On the loop: upgrades the connection when 101, whose end is to be written with the promise, has
 * been sent, or when bytes of the next protocol arrive. Fails with -ENOMEM.
 */
int weir__http_upgrade_begin(weir_ctx *ctx, const struct weir__exchange_upgrade *upgrade,
                             weir_promise **ret_written);

/* On the loop: removes the handlers of HTTP and calls `init`. */
void weir__http_upgrade_finish(weir_ctx *ctx);

/* On the loop, or instead of it if it has ended: the connection is lost. Calls `init`, if there is
 * an upgrade, which frees its data. */
void weir__http_upgrade_cancel(weir_channel *channel, struct weir__exchange_upgrade *upgrade);

/* --- router.c --- */

const weir__http_route_tree *weir__http_router_tree(const weir_http_router *router);

/* Creates a router with the routes of another one and more. Fails as weir_http_router_create. */
int weir__http_router_extend(const weir_http_router *router, const weir_http_route *more,
                             weir_http_router **ret_router);

/* An empty buffer, borrowed. */
weir_buf *weir__http_router_empty(const weir_http_router *router);

/* --- exchange_handler.c --- */

extern const weir_handler weir__http_exchange_handler;

/* Its options. */
struct weir__exchange_handler_options {
    weir_http_router *router;
    uint64_t max_content;
};

#endif
