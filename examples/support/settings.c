/* SPDX-License-Identifier: Apache-2.0 */
#include "support/settings.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_MAX 12

static const char *const io_names[] = {
    [WEIR_IO_AUTO] = "auto", [WEIR_IO_EPOLL] = "epoll",       [WEIR_IO_URING] = "uring",
    [WEIR_IO_POLL] = "poll", [WEIR_IO_BLOCKING] = "blocking",
};

static bool read_io(const char *name, enum weir_io *ret_io)
{
    for (size_t i = 0; i < sizeof(io_names) / sizeof(*io_names); i++) {
        if (strcmp(name, io_names[i]) == 0) {
            *ret_io = (enum weir_io)i;
            return true;
        }
    }
    return false;
}

static bool read_number(const char *text, int max, int *ret_number)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < 0 || number > max)
        return false;
    *ret_number = (int)number;
    return true;
}

/* Each of these implies --tls: a forgotten --tls must not mean plain text. */
static bool read_tls_setting(struct settings *settings, const char *name, const char *value)
{
    if (strcmp(name, "--cert") == 0)
        settings->cert = value;
    else if (strcmp(name, "--key") == 0)
        settings->key = value;
    else if (strcmp(name, "--ca") == 0)
        settings->ca = value;
    else
        return false;
    settings->tls = true;
    return true;
}

/* An option with a value. */
static bool read_setting(struct settings *settings, const char *name, const char *value)
{
    if (strcmp(name, "--host") == 0)
        settings->host = value;
    else if (strcmp(name, "--port") == 0)
        return read_number(value, 65535, &settings->port);
    else if (strcmp(name, "--io") == 0)
        return read_io(value, &settings->io);
    else if (strcmp(name, "--threads") == 0)
        return read_number(value, 1024, &settings->threads);
    else if (strcmp(name, "--boss-threads") == 0)
        return read_number(value, 1024, &settings->boss_threads);
    else
        return settings->offers_tls && read_tls_setting(settings, name, value);
    return true;
}

/* An option without a value. */
static bool read_switch(struct settings *settings, const char *name)
{
    if (strcmp(name, "--adaptive") == 0)
        settings->strategy = WEIR_STRATEGY_ADAPTIVE;
    else if (settings->offers_tls && strcmp(name, "--tls") == 0)
        settings->tls = true;
    else if (settings->offers_tls && strcmp(name, "--insecure") == 0)
        settings->tls = settings->insecure = true;
    else
        return false;
    return true;
}

/* Options of the example itself, as passed to settings_take. */
static const char *own_options[OWN_MAX + 1]; /* and NULL */

