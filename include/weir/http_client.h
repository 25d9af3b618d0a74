/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_client.h - HTTP clients: connections pooled by origin, redirects, proxies, timeouts.
 *
 *      weir_http_client_create(NULL, &client);
 *      weir_http_client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = "http://example.org/"),
 *                             &promise);
 *      ...
 *      weir_http_full *full = weir_promise_value(promise);
 *
 * Three ways to use it: weir_http_get_sync for scripts; weir_http_client_fetch for whole responses;
 * weir_http_client_send for content that streams in either direction.
 *
 * A client has connections on each loop of its group, in pools by origin (scheme, host and port).
 * A call runs on one loop: the caller's, if that is one of them, otherwise the one that its origin
 * has. So connections are reused, and calls share nothing.
 *
 * A request that fails on a reused connection before any byte of the response has arrived is sent
 * again if it is idempotent (RFC 9110 9.2.2) and its content can be repeated: the server may have
 * closed the connection while it was idle.
 *
 * Link with libweir-http, and with libweir-tls for https.
 */
#ifndef WEIR_HTTP_CLIENT_H
#define WEIR_HTTP_CLIENT_H

#include <weir/channel.h>
#include <weir/group.h>
#include <weir/http.h>
#include <weir/http1.h>
#include <weir/http_cookies.h>
#include <weir/http_filters.h>
#include <weir/options.h>
#include <weir/promise.h>
#include <weir/resolver.h>
#include <weir/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- clients ---------------------------------------------------------------------------------- */

typedef struct weir_http_client weir_http_client;
typedef struct weir_tls_context weir_tls_context;

/* Adds TLS to a connection, as weir_tls_add_client. */
typedef int weir_http_client_tls_fn(weir_pipeline *pipeline, weir_tls_context *context,
                                    const char *server_name);

/* Zero means default. Build with WEIR_HTTP_CLIENT_OPTIONS(...). A timeout that is WEIR_OFF never
 * expires. */
typedef struct weir_http_client_options {
    size_t size;
    weir_group *group;     /* event loops, not a thread per channel; default: one of its own,
                              shut down with the client */
    weir_tls_context *tls; /* a client's; required for https; retained by its handlers, so it
                              must live as long as the client. Its .alpn is http/1.1 by default, and
                              nothing else */
    weir_http_client_tls_fn *add_tls; /* weir_tls_add_client; called once by the creation, for a
                                         channel that is not connected */
    const char *proxy;                /* "http://host:3128", which is asked to CONNECT for https;
                                         "socks5://host:1080", which also resolves the names; either
                                         with "user:password@"; default: none */
    int max_connections;              /* per origin and loop; default 16; WEIR_OFF = no limit */
    int max_idle;                     /* of them; default: all */
    int max_waiting;             /* calls that wait for a connection, per origin and loop; more fail
                                    with WEIR_EFULL; default 1024; WEIR_OFF = calls never wait */
    int64_t idle_timeout_ns;     /* closes connections idle for this long; default 30 s */
    int64_t connect_timeout_ns;  /* to get a connection, waiting included; default 10 s */
    int64_t head_timeout_ns;     /* from the end of the request, or from the last response of
                                    status 1xx, to the head of the response; default 60 s */
    int64_t progress_timeout_ns; /* without progress of the content, sent or received, while the
                                    application is ready for it; default 60 s */
    int64_t timeout_ns;          /* of a whole call, with its redirects; default WEIR_OFF */
    int max_redirects;           /* default 10, more fail with -ELOOP; WEIR_OFF = a redirection is
                                    passed on like any other response */
    const char *user_agent;      /* of requests without User-Agent; default "weir/VERSION"; "" =
                                    none */
    weir_http_cookie_jar *cookies; /* sends and stores cookies; must live as long as the client;
                                      default: none */
    bool no_decompression; /* does not send Accept-Encoding by itself, passes content on as it
                              was received */
    const weir_http_compression_options *decompression; /* its limits; copied */
    const weir_http1_options *http1;                    /* copied */
    const weir_channel_options *channel_options;        /* copied */
    weir_resolver *resolver;                            /* default weir_resolver_default() */
    weir_executor *loop; /* instead of a group, such as a loop of weir_loop_create; retained. It
                            must run until the client is closed */
    weir_init_fn *init_connection; /* adds handlers between the codec and the client */
    void *user_data;               /* for it; must live as long as the client */
} weir_http_client_options;

#define WEIR_HTTP_CLIENT_OPTIONS(...) WEIR_OPTIONS(weir_http_client_options, __VA_ARGS__)

/* Current state, and counters since the creation. Each is exact by itself. */
typedef struct weir_http_client_stats {
    uint64_t connections; /* open */
    uint64_t idle;        /* of them */
    uint64_t calls;       /* in progress */
    uint64_t connected;   /* connections established */
    uint64_t succeeded;   /* calls that got a whole response, whatever its status */
    uint64_t failed;      /* calls, cancelled ones included */
    uint64_t reused;      /* requests sent on a connection that had served another */
    uint64_t retried;     /* requests sent again after their connection was lost */
    uint64_t redirected;  /* redirections followed */
    uint64_t reserved[8];
} weir_http_client_stats;

