/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From top to bottom: a summary of the process, the loops and other executors, the handlers that
 * blocked a loop, the keys. The loops get the lines that the others leave.
 */
#include "top/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top/rows.h"
#include "top/text.h"

#define NAME_WIDTH 16
#define HANDLERS_MAX 5
#define MOVED "  moved to another group"
#define HANDLER_NAME_WIDTH 30
#define HANDLER_NUMBERS_WIDTH (8 + 10 + 10)

struct screen {
    const struct view *view;
    struct moments moments;
    struct text text;
};

/* ---- the summary ---- */

/* A number with its unit or name. It ends the line if it does not fit whole. */
static void put_number(struct screen *screen, const char *number, const char *name)
{
    char both[64];

    (void)snprintf(both, sizeof(both), "%s%s", number, name);
    if (!text_fits(&screen->text, both)) {
        text_cut(&screen->text);
        return;
    }
    text_set_style(&screen->text, STYLE_BOLD);
    text_put(&screen->text, number);
    text_set_style(&screen->text, STYLE_PLAIN);
    text_put(&screen->text, name);
}

static void put_count(struct screen *screen, const char *metric, const char *name)
{
    char buffer[NUMBER_SIZE];

    put_number(screen, format_count((double)total(&screen->moments, metric), buffer), name);
}

static void put_rate(struct screen *screen, const char *metric, const char *name)
{
    char buffer[NUMBER_SIZE];

    put_number(screen, format_count(rate(&screen->moments, metric, NULL, NULL), buffer), name);
}

static void put_byte_rate(struct screen *screen, const char *metric, const char *name)
{
    char buffer[NUMBER_SIZE];

    put_number(screen, format_bytes(rate(&screen->moments, metric, NULL, NULL), buffer), name);
}

static void put_bytes(struct screen *screen, const char *metric, const char *name)
{
    char buffer[NUMBER_SIZE];

    put_number(screen, format_bytes((double)total(&screen->moments, metric), buffer), name);
}

static void put_ns(struct screen *screen, int64_t ns, const char *name)
{
    char buffer[NUMBER_SIZE];

    put_number(screen, format_ns(ns, screen->view->is_utf8, buffer), name);
}

static void begin_line(struct screen *screen, const char *title)
{
    text_set_style(&screen->text, STYLE_DIM);
    text_put_left(&screen->text, 10, title);
    text_set_style(&screen->text, STYLE_PLAIN);
}

static void draw_title(struct screen *screen)
{
    const struct view *view = screen->view;

    text_set_style(&screen->text, STYLE_BOLD);
    text_put_left(&screen->text, 10, "weir top");
    text_set_style(&screen->text, STYLE_PLAIN);
    text_put(&screen->text, view->url);
    if (view->error != NULL) {
        text_set_style(&screen->text, STYLE_ALERT);
        text_printf(&screen->text, "  %s", view->error);
        text_set_style(&screen->text, STYLE_PLAIN);
    } else if (view->is_paused) {
        text_set_style(&screen->text, STYLE_REVERSE);
        text_put(&screen->text, " paused ");
        text_set_style(&screen->text, STYLE_PLAIN);
    }
    text_end_line(&screen->text);
}

static void draw_process(struct screen *screen)
{
    const struct moments *moments = &screen->moments;
    int64_t start_ns = total(moments, "process.start_time_ns");
    double cpu = rate(moments, "process.cpu_ns", NULL, NULL) / 1e9;
    char buffer[NUMBER_SIZE];

    begin_line(screen, "process");
    (void)snprintf(buffer, sizeof(buffer), "%.0f%%", cpu * 100);
    put_number(screen, buffer, " CPU   ");
    put_bytes(screen, "process.resident_memory_bytes", " memory   ");
    put_count(screen, "process.threads", " threads   ");
    put_count(screen, "process.open_fds", " files");
    if (start_ns > 0 && text_has_room(&screen->text, 6 + NUMBER_COLUMNS)) {
        text_put(&screen->text, "   up ");
        put_ns(screen, (int64_t)(moments->now->time * 1e9) - start_ns, "");
    }
    text_end_line(&screen->text);
}