static void remember_own(const char *name)
{
    size_t i = 0;

    while (i < OWN_MAX && own_options[i] != NULL && strcmp(own_options[i], name) != 0)
        i++;
    if (i < OWN_MAX)
        own_options[i] = name;
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* True if there is an option of this name with a value. */
static bool is_setting(const struct settings *settings, const char *name)
{
    static const char *const common[] = {"--host",    "--port",         "--io",
                                         "--threads", "--boss-threads", NULL};
    static const char *const of_tls[] = {"--cert", "--key", "--ca", NULL};

    return is_one_of(name, common) || is_one_of(name, own_options) ||
           (settings->offers_tls && is_one_of(name, of_tls));
}

static void explain(const struct settings *settings, FILE *out)
{
    fprintf(out,
            "usage: %s [--host ADDRESS] [--port N] [--io auto|epoll|uring|poll|blocking]\n"
            "       [--threads N] [--boss-threads N] [--adaptive]\n%s",
            settings->program,
            settings->offers_tls
                ? "       [--tls] [--cert FILE] [--key FILE] [--ca FILE] [--insecure]\n"
                : "");
    for (size_t i = 0; i < OWN_MAX && own_options[i] != NULL; i++)
        fprintf(out, "%s[%s ...]", i == 0 ? "       " : " ", own_options[i]);
    if (own_options[0] != NULL)
        fprintf(out, "\n");
}

/* `value` is NULL if it is missing. */
static void refuse(const struct settings *settings, const char *name, const char *value)
{
    if (!is_setting(settings, name))
        fprintf(stderr, "%s: unknown option %s\n", settings->program, name);
    else if (value == NULL)
        fprintf(stderr, "%s: %s needs a value\n", settings->program, name);
    else
        fprintf(stderr, "%s: invalid %s \"%s\"\n", settings->program, name, value);
    explain(settings, stderr);
    exit(2);
}

char *settings_take(int *argc, char **argv, const char *name)
{
    char *value;

    remember_own(name);
    for (int i = 1; i + 1 < *argc; i++) {
        if (strcmp(argv[i], name) != 0)
            continue;
        value = argv[i + 1];
        memmove(&argv[i], &argv[i + 2], sizeof(*argv) * (size_t)(*argc - i - 1)); /* and NULL */
        *argc -= 2;
        return value;
    }
    return NULL;
}

_Noreturn void settings_refuse(const char *program, const char *name, const char *value)
{
    fprintf(stderr, "%s: invalid %s \"%s\"\n", program, name, value);
    exit(2);
}

int settings_take_number(int *argc, char **argv, const char *name, int otherwise)
{
    const char *text = settings_take(argc, argv, name);
    int number = otherwise;

    if (text != NULL && (!read_number(text, 3600000, &number) || number < 1))
        settings_refuse(argv[0], name, text);
    return number;
}

int settings_take_port(int *argc, char **argv, const char *name, int otherwise)
{
    const char *text = settings_take(argc, argv, name);
    int port = otherwise;

    if (text != NULL && !read_number(text, 65535, &port))
        settings_refuse(argv[0], name, text);
    return port;
}

int settings_take_word(int *argc, char **argv, const char *name, const char *const *words,
                       int otherwise)
{
    const char *text = settings_take(argc, argv, name);

    if (text == NULL)
        return otherwise;
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    settings_refuse(argv[0], name, text);
}

bool settings_take_switch(int *argc, char **argv, const char *name)
{
    remember_own(name);
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], name) != 0)
            continue;
        memmove(&argv[i], &argv[i + 1], sizeof(*argv) * (size_t)(*argc - i)); /* and NULL */
        *argc -= 1;
        return true;
    }
    return false;
}

void settings_format_address(const struct settings *settings, int port,
                             char buffer[WEIR_ADDRESS_TEXT_SIZE])
{
    (void)snprintf(buffer, WEIR_ADDRESS_TEXT_SIZE,
                   strchr(settings->host, ':') != NULL ? "[%s]:%d" : "%s:%d", settings->host, port);
}

static void read_all(struct settings *settings, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            explain(settings, stdout);
            exit(0);
        }
        if (read_switch(settings, argv[i]))
            continue;
        if (i + 1 < argc && read_setting(settings, argv[i], argv[i + 1]))
            i++;
        else
            refuse(settings, argv[i], argv[i + 1]);
    }
    settings_format_address(settings, settings->port, settings->address);
}

struct settings settings_read(int argc, char **argv, const char *host, int port)
{
    struct settings settings = {.program = argv[0], .host = host, .port = port};

    read_all(&settings, argc, argv);
    return settings;
}

struct settings settings_read_tls(int argc, char **argv, const char *host, int port)
{
    struct settings settings = {.program = argv[0], .host = host, .port = port, .offers_tls = true};

    read_all(&settings, argc, argv);
    return settings;
}

static int make_group(const struct settings *settings, const char *name, int threads,
                      weir_group **ret_group)
{
    return weir_group_create(WEIR_GROUP_OPTIONS(.name = name, .threads = threads,
                                                .io = settings->io, .strategy = settings->strategy),
                             ret_group);
}

int settings_make_groups(const struct settings *settings, weir_group **ret_boss,
                         weir_group **ret_workers)
{
    int err = make_group(settings, "worker", settings->threads, ret_workers);

    if (!err && ret_boss != NULL && settings->boss_threads > 0)
        err = make_group(settings, "boss", settings->boss_threads, ret_boss);
    return err;
}

/* A reader of the address may send a signal before weir_server_run: blocked, it stays pending. */
static void hold_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

void print_address(weir_server *server)
{
    weir_address address;
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_channel *listener;
    int last = -1; /* an address may have several listeners */

    hold_signals();
    for (size_t i = 0; (listener = weir_server_listener(server, i)) != NULL; i++) {
        int index = weir_server_address_index(listener);

        if (index <= last)
            continue;
        if (weir_channel_local_address(listener, &address) == 0)
            printf("listening on %s\n", weir_address_format(&address, text, sizeof(text)));
        last = index;
    }
    fflush(stdout);
}
