/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/dashboard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/memory.h>
#include <weir/random.h>
#include <weir/watchdog.h>

#include "base/log.h"
#include "base/options.h"
#include "dashboard/visitor.h"
#include "os/clock.h"
#include "protocol/http/http_server.h"

#define SUBSYSTEM "dashboard"
#define LOG_LINES 200
#define BLOCK_NS weir_ms(400)
#define PATH_MAX_LENGTH 100
#define RANDOM_TOKEN_SIZE 16
#define BLOCKS_PER_SECOND 20 /* that are described; the others are only counted */

/* ---- lifecycle ---- */

weir__dashboard *weir__dashboard_retain(weir__dashboard *dashboard)
{
    weir__refs_retain(&dashboard->refs);
    return dashboard;
}

void weir__dashboard_release(weir__dashboard *dashboard)
{
    if (!weir__refs_release(&dashboard->refs))
        return;
    if (dashboard->stats != NULL)
        weir_msg_release(weir_ws_message_msg(dashboard->stats));
    weir__dashboard_recent_deinit(&dashboard->chats);
    weir__dashboard_recent_deinit(&dashboard->blocks);
    weir__log_history_free(dashboard->log);
    weir_promise_release(dashboard->ended);
    weir_group_release(dashboard->options.offload);
    weir__mutex_deinit(&dashboard->mutex);
    weir_memory_free(dashboard->path);
    weir_memory_free(dashboard->title);
    weir_memory_free(dashboard->token);
    weir_memory_free(dashboard);
}

/* True if the block is to be described. */
static bool admit_block(weir__dashboard *dashboard)
{
    int64_t now_ns = weir_time_of_day();
    bool is_admitted;

    weir__mutex_lock(&dashboard->mutex);
    if (now_ns - dashboard->blocks_since_ns >= weir_seconds(1) ||
        now_ns < dashboard->blocks_since_ns) {
        dashboard->blocks_since_ns = now_ns;
        dashboard->blocks_described = 0;
    }
    is_admitted = dashboard->blocks_described < BLOCKS_PER_SECOND;
    dashboard->blocks_described += is_admitted;
    weir__mutex_unlock(&dashboard->mutex);
    return is_admitted;
}

/* On the watchdog's thread. */
static void on_block(const weir_block *block, void *user_data)
{
    weir__dashboard *dashboard = user_data;
    weir_ws_message *message = admit_block(dashboard) ? weir__dashboard_block_message(block) : NULL;

    if (message == NULL)
        return;
    weir__mutex_lock(&dashboard->mutex);
    weir__dashboard_recent_add(&dashboard->blocks, block->number, message);
    weir__mutex_unlock(&dashboard->mutex);
    weir__visitors_offer(dashboard, message);
}

/* The server is freed, or could not add the routes. */
static void on_released(void *arg)
{
    weir__dashboard *dashboard = arg;

    if (dashboard->has_block_listener)
        (void)weir_watchdog_remove_listener(on_block, dashboard);
    if (dashboard->has_log_listener)
        (void)weir_log_remove_listener(weir__log_history_add, dashboard->log);
    weir__dashboard_stop_sampler(dashboard);
    dashboard->server = NULL;
    weir__dashboard_release(dashboard);
}

weir__dashboard *weir__dashboard_of(const weir_http_server *server)
{
    return weir__http_server_find_added((weir_http_server *)(uintptr_t)server, on_released);
}

/* ---- options ---- */

