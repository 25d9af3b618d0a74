/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the event loops of a running program, its connections, memory, HTTP requests, and the
 * handlers that block; as `top` does for processes.
 *     top [--interval SECONDS] [--token TOKEN] [--ca FILE] [--insecure] URL
 * The program has an HTTP server with a weir_metrics_route: URL is that route, or the server, and
 * then the route is /metrics. --token is sent as "Authorization: Bearer TOKEN".
 *
 * The keys are listed at the bottom, and by h. If the output is not a terminal, it prints one
 * snapshot, after an interval, for the rates. Exit status: 1 if there are no metrics at the
 * beginning, 2 for wrong arguments.
 */
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <weir/weir.h>

#include "support/tls.h"
#include "top/screen.h"
#include "top/source.h"
#include "top/terminal.h"
#include "top/url.h"

#define KEPT 10 /* snapshots: distributions are those of ten intervals */
#define INTERVAL_MIN_S 0.1
#define INTERVAL_MAX_S 60.0

struct top {
    double interval_s;
    const char *given; /* URL */
    char url[URL_SIZE], server[URL_SIZE], token[256];
    struct settings tls;
    struct source source;
    struct view view;
    struct snapshot *kept[KEPT];
    size_t count;
    int signals;           /* a signalfd */
    int64_t last_start_ns; /* of a request */
    bool stops;
};

/* ---- options ---- */

static _Noreturn void usage(FILE *out, int status)
{
    fprintf(out, "usage: top [--interval SECONDS] [--token TOKEN] [--ca FILE] [--insecure] URL\n");
    exit(status);
}

static _Noreturn void refuse(const char *what, const char *value)
{
    fprintf(stderr, "top: %s%s\n", what, value);
    usage(stderr, 2);
}

static double read_interval(const char *text)
{
    char *end;
    double seconds = strtod(text, &end);

    if (*text == '\0' || *end != '\0' || !(seconds >= INTERVAL_MIN_S && seconds <= INTERVAL_MAX_S))
        refuse("--interval is 0.1 to 60 seconds, not ", text);
    return seconds;
}

static void read_setting(struct top *top, const char *name, const char *value)
{
    if (value == NULL)
        refuse(name, " needs a value");
    if (strcmp(name, "--interval") == 0)
        top->interval_s = read_interval(value);
    else if (strcmp(name, "--ca") == 0)
        top->tls.ca = value;
    else if (snprintf(top->token, sizeof(top->token), "%s", value) >= (int)sizeof(top->token))
        refuse("--token is longer than 255 bytes", "");
}

static void read_options(struct top *top, int argc, char **argv)
{
    bool has_token = false;

    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];

        if (strcmp(name, "--help") == 0)
            usage(stdout, 0);
        else if (strcmp(name, "--insecure") == 0)
            top->tls.insecure = true;
        else if (strcmp(name, "--interval") == 0 || strcmp(name, "--ca") == 0 ||
                 strcmp(name, "--token") == 0)
            read_setting(top, name, argv[++i]);
        else if (name[0] == '-')
            refuse("unknown option ", name);
        else if (top->given != NULL)
            refuse("one URL is allowed, not also ", name);
        else
            top->given = name;
        has_token = has_token || strcmp(name, "--token") == 0;
    }
    if (top->given == NULL)
        refuse("missing URL", "");
    if (!url_of_metrics(top->given, top->url) ||
        (!has_token && !url_find_token(top->given, top->token, sizeof(top->token))))
        refuse("the URL is too long: ", top->given);
    url_of_server(top->url, top->server);
}

/* ---- updates ---- */

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void add_snapshot(struct top *top, struct snapshot *snapshot)
{
    if (top->count == KEPT) {
        snapshot_free(top->kept[0]);
        memmove(top->kept, top->kept + 1, sizeof(top->kept) - sizeof(top->kept[0]));
        top->count--;
    }
    top->kept[top->count++] = snapshot;
}

static void draw(struct top *top)
{
    char *lines;

    terminal_read_size(&top->view.width, &top->view.height);
    top->view.error = top->source.error[0] != '\0' ? top->source.error : NULL;
    lines = screen_draw(&top->view, top->kept, top->count);
    if (lines != NULL)
        terminal_show(lines);
    free(lines);
}

static void request(struct top *top)
{
    top->last_start_ns = now_ns();
    source_request(&top->source);
}

