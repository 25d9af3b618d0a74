/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/dashboard.h - a live page about the process, on any HTTP server.
 *
 *      err = weir_dashboard_add(server, NULL);           http://127.0.0.1:8080/weir/
 *
 * The page shows loops, channels, bytes, memory pools, latencies, handlers that blocked, and the
 * last lines of the log, once a second, over a WebSocket. It has no external resource. A program
 * that shows it wants the watchdog (weir/watchdog.h), too.
 */
#ifndef WEIR_DASHBOARD_H
#define WEIR_DASHBOARD_H

#include <weir/http_server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_DASHBOARD_OPTIONS(...). */
typedef struct weir_dashboard_options {
    size_t size;
    const char *path;  /* of the page, without a "/" at its end; "" = the root; default "/weir" */
    const char *token; /* visitors need it: PATH/?token=TOKEN, which sets a cookie, or
                          "Authorization: Bearer TOKEN"; letters, digits and -._~; default: none
                          if all addresses of the server are loopback ones, else random. Without
                          a token, only requests for localhost or 127.0.0.1 are answered, and
                          none that a proxy has forwarded */
    bool open_to_proxies; /* without a token, forwarded requests are answered, too: the proxy
                             decides who sees the page */
    const char *title;    /* default: the name of the program */
    int64_t interval_ns;  /* between two updates; default 1 s, at least 100 ms */
    int log_lines;        /* of the log that new visitors see; default 200; WEIR_OFF = no log */
    bool chat;            /* visitors can write to each other */
    bool can_block;       /* a button that blocks a loop, to show what that does */
    weir_group *offload;  /* with can_block: a switch for offload_when_blocking to this group;
                             retained */
} weir_dashboard_options;

#define WEIR_DASHBOARD_OPTIONS(...) WEIR_OPTIONS(weir_dashboard_options, __VA_ARGS__)

/*
 * Adds the page to a server, as weir_http_server_add_routes; it is freed with the server. The log
 * names its URL, with the token if it is random, at INFO. The page shows the log lines at or above
 * the level of weir_log_set_level, and the blocks that the watchdog reports from now on.
 * Thread: any.  Fails: -EINVAL, -ENOMEM, -EEXIST (the server has a route with this path), -ENOSPC
 * (the log has no room for another listener).
 */
WEIR_API WEIR_MUST_USE int weir_dashboard_add(weir_http_server *server,
                                              const weir_dashboard_options *options);

/*
 * The URL of the page with the first address of the server, for a line on the terminal: "http://
 * 127.0.0.1:8080/weir/?token=...". Returns the length of the whole text, as snprintf; -ENOENT if
 * the server has no dashboard.
 * Thread: any.
 */
WEIR_API int weir_dashboard_format_url(const weir_http_server *server, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