/*
 * Creates a client. NULL options are the defaults.
 * Thread: any.  Keeps: group, loop, resolver.  Gives: client.  Fails: -ENOMEM, -EINVAL (the log
 * says why), -EPROTONOSUPPORT (.tls has other protocols than http/1.1; the log names them),
 * -ENOTSUP (a group with a thread per channel, or without event loops), and as weir_group_create.
 */
WEIR_API WEIR_MUST_USE int weir_http_client_create(const weir_http_client_options *options,
                                                   weir_http_client **ret_client);

/*
 * Retains the client.
 * Thread: any.
 */
WEIR_API weir_http_client *weir_http_client_retain(weir_http_client *client);

/*
 * Releases a reference. NULL is ignored. Releasing the last one closes the client.
 * Thread: any.  Takes: client.
 */
WEIR_API void weir_http_client_release(weir_http_client *client);

/*
 * Closes the client: all calls fail with WEIR_ECLOSED, all connections are closed, and no call can
 * be started.
 * Thread: any.
 */
WEIR_API void weir_http_client_close(weir_http_client *client);

/*
 * Completes when the client is closed, all of its calls have ended and all of its connections are
 * closed. Borrowed; never fails.
 * Thread: any.
 */
WEIR_API weir_promise *weir_http_client_closed(weir_http_client *client);

/*
 * Reads the current stats.
 * Thread: any.
 */
WEIR_API void weir_http_client_read_stats(const weir_http_client *client,
                                          weir_http_client_stats *ret_stats);

/* --- calls ------------------------------------------------------------------------------------ */

/* One request and its response, redirections included. */
typedef struct weir_http_call weir_http_call;

/*
 * The events of a call, in this order, on its loop; any of them may be NULL. They are never called
 * before weir_http_client_send has returned, and none is called after `end`, which is always
 * called.
 */
typedef struct weir_http_call_events {
    /* A response of status 100 to 199; borrowed. */
    void (*informational)(weir_http_call *call, weir_http_response *response, void *user_data);
    /* The head of the response; borrowed: retain it as a message to keep it. */
    void (*head)(weir_http_call *call, weir_http_response *response, void *user_data);
    /* A piece of the content, which the function takes. Without the function it is discarded. */
    void (*content)(weir_http_call *call, weir_msg *msg, void *user_data);
    /* weir_http_call_is_writable has become true. */
    void (*writable)(weir_http_call *call, void *user_data);
    /* The response is complete, with err 0, or the call has failed. `detail` names the method, the
     * URL and the phase: "GET http://example.org/: connect: connection refused". May be called
     * within a function of the call, such as weir_http_call_write, if that fails on the loop. */
    void (*end)(weir_http_call *call, int err, const char *detail, void *user_data);
    void *reserved[3];
} weir_http_call_events;

/* Zero means default. Build with WEIR_HTTP_CALL_OPTIONS(...). */
typedef struct weir_http_call_options {
    size_t size;
    const weir_http_call_events *events; /* must live as long as the call */
    void *user_data;                     /* for them */
    const char *origin;  /* "http://127.0.0.1:8080": then the target of the request is a path, sent
                            as it is; default: the target is a URL */
    bool stream_content; /* the content of the request is written by weir_http_call_write and
                            ended by weir_http_call_end */
    bool read_on_demand; /* each piece of content, and the end, is passed on after a
                            weir_http_call_read */
    int64_t timeout_ns;  /* these as those of the client; default the client's */
    int max_redirects;
    uint64_t max_content; /* bytes of content, decoded; more fail with WEIR_ETOOLONG; default: no
                             limit */
    bool is_idempotent;   /* may be sent again, even if its method is not idempotent */
    bool upgrades;        /* the request has Upgrade, and status 101 is no error: then content and
                             writes are the bytes of the other protocol */
} weir_http_call_options;

#define WEIR_HTTP_CALL_OPTIONS(...) WEIR_OPTIONS(weir_http_call_options, __VA_ARGS__)

/*
 * Sends a request. Its target is a URL, unless `origin` is set. The client adds Host, User-Agent,
 * Accept-Encoding (unless there is a Range: a part, status 206, is passed on as it was received),
 * Cookie, and Authorization if the URL has a userinfo, unless they are set. The content may be
 * NULL; its length is set by the client, that of streamed content by the caller
 * (WEIR_HTTP_UNKNOWN_LENGTH is chunked). If the request has "Expect: 100-continue", the content is
 * sent when the server asks for it, or after one second.
 *
 * Redirections: 303, and 301 or 302 of a POST, become a GET without content. 307 and 308 repeat the
 * content; streamed content cannot be repeated: then the call fails with -ENOTSUP. A redirection to
 * another origin drops Authorization, Cookie and Proxy-Authorization.
 *
 * Upgrades: after a head with status 101 there are no timeouts but that of the whole call, and
 * weir_http_call_end ends only this direction. The call ends with 0 when the server closes.
 * Thread: any.  Takes: request, content.  Gives: call, which may be NULL.  Fails: -ENOMEM, -EINVAL
 * (URL or options), WEIR_ECLOSED, WEIR_EREJECTED, -EPROTONOSUPPORT (neither http nor https; https
 * without TLS).
 */
