/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a client.
 *
 *      weir_http_client -- shard (one per loop) -- origin -- pool of connections
 *                                    \                            |
 *                                     call ------------------- connection (a handler)
 *
 * Everything below the client belongs to one loop and is used only there; only reference counts and
 * counters are atomic. Lifetimes:
 *
 *   users    references of the application; the last one closes the client
 *   work     calls, origins and open shards; the last one completes the promise `closed`
 *   memory   the two above, calls that have yet to start, and each origin; the last one frees
 *
 * An origin is retained by the table, by each call, by each connection and by its pool until that
 * is closed.
 */
#ifndef WEIR_PROTOCOL_HTTP_CLIENT_H
#define WEIR_PROTOCOL_HTTP_CLIENT_H

#include <stdatomic.h>

#include <weir/client.h>
#include <weir/http_client.h>
#include <weir/http_uri.h>

#include "base/list.h"
#include "base/refcount.h"
#include "executor/mailbox.h"

#define WEIR__HTTP_ORIGIN_BUCKETS 64
#define WEIR__HTTP_MAX_RETRIES 3 /* of a request, after a connection was lost */

/* Written on the shard's loop only, read on any thread. */
enum weir__http_client_counter {
    WEIR__HTTP_OPENED,
    WEIR__HTTP_CLOSED,
    WEIR__HTTP_BUSY, /* connections with a call */
    WEIR__HTTP_CALLS,
    WEIR__HTTP_CONNECTED,
    WEIR__HTTP_SUCCEEDED,
    WEIR__HTTP_FAILED,
    WEIR__HTTP_REUSED,
    WEIR__HTTP_RETRIED,
    WEIR__HTTP_REDIRECTED,
    WEIR__HTTP_COUNTERS,
};

typedef struct weir__http_origin weir__http_origin;

/* The part of a client on one loop. */
typedef struct weir__http_shard {
    weir_http_client *client;
    weir_executor *loop;
    weir__http_origin *buckets[WEIR__HTTP_ORIGIN_BUCKETS];
    weir__list used; /* weir__http_origin.used, least recently first */
    size_t origins;
    weir__list calls; /* weir_http_call.link */
    bool is_closed;
    weir__mailbox box;        /* whose only flag closes it */
    weir_listener terminated; /* of a loop that has ended before */
    _Atomic uint64_t counters[WEIR__HTTP_COUNTERS];
} weir__http_shard;

enum weir__http_proxy {
    WEIR__HTTP_PROXY_NONE,
    WEIR__HTTP_PROXY_HTTP,
    WEIR__HTTP_PROXY_SOCKS5,
};

struct weir_http_client {
    weir__refs users;
    weir__refs work;
    weir__refs memory;
    weir_http_client_options options;
    weir_http1_options http1;
    weir_http_compression_options decompression;
    weir_channel_options channel;
    char *user_agent;
    char *accept_encoding; /* NULL = none is sent */
    enum weir__http_proxy proxy;
    char *proxy_address;       /* "host:port" */
    weir_buf *proxy_userinfo;  /* decoded "user:password"; NULL = none */
    char *proxy_authorization; /* "Basic ..."; NULL = none */
    weir_promise *closed;
    atomic_bool is_closing;
    size_t shard_count;
    weir__http_shard shards[];
};

/* ---- the client ---- */

void weir__http_client_retain_work(weir_http_client *client);
void weir__http_client_release_work(weir_http_client *client);
void weir__http_client_retain_memory(weir_http_client *client);
void weir__http_client_release_memory(weir_http_client *client);

static inline void weir__http_shard_count(weir__http_shard *shard,
                                          enum weir__http_client_counter counter, int change)
{
    /* Relaxed: the loop is the only writer; a reader wants any recent value. */
    uint64_t before = atomic_load_explicit(&shard->counters[counter], memory_order_relaxed);

    atomic_store_explicit(&shard->counters[counter], before + (uint64_t)(int64_t)change,
                          memory_order_relaxed);
}

