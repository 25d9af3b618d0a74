/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options of the examples, and the common part of servers.
 *
 *      --host ADDRESS    --port N    --io auto|epoll|uring|poll|blocking    --adaptive
 *      --threads N       0 = the default; blocking: one per channel
 *      --boss-threads N  threads that only accept; 0, the default: every worker accepts
 *      --tls             and its options: support/tls.h
 */
#ifndef EXAMPLES_SETTINGS_H
#define EXAMPLES_SETTINGS_H

#include <weir/weir.h>

struct settings {
    const char *program;
    const char *host;
    int port;
    char address[WEIR_ADDRESS_TEXT_SIZE]; /* of both */
    enum weir_io io;
    enum weir_strategy strategy;
    int threads;
    int boss_threads;
    bool offers_tls; /* the example does; the rest of it is in support/tls.h */
    bool tls;
    bool insecure;
    const char *cert;
    const char *key;
    const char *ca;
};

/* Removes an option of the example itself from the arguments and returns its value, or NULL. Call
 * it before settings_read. */
char *settings_take(int *argc, char **argv, const char *name);

/* The same for a number from 1 to 3600000; for a word of a NULL-terminated list, whose index is
 * returned; and for an option without a value. Other values are refused. */
int settings_take_number(int *argc, char **argv, const char *name, int otherwise);
int settings_take_word(int *argc, char **argv, const char *name, const char *const *words,
                       int otherwise);
bool settings_take_switch(int *argc, char **argv, const char *name);

/* The same for a port, which may be 0. */
int settings_take_port(int *argc, char **argv, const char *name, int otherwise);

/* Prints that the value of an option is invalid, and exits with 2. */
_Noreturn void settings_refuse(const char *program, const char *name, const char *value);

/* Exits with 2, an error and the usage, on unknown arguments; with 0 on --help. */
struct settings settings_read(int argc, char **argv, const char *host, int port);

/* The same for examples with --tls. */
struct settings settings_read_tls(int argc, char **argv, const char *host, int port);

/* Formats the host of the settings with another port. */
void settings_format_address(const struct settings *settings, int port,
                             char buffer[WEIR_ADDRESS_TEXT_SIZE]);

/* Creates the groups; *ret_boss is NULL if the workers accept. ret_boss is NULL in clients. */
int settings_make_groups(const struct settings *settings, weir_group **ret_boss,
                         weir_group **ret_workers);

/* Prints "listening on ADDRESS:PORT" for each address, with the actual port. Blocks SIGINT, SIGTERM
 * and SIGUSR2 until weir_server_run. */
void print_address(weir_server *server);

/* Runs a server like examples/echo until a signal; returns the exit status of the program. */
int serve(const struct settings *settings, weir_init_fn *init_child);

/* The same for datagrams, with a socket per loop. */
int serve_datagrams(const struct settings *settings, weir_init_fn *init_server);

/* Connects a client, with TLS on request; `init` adds its handlers. */
int connect_to(const struct settings *settings, weir_group *group, weir_init_fn *init,
               void *user_data, weir_channel **ret_channel);

#endif