static void draw_channels(struct screen *screen)
{
    begin_line(screen, "channels");
    put_count(screen, "channels.active", " active   ");
    put_byte_rate(screen, "channels.bytes_received", "/s in   ");
    put_byte_rate(screen, "channels.bytes_sent", "/s out   ");
    put_rate(screen, "channels.accepted", "/s accepted   ");
    put_count(screen, "channels.errors", " errors");
    text_end_line(&screen->text);
}

static void draw_http(struct screen *screen)
{
    struct spread spread = spread_of(&screen->moments, "http.request_ns", NULL, NULL);

    begin_line(screen, "HTTP");
    put_count(screen, "http.connections_open", " open   ");
    put_rate(screen, "http.requests", "/s requests   ");
    for (int hundreds = 4; hundreds <= 5; hundreds++) {
        char status[] = "0xx", buffer[NUMBER_SIZE];

        status[0] = (char)('0' + hundreds);
        put_number(screen,
                   format_count(rate(&screen->moments, "http.responses", "status", status), buffer),
                   hundreds == 4 ? "/s 4xx   " : "/s 5xx   ");
    }
    if (spread.count > 0) {
        put_ns(screen, spread.p50, " median   ");
        put_ns(screen, spread.p99, " p99");
    }
    text_end_line(&screen->text);
}

/* WebSockets and TLS share a line: most programs have neither. */
static void draw_websocket(struct screen *screen)
{
    if (total(&screen->moments, "websocket.connections") +
            total(&screen->moments, "tls.handshakes") +
            total(&screen->moments, "tls.handshakes_failed") ==
        0)
        return;
    begin_line(screen, "WebSocket");
    put_count(screen, "websocket.connections_open", " open   ");
    put_rate(screen, "websocket.messages_received", "/s in   ");
    put_rate(screen, "websocket.messages_sent", "/s out   TLS ");
    put_rate(screen, "tls.handshakes", "/s handshakes   ");
    put_count(screen, "tls.handshakes_failed", " failed");
    text_end_line(&screen->text);
}

static void draw_pools(struct screen *screen)
{
    begin_line(screen, "pools");
    put_bytes(screen, "pool.mapped_bytes", " mapped   ");
    put_bytes(screen, "pool.cache.out_bytes", " in use   ");
    put_bytes(screen, "pool.cache.cached_bytes", " cached   ");
    put_bytes(screen, "pool.peak_bytes", " peak   ");
    put_count(screen, "pool.failures", " failures");
    text_end_line(&screen->text);
}

static void draw_watchdog(struct screen *screen)
{
    int64_t now = total(&screen->moments, "watchdog.blocked_now");
    char words[40];

    begin_line(screen, "watchdog");
    if (total(&screen->moments, "watchdog.is_running") == 0) {
        text_put(&screen->text, "off");
    } else {
        put_count(screen, "watchdog.blocks", " blocks   ");
        put_ns(screen, total(&screen->moments, "watchdog.longest_ns"), " longest   ");
        (void)snprintf(words, sizeof(words), "%lld blocked now", (long long)now);
        text_set_style(&screen->text, now > 0 ? STYLE_ALERT : STYLE_PLAIN);
        text_put(&screen->text, text_fits(&screen->text, words) ? words : "");
        text_set_style(&screen->text, STYLE_PLAIN);
    }
    text_end_line(&screen->text);
}

/* ---- loops ---- */

/* A column of the table, except the first three: name, bar and percentage. */
struct column {
    const char *title;
    int width;
    int needs;        /* columns of the terminal; fewer leave it out */
    enum order order; /* ORDER_NAME = none has this one */
    void (*put)(struct screen *screen, const struct loop_row *row, int width);
};

static void put_field(struct screen *screen, int width, const char *words)
{
    text_put_right(&screen->text, width, words);
}

static void put_queue(struct screen *screen, const struct loop_row *row, int width)
{
    char buffer[NUMBER_SIZE];

    put_field(screen, width, format_count((double)row->pending, buffer));
}

static void put_tasks(struct screen *screen, const struct loop_row *row, int width)
{
    char buffer[NUMBER_SIZE];

    put_field(screen, width, format_count(row->tasks, buffer));
}