/* Zeroed memory; a copy of a text. NULL if there is no memory. */
void *weir__http_client_alloc(size_t size);
char *weir__http_client_copy(weir_span text);

/* A URL without its user and password, for logs: also of a text that is none. Returns `buffer`. */
#define WEIR__HTTP_REDACTED_SIZE 512
const char *weir__http_redact(const char *url, char buffer[WEIR__HTTP_REDACTED_SIZE]);

/* "Basic ..." for a userinfo; percent-decodes it. */
int weir__http_basic_credentials(weir_span userinfo, char **ret_credentials);

/* ---- origins ---- */

struct weir__http_origin {
    weir__refs refs;
    weir__http_shard *shard;
    weir__http_origin *next; /* in its bucket */
    weir__list used;
    uint64_t hash;
    weir_client_pool *pool;
    weir_listener pool_closed;
    bool is_tls;
    bool is_listed; /* in the table of its shard */
    size_t calls;
    char *host;       /* in lower case, without brackets */
    char *address;    /* "host:port", with brackets */
    char *host_field; /* the same without the scheme's own port */
    size_t length;
    char text[]; /* "https://host:port" */
};

/* What identifies an origin: parsed from a URL, without copies. */
typedef struct weir__http_origin_key {
    bool is_tls;
    uint64_t hash;
    size_t length;
    char text[300]; /* normalized: "https://[::1]:443" */
} weir__http_origin_key;

/* Fails with -EINVAL or -EPROTONOSUPPORT. */
int weir__http_origin_key_of(const weir_http_uri *uri, weir__http_origin_key *ret_key);

/* Finds an origin by its text, if that is normalized; NULL if there is none. On the loop. */
weir__http_origin *weir__http_origin_find(weir__http_shard *shard, weir_span text);

/* Finds or creates an origin. On the loop. */
int weir__http_origin_get(weir__http_shard *shard, const weir__http_origin_key *key,
                          weir__http_origin **ret_origin);
weir__http_origin *weir__http_origin_retain(weir__http_origin *origin);
void weir__http_origin_release(weir__http_origin *origin);

/* Removes all origins from the table and closes their pools. */
void weir__http_origins_close(weir__http_shard *shard);

/* ---- connections ---- */

/* The last handler of a connection. */
typedef struct weir__http_connection {
    weir_ctx *ctx;
    weir__http_origin *origin;
    weir_http_call *call; /* NULL if idle */
    uint64_t responses;   /* complete ones */
    bool is_active;       /* the tunnel of a proxy included */
    bool is_settling;     /* no request until the reads of the turn are delivered */
    weir_task settling;
    bool is_closed;
    bool is_draining;      /* it will not be reused */
    bool is_auto_read_off; /* by its call */
    bool has_response;     /* any head has arrived for its call */
} weir__http_connection;

int weir__http_connection_add(weir_pipeline *pipeline, weir__http_origin *origin);

/* Before it returns to the pool. Fails if the loop takes no task. */
int weir__http_connection_settle(weir__http_connection *connection);

/* The connection of a channel; NULL if it is closed. */
weir__http_connection *weir__http_connection_of(weir_channel *channel);

/* ---- calls ---- */

enum weir__http_call_phase {
    WEIR__HTTP_CALL_STARTING,
    WEIR__HTTP_CALL_CONNECTING, /* waiting for a connection, or for it to become active */
    WEIR__HTTP_CALL_SENDING,
    WEIR__HTTP_CALL_AWAITING, /* the request is complete */
    WEIR__HTTP_CALL_RECEIVING,
    WEIR__HTTP_CALL_REDIRECTING, /* discards the content of a redirection */
    WEIR__HTTP_CALL_ENDED,
};

