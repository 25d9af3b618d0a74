/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dashboard: the page, its visitors, and what they see.
 *
 *      log listener        -> history (log lines) ----+
 *      sampler, 1 a second -> statistics, log lines --+--> all visitors, one message for all
 *      watchdog listener   -> block ------------------+
 *      a visitor's chat    -> chat -------------------+
 *
 * The sampler is a task of the global executor: it runs on when a loop is blocked, and only while
 * there are visitors. A visitor's messages wait in its queue until those before them are sent; of
 * the statistics only the newest waits.
 *
 * References: one of the server, one of each visitor.
 */
#ifndef WEIR_DASHBOARD_DASHBOARD_H
#define WEIR_DASHBOARD_DASHBOARD_H

#include <stdatomic.h>

#include <weir/dashboard.h>
#include <weir/promise.h>
#include <weir/watchdog.h>
#include <weir/websocket.h>

#include "base/list.h"
#include "base/refcount.h"
#include "dashboard/log_history.h"
#include "os/mutex.h"

#define WEIR__DASHBOARD_VISITORS_MAX 64
#define WEIR__DASHBOARD_CHATS_MAX 50  /* messages that new visitors see */
#define WEIR__DASHBOARD_BLOCKS_MAX 20 /* the same */
#define WEIR__DASHBOARD_CHAT_MAX 500  /* bytes of a message */

/* The last messages of a kind, for new visitors. */
typedef struct weir__dashboard_recent {
    weir_ws_message *messages[WEIR__DASHBOARD_CHATS_MAX];
    uint64_t numbers[WEIR__DASHBOARD_CHATS_MAX];
    size_t count;
    size_t max;
} weir__dashboard_recent;

typedef struct weir__dashboard {
    weir__refs refs;
    weir_dashboard_options options; /* the texts are copies */
    char *path;
    char *title;
    char *token;                    /* NULL = none */
    char url[192];                  /* up to the path */
    const weir_http_server *server; /* until it releases the dashboard */
    weir__log_history *log;         /* NULL = none */
    int64_t created_ms;             /* since 1970: a page that connects again compares it */
    uint64_t sampled_line;          /* of the log, the last one that was sent; the sampler's */
    bool has_log_listener;
    bool has_block_listener;
    _Atomic int64_t block_ns;   /* for which the button blocks; tests change it */
    atomic_bool moves_blocking; /* the switch: visitors' channels have offload_when_blocking */

    weir__mutex mutex;   /* guards these: */
    weir__list visitors; /* weir__visitor.link */
    size_t visitor_count;
    uint64_t last_visitor;
    uint64_t last_chat;
    bool is_sampling;
    bool is_closed;         /* the server has released it */
    weir_promise *sampler;  /* the scheduled task; NULL = none */
    weir_promise *ended;    /* the sampler has, after is_closed */
    weir_ws_message *stats; /* the newest; NULL = none */
    weir__dashboard_recent chats;
    weir__dashboard_recent blocks;
    int64_t blocks_since_ns; /* the second in which blocks are counted */
    int blocks_described;    /* in it */
} weir__dashboard;

weir__dashboard *weir__dashboard_retain(weir__dashboard *dashboard);
void weir__dashboard_release(weir__dashboard *dashboard);

/* The dashboard of a server, borrowed; NULL = none. */
weir__dashboard *weir__dashboard_of(const weir_http_server *server);

/* ---- access.c ---- */

/* True if the request may see the dashboard; otherwise answers it. The query's token sets a cookie
 * and redirects to the page, which answers it, too. */
bool weir__dashboard_admit(weir__dashboard *dashboard, weir_http_exchange *exchange);

/* True if an address is one of this machine only. */
bool weir__dashboard_is_local(const weir_address *address);

/* ---- page.c: handlers of routes, whose user_data is the dashboard ---- */

void weir__dashboard_redirect(weir_http_exchange *exchange, void *user_data);
void weir__dashboard_send_page(weir_http_exchange *exchange, void *user_data);
void weir__dashboard_send_script(weir_http_exchange *exchange, void *user_data);
void weir__dashboard_send_style(weir_http_exchange *exchange, void *user_data);
void weir__dashboard_send_icon(weir_http_exchange *exchange, void *user_data);

/* ---- sampler.c ---- */

/* Starts the sampler unless it runs. The caller has the mutex. */
void weir__dashboard_start_sampler(weir__dashboard *dashboard);

/* Stops it and waits for it. */
void weir__dashboard_stop_sampler(weir__dashboard *dashboard);

/* ---- messages.c: each returns NULL without memory ---- */

weir_ws_message *weir__dashboard_stats_message(void);
weir_ws_message *weir__dashboard_block_message(const weir_block *block);
weir_ws_message *weir__dashboard_chat_message(uint64_t number, const char *from, weir_span text);
weir_ws_message *weir__dashboard_notice_message(const char *text);

/* The lines after number `*last`, which is set to the last one; NULL if there are none. */
weir_ws_message *weir__dashboard_log_message(weir__log_history *log, uint64_t *last);
weir_ws_message *weir__dashboard_switch_message(bool is_on);
weir_ws_message *weir__dashboard_unblocked_message(const char *executor, bool is_moved,
                                                   int64_t duration_ns);

/* The first message of a visitor, with what happened before. The caller has the mutex. */
weir_ws_message *weir__dashboard_hello_message(weir__dashboard *dashboard, uint64_t visitor,
                                               const char *loop);

/* ---- recent.c ---- */

/* Adds a message, or replaces the one with its number. Retains it; may drop the oldest. */
void weir__dashboard_recent_add(weir__dashboard_recent *recent, uint64_t number,
                                weir_ws_message *message);
void weir__dashboard_recent_deinit(weir__dashboard_recent *recent);

#endif