static int check(const weir_dashboard_options *options)
{
    const char *path = options->path;

    if (options->interval_ns != 0 && options->interval_ns < weir_ms(100))
        return weir__options_reject(SUBSYSTEM, NULL,
                                    "interval_ns is %lld, the minimum is 100000000 (100 ms)",
                                    (long long)options->interval_ns);
    if (options->log_lines < WEIR_OFF || options->log_lines > WEIR__LOG_HISTORY_MAX)
        return weir__options_reject(SUBSYSTEM, NULL, "log_lines is %d, the maximum is %d",
                                    options->log_lines, WEIR__LOG_HISTORY_MAX);
    if (options->token != NULL &&
        strspn(options->token, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz-._~") != strlen(options->token))
        return weir__options_reject(SUBSYSTEM, NULL,
                                    "token has other characters than letters, digits and -._~");
    if (options->token != NULL && options->token[0] == '\0')
        return weir__options_reject(SUBSYSTEM, NULL, "token is empty");
    if (path != NULL && path[0] != '\0' &&
        (path[0] != '/' || path[strlen(path) - 1] == '/' || strpbrk(path, "{}?#%\\\" ;,") != NULL ||
         strlen(path) > PATH_MAX_LENGTH))
        return weir__options_reject(SUBSYSTEM, NULL,
                                    "path is \"%s\", expected \"\" or a path such as \"/weir\", "
                                    "of at most %d bytes",
                                    path, PATH_MAX_LENGTH);
    return 0;
}

/* NULL without memory. */
static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copied = weir_memory_alloc(size);

    if (copied != NULL)
        memcpy(copied, text, size);
    return copied;
}

static char *create_random_token(void)
{
    char text[2 * RANDOM_TOKEN_SIZE + 1];
    uint8_t bytes[RANDOM_TOKEN_SIZE];

    weir_random_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return copy(text);
}

static bool is_local(const weir_http_server *server)
{
    const weir_server *listeners = weir_http_server_server(server);
    weir_address address;

    for (size_t i = 0; i < weir_server_listener_count(listeners); i++)
        if (weir_channel_local_address(weir_server_listener(listeners, i), &address) < 0 ||
            !weir__dashboard_is_local(&address))
            return false;
    return true;
}

static int copy_options(weir__dashboard *dashboard)
{
    weir_dashboard_options *options = &dashboard->options;
    bool needs_token = options->token != NULL || !is_local(dashboard->server);

    dashboard->path = copy(options->path != NULL ? options->path : "/weir");
    dashboard->title =
        copy(options->title != NULL ? options->title : program_invocation_short_name);
    if (needs_token)
        dashboard->token = options->token != NULL ? copy(options->token) : create_random_token();
    if (dashboard->path == NULL || dashboard->title == NULL ||
        (needs_token && dashboard->token == NULL))
        return -ENOMEM;
    if (options->interval_ns == 0)
        options->interval_ns = weir_seconds(1);
    if (options->log_lines == 0)
        options->log_lines = LOG_LINES;
    return 0;
}

/* Without the path. An address that stands for all is that of this machine. */
static void format_base(weir__dashboard *dashboard)
{
    weir_channel *listener = weir_server_listener(weir_http_server_server(dashboard->server), 0);
    bool is_tls = weir__http_server_is_tls(dashboard->server, listener);
    char text[WEIR_ADDRESS_TEXT_SIZE] = "localhost";
    weir_address address;
    unsigned port;

    if (weir_channel_local_address(listener, &address) == 0 && weir_address_port(&address) != 0) {
        port = weir_address_port(&address);
        (void)weir_address_format(&address, text, sizeof(text));
        if (strncmp(text, "0.0.0.0:", 8) == 0 || strncmp(text, "[::]:", 5) == 0)
            (void)snprintf(text, sizeof(text), "127.0.0.1:%u", port);
    }
    (void)snprintf(dashboard->url, sizeof(dashboard->url), "%s://%s", is_tls ? "https" : "http",
                   text);
}

/* ---- adding ---- */

static int create(weir_http_server *server, const weir_dashboard_options *options,
                  weir__dashboard **ret_dashboard)
{
    weir__dashboard *dashboard = weir_memory_alloc(sizeof(*dashboard));
    int err;

    if (dashboard == NULL)
        return -ENOMEM;
    memset(dashboard, 0, sizeof(*dashboard));
    weir__refs_init(&dashboard->refs);
    weir__mutex_init(&dashboard->mutex);
    weir__list_init(&dashboard->visitors);
    dashboard->options = *options;
    if (options->offload != NULL)
        (void)weir_group_retain(options->offload);
    dashboard->server = server;
    dashboard->created_ms = weir_time_of_day() / 1000000;
    dashboard->block_ns = BLOCK_NS;
    dashboard->chats.max = WEIR__DASHBOARD_CHATS_MAX;
    dashboard->blocks.max = WEIR__DASHBOARD_BLOCKS_MAX;
    err = copy_options(dashboard);
    if (err == 0)
        err = weir_promise_create(weir_executor_immediate(), &dashboard->ended);
    if (err == 0 && dashboard->options.log_lines != WEIR_OFF)
        err = weir__log_history_create(dashboard->options.log_lines, &dashboard->log);
    if (err < 0) {
        weir__dashboard_release(dashboard);
        return err;
    }
    format_base(dashboard);
    *ret_dashboard = dashboard;
    return 0;
}

static int add_listeners(weir__dashboard *dashboard)
{
    int err = 0;

    if (dashboard->log != NULL)
        err = weir_log_add_listener(weir__log_history_add, dashboard->log);
    dashboard->has_log_listener = dashboard->log != NULL && err == 0;
    if (err == 0)
        err = weir_watchdog_add_listener(on_block, dashboard);
    dashboard->has_block_listener = err == 0;
    return err;
}

/* Takes the dashboard. */
static int add_routes(weir_http_server *server, weir__dashboard *dashboard)
{
    static const struct {
        const char *name;
        weir_http_handler_fn *handler;
    } files[] = {
        {"", weir__dashboard_redirect},           {"/", weir__dashboard_send_page},
        {"/app.js", weir__dashboard_send_script}, {"/style.css", weir__dashboard_send_style},
        {"/icon.svg", weir__dashboard_send_icon}, {"/ws", weir__dashboard_open_socket}};
    enum { COUNT = sizeof(files) / sizeof(files[0]) };
    size_t first = dashboard->path[0] == '\0'; /* the root has no path without "/" */
    char paths[COUNT][PATH_MAX_LENGTH + 16];
    weir_http_route routes[COUNT + 1] = {{0}};

    for (size_t i = first; i < COUNT; i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "%s%s", dashboard->path, files[i].name);
        routes[i - first] =
            (weir_http_route){"GET", paths[i], files[i].handler, .user_data = dashboard};
    }
    return weir_http_server_add_routes(server, routes, on_released, dashboard);
}

int weir_dashboard_add(weir_http_server *server, const weir_dashboard_options *options)
{
    weir__dashboard *dashboard = NULL;
    weir_dashboard_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0)
        err = check(&own);
    if (err == 0)
        err = create(server, &own, &dashboard);
    if (err < 0)
        return err;
    err = add_listeners(dashboard);
    if (err < 0) {
        on_released(dashboard);
        return err;
    }
    err = add_routes(server, dashboard);
    if (err == 0)
        weir__info(SUBSYSTEM, dashboard->title, "%s%s/%s%s", dashboard->url, dashboard->path,
                   dashboard->token != NULL && own.token == NULL ? "?token=" : "",
                   dashboard->token != NULL && own.token == NULL ? dashboard->token : "");
    return err;
}

int weir_dashboard_format_url(const weir_http_server *server, char *buffer, size_t size)
{
    const weir__dashboard *dashboard = weir__dashboard_of(server);

    if (dashboard == NULL)
        return -ENOENT;
    return snprintf(buffer, size, "%s%s/%s%s", dashboard->url, dashboard->path,
                    dashboard->token != NULL ? "?token=" : "",
                    dashboard->token != NULL ? dashboard->token : "");
}