/* The request on the current connection. */
enum weir__http_call_output {
    WEIR__HTTP_CALL_NEW,       /* no part of it has been written, on any connection */
    WEIR__HTTP_CALL_UNSENT,    /* on this connection */
    WEIR__HTTP_CALL_EXPECTING, /* the head is written, the content waits for status 100 */
    WEIR__HTTP_CALL_WRITING,
    WEIR__HTTP_CALL_WRITTEN, /* up to its end */
};

enum weir__http_call_content {
    WEIR__HTTP_CALL_KEPT, /* none, or one that can be repeated */
    WEIR__HTTP_CALL_STREAMED,
    WEIR__HTTP_CALL_BEGUN,   /* a piece is gone, so it cannot be repeated */
    WEIR__HTTP_CALL_DROPPED, /* by a redirection */
};

enum weir__http_call_reading {
    WEIR__HTTP_CALL_READS,
    WEIR__HTTP_CALL_READS_ON_DEMAND,
    WEIR__HTTP_CALL_DEMANDED, /* since the last event */
};

enum weir__http_call_protocol {
    WEIR__HTTP_CALL_HTTP,
    WEIR__HTTP_CALL_UPGRADES, /* status 101 is no error */
    WEIR__HTTP_CALL_TUNNEL,   /* content and writes are bytes of another protocol */
};

/* Events wait until weir_http_client_send has returned. */
enum weir__http_call_events {
    WEIR__HTTP_CALL_EVENTS_AT_ONCE,
    WEIR__HTTP_CALL_EVENTS_LATER,
    WEIR__HTTP_CALL_WRITABLE_LATER, /* there is one */
};

/* Flags of its mailbox, which are handled in this order. */
enum weir__http_call_flag {
    WEIR__HTTP_CALL_START = 1 << 0,
    WEIR__HTTP_CALL_END = 1 << 1, /* an event that has waited for weir_http_client_send */
    WEIR__HTTP_CALL_CANCEL = 1 << 2,
    WEIR__HTTP_CALL_READ = 1 << 3,     /* the application demands the next piece */
    WEIR__HTTP_CALL_WRITABLE = 1 << 4, /* as END */
};

struct weir_http_call {
    weir__refs refs;
    weir__mailbox box; /* to the loop of the shard */
    weir_http_client *client;
    weir__http_shard *shard;
    weir__list link;

    const weir_http_call_events *events;
    void *user_data;
    weir_http_request *request;
    weir_msg *content; /* kept, to be repeated */
    weir_http_end *trailers_end;
    weir_http_response *switched; /* 101, until its end: then the connection is a tunnel */

    enum weir__http_call_phase phase;
    enum weir__http_call_output output;
    enum weir__http_call_content streaming;
    enum weir__http_call_reading reading;
    enum weir__http_call_protocol protocol;
    enum weir__http_call_events delivery;
    bool takes_content; /* from weir_http_call_write; constant, as it is read on any thread */
    bool is_idempotent;
    bool has_jar_cookies;   /* the Cookie field is that of the jar */
    bool lacked_connection; /* timed out while all connections of its origin were in use */
    atomic_bool is_writable;
    weir__http_origin_key *key; /* until it has started */
    weir__http_origin *origin;
    weir_promise *acquiring;
    weir__http_origin *acquiring_from; /* retained until the acquisition is complete */
    weir_listener acquired;
    weir_channel *channel;
    weir__http_connection *connection;

    weir__list pending; /* writes that wait for a connection, or for status 100 */
    int retries;
    int redirects;
    int max_redirects;
    char *location; /* the URL to continue with */
    int redirect_status;
    uint64_t received;
    uint64_t max_content;
    uint64_t discarded;

    int64_t timeout_ns;
    weir_timer timer;
    int64_t timer_at_ns;
    int64_t whole_at_ns;
    int64_t phase_at_ns;

    int end_err; /* of an end that has to wait for weir_http_client_send */
    char *end_detail;
};

/* True on the loop of a shard. */
bool weir__http_client_is_here(weir_http_client *client);