static void put_turns(struct screen *screen, const struct loop_row *row, int width)
{
    char buffer[NUMBER_SIZE];

    put_field(screen, width, row->is_loop ? format_count(row->turns, buffer) : "-");
}

static void put_events(struct screen *screen, const struct loop_row *row, int width)
{
    char buffer[NUMBER_SIZE];

    put_field(screen, width, row->is_loop ? format_count(row->events, buffer) : "-");
}

static void put_handles(struct screen *screen, const struct loop_row *row, int width)
{
    char buffer[NUMBER_SIZE];

    put_field(screen, width, row->is_loop ? format_count((double)row->handles, buffer) : "-");
}

static void put_duration(struct screen *screen, int width, const struct loop_row *row, int64_t ns)
{
    char buffer[NUMBER_SIZE];

    put_field(screen, width,
              row->turn.count > 0 ? format_ns(ns, screen->view->is_utf8, buffer) : "-");
}

static void put_median(struct screen *screen, const struct loop_row *row, int width)
{
    put_duration(screen, width, row, row->turn.p50);
}

static void put_p99(struct screen *screen, const struct loop_row *row, int width)
{
    put_duration(screen, width, row, row->turn.p99);
}

static void put_max(struct screen *screen, const struct loop_row *row, int width)
{
    put_duration(screen, width, row, row->turn.max);
}

static const struct column columns[] = {
    {"QUEUE", 6, 32, ORDER_QUEUE, put_queue},   {"TASKS/S", 8, 100, ORDER_NAME, put_tasks},
    {"TURNS/S", 8, 40, ORDER_TURNS, put_turns}, {"EVENTS/S", 9, 110, ORDER_NAME, put_events},
    {"MEDIAN", 7, 47, ORDER_NAME, put_median},  {"P99", 7, 54, ORDER_TURN_TIME, put_p99},
    {"MAX", 7, 61, ORDER_NAME, put_max},        {"FILES", 6, 72, ORDER_HANDLES, put_handles},
};

static bool fits(const struct screen *screen, const struct column *column)
{
    return screen->view->width == 0 || screen->view->width >= column->needs;
}

/* What the other columns leave. */
static int bar_width(const struct screen *screen)
{
    int width = screen->view->width > 0 ? screen->view->width : 120;

    width -= NAME_WIDTH + 1 + 5;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (fits(screen, &columns[i]))
            width -= columns[i].width;
    return width < 4 ? 4 : width > 40 ? 40 : width;
}

/* The title of a column, marked if the rows are in its order. */
static void put_title(struct screen *screen, int width, const char *title, bool is_order)
{
    text_set_style(&screen->text, is_order ? STYLE_BOLD : STYLE_REVERSE);
    text_put_right(&screen->text, width, title);
    text_set_style(&screen->text, STYLE_PLAIN);
}

static void draw_titles(struct screen *screen)
{
    enum order order = screen->view->order;

    text_set_style(&screen->text, order == ORDER_NAME ? STYLE_BOLD : STYLE_REVERSE);
    text_put_left(&screen->text, NAME_WIDTH + 1, "LOOP");
    text_set_style(&screen->text, STYLE_PLAIN);
    put_title(screen, bar_width(screen) + 5, "BUSY", order == ORDER_UTILISATION);
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (fits(screen, &columns[i]))
            put_title(screen, columns[i].width, columns[i].title,
                      columns[i].order == order && order != ORDER_NAME);
    text_end_line(&screen->text);
}

static void draw_loop(struct screen *screen, const struct loop_row *row)
{
    char percent[NUMBER_SIZE];

    text_put_left(&screen->text, NAME_WIDTH, row->name);
    text_put(&screen->text, " ");
    if (row->permille >= 800)
        text_set_style(&screen->text, row->permille >= 950 ? STYLE_ALERT : STYLE_WARNING);
    text_put_bar(&screen->text, bar_width(screen), row->permille);
    (void)snprintf(percent, sizeof(percent), "%d%%", (int)(row->permille + 5) / 10);
    text_put_right(&screen->text, 5, percent);
    text_set_style(&screen->text, STYLE_PLAIN);
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (fits(screen, &columns[i]))
            columns[i].put(screen, row, columns[i].width);
    text_end_line(&screen->text);
}