/* Waits for the first snapshot, or another one. False if there is none. */
static bool await_snapshot(struct top *top)
{
    struct pollfd arrived = {.fd = top->source.arrived, .events = POLLIN};
    struct snapshot *snapshot;

    request(top);
    while (poll(&arrived, 1, -1) < 0)
        ;
    snapshot = source_take(&top->source);
    if (snapshot == NULL) {
        fprintf(stderr, "top: %s\n", top->source.error);
        return false;
    }
    add_snapshot(top, snapshot);
    return true;
}

static void on_arrived(struct top *top)
{
    struct snapshot *snapshot = source_take(&top->source);

    if (snapshot != NULL)
        add_snapshot(top, snapshot);
    draw(top);
}

/* ---- keys and signals ---- */

static void change_interval(struct top *top, double factor)
{
    double interval_s = top->interval_s * factor;

    if (interval_s >= INTERVAL_MIN_S && interval_s <= INTERVAL_MAX_S)
        top->interval_s = interval_s;
}

static void on_keys(struct top *top)
{
    int key = terminal_read_key();

    do {
        if (key == 'q' || key < 0)
            top->stops = true;
        else if (key == '+' || key == '-')
            change_interval(top, key == '+' ? 0.5 : 2);
        else
            (void)view_press(&top->view, key);
    } while (!top->stops && (key = terminal_read_key()) != 0);
    draw(top);
}

/* Ctrl-Z: the shell gets its terminal back as it was. */
static void suspend(struct top *top)
{
    terminal_leave();
    (void)kill(getpid(), SIGSTOP);
    top->stops = !terminal_enter();
}

static void on_signals(struct top *top)
{
    struct signalfd_siginfo info;

    while (read(top->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGTSTP && !top->stops)
            suspend(top);
        else if (info.ssi_signo != SIGWINCH && info.ssi_signo != SIGCONT)
            top->stops = true;
    }
    if (!top->stops)
        draw(top);
}

/* Before any thread is started: all of them leave the signals to the descriptor. */
static int open_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(&set, numbers[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- running ---- */

/* Milliseconds until the next request; -1 = none is due. */
static int next_wait(const struct top *top)
{
    int64_t left_ns = top->last_start_ns + (int64_t)(top->interval_s * 1e9) - now_ns();

    if (top->view.is_paused || top->source.fetching != NULL)
        return -1;
    return left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;
}

static int run_on_terminal(struct top *top)
{
    if (!await_snapshot(top))
        return 1;
    if (!terminal_enter()) {
        perror("top: the terminal");
        return 1;
    }
    draw(top);
    while (!top->stops) {
        struct pollfd ready[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                 {.fd = top->signals, .events = POLLIN},
                                 {.fd = top->source.arrived, .events = POLLIN}};

        (void)poll(ready, 3, next_wait(top));
        if (ready[1].revents != 0)
            on_signals(top);
        if (!top->stops && ready[0].revents != 0)
            on_keys(top);
        if (!top->stops && ready[2].revents != 0)
            on_arrived(top);
        if (!top->stops && next_wait(top) == 0)
            request(top);
    }
    terminal_leave();
    return 0;
}

/* Once, with the rates of an interval; all loops and handlers. */
static int print_once(struct top *top)
{
    struct pollfd signals = {.fd = top->signals, .events = POLLIN};
    char *lines;

    if (!await_snapshot(top))
        return 1;
    if (poll(&signals, 1, next_wait(top)) > 0)
        return 0;
    if (!await_snapshot(top))
        return 1;
    lines = screen_draw(&top->view, top->kept, top->count);
    if (lines != NULL)
        fputs(lines, stdout);
    free(lines);
    return lines != NULL && fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct top top = {.interval_s = 1, .tls = {.program = "top", .tls = tls_is_available()}};
    const char *terminal = getenv("TERM");
    int result = 1;

    read_options(&top, argc, argv);
    (void)setlocale(LC_CTYPE, "");
    weir_log_set_level(WEIR_LOG_OFF); /* the screen shows errors */
    top.view.url = top.server;
    top.view.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    top.view.has_styles = getenv("NO_COLOR") == NULL;
    top.signals = open_signals();
    if (!source_open(&top.source, top.url, top.token, &top.tls))
        return 1;
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal != NULL &&
        strcmp(terminal, "dumb") != 0) {
        result = run_on_terminal(&top);
    } else {
        top.view.has_styles = false;
        result = print_once(&top);
    }
    source_close(&top.source);
    for (size_t i = 0; i < top.count; i++)
        snapshot_free(top.kept[i]);
    (void)close(top.signals);
    return result;
}