/* Sets the origin, which it takes. On its loop. */
void weir__http_call_enter_origin(weir_http_call *call, weir__http_origin *origin);

/* On its loop: starts the call; or ends it before it has started. */
void weir__http_call_start(weir_http_call *call);
void weir__http_call_refuse(weir_http_call *call, int err);

/* weir_http_client_send returns, on the loop: events may be called from now on. */
void weir__http_call_end_send(weir_http_call *call);

/* Limits the time of the current phase, from now on; the same for content, without a timer call. */
void weir__http_call_limit_phase(weir_http_call *call, int64_t timeout_ns);
void weir__http_call_note_progress(weir_http_call *call);

/* Continues with an origin; waits for a connection to the current one. */
void weir__http_call_connect(weir_http_call *call, const weir__http_origin_key *key);
void weir__http_call_acquire(weir_http_call *call);

/* Gives the connection back to the pool, or aborts it. */
void weir__http_call_detach(weir_http_call *call, bool is_reusable);

/* Closes the connection of a tunnel, when what was written has been sent; the call ends then. */
void weir__http_call_close_tunnel(weir_http_call *call);

/* Sends the content of the request, after its head. */
void weir__http_call_send_content(weir_http_call *call);

/* Ends the call, with a detail that is complete. `deliver_end` then calls the event. */
void weir__http_call_finish(weir_http_call *call, int err, const char *detail);
void weir__http_call_deliver_end(weir_http_call *call, int err, const char *detail);

/* Requests the next piece of the response. */
void weir__http_call_read_more(weir_http_call *call);

/* Whether there is streamed content to come. */
static inline bool weir__http_call_streams(const weir_http_call *call)
{
    return call->streaming == WEIR__HTTP_CALL_STREAMED || call->streaming == WEIR__HTTP_CALL_BEGUN;
}

/* Whether content can be written to the connection; the request has been written to its end. */
bool weir__http_call_can_write(const weir_http_call *call);
void weir__http_call_end_request(weir_http_call *call);

/* Content that was written too early: writes it, or drops it. */
void weir__http_call_write_pending(weir_http_call *call);
void weir__http_call_drop_pending(weir_http_call *call);

/* Events of the connection, which is the call's until it is detached. `on_active`: a request may be
 * sent. */
void weir__http_call_on_active(weir_http_call *call);
void weir__http_call_on_head(weir_http_call *call, weir_http_response *response);
void weir__http_call_on_content(weir_http_call *call, weir_msg *msg);
void weir__http_call_on_end(weir_http_call *call, weir_http_end *end);
void weir__http_call_on_writability(weir_http_call *call);
void weir__http_call_on_lost(weir_http_call *call, int err, const char *detail);

/* Ends the call with an error. */
void weir__http_call_fail(weir_http_call *call, int err, const char *detail);

/* Takes the URL of a request apart: sets its target to the path, adds Authorization. */
int weir__http_call_take_url(weir_http_request *request, weir_span url,
                             weir__http_origin_key *ret_key);

/* Adds the fields that the client adds, for the current origin. */
int weir__http_call_complete_request(weir_http_call *call);

/* ---- redirections ---- */

/* Whether a response redirects; sets call->location. A negative error ends the call. */
int weir__http_redirect_check(weir_http_call *call, const weir_http_response *response);

/* Changes the request for call->location. */
int weir__http_redirect_apply(weir_http_call *call, weir__http_origin_key *ret_key);

/* ---- cookies ---- */

int weir__http_cookies_send(weir_http_call *call);
void weir__http_cookies_receive(const weir_http_call *call, const weir_http_response *response);

/* ---- proxies ---- */

/* Handlers that open a tunnel to an address before the connection becomes active for the handlers
 * behind them, and then remove themselves. */
int weir__http_tunnel_add(weir_pipeline *pipeline, const char *target, const char *authorization);
int weir__http_socks5_add(weir_pipeline *pipeline, const char *host, uint16_t port,
                          weir_span userinfo);

#endif