/* `lines` for the rows, and one more that says how many are left out. */
static void draw_loops(struct screen *screen, const struct loop_rows *rows, int lines)
{
    size_t shown = rows->count, first = screen->view->first;

    if (lines >= 0 && (size_t)lines < rows->count)
        shown = lines > 1 ? (size_t)lines - 1 : 0;
    if (first > rows->count - shown)
        first = rows->count - shown;
    draw_titles(screen);
    for (size_t i = first; i < first + shown; i++)
        draw_loop(screen, &rows->list[i]);
    if (shown < rows->count && lines > 0) {
        text_set_style(&screen->text, STYLE_DIM);
        text_printf(&screen->text, "%zu to %zu of %zu", first + (shown > 0), first + shown,
                    rows->count);
        text_set_style(&screen->text, STYLE_PLAIN);
        text_end_line(&screen->text);
    }
}

/* ---- handlers ---- */

static size_t count_shown(const struct screen *screen, const struct handler_rows *handlers)
{
    bool is_limited = screen->view->height > 0 && handlers->count > HANDLERS_MAX;

    return is_limited ? HANDLERS_MAX : handlers->count;
}

static int handler_name_width(const struct screen *screen)
{
    int width = screen->view->width - HANDLER_NUMBERS_WIDTH;

    if (screen->view->width == 0 || width > HANDLER_NAME_WIDTH)
        return HANDLER_NAME_WIDTH;
    return width > 1 ? width : 1;
}

static void draw_handler(struct screen *screen, const struct handler_row *row)
{
    char blocks[NUMBER_SIZE], sum[NUMBER_SIZE], longest[NUMBER_SIZE];
    bool is_utf8 = screen->view->is_utf8;

    text_put_left(&screen->text, handler_name_width(screen), row->name);
    text_put_right(&screen->text, 8, format_count((double)row->blocks, blocks));
    text_put_right(&screen->text, 10, format_ns(row->blocked_ns, is_utf8, sum));
    text_put_right(&screen->text, 10, format_ns(row->longest_ns, is_utf8, longest));
    if (row->is_offloaded && text_fits(&screen->text, MOVED))
        text_put(&screen->text, MOVED);
    text_end_line(&screen->text);
}

static void draw_handlers(struct screen *screen, const struct handler_rows *handlers)
{
    if (handlers->count == 0)
        return;
    text_end_line(&screen->text);
    text_set_style(&screen->text, STYLE_REVERSE);
    text_put_left(&screen->text, handler_name_width(screen), "HANDLER");
    text_put_right(&screen->text, 8, "BLOCKS");
    text_put_right(&screen->text, 10, "TOTAL");
    text_put_right(&screen->text, 10, "LONGEST");
    text_set_style(&screen->text, STYLE_PLAIN);
    text_end_line(&screen->text);
    for (size_t i = 0; i < count_shown(screen, handlers); i++)
        draw_handler(screen, &handlers->list[i]);
}

/* ---- all ---- */

static void draw_keys(struct screen *screen)
{
    static const char *const keys[] = {"n name  ", "b busy  ",  "l queue  ",  "t turns  ",
                                       "p p99  ",  "f files  ", "r reverse  "};
    static const char last_keys[] = "h help  q quit";

    text_set_style(&screen->text, STYLE_DIM);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (text_has_room(&screen->text, (int)(strlen(keys[i]) + strlen(last_keys))))
            text_put(&screen->text, keys[i]);
    text_put(&screen->text, last_keys);
    text_set_style(&screen->text, STYLE_PLAIN);
    text_end_line(&screen->text);
}

static void draw_help(struct screen *screen)
{
    static const char *const lines[] = {
        "",
        "n  b  l  t  p  f   sort loops by name, busy, queue length, turns, p99, files",
        "r                  reverse the order",
        "up down page home  scroll the loops (also k and j)",
        "space              pause, and continue",
        "+  -               update more often, less often",
        "h  ?               this help, and back",
        "q  Ctrl-C          quit",
        "",
        "BUSY is the part of the time that a loop does not wait. QUEUE are tasks that wait.",
        "A turn handles the events that have arrived: MEDIAN, P99 and MAX are its times during",
        "the last updates. HANDLERs are listed if they have blocked a loop (the watchdog).",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        text_put(&screen->text, lines[i]);
        text_end_line(&screen->text);
    }
}