WEIR_API WEIR_MUST_USE int weir_http_client_send(weir_http_client *client,
                                                 weir_http_request *request, weir_msg *content,
                                                 const weir_http_call_options *options,
                                                 weir_http_call **ret_call);

/*
 * Retains or releases a reference. NULL is ignored by release. Releasing does not cancel.
 * Thread: any.  Takes: call (release).
 */
WEIR_API weir_http_call *weir_http_call_retain(weir_http_call *call);
WEIR_API void weir_http_call_release(weir_http_call *call);

/*
 * Cancels the call: it ends with WEIR_ECANCELED. Does nothing if it has ended.
 * Thread: any.
 */
WEIR_API void weir_http_call_cancel(weir_http_call *call);

/*
 * Requests one piece of content, or the end, of a call that reads on demand.
 * Thread: any.
 */
WEIR_API void weir_http_call_read(weir_http_call *call);

/*
 * Writes a piece of streamed content. `done`, which may be NULL, completes when it has been sent.
 * Before there is a connection the pieces are queued. On the loop of the call, `end` may run before
 * this returns: do not use after it what `end` frees.
 * Thread: any.  Takes: msg.  Keeps: done.  Fails: -EINVAL (not streamed), -ENOMEM; `done` then
 * fails, too.
 */
WEIR_API int weir_http_call_write(weir_http_call *call, weir_msg *msg, weir_promise *done);

/*
 * Ends streamed content, with trailers or NULL.
 * Thread: any.  Takes: end.  Fails: as weir_http_call_write.
 */
WEIR_API int weir_http_call_end(weir_http_call *call, weir_http_end *end);

/*
 * Back-pressure: true if more content should be written now; false before there is a connection.
 * Thread: any.
 */
WEIR_API bool weir_http_call_is_writable(const weir_http_call *call);

/*
 * True if a part of the request may have been sent. A call that has failed before that can be
 * repeated, whatever its method.
 * Thread: that of the events.
 */
WEIR_API bool weir_http_call_is_sent(const weir_http_call *call);

/*
 * The loop that the call runs on, borrowed.
 * Thread: any.
 */
WEIR_API weir_executor *weir_http_call_executor(const weir_http_call *call);

/*
 * Writes the current URL, after redirections. Returns the length of the whole text, as snprintf.
 * Thread: that of the events.
 */
WEIR_API size_t weir_http_call_format_url(const weir_http_call *call, char *buffer, size_t size);

/*
 * The trailers of the response, borrowed; NULL if there are none. In the event `end`.
 * Thread: that of the events.
 */
WEIR_API const weir_http_headers *weir_http_call_trailers(const weir_http_call *call);

/* --- whole responses -------------------------------------------------------------------------- */

/* Zero means default. Build with WEIR_HTTP_FETCH_OPTIONS(.url = ...). */
typedef struct weir_http_fetch_options {
    size_t size;
    const char *method; /* default "GET" */
    const char *url;
    const char *const *fields; /* header fields: name, value, name, value, NULL */
    weir_msg *content;         /* a buffer or a composite; retained; default: none */
    int64_t timeout_ns;        /* these as those of the client; default the client's */
    int max_redirects;
    uint64_t max_content; /* bytes of the response's content; default 16 MiB */
    weir_executor
        *executor; /* runs the listeners of the promise; default the caller's, or the global one */
} weir_http_fetch_options;

#define WEIR_HTTP_FETCH_OPTIONS(...) WEIR_OPTIONS(weir_http_fetch_options, __VA_ARGS__)

/*
 * Fetches a whole response. The value of the promise is a weir_http_full, owned by the promise:
 * retain it as a message to keep it. A response of any status is a success. Cancelling the promise
 * cancels the call. Its detail is that of the event `end`.
 * Thread: any.  Gives: fetching.  Fails: as weir_http_client_send.
 */
WEIR_API WEIR_MUST_USE int weir_http_client_fetch(weir_http_client *client,
                                                  const weir_http_fetch_options *options,
                                                  weir_promise **ret_fetching);

/*
 * Fetches a whole response and waits for it.
 * Thread: any that may wait.  Gives: full, to be released as a message.  Fails: -EDEADLK (on a
 * loop), and as weir_http_client_send and its event `end`; the log says why.
 */
WEIR_API WEIR_MUST_USE int weir_http_client_fetch_sync(weir_http_client *client,
                                                       const weir_http_fetch_options *options,
                                                       weir_http_full **ret_full);

/*
 * Gets a URL with a client of its own. NULL options are the defaults.
 * Thread: any that may wait.  Gives: full, to be released as a message.  Fails: as
 * weir_http_client_create and weir_http_client_fetch_sync.
 */
WEIR_API WEIR_MUST_USE int weir_http_get_sync(const char *url,
                                              const weir_http_client_options *options,
                                              weir_http_full **ret_full);

#ifdef __cplusplus
}
#endif

#endif