static void draw_summary(struct screen *screen)
{
    draw_process(screen);
    draw_channels(screen);
    draw_http(screen);
    draw_websocket(screen);
    draw_pools(screen);
    draw_watchdog(screen);
    text_end_line(&screen->text);
}

static void draw_tables(struct screen *screen)
{
    struct loop_rows loops =
        loop_rows_make(&screen->moments, screen->view->order, screen->view->is_reversed);
    struct handler_rows handlers = handler_rows_make(screen->moments.now);
    int lines = -1;

    if (screen->view->height > 0) {
        lines = screen->view->height - screen->text.lines - 2; /* titles and keys */
        if (handlers.count > 0)
            lines -= 2 + (int)count_shown(screen, &handlers);
        if (lines < 3) { /* the loops are more important */
            lines += handlers.count > 0 ? 2 + (int)count_shown(screen, &handlers) : 0;
            handlers.count = 0;
        }
    }
    draw_loops(screen, &loops, lines < 0 && screen->view->height > 0 ? 0 : lines);
    draw_handlers(screen, &handlers);
    free(loops.list);
    free(handlers.list);
}

/* Cuts off lines that the terminal does not have. */
static void limit_lines(struct text *text, int height)
{
    char *at = text->data;

    for (int i = 0; i < height && at != NULL; i++) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at != NULL && height > 0)
        *at = '\0';
}

char *screen_draw(const struct view *view, struct snapshot *const *snapshots, size_t count)
{
    struct screen screen = {
        .view = view,
        .text = {.width = view->width, .is_utf8 = view->is_utf8, .has_styles = view->has_styles},
    };

    draw_title(&screen);
    if (view->shows_help) {
        draw_help(&screen);
    } else if (count > 0) {
        screen.moments = (struct moments){
            .now = snapshots[count - 1],
            .before = count > 1 ? snapshots[count - 2] : NULL,
            .first = count > 1 && view->height > 0 ? snapshots[0] : NULL,
        };
        draw_summary(&screen);
        draw_tables(&screen);
    }
    if (view->height > 0)
        draw_keys(&screen);
    if (screen.text.failed) {
        free(screen.text.data);
        return NULL;
    }
    limit_lines(&screen.text, view->height);
    return screen.text.data;
}

/* ---- keys ---- */

static void scroll(struct view *view, int by)
{
    if (by < 0 && view->first < (size_t)-by)
        view->first = 0;
    else
        view->first += (size_t)by;
}

static bool press_order(struct view *view, int key)
{
    static const struct {
        int key;
        enum order order;
    } keys[] = {{'n', ORDER_NAME},   {'b', ORDER_UTILISATION}, {'u', ORDER_UTILISATION},
                {'l', ORDER_QUEUE},  {'t', ORDER_TURNS},       {'p', ORDER_TURN_TIME},
                {'f', ORDER_HANDLES}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].key != key)
            continue;
        view->order = keys[i].order;
        view->first = 0;
        return true;
    }
    return false;
}

bool view_press(struct view *view, int key)
{
    int page = view->height > 16 ? view->height - 12 : 4;

    if (press_order(view, key))
        return true;
    if (key == 'r')
        view->is_reversed = !view->is_reversed;
    else if (key == ' ')
        view->is_paused = !view->is_paused;
    else if (key == 'h' || key == '?')
        view->shows_help = !view->shows_help;
    else if (key == KEY_UP || key == 'k')
        scroll(view, -1);
    else if (key == KEY_DOWN || key == 'j')
        scroll(view, 1);
    else if (key == KEY_PAGE_UP)
        scroll(view, -page);
    else if (key == KEY_PAGE_DOWN)
        scroll(view, page);
    else if (key == KEY_HOME)
        view->first = 0;
    else
        return false;
    return true;
}
